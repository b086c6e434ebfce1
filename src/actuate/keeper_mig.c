/* SPDX-License-Identifier: Apache-2.0 */
/* As for clocks: on disk before it is done, "as found" on disk after it is so again. */
#include "actuate/keeper_mig.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "actuate/actuate_log.h"
#include "actuate/keeper_impl.h"
#include "base/str.h"
#include "device/device_set.h"

#define UNGUARDED_NS (2 * TAKT_NS_PER_S)
#define NEVER	     ((struct takt_boot){UINT64_MAX})

/* Instances are made in seconds, not milliseconds. */
static uint64_t deadline_ns(const struct takt_keeper *keeper)
{
	return 15 * keeper->call_deadline_ns;
}

bool takt_keeper_mig_flies(const struct takt_keeper_mig *mig)
{
	return mig->step == TAKT_MIG_SETTING || mig->step == TAKT_MIG_RESTORING;
}

bool takt_keeper_mig_to_be_put_back(const struct takt_keeper_mig *mig)
{
	return !mig->wish[0] && (mig->changed || mig->owed);
}

/* What it is put back to; "" = nothing is known. */
static const char *way_back(const struct takt_keeper *keeper, const struct takt_keeper_gpu *gpu)
{
	const char *declared =
		keeper->baseline ? takt_baseline_mig_of(keeper->baseline, gpu->facts->uuid) : "";

	return declared[0] ? declared : gpu->mig.found;
}

static void settle(struct takt_keeper_mig *mig, int rc, const struct takt_err *why)
{
	if (mig->settled)
		return;
	mig->settled = true;
	mig->outcome = rc < 0 ? *why : (struct takt_err){0};
	mig->outcome.rc = rc;
}

static void retry_later(struct takt_keeper_mig *mig, struct takt_boot now)
{
	mig->next = takt_boot_add(now, takt_pace_ns(&takt_keeper_pace, mig->failures++));
}

static int write_record(struct takt_keeper *keeper, const struct takt_keeper_gpu *gpu,
			enum takt_journal_state state, struct takt_err *err)
{
	struct takt_journal_record record = {
		.state = state,
		.epoch = keeper->mandate->mine.epoch,
	};

	if (takt_mandate_check(keeper->mandate) < 0) {
		keeper->stale = true;
		return takt_err_set(err, -TAKT_E_STALE, "another process has the journal");
	}
	(void)snprintf(record.uuid, sizeof(record.uuid), TAKT_MIG_UUID "%.80s", gpu->facts->uuid);
	takt_strcpy(record.mig, sizeof(record.mig), way_back(keeper, gpu));
	takt_strcpy(record.boot_id, sizeof(record.boot_id), keeper->boot_id);
	takt_strcpy(record.driver_load, sizeof(record.driver_load), keeper->driver_load);
	return takt_journal_record(keeper->journal, &record, err);
}

/* What an administrator would run in takt's place. */
static void name_commands(const struct takt_keeper_gpu *gpu, const char *layout,
			  struct takt_err *err)
{
	takt_err_set(err, -EPERM,
		     "no permission to cut GPUs; an administrator would run, with -i %.48s: "
		     "nvidia-smi mig -dci; nvidia-smi mig -dgi%s%s%s",
		     gpu->facts->uuid, strcmp(layout, "none") ? "; nvidia-smi mig -cgi " : "",
		     strcmp(layout, "none") ? layout : "", strcmp(layout, "none") ? " -C" : "");
}

/* The GPU is as it was before the call, for certain. */
static bool did_nothing(int rc)
{
	return rc == -EPERM || rc == -EINVAL || rc == -TAKT_E_UNSUPPORTED || rc == -TAKT_E_BUSY ||
	       rc == -TAKT_E_STALE;
}

static void mark_clean(struct takt_keeper *keeper, struct takt_keeper_gpu *gpu,
		       struct takt_boot now)
{
	struct takt_keeper_mig *mig = &gpu->mig;
	struct takt_err err = {0};

	if (mig->changed && write_record(keeper, gpu, TAKT_JOURNAL_CLEAN, &err) < 0) {
		takt_keeper_note(mig, "MIG layout put back, but not in the journal: %.90s",
				 err.msg);
		retry_later(mig, now);
		settle(mig, err.rc, &err);
		return;
	}
	mig->changed = mig->owed = false;
	mig->failures = 0;
	mig->found[0] = mig->stands[0] = mig->note[0] = '\0';
	settle(mig, 0, NULL);
}

static void give_up_wish(struct takt_keeper *keeper, struct takt_keeper_gpu *gpu,
			 struct takt_err *why, struct takt_boot now)
{
	struct takt_keeper_mig *mig = &gpu->mig;

	if (why->rc == -EPERM)
		name_commands(gpu, mig->wish, why);
	settle(mig, why->rc, why);
	if (!did_nothing(why->rc))
		mig->stands[0] = '\0';
	takt_strcpy(mig->wish, sizeof(mig->wish), mig->stands);
	if (did_nothing(why->rc) && !mig->wish[0] && !mig->was_changed && !keeper->stale)
		mark_clean(keeper, gpu, now);
}

static void set_finished(struct takt_keeper *keeper, struct takt_keeper_gpu *gpu,
			 struct takt_err *result, struct takt_boot now)
{
	struct takt_keeper_mig *mig = &gpu->mig;

	takt_crash_point("actuate.mig_set");
	if (result->rc < 0) {
		give_up_wish(keeper, gpu, result, now);
		return;
	}
	takt_strcpy(mig->stands, sizeof(mig->stands), mig->wish);
	mig->note[0] = '\0';
	settle(mig, 0, NULL);
}

static void restore_finished(struct takt_keeper *keeper, struct takt_keeper_gpu *gpu,
			     struct takt_err *result, struct takt_boot now)
{
	struct takt_keeper_mig *mig = &gpu->mig;

	takt_crash_point("actuate.mig_restored");
	if (result->rc == 0) {
		mark_clean(keeper, gpu, now);
		return;
	}
	mig->stands[0] = '\0';
	if (mig->failures == 0)
		takt_actuate_say(&keeper->log,
				 "%s: its MIG layout could not be put back (%s); trying again "
				 "until it can",
				 gpu->facts->uuid, result->msg);
	retry_later(mig, now);
	takt_keeper_note(mig, "MIG layout left changed, tried again until it is %.32s: %.60s",
			 way_back(keeper, gpu), result->msg);
	if (result->rc == -EPERM)
		name_commands(gpu, way_back(keeper, gpu), result);
	settle(mig, result->rc, result);
}

static void post(struct takt_keeper *keeper, struct takt_keeper_gpu *gpu,
		 enum takt_keeper_mig_step step, const char *layout, struct takt_boot now)
{
	struct takt_set_call call = {
		.op = TAKT_SET_MIG, .gate = takt_mandate_check, .gate_ctx = keeper->mandate};
	struct takt_err err = {0};
	int rc;

	takt_strcpy(call.mig, sizeof(call.mig), layout);
	rc = takt_machine_set_post(keeper->machine, takt_keeper_index(keeper, gpu), &call, &err);
	if (rc == 0) {
		gpu->mig.step = step;
		gpu->mig.since = now;
		gpu->mig.overdue = false;
	} else if (step == TAKT_MIG_SETTING) {
		set_finished(keeper, gpu, &err, now);
	} else {
		restore_finished(keeper, gpu, &err, now);
	}
}

static bool wants_set(const struct takt_keeper_mig *mig)
{
	return mig->wish[0] && (!mig->settled || strcmp(mig->wish, mig->stands) != 0);
}

static void refuse_wish(struct takt_keeper_mig *mig, const struct takt_err *why)
{
	settle(mig, why->rc, why);
	takt_strcpy(mig->wish, sizeof(mig->wish), mig->stands);
}

/* The way back is on disk, then the driver is called. */
static void begin_set(struct takt_keeper *keeper, struct takt_keeper_gpu *gpu, struct takt_boot now)
{
	struct takt_keeper_mig *mig = &gpu->mig;
	struct takt_err err = {0};
	int rc = 0;

	if (!way_back(keeper, gpu)[0])
		rc = takt_err_set(&err, -TAKT_E_UNAVAILABLE,
				  "how it is cut could not be read, so it could not be put back");
	takt_crash_point("actuate.mig_begin");
	if (rc == 0)
		rc = write_record(keeper, gpu, TAKT_JOURNAL_CHANGED, &err);
	if (rc < 0) {
		refuse_wish(mig, &err);
		return;
	}
	mig->was_changed = mig->changed;
	mig->changed = true;
	takt_crash_point("actuate.mig_journaled");
	post(keeper, gpu, TAKT_MIG_SETTING, mig->wish, now);
	takt_crash_point("actuate.mig_posted");
}

static void begin_restore(struct takt_keeper *keeper, struct takt_keeper_gpu *gpu,
			  struct takt_boot now)
{
	struct takt_keeper_mig *mig = &gpu->mig;
	struct takt_err err = {0};

	takt_crash_point("actuate.mig_restore");
	/* What is declared is journalled too: from here on whoever finds this goes on. */
	if (write_record(keeper, gpu, TAKT_JOURNAL_CHANGED, &err) < 0) {
		retry_later(mig, now);
		settle(mig, err.rc, &err);
		return;
	}
	mig->changed = true;
	post(keeper, gpu, TAKT_MIG_RESTORING, way_back(keeper, gpu), now);
}

static void begin_change(struct takt_keeper *keeper, struct takt_keeper_gpu *gpu,
			 struct takt_boot now)
{
	struct takt_keeper_mig *mig = &gpu->mig;

	mig->step = TAKT_MIG_IDLE;
	if (!mig->changed)
		takt_strcpy(mig->found, sizeof(mig->found), gpu->facts->mig_layout);
	if (wants_set(mig))
		begin_set(keeper, gpu, now);
	else if (takt_keeper_mig_to_be_put_back(mig))
		begin_restore(keeper, gpu, now);
}

/* Nothing is changed before it is known how it was. */
static void look_first(struct takt_keeper *keeper, struct takt_keeper_gpu *gpu,
		       struct takt_boot now)
{
	struct takt_keeper_mig *mig = &gpu->mig;

	if (mig->changed) {
		begin_change(keeper, gpu, now);
		return;
	}
	mig->step = TAKT_MIG_LOOKING;
	mig->since = now;
	mig->overdue = false;
	takt_machine_look_at_mig(keeper->machine, takt_keeper_index(keeper, gpu));
}

/* False while one may still come, and where none has. */
static bool has_guard(const struct takt_keeper *keeper, struct takt_keeper_mig *mig,
		      struct takt_boot now)
{
	struct takt_err err;

	if (keeper->guarded || takt_boot_elapsed_ns(now, mig->since) < UNGUARDED_NS)
		return keeper->guarded;
	takt_err_set(&err, -TAKT_E_UNAVAILABLE,
		     "no guard is running that would put it back if takt died");
	refuse_wish(mig, &err);
	return false;
}

/* False while something is awaited. */
static bool collect(struct takt_keeper *keeper, struct takt_keeper_gpu *gpu, struct takt_boot now)
{
	struct takt_keeper_mig *mig = &gpu->mig;
	uint32_t index = takt_keeper_index(keeper, gpu);
	struct takt_err result = {0};
	enum takt_keeper_mig_step step = mig->step;

	if (step == TAKT_MIG_IDLE)
		return true;
	if (step == TAKT_MIG_LOOKING && takt_machine_seen_mig(keeper->machine, index)) {
		begin_change(keeper, gpu, now);
		return mig->step == TAKT_MIG_IDLE;
	}
	if (step != TAKT_MIG_LOOKING &&
	    takt_machine_set_finished(keeper->machine, index, &result)) {
		mig->step = TAKT_MIG_IDLE;
		if (step == TAKT_MIG_SETTING)
			set_finished(keeper, gpu, &result, now);
		else
			restore_finished(keeper, gpu, &result, now);
		return true;
	}
	if (!mig->overdue && takt_boot_elapsed_ns(now, mig->since) >= deadline_ns(keeper)) {
		mig->overdue = true;
		takt_err_set(&result, -ETIMEDOUT, "the driver has not answered about MIG");
		if (step == TAKT_MIG_LOOKING) /* nothing was done, and will not be */
			refuse_wish(mig, &result);
		else
			settle(mig, result.rc, &result);
	}
	return false;
}

void takt_keeper_mig_step(struct takt_keeper *keeper, struct takt_keeper_gpu *gpu,
			  struct takt_boot now)
{
	struct takt_keeper_mig *mig = &gpu->mig;

	if (!collect(keeper, gpu, now) || keeper->stale || gpu->flight != TAKT_FLIGHT_NONE ||
	    now.ns < mig->next.ns)
		return;
	if (wants_set(mig) ? has_guard(keeper, mig, now) : takt_keeper_mig_to_be_put_back(mig))
		look_first(keeper, gpu, now);
	if (mig->step != TAKT_MIG_IDLE) /* it may have answered at once */
		(void)collect(keeper, gpu, now);
	if (takt_keeper_mig_flies(mig))
		(void)collect(keeper, gpu, now);
}

struct takt_boot takt_keeper_mig_due(const struct takt_keeper *keeper,
				     const struct takt_keeper_gpu *gpu)
{
	const struct takt_keeper_mig *mig = &gpu->mig;

	if (mig->step != TAKT_MIG_IDLE)
		return mig->overdue ? NEVER : takt_boot_add(mig->since, deadline_ns(keeper));
	if (wants_set(mig))
		return keeper->guarded ? mig->next : takt_boot_add(mig->since, UNGUARDED_NS);
	return takt_keeper_mig_to_be_put_back(mig) ? mig->next : NEVER;
}

int takt_keeper_mig_may(const struct takt_keeper *keeper, uint32_t gpu, struct takt_err *err)
{
	const struct takt_gpu_facts *facts = keeper->gpus[gpu].facts;

	if (!takt_machine_info(keeper->machine)->can_set)
		return takt_err_set(err, -TAKT_E_UNSUPPORTED, "this source of GPUs has no setters");
	if (!(facts->has & TAKT_FACT_MIG))
		return takt_err_set(err, -TAKT_E_UNSUPPORTED, "%s has no MIG", facts->uuid);
	if (!facts->mig_enabled)
		return takt_err_set(err, -TAKT_E_UNSUPPORTED,
				    "MIG mode of %.48s is off; an administrator would run: "
				    "nvidia-smi -i %.48s -mig 1, and start takt again",
				    facts->uuid, facts->uuid);
	return 0;
}

int takt_keeper_mig_set(struct takt_keeper *keeper, uint32_t gpu_index, const char *layout,
			struct takt_boot now, struct takt_err *err)
{
	struct takt_keeper_gpu *gpu = &keeper->gpus[gpu_index];
	struct takt_keeper_mig *mig = &gpu->mig;
	struct takt_mig_layout parsed;
	int rc = takt_keeper_mig_may(keeper, gpu_index, err);

	if (rc == 0 && mig->step != TAKT_MIG_IDLE)
		rc = takt_err_set(err, -TAKT_E_BUSY, "a change of its MIG layout is under way");
	if (rc == 0 && layout[0])
		rc = takt_mig_layout_parse(layout, &parsed, err);
	if (rc < 0)
		return rc;
	takt_strcpy(mig->wish, sizeof(mig->wish), layout);
	mig->owed = !layout[0] && way_back(keeper, gpu)[0];
	mig->since = now;
	mig->next = (struct takt_boot){0};
	mig->failures = 0;
	mig->settled = false;
	if (!layout[0] && !takt_keeper_mig_to_be_put_back(mig))
		settle(mig, 0, NULL);
	return 0;
}

void takt_keeper_mig_end(struct takt_keeper *keeper, uint32_t gpu_index, struct takt_boot now)
{
	struct takt_keeper_mig *mig = &keeper->gpus[gpu_index].mig;

	if (!mig->wish[0])
		return;
	mig->wish[0] = mig->stands[0] = '\0';
	mig->next = now;
	mig->failures = 0;
}

void takt_keeper_mig_declare(struct takt_keeper *keeper, uint32_t gpu_index, struct takt_boot now)
{
	struct takt_keeper_gpu *gpu = &keeper->gpus[gpu_index];
	struct takt_keeper_mig *mig = &gpu->mig;
	const char *declared = takt_baseline_mig_of(keeper->baseline, gpu->facts->uuid);

	mig->owed = declared[0] != '\0' && gpu->facts->mig_enabled;
	if (mig->wish[0] || !takt_keeper_mig_to_be_put_back(mig))
		return;
	mig->since = now;
	mig->next = (struct takt_boot){0};
	mig->failures = 0;
	mig->settled = false;
}

int takt_keeper_mig_recover(struct takt_keeper *keeper, const struct takt_journal_record *old,
			    struct takt_boot now, struct takt_err *err)
{
	int index = takt_keeper_find(keeper, old->uuid + strlen(TAKT_MIG_UUID));
	struct takt_journal_record record = *old;
	bool gone = takt_boot_differs(old->boot_id, keeper->boot_id);

	if (old->state != TAKT_JOURNAL_CHANGED)
		return 0;
	if (!gone && index < 0) {
		keeper->unseen++;
		return 0;
	}
	if (gone || takt_driver_load_differs(old->driver_load, keeper->driver_load)) {
		takt_actuate_say(&keeper->log, "%s: the change went with the %s", old->uuid,
				 gone ? "reboot" : "reload of the driver");
		record.state = TAKT_JOURNAL_CLEAN;
		record.epoch = keeper->mandate->mine.epoch;
		return takt_journal_record(keeper->journal, &record, err);
	}
	takt_actuate_say(&keeper->log, "%s: was left changed; putting it back", old->uuid);
	keeper->gpus[index].mig.changed = true;
	keeper->gpus[index].mig.next = now;
	takt_strcpy(keeper->gpus[index].mig.found, TAKT_MIG_TEXT, old->mig);
	return 0;
}
