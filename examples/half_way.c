/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A governor of one's own: half way between the lowest clock and the highest while the board is
 * busy up to `busy_permille` of the time, and the highest when it is busier.
 *
 *	cc -shared -fPIC -Iinclude -o half_way.so examples/half_way.c
 *	takt replay-clocks --points POINTS.csv --governor performance,./half_way.so
 */
#include <stdio.h>
#include <takt/clock_governor.h>

struct half_way {
	uint32_t mhz;
	uint32_t busy_permille;
};

static int init(void *opaque, const struct takt_governor_setup *setup, char *message,
		size_t message_size)
{
	const struct takt_governor_board *board = &setup->board;
	struct half_way *state = opaque;

	state->mhz = 0;
	state->busy_permille = 500;
	if (board->can & TAKT_ACTUATE_CLOCKS)
		state->mhz = (board->sm_mhz[0] + board->sm_mhz[board->sm_count - 1]) / 2;
	for (size_t i = 0; i < setup->param_count; i++) {
		if (setup->params[i].value < 0 || setup->params[i].value > 1000) {
			snprintf(message, message_size, "%s is 0 to 1000", setup->params[i].name);
			return -1;
		}
		state->busy_permille = (uint32_t)setup->params[i].value;
	}
	return 0;
}

/* takt clamps what is wished for to the board's list, and drops clocks where there are none. */
static void step(void *opaque, const struct takt_governor_setup *setup,
		 const struct takt_governor_observation *seen, struct takt_governor_wish *ret)
{
	const struct half_way *state = opaque;

	(void)setup;
	ret->reason = TAKT_REASON_UTILISATION;
	if (!(seen->has & TAKT_OBSERVED_GPU_UTIL) || seen->gpu_util_permille > state->busy_permille)
		return; /* nothing held: the highest clock */
	ret->cap.sets = TAKT_ACTUATE_CLOCKS;
	ret->cap.max_mhz = state->mhz;
}

const struct takt_governor takt_governor_entry = {
	.abi = TAKT_GOVERNOR_ABI,
	.name = "half-way",
	.summary = "half way up while the board is not very busy",
	.params = "busy_permille",
	.state_bytes = sizeof(struct half_way),
	.state_version = 1,
	.init = init,
	.step = step,
};
