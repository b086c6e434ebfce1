/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One step of one GPU towards its wish. The order is what the house stands on: the change is
 * durable in the journal before the driver is called, and "clean" is written only after the driver
 * has said that the baseline is back. Whatever is not certain counts as changed.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "actuate/actuate_log.h"
#include "actuate/keeper.h"
#include "base/str.h"
#include "device/device_set.h"

#define RETRY_FIRST_NS	 (250 * TAKT_NS_PER_MS)
#define RETRY_LONGEST_NS (30 * TAKT_NS_PER_S)
#define READBACK_NS	 (500 * TAKT_NS_PER_MS)
#define UNGUARDED_NS	 (2 * TAKT_NS_PER_S)

#define note(gpu, ...) ((void)snprintf((gpu)->note, sizeof((gpu)->note), __VA_ARGS__))

/* The first outcome of a wish is the one that is reported. */
static void settle(struct takt_keeper_gpu *gpu, int rc, const struct takt_err *why)
{
	if (gpu->settled)
		return;
	gpu->settled = true;
	gpu->outcome = (struct takt_err){.rc = rc};
	if (rc < 0 && why)
		gpu->outcome = *why;
	gpu->outcome.rc = rc;
}

static void give_up_range(struct takt_keeper_gpu *gpu)
{
	gpu->wish_range = false;
	gpu->wish_lease = gpu->wish_job = 0;
	gpu->denied = false;
}

static void retry_later(struct takt_keeper_gpu *gpu, struct takt_boot now)
{
	uint64_t pause = RETRY_LONGEST_NS;

	if (gpu->failures < 7)
		pause = RETRY_FIRST_NS << gpu->failures;
	gpu->failures++;
	gpu->next = takt_boot_add(now, pause);
}

static bool answers_not(int rc)
{
	return rc == -ENODEV || rc == -ETIMEDOUT;
}

static void lost_mandate(struct takt_keeper *keeper)
{
	if (!keeper->stale)
		takt_actuate_say(&keeper->log,
				 "the right to set clocks went to another process: stopping here");
	keeper->stale = true;
}

/* One who lost the right to set has lost the journal, too: it tells of another's work by now. */
static int write_record(struct takt_keeper *keeper, const struct takt_keeper_gpu *gpu,
			enum takt_journal_state state, struct takt_err *err)
{
	struct takt_journal_record record = {
		.state = state,
		.range = state == TAKT_JOURNAL_CHANGED ? gpu->wish : (struct takt_clock_range){0},
		.lease_id = gpu->wish_lease,
		.job_id = gpu->wish_job,
		.epoch = keeper->mandate->mine.epoch,
	};

	if (takt_mandate_check(keeper->mandate) < 0) {
		lost_mandate(keeper);
		return takt_err_set(err, -TAKT_E_STALE, "another process has the journal");
	}
	takt_strcpy(record.uuid, sizeof(record.uuid), gpu->facts->uuid);
	takt_strcpy(record.boot_id, sizeof(record.boot_id), keeper->boot_id);
	takt_strcpy(record.driver_load, sizeof(record.driver_load), keeper->driver_load);
	if (keeper->baseline)
		record.baseline = takt_baseline_of(keeper->baseline, record.uuid);
	return takt_journal_record(keeper->journal, &record, err);
}

/* At its baseline; if the journal cannot be told, it is told later. */
static void record_clean(struct takt_keeper *keeper, struct takt_keeper_gpu *gpu,
			 struct takt_boot now)
{
	struct takt_err err;

	gpu->record_owed = write_record(keeper, gpu, TAKT_JOURNAL_CLEAN, &err) < 0;
	if (gpu->record_owed) {
		note(gpu, "at its baseline, but not in the journal: %.90s", err.msg);
		retry_later(gpu, now);
		return;
	}
	gpu->failures = 0;
	gpu->next = (struct takt_boot){0};
	gpu->note[0] = '\0';
}

static bool at_wish(const struct takt_keeper_gpu *gpu)
{
	if (gpu->wish_range)
		return gpu->held == TAKT_HELD_RANGE &&
		       takt_clock_range_equal(gpu->wish, gpu->held_range);
	return gpu->held == TAKT_HELD_BASELINE && !gpu->record_owed && !gpu->forced;
}

static void begin_readback(struct takt_keeper *keeper, struct takt_keeper_gpu *gpu,
			   struct takt_boot now)
{
	uint32_t index = (uint32_t)(gpu - keeper->gpus);
	struct takt_gpu_reading reading = {0};

	if (takt_machine_reading(keeper->machine, index, &reading) < 0)
		reading.seq = 0;
	gpu->after_seq = reading.seq;
	gpu->read_until = takt_boot_add(now, READBACK_NS);
	gpu->reading = true;
	takt_machine_sample(keeper->machine, index);
}

static void set_done(struct takt_keeper *keeper, struct takt_keeper_gpu *gpu, struct takt_boot now)
{
	takt_crash_point("actuate.set_done");
	gpu->held = TAKT_HELD_RANGE;
	gpu->held_range = gpu->flight_range;
	gpu->failures = 0;
	gpu->next = (struct takt_boot){0};
	gpu->note[0] = '\0';
	if (at_wish(gpu))
		begin_readback(keeper, gpu, now);
}

/* The driver did not do it, for certain: the board is as it was. */
static void set_refused(struct takt_keeper *keeper, struct takt_keeper_gpu *gpu, int rc,
			struct takt_boot now)
{
	gpu->held = gpu->held_before;
	if (gpu->held == TAKT_HELD_BASELINE)
		record_clean(keeper, gpu, now);
	if (rc != -EPERM || !gpu->wish_range) {
		give_up_range(gpu);
		return;
	}
	note(gpu,
	     "no permission to set clocks; an administrator would run: nvidia-smi -i %.48s -lgc "
	     "%u,%u",
	     gpu->facts->uuid, gpu->flight_range.min_mhz, gpu->flight_range.max_mhz);
	if (gpu->held == TAKT_HELD_BASELINE)
		gpu->denied = true;
	else
		give_up_range(gpu);
}

static void set_finished(struct takt_keeper *keeper, struct takt_keeper_gpu *gpu,
			 const struct takt_err *result, struct takt_boot now)
{
	int rc = result->rc;

	if (rc == 0) {
		set_done(keeper, gpu, now);
		return;
	}
	if (rc == -TAKT_E_STALE)
		lost_mandate(keeper);
	if (rc == -EPERM || rc == -TAKT_E_UNSUPPORTED || rc == -EINVAL || rc == -TAKT_E_STALE) {
		set_refused(keeper, gpu, rc, now);
	} else {
		gpu->silent = answers_not(rc);
		if (gpu->silent)
			retry_later(gpu, now);
		else
			give_up_range(gpu);
		note(gpu, "setting [%u,%u] MHz failed: %.100s", gpu->flight_range.min_mhz,
		     gpu->flight_range.max_mhz, takt_err_sentence(rc));
	}
	settle(gpu, rc, result);
}

static void restore_refused(struct takt_keeper *keeper, struct takt_keeper_gpu *gpu,
			    const struct takt_err *result, struct takt_boot now)
{
	gpu->silent = answers_not(result->rc);
	if (gpu->forced && gpu->held_before == TAKT_HELD_BASELINE && !gpu->silent) {
		gpu->forced = false;
		gpu->held = TAKT_HELD_BASELINE;
		settle(gpu, result->rc, result);
		return;
	}
	if (gpu->failures == 0)
		takt_actuate_say(&keeper->log,
				 "%s: the baseline could not be restored (%s); "
				 "trying again until it can",
				 gpu->facts->uuid, takt_err_sentence(result->rc));
	retry_later(gpu, now);
	note(gpu,
	     "left changed, restoring failed (%s), tried again; by hand: nvidia-smi -i %.48s -rgc",
	     takt_err_name(result->rc), gpu->facts->uuid);
	settle(gpu, result->rc, result);
}

static void restore_finished(struct takt_keeper *keeper, struct takt_keeper_gpu *gpu,
			     const struct takt_err *result, struct takt_boot now)
{
	if (result->rc == -TAKT_E_STALE) {
		lost_mandate(keeper);
		settle(gpu, result->rc, result);
		return;
	}
	/* A board without locked clocks cannot have been left with any. */
	if (result->rc < 0 && result->rc != -TAKT_E_UNSUPPORTED) {
		restore_refused(keeper, gpu, result, now);
		return;
	}
	takt_crash_point("actuate.restore_done");
	if (gpu->failures > 0)
		takt_actuate_say(&keeper->log, "%s: the baseline is back", gpu->facts->uuid);
	gpu->held = TAKT_HELD_BASELINE;
	gpu->forced = false;
	gpu->readback_mhz = 0;
	record_clean(keeper, gpu, now);
	takt_crash_point("actuate.restore_recorded");
	settle(gpu, 0, NULL);
}

/* True when nothing is under way any more. */
static bool collect_flight(struct takt_keeper *keeper, struct takt_keeper_gpu *gpu,
			   struct takt_boot now)
{
	enum takt_keeper_flight flight = gpu->flight;
	struct takt_err result = {0};

	if (flight == TAKT_FLIGHT_NONE)
		return true;
	if (takt_machine_set_finished(keeper->machine, (uint32_t)(gpu - keeper->gpus), &result)) {
		gpu->flight = TAKT_FLIGHT_NONE;
		gpu->overdue = gpu->silent = false;
		if (flight == TAKT_FLIGHT_SET)
			set_finished(keeper, gpu, &result, now);
		else
			restore_finished(keeper, gpu, &result, now);
		return true;
	}
	if (!gpu->overdue &&
	    takt_boot_elapsed_ns(now, gpu->posted_at) >= keeper->call_deadline_ns) {
		gpu->overdue = gpu->silent = true;
		note(gpu,
		     "the driver has not answered for %llu s; what this GPU holds is not known",
		     (unsigned long long)(keeper->call_deadline_ns / TAKT_NS_PER_S));
		takt_err_set(&result, -ETIMEDOUT, "%s: %s", gpu->facts->uuid, gpu->note);
		settle(gpu, -ETIMEDOUT, &result);
	}
	return false;
}

/* True when no reading is awaited. */
static bool collect_readback(struct takt_keeper *keeper, struct takt_keeper_gpu *gpu,
			     struct takt_boot now)
{
	struct takt_gpu_reading reading = {0};
	int rc;

	if (!at_wish(gpu))
		gpu->reading = false;
	if (!gpu->reading)
		return true;
	rc = takt_machine_reading(keeper->machine, (uint32_t)(gpu - keeper->gpus), &reading);
	if (rc == 0 && reading.seq > gpu->after_seq)
		gpu->readback_mhz = reading.has & TAKT_HAS_SM_CLOCK ? reading.sm_mhz : 0;
	else if (now.ns < gpu->read_until.ns)
		return false;
	else
		gpu->readback_mhz = 0;
	gpu->reading = false;
	return true;
}

static struct takt_baseline_rule baseline_of(const struct takt_keeper *keeper,
					     const struct takt_keeper_gpu *gpu)
{
	const struct takt_journal_record *record;

	if (keeper->baseline)
		return takt_baseline_of(keeper->baseline, gpu->facts->uuid);
	record = takt_journal_find(keeper->journal, gpu->facts->uuid);
	return record ? record->baseline : (struct takt_baseline_rule){0};
}

/* Hands the setter to the GPU's worker; a refusal at this point is an outcome like any other. */
static void post(struct takt_keeper *keeper, struct takt_keeper_gpu *gpu,
		 enum takt_keeper_flight flight, struct takt_set_call call, struct takt_boot now)
{
	struct takt_err err = {0};
	int rc;

	call.gate = takt_mandate_check;
	call.gate_ctx = keeper->mandate;
	gpu->held_before = gpu->held;
	gpu->held = TAKT_HELD_UNKNOWN;
	gpu->flight = flight;
	gpu->flight_range = (struct takt_clock_range){call.min_mhz, call.max_mhz};
	gpu->posted_at = now;
	rc = takt_machine_set_post(keeper->machine, (uint32_t)(gpu - keeper->gpus), &call, &err);
	if (rc == 0)
		return;
	gpu->flight = TAKT_FLIGHT_NONE;
	if (flight == TAKT_FLIGHT_SET)
		set_finished(keeper, gpu, &err, now);
	else
		restore_finished(keeper, gpu, &err, now);
}

static void begin_set(struct takt_keeper *keeper, struct takt_keeper_gpu *gpu, struct takt_boot now)
{
	struct takt_err err;

	if (!keeper->guarded) {
		if (takt_boot_elapsed_ns(now, gpu->wished_at) < UNGUARDED_NS)
			return;
		takt_err_set(&err, -TAKT_E_UNAVAILABLE,
			     "no guard is running that would restore the clock if takt died");
		settle(gpu, err.rc, &err);
		give_up_range(gpu);
		return;
	}
	takt_crash_point("actuate.set_begin");
	if (write_record(keeper, gpu, TAKT_JOURNAL_CHANGED, &err) < 0) {
		note(gpu, "not set: %.140s", err.msg);
		settle(gpu, err.rc, &err);
		give_up_range(gpu);
		return;
	}
	takt_crash_point("actuate.set_journaled");
	post(keeper, gpu, TAKT_FLIGHT_SET,
	     (struct takt_set_call){.op = TAKT_SET_LOCK_SM,
				    .min_mhz = gpu->wish.min_mhz,
				    .max_mhz = gpu->wish.max_mhz},
	     now);
	takt_crash_point("actuate.set_posted");
}

static void begin_restore(struct takt_keeper *keeper, struct takt_keeper_gpu *gpu,
			  struct takt_boot now)
{
	const struct takt_gpu_facts *facts = gpu->facts;
	struct takt_baseline_rule rule = baseline_of(keeper, gpu);
	struct takt_set_call call = {.op = TAKT_SET_UNLOCK_SM};

	takt_crash_point("actuate.restore_begin");
	if (rule.locked) {
		if (facts->has & TAKT_FACT_SM_CLOCKS)
			(void)takt_clock_range_clamp(facts->sm_clocks_mhz, facts->sm_clock_count,
						     rule.range, &rule.range);
		call = (struct takt_set_call){.op = TAKT_SET_LOCK_SM,
					      .min_mhz = rule.range.min_mhz,
					      .max_mhz = rule.range.max_mhz};
	}
	post(keeper, gpu, TAKT_FLIGHT_RESTORE, call, now);
}

/* True when something was begun or finished, so that another look is worth it. */
static bool advance(struct takt_keeper *keeper, struct takt_keeper_gpu *gpu, struct takt_boot now)
{
	if (!collect_flight(keeper, gpu, now) || !collect_readback(keeper, gpu, now))
		return false;
	if (at_wish(gpu)) {
		settle(gpu, 0, NULL);
		return false;
	}
	if (keeper->stale || now.ns < gpu->next.ns || (gpu->wish_range && gpu->denied))
		return false;
	if (takt_mandate_check(keeper->mandate) < 0) {
		lost_mandate(keeper);
		return false;
	}
	if (gpu->wish_range)
		begin_set(keeper, gpu, now);
	else if (gpu->record_owed && !gpu->forced && gpu->held == TAKT_HELD_BASELINE)
		record_clean(keeper, gpu, now);
	else
		begin_restore(keeper, gpu, now);
	return true;
}

/* When this GPU needs a look even if nothing finishes. */
static struct takt_boot due(const struct takt_keeper *keeper, const struct takt_keeper_gpu *gpu)
{
	if (gpu->flight != TAKT_FLIGHT_NONE && !gpu->overdue)
		return takt_boot_add(gpu->posted_at, keeper->call_deadline_ns);
	if (gpu->reading)
		return gpu->read_until;
	if (gpu->flight != TAKT_FLIGHT_NONE || at_wish(gpu) || (gpu->wish_range && gpu->denied))
		return (struct takt_boot){UINT64_MAX};
	if (gpu->wish_range && !keeper->guarded)
		return takt_boot_add(gpu->wished_at, UNGUARDED_NS);
	return gpu->next;
}

struct takt_boot takt_keeper_step(struct takt_keeper *keeper, struct takt_boot now)
{
	struct takt_boot next = {UINT64_MAX}, at;

	for (uint32_t i = 0; i < keeper->gpu_count; i++) {
		struct takt_keeper_gpu *gpu = &keeper->gpus[i];

		for (int looks = 0; looks < 4 && advance(keeper, gpu, now); looks++)
			;
		at = due(keeper, gpu);
		if (at.ns < next.ns)
			next = at;
	}
	return next;
}
