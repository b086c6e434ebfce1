/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a GPU is cut into MIG instances, as a line of text: parts with commas between them, or "none"
 * for a GPU that is not cut.
 *
 *	3g.40gb,3g.40gb		two of a kind, where the driver likes, each used as a whole
 *	9:0,9:4			the same by the driver's number of the profile, at these slices
 *	9:0/0/0/0		and divided into three compute instances of profile 0
 *	9:0/			with no compute instance at all
 */
#ifndef TAKT_BASE_MIG_LAYOUT_H
#define TAKT_BASE_MIG_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum {
	TAKT_MIG_MAX_PARTS = 8,
	TAKT_MIG_MAX_COMPUTE = 8, /* of a part */
	TAKT_MIG_TEXT = 80,	  /* with the end; seven parts as the driver numbers them fit */
	TAKT_MIG_NAME = 24,
};

struct takt_mig_part {
	char name[TAKT_MIG_NAME];		/* "3g.40gb"; "" = id says it */
	uint32_t id;				/* the driver's number of the profile */
	int32_t start;				/* slice; -1 = where the driver likes */
	int32_t compute_count;			/* -1 = one that has all of it */
	uint32_t compute[TAKT_MIG_MAX_COMPUTE]; /* numbers of profiles, by their place */
};

struct takt_mig_layout {
	uint32_t count;
	struct takt_mig_part parts[TAKT_MIG_MAX_PARTS];
};

/* -EINVAL says what is wrong with it; *ret is then untouched. */
int takt_mig_layout_parse(const char *text, struct takt_mig_layout *ret, struct takt_err *err);

/* Returns buf, or NULL when the text does not fit. */
const char *takt_mig_layout_text(const struct takt_mig_layout *layout, char buf[TAKT_MIG_TEXT]);

#endif
