/* SPDX-License-Identifier: Apache-2.0 */
/* Four bits a step: a table of 16 words is fast enough for records of a page. */
#include "base/checksum.h"

static const uint32_t table[16] = {
	0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
	0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
	0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
};

uint32_t takt_crc32c_more(uint32_t crc, const void *bytes, size_t n)
{
	const unsigned char *byte = bytes;

	crc = ~crc;
	for (size_t i = 0; i < n; i++) {
		crc ^= byte[i];
		crc = crc >> 4 ^ table[crc & 15];
		crc = crc >> 4 ^ table[crc & 15];
	}
	return ~crc;
}

uint32_t takt_crc32c(const void *bytes, size_t n)
{
	return takt_crc32c_more(0, bytes, n);
}
