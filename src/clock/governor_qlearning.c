/* SPDX-License-Identifier: Apache-2.0 */
/*
 * qlearning: tabular Q-learning (Watkins 1989) with the promise as a fence, not as a reward.
 *
 *	state	the step of 13 between half the highest setting and the highest
 *	action	one step down, stay, one step up
 *	reward	energy saved for a unit of work, as a share of what it was at the highest setting
 *	update	Q(s, a) moves by alpha (reward + gamma max Q(s', .) - Q(s, a))
 *
 * It explores with a chance that falls from 30 % to 2 %, inside the safe set only. A step that was
 * measured is safe while its mean slowdown is within the promise; with fewer than 4 epochs also
 * while it is no more than `sigmas` standard errors beyond. One that was not measured is safe when
 * its upper neighbour is, and the job's time as a line in 1/clock through that neighbour and the
 * highest setting (next to the highest: the line of a job that only computes) says that it keeps
 * the promise, or that a few epochs there would leave the job as a whole within it.
 *
 * Plain Q-learning on measured tables breaks a promise of 5 % in a quarter to three quarters of the
 * first 30 epochs, since to learn that a setting is too slow it has to be there. What is left here
 * is the first epochs at a step that the line was wrong about. Every `reanchor` epochs the highest
 * setting is measured anew and what was found too slow may be tried again. Draws come from the
 * seed: the same run gives the same wishes. A state that goes on to another job keeps its table and
 * measures the highest setting and the others anew.
 *
 * Parameters: `reanchor`, epochs (60); `sigmas_permille` (1000).
 */
#include <string.h>

#include "base/rng.h"
#include "clock/levels.h"
#include "clock/tally.h"

enum {
	STEPS = 13,
	FLOOR_PERMILLE = 500,
	ACTIONS = 3, /* down, stay, up */
	STAY = 1,
	ANCHOR_EPOCHS = 4,
	JUDGED_EPOCHS = 4,  /* at a step, before noise is no excuse any more */
	FORGET_EPOCHS = 32, /* a step's tally is halved when it is that long */
	EXPLORE_PERMILLE = 300,
	EXPLORE_LEAST_PERMILLE = 20,
};

#define ALPHA 0.2
#define GAMMA 0.5

struct qlearning {
	struct takt_levels levels;
	struct takt_tally tally[STEPS];
	double q[STEPS][ACTIONS];
	struct takt_rng rng;
	uint32_t at, from; /* from, action: what led here */
	uint32_t action;
	uint32_t moved; /* whether there is such a thing to learn from */
	uint32_t turns; /* decisions so far */
	uint32_t since; /* epochs since the reference was complete */
	uint32_t anchoring;
	double epochs, spent; /* epochs that were measured, and the sum of their slowdowns */
};

static int init(void *state, const struct takt_governor_setup *setup, char *message,
		size_t message_size)
{
	struct qlearning *own = state;

	(void)message;
	(void)message_size;
	memset(own, 0, sizeof(*own));
	takt_levels_make(&setup->board, FLOOR_PERMILLE, STEPS, &own->levels);
	takt_rng_init(&own->rng, setup->seed);
	own->at = takt_levels_top(&own->levels);
	own->anchoring = 1;
	return 0;
}

/* Another job: what was measured of the one before it says nothing of this one, the table may. */
static void begin_job(struct qlearning *own)
{
	memset(own->tally, 0, sizeof(own->tally));
	own->at = takt_levels_top(&own->levels);
	own->anchoring = 1;
	own->moved = own->since = 0;
	own->epochs = own->spent = 0;
}

static const struct takt_tally *reference(const struct qlearning *own)
{
	return &own->tally[takt_levels_top(&own->levels)];
}

/* Slowdown as a line in 1/share through 0 at the top and what was measured at `known`. */
static double expected_slowdown(const struct qlearning *own, uint32_t known, uint32_t level)
{
	double slow = takt_tally_slowdown(&own->tally[known], reference(own));
	double run = 1 / takt_levels_share(&own->levels, known) - 1;

	/* Next to the top nothing is known yet: the worst that a clock can do. */
	return (run > 0 ? slow / run : 1) * (1 / takt_levels_share(&own->levels, level) - 1);
}

/* Of one epoch; 0 where it is itself what others are compared with. */
static double slowdown_now(const struct qlearning *own,
			   const struct takt_governor_observation *seen)
{
	double rate = seen->work / ((double)seen->epoch_ns / 1e9);

	if (own->at == takt_levels_top(&own->levels))
		return 0;
	return takt_tally_rate(reference(own)) / rate - 1;
}

static double sigmas_of(const struct takt_governor_setup *setup)
{
	return (double)takt_governor_param(setup, "sigmas_permille", 1000) / 1000;
}

/* Too slow: on average over enough epochs, or so much that noise is no explanation. */
static bool measured_safe(const struct qlearning *own, const struct takt_governor_setup *setup,
			  uint32_t level)
{
	double promised = setup->job.max_slowdown_permille / 1000.0, sigmas = sigmas_of(setup);
	double room = promised - takt_tally_slowdown(&own->tally[level], reference(own));
	double variance =
		takt_tally_variance(&own->tally[level]) + takt_tally_variance(reference(own));

	if (room >= 0)
		return true;
	return own->tally[level].epochs > 1 && own->tally[level].epochs < JUDGED_EPOCHS &&
	       room * room < sigmas * sigmas * variance;
}

static bool is_safe(const struct qlearning *own, const struct takt_governor_setup *setup,
		    uint32_t level)
{
	double promised = setup->job.max_slowdown_permille / 1000.0, slow;
	uint32_t top = takt_levels_top(&own->levels);

	if (level == top)
		return true;
	if (own->tally[level].epochs)
		return measured_safe(own, setup, level);
	if (level + 1 != top &&
	    (!own->tally[level + 1].epochs || !measured_safe(own, setup, level + 1)))
		return false;
	slow = expected_slowdown(own, level + 1, level);
	return slow <= promised ||
	       own->spent + slow * JUDGED_EPOCHS <= promised * (own->epochs + JUDGED_EPOCHS);
}

static bool can(const struct qlearning *own, const struct takt_governor_setup *setup,
		uint32_t action)
{
	if (action == STAY)
		return is_safe(own, setup, own->at);
	if (action < STAY)
		return own->at > 0 && is_safe(own, setup, own->at - 1);
	return own->at < takt_levels_top(&own->levels) && is_safe(own, setup, own->at + 1);
}

/* Of the actions that are open here: what was never tried must not look better than it can be. */
static double best_q(const struct qlearning *own, const struct takt_governor_setup *setup)
{
	double best = 0;
	bool found = false;

	for (uint32_t i = 0; i < ACTIONS; i++)
		if (can(own, setup, i) && (!found || own->q[own->at][i] > best)) {
			best = own->q[own->at][i];
			found = true;
		}
	return best;
}

static void learn(struct qlearning *own, const struct takt_governor_setup *setup)
{
	const struct takt_tally *here = &own->tally[own->at], *top = reference(own);
	double cost = takt_tally_power_w(here) / takt_tally_rate(here);
	double most = takt_tally_power_w(top) / takt_tally_rate(top);
	double *q = &own->q[own->from][own->action];

	if (own->moved && most > 0)
		*q += ALPHA * (1 - cost / most + GAMMA * best_q(own, setup) - *q);
}

/* Of the safe actions the best, or any of them when it explores; false when none is safe. */
static bool choose(struct qlearning *own, const struct takt_governor_setup *setup,
		   uint32_t *ret_action)
{
	uint32_t safe[ACTIONS], n = 0, best = 0;
	uint64_t chance = EXPLORE_PERMILLE * 20 / (20 + (uint64_t)own->turns);

	for (uint32_t i = 0; i < ACTIONS; i++)
		if (can(own, setup, i))
			safe[n++] = i;
	if (n == 0)
		return false;
	chance = chance < EXPLORE_LEAST_PERMILLE ? EXPLORE_LEAST_PERMILLE : chance;
	if (takt_rng_below(&own->rng, 1000) < chance) {
		*ret_action = safe[takt_rng_below(&own->rng, n)];
		return true;
	}
	for (uint32_t i = 1; i < n; i++)
		if (own->q[own->at][safe[i]] > own->q[own->at][safe[best]])
			best = i;
	*ret_action = safe[best];
	return true;
}

static enum takt_governor_reason move(struct qlearning *own,
				      const struct takt_governor_setup *setup)
{
	uint32_t action;

	own->turns++;
	own->moved = choose(own, setup, &action);
	if (!own->moved) {
		own->at++; /* at the top staying is safe, so this is below it */
		return TAKT_REASON_STEP_UP;
	}
	own->from = own->at;
	own->action = action;
	own->at = own->at + action - STAY;
	return own->tally[own->at].epochs ? TAKT_REASON_LEARNED : TAKT_REASON_EXPLORE;
}

static void forget_unsafe(struct qlearning *own, const struct takt_governor_setup *setup)
{
	for (uint32_t i = 0; i < own->levels.count; i++)
		if (own->tally[i].epochs && !measured_safe(own, setup, i))
			own->tally[i] = (struct takt_tally){0};
}

static void begin_anchor(struct qlearning *own, const struct takt_governor_setup *setup)
{
	own->anchoring = 1;
	own->moved = 0;
	own->at = takt_levels_top(&own->levels);
	forget_unsafe(own, setup);
	own->tally[own->at] = (struct takt_tally){0};
}

static enum takt_governor_reason turn(struct qlearning *own,
				      const struct takt_governor_setup *setup,
				      const struct takt_governor_observation *seen)
{
	struct takt_tally *here = &own->tally[own->at];

	own->since++;
	if (takt_levels_in_force(&own->levels, &seen->cap) != own->at || !takt_tally_usable(seen))
		return own->anchoring ? TAKT_REASON_REFERENCE : TAKT_REASON_LEARNED;
	if (here->epochs >= FORGET_EPOCHS)
		takt_tally_halve(here);
	takt_tally_add(here, seen);
	own->epochs++;
	own->spent += slowdown_now(own, seen);
	if (own->anchoring && here->epochs < ANCHOR_EPOCHS)
		return TAKT_REASON_REFERENCE;
	if (own->anchoring)
		own->since = own->anchoring = 0;
	learn(own, setup);
	if (own->since >= takt_governor_param(setup, "reanchor", 60)) {
		begin_anchor(own, setup);
		return TAKT_REASON_REFERENCE;
	}
	return move(own, setup);
}

static bool says_enough(const struct takt_governor_observation *seen)
{
	return (seen->has & TAKT_OBSERVED_WORK) &&
	       (seen->has & (TAKT_OBSERVED_ENERGY | TAKT_OBSERVED_POWER));
}

static void step(void *state, const struct takt_governor_setup *setup,
		 const struct takt_governor_observation *seen, struct takt_governor_wish *ret)
{
	struct qlearning *own = state;
	enum takt_governor_reason reason = TAKT_REASON_REFERENCE;

	if (takt_levels_stand_back(seen, ret))
		return;
	if (!setup->job.has_promise || (seen->has && !says_enough(seen))) {
		takt_levels_ask(&own->levels, takt_levels_top(&own->levels),
				setup->job.has_promise ? TAKT_REASON_NO_SIGNAL
						       : TAKT_REASON_NO_PROMISE,
				ret);
		return;
	}
	if (!seen->has && !seen->epoch_ns)
		begin_job(own);
	else if (seen->has && own->levels.count)
		reason = turn(own, setup, seen);
	takt_levels_ask(&own->levels, own->at, reason, ret);
	ret->probe = own->anchoring || reason == TAKT_REASON_EXPLORE;
}

const struct takt_governor takt_governor_qlearning = {
	.abi = TAKT_GOVERNOR_ABI,
	.name = "qlearning",
	.summary = "tabular Q-learning over single steps, inside the promise only",
	.params = "reanchor sigmas_permille",
	.state_bytes = sizeof(struct qlearning),
	.state_version = 1,
	.init = init,
	.step = step,
};
