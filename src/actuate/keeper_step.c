/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One step of one GPU towards its wish, knob by knob. The order is what the house stands on: the
 * change is durable in the journal before the driver is called, and "clean" is written only after
 * the driver has said that the baseline is back. Whatever is not certain counts as changed.
 */
#include <errno.h>
#include <string.h>

#include "actuate/actuate_log.h"
#include "actuate/keeper_impl.h"
#include "base/str.h"
#include "device/device_set.h"

#define UNGUARDED_NS (2 * TAKT_NS_PER_S)

#define note(gpu, ...) takt_keeper_note(gpu, __VA_ARGS__)
#define settle(...)    takt_keeper_settle(__VA_ARGS__)

enum {
	LOOKS = 4 * TAKT_KNOBS, /* at one GPU in one step */
	COMMAND_TEXT = 32,	/* nvidia-smi's options for one setting */
};

void takt_keeper_settle(struct takt_keeper_gpu *gpu, int rc, const struct takt_err *why)
{
	if (gpu->settled)
		return;
	gpu->settled = true;
	gpu->outcome = (struct takt_err){.rc = rc};
	if (rc < 0 && why)
		gpu->outcome = *why;
	gpu->outcome.rc = rc;
}

void takt_keeper_give_up(struct takt_keeper_gpu *gpu)
{
	gpu->wish = (struct takt_setting){0};
	gpu->wish_lease = gpu->wish_job = 0;
	gpu->denied = false;
}

bool takt_keeper_at_baseline(const struct takt_keeper_gpu *gpu)
{
	for (enum takt_knob knob = 0; knob < TAKT_KNOBS; knob++)
		if (gpu->held[knob] != TAKT_HELD_BASELINE)
			return false;
	return true;
}

struct takt_baseline_rule takt_keeper_rule(const struct takt_keeper *keeper,
					   const struct takt_keeper_gpu *gpu)
{
	const struct takt_journal_record *record;

	if (keeper->baseline)
		return takt_baseline_of(keeper->baseline, gpu->facts->uuid);
	record = takt_journal_find(keeper->journal, gpu->facts->uuid);
	return record ? record->baseline : (struct takt_baseline_rule){0};
}

uint32_t takt_keeper_base_power(const struct takt_keeper *keeper, const struct takt_keeper_gpu *gpu)
{
	uint32_t declared = takt_keeper_rule(keeper, gpu).power_limit_mw;
	uint32_t base = declared ? declared : gpu->found_mw;

	return gpu->cap_mw && gpu->cap_mw < base ? gpu->cap_mw : base;
}

struct takt_setting takt_keeper_target(const struct takt_keeper *keeper,
				       const struct takt_keeper_gpu *gpu)
{
	uint32_t base_mw = takt_keeper_base_power(keeper, gpu);
	struct takt_setting target = gpu->wish;

	if (takt_keeper_is_waiting(keeper, gpu))
		target.knobs &= ~TAKT_KNOB_BIT(TAKT_KNOB_SM_CLOCK);
	if (base_mw && target.power_limit_mw > base_mw)
		target.power_limit_mw = base_mw;
	return target;
}

static bool knob_at_wish(const struct takt_keeper *keeper, const struct takt_keeper_gpu *gpu,
			 enum takt_knob knob)
{
	struct takt_setting target = takt_keeper_target(keeper, gpu);

	if (takt_setting_has(&target, knob))
		return gpu->held[knob] == TAKT_HELD_SET &&
		       takt_setting_same(&target, &gpu->held_at, knob);
	return gpu->held[knob] == TAKT_HELD_BASELINE && !(gpu->forced & TAKT_KNOB_BIT(knob));
}

/* The first knob that is not where it is wished; TAKT_KNOBS: none. */
static enum takt_knob next_knob(const struct takt_keeper *keeper, const struct takt_keeper_gpu *gpu)
{
	enum takt_knob knob = 0;

	while (knob < TAKT_KNOBS && knob_at_wish(keeper, gpu, knob))
		knob++;
	return knob;
}

bool takt_keeper_at_wish(const struct takt_keeper *keeper, const struct takt_keeper_gpu *gpu)
{
	return next_knob(keeper, gpu) == TAKT_KNOBS && !gpu->cap_owed && !gpu->rule_owed &&
	       (gpu->wish.knobs || !gpu->record_owed);
}

static void retry_later(struct takt_keeper_gpu *gpu, struct takt_boot now)
{
	gpu->next = takt_boot_add(now, takt_pace_ns(&takt_keeper_pace, gpu->failures++));
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

/* What a record has to say: the knobs that are changed or about to be. */
static struct takt_setting at_stake(const struct takt_keeper *keeper,
				    const struct takt_keeper_gpu *gpu)
{
	struct takt_setting target = takt_keeper_target(keeper, gpu);
	struct takt_setting stake = {0};

	for (enum takt_knob knob = 0; knob < TAKT_KNOBS; knob++) {
		if (gpu->held[knob] != TAKT_HELD_BASELINE) {
			takt_setting_take(&stake, &gpu->held_at, knob);
			stake.knobs |= TAKT_KNOB_BIT(knob);
		}
		if (gpu->forced & TAKT_KNOB_BIT(knob))
			stake.knobs |= TAKT_KNOB_BIT(knob);
		takt_setting_take(&stake, &target, knob);
	}
	return stake;
}

static uint32_t cap_on_record(const struct takt_keeper *keeper, const struct takt_keeper_gpu *gpu)
{
	const struct takt_journal_record *record =
		takt_journal_find(keeper->journal, gpu->facts->uuid);

	return record ? record->cap_power_mw : 0;
}

/* Something else than the power limit that was found is this board's baseline, or was and still is
 * what it stands at. */
static bool stands_in(const struct takt_keeper *keeper, const struct takt_keeper_gpu *gpu)
{
	return gpu->cap_mw || gpu->cap_was_mw || cap_on_record(keeper, gpu) ||
	       takt_keeper_rule(keeper, gpu).power_limit_mw;
}

/* At its baseline, and nothing has been ordered that it has not been told yet. */
static bool is_clean(const struct takt_keeper_gpu *gpu)
{
	return takt_keeper_at_baseline(gpu) && !gpu->forced && !gpu->cap_owed;
}

/* One who lost the right to set has lost the journal, too: it tells of another's work by now. */
static int write_record(struct takt_keeper *keeper, const struct takt_keeper_gpu *gpu,
			enum takt_journal_state state, struct takt_err *err)
{
	struct takt_journal_record record = {
		.state = state,
		.lease_id = gpu->wish_lease,
		.job_id = gpu->wish_job,
		.epoch = keeper->mandate->mine.epoch,
		/* One that is owed is not on the board, nor is its way back always known. */
		.cap_power_mw = gpu->cap_owed ? cap_on_record(keeper, gpu) : gpu->cap_mw,
	};

	if (takt_mandate_check(keeper->mandate) < 0) {
		lost_mandate(keeper);
		return takt_err_set(err, -TAKT_E_STALE, "another process has the journal");
	}
	if (state == TAKT_JOURNAL_CHANGED)
		record.setting = at_stake(keeper, gpu);
	if (state == TAKT_JOURNAL_CHANGED || stands_in(keeper, gpu))
		record.found_power_mw = gpu->found_mw;
	takt_strcpy(record.uuid, sizeof(record.uuid), gpu->facts->uuid);
	takt_strcpy(record.boot_id, sizeof(record.boot_id), keeper->boot_id);
	takt_strcpy(record.driver_load, sizeof(record.driver_load), keeper->driver_load);
	record.baseline = takt_keeper_rule(keeper, gpu);
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
	if (!stands_in(keeper, gpu))
		gpu->found_mw = 0; /* it may be another one by the next time */
	gpu->looked = false;
	gpu->failures = 0;
	gpu->next = (struct takt_boot){0};
	gpu->note[0] = '\0';
}

static void set_done(struct takt_keeper *keeper, struct takt_keeper_gpu *gpu, struct takt_boot now)
{
	takt_crash_point("actuate.set_done");
	gpu->held[gpu->flight_knob] = TAKT_HELD_SET;
	takt_setting_take(&gpu->held_at, &gpu->flight_at, gpu->flight_knob);
	gpu->failures = 0;
	gpu->set_at = now;
	takt_keeper_forget_looks(gpu);
	gpu->next = (struct takt_boot){0};
	gpu->note[0] = '\0';
	if (takt_keeper_at_wish(keeper, gpu))
		takt_keeper_read(keeper, gpu, TAKT_READ_BACK, now);
}

/* What an administrator would run in takt's place. */
static const char *by_hand(const struct takt_setting *setting, enum takt_knob knob,
			   char buf[COMMAND_TEXT])
{
	const char domain = knob == TAKT_KNOB_MEM_CLOCK ? 'm' : 'g';
	struct takt_clock_range range = knob == TAKT_KNOB_MEM_CLOCK ? setting->mem : setting->sm;

	if (knob == TAKT_KNOB_POWER_LIMIT)
		(void)snprintf(buf, COMMAND_TEXT, "-pl %u", setting->power_limit_mw / 1000);
	else if (takt_setting_has(setting, knob))
		(void)snprintf(buf, COMMAND_TEXT, "-l%cc %u,%u", domain, range.min_mhz,
			       range.max_mhz);
	else
		(void)snprintf(buf, COMMAND_TEXT, "-r%cc", domain);
	return buf;
}

/* The driver did not do it, for certain: the board is as it was. */
static void set_refused(struct takt_keeper *keeper, struct takt_keeper_gpu *gpu, int rc,
			struct takt_boot now)
{
	char command[COMMAND_TEXT];
	bool clean;

	gpu->held[gpu->flight_knob] = gpu->held_before;
	clean = is_clean(gpu);
	if (clean)
		record_clean(keeper, gpu, now);
	if (rc != -EPERM || gpu->wish.knobs == 0) {
		takt_keeper_give_up(gpu);
		return;
	}
	note(gpu, "no permission to set %s; an administrator would run: nvidia-smi -i %.48s %s",
	     gpu->flight_knob == TAKT_KNOB_POWER_LIMIT ? "power limits" : "clocks",
	     gpu->facts->uuid, by_hand(&gpu->flight_at, gpu->flight_knob, command));
	if (clean)
		gpu->denied = true;
	else
		takt_keeper_give_up(gpu);
}

static void set_finished(struct takt_keeper *keeper, struct takt_keeper_gpu *gpu,
			 const struct takt_err *result, struct takt_boot now)
{
	char text[TAKT_SETTING_TEXT];
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
			takt_keeper_give_up(gpu);
		note(gpu, "setting %s failed: %.80s", takt_setting_text(&gpu->flight_at, text),
		     takt_err_sentence(rc));
	}
	settle(gpu, rc, result);
}

/* An order that asked for more than was known to be changed: the board stands where it stood, and
 * so does the cap. */
static void refuse_order(struct takt_keeper *keeper, struct takt_keeper_gpu *gpu,
			 const struct takt_err *result, struct takt_boot now)
{
	char command[COMMAND_TEXT];
	struct takt_err why = *result;

	gpu->forced &= ~TAKT_KNOB_BIT(gpu->flight_knob);
	gpu->held[gpu->flight_knob] = TAKT_HELD_BASELINE;
	if (result->rc == -EPERM)
		(void)snprintf(why.msg, sizeof(why.msg),
			       "no permission; an administrator would run: nvidia-smi -i %.48s %s",
			       gpu->facts->uuid,
			       by_hand(&gpu->flight_at, gpu->flight_knob, command));
	settle(gpu, why.rc, &why);
	if (gpu->flight_knob == TAKT_KNOB_POWER_LIMIT) {
		gpu->cap_mw = gpu->cap_was_mw;
		gpu->cap_owed = false;
	}
	if (is_clean(gpu))
		record_clean(keeper, gpu, now);
}

static void restore_refused(struct takt_keeper *keeper, struct takt_keeper_gpu *gpu,
			    const struct takt_err *result, struct takt_boot now)
{
	uint32_t bit = TAKT_KNOB_BIT(gpu->flight_knob);
	char command[COMMAND_TEXT];

	gpu->silent = answers_not(result->rc);
	if ((gpu->forced & bit) && gpu->held_before == TAKT_HELD_BASELINE && !gpu->silent) {
		refuse_order(keeper, gpu, result, now);
		return;
	}
	if (gpu->failures == 0)
		takt_actuate_say(&keeper->log,
				 "%s: the baseline could not be restored (%s); "
				 "trying again until it can",
				 gpu->facts->uuid, takt_err_sentence(result->rc));
	retry_later(gpu, now);
	note(gpu,
	     "left changed, restoring failed (%s), tried again; by hand: nvidia-smi -i %.48s %s",
	     takt_err_name(result->rc), gpu->facts->uuid,
	     by_hand(&gpu->flight_at, gpu->flight_knob, command));
	settle(gpu, result->rc, result);
}

/* What puts a knob back; one that speaks of no knob lifts a clock's lock. */
static struct takt_setting way_back(const struct takt_keeper *keeper,
				    const struct takt_keeper_gpu *gpu, enum takt_knob knob)
{
	const struct takt_gpu_facts *facts = gpu->facts;
	struct takt_baseline_rule rule = takt_keeper_rule(keeper, gpu);
	struct takt_setting back = {0};

	if (knob == TAKT_KNOB_POWER_LIMIT) {
		back.knobs = TAKT_KNOB_BIT(knob);
		back.power_limit_mw = takt_keeper_base_power(keeper, gpu);
	} else if (knob == TAKT_KNOB_SM_CLOCK && rule.locked) {
		back.knobs = TAKT_KNOB_BIT(knob);
		back.sm = rule.range;
		if (facts->has & TAKT_FACT_SM_CLOCKS)
			(void)takt_clock_range_clamp(facts->sm_clocks_mhz, facts->sm_clock_count,
						     rule.range, &back.sm);
	}
	return back;
}

/* Whether what was put back is still what it is to go back to; an order may have come meanwhile. */
static bool is_way_back(const struct takt_keeper *keeper, const struct takt_keeper_gpu *gpu)
{
	struct takt_setting back = way_back(keeper, gpu, gpu->flight_knob);

	return back.knobs == gpu->flight_at.knobs &&
	       (back.knobs == 0 || takt_setting_same(&back, &gpu->flight_at, gpu->flight_knob));
}

/* A board without such a knob cannot have been left with it changed; one that took a setting of it,
 * or a cap, has it, whatever its driver says later. */
static bool never_had_it(const struct takt_keeper_gpu *gpu, int rc)
{
	bool capped = gpu->flight_knob == TAKT_KNOB_POWER_LIMIT && gpu->cap_was_mw;

	return rc == -TAKT_E_UNSUPPORTED && gpu->held_before != TAKT_HELD_SET && !capped;
}

static void restore_finished(struct takt_keeper *keeper, struct takt_keeper_gpu *gpu,
			     const struct takt_err *result, struct takt_boot now)
{
	if (result->rc == -TAKT_E_STALE) {
		lost_mandate(keeper);
		settle(gpu, result->rc, result);
		return;
	}
	if (result->rc < 0 && !never_had_it(gpu, result->rc)) {
		restore_refused(keeper, gpu, result, now);
		return;
	}
	takt_crash_point("actuate.restore_done");
	gpu->held[gpu->flight_knob] = TAKT_HELD_BASELINE;
	if (result->rc == 0 && gpu->flight_knob == TAKT_KNOB_SM_CLOCK && !gpu->flight_at.knobs)
		gpu->lock = TAKT_LOCK_NONE; /* of whoever it was, it is lifted */
	if (is_way_back(keeper, gpu))
		gpu->forced &= ~TAKT_KNOB_BIT(gpu->flight_knob);
	if (gpu->flight_knob == TAKT_KNOB_POWER_LIMIT)
		gpu->cap_was_mw = gpu->flight_cap_mw;
	gpu->readback_mhz = 0;
	/* The record says more than is changed now, which harms nobody; one that says less would.
	 */
	if (!is_clean(gpu))
		return;
	if (gpu->failures > 0)
		takt_actuate_say(&keeper->log, "%s: the baseline is back", gpu->facts->uuid);
	record_clean(keeper, gpu, now);
	takt_crash_point("actuate.restore_recorded");
	if (next_knob(keeper, gpu) == TAKT_KNOBS && !takt_keeper_is_waiting(keeper, gpu))
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

/* Hands the setter to the GPU's worker; a refusal at this point is an outcome like any other. */
static void post(struct takt_keeper *keeper, struct takt_keeper_gpu *gpu,
		 enum takt_keeper_flight flight, struct takt_set_call call, struct takt_boot now)
{
	struct takt_err err = {0};
	int rc;

	call.gate = takt_mandate_check;
	call.gate_ctx = keeper->mandate;
	gpu->held_before = gpu->held[gpu->flight_knob];
	gpu->held[gpu->flight_knob] = TAKT_HELD_UNKNOWN;
	gpu->flight = flight;
	gpu->posted_at = now;
	rc = takt_machine_set_post(keeper->machine, takt_keeper_index(keeper, gpu), &call, &err);
	if (rc == 0)
		return;
	gpu->flight = TAKT_FLIGHT_NONE;
	if (flight == TAKT_FLIGHT_SET)
		set_finished(keeper, gpu, &err, now);
	else
		restore_finished(keeper, gpu, &err, now);
}

static struct takt_set_call call_of(const struct takt_setting *setting, enum takt_knob knob)
{
	bool mem = knob == TAKT_KNOB_MEM_CLOCK;

	if (knob == TAKT_KNOB_POWER_LIMIT)
		return (struct takt_set_call){.op = TAKT_SET_POWER_LIMIT,
					      .limit_mw = setting->power_limit_mw};
	if (!takt_setting_has(setting, knob))
		return (struct takt_set_call){.op = mem ? TAKT_SET_UNLOCK_MEM : TAKT_SET_UNLOCK_SM};
	return (struct takt_set_call){.op = mem ? TAKT_SET_LOCK_MEM : TAKT_SET_LOCK_SM,
				      .min_mhz = mem ? setting->mem.min_mhz : setting->sm.min_mhz,
				      .max_mhz = mem ? setting->mem.max_mhz : setting->sm.max_mhz};
}

/* A cap that is owed will not be; the one before stays. */
static void drop_cap(const struct takt_keeper *keeper, struct takt_keeper_gpu *gpu)
{
	if (gpu->cap_owed)
		gpu->cap_mw = cap_on_record(keeper, gpu);
	gpu->cap_owed = false;
}

/* The wish is over for the reason in err. */
static void fail_wish(struct takt_keeper_gpu *gpu, const struct takt_err *err)
{
	settle(gpu, err->rc, err);
	takt_keeper_give_up(gpu);
}

/* Asks what the power limit is before it is changed; true when that is known or was asked in vain.
 */
static bool looked_up(struct takt_keeper *keeper, struct takt_keeper_gpu *gpu, struct takt_boot now)
{
	if (gpu->found_mw || gpu->looked)
		return true;
	takt_keeper_read(keeper, gpu, TAKT_READ_LOOK, now);
	return false;
}

static int no_way_back(struct takt_err *err)
{
	return takt_err_set(err, -TAKT_E_UNAVAILABLE,
			    "the power limit could not be read, so it could not be put back");
}

/* Whether it is known what the power limit goes back to, also when nothing is declared any more. If
 * not, it is looked up first; a board that does not say it is not changed. */
static bool knows_way_back(struct takt_keeper *keeper, struct takt_keeper_gpu *gpu,
			   struct takt_boot now)
{
	struct takt_err err;

	if (!looked_up(keeper, gpu, now) || gpu->found_mw)
		return gpu->found_mw;
	no_way_back(&err);
	drop_cap(keeper, gpu);
	gpu->forced &= ~TAKT_KNOB_BIT(TAKT_KNOB_POWER_LIMIT);
	fail_wish(gpu, &err);
	return false;
}

static void begin_set(struct takt_keeper *keeper, struct takt_keeper_gpu *gpu, enum takt_knob knob,
		      struct takt_boot now)
{
	struct takt_setting target;
	struct takt_err err;

	if (!keeper->guarded) {
		if (takt_boot_elapsed_ns(now, gpu->wished_at) < UNGUARDED_NS)
			return;
		takt_err_set(&err, -TAKT_E_UNAVAILABLE,
			     "no guard is running that would restore the clock if takt died");
		fail_wish(gpu, &err);
		return;
	}
	if (takt_setting_has(&gpu->wish, TAKT_KNOB_POWER_LIMIT) &&
	    !knows_way_back(keeper, gpu, now))
		return;
	if (takt_setting_has(&gpu->wish, TAKT_KNOB_MEM_CLOCK) && !gpu->looked) {
		takt_keeper_read(keeper, gpu, TAKT_READ_LOOK, now);
		return;
	}
	if (takt_keeper_must_look(gpu, knob, now)) {
		takt_keeper_read(keeper, gpu, TAKT_READ_LAST, now);
		return;
	}
	takt_crash_point("actuate.set_begin");
	if (write_record(keeper, gpu, TAKT_JOURNAL_CHANGED, &err) < 0) {
		note(gpu, "not set: %.140s", err.msg);
		fail_wish(gpu, &err);
		return;
	}
	takt_crash_point("actuate.set_journaled");
	target = takt_keeper_target(keeper, gpu);
	gpu->flight_knob = knob;
	gpu->flight_at = takt_setting_only(&target, knob);
	post(keeper, gpu, TAKT_FLIGHT_SET, call_of(&target, knob), now);
	takt_crash_point("actuate.set_posted");
}

static void begin_restore(struct takt_keeper *keeper, struct takt_keeper_gpu *gpu,
			  enum takt_knob knob, struct takt_boot now)
{
	takt_crash_point("actuate.restore_begin");
	gpu->flight_knob = knob;
	gpu->flight_at = way_back(keeper, gpu, knob);
	gpu->flight_cap_mw = gpu->cap_mw;
	if (knob == TAKT_KNOB_POWER_LIMIT && !gpu->found_mw) {
		/* No limit was ever set, or the way back would be on record. A declared one is not
		 * in force before it is (begin_rule). */
		gpu->record_owed = gpu->held[knob] != TAKT_HELD_BASELINE;
		gpu->held[knob] = TAKT_HELD_BASELINE;
		gpu->forced &= ~TAKT_KNOB_BIT(knob);
		return;
	}
	post(keeper, gpu, TAKT_FLIGHT_RESTORE, call_of(&gpu->flight_at, knob), now);
}

/* A cap outlives this process, so it is on disk before the board is told. */
static void begin_cap(struct takt_keeper *keeper, struct takt_keeper_gpu *gpu, struct takt_boot now)
{
	struct takt_err err;

	if (!knows_way_back(keeper, gpu, now))
		return;
	gpu->cap_owed = false;
	if (write_record(keeper, gpu, TAKT_JOURNAL_CHANGED, &err) == 0)
		return;
	gpu->cap_mw = cap_on_record(keeper, gpu);
	gpu->forced &= ~TAKT_KNOB_BIT(TAKT_KNOB_POWER_LIMIT);
	note(gpu, "the cap is not set: %.120s", err.msg);
	settle(gpu, err.rc, &err);
}

/* From here on whoever finds this GPU in the journal brings it to what is declared. The power limit
 * that a declared one takes the place of is looked up first, for the day when it goes back. */
static void begin_rule(struct takt_keeper *keeper, struct takt_keeper_gpu *gpu,
		       struct takt_boot now)
{
	bool power = takt_keeper_rule(keeper, gpu).power_limit_mw;
	struct takt_err err;

	if (power && !looked_up(keeper, gpu, now))
		return;
	gpu->rule_owed = false;
	if (power && !gpu->found_mw) {
		gpu->forced &= ~TAKT_KNOB_BIT(TAKT_KNOB_POWER_LIMIT);
		settle(gpu, no_way_back(&err), &err);
	}
	if (write_record(keeper, gpu, is_clean(gpu) ? TAKT_JOURNAL_CLEAN : TAKT_JOURNAL_CHANGED,
			 &err) == 0)
		return;
	drop_cap(keeper, gpu);
	for (enum takt_knob knob = 0; knob < TAKT_KNOBS; knob++)
		if (gpu->held[knob] == TAKT_HELD_BASELINE)
			gpu->forced &= ~TAKT_KNOB_BIT(knob);
	note(gpu, "not put in force: %.130s", err.msg);
	settle(gpu, err.rc, &err);
}

/* The next thing to do towards the wish. */
static void begin(struct takt_keeper *keeper, struct takt_keeper_gpu *gpu, struct takt_boot now)
{
	enum takt_knob knob = next_knob(keeper, gpu);
	struct takt_setting target = takt_keeper_target(keeper, gpu);

	if (gpu->rule_owed)
		begin_rule(keeper, gpu, now);
	else if (gpu->cap_owed)
		begin_cap(keeper, gpu, now);
	else if (knob == TAKT_KNOBS)
		record_clean(keeper, gpu, now);
	else if (takt_setting_has(&target, knob))
		begin_set(keeper, gpu, knob, now);
	else
		begin_restore(keeper, gpu, knob, now);
}

/* True when something was begun or finished, so that another look is worth it. */
static bool advance(struct takt_keeper *keeper, struct takt_keeper_gpu *gpu, struct takt_boot now)
{
	if (!collect_flight(keeper, gpu, now) || !takt_keeper_collect_read(keeper, gpu, now))
		return false;
	if (takt_keeper_at_wish(keeper, gpu)) {
		if (!takt_keeper_is_waiting(keeper, gpu))
			settle(gpu, 0, NULL);
		else if (takt_keeper_probe(keeper, gpu, now))
			return true;
		if (!takt_keeper_check_due(gpu, now))
			return false;
		takt_keeper_read(keeper, gpu, TAKT_READ_CHECK, now);
		return true;
	}
	if (keeper->stale || now.ns < gpu->next.ns || takt_keeper_mig_flies(&gpu->mig) ||
	    (gpu->wish.knobs && gpu->denied))
		return false;
	if (takt_mandate_check(keeper->mandate) < 0) {
		lost_mandate(keeper);
		return false;
	}
	begin(keeper, gpu, now);
	return true;
}

/* Of a GPU at its wish: when it is looked at for what is set, or for what waits to be. */
static struct takt_boot next_look(const struct takt_keeper *keeper,
				  const struct takt_keeper_gpu *gpu)
{
	struct takt_boot next = {UINT64_MAX};

	if (takt_keeper_is_waiting(keeper, gpu))
		next = gpu->probe_at;
	if (gpu->wish.knobs && !takt_keeper_at_baseline(gpu) && gpu->check_at.ns < next.ns)
		next = gpu->check_at;
	return next;
}

/* When this GPU needs a look even if nothing finishes. */
static struct takt_boot due(const struct takt_keeper *keeper, const struct takt_keeper_gpu *gpu)
{
	if (gpu->flight != TAKT_FLIGHT_NONE && !gpu->overdue)
		return takt_boot_add(gpu->posted_at, keeper->call_deadline_ns);
	if (gpu->reading != TAKT_READ_NONE)
		return gpu->read_until;
	if (gpu->flight != TAKT_FLIGHT_NONE || (gpu->wish.knobs && gpu->denied))
		return (struct takt_boot){UINT64_MAX};
	if (takt_keeper_at_wish(keeper, gpu))
		return next_look(keeper, gpu);
	if (gpu->wish.knobs && !keeper->guarded)
		return takt_boot_add(gpu->wished_at, UNGUARDED_NS);
	return gpu->next;
}

struct takt_boot takt_keeper_step(struct takt_keeper *keeper, struct takt_boot now)
{
	struct takt_boot next = takt_keeper_cpu_step(keeper, now), at;

	for (uint32_t i = 0; i < keeper->gpu_count; i++) {
		struct takt_keeper_gpu *gpu = &keeper->gpus[i];

		takt_keeper_mig_step(keeper, gpu, now);
		for (int looks = 0; looks < LOOKS && advance(keeper, gpu, now); looks++)
			;
		at = takt_keeper_mig_due(keeper, gpu);
		if (at.ns < next.ns)
			next = at;
		at = due(keeper, gpu);
		if (at.ns < next.ns)
			next = at;
	}
	return next;
}
