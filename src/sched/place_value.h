/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is left of an accelerator, valued by what is expected to arrive.
 *
 * Of `left` milli some part will never be used: no combination of the requests that arrive fills
 * it exactly. How much is learnt from the workload by dynamic programming over `left`, from small
 * to large. A request of s milli that fits leaves left - s, whose waste is known already; it will
 * be one of those that leave little waste, the more probably the more often it arrives:
 *
 *	waste(left) = sum over s <= left of P(s) * waste(left - s), or left where nothing fits
 *	P(s) proportional to frequency(s) * 2^(-(waste(left - s) - best) / H)
 *
 * where `best` is the least waste of any of them and H = TAKT_VALUE_HALF_LIFE milli. H -> 0 would
 *be a packer who waits for ever for the perfect fit, H -> infinity a device that takes whatever
 *comes first; neither is what happens in a cluster. The CPU that will be used beside is the
 *expectation under the same probabilities.
 *
 * 2^-x is taken as 2^-floor(x) * (1 - frac(x) / 2): straight lines between the powers, whole
 * numbers throughout.
 */
#ifndef TAKT_SCHED_PLACE_VALUE_H
#define TAKT_SCHED_PLACE_VALUE_H

#include "sched/place.h"

enum {
	TAKT_VALUE_ONE = 16,	   /* waste is counted in sixteenths of a milli */
	TAKT_VALUE_HALF_LIFE = 20, /* milli */
};

/* Of `left` milli of an accelerator. */
struct takt_place_value {
	int32_t waste;	   /* expected to stay unused, in 1 / TAKT_VALUE_ONE milli */
	int32_t cpu_milli; /* expected to be used beside it */
};

struct takt_place_values {
	struct takt_place_value at[TAKT_REQUEST_WHOLE + 1];
};

/* Without requests for one accelerator, all that is left of a used one is waste, a whole one none.
 * Requests that say their fraction by memory are not counted: it depends on the accelerator. */
void takt_place_values(const struct takt_workload *workload, struct takt_place_values *ret);

/* Weights are shifted right by so much, that together they are about 2^20 at most. */
unsigned int takt_workload_shift(const struct takt_workload *workload);

/* A shifted weight; who arrives at all keeps some. */
static inline uint64_t takt_workload_weight(const struct takt_workload_item *item,
					    unsigned int shift)
{
	return item->weight >> shift ? item->weight >> shift : item->weight > 0;
}

#endif
