/* SPDX-License-Identifier: Apache-2.0 */
/* Stable names of the scheduler's enumerations, and the score of a link. */
#include "base/compiler.h"
#include "sched/sched.h"

const char *const takt_gpu_state_names[] = {
	[TAKT_GPU_FREE] = "free",
	[TAKT_GPU_ASSIGNED] = "assigned",
	[TAKT_GPU_RUNNING] = "running",
	[TAKT_GPU_DRAINING] = "draining",
	[TAKT_GPU_QUARANTINED] = "quarantined",
	[TAKT_GPU_LOST] = "lost",
	[TAKT_GPU_STATE_COUNT] = NULL,
};

const char *const takt_sched_event_names[] = {
	[TAKT_SCHED_NODE_ADD] = "node_add",
	[TAKT_SCHED_NODE_REMOVE] = "node_remove",
	[TAKT_SCHED_GPU_HEALTH] = "gpu_health",
	[TAKT_SCHED_GPU_OUTSIDE] = "gpu_outside",
	[TAKT_SCHED_GPU_DRAINING] = "gpu_draining",
	[TAKT_SCHED_GPU_DRAINED] = "gpu_drained",
	[TAKT_SCHED_JOB_ADD] = "job_add",
	[TAKT_SCHED_JOB_CHANGE] = "job_change",
	[TAKT_SCHED_JOB_PLACED] = "job_placed",
	[TAKT_SCHED_JOB_RUNNING] = "job_running",
	[TAKT_SCHED_JOB_DRAINING] = "job_draining",
	[TAKT_SCHED_JOB_REQUEUED] = "job_requeued",
	[TAKT_SCHED_JOB_ENDED] = "job_ended",
	[TAKT_SCHED_MODEL] = "model",
	[TAKT_SCHED_NAME] = "name",
	[TAKT_SCHED_SELECTOR] = "selector",
	[TAKT_SCHED_WORKLOAD] = "workload",
	[TAKT_SCHED_OUTLOOK] = "outlook",
	[TAKT_SCHED_TENANT] = "tenant",
	[TAKT_SCHED_TENANT_REMOVE] = "tenant_remove",
	[TAKT_SCHED_TENANT_USAGE] = "tenant_usage",
	[TAKT_SCHED_NODE_FAILED] = "node_failed",
	[TAKT_SCHED_NODE_CORDON] = "node_cordon",
	[TAKT_SCHED_WINDOW_ADD] = "window_add",
	[TAKT_SCHED_WINDOW_REMOVE] = "window_remove",
	[TAKT_SCHED_JOB_ESTIMATE] = "job_estimate",
	[TAKT_SCHED_JOB_CHECKPOINT] = "job_checkpoint",
	[TAKT_SCHED_JOB_MOVED] = "job_moved",
	[TAKT_SCHED_GPU_LAYOUT] = "gpu_layout",
	[TAKT_SCHED_EVENT_COUNT] = NULL,
};

const char *const takt_why_names[] = {
	[TAKT_WHY_NONE] = "none",
	[TAKT_WHY_HELD] = "held",
	[TAKT_WHY_DEPENDENCY] = "dependency",
	[TAKT_WHY_EARLIEST] = "earliest_start",
	[TAKT_WHY_ARRAY] = "array",
	[TAKT_WHY_QUOTA] = "quota",
	[TAKT_WHY_IMPOSSIBLE] = "impossible",
	[TAKT_WHY_SELECTOR] = "selector",
	[TAKT_WHY_MODEL] = "model",
	[TAKT_WHY_UNHEALTHY] = "unhealthy",
	[TAKT_WHY_OUTSIDE] = "outside",
	[TAKT_WHY_ORDER] = "order",
	[TAKT_WHY_GPUS] = "gpus",
	[TAKT_WHY_FRACTION] = "fraction",
	[TAKT_WHY_DEV_MEMORY] = "gpu_memory",
	[TAKT_WHY_MIG] = "mig",
	[TAKT_WHY_NUMA] = "numa",
	[TAKT_WHY_CPU] = "cpu",
	[TAKT_WHY_MEMORY] = "memory",
	[TAKT_WHY_PER_NODE] = "per_node",
	[TAKT_WHY_POLICY] = "policy",
	[TAKT_WHY_AFFINITY] = "affinity",
	[TAKT_WHY_RESERVATION] = "reservation",
	[TAKT_WHY_GANG] = "gang",
	[TAKT_WHY_TOPOLOGY] = "topology",
	[TAKT_WHY_PREEMPTION] = "preemption",
	[TAKT_WHY_COUNT] = NULL,
};

const char *const takt_sched_space_names[] = {
	[TAKT_SPACE_LABEL] = "label",
	[TAKT_SPACE_LEVEL] = "level",
	[TAKT_SPACE_PROFILE] = "profile",
	[TAKT_SPACE_COUNT] = NULL,
};

const char *const takt_topology_want_names[] = {
	[TAKT_TOPOLOGY_NONE] = "none",
	[TAKT_TOPOLOGY_PREFERRED] = "preferred",
	[TAKT_TOPOLOGY_REQUIRED] = "required",
	[TAKT_TOPOLOGY_WANT_COUNT] = NULL,
};

const char *const takt_failure_policy_names[] = {
	[TAKT_FAILURE_KEEP] = "keep",	    [TAKT_FAILURE_REQUEUE] = "requeue",
	[TAKT_FAILURE_MIGRATE] = "migrate", [TAKT_FAILURE_STOP] = "stop",
	[TAKT_FAILURE_POLICY_COUNT] = NULL,
};

const char *const takt_unblock_names[] = {
	[TAKT_UNBLOCK_NOTHING] = "nothing",   [TAKT_UNBLOCK_RELEASE] = "release",
	[TAKT_UNBLOCK_JOBS_END] = "jobs_end", [TAKT_UNBLOCK_JOB_AHEAD] = "job_ahead",
	[TAKT_UNBLOCK_TIME] = "time",	      [TAKT_UNBLOCK_QUOTA] = "quota",
	[TAKT_UNBLOCK_REPAIR] = "repair",     [TAKT_UNBLOCK_OUTSIDE_USE] = "outside_use",
	[TAKT_UNBLOCK_LARGER] = "larger",     [TAKT_UNBLOCK_COUNT] = NULL,
};

const char *const takt_start_how_names[] = {
	[TAKT_START_UNKNOWN] = "unknown", [TAKT_START_NOW] = "now",
	[TAKT_START_RELEASE] = "release", [TAKT_START_ESTIMATE] = "estimate",
	[TAKT_START_BEHIND] = "behind",	  [TAKT_START_HOW_COUNT] = NULL,
};

const char *const takt_evict_why_names[] = {
	[TAKT_EVICT_PRIORITY] = "priority", [TAKT_EVICT_RECLAIM] = "reclaim",
	[TAKT_EVICT_FAILURE] = "failure",   [TAKT_EVICT_WINDOW] = "window",
	[TAKT_EVICT_WHY_COUNT] = NULL,
};

const char *const takt_backfill_names[] = {
	[TAKT_BACKFILL_NONE] = "none", [TAKT_BACKFILL_GREEDY] = "greedy",
	[TAKT_BACKFILL_EASY] = "easy", [TAKT_BACKFILL_CONSERVATIVE] = "conservative",
	[TAKT_BACKFILL_COUNT] = NULL,
};

const char *takt_gpu_state_name(enum takt_gpu_state state)
{
	return (size_t)state < TAKT_GPU_STATE_COUNT ? takt_gpu_state_names[state] : "?";
}

const char *takt_sched_event_name(enum takt_sched_event_kind kind)
{
	return (size_t)kind < TAKT_SCHED_EVENT_COUNT ? takt_sched_event_names[kind] : "?";
}

const char *takt_why_name(enum takt_why why)
{
	return (size_t)why < TAKT_WHY_COUNT ? takt_why_names[why] : "?";
}

static const struct link_class {
	const char *name;
	int32_t score;
} links[] = {
	[TAKT_LINK_UNKNOWN] = {"?", 0},	   [TAKT_LINK_SYS] = {"SYS", 10},
	[TAKT_LINK_NODE] = {"NODE", 20},   [TAKT_LINK_PHB] = {"PHB", 30},
	[TAKT_LINK_PXB] = {"PXB", 40},	   [TAKT_LINK_PIX] = {"PIX", 50},
	[TAKT_LINK_BOARD] = {"BOARD", 60},
};

const char *takt_link_name(enum takt_link pcie)
{
	return (size_t)pcie < TAKT_ARRAY_LEN(links) ? links[pcie].name : "?";
}

int32_t takt_link_score(enum takt_link pcie, uint32_t nvlinks)
{
	int32_t score = (size_t)pcie < TAKT_ARRAY_LEN(links) ? links[pcie].score : 0;
	uint32_t most = (uint32_t)(INT32_MAX - 60) / 100;

	return score + 100 * (int32_t)(nvlinks < most ? nvlinks : most);
}
