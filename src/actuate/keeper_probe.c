/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether somebody else has locked the SM clock, before takt's first lock takes the place of his.
 * NVML has no call that says so, but a board tells by how it runs. At its highest clock, nobody
 * holds it down. Busy and below that, several times in a row, with no word from the driver of
 * power, heat or the like: somebody may. An idle board, or one that is held back, says nothing.
 *
 * A lock that only keeps the clock from falling cannot be told from none. Once takt itself has
 * lifted what there was, nobody's lock is left to look for.
 */
#include <errno.h>

#include "actuate/actuate_log.h"
#include "actuate/keeper_impl.h"
#include "device/at_work.h"

#define AGAIN_NS   (250 * TAKT_NS_PER_MS)
#define PATIENT_NS TAKT_NS_PER_S /* of a wish that has waited long */

enum {
	LOOKS_BELOW = 8, /* two seconds */
	BUSY_PCT = 50,
	EAGER_LOOKS = 40, /* ten seconds */
};

static const uint64_t held_back = TAKT_THROTTLE_HOLDS_BACK;

static const uint32_t has_needed = TAKT_HAS_SM_CLOCK | TAKT_HAS_THROTTLE;

bool takt_keeper_is_waiting(const struct takt_keeper *keeper, const struct takt_keeper_gpu *gpu)
{
	return takt_setting_has(&gpu->wish, TAKT_KNOB_SM_CLOCK) &&
	       gpu->held[TAKT_KNOB_SM_CLOCK] == TAKT_HELD_BASELINE && gpu->lock != TAKT_LOCK_NONE &&
	       !(keeper->baseline && takt_baseline_says(keeper->baseline, gpu->facts->uuid));
}

bool takt_keeper_probe(struct takt_keeper *keeper, struct takt_keeper_gpu *gpu,
		       struct takt_boot now)
{
	if (keeper->stale || now.ns < gpu->probe_at.ns)
		return false;
	takt_keeper_read(keeper, gpu, TAKT_READ_PROBE, now);
	return true;
}

/* At its highest clock, or one step below. */
static bool runs_high(const struct takt_gpu_facts *facts, const struct takt_gpu_reading *reading)
{
	uint32_t last = facts->sm_clock_count - 1; /* a wish for a clock has passed the list */

	return (reading->has & TAKT_HAS_SM_CLOCK) &&
	       reading->sm_mhz >= facts->sm_clocks_mhz[last > 0 ? last - 1 : 0];
}

/* With MIG there is no utilisation; that it is not idle says less and has to do. */
static bool is_busy(const struct takt_gpu_reading *reading)
{
	return !(reading->throttle & TAKT_THROTTLE_IDLE) &&
	       (!(reading->has & TAKT_HAS_GPU_UTIL) || reading->gpu_util_pct >= BUSY_PCT);
}

/* Tells of the wish how it stands now, once for each way that it can. */
static void tell(struct takt_keeper_gpu *gpu, int rc)
{
	struct takt_err why;

	if (gpu->settled && gpu->outcome.rc != rc)
		gpu->settled = false;
	takt_err_set(&why, rc, "%s", gpu->note);
	takt_keeper_settle(gpu, rc, &why);
}

static void say_maybe(struct takt_keeper *keeper, struct takt_keeper_gpu *gpu)
{
	takt_keeper_note(
		gpu,
		"clock not set: it ran at %u MHz under load for no reason, as if somebody else "
		"had locked it; 'takt clock apply', nvidia-smi -rgc or --assume-unlocked",
		gpu->below_mhz);
	if (gpu->lock != TAKT_LOCK_MAYBE)
		takt_actuate_say(&keeper->log, "%s: %s", gpu->facts->uuid, gpu->note);
	gpu->lock = TAKT_LOCK_MAYBE;
	tell(gpu, -EPERM);
}

static void say_unknown(struct takt_keeper_gpu *gpu, const struct takt_gpu_reading *reading)
{
	uint64_t why = reading->has & TAKT_HAS_THROTTLE ? reading->throttle & held_back : 0;

	if (why)
		takt_keeper_note(
			gpu,
			"clock not set yet: under %s a lock of others cannot be told (at once: "
			"'takt clock apply' or --assume-unlocked)",
			takt_throttle_name(why & -why));
	else
		takt_keeper_note(
			gpu,
			"clock not set yet: first to be seen under load, lest somebody else has "
			"locked this clock (at once: 'takt clock apply' or "
			"--assume-unlocked)");
	tell(gpu, -EAGAIN);
}

void takt_keeper_take_probe(struct takt_keeper *keeper, struct takt_keeper_gpu *gpu,
			    const struct takt_gpu_reading *reading, struct takt_boot now)
{
	bool speaks = (reading->has & has_needed) == has_needed && is_busy(reading) &&
		      !(reading->throttle & held_back);

	takt_keeper_note_reach(gpu, reading);
	gpu->looks++;
	gpu->probe_at =
		takt_boot_add(now, speaks || gpu->looks < EAGER_LOOKS ? AGAIN_NS : PATIENT_NS);
	if (!takt_keeper_is_waiting(keeper, gpu))
		return;
	if (runs_high(gpu->facts, reading)) {
		gpu->lock = TAKT_LOCK_NONE;
		gpu->settled = false; /* it will be when it is set */
		gpu->wished_at = now;
		return;
	}
	gpu->below = speaks ? gpu->below + 1 : 0;
	if (speaks)
		gpu->below_mhz = reading->sm_mhz;
	if (gpu->below >= LOOKS_BELOW || gpu->lock == TAKT_LOCK_MAYBE)
		say_maybe(keeper, gpu);
	else if (!speaks)
		say_unknown(gpu, reading);
}
