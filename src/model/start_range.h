/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The range in which a predicted start will lie eight times in ten, from how earlier ones came
 * true. Pure.
 *
 * What is learned of each is its ratio, the wait that came over the wait that was foretold, among
 * those of a wait of about that length. Nothing is assumed of how ratios are distributed: the range
 * goes from one rank of the last ones to another (split conformal prediction), and the ranks
 * themselves follow how often ranges that were told were missed lately (adaptive conformal
 * inference, Gibbs and Candes 2021), since what people run changes. The instant that the plan names
 * is always inside.
 *
 * A range that is wider than the wait itself says nothing that one could plan by: there is none.
 */
#ifndef TAKT_MODEL_START_RANGE_H
#define TAKT_MODEL_START_RANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

enum {
	TAKT_START_RANGE_KINDS = 8,  /* of waits, by their length */
	TAKT_START_RANGE_KEPT = 128, /* ratios of each */
};

/* Zero it before use. */
struct takt_start_ranges {
	struct takt_start_range {
		uint32_t permille[TAKT_START_RANGE_KEPT]; /* of the wait that was foretold */
		uint32_t learned;			  /* so many so far */
		int32_t less; /* permille of the ratios, that are left outside less than at first */
	} kinds[TAKT_START_RANGE_KINDS];
};

/* What was foretold foretold_ns ahead came after waited_ns. Returns the number of the kind that
 * has learned it. */
uint32_t takt_start_range_learn(struct takt_start_ranges *ranges, uint64_t foretold_ns,
				uint64_t waited_ns);

enum takt_start_range_word {
	TAKT_START_RANGE_UNTRIED, /* too few have come true to say how well */
	TAKT_START_RANGE_WIDE,	  /* wider than the wait itself */
	TAKT_START_RANGE_KNOWN,
};
/* How long after now, at least and at most, what is foretold foretold_ns ahead will come. */
enum takt_start_range_word takt_start_range(const struct takt_start_ranges *ranges,
					    uint64_t foretold_ns, uint64_t *ret_low_ns,
					    uint64_t *ret_high_ns);

/* What a kind has learned, in words that the other one reads: "1 LEARNED LESS RATIO...". */
void takt_start_range_write(const struct takt_start_range *kind, struct takt_str *ret);
/* False: the text is none of these, and *ret is as it was. */
bool takt_start_range_read(const char *text, struct takt_start_range *ret);

#endif
