/* SPDX-License-Identifier: Apache-2.0 */
/* What targets share: the entry that libFuzzer calls, and input as text. */
#ifndef TAKT_FUZZ_INPUT_H
#define TAKT_FUZZ_INPUT_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Returns 0; aborts when the parser broke a promise. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The input with a NUL behind it, in memory of exactly that size; the caller frees it. */
static inline char *fuzz_text(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	if (!text)
		abort();
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	return text;
}

static inline void fuzz_expect(int promise_kept)
{
	if (!promise_kept)
		abort();
}

#endif
