/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A staged attempt: its shim waits for `go`. Until that is written it may be called off and nothing
 * of the job has run; from then on it is an attempt like any other that is about to start. What it
 * is told goes through the launcher as a signal that may be lost, and is repeated until what is
 * wanted can be seen in the attempt's directory.
 */
#include <errno.h>

#include "base/str.h"
#include "engine/local/local_private.h"

enum {
	DEFAULT_LEASE_MS = 300000,
	TELL_AGAIN_MS = 100, /* once the pauses are that long */
	RENEWALS_A_LEASE = 4,
};

uint32_t local_stage_lease_ms(const struct local_engine *local)
{
	return local->config.stage_lease_ms ? local->config.stage_lease_ms : DEFAULT_LEASE_MS;
}

static void call_off(struct local_run *run)
{
	run->stage = LOCAL_OFF;
	run->looks = 0;
}

bool local_stage_waits(const struct local_run *run)
{
	return run->stage == LOCAL_MAKING || run->stage == LOCAL_WAITING;
}

void local_stage_notice(struct local_run *run, const struct takt_attempt_status *status)
{
	bool waits = local_stage_waits(run);

	if (status->started) {
		/* Not by our word: whoever owns the attempt wrote the `go` himself. */
		if (waits)
			call_off(run);
		return;
	}
	if (!status->staged)
		return;
	run->litters = true;
	if (run->stage == LOCAL_OFF)
		return;
	/* PLAIN is a recovered one. Was it given the word before we died? */
	if (status->staged == TAKT_STAGED_UNKNOWN || waits == status->handed_over)
		call_off(run);
	else
		run->stage = waits ? LOCAL_WAITING : LOCAL_GOING;
}

static void tell(struct local_engine *local, const struct local_run *run, enum takt_launch_op op)
{
	struct takt_launch_request request = {.op = op,
					      .job_id = run->job_id,
					      .attempt = run->attempt,
					      .uid = run->uid,
					      .gid = run->gid,
					      .target = run->shim,
					      .limits = run->limits};

	(void)local_link_send(local, request, 0);
}

/* One that an earlier engine staged has its name in its spec alone. */
static int know_id(struct local_engine *local, struct local_run *run, struct takt_err *err)
{
	const struct takt_sys *sys = local->config.sys;
	struct takt_attempt_spec spec;
	int dirfd, rc;

	if (run->id[0])
		return 0;
	dirfd = takt_attempt_open(sys, local->jobs_dirfd, run->job_id, run->attempt, err);
	if (dirfd < 0)
		return dirfd;
	rc = takt_attempt_read_spec(sys, dirfd, &spec, err);
	(void)sys->close(sys, dirfd);
	if (rc < 0)
		return rc;
	takt_strcpy(run->id, sizeof(run->id), spec.id);
	takt_strcpy(run->secret, sizeof(run->secret), spec.secret);
	takt_attempt_spec_fini(&spec);
	return 0;
}

static int write_go(struct local_engine *local, struct local_run *run)
{
	struct takt_attempt_spec spec = {0};
	int rc = know_id(local, run, NULL);

	if (rc == 0)
		rc = local_run_describe(local, &run->turn, run, &spec, NULL);
	takt_crash_point("engine.before_go");
	if (rc >= 0)
		rc = takt_attempt_hand_over(local->config.sys, local->jobs_dirfd, &spec, NULL);
	takt_crash_point("engine.after_go");
	takt_attempt_spec_fini(&spec);
	return rc < 0 ? rc : 0;
}

static void go(struct local_engine *local, struct local_run *run)
{
	uint64_t action = run->turn.id;

	run->looks = 0;
	if (write_go(local, run) < 0) {
		run->stage = LOCAL_OFF; /* its START fails once that is so */
		return;
	}
	run->stage = LOCAL_GOING;
	run->turn.id = 0;
	local_outcome(local, action, TAKT_OUTCOME_ACCEPTED, run->job_id, run->attempt, "");
}

/* Its turn came with an earlier engine, whose word may not have been heard: say all of it again. */
static bool go_again(struct local_engine *local, struct local_run *run)
{
	run->turn = (struct takt_action){.kind = TAKT_ACTION_START,
					 .job_id = run->job_id,
					 .attempt = run->attempt,
					 .gpu_mask = run->gpu_mask};
	return write_go(local, run) == 0;
}

/* Told at first, then again where nothing is seen of it. */
static void insist(struct local_engine *local, struct local_run *run)
{
	bool can = run->stage != LOCAL_GOING || run->admits || go_again(local, run);

	uint64_t next_ns = takt_pace_ns(&local_looks, run->looks);

	if (can && run->stage != LOCAL_MAKING &&
	    (run->looks == 0 || next_ns >= TELL_AGAIN_MS * TAKT_NS_PER_MS))
		tell(local, run, run->stage == LOCAL_OFF ? TAKT_LAUNCH_STOP : TAKT_LAUNCH_LOOK);
	local_due_again(local, run);
}

void local_stage_step(struct local_engine *local, struct local_run *run)
{
	if (run->stage == LOCAL_WAITING && run->turn.id)
		go(local, run);
	if (run->stage != LOCAL_WAITING) {
		insist(local, run);
		return;
	}
	tell(local, run, TAKT_LAUNCH_LOOK);
	local_due(local, run, local_stage_lease_ms(local) / RENEWALS_A_LEASE);
}

void local_stage_turn(struct local_engine *local, struct local_run *run,
		      const struct takt_action *start)
{
	if (run->turn.id || run->stage == LOCAL_GOING) {
		local_outcome(local, start->id, TAKT_OUTCOME_CONFLICT, run->job_id, run->attempt,
			      "the attempt has its START already");
		return;
	}
	run->turn = *start;
	run->looks = 0;
	if (run->state == LOCAL_WATCHED)
		local_run_step(local, run);
}
