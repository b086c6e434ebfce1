/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a job may be: not on nodes or GPUs of a window that is somebody else's and begins before
 * the job is predicted to be over, near to the jobs that it wants to be near to, apart from those
 * that it wants to be apart from.
 */
#include <errno.h>

#include "sched/plan_state.h"

uint64_t takt_plan_end_if_started(const struct takt_planner *planner,
				  const struct takt_sched_entry *entry, uint64_t start_ns)
{
	uint64_t left = takt_sched_left_ns(entry);

	if (entry->job.estimate_ns == 0 || start_ns == UINT64_MAX)
		return UINT64_MAX;
	return start_ns + takt_sched_stretched_ns(planner->sched, left);
}

/* Whether a tenant is `above` or one below it. */
static bool is_within(const struct takt_tenants *tenants, uint32_t tenant, uint32_t above)
{
	while (tenant != TAKT_TENANT_ROOT && tenant != above)
		tenant = takt_tenants_find(tenants, tenant)->parent;
	return tenant == above;
}

static bool is_for(const struct takt_sched *sched, const struct takt_sched_window *window,
		   const struct takt_sched_job *job)
{
	return (window->job && window->job == job->id) ||
	       (window->owner && window->owner == job->owner) ||
	       (window->tenant && is_within(sched->tenants, job->tenant, window->tenant));
}

static int clear(struct takt_planner *planner)
{
	size_t words = takt_cluster_node_count(planner->sched->cluster) / 64 + 1;

	takt_vec_clear(&planner->leave_out);
	if (takt_vec_reserve(&planner->leave_out, words) < 0)
		return -ENOMEM;
	memset(planner->leave_out.at, 0, words * sizeof(*planner->leave_out.at));
	planner->leave_out.len = words;
	takt_vec_clear(&planner->keep_off);
	return 0;
}

static void leave_out(struct takt_planner *planner, uint32_t node)
{
	planner->leave_out.at[node / 64] |= UINT64_C(1) << node % 64;
}

/* GPUs of one node. */
static void keep_off(struct takt_planner *planner, uint32_t node, uint64_t gpu_mask)
{
	size_t had = planner->keep_off.len, need = (size_t)node + 1;

	if (had < need) {
		if (takt_vec_reserve(&planner->keep_off, need - had) < 0) {
			takt_plan_fail(planner, -ENOMEM);
			return;
		}
		memset(&planner->keep_off.at[had], 0, (need - had) * sizeof(uint64_t));
		planner->keep_off.len = need;
	}
	planner->keep_off.at[node] |= gpu_mask;
}

static void leave_out_window(struct takt_planner *planner, const struct takt_sched_window *window)
{
	for (uint32_t i = 0; i < window->node_count; i++) {
		const struct takt_sched_host *host =
			takt_sched_host_find(planner->sched, window->nodes[i]);

		if (!host || host->removed)
			continue;
		if (window->gpu_mask)
			keep_off(planner, host->node, window->gpu_mask);
		else
			leave_out(planner, host->node);
	}
}

/* GPUs of the host in windows that have begun: in those that are for the job, or in the others. */
static uint64_t windows_now(const struct takt_planner *planner, const struct takt_sched_job *job,
			    const struct takt_sched_host *host, bool own)
{
	uint64_t gpu_mask = 0;

	TAKT_VEC_EACH (window, &planner->sched->windows) {
		bool there = false;

		if (window->start_ns > planner->now_ns || window->end_ns <= planner->now_ns ||
		    is_for(planner->sched, window, job) != own)
			continue;
		for (uint32_t i = 0; i < window->node_count; i++)
			there = there || window->nodes[i] == host->facts.id;
		if (there)
			gpu_mask |= window->gpu_mask ? window->gpu_mask : UINT64_MAX;
	}
	return gpu_mask;
}

uint64_t takt_plan_kept(const struct takt_planner *planner, const struct takt_sched_job *job,
			const struct takt_sched_host *host)
{
	return windows_now(planner, job, host, false);
}

uint64_t takt_plan_own(const struct takt_planner *planner, const struct takt_sched_job *job,
		       uint32_t node)
{
	return windows_now(planner, job, planner->sched->host_of.at[node], true);
}

static void leave_out_windows(struct takt_planner *planner, const struct takt_sched_entry *entry,
			      uint64_t start_ns)
{
	uint64_t end_ns = takt_plan_end_if_started(planner, entry, start_ns);

	TAKT_VEC_EACH (window, &planner->sched->windows) {
		takt_plan_wake_at(planner, window->start_ns);
		takt_plan_wake_at(planner, window->end_ns);
		if (window->start_ns < end_ns && window->end_ns > start_ns &&
		    !is_for(planner->sched, window, &entry->job))
			leave_out_window(planner, window);
	}
}

/* Which domain of a level a node is in; level 0 is the node itself. Nodes outside all domains of
 * the level are near to nobody but themselves. */
static uint64_t place_of(const struct takt_sched *sched, uint32_t node, uint32_t level)
{
	uint32_t domain = level ? takt_cluster_node_domain(sched->cluster, node, level) : 0;

	return domain ? (UINT64_C(1) << 32) + domain : node;
}

static bool shares_place(const struct takt_sched *sched, const struct takt_sched_entry *other,
			 uint64_t place, uint32_t level)
{
	for (uint32_t i = 0; i < other->slot_count; i++)
		if (place_of(sched, other->slots[i].node, level) == place)
			return true;
	return false;
}

/* Whether jobs of the group that have a place are near to that node: any of them, or all. No job
 * counts as near. */
static bool is_near(const struct takt_sched *sched, uint32_t group, uint32_t level, uint32_t node,
		    bool all)
{
	uint64_t place = place_of(sched, node, level);

	TAKT_VEC_EACH (it, &sched->jobs) {
		const struct takt_sched_entry *other = *it;

		if (other->job.group != group || other->slot_count == 0)
			continue;
		if (shares_place(sched, other, place, level) != all)
			return !all;
	}
	return all;
}

static void leave_out_affine(struct takt_planner *planner, const struct takt_sched_job *job)
{
	const struct takt_sched *sched = planner->sched;

	TAKT_VEC_EACH (it, &sched->hosts) {
		const struct takt_sched_host *host = *it;

		if (host->removed)
			continue;
		if ((job->near_group &&
		     !is_near(sched, job->near_group, job->near_level, host->node, true)) ||
		    (job->apart_group &&
		     is_near(sched, job->apart_group, job->apart_level, host->node, false)))
			leave_out(planner, host->node);
	}
}

const struct takt_scope *takt_plan_scope(struct takt_planner *planner,
					 const struct takt_sched_entry *entry, uint64_t start_ns)
{
	bool affine = entry->job.near_group || entry->job.apart_group;

	if (planner->sched->windows.len == 0 && !affine)
		return NULL;
	if (clear(planner) < 0) {
		takt_plan_fail(planner, -ENOMEM);
		return NULL;
	}
	leave_out_windows(planner, entry, start_ns);
	if (affine)
		leave_out_affine(planner, &entry->job);
	planner->scope = (struct takt_scope){
		.leave_out = planner->leave_out.at,
		.leave_out_words = planner->leave_out.len,
		.keep_off = planner->keep_off.at,
		.keep_off_count = planner->keep_off.len,
	};
	return &planner->scope;
}
