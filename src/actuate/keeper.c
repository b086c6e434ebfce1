/* SPDX-License-Identifier: Apache-2.0 */
/* What is wished for each GPU, and what a new keeper finds in the journal. */
#include "actuate/keeper_impl.h"

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
			.mig.settled = true,
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

static void wish_anew(struct takt_keeper_gpu *gpu, struct takt_boot now)
{
	gpu->wish_number++;
	gpu->wished_at = now;
	gpu->settled = false;
	gpu->denied = gpu->looked = gpu->seen_before = false;
	gpu->note[0] = '\0';
	gpu->next = gpu->probe_at = (struct takt_boot){0};
	gpu->below = gpu->looks = 0;
}

static void wish_baseline(struct takt_keeper_gpu *gpu, struct takt_boot now)
{
	gpu->wish = (struct takt_setting){0};
	gpu->wish_lease = gpu->wish_job = 0;
	wish_anew(gpu, now);
}

/* A GPU of which some knobs may stand at some value, nobody knows which. */
static void found_changed(struct takt_keeper_gpu *gpu, const struct takt_journal_record *record,
			  struct takt_boot now)
{
	uint32_t knobs = record->setting.knobs;

	if (knobs == 0)
		knobs = TAKT_KNOB_BIT(TAKT_KNOB_SM_CLOCK);
	for (enum takt_knob knob = 0; knob < TAKT_KNOBS; knob++)
		if (knobs & TAKT_KNOB_BIT(knob))
			gpu->held[knob] = TAKT_HELD_UNKNOWN;
	gpu->held_at = record->setting;
	wish_baseline(gpu, now);
}

static int mark_gone(struct takt_keeper *keeper, const struct takt_journal_record *old,
		     const char *how, struct takt_err *err)
{
	struct takt_journal_record record = *old;
	char text[TAKT_SETTING_TEXT];

	record.state = TAKT_JOURNAL_CLEAN;
	record.epoch = keeper->mandate->mine.epoch;
	record.found_power_mw = record.cap_power_mw = 0;
	if (old->state == TAKT_JOURNAL_CHANGED)
		takt_actuate_say(&keeper->log, "%s: the change to %s for job %llu went with %s",
				 old->uuid, takt_setting_text(&old->setting, text),
				 (unsigned long long)old->job_id, how);
	if (old->cap_power_mw)
		takt_actuate_say(&keeper->log, "%s: the power cap of %u W went with %s", old->uuid,
				 old->cap_power_mw / 1000, how);
	return takt_journal_record(keeper->journal, &record, err);
}

static int recover_record(struct takt_keeper *keeper, const struct takt_journal_record *record,
			  struct takt_boot now, struct takt_err *err)
{
	int index = takt_keeper_find(keeper, record->uuid);
	char text[TAKT_SETTING_TEXT];

	if (takt_boot_differs(record->boot_id, keeper->boot_id))
		return mark_gone(keeper, record, "the reboot", err);
	if (index < 0 && record->state != TAKT_JOURNAL_CHANGED)
		return 0;
	if (index < 0) {
		keeper->unseen++;
		takt_actuate_say(&keeper->log,
				 "%s: on record as changed to %s and not to be seen now; it is "
				 "restored when takt starts with it",
				 record->uuid, takt_setting_text(&record->setting, text));
		return 0;
	}
	if (takt_driver_load_differs(record->driver_load, keeper->driver_load))
		return mark_gone(keeper, record, "the reload of the driver", err);
	keeper->gpus[index].found_mw = record->found_power_mw;
	keeper->gpus[index].cap_mw = keeper->gpus[index].cap_was_mw = record->cap_power_mw;
	if (record->state != TAKT_JOURNAL_CHANGED)
		return 0;
	takt_actuate_say(&keeper->log, "%s: was left at %s for job %llu; restoring the baseline",
			 record->uuid, takt_setting_text(&record->setting, text),
			 (unsigned long long)record->job_id);
	found_changed(&keeper->gpus[index], record, now);
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
		found_changed(gpu, &record, now);
	}
	return keeper->gpu_count ? takt_journal_forget_damage(keeper->journal, err) : 0;
}

static bool same_rule(const struct takt_baseline_rule *a, const struct takt_baseline_rule *b)
{
	return a->locked == b->locked && a->power_limit_mw == b->power_limit_mw &&
	       (!a->locked ||
		(a->range.min_mhz == b->range.min_mhz && a->range.max_mhz == b->range.max_mhz));
}

/* Whether a GPU stands as declared. A limit is not in force before its way back is on record. */
static bool is_in_force(const struct takt_keeper *keeper, const struct takt_journal_record *record,
			const struct takt_baseline_rule *is)
{
	bool power = is->power_limit_mw && !record->found_power_mw;

	return same_rule(&record->baseline, is) && !(keeper->declared && power);
}

/* The baseline was declared anew by one who died before it was in force everywhere, or was changed
 * while nobody was at work. */
static void recover_rules(struct takt_keeper *keeper, struct takt_boot now)
{
	for (uint32_t i = 0; keeper->baseline && i < keeper->gpu_count; i++) {
		const char *uuid = keeper->gpus[i].facts->uuid;
		const struct takt_journal_record *record = takt_journal_find(keeper->journal, uuid);
		struct takt_baseline_rule was = {0}, is = takt_baseline_of(keeper->baseline, uuid);
		uint32_t cap_mw = takt_baseline_cap_of(keeper->baseline, uuid);

		if (record && !takt_boot_differs(record->boot_id, keeper->boot_id) &&
		    !takt_driver_load_differs(record->driver_load, keeper->driver_load))
			was = record->baseline;
		else
			record = NULL;
		if (record ? is_in_force(keeper, record, &is) : !keeper->declared)
			continue;
		takt_keeper_declare(keeper, i, &was, now);
		if (cap_mw)
			(void)takt_keeper_cap(keeper, i, cap_mw, now, NULL);
	}
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

		if (pair->state != TAKT_JOURNAL_VALID ||
		    (pair->record.state != TAKT_JOURNAL_CHANGED && !pair->record.cap_power_mw &&
		     !pair->record.found_power_mw))
			continue;
		if (strcmp(pair->record.uuid, TAKT_CPU_UUID) == 0)
			rc = takt_keeper_cpu_recover(keeper, &pair->record, now, err);
		else if (strncmp(pair->record.uuid, TAKT_MIG_UUID, strlen(TAKT_MIG_UUID)) == 0)
			rc = takt_keeper_mig_recover(keeper, &pair->record, now, err);
		else
			rc = recover_record(keeper, &pair->record, now, err);
		if (rc < 0)
			return rc;
	}
	rc = recover_damage(keeper, now, err);
	if (rc == 0)
		recover_rules(keeper, now);
	return rc;
}

/* Clamps to the board's list of such clocks. */
static int check_range(const struct takt_gpu_facts *facts, enum takt_knob knob,
		       struct takt_clock_range *range, struct takt_err *err)
{
	bool mem = knob == TAKT_KNOB_MEM_CLOCK;
	const uint32_t *mhz = mem ? facts->mem_clocks_mhz : facts->sm_clocks_mhz;
	uint32_t count = mem ? facts->mem_clock_count : facts->sm_clock_count;
	const char *what = mem ? "memory" : "SM";

	if (!(facts->has & (mem ? TAKT_FACT_MEM_CLOCKS : TAKT_FACT_SM_CLOCKS)) || count == 0)
		return takt_err_set(err, -TAKT_E_UNSUPPORTED, "%s lists no %s clocks", facts->uuid,
				    what);
	if (!takt_clock_range_clamp(mhz, count, *range, range))
		return takt_err_set(err, -EINVAL, "%s clock range [%u,%u] MHz: min <= max, max > 0",
				    what, range->min_mhz, range->max_mhz);
	return 0;
}

static int check_power(const struct takt_gpu_facts *facts, uint32_t limit_mw, struct takt_err *err)
{
	if (!(facts->has & TAKT_FACT_POWER_LIMITS))
		return takt_err_set(err, -TAKT_E_UNSUPPORTED,
				    "%s does not say which power limits it takes", facts->uuid);
	if (limit_mw < facts->power_min_mw || limit_mw > facts->power_max_mw)
		return takt_err_set(
			err, -EINVAL, "a power limit of %u W: this GPU takes %u to %u W",
			limit_mw / 1000, facts->power_min_mw / 1000, facts->power_max_mw / 1000);
	return 0;
}

static int check_setters(const struct takt_keeper *keeper, struct takt_err *err)
{
	if (!takt_machine_info(keeper->machine)->can_set)
		return takt_err_set(err, -TAKT_E_UNSUPPORTED, "this source of GPUs has no setters");
	return 0;
}

static int conflict(const struct takt_keeper_gpu *gpu, struct takt_err *err)
{
	return takt_err_set(err, -TAKT_E_CONFLICT, "%s: %s", gpu->facts->uuid, gpu->verdict);
}

static bool wishes_this(const struct takt_keeper_gpu *gpu, const struct takt_setting *setting)
{
	bool same = gpu->wish.knobs == setting->knobs;

	for (enum takt_knob knob = 0; knob < TAKT_KNOBS; knob++)
		if (takt_setting_has(setting, knob))
			same = same && takt_setting_same(&gpu->wish, setting, knob);
	return same;
}

int takt_keeper_set(struct takt_keeper *keeper, uint32_t gpu_index,
		    const struct takt_setting *setting, uint64_t lease_id, uint64_t job_id,
		    struct takt_boot now, struct takt_err *err)
{
	struct takt_keeper_gpu *gpu = &keeper->gpus[gpu_index];
	struct takt_setting wish = *setting;
	int rc = check_setters(keeper, err);

	if (rc == 0 && (gpu->foreign || gpu->ineffective))
		rc = conflict(gpu, err);
	if (rc == 0 && takt_setting_has(&wish, TAKT_KNOB_SM_CLOCK))
		rc = check_range(gpu->facts, TAKT_KNOB_SM_CLOCK, &wish.sm, err);
	if (rc == 0 && takt_setting_has(&wish, TAKT_KNOB_MEM_CLOCK) && gpu->mem_errors)
		rc = takt_err_set(err, -EIO, "%s", gpu->verdict);
	if (rc == 0 && takt_setting_has(&wish, TAKT_KNOB_MEM_CLOCK))
		rc = check_range(gpu->facts, TAKT_KNOB_MEM_CLOCK, &wish.mem, err);
	if (rc == 0 && takt_setting_has(&wish, TAKT_KNOB_POWER_LIMIT))
		rc = check_power(gpu->facts, wish.power_limit_mw, err);
	if (rc < 0)
		return rc;
	if (wish.knobs && gpu->wish_lease == lease_id && wishes_this(gpu, &wish) && !gpu->denied)
		return 0;
	wish_baseline(gpu, now);
	gpu->wish = wish;
	gpu->wish_lease = lease_id;
	gpu->wish_job = job_id;
	return 0;
}

int takt_keeper_may_declare_cap(const struct takt_keeper *keeper, uint32_t gpu_index,
				uint32_t cap_mw, struct takt_err *err)
{
	int rc = check_setters(keeper, err);

	return rc == 0 && cap_mw ? check_power(keeper->gpus[gpu_index].facts, cap_mw, err) : rc;
}

int takt_keeper_may_cap(const struct takt_keeper *keeper, uint32_t gpu_index, uint32_t cap_mw,
			struct takt_err *err)
{
	const struct takt_keeper_gpu *gpu = &keeper->gpus[gpu_index];
	int rc = takt_keeper_may_declare_cap(keeper, gpu_index, cap_mw, err);

	if (rc == 0 && (gpu->foreign & TAKT_KNOB_BIT(TAKT_KNOB_POWER_LIMIT)))
		rc = conflict(gpu, err);
	return rc;
}

int takt_keeper_cap(struct takt_keeper *keeper, uint32_t gpu_index, uint32_t cap_mw,
		    struct takt_boot now, struct takt_err *err)
{
	struct takt_keeper_gpu *gpu = &keeper->gpus[gpu_index];
	int rc = takt_keeper_may_cap(keeper, gpu_index, cap_mw, err);

	if (rc < 0)
		return rc;
	if (gpu->cap_mw == cap_mw) {
		if (gpu->settled && takt_keeper_at_wish(keeper, gpu))
			gpu->outcome = (struct takt_err){.rc = 0}; /* not of an earlier order */
		return 0;
	}
	wish_anew(gpu, now);
	gpu->cap_mw = cap_mw;
	gpu->cap_owed = true;
	gpu->forced |= TAKT_KNOB_BIT(TAKT_KNOB_POWER_LIMIT);
	return 0;
}

void takt_keeper_assume_unlocked(struct takt_keeper *keeper, uint32_t gpu_index)
{
	struct takt_keeper_gpu *gpu = &keeper->gpus[gpu_index];

	if (takt_keeper_is_waiting(keeper, gpu))
		gpu->settled = false;
	gpu->lock = TAKT_LOCK_NONE;
}

void takt_keeper_restore(struct takt_keeper *keeper, uint32_t gpu_index, struct takt_boot now)
{
	struct takt_keeper_gpu *gpu = &keeper->gpus[gpu_index];

	if (gpu->wish.knobs == 0 && takt_keeper_at_baseline(gpu) && !gpu->record_owed)
		return;
	wish_baseline(gpu, now);
}

/* To be put where it is declared, under a lease when that ends. One that stood where it was
 * declared and is not any more counts as changed, be a lease wished for it or not. */
static void declare_knob(struct takt_keeper_gpu *gpu, enum takt_knob knob, bool was, bool is)
{
	bool in_flight = gpu->flight != TAKT_FLIGHT_NONE && gpu->flight_knob == knob;
	enum takt_keeper_held *held = in_flight ? &gpu->held_before : &gpu->held[knob];

	if (!was && !is)
		return;
	gpu->forced |= TAKT_KNOB_BIT(knob);
	if (is || *held != TAKT_HELD_BASELINE)
		return;
	*held = TAKT_HELD_UNKNOWN;
	gpu->held_at.knobs &= ~TAKT_KNOB_BIT(knob);
}

void takt_keeper_declare(struct takt_keeper *keeper, uint32_t gpu_index,
			 const struct takt_baseline_rule *was, struct takt_boot now)
{
	struct takt_keeper_gpu *gpu = &keeper->gpus[gpu_index];
	struct takt_baseline_rule is = takt_baseline_of(keeper->baseline, gpu->facts->uuid);

	if (!gpu->facts->uuid[0])
		return;
	takt_keeper_mig_declare(keeper, gpu_index, now);
	gpu->foreign = 0;
	gpu->ineffective = false;
	wish_anew(gpu, now);
	gpu->rule_owed = true;
	declare_knob(gpu, TAKT_KNOB_SM_CLOCK, was->locked, is.locked);
	declare_knob(gpu, TAKT_KNOB_POWER_LIMIT, was->power_limit_mw, is.power_limit_mw);
}

void takt_keeper_reset(struct takt_keeper *keeper, uint32_t gpu_index, struct takt_boot now)
{
	struct takt_keeper_gpu *gpu = &keeper->gpus[gpu_index];

	if (!gpu->facts->uuid[0])
		return;
	gpu->foreign = 0;
	gpu->ineffective = gpu->mem_errors = false;
	wish_baseline(gpu, now);
	gpu->forced = TAKT_KNOB_BIT(TAKT_KNOB_SM_CLOCK) | TAKT_KNOB_BIT(TAKT_KNOB_POWER_LIMIT);
	if (gpu->facts->has & TAKT_FACT_MEM_CLOCKS)
		gpu->forced |= TAKT_KNOB_BIT(TAKT_KNOB_MEM_CLOCK);
	if (takt_keeper_rule(keeper, gpu).power_limit_mw && !gpu->found_mw)
		gpu->rule_owed = true; /* it is not in force yet */
}

const char *takt_keeper_says(const struct takt_keeper_gpu *gpu)
{
	bool refuses = gpu->foreign || gpu->ineffective || (gpu->mem_errors && !gpu->wish.knobs);

	return gpu->note[0] || !refuses ? gpu->note : gpu->verdict;
}

/* What a knob holds, or held before a setter that is under way. */
static enum takt_keeper_held held_of(const struct takt_keeper_gpu *gpu, enum takt_knob knob)
{
	bool in_flight = gpu->flight != TAKT_FLIGHT_NONE && gpu->flight_knob == knob;

	return in_flight ? gpu->held_before : gpu->held[knob];
}

/* Told that its SM clock is not set for now; other knobs may be. */
static bool clock_waits(const struct takt_keeper_gpu *gpu)
{
	return takt_setting_has(&gpu->wish, TAKT_KNOB_SM_CLOCK) &&
	       held_of(gpu, TAKT_KNOB_SM_CLOCK) == TAKT_HELD_BASELINE && gpu->settled &&
	       (gpu->outcome.rc == -EAGAIN || gpu->outcome.rc == -EPERM);
}

/* Of one whose clock takt has not set: what became of the wish, if there is one. */
static enum takt_actuate_gpu_state unset_state(const struct takt_keeper_gpu *gpu)
{
	if (!gpu->wish.knobs || !(gpu->denied || gpu->settled))
		return TAKT_ACTUATE_CLEAN;
	if (gpu->denied || gpu->outcome.rc == -EPERM)
		return TAKT_ACTUATE_ADVISE;
	return gpu->outcome.rc == -EAGAIN ? TAKT_ACTUATE_WAITING : TAKT_ACTUATE_CLEAN;
}

enum takt_actuate_gpu_state takt_keeper_state(const struct takt_keeper_gpu *gpu)
{
	bool set = false, unknown = false;

	if (gpu->silent || !gpu->facts->uuid[0])
		return TAKT_ACTUATE_UNKNOWN;
	for (enum takt_knob knob = 0; knob < TAKT_KNOBS; knob++) {
		set = set || held_of(gpu, knob) == TAKT_HELD_SET;
		unknown = unknown || held_of(gpu, knob) == TAKT_HELD_UNKNOWN;
	}
	if (gpu->mig.failures > 0 && takt_keeper_mig_to_be_put_back(&gpu->mig))
		return TAKT_ACTUATE_CHANGED;
	if (!set && !unknown && gpu->foreign)
		return TAKT_ACTUATE_FOREIGN;
	if (!set && !unknown && gpu->ineffective)
		return TAKT_ACTUATE_INEFFECTIVE;
	if (!set && !unknown)
		return unset_state(gpu);
	if (unknown || (gpu->failures > 0 && gpu->wish.knobs == 0))
		return TAKT_ACTUATE_CHANGED;
	return clock_waits(gpu) ? unset_state(gpu) : TAKT_ACTUATE_LEASED;
}

bool takt_keeper_all_clean(const struct takt_keeper *keeper)
{
	if (keeper->cpu.changed)
		return false;
	for (uint32_t i = 0; i < keeper->gpu_count; i++) {
		const struct takt_keeper_gpu *gpu = &keeper->gpus[i];

		if (!takt_keeper_at_baseline(gpu) || gpu->flight != TAKT_FLIGHT_NONE ||
		    gpu->record_owed || gpu->mig.changed || takt_keeper_mig_flies(&gpu->mig))
			return false;
	}
	return true;
}

bool takt_keeper_quiet(const struct takt_keeper *keeper)
{
	for (uint32_t i = 0; i < keeper->gpu_count; i++) {
		if (keeper->gpus[i].flight != TAKT_FLIGHT_NONE && !keeper->gpus[i].overdue)
			return false;
		if (takt_keeper_mig_flies(&keeper->gpus[i].mig) && !keeper->gpus[i].mig.overdue)
			return false;
	}
	return true;
}
