/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 as RFC 3629 has it: shortest forms only, no surrogates, nothing beyond U+10FFFF. */
#include <string.h>

#include "codec/json.h"

static bool continues(const unsigned char *at, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if ((at[i] & 0xc0) != 0x80)
			return false;
	return true;
}

size_t takt_utf8_length(const char *text, size_t len)
{
	const unsigned char *at = (const unsigned char *)text;
	size_t n;

	if (len == 0)
		return 0;
	if (at[0] < 0x80)
		return 1;
	n = at[0] >= 0xf0 ? 4 : at[0] >= 0xe0 ? 3 : 2;
	if (at[0] < 0xc2 || at[0] > 0xf4 || n > len || !continues(at, n))
		return 0;
	if ((at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] > 0x9f) ||
	    (at[0] == 0xf0 && at[1] < 0x90) || (at[0] == 0xf4 && at[1] > 0x8f))
		return 0;
	return n;
}

bool takt_utf8_valid(const char *text)
{
	size_t len = strlen(text), n;

	for (; len > 0; text += n, len -= n) {
		n = takt_utf8_length(text, len);
		if (n == 0)
			return false;
	}
	return true;
}
