/* SPDX-License-Identifier: Apache-2.0 */
/* Hexadecimal text. */
#include "base/hex.h"

#include <errno.h>
#include <string.h>

static const char digits[] = "0123456789abcdef";

void takt_hex_encode(const void *bytes, size_t n, char *ret)
{
	const unsigned char *byte = bytes;

	for (size_t i = 0; i < n; i++) {
		*ret++ = digits[byte[i] >> 4];
		*ret++ = digits[byte[i] & 15];
	}
	*ret = '\0';
}

static int digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

int takt_hex_decode(const char *text, void *ret, size_t n)
{
	unsigned char *out = ret;

	if (strlen(text) != 2 * n)
		return -EINVAL;
	for (size_t i = 0; i < 2 * n; i++)
		if (digit_value(text[i]) < 0)
			return -EINVAL;
	for (size_t i = 0; i < n; i++)
		out[i] = (unsigned char)(digit_value(text[2 * i]) << 4 |
					 digit_value(text[2 * i + 1]));
	return 0;
}

void takt_uuid_format(const uint8_t random[16], char ret[37])
{
	uint8_t bytes[16];

	memcpy(bytes, random, sizeof(bytes));
	bytes[6] = (uint8_t)((bytes[6] & 0x0f) | 0x40);
	bytes[8] = (uint8_t)((bytes[8] & 0x3f) | 0x80);
	for (size_t i = 0; i < sizeof(bytes); i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			*ret++ = '-';
		takt_hex_encode(&bytes[i], 1, ret);
		ret += 2;
	}
}
