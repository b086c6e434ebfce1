/* SPDX-License-Identifier: Apache-2.0 */
/* Files `access` of the driver's capabilities: what was accepted is a number that can be written as
 * the driver does, and refused ones leave the result alone. */
#include <stdio.h>

#include "device/mig_caps.h"
#include "fuzz_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size), again[64];
	uint16_t minor = 4711, same = 0;
	int rc = takt_mig_cap_minor(text, &minor);

	fuzz_expect(rc == 0 || (rc == -TAKT_E_CORRUPT && minor == 4711));
	fuzz_expect(rc != 0 || strstr(text, "DeviceFileMinor:") != NULL);
	snprintf(again, sizeof(again), "DeviceFileMinor: %u\nDeviceFileMode: 292\n", minor);
	fuzz_expect(takt_mig_cap_minor(again, &same) == 0 && same == minor);
	free(text);
	return 0;
}
