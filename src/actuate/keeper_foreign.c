/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether what takt has set is still in force. NVML cannot be asked for a clock lock, and whoever
 * sets one last takes the place of all before, so the board is looked at. One that runs above the
 * range that takt gave it is not under takt's lock any more. One that runs well below what it was
 * seen to do, at work and held back by nothing it knows of, seems to be under somebody else's.
 * Where the clock that was set never came, nobody can say whose doing that is.
 *
 * A clock above its range proves that takt's own lock is gone, and so does another power limit:
 * there is nothing to put back. A low clock proves nothing: under takt's ceiling it may be low,
 * too. So takt's own counts as set and is put back, which lifts another's lock as well, since a GPU
 * that takt leaves changed is worse.
 *
 * One look proves nothing: the driver may have been at it just then. So the first one that looks
 * like it has others follow soon, and it takes several in a row. Before a setting takes the place
 * of another the board is looked at, too, or whoever changes his mind often would overwrite what
 * others have set without ever seeing it.
 */
#include <errno.h>

#include "actuate/actuate_log.h"
#include "actuate/keeper_impl.h"
#include "clock/fit.h"
#include "device/at_work.h"

#define SETTLE_NS (500 * TAKT_NS_PER_MS) /* clocks come within 200 ms or so */
#define AGAIN_NS  (250 * TAKT_NS_PER_MS)

enum {
	CLOCK_SLACK_MHZ = 30,  /* two steps of most boards: readings differ by a few MHz */
	POWER_SLACK_MW = 1000, /* boards round limits to a watt or less */
	LOOKS_ABOVE = 4,       /* a second */
	LOOKS_BELOW = 8,       /* two */
};

/* What the looks so far come to. */
enum verdict {
	HOLDS,
	SUSPECT,
	FOREIGN,
	INEFFECTIVE,
};

static uint32_t distance(uint32_t a, uint32_t b)
{
	return a > b ? a - b : b - a;
}

void takt_keeper_note_reach(struct takt_keeper_gpu *gpu, const struct takt_gpu_reading *reading)
{
	if (takt_reading_is_busy(reading) && reading->sm_mhz > gpu->reach_mhz)
		gpu->reach_mhz = reading->sm_mhz;
	if ((reading->has & TAKT_HAS_SM_CLOCK) && reading->sm_mhz > gpu->seen_mhz)
		gpu->seen_mhz = reading->sm_mhz;
}

static enum takt_clock_fit sm_fit(const struct takt_keeper_gpu *gpu,
				  const struct takt_gpu_reading *reading)
{
	enum takt_clock_fit fit;

	if (gpu->held[TAKT_KNOB_SM_CLOCK] != TAKT_HELD_SET || !(reading->has & TAKT_HAS_SM_CLOCK))
		return TAKT_CLOCK_FITS;
	fit = takt_clock_fit(gpu->held_at.sm.max_mhz, reading->sm_mhz, gpu->reach_mhz);
	if (fit == TAKT_CLOCK_ABOVE || takt_reading_at_work(gpu->facts, reading))
		return fit;
	return TAKT_CLOCK_FITS;
}

static bool mem_is_above(const struct takt_keeper_gpu *gpu, const struct takt_gpu_reading *reading)
{
	return gpu->held[TAKT_KNOB_MEM_CLOCK] == TAKT_HELD_SET &&
	       (reading->has & TAKT_HAS_MEM_CLOCK) &&
	       reading->mem_mhz > gpu->held_at.mem.max_mhz + CLOCK_SLACK_MHZ;
}

static bool power_is_another(const struct takt_keeper_gpu *gpu,
			     const struct takt_gpu_reading *reading)
{
	return gpu->held[TAKT_KNOB_POWER_LIMIT] == TAKT_HELD_SET &&
	       (reading->has & TAKT_HAS_POWER_LIMIT) &&
	       distance(reading->power_limit_mw, gpu->held_at.power_limit_mw) > POWER_SLACK_MW;
}

/* Whether it was ever seen where it is to be, be it idle. */
static bool came_near(const struct takt_keeper_gpu *gpu)
{
	return takt_clock_fit(gpu->held_at.sm.max_mhz, gpu->seen_mhz, 0) != TAKT_CLOCK_NEVER_CAME;
}

static void count(uint32_t *looks, bool speaks)
{
	*looks = speaks ? *looks + 1 : 0;
}

/* *ret_knob: FOREIGN, the one that somebody else has set. */
static enum verdict judge_clocks(struct takt_keeper_gpu *gpu,
				 const struct takt_gpu_reading *reading, struct takt_boot now,
				 enum takt_knob *ret_knob)
{
	enum takt_clock_fit fit = sm_fit(gpu, reading);
	bool low = fit == TAKT_CLOCK_FELL || fit == TAKT_CLOCK_NEVER_CAME;

	if (takt_boot_elapsed_ns(now, gpu->set_at) < SETTLE_NS)
		return HOLDS; /* on its way */
	if (takt_boot_elapsed_ns(now, gpu->counted_at) >= AGAIN_NS) {
		gpu->counted_at = now;
		count(&gpu->above[TAKT_KNOB_SM_CLOCK], fit == TAKT_CLOCK_ABOVE);
		count(&gpu->above[TAKT_KNOB_MEM_CLOCK], mem_is_above(gpu, reading));
		count(&gpu->low, low);
		if (fit == TAKT_CLOCK_FITS)
			takt_keeper_note_reach(gpu, reading);
	}
	*ret_knob = gpu->above[TAKT_KNOB_MEM_CLOCK] >= LOOKS_ABOVE ? TAKT_KNOB_MEM_CLOCK
								   : TAKT_KNOB_SM_CLOCK;
	if (gpu->low >= LOOKS_BELOW)
		return fit == TAKT_CLOCK_FELL || came_near(gpu) ? FOREIGN : INEFFECTIVE;
	if (gpu->above[*ret_knob] >= LOOKS_ABOVE)
		return FOREIGN;
	return gpu->low || gpu->above[TAKT_KNOB_SM_CLOCK] || gpu->above[TAKT_KNOB_MEM_CLOCK]
		       ? SUSPECT
		       : HOLDS;
}

static void say_foreign(struct takt_keeper_gpu *gpu, enum takt_knob knob,
			const struct takt_setting *was, const struct takt_gpu_reading *reading)
{
	const char *until = "left alone until 'takt clock reset'";
	char text[TAKT_SETTING_TEXT];

	takt_setting_text(was, text);
	if (knob == TAKT_KNOB_POWER_LIMIT)
		takt_keeper_convict(
			gpu, "power limit %u W although takt set %.24s: it is not in force; %s",
			reading->power_limit_mw / 1000, text, until);
	else if (knob == TAKT_KNOB_MEM_CLOCK)
		takt_keeper_convict(
			gpu, "memory clock %u MHz although takt set %.24s: it is not in force; %s",
			reading->mem_mhz, text, until);
	else if (reading->sm_mhz > was->sm.max_mhz)
		takt_keeper_convict(
			gpu, "SM clock %u MHz although takt set %.24s: it is not in force; %s",
			reading->sm_mhz, text, until);
	else
		takt_keeper_convict(
			gpu,
			"SM clock %u MHz under load for no reason although takt set "
			"%.24s: as if another held it; put back, set no more until 'takt "
			"clock reset'",
			reading->sm_mhz, text);
}

/* The wish is over: whoever waits for it is told, and the log. */
static void end_wish(struct takt_keeper *keeper, struct takt_keeper_gpu *gpu)
{
	struct takt_err err;

	takt_err_set(&err, -TAKT_E_CONFLICT, "%s: %s", gpu->facts->uuid, gpu->verdict);
	takt_keeper_settle(gpu, err.rc, &err);
	takt_keeper_give_up(gpu);
	takt_actuate_say(&keeper->log, "%s: %s", gpu->facts->uuid, gpu->verdict);
}

/* takt's own is gone, so there is nothing to put back. */
static void let_go(struct takt_keeper_gpu *gpu, enum takt_knob knob)
{
	gpu->held[knob] = TAKT_HELD_BASELINE;
	gpu->record_owed = true;
	if (knob == TAKT_KNOB_SM_CLOCK)
		gpu->lock = TAKT_LOCK_UNKNOWN;
}

/* What somebody else has set is his. Of a low clock that is a guess: takt's own goes back. */
static void leave_alone(struct takt_keeper *keeper, struct takt_keeper_gpu *gpu,
			enum takt_knob knob, const struct takt_gpu_reading *reading)
{
	struct takt_setting was = takt_setting_only(&gpu->held_at, knob);

	if (knob != TAKT_KNOB_SM_CLOCK || reading->sm_mhz > was.sm.max_mhz)
		let_go(gpu, knob);
	gpu->foreign |= TAKT_KNOB_BIT(knob);
	takt_keeper_forget_looks(gpu);
	say_foreign(gpu, knob, &was, reading);
	end_wish(keeper, gpu);
}

/* The driver took it and nothing came of it. It may be in force for all that, so it is put back. */
static void stop_here(struct takt_keeper *keeper, struct takt_keeper_gpu *gpu,
		      const struct takt_gpu_reading *reading)
{
	gpu->ineffective = true;
	takt_keeper_forget_looks(gpu);
	takt_keeper_convict(
		gpu,
		"set to [%u,%u] MHz it ran at %u MHz under load for no reason, never near: "
		"put back, not set again until 'takt clock reset'",
		gpu->held_at.sm.min_mhz, gpu->held_at.sm.max_mhz, reading->sm_mhz);
	end_wish(keeper, gpu);
}

/* Looks in a row: they speak of one setting. */
void takt_keeper_forget_looks(struct takt_keeper_gpu *gpu)
{
	for (enum takt_knob knob = 0; knob < TAKT_KNOBS; knob++)
		gpu->above[knob] = 0;
	gpu->low = 0;
}

uint64_t takt_keeper_judge(struct takt_keeper *keeper, struct takt_keeper_gpu *gpu,
			   const struct takt_gpu_reading *reading, struct takt_boot now)
{
	enum takt_knob knob = TAKT_KNOB_POWER_LIMIT;
	enum verdict verdict =
		power_is_another(gpu, reading) ? FOREIGN : judge_clocks(gpu, reading, now, &knob);

	if (verdict == FOREIGN)
		leave_alone(keeper, gpu, knob, reading);
	else if (verdict == INEFFECTIVE)
		stop_here(keeper, gpu, reading);
	return verdict == SUSPECT ? AGAIN_NS : 0;
}

bool takt_keeper_must_look(const struct takt_keeper_gpu *gpu, enum takt_knob knob,
			   struct takt_boot now)
{
	return gpu->held[knob] == TAKT_HELD_SET && !gpu->seen_before &&
	       takt_boot_elapsed_ns(now, gpu->set_at) >= SETTLE_NS;
}
