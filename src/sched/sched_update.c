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
		[TAKT_SCHED_MODEL] = takt_sched_on_model,
		[TAKT_SCHED_NAME] = takt_sched_on_name,
		[TAKT_SCHED_SELECTOR] = takt_sched_on_selector,
		[TAKT_SCHED_WORKLOAD] = takt_sched_on_workload,
		[TAKT_SCHED_OUTLOOK] = takt_sched_on_outlook,
		[TAKT_SCHED_TENANT] = takt_sched_on_tenant,
		[TAKT_SCHED_TENANT_REMOVE] = takt_sched_on_tenant_remove,
		[TAKT_SCHED_TENANT_USAGE] = takt_sched_on_tenant_usage,
		[TAKT_SCHED_NODE_CORDON] = takt_sched_on_node_cordon,
		[TAKT_SCHED_NODE_FAILED] = takt_sched_on_node_failed,
		[TAKT_SCHED_WINDOW_ADD] = takt_sched_on_window_add,
		[TAKT_SCHED_WINDOW_REMOVE] = takt_sched_on_window_remove,
		[TAKT_SCHED_JOB_ESTIMATE] = takt_sched_on_job_estimate,
		[TAKT_SCHED_JOB_CHECKPOINT] = takt_sched_on_job_checkpoint,
		[TAKT_SCHED_JOB_MOVED] = takt_sched_on_job_moved,
		[TAKT_SCHED_GPU_LAYOUT] = takt_sched_on_gpu_layout,
	};
	int rc;

	if ((size_t)event->kind >= TAKT_SCHED_EVENT_COUNT)
		return takt_err_set(err, -EINVAL, "kind %d is not an event", (int)event->kind);
	takt_sched_close(sched);
	rc = handlers[event->kind](sched, event, err);
	if (rc < 0)
		return rc;
	sched->version++;
	return 0;
}
