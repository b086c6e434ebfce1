/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a gang could ever be placed: were all that runs over, and but for conditions that pass.
 * One task too large for every node is told by the nodes; that no set of nodes is large enough, or
 * near enough together, shows only when it is tried, unless there is a domain that clearly has room
 * for it when it is empty. All groups of gangs of which that is not known are tried at once, and
 * what was found stands until nodes change.
 */
#include "sched/plan_state.h"

/* What an answer rests on: the nodes, as nothing that runs counts; but for tasks that are on the
 * move, and for elastic gangs, of which tenants' limits say how many tasks are tried. */
static uint64_t basis_of(const struct takt_sched *sched, const struct takt_sched_group *group)
{
	if (sched->open.borrowed.len > 0 || group->shape.tasks != group->shape.min_tasks)
		return 2 * sched->serial;
	return 2 * takt_cluster_shape_version(sched->cluster) + 1;
}

static bool is_judged(const struct takt_sched *sched, const struct takt_sched_group *group)
{
	return group->judged == basis_of(sched, group);
}

static void judge(const struct takt_sched *sched, struct takt_sched_group *group, bool never)
{
	group->judged = basis_of(sched, group);
	group->never = never;
}

/* Whether these nodes, were they empty, are known to hold so many tasks. */
static bool hold_when_empty(const struct takt_sched *sched, uint32_t kind, uint32_t domain,
			    uint32_t tasks)
{
	const uint32_t *nodes;
	uint64_t room = 0;
	size_t count;

	if (takt_cluster_domain_nodes(sched->cluster, domain, &nodes, &count) < 0)
		return false;
	for (size_t i = 0; i < count && room < tasks; i++)
		room += takt_cluster_room_when_empty(sched->cluster, kind, nodes[i]);
	return room >= tasks;
}

/* Most often it takes a look at a few nodes to see that a gang can be placed, and no trying. False
 * is not known. */
static bool surely_fits(const struct takt_sched *sched, const struct takt_sched_entry *entry)
{
	const struct takt_sched_job *job = &entry->job;
	uint32_t level = job->topology == TAKT_TOPOLOGY_REQUIRED ? job->level : 1;
	uint32_t domains = (uint32_t)takt_cluster_domain_count(sched->cluster);

	if (level == 0 || sched->open.borrowed.len > 0 ||
	    takt_cluster_request(sched->cluster, entry->kind)->speeds)
		return false;
	for (uint32_t domain = 1; domain <= domains; domain++)
		if (takt_cluster_domain_level(sched->cluster, domain) == level &&
		    hold_when_empty(sched, entry->kind, domain, takt_sched_tasks(job)))
			return true;
	return false;
}

static void give_all(struct takt_planner *planner)
{
	struct takt_sched *sched = planner->sched;

	TAKT_VEC_EACH (end, &planner->ends) {
		if (!end->entry) {
			(void)takt_cluster_give(sched->cluster, sched->drain_kind, &end->drain);
			continue;
		}
		for (uint32_t i = 0; i < end->entry->slot_count; i++)
			(void)takt_cluster_give(sched->cluster, end->entry->kind,
						&end->entry->slots[i]);
	}
}

static bool fits_alone(struct takt_planner *planner, const struct takt_sched_entry *entry)
{
	struct takt_cluster *cluster = planner->sched->cluster;
	uint64_t mark = takt_cluster_mark(cluster);
	uint32_t n = takt_cluster_request(cluster, entry->kind)->speeds
			     ? takt_plan_place_on_one_model(planner, entry, NULL)
			     : takt_plan_place_gang(planner, entry, NULL);

	takt_cluster_rollback(cluster, mark);
	return n > 0;
}

static void judge_all(struct takt_planner *planner)
{
	struct takt_sched *sched = planner->sched;
	uint64_t mark;

	takt_plan_hold_nothing(planner);
	takt_plan_list_ends(planner);
	mark = takt_cluster_mark(sched->cluster);
	give_all(planner);
	for (size_t i = 0; i < sched->queue.len; i++) {
		const struct takt_sched_entry *entry = takt_sched_queue_at(sched, i);
		struct takt_sched_group *group = entry ? entry->group : NULL;
		bool never;

		if (!entry || entry->slot_count > 0 || !group || is_judged(sched, group) ||
		    takt_sched_tasks(&entry->job) == 1)
			continue;
		never = !fits_alone(planner, entry);
		if (planner->rc == 0)
			judge(sched, group, never);
	}
	takt_cluster_rollback(sched->cluster, mark);
}

/* What of the nodes is not as it should be. */
static enum takt_why why_never(const struct takt_sched *sched)
{
	enum takt_why why = TAKT_WHY_IMPOSSIBLE;

	TAKT_VEC_EACH (it, &sched->hosts) {
		const struct takt_sched_host *host = *it;

		if (host->removed)
			continue;
		if (host->quarantined | host->lost || host->cordoned || host->resting)
			return TAKT_WHY_UNHEALTHY;
		if (host->outside)
			why = TAKT_WHY_OUTSIDE;
	}
	return why;
}

enum takt_why takt_plan_why_never(struct takt_planner *planner,
				  const struct takt_sched_entry *entry)
{
	if (takt_sched_tasks(&entry->job) == 1 || !entry->group)
		return TAKT_WHY_NONE;
	if (!is_judged(planner->sched, entry->group)) {
		if (surely_fits(planner->sched, entry))
			judge(planner->sched, entry->group, false);
		else
			judge_all(planner);
	}
	return entry->group->never ? why_never(planner->sched) : TAKT_WHY_NONE;
}
