/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Policies by the names that people give: takt's own, the published ones, and shared objects.
 *
 * A list reads NAME,NAME,./FILE.so; the order is kept, a name that is there twice is refused.
 */
#ifndef TAKT_SIM_POLICIES_H
#define TAKT_SIM_POLICIES_H

#include <stddef.h>

#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"
#include "sched/place.h"
#include "sim/policy_object.h"

enum {
	TAKT_SIM_MAX_POLICIES = 64,
	TAKT_SIM_POLICY_NAME = 64,
	TAKT_SIM_POLICY_PATH = 1024,
	TAKT_SIM_MAX_PARAMS = 32,
};

struct takt_sim_placement {
	char name[TAKT_SIM_POLICY_NAME];
	const struct takt_placement *placement; /* borrowed from the program or the object */
	struct takt_policy_object *object;	/* owned; NULL for one of takt's */
};

struct takt_sim_placements {
	TAKT_VEC(struct takt_sim_placement) at;
};

/* *ret is overwritten; untouched on failure, whose message lists what there is. */
int takt_sim_placements(const char *list, struct takt_sim_placements *ret, struct takt_err *err);
void takt_sim_placements_fini(struct takt_sim_placements *placements);

/* Of parameters that may be meant for one policy ("takt.keep"), those that this one gets: its own
 * without its name, and those that name none. ret has room for count; returns how many. */
size_t takt_sim_params_for(const char *policy, const struct takt_place_param *params, size_t count,
			   struct takt_place_param *ret);

/* "fgd          fragmentation gradient descent\n...", for help. */
void takt_sim_placements_text(struct takt_str *out);

#endif
