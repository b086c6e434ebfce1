/* SPDX-License-Identifier: Apache-2.0 */
/* Input taken for numbers, one after the other, by targets that play a peer: zeros once it is over.
 */
#ifndef TAKT_FUZZ_BYTES_H
#define TAKT_FUZZ_BYTES_H

#include "fuzz_input.h"

struct fuzz_bytes {
	const uint8_t *at; /* borrowed */
	size_t left;
};

static inline void fuzz_take(struct fuzz_bytes *in, void *ret, size_t n)
{
	size_t there = n < in->left ? n : in->left;

	memset(ret, 0, n);
	if (there)
		memcpy(ret, in->at, there);
	in->at += there;
	in->left -= there;
}

static inline uint8_t fuzz_u8(struct fuzz_bytes *in)
{
	uint8_t value;

	fuzz_take(in, &value, sizeof(value));
	return value;
}

static inline uint16_t fuzz_u16(struct fuzz_bytes *in)
{
	uint16_t low = fuzz_u8(in);

	return (uint16_t)(low | fuzz_u8(in) << 8);
}

#endif
