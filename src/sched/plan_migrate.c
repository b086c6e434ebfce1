/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Consolidation: a few running tasks that may be moved make room for the first job that waits.
 *
 * Only jobs of one task are moved and only for a job of one task, at most migrate_most of them, and
 * together not more GPUs than the job gets: moving is for what is cheap to move. Which, and where
 * to, is place_migrate.h's. The job starts by a later plan, when they have moved; until then the
 * place is kept for it.
 */
#include <errno.h>

#include "base/mem.h"
#include "base/sort.h"
#include "sched/place_migrate.h"
#include "sched/plan_state.h"

struct movable {
	struct takt_migrate_task *tasks;   /* owned */
	struct takt_sched_entry **entries; /* owned */
	size_t count;
};

static bool is_movable(const struct takt_sched *sched, const struct takt_sched_entry *entry)
{
	return takt_sched_is_placed(entry) && !takt_sched_on_removed(sched, entry) &&
	       entry->slot_count == 1 && entry->job.flags & TAKT_JOB_MOVABLE &&
	       !entry->job.near_group && !entry->job.apart_group && !entry->job.group;
}

static int by_id(const void *a, const void *b, void *ctx)
{
	const struct takt_sched_job *x = &(*(struct takt_sched_entry *const *)a)->job;
	const struct takt_sched_job *y = &(*(struct takt_sched_entry *const *)b)->job;

	(void)ctx;
	return (x->id > y->id) - (x->id < y->id);
}

static int list_movable(const struct takt_sched *sched, struct movable *movable)
{
	size_t n = sched->jobs.len;

	movable->tasks = takt_calloc(n, sizeof(*movable->tasks));
	movable->entries = takt_calloc(n, sizeof(*movable->entries));
	if (!movable->tasks || !movable->entries)
		return -ENOMEM;
	TAKT_VEC_EACH (entry, &sched->jobs)
		if (is_movable(sched, *entry))
			movable->entries[movable->count++] = *entry;
	return takt_sort(movable->entries, movable->count, sizeof(*movable->entries), by_id, NULL);
}

static void describe(struct movable *movable)
{
	for (size_t i = 0; i < movable->count; i++)
		movable->tasks[i] = (struct takt_migrate_task){
			.kind = movable->entries[i]->kind,
			.cost = movable->entries[i]->task_milli,
			.slot = movable->entries[i]->slots[0],
		};
}

static void consider(const struct takt_planner *planner, struct takt_sched_entry *entry,
		     struct takt_sched_entry **best)
{
	if (!entry || entry->slot_count > 0 || entry->kind == TAKT_SCHED_NO_KIND ||
	    takt_sched_tasks(&entry->job) > 1 || entry->job.gpus == 0 ||
	    takt_plan_not_ready(planner, entry) != TAKT_WHY_NONE)
		return;
	if (!*best || takt_order_compare(&entry->key, &(*best)->key) < 0)
		*best = entry;
}

/* The first job that waits for room; the head where nothing may overtake it. */
static struct takt_sched_entry *first_waiting(const struct takt_planner *planner)
{
	struct takt_sched_entry *best = NULL;

	if (planner->head) {
		consider(planner, planner->head, &best);
		return best;
	}
	for (struct takt_sched_entry *entry = planner->stash; entry; entry = entry->next_stashed)
		consider(planner, entry, &best);
	for (struct takt_sched_group *group = planner->blocked; group; group = group->next_blocked)
		consider(planner, takt_sched_first_job(group), &best);
	return best;
}

static void carry_out(struct takt_planner *planner, struct takt_sched_entry *entry,
		      const struct movable *movable, const struct takt_migrate_plan *moves)
{
	struct takt_cluster *cluster = planner->sched->cluster;

	for (size_t i = 0; i < moves->count; i++) {
		const struct takt_sched_entry *moved = movable->entries[moves->moves[i].task];
		int rc = takt_cluster_take(cluster, moved->kind, &moves->moves[i].to);

		if (rc < 0)
			takt_plan_fail(planner, rc);
		else
			takt_plan_move(planner, moved, 0, &moves->moves[i].to);
	}
	planner->slots[0] = moves->slot;
	takt_plan_keep_now(planner, entry, 1);
}

void takt_plan_consolidate(struct takt_planner *planner)
{
	struct takt_sched *sched = planner->sched;
	struct takt_migrate_limits limits = {.max_moves = sched->config.migrate_most};
	struct movable movable = {0};
	struct takt_migrate_plan moves;
	struct takt_sched_entry *entry;

	if (limits.max_moves == 0 || planner->rc < 0 || planner->evictions.len > 0)
		return;
	entry = first_waiting(planner);
	if (!entry || takt_plan_scope(planner, entry, planner->now_ns))
		return;
	takt_plan_hold_nothing(planner);
	if (limits.max_moves > TAKT_MIGRATE_MAX_MOVES)
		limits.max_moves = TAKT_MIGRATE_MAX_MOVES;
	limits.max_cost = takt_sched_gpu_milli(entry);
	takt_plan_fail(planner, list_movable(sched, &movable));
	if (planner->rc == 0) {
		describe(&movable);
		if (takt_migrate_for(sched->cluster, entry->kind, movable.tasks, movable.count,
				     &limits, &moves) == 0)
			carry_out(planner, entry, &movable, &moves);
	}
	takt_free(movable.tasks);
	takt_free(movable.entries);
}
