/* SPDX-License-Identifier: Apache-2.0 */
/* Logs of governors' steps, with the governors themselves: whatever is told them, what comes out is
 * a wish that the board could be asked. */
#include "clock/epoch_log.h"
#include "fuzz_input.h"

static void check(void *ctx, const struct takt_epoch_replay *at,
		  const struct takt_governor_observation *seen)
{
	const struct takt_governor_cap *cap = &at->wish.cap;

	(void)ctx;
	(void)seen;
	fuzz_expect((cap->sets & ~at->setup.board.can) == 0);
	fuzz_expect(!(cap->sets & TAKT_ACTUATE_CLOCKS) || cap->min_mhz <= cap->max_mhz);
	fuzz_expect((unsigned)at->wish.reason < TAKT_REASONS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct takt_epoch_replay replay;

	if (takt_epoch_replay(NULL, (const char *)data, size, check, NULL, &replay, NULL) < 0)
		return 0;
	fuzz_expect(replay.whole_bytes <= size && replay.differing <= replay.steps);
	takt_epoch_replay_fini(&replay);
	return 0;
}
