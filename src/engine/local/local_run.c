/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One attempt: from its directory over the launcher and the watch of its shim to its end. Whatever
 * is in doubt is decided by looking at the directory (look()), never by memory.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/hex.h"
#include "base/mem.h"
#include "base/str.h"
#include "engine/local/local_private.h"

enum {
	DEFAULT_PATIENCE_MS = 10000,
	NONCE_BYTES = 8,
	SECRET_BYTES = (TAKT_ATTEMPT_SECRET - 1) / 2,
};

static struct takt_engine_event event_of(const struct local_run *run,
					 enum takt_engine_event_kind kind)
{
	return (struct takt_engine_event){
		.kind = kind, .job_id = run->job_id, .attempt = run->attempt, .pid = run->job_pid};
}

static uint64_t key_of(const struct local_run *run)
{
	return local_key(run->job_id, run->attempt);
}

void local_run_free(struct local_run *run)
{
	if (run->pidfd >= 0)
		close(run->pidfd);
	takt_free(run);
}

static void forget(struct local_engine *local, struct local_run *run)
{
	uint64_t job_id = run->job_id;
	uint32_t attempt = run->attempt;

	(void)takt_map_u64_remove(&local->runs, local_key(job_id, attempt));
	local_run_free(run);
	local_orders_settle(local, job_id, attempt);
}

/* The START that is owed an outcome has it: something of it runs or ran. */
static void accept(struct local_engine *local, struct local_run *run)
{
	uint64_t action = run->start_action;

	run->start_action = 0;
	if (action)
		local_outcome(local, action, TAKT_OUTCOME_ACCEPTED, run->job_id, run->attempt, "");
}

/* The START of one that was staged. */
static void settle_turn(struct local_engine *local, struct local_run *run,
			enum takt_outcome outcome, const char *why)
{
	uint64_t action = run->turn.id;

	run->turn.id = 0;
	if (action)
		local_outcome(local, action, outcome, run->job_id, run->attempt, why);
}

static void finish(struct local_engine *local, struct local_run *run,
		   struct takt_engine_event event)
{
	accept(local, run);
	settle_turn(local, run, TAKT_OUTCOME_ACCEPTED, "");
	takt_crash_point("engine.before_ended");
	takt_attempt_shed(local->config.sys, local->jobs_dirfd, run->job_id, run->attempt);
	forget(local, run);
	takt_engine_emit(&local->engine, event);
}

static void end(struct local_engine *local, struct local_run *run, enum takt_end how,
		const char *message)
{
	struct takt_engine_event event = event_of(run, TAKT_ENGINE_ENDED);

	event.end = how;
	event.refusal = run->refusal;
	takt_strcpy(event.message, sizeof(event.message), message);
	finish(local, run, event);
}

static void reap(struct local_engine *local, struct local_run *run)
{
	run->state = LOCAL_REAP;
	local_due(local, run, 0);
}

/* At its directory, now. */
static void look_anew(struct local_engine *local, struct local_run *run)
{
	run->state = LOCAL_LOOK;
	run->looks = 0;
	local_due(local, run, 0);
}

/* It will not run: the first that kept it is why. */
static void note_why(struct local_run *run, enum takt_refusal refusal, const char *why)
{
	if (run->why[0])
		return;
	run->refusal = refusal;
	takt_strcpy(run->why, sizeof(run->why), why);
}

/* It is void: say so. */
static void say_never_ran(struct local_engine *local, struct local_run *run)
{
	struct local_run was = *run;
	uint64_t actions[] = {run->start_action, run->turn.id};

	if (!actions[0] && !actions[1]) {
		end(local, run, TAKT_END_NEVER_RAN, was.why);
		return;
	}
	takt_attempt_shed(local->config.sys, local->jobs_dirfd, was.job_id, was.attempt);
	forget(local, run);
	for (size_t i = 0; i < TAKT_ARRAY_LEN(actions); i++)
		if (actions[i])
			local_failed(local, actions[i], was.job_id, was.attempt, was.refusal,
				     was.why);
}

/* Nothing ran: void it, so that nothing will, and say so once nothing is left of a stage. True when
 * that is settled. */
static bool never_ran(struct local_engine *local, struct local_run *run, enum takt_refusal refusal,
		      const char *why)
{
	int rc = takt_attempt_void(local->config.sys, local->jobs_dirfd, run->job_id, run->attempt,
				   NULL);

	note_why(run, refusal, why);
	if (rc < 0) {
		run->state = LOCAL_LOOK;
		local_due_again(local, run);
		return false;
	}
	if (run->litters) {
		reap(local, run);
		return false;
	}
	say_never_ran(local, run);
	return true;
}

/* Nobody was there to start it for as long as is waited. */
static bool launcher_missing(struct local_engine *local, struct local_run *run)
{
	char reason[sizeof(run->why)], text[sizeof(run->why)];

	takt_err_text(&local->link_err, reason, sizeof(reason));
	snprintf(text, sizeof(text), "the launcher cannot be reached%s%.120s",
		 local->link_err.rc ? ": " : "", local->link_err.rc ? reason : "");
	return never_ran(local, run, TAKT_REFUSAL_LAUNCHER, text);
}

static void say_started(struct local_engine *local, struct local_run *run,
			const struct takt_attempt_status *status)
{
	struct takt_engine_event event;

	run->job_pid = status->job.pid;
	if (!status->started || run->started_said)
		return;
	run->started_said = true;
	if (run->stage == LOCAL_GOING)
		run->stage = LOCAL_PLAIN;
	event = event_of(run, TAKT_ENGINE_STARTED);
	event.at = status->started_at;
	event.at_boot = status->started_boot;
	takt_engine_emit(&local->engine, event);
}

/* ADOPTED stands for STARTED when the start is on record. */
static void say_adopted(struct local_engine *local, struct local_run *run,
			const struct takt_attempt_status *status)
{
	struct takt_engine_event event;

	if (!run->adoption_owed)
		return;
	run->adoption_owed = false;
	run->started_said = status->started;
	run->job_pid = status->job.pid;
	event = event_of(run, TAKT_ENGINE_ADOPTED);
	event.at = status->started_at;
	event.at_boot = status->started_boot;
	event.staged = local_stage_waits(run) && !status->started;
	takt_engine_emit(&local->engine, event);
}

/* Without a descriptor (too many open files) the shim is polled until there is one again. */
static void watch(struct local_engine *local, struct local_run *run)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = key_of(run)};

	run->state = LOCAL_WATCHED;
	run->pidfd = takt_proc_open(&run->shim);
	if (run->pidfd == -ESRCH) {
		run->pidfd = -1;
		run->state = LOCAL_LOOK;
		local_due(local, run, 0);
		return;
	}
	if (run->pidfd >= 0 && epoll_ctl(local->epollfd, EPOLL_CTL_ADD, run->pidfd, &event) < 0) {
		close(run->pidfd);
		run->pidfd = -1;
	}
	run->pidfd = run->pidfd < 0 ? -1 : run->pidfd;
	if (run->pidfd >= 0)
		run->looks = 0;
	if (run->pidfd < 0 || !run->started_said)
		local_due_again(local, run);
	else
		run->due_ns = 0;
}

static void alive(struct local_engine *local, struct local_run *run,
		  const struct takt_attempt_status *status)
{
	if (status->shim.pid == 0) { /* it has its lock but has not written who it is */
		local_due_again(local, run);
		return;
	}
	run->shim = status->shim;
	accept(local, run);
	say_adopted(local, run, status);
	local_stage_notice(run, status);
	say_started(local, run, status);
	watch(local, run);
	if (run->state == LOCAL_LOOK) /* the shim is gone, its lock not yet */
		local_due_again(local, run);
	else if (run->stage != LOCAL_PLAIN)
		local_stage_step(local, run);
}

static void exited(struct local_engine *local, struct local_run *run,
		   const struct takt_attempt_status *status)
{
	static const enum takt_end ends[TAKT_EXIT_KIND_COUNT] = {
		[TAKT_EXIT_EXITED] = TAKT_END_EXITED,
		[TAKT_EXIT_SIGNALED] = TAKT_END_SIGNALED,
		[TAKT_EXIT_EXEC_FAILED] = TAKT_END_NOT_STARTED,
	};
	struct takt_engine_event event;

	if (status->exit_kind == TAKT_EXIT_VOID) {
		(void)never_ran(local, run, TAKT_REFUSAL_NONE, "the attempt was void");
		return;
	}
	accept(local, run);
	run->job_pid = status->job.pid;
	if (status->exit_kind != TAKT_EXIT_EXEC_FAILED)
		say_started(local, run, status);
	event = event_of(run, TAKT_ENGINE_ENDED);
	event.end = ends[status->exit_kind];
	event.code = status->exit_code;
	event.at = status->ended_at;
	event.run_ns = status->run_ns;
	event.out_of_memory = status->out_of_memory;
	event.out_of_gpu_memory = status->out_of_gpu_memory;
	takt_strcpy(event.message, sizeof(event.message), status->message);
	finish(local, run, event);
}

static void orphaned(struct local_engine *local, struct local_run *run,
		     const struct takt_attempt_status *status)
{
	char boot_id[40];

	takt_boot_id(boot_id);
	run->job_pid = status->job.pid;
	if (status->job.pid != 0 && takt_boot_differs(status->job.boot_id, boot_id)) {
		end(local, run, TAKT_END_INTERRUPTED, "the machine restarted while it ran");
		return;
	}
	run->litters = false;
	run->forged = status->foreign_exit;
	reap(local, run);
}

static void not_started(struct local_engine *local, struct local_run *run)
{
	if (run->start_action && !run->litters && local->now_ns < run->give_up_ns) {
		run->state = LOCAL_UNSENT;
		local_due(local, run, 0);
		return;
	}
	if (run->start_action)
		(void)launcher_missing(local, run);
	else
		(void)never_ran(local, run, TAKT_REFUSAL_SHIM,
				"nothing of it ran; the log of the attempt may say why");
}

static void look(struct local_engine *local, struct local_run *run)
{
	struct takt_attempt_status status;
	int rc = takt_attempt_status(local->config.sys, local->jobs_dirfd, run->job_id,
				     run->attempt, &status, NULL);

	if (rc < 0) {
		local_due_again(local, run);
		return;
	}
	run->litters = run->litters || status.staged;
	switch (status.state) {
	case TAKT_ATTEMPT_ALIVE:
		alive(local, run, &status);
		break;
	case TAKT_ATTEMPT_EXITED:
		exited(local, run, &status);
		break;
	case TAKT_ATTEMPT_ORPHANED:
		orphaned(local, run, &status);
		break;
	case TAKT_ATTEMPT_ABSENT:
	case TAKT_ATTEMPT_NOT_STARTED:
		not_started(local, run);
		break;
	}
}

static struct takt_launch_request request_of(const struct local_run *run, enum takt_launch_op op)
{
	return (struct takt_launch_request){.op = op,
					    .job_id = run->job_id,
					    .attempt = run->attempt,
					    .uid = run->uid,
					    .gid = run->gid,
					    .limits = run->limits};
}

/* A STOP may have come while the launcher was asked, who then vanished. */
static void send_start(struct local_engine *local, struct local_run *run)
{
	if (local_orders_stop(local, run)) {
		(void)local_run_call_off(local, run);
		return;
	}
	if (local_link_send(local, request_of(run, TAKT_LAUNCH_START), key_of(run))) {
		run->state = LOCAL_ASKED;
		return;
	}
	if (local->now_ns >= run->give_up_ns)
		(void)launcher_missing(local, run);
	else
		local_due(local, run, local_link_retry_ms(local));
}

static void send_reap(struct local_engine *local, struct local_run *run)
{
	if (!local_link_send(local, request_of(run, TAKT_LAUNCH_REAP), key_of(run)))
		local_due(local, run, local_link_retry_ms(local));
}

/* Watched, but with something still to learn by looking. */
static void poll_watched(struct local_engine *local, struct local_run *run)
{
	struct takt_attempt_status status = {0};

	if (run->pidfd < 0) {
		run->state = LOCAL_LOOK;
		look(local, run);
		return;
	}
	if (takt_attempt_status(local->config.sys, local->jobs_dirfd, run->job_id, run->attempt,
				&status, NULL) == 0 &&
	    status.state == TAKT_ATTEMPT_ALIVE) {
		local_stage_notice(run, &status);
		say_started(local, run, &status);
	}
	if (run->stage != LOCAL_PLAIN)
		local_stage_step(local, run);
	else if (!run->started_said)
		local_due_again(local, run);
}

void local_run_step(struct local_engine *local, struct local_run *run)
{
	run->due_ns = 0;
	switch (run->state) {
	case LOCAL_UNSENT:
		send_start(local, run);
		break;
	case LOCAL_ASKED:
		break;
	case LOCAL_LOOK:
		look(local, run);
		break;
	case LOCAL_WATCHED:
		poll_watched(local, run);
		break;
	case LOCAL_REAP:
		send_reap(local, run);
		break;
	}
}

void local_run_ended_shim(struct local_engine *local, struct local_run *run)
{
	if (run->pidfd >= 0)
		close(run->pidfd);
	run->pidfd = -1;
	look_anew(local, run);
}

static void start_reply(struct local_engine *local, struct local_run *run,
			const struct takt_launch_reply *reply)
{
	if (reply->rc >= 0) {
		run->shim = reply->shim;
		watch(local, run);
		accept(local, run);
	} else if (reply->rc == -TAKT_E_CONFLICT) {
		look_anew(local, run); /* an earlier request of ours won, or it is over */
	} else {
		(void)never_ran(local, run, (enum takt_refusal)reply->refusal, reply->message);
	}
}

static void reap_reply(struct local_engine *local, struct local_run *run,
		       const struct takt_launch_reply *reply)
{
	if ((reply->rc == 0 || reply->rc == -ENOENT) && run->litters) {
		note_why(run, TAKT_REFUSAL_NONE, "it was staged and called off");
		say_never_ran(local, run);
	} else if (reply->rc == 0 || reply->rc == -ENOENT) {
		end(local, run, TAKT_END_LOST,
		    run->forged ? "its shim vanished, and the end on record is another attempt's"
				: "its shim vanished; how the job ended is not known");
	} else {
		if (reply->rc == -TAKT_E_CONFLICT)
			run->state = LOCAL_LOOK;
		local_due_again(local, run);
	}
}

void local_run_reply(struct local_engine *local, struct local_run *run,
		     const struct takt_launch_reply *reply)
{
	if (reply->op == TAKT_LAUNCH_START && run->state == LOCAL_ASKED)
		start_reply(local, run, reply);
	else if (reply->op == TAKT_LAUNCH_REAP && run->state == LOCAL_REAP)
		reap_reply(local, run, reply);
}

void local_run_link_lost(struct local_engine *local, struct local_run *run)
{
	if (run->state == LOCAL_ASKED) {
		look_anew(local, run);
	} else if (run->state == LOCAL_REAP && run->due_ns == 0) {
		local_due(local, run, local_link_retry_ms(local));
	}
}

bool local_run_call_off(struct local_engine *local, struct local_run *run)
{
	return run->state == LOCAL_UNSENT && run->start_action &&
	       never_ran(local, run, TAKT_REFUSAL_NONE, "stopped before it started");
}

static struct local_run *add_run(struct local_engine *local, uint64_t job_id, uint32_t attempt)
{
	struct local_run *run = takt_zalloc(sizeof(*run));

	if (!run)
		return NULL;
	run->job_id = job_id;
	run->attempt = attempt;
	run->pidfd = -1;
	if (takt_map_u64_put_ptr(&local->runs, key_of(run), run) == 0)
		return run;
	takt_free(run);
	return NULL;
}

int local_run_recover(struct local_engine *local, const struct takt_engine_live *live)
{
	struct local_run *run = add_run(local, live->job_id, live->attempt);

	if (!run)
		return local->runs.len >= local->runs.max ? -TAKT_E_LIMIT : -ENOMEM;
	run->uid = live->uid;
	run->gid = live->gid;
	run->gpu_mask = live->gpu_mask;
	run->limits.staged = true;
	run->state = LOCAL_LOOK;
	run->stage = live->staged ? LOCAL_MAKING : LOCAL_PLAIN;
	run->adoption_owed = true;
	local_due(local, run, 0);
	return 0;
}

/* "job.attempt.nonce"; the nonce tells attempts of different stores apart. The job knows it, and
 * not the secret. */
static int make_id(struct local_run *run)
{
	uint8_t bytes[NONCE_BYTES + SECRET_BYTES];
	char nonce[2 * NONCE_BYTES + 1];

	if (getrandom(bytes, sizeof(bytes), GRND_NONBLOCK) != (ssize_t)sizeof(bytes))
		return -EAGAIN;
	takt_hex_encode(bytes, NONCE_BYTES, nonce);
	takt_hex_encode(bytes + NONCE_BYTES, SECRET_BYTES, run->secret);
	snprintf(run->id, sizeof(run->id), "%" PRIu64 ".%" PRIu32 ".%s", run->job_id, run->attempt,
		 nonce);
	return 0;
}

int local_run_describe(struct local_engine *local, const struct takt_action *action,
		       struct local_run *run, struct takt_attempt_spec *ret, struct takt_err *err)
{
	int rc = local->config.describe(local->config.ctx, action, run->id, ret, &run->uid,
					&run->gid, err);

	ret->job_id = run->job_id;
	ret->attempt = run->attempt;
	takt_strcpy(ret->id, sizeof(ret->id), run->id);
	takt_strcpy(ret->secret, sizeof(ret->secret), run->secret);
	if (run->stage != LOCAL_PLAIN)
		ret->stage_lease_ms = local_stage_lease_ms(local);
	run->limits = ret->limits;
	run->limits.staged = action->kind == TAKT_ACTION_STAGE;
	run->admits = rc >= 0 && action->kind == TAKT_ACTION_START;
	return rc;
}

static int make_attempt(struct local_engine *local, const struct takt_action *start,
			struct local_run *run, struct takt_err *err)
{
	struct takt_attempt_spec spec = {0};
	int rc = make_id(run);

	if (rc < 0)
		return takt_err_set(err, rc, "no random numbers yet");
	rc = local_run_describe(local, start, run, &spec, err);
	if (rc >= 0)
		rc = takt_attempt_create(local->config.sys, local->jobs_dirfd, &spec, err);
	takt_attempt_spec_fini(&spec);
	return rc < 0 ? rc : 0;
}

static void refuse(struct local_engine *local, const struct takt_action *start, int rc,
		   const struct takt_err *err)
{
	char text[TAKT_ERR_MSG + 80];

	takt_err_text(err, text, sizeof(text));
	if (rc == -TAKT_E_CONFLICT)
		local_outcome(local, start->id, TAKT_OUTCOME_CONFLICT, start->job_id,
			      start->attempt, text);
	else
		local_failed(local, start->id, start->job_id, start->attempt, TAKT_REFUSAL_ATTEMPT,
			     text);
}

void local_run_begin(struct local_engine *local, const struct takt_action *start)
{
	uint32_t patience_ms = local->config.patience_ms;
	struct local_run *run =
		takt_map_u64_ptr(&local->runs, local_key(start->job_id, start->attempt));
	struct takt_err err;
	int rc;

	if (run && run->stage != LOCAL_PLAIN && run->attempt == start->attempt &&
	    start->kind == TAKT_ACTION_START) {
		local_stage_turn(local, run, start);
		return;
	}
	if (start->staged) {
		rc = takt_err_set(&err, -TAKT_E_CONFLICT, "what was staged is not there any more");
		refuse(local, start, rc, &err);
		return;
	}
	if (run) {
		rc = takt_err_set(&err, -TAKT_E_CONFLICT, "attempt %" PRIu32 " of the job is alive",
				  run->attempt);
		refuse(local, start, rc, &err);
		return;
	}
	run = add_run(local, start->job_id, start->attempt);
	if (!run) {
		rc = takt_err_set(&err, -TAKT_E_LIMIT, "no room for another attempt");
		refuse(local, start, rc, &err);
		return;
	}
	run->stage = start->kind == TAKT_ACTION_STAGE ? LOCAL_MAKING : LOCAL_PLAIN;
	rc = make_attempt(local, start, run, &err);
	if (rc < 0) {
		forget(local, run);
		refuse(local, start, rc, &err);
		return;
	}
	takt_crash_point("engine.after_create");
	patience_ms = patience_ms ? patience_ms : DEFAULT_PATIENCE_MS;
	run->start_action = start->id;
	run->state = LOCAL_UNSENT;
	run->give_up_ns = local->now_ns + patience_ms * TAKT_NS_PER_MS;
	local_run_step(local, run);
}
