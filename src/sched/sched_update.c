/* SPDX-License-Identifier: Apache-2.0 */
/* Taking events: from the kind of an event to what handles it. */
#include "sched/sched_update.h"

#include <errno.h>

int takt_sched_update(struct takt_sched *sched, const struct takt_sched_event *event,
		      struct takt_err *err)
{
	static takt_sched_handler *const handlers[TAKT_SCHED_EVENT_COUNT] = {
		[TAKT_SCHED_NODE_ADD] = takt_sched_on_node_add,
		[TAKT_SCHED_NODE_REMOVE] = takt_sched_on_node_remove,
		[TAKT_SCHED_GPU_HEALTH] = takt_sched_on_gpu_health,
		[TAKT_SCHED_GPU_OUTSIDE] = takt_sched_on_gpu_outside,
		[TAKT_SCHED_GPU_DRAINING] = takt_sched_on_gpu_draining,
		[TAKT_SCHED_GPU_DRAINED] = takt_sched_on_gpu_drained,
		[TAKT_SCHED_JOB_ADD] = takt_sched_on_job_add,
		[TAKT_SCHED_JOB_CHANGE] = takt_sched_on_job_change,
		[TAKT_SCHED_JOB_PLACED] = takt_sched_on_job_placed,
		[TAKT_SCHED_JOB_RUNNING] = takt_sched_on_job_running,
		[TAKT_SCHED_JOB_DRAINING] = takt_sched_on_job_draining,
		[TAKT_SCHED_JOB_REQUEUED] = takt_sched_on_job_requeued,
		[TAKT_SCHED_JOB_ENDED] = takt_sched_on_job_ended,
	};
	int rc;

	if ((size_t)event->kind >= TAKT_SCHED_EVENT_COUNT)
		return takt_err_set(err, -EINVAL, "kind %d is not an event", (int)event->kind);
	if (!handlers[event->kind])
		return takt_err_set(err, -EINVAL, "event '%s' is not taken yet",
				    takt_sched_event_name(event->kind));
	rc = handlers[event->kind](sched, event, err);
	if (rc < 0)
		return rc;
	sched->version++;
	return 0;
}
