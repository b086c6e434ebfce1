/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the rules share. */
#ifndef TAKT_RULES_RULES_IMPL_H
#define TAKT_RULES_RULES_IMPL_H

#include "rules/rules.h"

/* Between BAD and GOOD lies what neither raises a finding nor ends one. */
enum takt_rules_look {
	TAKT_LOOK_GOOD,
	TAKT_LOOK_BETWEEN,
	TAKT_LOOK_BAD
};

/*
 * rules.c: now, on a clock that stands while nobody asks the GPU for readings (it sleeps): what
 * must look bad or good for so long is measured by it, counters of errors are in real time. It
 * stands, and nothing begins anew: a GPU that is awake for less than the time of a rule whenever it
 * is used would otherwise never have a finding, nor ever be rid of one.
 */
struct takt_mono takt_rules_awake(const struct takt_rules_gpu *gpu);

/* befell.c: it is gone from now on, if it was not; xid: by which that was heard, 0 = by none. */
void takt_rules_gone(struct takt_rules_gpu *gpu, uint32_t xid);

/* standing.c: one kind looks so now; found and over in the time that the kind's rule gives. */
void takt_standing_see(struct takt_rules_gpu *gpu, enum takt_finding_kind kind,
		       enum takt_rules_look look, int64_t value, int64_t limit);

/* rules_sample.c: all that one sample of a GPU that is there says. */
void takt_rules_check(struct takt_rules_gpu *gpu, const struct takt_rules_sample *sample,
		      uint64_t elapsed_ns);

#endif
