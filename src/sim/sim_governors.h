/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of governors as a command line names them, with their parameters. */
#ifndef TAKT_SIM_GOVERNORS_H
#define TAKT_SIM_GOVERNORS_H

#include "base/str.h"
#include "objects/governor_object.h"
#include "sim/clock_score.h"

struct takt_sim_governors {
	struct takt_score_governor at[TAKT_SCORE_MAX_GOVERNORS];
	struct takt_governor_param params[TAKT_SCORE_MAX_GOVERNORS][TAKT_GOVERNOR_MAX_PARAMS];
	struct takt_governor_object *objects[TAKT_SCORE_MAX_GOVERNORS]; /* NULL: takt's own */
	const struct takt_governor
		*more[TAKT_SCORE_MAX_GOVERNORS + 1]; /* of objects; ends in NULL */
	size_t more_count;
	size_t count;
};

/* "assured,./mine.so". -TAKT_E_USAGE names what is unknown or there twice. Zero *ret before. */
int takt_sim_governors(const char *list, struct takt_sim_governors *ret, struct takt_err *err);
void takt_sim_governors_fini(struct takt_sim_governors *governors);

/* "NAME" goes to all that take it, "GOVERNOR.NAME" to one; to none is -TAKT_E_USAGE. The name is
 * borrowed. Not to be moved in memory afterwards. */
int takt_sim_governors_param(struct takt_sim_governors *governors, const char *name, int64_t value,
			     struct takt_err *err);

/* "qlearning,mine": their states go through other workloads first. Names as in the list, an
 * object's by the governor's own; -TAKT_E_USAGE for one that is not in it. */
int takt_sim_governors_train(struct takt_sim_governors *governors, const char *list,
			     struct takt_err *err);

/* A line each, with its parameters. */
void takt_sim_governors_text(struct takt_str *out);

#endif
