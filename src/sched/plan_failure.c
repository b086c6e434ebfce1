/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs whose place has failed: their policy decides. What has to be left at once (a lost GPU, a
 * node that is gone) is requeued, what can run on for the moment (a quarantined GPU) may be moved
 * first. A gang goes whole or, moved, only with the tasks concerned. Maintenance that has begun is
 * a failure to which the same policies apply.
 */
#include <errno.h>

#include "base/mem.h"
#include "base/sort.h"
#include "sched/plan_state.h"

enum state {
	WELL,
	AILS, /* can run on, should not stay */
	GONE,
};

static bool in_maintenance(const struct takt_planner *planner, const struct takt_sched_host *host,
			   uint64_t dev_mask)
{
	TAKT_VEC_EACH (window, &planner->sched->windows) {
		if (window->tenant || window->owner || window->job ||
		    window->start_ns > planner->now_ns || window->end_ns <= planner->now_ns ||
		    (window->gpu_mask && !(window->gpu_mask & dev_mask)))
			continue;
		for (uint32_t i = 0; i < window->node_count; i++)
			if (window->nodes[i] == host->id)
				return true;
	}
	return false;
}

static enum state state_of(const struct takt_planner *planner, const struct takt_slot *slot)
{
	const struct takt_sched_host *host = planner->sched->host_of.at[slot->node];

	if (host->removed || host->lost & slot->dev_mask)
		return GONE;
	return host->quarantined & slot->dev_mask || in_maintenance(planner, host, slot->dev_mask)
		       ? AILS
		       : WELL;
}

static enum state worst_of(const struct takt_planner *planner, const struct takt_sched_entry *entry)
{
	enum state worst = WELL;

	for (uint32_t i = 0; i < entry->slot_count; i++) {
		enum state state = state_of(planner, &entry->slots[i]);

		worst = state > worst ? state : worst;
	}
	return worst;
}

static void evict(struct takt_planner *planner, struct takt_sched_entry *entry, enum state state)
{
	struct takt_order_job job;
	struct takt_plan_eviction eviction = {
		.job_id = entry->job.id,
		.why = state == GONE ? TAKT_EVICT_FAILURE : TAKT_EVICT_WINDOW,
		.stop = entry->job.on_failure == TAKT_FAILURE_STOP,
	};

	for (uint32_t i = 0; i < entry->slot_count; i++) {
		const struct takt_slot *slot = &entry->slots[i];

		if (planner->sched->host_of.at[slot->node]->quarantined & slot->dev_mask)
			eviction.why = TAKT_EVICT_FAILURE;
	}
	takt_sched_order_job(planner->sched, entry, &job);
	eviction.lost_gpu_ms = takt_order_loss_gpu_ms(&job, planner->now_ns);
	takt_plan_fail(planner, takt_vec_push(&planner->evictions, eviction));
}

void takt_plan_move(struct takt_planner *planner, const struct takt_sched_entry *entry,
		    uint32_t task, const struct takt_slot *to)
{
	const struct takt_slot *from = &entry->slots[task];
	const struct takt_sched *sched = planner->sched;
	struct takt_plan_migration migration = {
		.job_id = entry->job.id,
		.task = task,
		.from = {sched->host_of.at[from->node]->id, from->milli, from->mig_start,
			 from->dev_mask},
		.to = {sched->host_of.at[to->node]->id, to->milli, to->mig_start, to->dev_mask},
	};
	struct takt_sched_borrowed borrowed = {entry->kind, *to};

	takt_plan_fail(planner, takt_vec_push(&planner->migrations, migration));
	takt_plan_fail(planner, takt_vec_push(&planner->sched->open.borrowed, borrowed));
}

/* New places for the tasks concerned, all or none. */
static bool move(struct takt_planner *planner, struct takt_sched_entry *entry)
{
	struct takt_cluster *cluster = planner->sched->cluster;
	const struct takt_scope *scope = takt_plan_scope(planner, entry, planner->now_ns);
	TAKT_CLEANUP(freep) struct takt_slot *to = takt_calloc(entry->slot_count, sizeof(*to));
	uint64_t mark = takt_cluster_mark(cluster);
	bool found = to != NULL;

	for (uint32_t i = 0; found && i < entry->slot_count; i++)
		if (state_of(planner, &entry->slots[i]) != WELL)
			found = takt_plan_pick(planner, entry->kind, scope, &to[i]) &&
				takt_cluster_take(cluster, entry->kind, &to[i]) == 0;
	if (!found) {
		takt_cluster_rollback(cluster, mark);
		return false;
	}
	takt_cluster_commit(cluster, mark);
	for (uint32_t i = 0; i < entry->slot_count; i++)
		if (state_of(planner, &entry->slots[i]) != WELL)
			takt_plan_move(planner, entry, i, &to[i]);
	return true;
}

static void handle(struct takt_planner *planner, struct takt_sched_entry *entry)
{
	enum state state = worst_of(planner, entry);

	if (state == WELL || entry->job.on_failure == TAKT_FAILURE_KEEP)
		return;
	if (entry->job.on_failure == TAKT_FAILURE_MIGRATE && state == AILS) {
		(void)move(planner, entry);
		return;
	}
	evict(planner, entry, state);
}

static int by_id(const void *a, const void *b, void *ctx)
{
	const struct takt_sched_job *x = &(*(struct takt_sched_entry *const *)a)->job;
	const struct takt_sched_job *y = &(*(struct takt_sched_entry *const *)b)->job;

	(void)ctx;
	return (x->id > y->id) - (x->id < y->id);
}

void takt_plan_handle_failures(struct takt_planner *planner)
{
	struct takt_sched *sched = planner->sched;
	TAKT_CLEANUP(freep) struct takt_sched_entry **placed = NULL;
	size_t count = 0, n = 0;

	if (planner->rc < 0 || (sched->ailing == 0 && sched->windows.len == 0))
		return;
	for (const struct takt_sched_entry *it = sched->placed; it; it = it->next_placed)
		count++;
	placed = takt_calloc(count, sizeof(struct takt_sched_entry *));
	if (!placed) {
		takt_plan_fail(planner, -ENOMEM);
		return;
	}
	for (struct takt_sched_entry *it = sched->placed; it; it = it->next_placed)
		placed[n++] = it;
	takt_plan_fail(planner, takt_sort(placed, n, sizeof(*placed), by_id, NULL));
	for (size_t i = 0; planner->rc == 0 && i < n; i++)
		handle(planner, placed[i]);
}
