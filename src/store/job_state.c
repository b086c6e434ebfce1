/* SPDX-License-Identifier: Apache-2.0 */
/* Names of job states (they are what the database and the API say) and the job's own memory. */
#include <assert.h>

#include "base/mem.h"
#include "store/store.h"

static const char *const names[TAKT_JOB_STATE_COUNT] = {
	[TAKT_JOB_WAITING] = "waiting",
	[TAKT_JOB_STARTING] = "starting",
	[TAKT_JOB_RUNNING] = "running",
	[TAKT_JOB_STOPPING] = "stopping",
	[TAKT_JOB_DONE] = "done",
	[TAKT_JOB_FAILED] = "failed",
	[TAKT_JOB_CANCELLED] = "cancelled",
	[TAKT_JOB_LOST] = "lost",
	[TAKT_JOB_INTERRUPTED] = "interrupted",
};

const char *takt_job_state_name(enum takt_job_state state)
{
	assert((unsigned)state < TAKT_JOB_STATE_COUNT);
	return names[state];
}

const char *takt_cause_name(enum takt_cause cause)
{
	static const char *const causes[TAKT_CAUSE_COUNT] = {
		[TAKT_CAUSE_NONE] = "",
		[TAKT_CAUSE_GPU_LOST] = "gpu_lost",
		[TAKT_CAUSE_GPU_FAULT] = "gpu_fault",
		[TAKT_CAUSE_GPU_ERROR] = "gpu_error",
		[TAKT_CAUSE_GPU_MEMORY] = "gpu_memory",
		[TAKT_CAUSE_HOST_MEMORY] = "host_memory",
		[TAKT_CAUSE_TIME_LIMIT] = "time_limit",
		[TAKT_CAUSE_NODE_REBOOT] = "node_reboot",
		[TAKT_CAUSE_IDLE_RELEASE] = "idle_release",
		[TAKT_CAUSE_PREEMPTED] = "preempted",
		[TAKT_CAUSE_MAINTENANCE] = "maintenance",
		[TAKT_CAUSE_REQUEUED] = "requeued",
		[TAKT_CAUSE_CANCELLED] = "cancelled",
		[TAKT_CAUSE_DEPENDENCY] = "dependency",
		[TAKT_CAUSE_NOT_STARTED] = "not_started",
		[TAKT_CAUSE_TAKT_DIED] = "takt_died",
	};

	assert((unsigned)cause < TAKT_CAUSE_COUNT);
	return causes[cause];
}

const char *takt_job_hold_name(enum takt_job_hold hold)
{
	static const char *const holds[TAKT_HOLD_COUNT] = {
		[TAKT_HOLD_NONE] = "",
		[TAKT_HOLD_OWNER] = "owner",
		[TAKT_HOLD_ADMIN] = "admin",
	};

	return (unsigned)hold < TAKT_HOLD_COUNT ? holds[hold] : "?";
}

bool takt_job_state_ended(enum takt_job_state state)
{
	return state >= TAKT_JOB_DONE && state < TAKT_JOB_STATE_COUNT;
}

void takt_job_fini(struct takt_job *job)
{
	takt_free(job->spec_json);
	takt_free(job->env_json);
	takt_free(job->message);
	takt_free(job->mig);
	takt_free(job->gpu_uuids);
	job->spec_json = NULL;
	job->env_json = NULL;
	job->message = NULL;
	job->mig = NULL;
	job->gpu_uuids = NULL;
}
