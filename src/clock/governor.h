/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The governors that takt has, and what they share. The seam itself, one call an epoch, is
 * <takt/clock_governor.h>: governors from shared objects and takt's own are the same to a caller.
 *
 * One governor a file, governor_NAME.c, which says at its top what it does and whose idea it is.
 */
#ifndef TAKT_CLOCK_GOVERNOR_H
#define TAKT_CLOCK_GOVERNOR_H

#include <takt/clock_governor.h>

#include "base/err.h"

extern const struct takt_governor takt_governor_assured;
extern const struct takt_governor takt_governor_observe;
extern const struct takt_governor takt_governor_fixed;
extern const struct takt_governor takt_governor_performance;
extern const struct takt_governor takt_governor_utilisation;
extern const struct takt_governor takt_governor_ladder;
extern const struct takt_governor takt_governor_memory_bound;
extern const struct takt_governor takt_governor_idle_drop;
extern const struct takt_governor takt_governor_geepafs;
extern const struct takt_governor takt_governor_zeus_cost;
extern const struct takt_governor takt_governor_power_budget;
extern const struct takt_governor takt_governor_qlearning;
extern const struct takt_governor takt_governor_slo;
extern const struct takt_governor takt_governor_forecast;

/* All of them, ends in NULL; and one by name, NULL when there is none. */
extern const struct takt_governor *const takt_governor_all[];
const struct takt_governor *takt_governor_find(const char *name);

/* Checks what was handed over from outside takt: ABI, name, functions. -EINVAL says what. */
int takt_governor_check(const struct takt_governor *governor, struct takt_err *err);

/*
 * Begins: checks the setup (clocks ascending, limits in order, parameters known to the governor and
 * in range)
 * and initialises `state`, of governor->state_bytes. -EINVAL, -TAKT_E_USAGE for a parameter.
 */
int takt_governor_init(const struct takt_governor *governor, void *state,
		       const struct takt_governor_setup *setup, struct takt_err *err);

/* One epoch; *ret is overwritten. Whatever the governor says, the wish is one that the board
 * could be asked: no actuator that it lacks, no range upside down. */
void takt_governor_step(const struct takt_governor *governor, void *state,
			const struct takt_governor_setup *setup,
			const struct takt_governor_observation *seen,
			struct takt_governor_wish *ret);

/* Sentence with figures of the last wish, or the reason's own. */
void takt_governor_explain(const struct takt_governor *governor, const void *state,
			   const struct takt_governor_setup *setup,
			   const struct takt_governor_wish *wish, char *text, size_t text_size);

/* "budget_spent", and its sentence. Static text. */
const char *takt_governor_reason_name(enum takt_governor_reason reason);
const char *takt_governor_reason_text(enum takt_governor_reason reason);

/* Whether the governor has a parameter of that name. */
bool takt_governor_takes(const struct takt_governor *governor, const char *param);
/* -TAKT_E_USAGE: the governor has no such parameter; or, of takt's own, it may not be that. */
int takt_governor_check_param(const struct takt_governor *governor,
			      const struct takt_governor_param *param, struct takt_err *err);
/* governor_ranges.c: the second half of it. */
int takt_governor_check_range(const struct takt_governor *governor,
			      const struct takt_governor_param *param, struct takt_err *err);
/* Value of a parameter, or `absent`. */
int64_t takt_governor_param(const struct takt_governor_setup *setup, const char *name,
			    int64_t absent);

/* The board's highest settable clock; 0 without a list. */
uint32_t takt_governor_max_mhz(const struct takt_governor_setup *setup);
/* Wishes for a range from the lowest clock to the highest settable one that is not above `mhz`. */
void takt_governor_ask_mhz(const struct takt_governor_setup *setup, uint32_t mhz,
			   enum takt_governor_reason reason, struct takt_governor_wish *ret);

#endif
