/* SPDX-License-Identifier: Apache-2.0 */
/* Hold, release, another priority or time limit: who may, and the answer when it is on disk. */
#include <errno.h>

#include "base/mem.h"
#include "daemon/daemon.h"
#include "daemon/govern.h"

struct change_token {
	struct takt_daemon *daemon;
	struct takt_pending *pending;
	struct takt_peer peer;
};

static void hung_up(void *ctx)
{
	struct change_token *token = ctx;

	takt_queue_forget_token(token->daemon->queue, token);
	takt_free(token);
}

void takt_api_noted(void *ctx, void *opaque, const struct takt_queue_job *job,
		    const struct takt_err *error)
{
	struct change_token *token = opaque;

	if (error)
		takt_pending_error(token->pending, error);
	else
		takt_api_answer_job(ctx, token->pending, 200, &token->peer, job);
	takt_free(token);
}

/* Others were placed, and told when, in the belief that it ends by then. */
static bool is_longer(const struct takt_queue_job *job, const struct takt_job_change *change)
{
	return job->phase == TAKT_PHASE_RUNNING && job->spec.time_limit_ms > 0 &&
	       (change->time_limit_ms == 0 || change->time_limit_ms > job->spec.time_limit_ms);
}

/* What an administrator has set against the owner is not the owner's to undo. */
static int may_change(const struct takt_peer *peer, const struct takt_queue_job *job,
		      const struct takt_job_change *change, struct takt_err *err)
{
	if (change->has_priority && change->priority > 0 && !peer->admin)
		return takt_err_set(err, -EPERM, "priority above 0 needs an administrator");
	if (change->has_time_limit && !peer->admin && is_longer(job, change))
		return takt_err_set(err, -EPERM,
				    "job %llu runs: a longer time limit needs an administrator, "
				    "since others wait for its end",
				    (unsigned long long)job->row.id);
	if (change->has_held && job->row.held == TAKT_HOLD_ADMIN && !peer->admin)
		return takt_err_set(err, -EPERM, "job %llu is held by an administrator",
				    (unsigned long long)job->row.id);
	return 0;
}

static bool has_promise(const struct takt_job_change *change)
{
	return change->has_max_slowdown || change->has_clock_policy;
}

/* The promise as it would be, where somebody could keep it. */
static int new_promise(const struct takt_daemon *daemon, const struct takt_queue_job *job,
		       const struct takt_job_change *change, struct takt_job_promise *ret,
		       struct takt_err *err)
{
	struct takt_jobspec spec = job->spec; /* borrows */

	if (spec.gpus == 0 || takt_jobspec_sets_gpus(&spec))
		return takt_err_set(err, -TAKT_E_CONFLICT,
				    spec.gpus ? "job %llu has asked for a clock or a power limit: "
						"no governor chooses another"
					      : "job %llu has no GPU whose clock could be chosen",
				    (unsigned long long)job->row.id);
	if (change->has_max_slowdown)
		spec.max_slowdown_permille = change->max_slowdown_permille;
	if (change->has_clock_policy)
		takt_strcpy(spec.clock_policy, sizeof(spec.clock_policy), change->clock_policy);
	*ret = (struct takt_job_promise){.changed = true,
					 .max_slowdown_permille = spec.max_slowdown_permille};
	takt_strcpy(ret->clock_policy, sizeof(ret->clock_policy), spec.clock_policy);
	return takt_govern_check_job(daemon, job->row.uid, &spec, err);
}

static struct takt_queue_change change_of(const struct takt_peer *peer,
					  const struct takt_queue_job *job,
					  const struct takt_job_change *change)
{
	enum takt_job_hold hold = peer->uid == job->row.uid ? TAKT_HOLD_OWNER : TAKT_HOLD_ADMIN;

	return (struct takt_queue_change){
		.set_held = change->has_held,
		.set_priority = change->has_priority,
		.set_promise = has_promise(change),
		.set_time_limit = change->has_time_limit,
		.begin_anew = change->requeue,
		.held = change->held ? hold : TAKT_HOLD_NONE,
		.priority = change->priority,
		.time_limit_ms = change->time_limit_ms,
	};
}

/* Of a job that runs: counts at once, and is on its way to disk. */
static int say_of_running(struct takt_daemon *daemon, const struct takt_peer *peer,
			  const struct takt_queue_job *job, const struct takt_job_change *change,
			  struct takt_pending *pending, struct takt_err *err)
{
	int rc = 0;

	if (change->checkpoint)
		rc = takt_queue_checkpointed(daemon->queue, job->row.id, takt_wall_now(daemon->sys),
					     err);
	if (rc == 0 && change->has_frozen)
		rc = takt_queue_freeze(daemon->queue, job->row.id, change->frozen, err);
	if (rc == 0)
		takt_api_answer_job(daemon, pending, 200, peer, job);
	return rc;
}

int takt_api_change(void *ctx, const struct takt_peer *peer, uint64_t job_id,
		    const struct takt_job_change *change, struct takt_pending *pending,
		    struct takt_err *err)
{
	struct takt_daemon *daemon = ctx;
	const struct takt_queue_job *job = NULL;
	struct takt_queue_change want;
	struct change_token *token;
	int rc = takt_api_find_own(daemon, peer, job_id, &job, err);

	if (rc == 0)
		rc = may_change(peer, job, change, err);
	if (rc < 0)
		return rc;
	if (change->checkpoint || change->has_frozen)
		return say_of_running(daemon, peer, job, change, pending, err);
	want = change_of(peer, job, change);
	if (want.set_promise)
		rc = new_promise(daemon, job, change, &want.promise, err);
	if (rc < 0)
		return rc;
	token = takt_alloc(sizeof(*token));
	if (!token)
		return takt_err_set(err, -ENOMEM, "the request");
	*token = (struct change_token){daemon, pending, *peer};
	rc = takt_queue_change(daemon->queue, job_id, &want, token, err);
	if (rc < 0) {
		takt_free(token);
		return rc;
	}
	takt_pending_set_cancel(pending, hung_up, token);
	return 0;
}
