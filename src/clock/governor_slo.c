/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slo: a serving job at the lowest clock that holds its latency (`--slo p99=50ms`). A controller of
 * the headroom between the latency that the job reports and the target, quick upwards and slow
 * downwards, as serving governors with two loops and hysteresis do (GreenLLM's decode loop among
 * them); steps and numbers are ours.
 *
 * Above the target it goes to the highest clock at once; the setting that failed, and what is below
 * it, is avoided for a while, twice as long each time. Above 90 % of the target, or when the load
 * rose by a fifth, it goes two steps up. Below, for `calm` epochs, it goes one step down, if even
 * then there is headroom: latency is taken to grow with the third power of the clocks' ratio. A
 * queue's latency explodes at its edge, so that going down must end well before it. What failed
 * under a load a fifth higher than now's is no longer avoided.
 *
 * Without a target, or while the job reports no latency, the highest clock.
 *
 *	calm	epochs (3)
 *	avoid	epochs, the first time (60)
 */
#include <string.h>

#include "clock/levels.h"

enum {
	STEPS = 16,
	FLOOR_PERMILLE = 300,
	AVOID_MOST_EPOCHS = 3600,
};

#define CLOSE  0.9 /* of the target */
#define RISEN  1.2 /* of the load */
#define MARGIN 0.9 /* of the target, where a step down may lead */

struct slo {
	struct takt_levels levels;
	uint32_t at;
	uint32_t calm;
	uint32_t lowest;     /* no lower while avoid_left */
	uint32_t avoid_left; /* epochs */
	uint32_t avoid_next; /* how long the next time */
	double failed_load;  /* under which `lowest` was learnt; 0 = not known */
	double settled_load; /* when it last moved; 0 = not known */
};

static int init(void *state, const struct takt_governor_setup *setup, char *message,
		size_t message_size)
{
	struct slo *own = state;

	(void)message;
	(void)message_size;
	memset(own, 0, sizeof(*own));
	takt_levels_make(&setup->board, FLOOR_PERMILLE, STEPS, &own->levels);
	own->at = takt_levels_top(&own->levels);
	own->avoid_next = (uint32_t)takt_governor_param(setup, "avoid", 60);
	return 0;
}

static double load_of(const struct takt_governor_observation *seen)
{
	double now = seen->has & TAKT_OBSERVED_LOAD ? seen->load : 0;
	double ahead = seen->has & TAKT_OBSERVED_LOAD_AHEAD ? seen->load_ahead : 0;

	return ahead > now ? ahead : now;
}

static void go(struct slo *own, uint32_t level, double load)
{
	own->at = level;
	own->calm = 0;
	own->settled_load = load;
}

static void go_up(struct slo *own, uint32_t steps, double load)
{
	uint32_t top = takt_levels_top(&own->levels);

	go(own, top - own->at > steps ? own->at + steps : top, load);
}

static void fail(struct slo *own, double load)
{
	uint32_t top = takt_levels_top(&own->levels);

	if (own->at < top) {
		own->lowest = own->at + 1;
		own->avoid_left = own->avoid_next;
		own->avoid_next = own->avoid_next * 2 < AVOID_MOST_EPOCHS ? own->avoid_next * 2
									  : AVOID_MOST_EPOCHS;
		own->failed_load = load;
	}
	go(own, top, load);
}

static void age(struct slo *own, double load)
{
	if (own->avoid_left)
		own->avoid_left--;
	if (load > 0 && own->failed_load > load * RISEN)
		own->avoid_left = 0;
	if (!own->avoid_left)
		own->lowest = 0;
}

static bool has_room_below(const struct slo *own, double used)
{
	double ratio;

	if (own->at <= own->lowest)
		return false;
	ratio = takt_levels_share(&own->levels, own->at) /
		takt_levels_share(&own->levels, own->at - 1);
	return used * ratio * ratio * ratio < MARGIN;
}

static enum takt_governor_reason control(struct slo *own, const struct takt_governor_setup *setup,
					 const struct takt_governor_observation *seen)
{
	double used = (double)seen->latency_us / setup->job.latency_target_us;
	double load = load_of(seen);

	age(own, load);
	if (used > 1) {
		fail(own, load);
		return TAKT_REASON_STEP_UP;
	}
	if (used > CLOSE || (own->settled_load > 0 && load > own->settled_load * RISEN)) {
		go_up(own, 2, load);
		return TAKT_REASON_STEP_UP;
	}
	if (!has_room_below(own, used)) {
		own->calm = 0;
		return TAKT_REASON_LATENCY;
	}
	if (++own->calm < takt_governor_param(setup, "calm", 3))
		return TAKT_REASON_LATENCY;
	go(own, own->at - 1, load);
	return TAKT_REASON_STEP_DOWN;
}

static void step(void *state, const struct takt_governor_setup *setup,
		 const struct takt_governor_observation *seen, struct takt_governor_wish *ret)
{
	struct slo *own = state;
	bool target = setup->job.has_latency && setup->job.latency_target_us;
	enum takt_governor_reason reason;

	if (takt_levels_stand_back(seen, ret))
		return;
	if (!target || !(seen->has & TAKT_OBSERVED_LATENCY)) {
		own->at = takt_levels_top(&own->levels);
		reason = target ? TAKT_REASON_NO_SIGNAL : TAKT_REASON_NO_PROMISE;
	} else {
		reason = control(own, setup, seen);
	}
	takt_levels_ask(&own->levels, own->at, reason, ret);
}

const struct takt_governor takt_governor_slo = {
	.abi = TAKT_GOVERNOR_ABI,
	.name = "slo",
	.summary = "lowest clock at which a serving job holds its promised latency",
	.params = "calm avoid",
	.state_bytes = sizeof(struct slo),
	.state_version = 1,
	.init = init,
	.step = step,
};
