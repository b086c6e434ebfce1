/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading the board: what there is before takt changes it, what came of a setting, and
 * whether it still holds. NVML cannot be asked for a clock lock, but a board that runs above the
 * range takt gave it is not under takt's lock any more.
 */
#include <errno.h>

#include "actuate/actuate_log.h"
#include "actuate/keeper_impl.h"

#define READ_NS	 (500 * TAKT_NS_PER_MS)
#define CHECK_NS (5 * TAKT_NS_PER_S)

enum {
	CLOCK_SLACK_MHZ = 30,  /* two steps of most boards: readings differ by a few MHz */
	POWER_SLACK_MW = 1000, /* boards round limits to a watt or less */
	LOOKS_ABOVE = 2,       /* one may have been taken before the lock took effect */
};

void takt_keeper_read(struct takt_keeper *keeper, struct takt_keeper_gpu *gpu,
		      enum takt_keeper_read why, struct takt_boot now)
{
	uint32_t index = takt_keeper_index(keeper, gpu);
	struct takt_gpu_reading reading = {0};

	if (takt_machine_reading(keeper->machine, index, &reading) < 0)
		reading.seq = 0;
	gpu->after_seq = reading.seq;
	gpu->read_until = takt_boot_add(now, READ_NS);
	gpu->reading = why;
	takt_machine_sample(keeper->machine, index);
}

static uint32_t distance(uint32_t a, uint32_t b)
{
	return a > b ? a - b : b - a;
}

/* Whether a clock has been seen above the range that takt gave it, often enough. `known`: it could
 * be read this time. */
static bool runs_above(struct takt_keeper_gpu *gpu, enum takt_knob knob, bool known, uint32_t mhz,
		       uint32_t max_mhz)
{
	bool above = known && gpu->held[knob] == TAKT_HELD_SET && mhz > max_mhz + CLOCK_SLACK_MHZ;

	gpu->above[knob] = above ? gpu->above[knob] + 1 : 0;
	return gpu->above[knob] >= LOOKS_ABOVE;
}

/* The first of the knobs that somebody else has set; TAKT_KNOBS: none. */
static enum takt_knob find_foreign(struct takt_keeper_gpu *gpu,
				   const struct takt_gpu_reading *reading)
{
	if (runs_above(gpu, TAKT_KNOB_SM_CLOCK, reading->has & TAKT_HAS_SM_CLOCK, reading->sm_mhz,
		       gpu->held_at.sm.max_mhz))
		return TAKT_KNOB_SM_CLOCK;
	if (runs_above(gpu, TAKT_KNOB_MEM_CLOCK, reading->has & TAKT_HAS_MEM_CLOCK,
		       reading->mem_mhz, gpu->held_at.mem.max_mhz))
		return TAKT_KNOB_MEM_CLOCK;
	if (gpu->held[TAKT_KNOB_POWER_LIMIT] == TAKT_HELD_SET &&
	    (reading->has & TAKT_HAS_POWER_LIMIT) &&
	    distance(reading->power_limit_mw, gpu->held_at.power_limit_mw) > POWER_SLACK_MW)
		return TAKT_KNOB_POWER_LIMIT;
	return TAKT_KNOBS;
}

/* What somebody else has set is his: takt's own is gone, so there is nothing to put back. */
static void leave_alone(struct takt_keeper *keeper, struct takt_keeper_gpu *gpu,
			enum takt_knob knob, const struct takt_gpu_reading *reading)
{
	char text[TAKT_SETTING_TEXT];
	struct takt_setting was = takt_setting_only(&gpu->held_at, knob);

	gpu->held[knob] = TAKT_HELD_BASELINE;
	gpu->foreign = gpu->record_owed = true;
	gpu->above[knob] = 0;
	if (knob == TAKT_KNOB_SM_CLOCK)
		gpu->lock = TAKT_LOCK_UNKNOWN;
	takt_keeper_give_up(gpu);
	takt_setting_text(&was, text);
	if (knob != TAKT_KNOB_POWER_LIMIT)
		takt_keeper_note(gpu,
				 "%s clock %u MHz although takt set %.24s: it is not in force; "
				 "left alone until 'takt clock reset'",
				 knob == TAKT_KNOB_SM_CLOCK ? "SM" : "memory",
				 knob == TAKT_KNOB_SM_CLOCK ? reading->sm_mhz : reading->mem_mhz,
				 text);
	else
		takt_keeper_note(gpu,
				 "power limit %u W although takt set %.24s: it is not in force; "
				 "left alone until 'takt clock reset'",
				 reading->power_limit_mw / 1000, text);
	takt_actuate_say(&keeper->log, "%s: %s", gpu->facts->uuid, gpu->note);
}

/* Says how memory does at a clock of takt's; errors that were not there before end the wish. */
static void check_memory(struct takt_keeper *keeper, struct takt_keeper_gpu *gpu,
			 const struct takt_gpu_reading *reading)
{
	const struct takt_keeper_errors *before = &gpu->errors_before;
	uint64_t corrected, uncorrected;
	struct takt_err err;

	if (!before->known || !(reading->has & TAKT_HAS_ECC)) {
		takt_keeper_note(gpu, "memory clock set; memory errors cannot be counted here");
		return;
	}
	corrected = reading->ecc_corrected - before->corrected;
	uncorrected = reading->ecc_uncorrected - before->uncorrected;
	takt_keeper_note(gpu, "memory clock set; no memory errors since");
	if (corrected == 0 && uncorrected == 0)
		return;
	takt_keeper_note(gpu,
			 "%llu corrected and %llu uncorrected memory errors at a memory clock in "
			 "[%u,%u] MHz: put back",
			 (unsigned long long)corrected, (unsigned long long)uncorrected,
			 gpu->held_at.mem.min_mhz, gpu->held_at.mem.max_mhz);
	takt_actuate_say(&keeper->log, "%s: %s", gpu->facts->uuid, gpu->note);
	takt_err_set(&err, -EIO, "%s", gpu->note);
	takt_keeper_settle(gpu, -EIO, &err);
	takt_keeper_give_up(gpu);
	gpu->mem_errors = true;
}

/* What there is before takt changes it. */
static void take_look(struct takt_keeper_gpu *gpu, const struct takt_gpu_reading *reading)
{
	bool power = takt_setting_has(&gpu->wish, TAKT_KNOB_POWER_LIMIT) || gpu->cap_owed ||
		     gpu->rule_owed;

	gpu->looked = true;
	if (power && !gpu->found_mw && (reading->has & TAKT_HAS_POWER_LIMIT))
		gpu->found_mw = reading->power_limit_mw;
	if (gpu->held[TAKT_KNOB_MEM_CLOCK] == TAKT_HELD_BASELINE)
		gpu->errors_before = (struct takt_keeper_errors){
			.known = reading->has & TAKT_HAS_ECC,
			.corrected = reading->ecc_corrected,
			.uncorrected = reading->ecc_uncorrected,
		};
}

static void take_check(struct takt_keeper *keeper, struct takt_keeper_gpu *gpu,
		       const struct takt_gpu_reading *reading, struct takt_boot now)
{
	enum takt_knob foreign = find_foreign(gpu, reading);

	gpu->readback_mhz = reading->has & TAKT_HAS_SM_CLOCK ? reading->sm_mhz : 0;
	gpu->check_at = takt_boot_add(now, CHECK_NS);
	if (foreign != TAKT_KNOBS)
		leave_alone(keeper, gpu, foreign, reading);
	else if (gpu->held[TAKT_KNOB_MEM_CLOCK] == TAKT_HELD_SET)
		check_memory(keeper, gpu, reading);
}

bool takt_keeper_collect_read(struct takt_keeper *keeper, struct takt_keeper_gpu *gpu,
			      struct takt_boot now)
{
	enum takt_keeper_read why = gpu->reading;
	struct takt_gpu_reading reading = {0};
	int rc;

	if (why >= TAKT_READ_BACK && !takt_keeper_at_wish(keeper, gpu))
		why = gpu->reading = TAKT_READ_NONE;
	if (why == TAKT_READ_NONE)
		return true;
	rc = takt_machine_reading(keeper->machine, takt_keeper_index(keeper, gpu), &reading);
	if (rc < 0 || reading.seq <= gpu->after_seq) {
		if (now.ns < gpu->read_until.ns)
			return false;
		reading = (struct takt_gpu_reading){0};
	}
	gpu->reading = TAKT_READ_NONE;
	if (why == TAKT_READ_LOOK)
		take_look(gpu, &reading);
	else if (why == TAKT_READ_PROBE)
		takt_keeper_take_probe(keeper, gpu, &reading, now);
	else
		take_check(keeper, gpu, &reading, now);
	return true;
}

bool takt_keeper_check_due(const struct takt_keeper_gpu *gpu, struct takt_boot now)
{
	return gpu->wish.knobs && gpu->check_at.ns <= now.ns;
}
