/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading the board: what there is before takt changes it, what came of a setting, and whether it
 * still holds, both now and then and before another takes its place.
 */
#include <errno.h>

#include "actuate/actuate_log.h"
#include "actuate/keeper_impl.h"

#define READ_NS	 (500 * TAKT_NS_PER_MS)
#define FIRST_NS TAKT_NS_PER_S /* clocks have come to where they are to be */
#define CHECK_NS (5 * TAKT_NS_PER_S)

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
	takt_keeper_convict(
		gpu,
		"%llu corrected and %llu uncorrected memory errors at a memory clock in "
		"[%u,%u] MHz: put back",
		(unsigned long long)corrected, (unsigned long long)uncorrected,
		gpu->held_at.mem.min_mhz, gpu->held_at.mem.max_mhz);
	takt_actuate_say(&keeper->log, "%s: %s", gpu->facts->uuid, gpu->verdict);
	takt_err_set(&err, -EIO, "%s", gpu->verdict);
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

/* again_ns: when all is well. */
static void take_check(struct takt_keeper *keeper, struct takt_keeper_gpu *gpu,
		       const struct takt_gpu_reading *reading, uint64_t again_ns,
		       struct takt_boot now)
{
	uint64_t soon_ns = takt_keeper_judge(keeper, gpu, reading, now);

	gpu->readback_mhz = reading->has & TAKT_HAS_SM_CLOCK ? reading->sm_mhz : 0;
	gpu->check_at = takt_boot_add(now, soon_ns ? soon_ns : again_ns);
	if (gpu->wish.knobs && gpu->held[TAKT_KNOB_MEM_CLOCK] == TAKT_HELD_SET)
		check_memory(keeper, gpu, reading);
}

/* Another setting waits to take the place of this one. */
static void take_last_look(struct takt_keeper *keeper, struct takt_keeper_gpu *gpu,
			   const struct takt_gpu_reading *reading, struct takt_boot now)
{
	uint64_t soon_ns = takt_keeper_judge(keeper, gpu, reading, now);

	gpu->next = takt_boot_add(now, soon_ns);
	gpu->seen_before = soon_ns == 0;
}

bool takt_keeper_collect_read(struct takt_keeper *keeper, struct takt_keeper_gpu *gpu,
			      struct takt_boot now)
{
	enum takt_keeper_read why = gpu->reading;
	struct takt_gpu_reading reading = {0};
	int rc;

	if (why >= TAKT_READ_BACK && !takt_keeper_at_wish(keeper, gpu))
		why = gpu->reading = TAKT_READ_NONE;
	if (why == TAKT_READ_LAST && !gpu->wish.knobs)
		why = gpu->reading = TAKT_READ_NONE; /* what is put back waits for nothing */
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
	else if (why == TAKT_READ_LAST)
		take_last_look(keeper, gpu, &reading, now);
	else
		take_check(keeper, gpu, &reading, why == TAKT_READ_BACK ? FIRST_NS : CHECK_NS, now);
	return true;
}

bool takt_keeper_check_due(const struct takt_keeper_gpu *gpu, struct takt_boot now)
{
	return gpu->wish.knobs && !takt_keeper_at_baseline(gpu) && gpu->check_at.ns <= now.ns;
}
