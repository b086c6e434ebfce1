/* SPDX-License-Identifier: Apache-2.0 */
/* How long something took, counted in bins from 10 us to 1 s: what a histogram of Prometheus is
 * made of. Nothing is allocated. */
#ifndef TAKT_BASE_LATENCY_BINS_H
#define TAKT_BASE_LATENCY_BINS_H

#include <stdint.h>

enum {
	TAKT_LATENCY_BOUNDS = 16,
	TAKT_LATENCY_BINS = TAKT_LATENCY_BOUNDS + 1, /* the last is for what is beyond them */
};

struct takt_latency_bins {
	uint64_t bin[TAKT_LATENCY_BINS];
	uint64_t count, sum_ns;
};

/* The longest that still belongs to the bin; UINT64_MAX for the last. */
uint64_t takt_latency_bound_ns(uint32_t bin);
void takt_latency_add(struct takt_latency_bins *bins, uint64_t ns);
/* A bound below or at which that many thousandths of them are; 0 of none, UINT64_MAX beyond 1 s. */
uint64_t takt_latency_below_ns(const struct takt_latency_bins *bins, uint32_t permille);

#endif
