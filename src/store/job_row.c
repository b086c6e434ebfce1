/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job as a row and back. Insert, update and select name the columns in one order, so that column
 * i of a row is parameter i + 1 of a change.
 *
 * Absence is NULL: times that have not come, report values without their valid bit. Unsigned 64-bit
 * values that are never compared in SQL are stored bit for bit as SQLite's signed ones.
 */
#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "store/store_impl.h"

enum column {
	COL_ID,
	COL_STATE,
	COL_ATTEMPT,
	COL_GPU_MASK,
	COL_SUBMITTED,
	COL_STARTED,
	COL_ENDED,
	COL_EXIT_CODE,
	COL_EXIT_SIGNAL,
	COL_MESSAGE,
	COL_CANCEL_WANTED,
	COL_SIMULATED,
	COL_WALL,
	COL_ENERGY,
	COL_ENERGY_WHY_NOT,
	COL_MEAN_SM,
	COL_THROTTLED,
	COL_THROTTLE_REASONS,
	COL_PEAK_MEMORY,
	COL_HELD,
	COL_PRIORITY,
	COL_TIMED_OUT,
	COL_RESTARTS,
	COL_FAILURES,
	COL_RETRY_AT,
	COL_MEAN_UTIL,
	COL_IDLE,
	COL_SHARE,
	COL_MEM_HELD,
	COL_MIG,
	COL_MPS_LIMITED,
	COL_PREEMPTIONS,
	COL_FROZEN,
	COL_LOST,
	COL_STAGED,
	COL_EVICT,
	COL_EVICT_FOR,
	COL_EVICT_AT,
	COL_CHECKPOINT,
	COL_GAP_DRIVER,
	COL_GAP_SCHEDULER,
	COL_GAP_START,
	COL_GOVERNOR,
	COL_SIGNAL,
	COL_GOVERNED,
	COL_HIGHEST,
	COL_HIGHEST_ERROR,
	COL_SLOWDOWN,
	COL_SLOWDOWN_ERROR,
	COL_MAX_SLOWDOWN,
	COL_CLOCK_POLICY,
	COL_SM_SPREAD,
	COL_GPU_UUIDS,
	COL_CAUSE,
	COL_CAUSE_GPU,
	COL_CAUSE_XID,
	COL_CAUSE_AT,
	COL_TIME_LIMIT,
	COL_SUBMIT_SEQ,
	COL_UID,
	COL_GID,
	COL_ENV_OF,
	COL_JSON,
	COL_ENV,
};

const char takt_sql_insert_job[] =
	"INSERT INTO job(id, " TAKT_SQL_JOB_COLUMNS ", submit_seq, uid, gid, env_of) "
	"VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, "
	"?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32, ?33, ?34, ?35, "
	"?36, ?37, ?38, ?39, ?40, ?41, ?42, ?43, ?44, ?45, ?46, ?47, ?48, ?49, ?50, ?51, ?52, "
	"?53, ?54, ?55, ?56, ?57, ?58, ?59, ?60, ?61, ?62)";
const char takt_sql_update_job[] =
	"UPDATE job SET (" TAKT_SQL_JOB_COLUMNS ") = ("
	"?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, "
	"?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32, ?33, ?34, ?35, ?36, ?37, "
	"?38, ?39, ?40, ?41, ?42, ?43, ?44, ?45, ?46, ?47, ?48, ?49, ?50, ?51, ?52, ?53, ?54, ?55, "
	"?56, ?57, ?58) WHERE id = ?1";

static void bind_int(sqlite3_stmt *stmt, enum column col, int64_t value)
{
	sqlite3_bind_int64(stmt, (int)col + 1, value);
}

static void bind_u64(sqlite3_stmt *stmt, enum column col, uint64_t value)
{
	bind_int(stmt, col, (int64_t)value);
}

static void bind_text(sqlite3_stmt *stmt, enum column col, const char *text)
{
	sqlite3_bind_text(stmt, (int)col + 1, text ? text : "", -1, SQLITE_STATIC);
}

static void bind_if(sqlite3_stmt *stmt, enum column col, bool there, uint64_t value)
{
	if (there)
		bind_u64(stmt, col, value);
	else
		sqlite3_bind_null(stmt, (int)col + 1);
}

static void bind_saved(sqlite3_stmt *stmt, const struct takt_job_report *report)
{
	bool saved = report->has & TAKT_REPORT_SAVED;

	bind_text(stmt, COL_GOVERNOR, report->governor);
	bind_if(stmt, COL_SIGNAL, saved, report->work_signal);
	bind_if(stmt, COL_GOVERNED, saved, report->governed_mj);
	bind_if(stmt, COL_HIGHEST, saved, report->highest_mj);
	bind_if(stmt, COL_HIGHEST_ERROR, saved, report->highest_error_permille);
	bind_if(stmt, COL_SLOWDOWN, saved, (uint64_t)(int64_t)report->slowdown_permille);
	bind_if(stmt, COL_SLOWDOWN_ERROR, saved, report->slowdown_error_permille);
}

static void bind_promise(sqlite3_stmt *stmt, const struct takt_job_promise *promise)
{
	bind_if(stmt, COL_MAX_SLOWDOWN, promise->changed, promise->max_slowdown_permille);
	if (promise->changed)
		bind_text(stmt, COL_CLOCK_POLICY, promise->clock_policy);
	else
		sqlite3_bind_null(stmt, COL_CLOCK_POLICY + 1);
}

static void bind_cause(sqlite3_stmt *stmt, const struct takt_job_cause *cause)
{
	bind_text(stmt, COL_CAUSE, takt_cause_name(cause->cause));
	bind_if(stmt, COL_CAUSE_GPU, cause->cause && cause->gpu >= 0, (uint64_t)cause->gpu);
	bind_if(stmt, COL_CAUSE_XID, cause->xid != 0, cause->xid);
	bind_if(stmt, COL_CAUSE_AT, cause->at.ns != 0, (uint64_t)cause->at.ns);
}

static void bind_report(sqlite3_stmt *stmt, const struct takt_job_report *report)
{
	uint32_t has = report->has;

	bind_int(stmt, COL_SIMULATED, report->simulated);
	bind_if(stmt, COL_WALL, has & TAKT_REPORT_WALL, report->wall_ns);
	bind_if(stmt, COL_ENERGY, has & TAKT_REPORT_ENERGY, report->energy_mj);
	bind_text(stmt, COL_ENERGY_WHY_NOT, report->energy_why_not);
	bind_if(stmt, COL_MEAN_SM, has & TAKT_REPORT_MEAN_SM, report->mean_sm_mhz);
	bind_if(stmt, COL_SM_SPREAD, has & TAKT_REPORT_SM_SPREAD, report->sm_spread_mhz);
	bind_if(stmt, COL_THROTTLED, has & TAKT_REPORT_THROTTLED, report->throttled_ns);
	bind_if(stmt, COL_THROTTLE_REASONS, has & TAKT_REPORT_THROTTLED, report->throttle_reasons);
	bind_if(stmt, COL_PEAK_MEMORY, has & TAKT_REPORT_PEAK_MEMORY, report->peak_memory_bytes);
	bind_if(stmt, COL_MEAN_UTIL, has & TAKT_REPORT_UTIL, report->mean_util_permille);
	bind_if(stmt, COL_IDLE, has & TAKT_REPORT_UTIL, report->idle_ns);
	bind_if(stmt, COL_GAP_DRIVER, has & TAKT_REPORT_HANDOVER, report->gap_driver_ns);
	bind_if(stmt, COL_GAP_SCHEDULER, has & TAKT_REPORT_HANDOVER, report->gap_scheduler_ns);
	bind_if(stmt, COL_GAP_START, has & TAKT_REPORT_HANDOVER, report->gap_start_ns);
	bind_saved(stmt, report);
}

void takt_job_bind(sqlite3_stmt *stmt, const struct takt_job *job, bool whole)
{
	bind_u64(stmt, COL_ID, job->id);
	bind_text(stmt, COL_STATE, takt_job_state_name(job->state));
	bind_int(stmt, COL_ATTEMPT, job->attempt);
	bind_u64(stmt, COL_GPU_MASK, job->gpu_mask);
	bind_if(stmt, COL_SUBMITTED, job->submitted.ns != 0, (uint64_t)job->submitted.ns);
	bind_if(stmt, COL_STARTED, job->started.ns != 0, (uint64_t)job->started.ns);
	bind_if(stmt, COL_ENDED, job->ended.ns != 0, (uint64_t)job->ended.ns);
	bind_int(stmt, COL_EXIT_CODE, job->exit_code);
	bind_int(stmt, COL_EXIT_SIGNAL, job->exit_signal);
	bind_text(stmt, COL_MESSAGE, job->message);
	bind_int(stmt, COL_CANCEL_WANTED, job->cancel_wanted);
	bind_report(stmt, &job->report);
	bind_promise(stmt, &job->promise);
	bind_if(stmt, COL_TIME_LIMIT, job->limit.changed, job->limit.time_ms);
	bind_cause(stmt, &job->cause);
	bind_int(stmt, COL_HELD, job->held);
	bind_int(stmt, COL_PRIORITY, job->priority);
	bind_int(stmt, COL_TIMED_OUT, job->timed_out);
	bind_int(stmt, COL_RESTARTS, job->restarts);
	bind_int(stmt, COL_FAILURES, job->failures);
	bind_if(stmt, COL_RETRY_AT, job->retry_at.ns != 0, (uint64_t)job->retry_at.ns);
	bind_int(stmt, COL_SHARE, job->share_milli);
	bind_int(stmt, COL_MEM_HELD, job->mem_held_mib);
	bind_text(stmt, COL_MIG, job->mig);
	bind_text(stmt, COL_GPU_UUIDS, job->gpu_uuids);
	bind_int(stmt, COL_MPS_LIMITED, job->mps_limited);
	bind_int(stmt, COL_PREEMPTIONS, job->preemptions);
	bind_int(stmt, COL_FROZEN, job->frozen);
	bind_u64(stmt, COL_LOST, job->stood_ns);
	bind_int(stmt, COL_STAGED, job->staged);
	bind_int(stmt, COL_EVICT, job->evict);
	bind_u64(stmt, COL_EVICT_FOR, job->evict_for);
	bind_if(stmt, COL_EVICT_AT, job->evict_at.ns != 0, (uint64_t)job->evict_at.ns);
	bind_if(stmt, COL_CHECKPOINT, job->checkpoint_at.ns != 0, (uint64_t)job->checkpoint_at.ns);
	if (!whole)
		return;
	bind_u64(stmt, COL_SUBMIT_SEQ, job->submit_seq);
	bind_int(stmt, COL_UID, job->uid);
	bind_int(stmt, COL_GID, job->gid);
	bind_if(stmt, COL_ENV_OF, job->env_of != 0, job->env_of);
}

static int64_t get_int(sqlite3_stmt *stmt, enum column col)
{
	return sqlite3_column_int64(stmt, (int)col); /* 0 for NULL */
}

static uint64_t get_if(sqlite3_stmt *stmt, enum column col, uint32_t bit, uint32_t *has)
{
	if (sqlite3_column_type(stmt, (int)col) == SQLITE_NULL)
		return 0;
	*has |= bit;
	return (uint64_t)get_int(stmt, col);
}

static void read_saved(sqlite3_stmt *stmt, struct takt_job_report *ret)
{
	const char *governor = (const char *)sqlite3_column_text(stmt, COL_GOVERNOR);
	uint32_t *has = &ret->has;

	takt_strcpy(ret->governor, sizeof(ret->governor), governor ? governor : "");
	ret->work_signal = (uint32_t)get_if(stmt, COL_SIGNAL, TAKT_REPORT_SAVED, has);
	ret->governed_mj = get_if(stmt, COL_GOVERNED, TAKT_REPORT_SAVED, has);
	ret->highest_mj = get_if(stmt, COL_HIGHEST, TAKT_REPORT_SAVED, has);
	ret->highest_error_permille =
		(uint32_t)get_if(stmt, COL_HIGHEST_ERROR, TAKT_REPORT_SAVED, has);
	ret->slowdown_permille = (int32_t)get_if(stmt, COL_SLOWDOWN, TAKT_REPORT_SAVED, has);
	ret->slowdown_error_permille =
		(uint32_t)get_if(stmt, COL_SLOWDOWN_ERROR, TAKT_REPORT_SAVED, has);
}

static void read_report(sqlite3_stmt *stmt, struct takt_job_report *ret)
{
	const char *why = (const char *)sqlite3_column_text(stmt, COL_ENERGY_WHY_NOT);

	ret->simulated = get_int(stmt, COL_SIMULATED) != 0;
	ret->wall_ns = get_if(stmt, COL_WALL, TAKT_REPORT_WALL, &ret->has);
	ret->energy_mj = get_if(stmt, COL_ENERGY, TAKT_REPORT_ENERGY, &ret->has);
	takt_strcpy(ret->energy_why_not, sizeof(ret->energy_why_not), why ? why : "");
	ret->mean_sm_mhz = (uint32_t)get_if(stmt, COL_MEAN_SM, TAKT_REPORT_MEAN_SM, &ret->has);
	ret->sm_spread_mhz =
		(uint32_t)get_if(stmt, COL_SM_SPREAD, TAKT_REPORT_SM_SPREAD, &ret->has);
	ret->throttled_ns = get_if(stmt, COL_THROTTLED, TAKT_REPORT_THROTTLED, &ret->has);
	ret->throttle_reasons = (uint64_t)get_int(stmt, COL_THROTTLE_REASONS);
	ret->peak_memory_bytes = get_if(stmt, COL_PEAK_MEMORY, TAKT_REPORT_PEAK_MEMORY, &ret->has);
	ret->mean_util_permille =
		(uint32_t)get_if(stmt, COL_MEAN_UTIL, TAKT_REPORT_UTIL, &ret->has);
	ret->idle_ns = get_if(stmt, COL_IDLE, TAKT_REPORT_UTIL, &ret->has);
	ret->gap_driver_ns = get_if(stmt, COL_GAP_DRIVER, TAKT_REPORT_HANDOVER, &ret->has);
	ret->gap_scheduler_ns = get_if(stmt, COL_GAP_SCHEDULER, TAKT_REPORT_HANDOVER, &ret->has);
	ret->gap_start_ns = get_if(stmt, COL_GAP_START, TAKT_REPORT_HANDOVER, &ret->has);
	read_saved(stmt, ret);
}

static void read_promise(sqlite3_stmt *stmt, struct takt_job_promise *ret)
{
	const char *policy = (const char *)sqlite3_column_text(stmt, COL_CLOCK_POLICY);

	ret->changed = policy != NULL;
	ret->max_slowdown_permille = (uint32_t)get_int(stmt, COL_MAX_SLOWDOWN);
	takt_strcpy(ret->clock_policy, sizeof(ret->clock_policy), policy ? policy : "");
}

static bool parse_state(const char *name, enum takt_job_state *ret)
{
	for (int i = 0; name && i < TAKT_JOB_STATE_COUNT; i++)
		if (strcmp(name, takt_job_state_name((enum takt_job_state)i)) == 0) {
			*ret = (enum takt_job_state)i;
			return true;
		}
	return false;
}

static bool read_cause(sqlite3_stmt *stmt, struct takt_job_cause *ret)
{
	const char *name = (const char *)sqlite3_column_text(stmt, COL_CAUSE);
	uint32_t has_gpu = 0;
	int cause = 0;

	while (name && cause < TAKT_CAUSE_COUNT &&
	       strcmp(name, takt_cause_name((enum takt_cause)cause)) != 0)
		cause++;
	if (!name || cause == TAKT_CAUSE_COUNT)
		return false;
	ret->cause = (enum takt_cause)cause;
	ret->gpu = (int32_t)get_if(stmt, COL_CAUSE_GPU, 1, &has_gpu);
	if (!has_gpu)
		ret->gpu = -1;
	ret->xid = (uint32_t)get_int(stmt, COL_CAUSE_XID);
	ret->at.ns = get_int(stmt, COL_CAUSE_AT);
	return true;
}

int takt_job_from_row(sqlite3_stmt *stmt, struct takt_job *ret, struct takt_err *err)
{
	struct takt_job job = {.id = (uint64_t)get_int(stmt, COL_ID)};
	const char *state = (const char *)sqlite3_column_text(stmt, COL_STATE);

	job.message = (char *)sqlite3_column_text(stmt, COL_MESSAGE);
	job.mig = (char *)sqlite3_column_text(stmt, COL_MIG);
	job.gpu_uuids = (char *)sqlite3_column_text(stmt, COL_GPU_UUIDS);
	job.spec_json = (char *)sqlite3_column_text(stmt, COL_JSON);
	job.env_json = (char *)sqlite3_column_text(stmt, COL_ENV);
	if (sqlite3_errcode(sqlite3_db_handle(stmt)) == SQLITE_NOMEM)
		return takt_err_set(err, -ENOMEM, "read job %llu", (unsigned long long)job.id);
	if (!parse_state(state, &job.state) || !job.message || !job.mig || !job.gpu_uuids ||
	    !job.spec_json)
		return takt_err_set(err, -TAKT_E_CORRUPT, "job %llu in the database has no %s",
				    (unsigned long long)job.id,
				    job.spec_json ? "known state" : "description");
	if (!read_cause(stmt, &job.cause))
		return takt_err_set(err, -TAKT_E_CORRUPT,
				    "job %llu in the database has no known cause",
				    (unsigned long long)job.id);
	read_promise(stmt, &job.promise);
	job.limit.changed = sqlite3_column_type(stmt, COL_TIME_LIMIT) != SQLITE_NULL;
	job.limit.time_ms = (uint64_t)get_int(stmt, COL_TIME_LIMIT);
	job.attempt = (uint32_t)get_int(stmt, COL_ATTEMPT);
	job.gpu_mask = (uint64_t)get_int(stmt, COL_GPU_MASK);
	job.submitted.ns = get_int(stmt, COL_SUBMITTED);
	job.started.ns = get_int(stmt, COL_STARTED);
	job.ended.ns = get_int(stmt, COL_ENDED);
	job.exit_code = (int)get_int(stmt, COL_EXIT_CODE);
	job.exit_signal = (int)get_int(stmt, COL_EXIT_SIGNAL);
	job.cancel_wanted = get_int(stmt, COL_CANCEL_WANTED) != 0;
	read_report(stmt, &job.report);
	job.held = (enum takt_job_hold)get_int(stmt, COL_HELD);
	job.priority = (int32_t)get_int(stmt, COL_PRIORITY);
	job.timed_out = get_int(stmt, COL_TIMED_OUT) != 0;
	job.restarts = (uint32_t)get_int(stmt, COL_RESTARTS);
	job.failures = (uint32_t)get_int(stmt, COL_FAILURES);
	job.retry_at.ns = get_int(stmt, COL_RETRY_AT);
	job.share_milli = (uint32_t)get_int(stmt, COL_SHARE);
	job.mem_held_mib = (uint32_t)get_int(stmt, COL_MEM_HELD);
	job.mps_limited = get_int(stmt, COL_MPS_LIMITED) != 0;
	job.preemptions = (uint32_t)get_int(stmt, COL_PREEMPTIONS);
	job.frozen = get_int(stmt, COL_FROZEN) != 0;
	job.stood_ns = (uint64_t)get_int(stmt, COL_LOST);
	job.staged = get_int(stmt, COL_STAGED) != 0;
	job.evict = (uint32_t)get_int(stmt, COL_EVICT);
	job.evict_for = (uint64_t)get_int(stmt, COL_EVICT_FOR);
	job.evict_at.ns = get_int(stmt, COL_EVICT_AT);
	job.checkpoint_at.ns = get_int(stmt, COL_CHECKPOINT);
	job.submit_seq = (uint64_t)get_int(stmt, COL_SUBMIT_SEQ);
	job.env_of = (uint64_t)get_int(stmt, COL_ENV_OF);
	job.uid = (uid_t)get_int(stmt, COL_UID);
	job.gid = (gid_t)get_int(stmt, COL_GID);
	*ret = job;
	return 0;
}
