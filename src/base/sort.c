/* SPDX-License-Identifier: Apache-2.0 */
/* Bottom-up merge sort over runs that insertion sort has prepared. */
#include "base/sort.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/mem.h"

enum {
	RUN = 8
};

struct job {
	size_t n, size;
	takt_sort_fn *compare;
	void *ctx;
};

/* One run of n elements; `spare` holds the element that is moving. */
static void sort_run(const struct job *job, unsigned char *run, size_t n, unsigned char *spare)
{
	for (size_t i = 1; i < n; i++) {
		size_t j = i;

		memcpy(spare, run + i * job->size, job->size);
		while (j > 0 && job->compare(run + (j - 1) * job->size, spare, job->ctx) > 0)
			j--;
		memmove(run + (j + 1) * job->size, run + j * job->size, (i - j) * job->size);
		memcpy(run + j * job->size, spare, job->size);
	}
}

/* Merges [lo, mid) and [mid, hi) of `from` into `to`; the left one wins a tie. */
static void merge(const struct job *job, const unsigned char *from, unsigned char *to, size_t lo,
		  size_t mid, size_t hi)
{
	size_t left = lo, right = mid, size = job->size;

	for (size_t out = lo; out < hi; out++) {
		if (left < mid && (right == hi || job->compare(from + left * size,
							       from + right * size, job->ctx) <= 0))
			memcpy(to + out * size, from + left++ * size, size);
		else
			memcpy(to + out * size, from + right++ * size, size);
	}
}

static size_t at_most(size_t value, size_t limit)
{
	return value < limit ? value : limit;
}

void takt_sort_with(void *base, size_t n, size_t size, void *scratch, takt_sort_fn *compare,
		    void *ctx)
{
	struct job job = {n, size, compare, ctx};
	unsigned char *from = base, *to = scratch, *swap;

	for (size_t lo = 0; lo < n; lo += RUN)
		sort_run(&job, from + lo * size, at_most(RUN, n - lo), scratch);
	for (size_t width = RUN; width < n; width *= 2) {
		for (size_t lo = 0; lo < n; lo += 2 * width)
			merge(&job, from, to, lo, at_most(lo + width, n),
			      at_most(lo + 2 * width, n));
		swap = from;
		from = to;
		to = swap;
	}
	if (from != base)
		memcpy(base, from, n * size);
}

int takt_sort(void *base, size_t n, size_t size, takt_sort_fn *compare, void *ctx)
{
	void *scratch;

	if (n < 2)
		return 0;
	scratch = takt_reallocarray(NULL, n, size);
	if (!scratch)
		return -ENOMEM;
	takt_sort_with(base, n, size, scratch, compare, ctx);
	takt_free(scratch);
	return 0;
}
