/* SPDX-License-Identifier: Apache-2.0 */
/* A submit: checked, posted, answered when it is on disk. A client that hangs up meanwhile loses
 * the answer, not the job. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/timetext.h"
#include "daemon/govern.h"
#include "launch/system_users.h"

struct submit_token {
	struct takt_daemon *daemon;
	struct takt_pending *pending;
	struct takt_peer peer;
};

static void hung_up(void *ctx)
{
	struct submit_token *token = ctx;

	takt_queue_forget_token(token->daemon->queue, token);
	takt_free(token);
}

void takt_api_accepted(void *ctx, void *opaque, const struct takt_queue_job *job,
		       const struct takt_err *error)
{
	struct submit_token *token = opaque;
	struct takt_err full;

	if (error && error->rc == -ENOSPC) {
		(void)takt_job_output_refuse(ctx, &full);
		takt_pending_error(token->pending, &full);
	} else if (error) {
		takt_pending_error(token->pending, error);
	} else {
		takt_api_answer_job(ctx, token->pending, 201, &token->peer, job);
	}
	takt_free(token);
}

/* Lowest and highest SM clock that any GPU of this machine offers; high 0 = none lists any. */
static void clock_range(const struct takt_daemon *daemon, uint32_t *ret_low, uint32_t *ret_high)
{
	*ret_low = UINT32_MAX;
	*ret_high = 0;
	for (uint32_t gpu = 0; gpu < daemon->gpu_count; gpu++) {
		const struct takt_gpu_facts *facts = takt_machine_facts(daemon->machine, gpu);
		uint32_t n = facts->has & TAKT_FACT_SM_CLOCKS ? facts->sm_clock_count : 0;

		if (n && facts->sm_clocks_mhz[0] < *ret_low)
			*ret_low = facts->sm_clocks_mhz[0];
		if (n && facts->sm_clocks_mhz[n - 1] > *ret_high)
			*ret_high = facts->sm_clocks_mhz[n - 1];
	}
}

/* Clocks only from the driver's own list, so that nobody waits in the queue for a refusal. */
static int check_clock(const struct takt_daemon *daemon, const struct takt_jobspec *spec,
		       struct takt_err *err)
{
	uint32_t low, high;

	if (spec->clock_ask == TAKT_CLOCK_ASK_NONE || daemon->gpu_count == 0)
		return 0;
	if (spec->gpus == 0)
		return takt_err_set(err, -TAKT_E_USAGE, "a clock was asked for without a GPU");
	clock_range(daemon, &low, &high);
	if (high == 0)
		return takt_err_set(err, -TAKT_E_UNSUPPORTED,
				    "the driver lists no SM clocks for these GPUs");
	if (spec->clock_mhz < low || spec->clock_mhz > high)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "SM clock %u MHz; these GPUs accept %u to %u MHz",
				    spec->clock_mhz, low, high);
	return 0;
}

/* Lowest and highest power limit that any GPU of this machine may have for a job; high 0 = none
 * says what it takes. */
static void power_range(const struct takt_daemon *daemon, uint32_t *ret_low, uint32_t *ret_high)
{
	*ret_low = UINT32_MAX;
	*ret_high = 0;
	for (uint32_t gpu = 0; gpu < daemon->gpu_count; gpu++) {
		const struct takt_gpu_facts *facts = takt_machine_facts(daemon->machine, gpu);

		if (!(facts->has & TAKT_FACT_POWER_LIMITS))
			continue;
		if (facts->power_min_mw < *ret_low)
			*ret_low = facts->power_min_mw;
		if (facts->power_default_mw > *ret_high)
			*ret_high = facts->power_default_mw;
	}
}

/* A job's limit only lowers, so the default is the highest that means something. */
static int check_power_limit(const struct takt_daemon *daemon, const struct takt_jobspec *spec,
			     struct takt_err *err)
{
	uint32_t low, high;

	if (!spec->power_limit_mw || daemon->gpu_count == 0)
		return 0;
	power_range(daemon, &low, &high);
	if (high == 0)
		return takt_err_set(err, -TAKT_E_UNSUPPORTED,
				    "these GPUs do not say which power limits they take");
	if (spec->power_limit_mw < low || spec->power_limit_mw > high)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "power limit %u W; of these GPUs a job may have %u to %u W: a "
				    "job's limit only lowers theirs",
				    spec->power_limit_mw / 1000, (low + 999) / 1000, high / 1000);
	return 0;
}

/* The launcher would refuse these; said here, nobody waits in the queue for it. */
static int may_run_jobs(const struct takt_daemon *daemon, uid_t uid, struct takt_err *err)
{
	if (uid == getuid() && (daemon->single_user || uid == 0))
		return 0;
	if (daemon->single_user)
		return takt_err_set(err, -EPERM,
				    "this takt runs jobs of user %u alone; your user id is %u; "
				    "users = all serves everybody",
				    (unsigned int)getuid(), (unsigned int)uid);
	if (daemon->config.allow_system_users && uid != 0)
		return 0;
	return takt_system_users_check(uid, daemon->min_uid, err);
}

static int check_grace(const struct takt_daemon *daemon, const struct takt_jobspec *spec,
		       struct takt_err *err)
{
	uint32_t most_ms = daemon->config.max_grace_ms;
	bool end = spec->grace_ms > most_ms;
	char longest[TAKT_DURATION_EXACT];

	if (!end && spec->checkpoint_grace_ms <= most_ms)
		return 0;
	return takt_err_set(err, -TAKT_E_USAGE,
			    "field '%s' must be at most %s here: so long a job may outlive its "
			    "time limit (max_grace in the configuration)",
			    end ? "grace_ms" : "checkpoint_grace_ms",
			    takt_duration_exact(most_ms * TAKT_NS_PER_MS, longest));
}

/* Of a description, whoever made it. */
static int may_run(const struct takt_daemon *daemon, const struct takt_peer *peer,
		   const struct takt_jobspec *spec, struct takt_err *err)
{
	int rc;

	if (!daemon->manages)
		return takt_err_set(err, -TAKT_E_UNAVAILABLE, "takt only observes here (%s)",
				    daemon->observe_why);
	rc = may_run_jobs(daemon, peer->uid, err);
	if (rc < 0)
		return rc;
	if (spec->priority > 0 && !peer->admin)
		return takt_err_set(err, -EPERM, "priority above 0 needs an administrator");
	rc = check_grace(daemon, spec, err);
	if (rc == 0)
		rc = takt_govern_check_job(daemon, peer->uid, spec, err);
	if (rc == 0)
		rc = check_clock(daemon, spec, err);
	return rc < 0 ? rc : check_power_limit(daemon, spec, err);
}

static int may_submit(const struct takt_daemon *daemon, const struct takt_peer *peer,
		      const struct takt_jobspec *spec, struct takt_err *err)
{
	if (spec->array_id || spec->params)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "field '%s' is set by takt, not by who hands in a job",
				    spec->array_id ? "array_id" : "params");
	return may_run(daemon, peer, spec, err);
}

static struct submit_token *token_for(struct takt_daemon *daemon, const struct takt_peer *peer,
				      struct takt_pending *pending, struct takt_err *err)
{
	struct submit_token *token = takt_alloc(sizeof(*token));

	if (token)
		*token = (struct submit_token){daemon, pending, *peer};
	else
		takt_err_set(err, -ENOMEM, "the request");
	return token;
}

/* The queue's answer: it keeps the token, or has refused. */
static int handed_in(struct takt_pending *pending, struct submit_token *token, int rc)
{
	if (rc < 0)
		takt_free(token);
	else
		takt_pending_set_cancel(pending, hung_up, token);
	return rc < 0 ? rc : 0;
}

/* One that may run. */
static int hand_in(struct takt_daemon *daemon, const struct takt_peer *peer,
		   struct takt_jobspec *spec, struct takt_pending *pending, struct takt_err *err)
{
	struct submit_token *token;
	int rc = takt_own_files_look(daemon, err);

	if (rc < 0)
		return rc;
	token = token_for(daemon, peer, pending, err);
	if (!token)
		return -ENOMEM;
	rc = takt_queue_submit(daemon->queue, peer->uid, peer->gid, spec,
			       takt_wall_now(daemon->sys), token, err);
	return handed_in(pending, token, rc);
}

int takt_api_submit(void *ctx, const struct takt_peer *peer, struct takt_jobspec *spec,
		    struct takt_pending *pending, struct takt_err *err)
{
	int rc = may_submit(ctx, peer, spec, err);

	return rc < 0 ? rc : hand_in(ctx, peer, spec, pending, err);
}

/* The row of one that has ended, of whoever asks: it would run as him. */
static int own_ended_row(struct takt_daemon *daemon, const struct takt_peer *peer, uint64_t job_id,
			 struct takt_job *ret, struct takt_err *err)
{
	const struct takt_queue_job *job = takt_queue_find(daemon->queue, job_id);
	int rc = job ? 0 : takt_api_ended_row(daemon, job_id, ret, err);

	if (rc < 0)
		return rc;
	if ((job ? job->row.uid : ret->uid) != peer->uid)
		return takt_err_set(err, -EPERM,
				    "job %llu is another user's: only he hands it in again",
				    (unsigned long long)job_id);
	if (job)
		return takt_err_set(err, -TAKT_E_CONFLICT,
				    "job %llu is %s; only one that has ended is handed in again",
				    (unsigned long long)job_id,
				    takt_job_state_name(job->row.state));
	return 0;
}

/* What was meant for its first life alone: a hold, instants that have passed, and, once it ran, the
 * jobs that it came after. */
static void forget_what_was(const struct takt_job *row, struct takt_wall now,
			    struct takt_jobspec *spec)
{
	int64_t now_ms = now.ns / (int64_t)TAKT_NS_PER_MS;

	spec->held = false;
	if (spec->begin_ms <= now_ms)
		spec->begin_ms = 0;
	if (spec->deadline_ms <= now_ms)
		spec->deadline_ms = 0;
	if (row->attempt > 0) {
		takt_free(spec->after);
		spec->after = NULL;
		spec->after_count = 0;
	}
}

/* As it is on record: of an array it keeps its place there. *env's list is taken over. */
static int described_again(const struct takt_job *row, struct takt_wall now,
			   struct takt_jobspec *env, struct takt_jobspec *ret, struct takt_err *err)
{
	int rc = takt_jobspec_from_json(row->spec_json, strlen(row->spec_json), ret, err);

	if (rc < 0)
		return rc;
	takt_queue_keep_changes(row, ret);
	forget_what_was(row, now, ret);
	ret->env = env->env;
	env->env = NULL;
	return takt_jobspec_check(ret, err);
}

int takt_api_again(void *ctx, const struct takt_peer *peer, uint64_t job_id,
		   struct takt_jobspec *env, struct takt_pending *pending, struct takt_err *err)
{
	struct takt_daemon *daemon = ctx;
	struct takt_job row = {0};
	struct takt_jobspec spec;
	int rc = own_ended_row(daemon, peer, job_id, &row, err);

	takt_jobspec_init(&spec);
	if (rc == 0)
		rc = described_again(&row, takt_wall_now(daemon->sys), env, &spec, err);
	if (rc == 0)
		rc = may_run(daemon, peer, &spec, err);
	if (rc == 0)
		rc = hand_in(daemon, peer, &spec, pending, err);
	takt_jobspec_fini(&spec);
	takt_job_fini(&row);
	return rc;
}

static int may_submit_all(const struct takt_daemon *daemon, const struct takt_peer *peer,
			  const struct takt_jobspecs *specs, struct takt_err *err)
{
	for (uint32_t i = 0; i < specs->count; i++) {
		int rc = may_submit(daemon, peer, &specs->jobs[i], err);

		if (rc < 0)
			return specs->count > 1 ? takt_err_wrap(err, rc, "jobs[%u]", i) : rc;
	}
	return 0;
}

int takt_api_submit_many(void *ctx, const struct takt_peer *peer, struct takt_jobspecs *specs,
			 struct takt_pending *pending, struct takt_err *err)
{
	struct takt_daemon *daemon = ctx;
	struct submit_token *token;
	int rc = may_submit_all(daemon, peer, specs, err);

	if (rc == 0)
		rc = takt_own_files_look(daemon, err);
	if (rc < 0)
		return rc;
	token = token_for(daemon, peer, pending, err);
	if (!token)
		return -ENOMEM;
	rc = takt_queue_submit_many(daemon->queue, peer->uid, peer->gid, specs,
				    takt_wall_now(daemon->sys), token, err);
	return handed_in(pending, token, rc);
}

static void fill_runs(const struct takt_queue_trial *trial, struct takt_try_view *ret)
{
	for (uint32_t i = 0; i < trial->run_count; i++) {
		const struct takt_queue_trial_run *from = &trial->runs[i];
		struct takt_try_run_view *to = &ret->array[ret->array_count++];

		*to = (struct takt_try_run_view){.first = from->first,
						 .last = from->last,
						 .starts = from->starts,
						 .gpu_list = from->gpu_mask};
		if (from->starts)
			continue;
		takt_strcpy(to->why, sizeof(to->why), takt_why_name(from->why));
		takt_strcpy(to->text, sizeof(to->text), from->text);
		takt_api_fill_start(&from->start, &to->start);
	}
	ret->more = trial->more;
}

static void fill_trial(const struct takt_daemon *daemon, const struct takt_queue_trial *trial,
		       struct takt_try_view *ret)
{
	ret->simulated = takt_machine_info(daemon->machine)->simulated;
	ret->starts = trial->starts;
	for (uint32_t gpu = 0; gpu < daemon->gpu_count; gpu++)
		if (trial->gpu_mask >> gpu & 1)
			ret->gpu_list[ret->gpu_list_count++] = gpu;
	ret->run_ms = trial->estimate.ns / TAKT_NS_PER_MS;
	takt_strcpy(ret->run_from, sizeof(ret->run_from),
		    takt_estimate_from_name(trial->estimate.from));
	fill_runs(trial, ret);
	if (trial->starts)
		return;
	takt_strcpy(ret->why, sizeof(ret->why), takt_why_name(trial->why));
	takt_strcpy(ret->text, sizeof(ret->text), trial->text);
	ret->ahead = trial->ahead;
	takt_api_fill_start(&trial->start, &ret->start);
}

int takt_api_try(void *ctx, const struct takt_peer *peer, struct takt_jobspecs *specs,
		 struct takt_try_view *ret, struct takt_err *err)
{
	struct takt_daemon *daemon = ctx;
	TAKT_CLEANUP(freep)
	struct takt_queue_trial *trials = takt_calloc(specs->count, sizeof(*trials));
	int rc = trials ? may_submit_all(daemon, peer, specs, err)
			: takt_err_set(err, -ENOMEM, "the request");

	if (rc == 0)
		rc = takt_queue_try(daemon->queue, peer->uid, specs, takt_wall_now(daemon->sys),
				    trials, err);
	for (uint32_t i = 0; rc == 0 && i < specs->count; i++)
		fill_trial(daemon, &trials[i], &ret[i]);
	return rc;
}
