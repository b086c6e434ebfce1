/* SPDX-License-Identifier: Apache-2.0 */
/* What is wished for each GPU, and what a new keeper finds in the journal. */
#include "actuate/keeper.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "actuate/actuate_log.h"
#include "base/str.h"

void takt_keeper_init(struct takt_keeper *keeper)
{
	const struct takt_machine_info *info = takt_machine_info(keeper->machine);

	if (keeper->call_deadline_ns == 0)
		keeper->call_deadline_ns = 2 * TAKT_NS_PER_S;
	keeper->guarded = false;
	keeper->stale = false;
	keeper->unseen = 0;
	takt_boot_id(keeper->boot_id);
	takt_driver_load(keeper->sys, info, keeper->driver_load);
	keeper->gpu_count =
		info->gpu_count < TAKT_ACTUATE_MAX_GPUS ? info->gpu_count : TAKT_ACTUATE_MAX_GPUS;
	for (uint32_t i = 0; i < keeper->gpu_count; i++)
		keeper->gpus[i] = (struct takt_keeper_gpu){
			.facts = takt_machine_facts(keeper->machine, i),
			.settled = true,
		};
}

int takt_keeper_find(const struct takt_keeper *keeper, const char *uuid)
{
	for (uint32_t i = 0; i < keeper->gpu_count; i++) {
		if (uuid[0] && strcmp(keeper->gpus[i].facts->uuid, uuid) == 0)
			return (int)i;
	}
	return -1;
}

static void wish_baseline(struct takt_keeper_gpu *gpu, struct takt_boot now)
{
	gpu->wish_range = false;
	gpu->wish_lease = gpu->wish_job = 0;
	gpu->wish_number++;
	gpu->wished_at = now;
	gpu->settled = false;
	gpu->denied = gpu->forced = false;
	gpu->note[0] = '\0';
	gpu->next = (struct takt_boot){0};
}

/* A GPU that may stand at some range, nobody knows which. */
static void found_changed(struct takt_keeper_gpu *gpu, struct takt_clock_range range,
			  struct takt_boot now)
{
	gpu->held = TAKT_HELD_UNKNOWN;
	gpu->held_range = range;
	wish_baseline(gpu, now);
}

static int mark_gone(struct takt_keeper *keeper, const struct takt_journal_record *old,
		     const char *how, struct takt_err *err)
{
	struct takt_journal_record record = *old;

	record.state = TAKT_JOURNAL_CLEAN;
	record.epoch = keeper->mandate->mine.epoch;
	takt_actuate_say(&keeper->log, "%s: the change to [%u,%u] MHz for job %llu went with %s",
			 old->uuid, old->range.min_mhz, old->range.max_mhz,
			 (unsigned long long)old->job_id, how);
	return takt_journal_record(keeper->journal, &record, err);
}

static int recover_record(struct takt_keeper *keeper, const struct takt_journal_record *record,
			  struct takt_boot now, struct takt_err *err)
{
	int index = takt_keeper_find(keeper, record->uuid);

	if (strcmp(record->boot_id, keeper->boot_id) != 0)
		return mark_gone(keeper, record, "the reboot", err);
	if (index < 0) {
		keeper->unseen++;
		takt_actuate_say(&keeper->log,
				 "%s: on record as changed to [%u,%u] MHz and not to be seen now; "
				 "it is restored when takt starts with it",
				 record->uuid, record->range.min_mhz, record->range.max_mhz);
		return 0;
	}
	if (strcmp(record->driver_load, keeper->driver_load) != 0)
		return mark_gone(keeper, record, "the reload of the driver", err);
	takt_actuate_say(&keeper->log,
			 "%s: was left at [%u,%u] MHz for job %llu; restoring the baseline",
			 record->uuid, record->range.min_mhz, record->range.max_mhz,
			 (unsigned long long)record->job_id);
	found_changed(&keeper->gpus[index], record->range, now);
	return 0;
}

/* Which GPU a damaged pair spoke of is not known: each that has no record of its own may be it. */
static int recover_damage(struct takt_keeper *keeper, struct takt_boot now, struct takt_err *err)
{
	uint32_t damaged = takt_journal_damaged(keeper->journal);
	int rc;

	if (damaged == 0)
		return 0;
	takt_actuate_say(&keeper->log,
			 "%u records of the clock journal are unreadable: every GPU without a "
			 "record is taken for changed",
			 damaged);
	for (uint32_t i = 0; i < keeper->gpu_count; i++) {
		struct takt_keeper_gpu *gpu = &keeper->gpus[i];
		struct takt_journal_record record = {
			.state = TAKT_JOURNAL_CHANGED,
			.epoch = keeper->mandate->mine.epoch,
		};

		if (!gpu->facts->uuid[0] || takt_journal_find(keeper->journal, gpu->facts->uuid))
			continue;
		takt_strcpy(record.uuid, sizeof(record.uuid), gpu->facts->uuid);
		takt_strcpy(record.boot_id, sizeof(record.boot_id), keeper->boot_id);
		takt_strcpy(record.driver_load, sizeof(record.driver_load), keeper->driver_load);
		if (keeper->baseline)
			record.baseline = takt_baseline_of(keeper->baseline, record.uuid);
		rc = takt_journal_record(keeper->journal, &record, err);
		if (rc < 0)
			return rc;
		found_changed(gpu, record.range, now);
	}
	return keeper->gpu_count ? takt_journal_forget_damage(keeper->journal, err) : 0;
}

int takt_keeper_recover(struct takt_keeper *keeper, struct takt_boot now, struct takt_err *err)
{
	int rc;

	if (keeper->journal->torn)
		takt_actuate_say(
			&keeper->log,
			"%u records of the clock journal had one unreadable copy; the other "
			"was used",
			keeper->journal->torn);
	for (uint32_t i = 0; i < TAKT_JOURNAL_PAIRS; i++) {
		const struct takt_journal_pair *pair = &keeper->journal->pairs[i];

		if (pair->state != TAKT_JOURNAL_VALID || pair->record.state != TAKT_JOURNAL_CHANGED)
			continue;
		rc = recover_record(keeper, &pair->record, now, err);
		if (rc < 0)
			return rc;
	}
	return recover_damage(keeper, now, err);
}

int takt_keeper_set(struct takt_keeper *keeper, uint32_t gpu_index, struct takt_clock_range range,
		    uint64_t lease_id, uint64_t job_id, struct takt_boot now, struct takt_err *err)
{
	struct takt_keeper_gpu *gpu = &keeper->gpus[gpu_index];
	const struct takt_gpu_facts *facts = gpu->facts;
	struct takt_clock_range clamped;

	if (!takt_machine_info(keeper->machine)->can_set)
		return takt_err_set(err, -TAKT_E_UNSUPPORTED, "this source of GPUs has no setters");
	if (!(facts->has & TAKT_FACT_SM_CLOCKS) || facts->sm_clock_count == 0)
		return takt_err_set(err, -TAKT_E_UNSUPPORTED, "%s lists no SM clocks", facts->uuid);
	if (!takt_clock_range_clamp(facts->sm_clocks_mhz, facts->sm_clock_count, range, &clamped))
		return takt_err_set(err, -EINVAL, "SM clock range [%u,%u] MHz: min <= max, max > 0",
				    range.min_mhz, range.max_mhz);
	if (gpu->wish_range && gpu->wish_lease == lease_id &&
	    takt_clock_range_equal(gpu->wish, clamped) && !gpu->denied)
		return 0;
	wish_baseline(gpu, now);
	gpu->wish_range = true;
	gpu->wish = clamped;
	gpu->wish_lease = lease_id;
	gpu->wish_job = job_id;
	return 0;
}

void takt_keeper_restore(struct takt_keeper *keeper, uint32_t gpu_index, struct takt_boot now)
{
	struct takt_keeper_gpu *gpu = &keeper->gpus[gpu_index];

	if (gpu->wish_range || gpu->held != TAKT_HELD_BASELINE || gpu->record_owed)
		wish_baseline(gpu, now);
}

void takt_keeper_reset(struct takt_keeper *keeper, uint32_t gpu_index, struct takt_boot now)
{
	if (!keeper->gpus[gpu_index].facts->uuid[0])
		return;
	wish_baseline(&keeper->gpus[gpu_index], now);
	keeper->gpus[gpu_index].forced = true;
}

enum takt_actuate_gpu_state takt_keeper_state(const struct takt_keeper_gpu *gpu)
{
	enum takt_keeper_held held = gpu->held;

	if (gpu->silent || !gpu->facts->uuid[0])
		return TAKT_ACTUATE_UNKNOWN;
	if (gpu->flight != TAKT_FLIGHT_NONE)
		held = gpu->held_before;
	if (held == TAKT_HELD_BASELINE)
		return gpu->wish_range && gpu->denied ? TAKT_ACTUATE_ADVISE : TAKT_ACTUATE_CLEAN;
	if (gpu->failures > 0 && !gpu->wish_range)
		return TAKT_ACTUATE_CHANGED;
	return held == TAKT_HELD_RANGE ? TAKT_ACTUATE_LEASED : TAKT_ACTUATE_CHANGED;
}

bool takt_keeper_all_clean(const struct takt_keeper *keeper)
{
	for (uint32_t i = 0; i < keeper->gpu_count; i++) {
		const struct takt_keeper_gpu *gpu = &keeper->gpus[i];

		if (gpu->held != TAKT_HELD_BASELINE || gpu->flight != TAKT_FLIGHT_NONE ||
		    gpu->record_owed)
			return false;
	}
	return true;
}

bool takt_keeper_quiet(const struct takt_keeper *keeper)
{
	for (uint32_t i = 0; i < keeper->gpu_count; i++) {
		if (keeper->gpus[i].flight != TAKT_FLIGHT_NONE && !keeper->gpus[i].overdue)
			return false;
	}
	return true;
}
