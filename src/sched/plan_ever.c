/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a gang could ever be placed: were all that runs over, and but for conditions that pass.
 * One task too large for every node is told by the nodes; that no set of nodes is large enough, or
 * near enough together, shows only when it is tried. All groups of gangs are tried at once, when it
 * is first asked for one.
 */
#include "sched/plan_state.h"

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
	TAKT_VEC_EACH (it, &sched->queue) {
		const struct takt_sched_entry *entry = *it;
		struct takt_sched_group *group = entry->group;

		if (entry->slot_count > 0 || !group || group->judged == sched->serial ||
		    takt_sched_tasks(&entry->job) == 1)
			continue;
		group->judged = sched->serial;
		group->never = !fits_alone(planner, entry);
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
	if (entry->group->judged != planner->sched->serial)
		judge_all(planner);
	return entry->group->never ? why_never(planner->sched) : TAKT_WHY_NONE;
}
