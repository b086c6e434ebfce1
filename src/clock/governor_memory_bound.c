/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory-bound: lowers the clock of jobs that wait for memory, and of no others.
 *
 * With r the clock as a share of the highest, a job's time is about 1 + a (1/r - 1): a is 1 where
 * all of it is computing and 0 where all of it is waiting. Memory-bound means a < 0.15. How busy
 * memory is does not tell that: of measured jobs with memory busier than half, more than half
 * become slower than 5 % at a lower clock. So it is a sieve only (less than 40 %: nothing is
 * tried), and the rest is measured.
 *
 * The highest clock is measured first, then the setting at 85 % of it, then always the one half way
 * between the lowest that passed and the highest that failed (at first: half of the highest). One
 * passes when the slowdown there, with one standard error on top, is within what is allowed; it
 * fails when that is beyond by two, or says by as much that a >= 0.15; after `most` epochs the mean
 * decides, with one standard error off where twice as much as is allowed was promised. When nothing
 * is left between, the lowest that passed is held. After `again` epochs, or when what is held turns
 * out to be too slow, it begins anew with all that it has measured so far, so that the answer gets
 * better; when memory is another fifth more or less busy, it begins from nothing.
 *
 * Allowed is 1 % (`slack_permille`), or what was promised where that is less: this governor is for
 * energy at no slowdown.
 *
 *	slack_permille	(10)
 *	least, most	epochs at a setting (4, 24); the highest four times least at first
 *	again		epochs (100; n times that when nothing passed n times in a row)
 */
#include <string.h>

#include "clock/levels.h"
#include "clock/tally.h"

enum {
	STEPS = 11,
	FLOOR_PERMILLE = 500,
	SIEVE_PERMILLE = 400,
	CHANGE_PERMILLE = 200,
	REMEMBERED_EPOCHS = 200,
};

#define BOUND	    0.15 /* of a */
#define FIRST_SHARE 0.85 /* of the highest setting: what is tried first */

struct memory_bound {
	struct takt_levels levels;
	struct takt_tally tally[TAKT_LEVELS_MAX];
	uint32_t at, here;	 /* here: epochs measured at this setting this time */
	uint32_t passed, failed; /* lowest that passed; levels up to the highest that failed */
	uint32_t resting;	 /* has found its setting */
	uint32_t refused;	 /* times in a row that nothing below the highest passed */
	uint32_t since;		 /* epochs of rest */
	uint32_t dram_permille, dram_known; /* since it rests; not every epoch tells it */
};

static void begin_anew(struct memory_bound *own)
{
	own->at = own->passed = takt_levels_top(&own->levels);
	own->failed = 0;
	own->here = own->resting = own->since = 0;
}

static void forget(struct memory_bound *own)
{
	for (uint32_t i = 0; i < own->levels.count; i++)
		own->tally[i] = (struct takt_tally){0};
	own->refused = 0;
	begin_anew(own);
}

static int init(void *state, const struct takt_governor_setup *setup, char *message,
		size_t message_size)
{
	struct memory_bound *own = state;

	(void)message;
	(void)message_size;
	memset(own, 0, sizeof(*own));
	takt_levels_make(&setup->board, FLOOR_PERMILLE, STEPS, &own->levels);
	begin_anew(own);
	return 0;
}

static void rest_at(struct memory_bound *own, uint32_t level)
{
	own->at = level;
	own->refused = level < takt_levels_top(&own->levels) ? 0 : own->refused + 1;
	own->resting = 1;
	own->since = own->dram_known = 0;
}

static double allowed(const struct takt_governor_setup *setup)
{
	int64_t slack = takt_governor_param(setup, "slack_permille", 10);

	if (setup->job.has_promise && setup->job.max_slowdown_permille < slack)
		slack = setup->job.max_slowdown_permille;
	return (double)slack / 1000;
}

/* x is beyond the limit by so many standard errors, compared squared. */
static bool surely_above(double x, double limit, double sigmas, double variance)
{
	return x > limit && (x - limit) * (x - limit) > sigmas * sigmas * variance;
}

static const struct takt_tally *reference(const struct memory_bound *own)
{
	return &own->tally[takt_levels_top(&own->levels)];
}

/* Standard errors in favour of a setting that was measured long enough: where more was promised
 * than is allowed here, a wrong one breaks nothing until it is noticed. */
static double doubt(const struct takt_governor_setup *setup)
{
	return setup->job.max_slowdown_permille >= 2000 * allowed(setup) ? 1 : 0;
}

/* Whether the setting passes: 1, 0, or -1 when more must be measured. */
static int judge(const struct memory_bound *own, const struct takt_governor_setup *setup)
{
	const struct takt_tally *here = &own->tally[own->at], *top = reference(own);
	double slow = takt_tally_slowdown(here, top);
	double variance = takt_tally_variance(here) + takt_tally_variance(top);
	double bound = BOUND * (1 / takt_levels_share(&own->levels, own->at) - 1);

	if (surely_above(slow, allowed(setup), 2, variance) ||
	    surely_above(slow, bound, 2, variance))
		return 0;
	if (surely_above(-slow, -allowed(setup), 1, variance))
		return 1;
	if (here->epochs < takt_governor_param(setup, "most", 24))
		return -1;
	return !surely_above(slow, allowed(setup), doubt(setup), variance);
}

/* The next setting to try; the lowest that passed when there is none. */
static uint32_t next_level(const struct memory_bound *own)
{
	uint32_t level = (own->passed + own->failed) / 2;

	if (own->passed == takt_levels_top(&own->levels) && own->failed == 0)
		while (level < own->passed && takt_levels_share(&own->levels, level) < FIRST_SHARE)
			level++;
	return level;
}

static void narrow(struct memory_bound *own, const struct takt_governor_setup *setup)
{
	uint32_t top = takt_levels_top(&own->levels);
	int passed = own->at == top ? 1 : judge(own, setup);

	if (passed < 0)
		return;
	if (passed)
		own->passed = own->at;
	else
		own->failed = own->at + 1;
	own->here = 0;
	own->at = next_level(own);
	if (own->at >= own->passed)
		rest_at(own, own->passed);
}

/* The highest clock is measured for longer the first time, as everything is compared with it. */
static bool has_measured(const struct memory_bound *own, const struct takt_governor_setup *setup)
{
	int64_t least = takt_governor_param(setup, "least", 4);
	bool top = own->at == takt_levels_top(&own->levels);

	return own->here >= least && (!top || reference(own)->epochs >= 4 * least);
}

static bool memory_changed(struct memory_bound *own, const struct takt_governor_observation *seen)
{
	int64_t off;

	if (!(seen->has & TAKT_OBSERVED_DRAM))
		return false;
	if (!own->dram_known) {
		own->dram_known = 1;
		own->dram_permille = seen->dram_active_permille;
	}
	off = (int64_t)seen->dram_active_permille - own->dram_permille;
	return off > CHANGE_PERMILLE || off < -CHANGE_PERMILLE;
}

static void measure(struct memory_bound *own, const struct takt_governor_observation *seen)
{
	struct takt_tally *tally = &own->tally[own->at];

	if (tally->epochs >= REMEMBERED_EPOCHS)
		takt_tally_halve(tally);
	takt_tally_add(tally, seen);
	own->here++;
}

/* A job that is not memory-bound is asked again less often: it is slow each time. */
static int64_t rest_epochs(const struct memory_bound *own, const struct takt_governor_setup *setup)
{
	int64_t again = takt_governor_param(setup, "again", 100);

	return again * (own->refused > 1 ? own->refused : 1);
}

/* What is held turns out to be too slow, as it goes on being measured. */
static bool held_is_slow(const struct memory_bound *own, const struct takt_governor_setup *setup)
{
	const struct takt_tally *here = &own->tally[own->at], *top = reference(own);
	double variance = takt_tally_variance(here) + takt_tally_variance(top);

	return here != top &&
	       surely_above(takt_tally_slowdown(here, top), allowed(setup), 1, variance);
}

static void observe(struct memory_bound *own, const struct takt_governor_setup *setup,
		    const struct takt_governor_observation *seen)
{
	bool usable = takt_levels_in_force(&own->levels, &seen->cap) == own->at &&
		      takt_tally_usable(seen);

	if (usable)
		measure(own, seen);
	if (!own->resting) {
		if (usable && has_measured(own, setup))
			narrow(own, setup);
		return;
	}
	own->since++;
	if (memory_changed(own, seen))
		forget(own);
	else if (own->since >= rest_epochs(own, setup) || held_is_slow(own, setup))
		begin_anew(own);
}

static bool cannot_be(const struct takt_governor_observation *seen)
{
	return (seen->has & TAKT_OBSERVED_DRAM) && seen->dram_active_permille < SIEVE_PERMILLE;
}

static enum takt_governor_reason reason_of(const struct memory_bound *own)
{
	if (!own->resting)
		return own->at == takt_levels_top(&own->levels) ? TAKT_REASON_REFERENCE
								: TAKT_REASON_PROBE;
	return own->at == takt_levels_top(&own->levels) ? TAKT_REASON_MAXIMUM
							: TAKT_REASON_MEMORY_BOUND;
}

static void step(void *state, const struct takt_governor_setup *setup,
		 const struct takt_governor_observation *seen, struct takt_governor_wish *ret)
{
	struct memory_bound *own = state;

	if (takt_levels_stand_back(seen, ret))
		return;
	if (cannot_be(seen) || (seen->has && !(seen->has & TAKT_OBSERVED_WORK))) {
		forget(own);
		takt_levels_ask(&own->levels, own->at,
				cannot_be(seen) ? TAKT_REASON_MAXIMUM : TAKT_REASON_NO_SIGNAL, ret);
		return;
	}
	if (seen->has)
		observe(own, setup, seen);
	takt_levels_ask(&own->levels, own->at, reason_of(own), ret);
	ret->probe = !own->resting;
}

const struct takt_governor takt_governor_memory_bound = {
	.abi = TAKT_GOVERNOR_ABI,
	.name = "memory-bound",
	.summary = "lower clocks for jobs that wait for memory, at no slowdown; no others",
	.params = "slack_permille least most again",
	.state_bytes = sizeof(struct memory_bound),
	.state_version = 2,
	.init = init,
	.step = step,
};
