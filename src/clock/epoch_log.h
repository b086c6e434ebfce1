/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a governor was told and what it wished, as text: a head with the setup, then a line a step.
 * From it the steps can be made again: to see that the same inputs still lead to the same wishes,
 * and to go on with the state they led to in another process.
 *
 *	takt-epochs 1
 *	governor NAME STATE_VERSION SEED
 *	job PROMISE PERMILLE LATENCY US PERMILLE NAME
 *	board CAN BASE MHZ MIN MAX DEFAULT STEP
 *	clocks MHZ ...
 *	params NAME=N ...	where the governor was given any
 *	step  numbers of an observation, then of a wish, in the order of their structs
 *
 * All numbers are decimal; those with a fraction are the bits of a double, so that nothing is lost.
 * A last line without its end was being written when its writer died, and does not count.
 */
#ifndef TAKT_CLOCK_EPOCH_LOG_H
#define TAKT_CLOCK_EPOCH_LOG_H

#include "base/err.h"
#include "base/str.h"
#include "clock/governor_choice.h"

enum {
	TAKT_EPOCH_LOG_MAX_BYTES = 8 * 1024 * 1024,
	TAKT_EPOCH_LOG_MAX_STEPS = 8192,
	TAKT_EPOCH_LOG_NAME = 80,
};

/* Appends; 0 or the sticky failure of `out`. Profiles are not kept: a setup with one is -EINVAL, as
 * is one with more than TAKT_POLICY_MAX_PARAMS parameters. */
int takt_epoch_log_head(const struct takt_governor *governor,
			const struct takt_governor_setup *setup, struct takt_str *out);
int takt_epoch_log_step(const struct takt_governor_observation *seen,
			const struct takt_governor_wish *wish, struct takt_str *out);

/* A log's steps made again. Not to be moved in memory: the setup points into it. */
struct takt_epoch_replay {
	const struct takt_governor *governor;
	struct takt_governor_setup setup;
	uint32_t sm_mhz[TAKT_GOVERNOR_MAX_CLOCKS];
	char name[TAKT_EPOCH_LOG_NAME];
	struct takt_policy_text said; /* the parameters */
	struct takt_governor_param params[TAKT_POLICY_MAX_PARAMS];
	uint32_t state_version;		/* that it was written with */
	void *state;			/* owned; of governor->state_bytes */
	struct takt_governor_wish wish; /* of the last step, as made again */
	uint64_t last_ns;		/* when that was */
	uint32_t steps, differing;	/* wishes that are not as written */
	uint32_t first_differing;	/* step, from 1; 0 = none */
	size_t whole_bytes;		/* of the log, without a torn end */
};

/* By the governors of `all`. `each` (may be NULL) sees every step with the wish as made again.
 * -TAKT_E_CORRUPT names the line,
 * -TAKT_E_NOT_FOUND a governor that is not there, -ENOMEM. *ret is the caller's to fini on success.
 */
int takt_epoch_replay(const struct takt_governors *all, const char *text, size_t len,
		      void (*each)(void *ctx, const struct takt_epoch_replay *at,
				   const struct takt_governor_observation *seen),
		      void *ctx, struct takt_epoch_replay *ret, struct takt_err *err);
void takt_epoch_replay_fini(struct takt_epoch_replay *replay);

#endif
