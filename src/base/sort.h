/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stable merge sort. libc's qsort promises no stability, and equal elements that change places
 * between libraries would make two machines plan differently.
 */
#ifndef TAKT_BASE_SORT_H
#define TAKT_BASE_SORT_H

#include <stddef.h>

/* Negative, zero, positive as a sorts before, with, after b. Must be a consistent weak order. */
typedef int takt_sort_fn(const void *a, const void *b, void *ctx);

/* Sorts n elements of `size` bytes. -ENOMEM leaves them as they were. */
int takt_sort(void *base, size_t n, size_t size, takt_sort_fn *compare, void *ctx);

/* The same without allocating: scratch is the caller's, n * size bytes, contents lost. */
void takt_sort_with(void *base, size_t n, size_t size, void *scratch, takt_sort_fn *compare,
		    void *ctx);

#endif
