/* SPDX-License-Identifier: Apache-2.0 */
/* Hexadecimal text: what is accepted comes back, in lower case. */
#include "base/hex.h"
#include "fuzz_input.h"

#include <strings.h>

enum {
	LONGEST = 64
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size), again[2 * LONGEST + 1];
	unsigned char bytes[LONGEST];
	size_t n = strlen(text) / 2;

	if (n <= LONGEST && takt_hex_decode(text, bytes, n) == 0) {
		takt_hex_encode(bytes, n, again);
		fuzz_expect(strcasecmp(text, again) == 0);
	}
	free(text);
	return 0;
}
