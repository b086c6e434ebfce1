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
	[TAKT_SCHED_NODE_ADD] = "node_add",	    [TAKT_SCHED_NODE_REMOVE] = "node_remove",
	[TAKT_SCHED_GPU_HEALTH] = "gpu_health",	    [TAKT_SCHED_GPU_OUTSIDE] = "gpu_outside",
	[TAKT_SCHED_GPU_DRAINING] = "gpu_draining", [TAKT_SCHED_GPU_DRAINED] = "gpu_drained",
	[TAKT_SCHED_JOB_ADD] = "job_add",	    [TAKT_SCHED_JOB_CHANGE] = "job_change",
	[TAKT_SCHED_JOB_PLACED] = "job_placed",	    [TAKT_SCHED_JOB_RUNNING] = "job_running",
	[TAKT_SCHED_JOB_DRAINING] = "job_draining", [TAKT_SCHED_JOB_REQUEUED] = "job_requeued",
	[TAKT_SCHED_JOB_ENDED] = "job_ended",	    [TAKT_SCHED_EVENT_COUNT] = NULL,
};

const char *const takt_why_names[] = {
	[TAKT_WHY_NONE] = "none",
	[TAKT_WHY_HELD] = "held",
	[TAKT_WHY_IMPOSSIBLE] = "impossible",
	[TAKT_WHY_UNHEALTHY] = "unhealthy",
	[TAKT_WHY_OUTSIDE] = "outside",
	[TAKT_WHY_ORDER] = "order",
	[TAKT_WHY_GPUS] = "gpus",
	[TAKT_WHY_COUNT] = NULL,
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
