/* SPDX-License-Identifier: Apache-2.0 */
/*
 * takt's own engine: jobs run on this machine, each under a shim that outlives us.
 *
 * It keeps no truth of its own: what became of an attempt is read from its directory
 * (launch/attempt.h), so that it may die at any point and be rebuilt with recover(). It makes the
 * attempt's directory, asks the launcher for a shim, watches the shim by pidfd, and says ENDED only
 * when the shim has recorded the end and is gone. It never blocks and never syncs a disk.
 *
 * One attempt a job may be alive; START of another is a CONFLICT. Beside it one that is no attempt
 * at the job (TAKT_ENGINE_ASIDE), by the same rules.
 */
#ifndef TAKT_ENGINE_LOCAL_LOCAL_ENGINE_H
#define TAKT_ENGINE_LOCAL_LOCAL_ENGINE_H

#include <sys/types.h>

#include "base/sys.h"
#include "engine/engine.h"
#include "launch/attempt.h"

struct takt_engine_local_config {
	const struct takt_sys *sys; /* borrowed until free */
	const char *jobs_dir;	    /* exists; borrowed for the call */
	const char
		*launch_socket; /* of takt-launch, which may come and go; borrowed for the call */

	/*
	 * What a START means: fill argv, env, cwd, grace_ms and, where wanted, cpus and limits of
	 * *ret_spec (zeroed; the engine finis it), and the user. Of a STAGE (start->kind) likewise,
	 * as far as it can be known without GPUs, and the prefetch. The environment must hold
	 * TAKT_ATTEMPT=attempt_id (takt_jobenv_build does). Negative: the START is FAILED with that
	 * message.
	 */
	int (*describe)(void *ctx, const struct takt_action *start, const char *attempt_id,
			struct takt_attempt_spec *ret_spec, uid_t *ret_uid, gid_t *ret_gid,
			struct takt_err *err);
	void *ctx;

	/* The answer to takt_engine_local_whose(), from pump: the attempt's id, "" = none. */
	void (*whose)(void *ctx, const struct takt_proc_id *process, const char *attempt_id);

	uint32_t max_attempts;	 /* alive at once; 0 = 16,384 */
	uint32_t patience_ms;	 /* how long a START may wait for a launcher; 0 = 10,000 */
	uint32_t stage_lease_ms; /* a staged attempt goes when it has not heard from an engine for
				    this long; 0 = 300,000 */
};

int takt_engine_local_new(const struct takt_engine_local_config *config, struct takt_engine **ret,
			  struct takt_err *err);

/* An attempt that the store believes alive. */
struct takt_engine_live {
	uint64_t job_id;
	uint32_t attempt;
	uid_t uid;
	gid_t gid;
	bool staged;	   /* it was not given its START */
	uint64_t gpu_mask; /* else: of its START */
};

/*
 * After a start of the daemon, once, before the first apply. What became of each attempt comes as
 * events from pump: ADOPTED (its shim lives; STARTED follows if its start was not recorded yet; one
 * that is staged and should be waits on, one that was given its START and has not seen it is called
 * off), or
 * ENDED: as recorded, NEVER_RAN (voided first, so that no start still on its way can run it),
 * INTERRUPTED (another boot), LOST (after its survivors were killed). Takes all or, negative, none.
 */
int takt_engine_local_recover(struct takt_engine *engine, const struct takt_engine_live *live,
			      size_t n, struct takt_err *err);

/* Has the launcher read in the environment of this process of the user's to which attempt it
 * belongs, as TAKT_LAUNCH_WHOSE. Where it cannot be asked now, or dies, there is no answer: ask
 * again. */
void takt_engine_local_whose(struct takt_engine *engine, const struct takt_proc_id *process,
			     uid_t uid);

/* Attempts that are not over, started or not. */
size_t takt_engine_local_count(const struct takt_engine *engine);

#endif
