/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs as the API shows and takes them. Who may see and do what is decided here. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/terminal.h"
#include "daemon/govern.h"
#include "daemon/gpu_health.h"
#include "daemon/job_memory.h"
#include "daemon/peaks.h"
#include "sched/sched.h"

bool takt_api_may_act(const struct takt_peer *peer, uid_t owner)
{
	return peer->admin || peer->uid == owner;
}

bool takt_api_may_read(const struct takt_peer *peer, uid_t owner)
{
	return peer->uid == 0 || peer->uid == owner;
}

static uint32_t report_bits(uint32_t has)
{
	uint32_t bits = 0;

	bits |= has & TAKT_REPORT_WALL ? TAKT_RV_WALL : 0;
	bits |= has & TAKT_REPORT_ENERGY ? TAKT_RV_ENERGY : 0;
	bits |= has & TAKT_REPORT_MEAN_SM ? TAKT_RV_MEAN_SM : 0;
	bits |= has & TAKT_REPORT_THROTTLED ? TAKT_RV_THROTTLED : 0;
	bits |= has & TAKT_REPORT_PEAK_MEMORY ? TAKT_RV_PEAK_MEMORY : 0;
	bits |= has & TAKT_REPORT_UTIL ? TAKT_RV_UTIL : 0;
	bits |= has & TAKT_REPORT_HANDOVER ? TAKT_RV_HANDOVER : 0;
	bits |= has & TAKT_REPORT_SM_SPREAD ? TAKT_RV_SM_SPREAD : 0;
	return bits;
}

static void fill_report(const struct takt_job_report *report, struct takt_report_view *ret)
{
	ret->has = report_bits(report->has);
	ret->simulated = report->simulated;
	ret->wall_ms = report->wall_ns / TAKT_NS_PER_MS;
	ret->energy_mj = report->energy_mj;
	takt_strcpy(ret->energy_why_not, sizeof(ret->energy_why_not), report->energy_why_not);
	ret->mean_sm_mhz = report->mean_sm_mhz;
	ret->sm_spread_mhz = report->sm_spread_mhz;
	ret->throttled_ms = report->throttled_ns / TAKT_NS_PER_MS;
	takt_throttle_text(report->throttle_reasons, ret->throttle_text,
			   sizeof(ret->throttle_text));
	ret->peak_memory_bytes = report->peak_memory_bytes;
	ret->mean_util_permille = report->mean_util_permille;
	ret->idle_ms = report->idle_ns / TAKT_NS_PER_MS;
	ret->gap_driver_us = report->gap_driver_ns / TAKT_NS_PER_US;
	ret->gap_scheduler_us = report->gap_scheduler_ns / TAKT_NS_PER_US;
	ret->gap_start_us = report->gap_start_ns / TAKT_NS_PER_US;
	takt_govern_fill_saved(report, ret);
}

/* The next of several that are separated by commas, "" behind the last. */
static void next_uuid(const char **at, char *ret, size_t size)
{
	int len = (int)strcspn(*at, ",");

	snprintf(ret, size, "%.*s", len, *at);
	*at += len + ((*at)[len] == ',');
}

/* The numbers as they were then, and which GPUs that were. What has no record and is over may have
 * been on others than have these numbers now. */
static void fill_gpus(struct takt_daemon *daemon, const struct takt_job *row,
		      struct takt_job_view *ret)
{
	const char *uuids = row->gpu_uuids ? row->gpu_uuids : "";
	bool lives = !takt_job_state_ended(row->state);

	ret->gpu_list_count = 0;
	for (uint64_t left = row->gpu_mask; left; left &= left - 1) {
		uint32_t gpu = (uint32_t)__builtin_ctzll(left), i = ret->gpu_list_count++;

		ret->gpu_list[i] = gpu;
		next_uuid(&uuids, ret->gpu_uuid[i], sizeof(ret->gpu_uuid[i]));
		if (!ret->gpu_uuid[i][0] && lives && gpu < daemon->gpu_count)
			takt_strcpy(ret->gpu_uuid[i], sizeof(ret->gpu_uuid[i]),
				    daemon->gpu_uuid[gpu]);
	}
}

/* False when it is not there any more. */
static bool gpu_of_instance(const struct takt_daemon *daemon, const char *uuid, uint32_t *ret)
{
	for (uint32_t gpu = 0; gpu < daemon->gpu_count; gpu++) {
		const struct takt_gpu_facts *facts = takt_machine_facts(daemon->machine, gpu);

		for (uint32_t i = 0; i < facts->instance_count; i++)
			if (strcmp(facts->instances[i].uuid, uuid) == 0) {
				*ret = gpu;
				return true;
			}
	}
	return false;
}

/* Instances, each with the GPU that it is, or was, on; false when that is not known. */
static bool fill_instances(struct takt_daemon *daemon, const struct takt_job *row,
			   struct takt_job_view *ret)
{
	bool on_one = row->gpu_mask && (row->gpu_mask & (row->gpu_mask - 1)) == 0;
	const char *uuids = row->mig;
	uint32_t count = 0;

	for (; *uuids && count < TAKT_VIEW_MAX_GPUS; count++) {
		char *uuid = ret->gpu_uuid[count];

		next_uuid(&uuids, uuid, sizeof(ret->gpu_uuid[0]));
		if (on_one)
			ret->gpu_list[count] = (uint32_t)__builtin_ctzll(row->gpu_mask);
		else if (!gpu_of_instance(daemon, uuid, &ret->gpu_list[count]))
			return false;
	}
	ret->gpu_list_count = count;
	return count > 0;
}

static int64_t to_ms(struct takt_wall wall)
{
	return wall.ns / (int64_t)TAKT_NS_PER_MS;
}

static void fill_after(const struct takt_jobspec *spec, struct takt_job_view *ret)
{
	struct takt_str text = TAKT_STR(sizeof(ret->after) - 1);

	for (uint32_t i = 0; i < spec->after_count; i++)
		takt_str_addf(&text, "%s%llu%s", i ? " " : "",
			      (unsigned long long)spec->after[i].job,
			      spec->after[i].any ? ":any" : "");
	if (text.rc == 0)
		takt_strcpy(ret->after, sizeof(ret->after), takt_str_text(&text));
	else
		snprintf(ret->after, sizeof(ret->after), "%u jobs", spec->after_count);
	takt_str_fini(&text);
}

/* For the owner: what his last job of that name took, where this one asks for less. */
static void fill_last_peak(const struct takt_daemon *daemon, uid_t uid,
			   const struct takt_jobspec *spec, struct takt_job_view *ret)
{
	uint64_t asked = (uint64_t)takt_queue_asked_gpu_mem(daemon->queue, spec) << 20;
	double gib = (double)(UINT64_C(1) << 30);

	ret->last_peak_bytes = takt_peaks_last(daemon->peaks, uid, spec->name);
	if (asked && ret->last_peak_bytes > asked)
		snprintf(ret->memory_hint, sizeof(ret->memory_hint),
			 "last run of %s peaked at %.1f GiB of one GPU; asks for %.1f GiB",
			 spec->name, (double)ret->last_peak_bytes / gib, (double)asked / gib);
}

/* What was asked for, as everybody may see it. */
static void fill_asked(const struct takt_jobspec *spec, struct takt_job_view *ret)
{
	ret->gpus = spec->gpus;
	ret->array_id = spec->array_id;
	ret->array_index = spec->array_index;
	ret->array_limit = spec->array_limit;
	ret->cpu_milli = spec->cpu_milli;
	ret->mem_mib = spec->mem_mib;
	ret->gpu_mem_mib = spec->gpu_mem_mib;
	ret->time_limit_ms = spec->time_limit_ms;
	ret->begin_ms = spec->begin_ms;
	ret->retries = spec->retries;
	fill_after(spec, ret);
	if (spec->clock_ask != TAKT_CLOCK_ASK_NONE)
		ret->clock_max_mhz = spec->clock_mhz;
	if (spec->clock_ask == TAKT_CLOCK_ASK_LOCK)
		ret->clock_min_mhz = spec->clock_mhz;
	ret->power_limit_mw = spec->power_limit_mw;
}

static void fill_cause(const struct takt_job *row, struct takt_job_view *ret)
{
	const struct takt_job_cause *cause = &row->cause;

	takt_strcpy(ret->cause, sizeof(ret->cause), takt_cause_name(cause->cause));
	takt_job_cause_text(row, ret->cause_text, sizeof(ret->cause_text));
	ret->has_cause_gpu = cause->cause && cause->gpu >= 0;
	ret->cause_gpu = (uint32_t)cause->gpu;
	ret->cause_xid = cause->xid;
	ret->cause_at_ms = to_ms(cause->at);
}

/* What became of it so far. */
static void fill_course(const struct takt_job *row, struct takt_job_view *ret)
{
	takt_strcpy(ret->state, sizeof(ret->state), takt_job_state_name(row->state));
	if (row->state == TAKT_JOB_WAITING)
		takt_strcpy(ret->held, sizeof(ret->held), takt_job_hold_name(row->held));
	ret->priority = row->priority;
	ret->attempt = row->attempt;
	ret->failures = row->failures;
	ret->restarts = row->restarts;
	ret->preemptions = row->preemptions;
	ret->submitted_ms = to_ms(row->submitted);
	ret->started_ms = to_ms(row->started);
	ret->ended_ms = to_ms(row->ended);
	ret->retry_at_ms = to_ms(row->retry_at);
	ret->checkpoint_ms = to_ms(row->checkpoint_at);
	ret->has_exit_code =
		row->state == TAKT_JOB_DONE || (row->state == TAKT_JOB_FAILED && !row->exit_signal);
	ret->exit_code = row->exit_code;
	ret->exit_signal = row->exit_signal;
	fill_cause(row, ret);
	fill_report(&row->report, &ret->report);
}

/* What it has, or had, of the machine. */
static void fill_held(struct takt_daemon *daemon, const struct takt_job *row,
		      struct takt_job_view *ret)
{
	if (!row->mig || !fill_instances(daemon, row, ret))
		fill_gpus(daemon, row, ret);
	ret->gpu_mem_held_mib = row->mem_held_mib;
	takt_strcpy(ret->memory, sizeof(ret->memory), takt_job_memory_word(row));
}

static void fill_private(const struct takt_daemon *daemon, const struct takt_job *row,
			 const struct takt_jobspec *spec, struct takt_job_view *ret)
{
	takt_strcpy(ret->name, sizeof(ret->name), spec->name);
	takt_jobspec_command(spec, ret->command, sizeof(ret->command));
	takt_strcpy(ret->cwd, sizeof(ret->cwd), spec->cwd);
	takt_strcpy(ret->message, sizeof(ret->message), row->message ? row->message : "");
	if (spec->gpus)
		fill_last_peak(daemon, row->uid, spec, ret);
}

/* What both live and ended jobs have. */
static void fill_common(struct takt_daemon *daemon, const struct takt_peer *peer,
			const struct takt_job *row, const struct takt_jobspec *spec,
			struct takt_job_view *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->id = row->id;
	ret->simulated = takt_machine_info(daemon->machine)->simulated;
	ret->uid = row->uid;
	ret->mine = takt_api_may_read(peer, row->uid);
	takt_user_name(row->uid, ret->user, sizeof(ret->user));
	fill_asked(spec, ret);
	fill_course(row, ret);
	fill_held(daemon, row, ret);
	takt_job_view_terms(spec, ret->mine, ret);
	if (ret->mine)
		fill_private(daemon, row, spec, ret);
}

/* Who may not see the job's log has no use for the name. */
static void fill_terminal(const struct takt_daemon *daemon, const struct takt_queue_job *job,
			  struct takt_job_view *ret)
{
	if (job->spec.pty && ret->mine)
		snprintf(ret->terminal, sizeof(ret->terminal),
			 "%s/jobs/%llu.%u/" TAKT_TERMINAL_SOCKET, daemon->config.state_dir,
			 (unsigned long long)job->row.id, job->row.attempt);
}

static void fill_handover(const struct takt_daemon *daemon, const struct takt_queue_job *job,
			  struct takt_report_view *ret)
{
	const struct takt_handover_gap *gap =
		takt_handover_of(daemon, job->row.id, job->row.gpu_mask);

	if (!gap)
		return;
	ret->has |= TAKT_RV_HANDOVER;
	ret->gap_driver_us = gap->driver_ns / TAKT_NS_PER_US;
	ret->gap_scheduler_us = gap->scheduler_ns / TAKT_NS_PER_US;
	ret->gap_start_us = gap->start_ns / TAKT_NS_PER_US;
}

/* A running job's figures so far. */
static void fill_running(struct takt_daemon *daemon, const struct takt_queue_job *job,
			 struct takt_job_view *ret)
{
	struct takt_account account = {0};
	struct takt_wall now = takt_wall_now(daemon->sys);

	if (takt_telemetry_account_peek(daemon->telemetry, job->row.id, &account) < 0)
		return;
	ret->report.has = TAKT_RV_WALL;
	fill_handover(daemon, job, &ret->report);
	ret->report.simulated = ret->simulated;
	ret->report.wall_ms = now.ns > job->row.started.ns
				      ? (uint64_t)to_ms(now) - (uint64_t)to_ms(job->row.started)
				      : 0;
	if (account.has & TAKT_ACCOUNT_ENERGY)
		ret->report.has |= TAKT_RV_ENERGY;
	if (account.has & TAKT_ACCOUNT_MEAN_SM)
		ret->report.has |= TAKT_RV_MEAN_SM;
	if (account.has & TAKT_ACCOUNT_THROTTLED)
		ret->report.has |= TAKT_RV_THROTTLED;
	if (account.has & TAKT_ACCOUNT_PEAK_MEMORY)
		ret->report.has |= TAKT_RV_PEAK_MEMORY;
	if (account.has & TAKT_ACCOUNT_UTIL)
		ret->report.has |= TAKT_RV_UTIL;
	if (account.has & TAKT_ACCOUNT_SM_SPREAD)
		ret->report.has |= TAKT_RV_SM_SPREAD;
	ret->report.mean_util_permille = account.mean_util_permille;
	ret->report.idle_ms = account.idle_ns / TAKT_NS_PER_MS;
	ret->report.energy_mj = account.energy_mj;
	takt_strcpy(ret->report.energy_why_not, sizeof(ret->report.energy_why_not),
		    account.energy_why_not);
	ret->report.mean_sm_mhz = account.mean_sm_mhz;
	ret->report.sm_spread_mhz = account.sm_spread_mhz;
	ret->report.throttled_ms = account.throttled_ns / TAKT_NS_PER_MS;
	takt_throttle_text(account.throttle_reasons, ret->report.throttle_text,
			   sizeof(ret->report.throttle_text));
	ret->report.peak_memory_bytes = account.peak_memory_bytes;
}

/* The plan would let it start, on GPUs that are not to be had after all. */
static void fill_why_not_counted(struct takt_daemon *daemon, const struct takt_queue_job *job,
				 struct takt_job_view *ret)
{
	uint64_t gpus, holder = takt_queue_placeless(daemon->queue, &gpus);

	if (!holder || job->phase != TAKT_PHASE_WAITING || !job->spec.gpus)
		return;
	takt_strcpy(ret->why, sizeof(ret->why), takt_why_name(TAKT_WHY_GPUS));
	snprintf(
		ret->why_text, sizeof(ret->why_text),
		"waits until job %llu has ended: what it was given on GPU %d is gone, or was given "
		"to others too",
		(unsigned long long)holder, __builtin_ctzll(gpus));
	snprintf(ret->why_words, sizeof(ret->why_words), "behind %llu", (unsigned long long)holder);
}

/* `why` is another than the plan's where there is no driver. */
static void fill_why_words(const struct takt_plan_wait *wait, enum takt_why why,
			   struct takt_job_view *ret)
{
	struct takt_str words = TAKT_STR(sizeof(ret->why_words) - 1);

	if (why != wait->why)
		takt_str_add(&words, "no GPU is to be seen");
	else
		takt_why_words(wait, &words);
	if (words.rc == 0)
		takt_strcpy(ret->why_words, sizeof(ret->why_words), takt_str_text(&words));
	takt_str_fini(&words);
}

static void fill_why(struct takt_daemon *daemon, const struct takt_queue_job *job,
		     struct takt_job_view *ret)
{
	struct takt_str text = TAKT_STR(sizeof(ret->why_text) - 1);
	uint32_t ahead;
	const struct takt_plan_wait *wait = takt_queue_why(daemon->queue, job->row.id, &ahead);
	enum takt_why why;

	if (!wait) {
		fill_why_not_counted(daemon, job, ret);
		return;
	}
	if (takt_why_text(wait, &text) == 0)
		takt_strcpy(ret->why_text, sizeof(ret->why_text), takt_str_text(&text));
	takt_str_fini(&text);
	takt_api_why_more(daemon, wait->why, job->spec.gpu_indices, ret->why_text,
			  sizeof(ret->why_text));
	why = takt_api_why_no_driver(daemon, wait->why, &job->spec, ret->why_text,
				     sizeof(ret->why_text));
	takt_strcpy(ret->why, sizeof(ret->why), takt_why_name(why));
	fill_why_words(wait, why, ret);
}

static void fill_health(const struct takt_daemon *daemon, const struct takt_queue_job *job,
			struct takt_job_view *ret)
{
	takt_health_job_note(daemon->health, job, ret->health_note, sizeof(ret->health_note));
	if (ret->health_note[0])
		takt_strcpy(ret->health_severity, sizeof(ret->health_severity),
			    takt_level_name(
				    takt_health_severity_of(daemon->health, job->row.gpu_mask)));
}

static void fill_job(struct takt_daemon *daemon, const struct takt_peer *peer,
		     const struct takt_queue_job *job, struct takt_job_view *ret)
{
	fill_common(daemon, peer, &job->row, &job->spec, ret);
	ret->report.simulated = ret->simulated;
	takt_leases_job_note(daemon->leases, job, ret->clock_note, sizeof(ret->clock_note));
	if (job->phase == TAKT_PHASE_WAITING)
		fill_why(daemon, job, ret);
	takt_refused_fill(daemon, job, ret);
	if (job->phase == TAKT_PHASE_RUNNING) {
		ret->pid = job->pid;
		fill_running(daemon, job, ret);
		takt_govern_fill(daemon->govern, job, ret);
		fill_terminal(daemon, job, ret);
	}
	takt_api_fill_outlook(daemon, job, ret);
}

static int fill_row(struct takt_daemon *daemon, const struct takt_peer *peer,
		    const struct takt_job *row, struct takt_job_view *ret, struct takt_err *err)
{
	struct takt_jobspec spec;
	int rc;

	takt_jobspec_init(&spec);
	rc = takt_jobspec_from_json(row->spec_json, strlen(row->spec_json), &spec, err);
	takt_queue_keep_changes(row, &spec);
	if (rc == 0)
		fill_common(daemon, peer, row, &spec, ret);
	takt_jobspec_fini(&spec);
	return rc;
}

static int no_such_job(uint64_t job_id, struct takt_err *err)
{
	return takt_err_set(err, -TAKT_E_NOT_FOUND, "there is no job %llu",
			    (unsigned long long)job_id);
}

/* Row of an ended job. */
int takt_api_ended_row(struct takt_daemon *daemon, uint64_t job_id, struct takt_job *ret,
		       struct takt_err *err)
{
	int rc = takt_store_get(daemon->store, job_id, ret, err);

	return rc == -TAKT_E_NOT_FOUND ? no_such_job(job_id, err) : rc;
}

/* An ended job's GPU whose clocks could not be put back is said for as long as that is so. */
static void note_changed(const struct takt_daemon *daemon, uint64_t gpu_mask,
			 struct takt_job_view *ret)
{
	for (uint32_t gpu = 0; gpu < daemon->gpu_count; gpu++) {
		struct takt_lease_state lease;

		if (!(gpu_mask >> gpu & 1))
			continue;
		takt_leases_state(daemon->leases, gpu, &lease);
		if (strcmp(lease.state, "changed") == 0)
			snprintf(ret->clock_note, sizeof(ret->clock_note),
				 "GPU %u: CLOCKS CHANGED and not restored: %.130s", gpu,
				 lease.note);
	}
}

/* What the shim of its latest attempt was told. Lists go without: it costs a file a job. */
static void fill_isolation(struct takt_daemon *daemon, struct takt_job_view *ret)
{
	char why[TAKT_ATTEMPT_MESSAGE];

	if (ret->attempt == 0 ||
	    takt_attempt_isolation(daemon->sys, daemon->jobs_dirfd, ret->id, ret->attempt, why) < 0)
		return;
	takt_strcpy(ret->isolation, sizeof(ret->isolation), why[0] ? "advisory" : "devices");
	takt_strcpy(ret->isolation_note, sizeof(ret->isolation_note), why);
}

/* One that waits far behind has to be asked for. */
static void explain_deep(struct takt_daemon *daemon, const struct takt_queue_job *job)
{
	uint32_t ahead;

	if (job->phase == TAKT_PHASE_WAITING && !takt_queue_why(daemon->queue, job->row.id, &ahead))
		takt_queue_explain(daemon->queue, UINT32_MAX);
}

int takt_api_job(void *ctx, const struct takt_peer *peer, uint64_t job_id,
		 struct takt_job_view *ret, struct takt_err *err)
{
	struct takt_daemon *daemon = ctx;
	const struct takt_queue_job *job = takt_queue_find(daemon->queue, job_id);
	struct takt_job row = {0};
	int rc;

	if (job) {
		explain_deep(daemon, job);
		fill_job(daemon, peer, job, ret);
		fill_isolation(daemon, ret);
		if (ret->mine && job->phase == TAKT_PHASE_RUNNING)
			takt_stray_note(daemon, job, ret->stray_note, sizeof(ret->stray_note));
		if (job->phase == TAKT_PHASE_RUNNING)
			fill_health(daemon, job, ret);
		if (ret->mine) {
			takt_job_progress_fill(daemon, job_id, &ret->progress);
			takt_job_output_fill(daemon, ret);
		}
		return 0;
	}
	rc = takt_api_ended_row(daemon, job_id, &row, err);
	if (rc == 0)
		rc = fill_row(daemon, peer, &row, ret, err);
	if (rc == 0 && (ret->clock_max_mhz || ret->power_limit_mw))
		note_changed(daemon, row.gpu_mask, ret);
	if (rc == 0)
		fill_isolation(daemon, ret);
	if (rc == 0 && ret->mine) {
		takt_job_progress_fill_ended(daemon, &row, &ret->progress);
		takt_job_output_fill(daemon, ret);
	}
	takt_job_fini(&row);
	return rc;
}

uint64_t takt_api_live_version(void *ctx)
{
	return takt_queue_version(((struct takt_daemon *)ctx)->queue);
}

/* Listing, one view at a time. */
struct listing {
	struct takt_daemon *daemon;
	const struct takt_peer *peer;
	int (*each)(void *arg, const struct takt_job_view *view);
	void *arg;
	struct takt_queue_rest rest;
	uint32_t left;
	uint32_t uid;		    /* of live ones; UINT32_MAX = anybody's */
	struct takt_job_view *view; /* reused */
	struct takt_err *err;
};

static const int list_is_full = -ECANCELED;

static int list_live(void *ctx, const struct takt_queue_job *job)
{
	struct listing *listing = ctx;
	bool everybodys = listing->uid == UINT32_MAX;

	if (!everybodys && job->row.uid != listing->uid)
		return 0;
	listing->rest.total++;
	if (listing->left == 0)
		return everybodys ? list_is_full : 0; /* a user's are counted to the end */
	listing->left--;
	fill_job(listing->daemon, listing->peer, job, listing->view);
	return listing->each(listing->arg, listing->view);
}

static int list_ended(void *ctx, const struct takt_job *row)
{
	struct listing *listing = ctx;
	int rc;

	if (!takt_job_state_ended(row->state))
		return 0;
	listing->rest.total++;
	rc = fill_row(listing->daemon, listing->peer, row, listing->view, listing->err);
	return rc < 0 ? rc : listing->each(listing->arg, listing->view);
}

static int list_past(struct takt_daemon *daemon, const struct takt_history_ask *ask, uint32_t limit,
		     struct listing *listing)
{
	const struct takt_store_past past = {
		.before_id = ask->before,
		.since = {ask->since_ms * (int64_t)TAKT_NS_PER_MS},
		.until = {ask->until_ms * (int64_t)TAKT_NS_PER_MS},
		.uid = ask->uid == UINT32_MAX ? -1 : (int64_t)ask->uid,
		.gpu = ask->gpu < TAKT_VIEW_MAX_GPUS ? (int32_t)ask->gpu : -1,
		.states = ask->states,
		.limit = limit,
	};

	return takt_store_each_past(daemon->store, &past, list_ended, listing, &listing->rest.next,
				    listing->err);
}

static int list_all_live(struct takt_daemon *daemon, struct listing *listing)
{
	uint32_t waiting, running;
	int rc = takt_queue_each(daemon->queue, listing->left, list_live, listing);

	if (listing->uid == UINT32_MAX) {
		takt_queue_counts(daemon->queue, &waiting, &running);
		listing->rest.total = (uint64_t)waiting + running;
	}
	return rc == list_is_full ? 0 : rc;
}

int takt_api_queue(void *ctx, const struct takt_peer *peer, const struct takt_history_ask *history,
		   uint32_t limit, int (*each)(void *arg, const struct takt_job_view *view),
		   void *arg, struct takt_queue_rest *ret_rest, struct takt_err *err)
{
	struct takt_daemon *daemon = ctx;
	bool past = history && !history->live;
	struct listing listing = {.daemon = daemon,
				  .peer = peer,
				  .each = each,
				  .arg = arg,
				  .left = limit,
				  .uid = history ? history->uid : UINT32_MAX,
				  .view = takt_zalloc(sizeof(*listing.view)),
				  .err = err};
	int rc;

	if (!listing.view)
		return takt_err_set(err, -ENOMEM, "the list of jobs");
	rc = past ? list_past(daemon, history, limit, &listing) : list_all_live(daemon, &listing);
	takt_free(listing.view);
	if (rc == 0)
		*ret_rest = listing.rest;
	return rc;
}

int takt_api_explain(void *ctx, const struct takt_peer *peer, uint64_t job_id,
		     struct takt_explain_view *ret, struct takt_err *err)
{
	struct takt_daemon *daemon = ctx;
	struct takt_job_view *view = takt_zalloc(sizeof(*view));
	const struct takt_plan_wait *wait;
	int rc = view ? takt_api_job(ctx, peer, job_id, view, err)
		      : takt_err_set(err, -ENOMEM, "the answer");

	if (rc == 0) {
		memset(ret, 0, sizeof(*ret));
		ret->id = job_id;
		ret->simulated = view->simulated;
		takt_strcpy(ret->state, sizeof(ret->state), view->state);
		takt_strcpy(ret->why, sizeof(ret->why), view->why);
		takt_strcpy(ret->text, sizeof(ret->text),
			    view->why_text[0] ? view->why_text : view->message);
		ret->retry_at_ms = view->retry_at_ms;
		ret->refused_since_ms = view->refused_since_ms;
		ret->refused_tries = view->refused_tries;
		ret->start = view->start;
		ret->run_ms = view->run_ms;
		takt_strcpy(ret->run_from, sizeof(ret->run_from), view->run_from);
	}
	takt_free(view);
	wait = rc == 0 ? takt_queue_why(daemon->queue, job_id, &ret->ahead) : NULL;
	if (wait) {
		ret->counted = true;
		ret->need = wait->need;
		ret->total = wait->total;
		ret->free = wait->free;
		ret->running = wait->running;
		ret->draining = wait->draining;
		ret->outside = wait->outside;
		ret->unhealthy = wait->unhealthy;
		ret->promised = wait->promised;
		ret->kept = wait->kept;
		ret->must_end = wait->must_end;
		ret->behind_job = wait->behind_job;
	}
	return rc;
}

void takt_api_answer_job(struct takt_daemon *daemon, struct takt_pending *pending, int http_status,
			 const struct takt_peer *peer, const struct takt_queue_job *job)
{
	struct takt_job_view *view = takt_zalloc(sizeof(*view));
	struct takt_str json = TAKT_STR(TAKT_VIEW_MAX_BYTES);
	struct takt_err err;

	if (view)
		fill_job(daemon, peer, job, view);
	if (view && takt_job_view_to_json(view, &json) == 0) {
		takt_pending_json(pending, http_status, takt_str_text(&json), json.len);
	} else {
		takt_err_set(&err, -ENOMEM,
			     "job %llu is %s, but its description could not be written",
			     (unsigned long long)job->row.id, takt_job_state_name(job->row.state));
		takt_pending_error(pending, &err);
	}
	takt_str_fini(&json);
	takt_free(view);
}
