/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a job goes: all of its tasks, or at least as many as an elastic one needs, or none. Each is
 * taken in the cluster before the next is looked for; if they do not all find room, the cluster is
 * rolled back, so nothing is ever held for a part of a gang.
 */
#include <errno.h>

#include "base/mem.h"
#include "sched/plan_state.h"

static bool make_room(struct takt_planner *planner, uint32_t n)
{
	struct takt_slot *slots;

	if (n <= planner->slot_room)
		return true;
	slots = takt_reallocarray(planner->slots, n, sizeof(*slots));
	if (!slots) {
		takt_plan_fail(planner, -ENOMEM);
		return false;
	}
	planner->slots = slots;
	planner->slot_room = n;
	return true;
}

uint32_t takt_plan_fill(struct takt_planner *planner, uint32_t kind, const struct takt_scope *scope,
			uint32_t at, uint32_t n)
{
	struct takt_cluster *cluster = planner->sched->cluster;
	uint32_t done = 0;

	while (done < n) {
		struct takt_slot *slot = &planner->slots[at + done];
		int rc;

		if (!takt_plan_pick(planner, kind, scope, slot))
			break;
		rc = takt_cluster_take(cluster, kind, slot);
		if (rc < 0) {
			takt_plan_fail(planner, rc);
			break;
		}
		done++;
	}
	return done;
}

/* As many as may be: tasks, or what the tenants' limits leave of an elastic gang. */
static uint32_t most_tasks(const struct takt_planner *planner, const struct takt_sched_entry *entry)
{
	uint32_t tasks = takt_sched_tasks(&entry->job);
	uint32_t least = takt_sched_min_tasks(&entry->job);

	while (tasks > least && !takt_plan_within_quota(planner, entry, tasks))
		tasks--;
	return tasks;
}

uint32_t takt_plan_place_gang(struct takt_planner *planner, const struct takt_sched_entry *entry,
			      const struct takt_scope *scope)
{
	struct takt_cluster *cluster = planner->sched->cluster;
	uint32_t least = takt_sched_min_tasks(&entry->job);
	uint32_t most = most_tasks(planner, entry);
	uint64_t mark;
	uint32_t n;

	if (!make_room(planner, most) || takt_cluster_domain_room(cluster, entry->kind, 0) < least)
		return 0;
	mark = takt_cluster_mark(cluster);
	n = entry->job.topology == TAKT_TOPOLOGY_NONE
		    ? takt_plan_fill(planner, entry->kind, scope, 0, most)
		    : takt_plan_place_near(planner, entry, scope, least, most);
	if (n >= least) {
		takt_cluster_commit(cluster, mark);
		return n;
	}
	takt_cluster_rollback(cluster, mark);
	return 0;
}

uint32_t takt_plan_place(struct takt_planner *planner, const struct takt_sched_entry *entry,
			 uint64_t start_ns)
{
	const struct takt_scope *scope = takt_plan_scope(planner, entry, start_ns);

	if (takt_sched_tasks(&entry->job) > 1)
		return takt_cluster_request(planner->sched->cluster, entry->kind)->speeds
			       ? takt_plan_place_on_one_model(planner, entry, scope)
			       : takt_plan_place_gang(planner, entry, scope);
	if (!make_room(planner, 1))
		return 0;
	return takt_plan_fill(planner, entry->kind, scope, 0, 1);
}
