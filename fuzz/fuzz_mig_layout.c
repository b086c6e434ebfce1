/* SPDX-License-Identifier: Apache-2.0 */
/* How a GPU is cut: what is accepted is written and read as the same again. */
#include "base/mig_layout.h"
#include "fuzz_input.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct takt_mig_layout layout, again;
	char *text = fuzz_text(data, size), buf[TAKT_MIG_TEXT];

	if (takt_mig_layout_parse(text, &layout, NULL) == 0 && takt_mig_layout_text(&layout, buf)) {
		fuzz_expect(takt_mig_layout_parse(buf, &again, NULL) == 0);
		fuzz_expect(memcmp(&layout, &again, sizeof(layout)) == 0);
	}
	free(text);
	return 0;
}
