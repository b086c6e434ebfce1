/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ladder: one step down at a time while the job is no slower than promised, one step up when it is,
 * and back to the highest clock every so often to see what the job would do there now.
 *
 * Steps are a twelfth of the way from half the highest setting to the highest. At each step `dwell`
 * epochs are measured. With d the promised slowdown and s the measured one:
 *
 *	s > d			one step up, and not so low again before the next reference
 *	s < d - 1 point		one step down
 *	else			stay, and go on measuring
 *
 * Without the reference that is measured anew (`reanchor` epochs) a ladder ratchets: a job that
 * changes its phase, or a lucky first measurement, leads it past the promise for good.
 *
 *	dwell, reanchor		epochs (2, 60)
 */
#include <string.h>

#include "clock/levels.h"
#include "clock/tally.h"

enum {
	STEPS = 13,
	FLOOR_PERMILLE = 500,
};

#define HYSTERESIS 0.01

struct ladder {
	struct takt_levels levels;
	uint32_t at, resume; /* resume: where to go on after the reference */
	uint32_t lowest;     /* no lower before the next reference */
	uint32_t since;	     /* epochs since the last reference */
	uint32_t anchoring;
	struct takt_tally anchor, here;
};

static int init(void *state, const struct takt_governor_setup *setup, char *message,
		size_t message_size)
{
	struct ladder *own = state;

	(void)message;
	(void)message_size;
	memset(own, 0, sizeof(*own));
	takt_levels_make(&setup->board, FLOOR_PERMILLE, STEPS, &own->levels);
	own->at = takt_levels_top(&own->levels);
	own->resume = own->at ? own->at - 1 : 0;
	own->anchoring = 1;
	return 0;
}

static void begin_anchor(struct ladder *own)
{
	own->anchoring = 1;
	own->resume = own->at;
	own->at = takt_levels_top(&own->levels);
	own->lowest = 0;
	own->here = (struct takt_tally){0};
}

static void move(struct ladder *own, uint32_t to)
{
	own->at = to;
	own->here = (struct takt_tally){0};
}

static enum takt_governor_reason walk(struct ladder *own, double promised)
{
	double slow = takt_tally_slowdown(&own->here, &own->anchor);

	if (slow > promised && own->at < takt_levels_top(&own->levels)) {
		own->lowest = own->at + 1;
		move(own, own->at + 1);
		return TAKT_REASON_STEP_UP;
	}
	if (slow < promised - HYSTERESIS && own->at > own->lowest) {
		move(own, own->at - 1);
		return TAKT_REASON_STEP_DOWN;
	}
	return TAKT_REASON_HOLD;
}

static enum takt_governor_reason measure(struct ladder *own,
					 const struct takt_governor_setup *setup,
					 const struct takt_governor_observation *seen)
{
	int64_t dwell = takt_governor_param(setup, "dwell", 2);
	int64_t reanchor = takt_governor_param(setup, "reanchor", 60);

	if (seen->has && takt_levels_in_force(&own->levels, &seen->cap) == own->at &&
	    takt_tally_usable(seen))
		takt_tally_add(&own->here, seen);
	own->since++;
	if (own->here.epochs == 0 || own->here.epochs < dwell)
		return own->anchoring ? TAKT_REASON_REFERENCE : TAKT_REASON_SETTLING;
	if (own->anchoring) {
		own->anchor = own->here;
		own->anchoring = 0;
		own->since = 0;
		move(own, own->resume);
		return TAKT_REASON_STEP_DOWN;
	}
	if (own->since >= reanchor) {
		begin_anchor(own);
		return TAKT_REASON_REFERENCE;
	}
	return walk(own, setup->job.max_slowdown_permille / 1000.0);
}

static void step(void *state, const struct takt_governor_setup *setup,
		 const struct takt_governor_observation *seen, struct takt_governor_wish *ret)
{
	struct ladder *own = state;
	uint32_t top = takt_levels_top(&own->levels);
	enum takt_governor_reason reason;

	if (takt_levels_stand_back(seen, ret))
		return;
	if (!setup->job.has_promise || (seen->has && !(seen->has & TAKT_OBSERVED_WORK))) {
		takt_levels_ask(&own->levels, top,
				setup->job.has_promise ? TAKT_REASON_NO_SIGNAL
						       : TAKT_REASON_NO_PROMISE,
				ret);
		return;
	}
	reason = measure(own, setup, seen);
	takt_levels_ask(&own->levels, own->at, reason, ret);
	ret->probe = own->anchoring;
}

const struct takt_governor takt_governor_ladder = {
	.abi = TAKT_GOVERNOR_ABI,
	.name = "ladder",
	.summary = "steps down while within the promise, up when not; measures the top anew",
	.params = "dwell reanchor",
	.state_bytes = sizeof(struct ladder),
	.state_version = 1,
	.init = init,
	.step = step,
};
