/* SPDX-License-Identifier: Apache-2.0 */
/* What else happens when a job moves on: clocks, accounts, GPU watch, and whoever waits for it. */
#include "base/str.h"
#include "daemon/daemon.h"
#include "daemon/event_hooks.h"
#include "daemon/govern.h"
#include "daemon/gpu_orders.h"
#include "daemon/job_course.h"
#include "daemon/peaks.h"

/* Why the report of an adopted job that was never kept has its wall time only. */
static const char away_text[] = "takt was restarted while it ran";

static void prepare(void *ctx, const struct takt_queue_job *job)
{
	struct takt_daemon *daemon = ctx;

	takt_watch_job_placed(daemon, job);
	takt_handover_placed(daemon, job);
	(void)takt_telemetry_account_open(daemon->telemetry, job->row.id, job->row.gpu_mask, NULL);
	if (job->row.gpu_mask && job->row.share_milli < TAKT_REQUEST_WHOLE)
		takt_telemetry_account_share(daemon->telemetry, job->row.id);
	takt_leases_job_start(daemon->leases, job);
}

static void copy_account(const struct takt_account *account, struct takt_job_report *ret)
{
	if (account->has & TAKT_ACCOUNT_ENERGY)
		ret->has |= TAKT_REPORT_ENERGY;
	if (account->has & TAKT_ACCOUNT_MEAN_SM)
		ret->has |= TAKT_REPORT_MEAN_SM;
	if (account->has & TAKT_ACCOUNT_THROTTLED)
		ret->has |= TAKT_REPORT_THROTTLED;
	if (account->has & TAKT_ACCOUNT_PEAK_MEMORY)
		ret->has |= TAKT_REPORT_PEAK_MEMORY;
	if (account->has & TAKT_ACCOUNT_UTIL)
		ret->has |= TAKT_REPORT_UTIL;
	if (account->has & TAKT_ACCOUNT_SM_SPREAD)
		ret->has |= TAKT_REPORT_SM_SPREAD;
	ret->mean_util_permille = account->mean_util_permille;
	ret->idle_ns = account->idle_ns;
	ret->energy_mj = account->energy_mj;
	takt_strcpy(ret->energy_why_not, sizeof(ret->energy_why_not), account->energy_why_not);
	ret->mean_sm_mhz = account->mean_sm_mhz;
	ret->sm_spread_mhz = account->sm_spread_mhz;
	ret->throttled_ns = account->throttled_ns;
	ret->throttle_reasons = account->throttle_reasons;
	ret->peak_memory_bytes = account->peak_memory_bytes;
}

static void copy_handover(const struct takt_handover_gap *gap, struct takt_job_report *ret)
{
	if (!gap)
		return;
	ret->has |= TAKT_REPORT_HANDOVER;
	ret->gap_driver_ns = gap->driver_ns;
	ret->gap_scheduler_ns = gap->scheduler_ns;
	ret->gap_start_ns = gap->start_ns;
}

static void release(void *ctx, const struct takt_queue_job *job, struct takt_job_report *ret_report)
{
	struct takt_daemon *daemon = ctx;
	struct takt_account account = {0};
	char trouble[200];

	if (takt_leases_job_trouble(daemon->leases, job, trouble, sizeof(trouble)))
		takt_queue_remark(daemon->queue, job->row.id, trouble);
	takt_govern_over(daemon->govern, job, ret_report);
	takt_leases_job_end(daemon->leases, job);
	if (takt_telemetry_account_close(daemon->telemetry, job->row.id, &account) == 0)
		copy_account(&account, ret_report);
	else
		takt_strcpy(ret_report->energy_why_not, sizeof(ret_report->energy_why_not),
			    away_text);
	if (account.written)
		takt_account_forget(daemon, job);
	ret_report->simulated = takt_machine_info(daemon->machine)->simulated;
	copy_handover(takt_handover_of(daemon, job->row.id, job->row.gpu_mask), ret_report);
	takt_watch_job_over(daemon, job);
	takt_attempts_over(daemon->attempts, job->row.id);
	takt_idle_forget(daemon->idle, job->row.id);
	takt_job_progress_forget(daemon->progress, job->row.id);
	takt_job_output_over(daemon, job);
	takt_job_course_over(daemon->courses, job->row.id);
}

static void changed(void *ctx, const struct takt_queue_job *job)
{
	struct takt_daemon *daemon = ctx;

	if (job->phase == TAKT_PHASE_STARTING)
		takt_handover_started(daemon, job);
	if (job->phase == TAKT_PHASE_RUNNING)
		takt_handover_running(daemon, job);
	takt_idle_watch(daemon->idle, job);
	takt_job_progress_watch(daemon->progress, job);
	takt_job_output_watch(daemon->output, job);
	takt_govern_watch(daemon->govern, job);
	if (takt_job_state_ended(job->row.state)) {
		takt_peaks_note(daemon->peaks, job->row.uid, job->spec.name, &job->row.report);
		takt_waiters_ended(daemon->waiters, job);
	}
	takt_server_poke(daemon->server);
}

static void event(void *ctx, const struct takt_queue_job *job, enum takt_job_event event)
{
	struct takt_daemon *daemon = ctx;

	takt_event_hooks_event(daemon->hooks, job, event);
}

static void aside(void *ctx, const struct takt_engine_event *event)
{
	struct takt_daemon *daemon = ctx;

	takt_event_hooks_aside(daemon->hooks, event);
}

static void user_name(void *ctx, uid_t uid, char ret[64])
{
	(void)ctx;
	takt_user_name(uid, ret, 64);
}

const struct takt_queue_hooks takt_daemon_queue_hooks = {
	.accepted = takt_api_accepted,
	.noted = takt_api_noted,
	.prepare = prepare,
	.release = release,
	.event = event,
	.stands_still = takt_daemon_stands_still,
	.cause = takt_daemon_job_cause,
	.aside = aside,
	.stored = takt_orders_stored,
	.changed = changed,
	.user_name = user_name,
};
