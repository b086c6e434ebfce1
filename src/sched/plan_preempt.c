/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preemption: who may push out others, and what comes of it.
 *
 * After the main pass, waiting jobs that found no place are looked at in queue order, one of each
 * group (its first: what it may not push out, those behind it may not either). For each, the
 * cheapest sufficient set of victims is looked for in the cluster, under a mark: plan_victims.c. A
 * gang is pushed out whole and gets room whole, or nothing happens; GPUs that are free already and
 * those that only have to drain count. What was found stays given and taken for the candidates
 * after it, and is undone at the end: evictions are a plan for the engine, and the job starts by a
 * later plan, when they are gone.
 *
 * Who may be pushed out is the order policy's word (takt_order_may_evict), or the tenants' (what
 * was borrowed may be reclaimed, takt_tenants_may_reclaim_all). Only the job that nothing may
 * overtake is a candidate where order is strict, and only those that GPUs are kept for where there
 * are reservations: what is freed for another could not be given to it.
 */
#include <errno.h>

#include "base/mem.h"
#include "base/sort.h"
#include "sched/plan_victims.h"

enum {
	LOOK_AGAIN_S = 300, /* for the policies in which time changes who may push out whom */
};

static int by_key(const void *a, const void *b, void *ctx)
{
	(void)ctx;
	return takt_order_compare(&(*(struct takt_sched_entry *const *)a)->key,
				  &(*(struct takt_sched_entry *const *)b)->key);
}

static bool is_strict(const struct takt_planner *planner)
{
	return planner->sched->config.backfill == TAKT_BACKFILL_NONE;
}

static bool may_be_candidate(const struct takt_planner *planner,
			     const struct takt_sched_entry *entry)
{
	if (entry->kind == TAKT_SCHED_NO_KIND || entry->slot_count > 0 ||
	    takt_plan_not_ready(planner, entry) != TAKT_WHY_NONE)
		return false;
	if (is_strict(planner))
		return planner->head == entry;
	return planner->kept.len == 0 || takt_plan_kept_for(planner, entry);
}

static void consider(struct takt_sched_entry *entry, struct takt_sched_entry **best)
{
	if (entry && (!*best || takt_order_compare(&entry->key, &(*best)->key) < 0))
		*best = entry;
}

/* Candidates, one of each group, in queue order. */
static int list_candidates(struct takt_planner *planner, struct takt_sched_entry ***ret,
			   size_t *ret_n)
{
	struct takt_sched *sched = planner->sched;
	struct takt_sched_entry **list =
		takt_calloc(sched->groups.len + 1, sizeof(struct takt_sched_entry *));
	size_t n = 0;
	int rc;

	if (!list)
		return -ENOMEM;
	TAKT_VEC_EACH (group, &sched->groups)
		(*group)->candidate = takt_sched_first_job(*group);
	for (struct takt_sched_entry *entry = planner->stash; entry; entry = entry->next_stashed)
		consider(entry, &entry->group->candidate);
	TAKT_VEC_EACH (group, &sched->groups)
		if ((*group)->candidate && may_be_candidate(planner, (*group)->candidate))
			list[n++] = (*group)->candidate;
	rc = takt_sort(list, n, sizeof(*list), by_key, NULL);
	if (rc < 0) {
		takt_free(list);
		return rc;
	}
	*ret = list;
	*ret_n = n;
	return 0;
}

static void evict(struct takt_planner *planner, const struct takt_victim *victim,
		  const struct takt_sched_entry *entry)
{
	struct takt_plan_eviction eviction = {
		.job_id = victim->entry->job.id,
		.why = victim->reclaimed ? TAKT_EVICT_RECLAIM : TAKT_EVICT_PRIORITY,
		.for_job = entry->job.id,
		.lost_gpu_ms = victim->loss_gpu_ms,
	};

	takt_plan_fail(planner, takt_vec_push(&planner->evictions, eviction));
}

static void look_for_room(struct takt_planner *planner, struct takt_victims *victims,
			  struct takt_sched_entry *entry)
{
	uint32_t n = takt_victims_choose(victims, entry);

	if (n == 0)
		return;
	TAKT_VEC_EACH (chosen, &victims->chosen)
		evict(planner, &victims->all.at[*chosen], entry);
	takt_plan_keep_now(planner, entry, n);
}

void takt_plan_preempt(struct takt_planner *planner)
{
	const struct takt_sched_config *config = &planner->sched->config;
	struct takt_cluster *cluster = planner->sched->cluster;
	TAKT_CLEANUP(freep) struct takt_sched_entry **candidates = NULL;
	struct takt_victims victims;
	size_t n = 0;
	uint64_t mark;

	if (!config->preempt || planner->rc < 0)
		return;
	takt_plan_hold_nothing(planner);
	takt_plan_fail(planner, list_candidates(planner, &candidates, &n));
	if (n == 0 || planner->rc < 0)
		return;
	mark = takt_cluster_mark(cluster);
	takt_plan_fail(planner, takt_victims_init(&victims, planner));
	for (size_t i = 0; i < n && i < config->preempt_depth && planner->rc == 0; i++)
		look_for_room(planner, &victims, candidates[i]);
	takt_victims_fini(&victims);
	takt_cluster_rollback(cluster, mark);
	if (config->order->reads & TAKT_ORDER_TIME)
		takt_plan_wake_at(planner,
				  takt_order_later(planner->now_ns, LOOK_AGAIN_S * 1000000000ull));
}
