/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose word the speed of a governed job is: its own, else that of activity counters, else that of
 * utilisation. What was learned by one is in other units than what another says, so that a job
 * keeps its signal; when a better one begins to speak the governor begins anew.
 */
#include "daemon/govern_impl.h"

void takt_govern_look_for_counters(struct takt_governed *one, uint64_t now_ns)
{
	uint32_t parts;

	if (one->unit || one->shared || one->parts)
		return;
	parts = takt_epoch_parts(&one->epoch, now_ns);
	if (!parts || !(one->counted || takt_epoch_parts_work(&one->epoch, parts)))
		return;
	one->better_signal = !one->counted;
	one->counted = true;
	one->parts = parts;
}

static enum takt_governor_signal signal_of(const struct takt_governed *one)
{
	if (one->unit)
		return TAKT_SIGNAL_JOB;
	if (one->shared)
		return TAKT_SIGNAL_NONE; /* what its GPUs are busy with is not its work alone */
	return one->counted ? TAKT_SIGNAL_COUNTERS : TAKT_SIGNAL_UTILISATION;
}

struct takt_epoch_basis takt_govern_basis(const struct takt_governed *one)
{
	return (struct takt_epoch_basis){
		.signal = signal_of(one),
		.unit = one->unit,
		.parts = one->parts,
		.highest_mhz = takt_governor_max_mhz(&one->setup),
		.shared = one->shared,
	};
}

bool takt_govern_knows_speed(const struct takt_governed *one, uint64_t now_ns)
{
	if (one->unit)
		return takt_epoch_has_rate(&one->epoch, one->unit, now_ns);
	if (one->shared || !(one->counted || takt_epoch_has_counters(&one->epoch)))
		return true;
	return takt_epoch_parts(&one->epoch, now_ns) != 0;
}
