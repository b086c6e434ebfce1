/* SPDX-License-Identifier: Apache-2.0 */
/* Governors by name, with the parameters that a person gave them. */
#ifndef TAKT_CLOCK_GOVERNOR_CHOICE_H
#define TAKT_CLOCK_GOVERNOR_CHOICE_H

#include "base/policy_text.h"
#include "base/str.h"
#include "clock/governor.h"

/* takt's own, and more; borrowed. A NULL of this type stands for takt's own. */
struct takt_governors {
	const struct takt_governor *const *more; /* ends in NULL */
};

/* NULL when there is none of that name. */
const struct takt_governor *takt_governors_find(const struct takt_governors *all, const char *name);
/* "own, observe, assured, ...": those that no page lists go first. */
void takt_governors_names(const struct takt_governors *all, struct takt_str *out);

/*
 * Reads "ladder" or "fixed:sm_mhz=1200". -TAKT_E_USAGE names what would be accepted: it is of
 * another form, there is no such governor, it has no such parameter, one is out of range or stands
 * twice. Whether the governor can begin with them is its own to say, see takt_governor_init.
 */
int takt_governors_choose(const struct takt_governors *all, const char *text,
			  const struct takt_governor **ret, struct takt_policy_text *ret_said,
			  struct takt_err *err);

/* Parameters as a setup has them. Their names are borrowed from `said`, which must stay where it
 * is. */
size_t takt_policy_params(const struct takt_policy_text *said,
			  struct takt_governor_param ret[TAKT_POLICY_MAX_PARAMS]);

#endif
