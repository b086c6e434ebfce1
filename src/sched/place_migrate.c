/* SPDX-License-Identifier: Apache-2.0 */
/* Room by moving tasks: see place_migrate.h. */
#include "sched/place_migrate.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"

enum {
	TRIES = 16, /* sets of tasks for which other places are looked for */
	/* What moving tasks away can change. */
	CURABLE = 1u << TAKT_FIT_DEVICES | 1u << TAKT_FIT_FRACTION | 1u << TAKT_FIT_DEV_MEM |
		  1u << TAKT_FIT_MIG | 1u << TAKT_FIT_NUMA | 1u << TAKT_FIT_CPU |
		  1u << TAKT_FIT_MEM | 1u << TAKT_FIT_PER_NODE,
};

/* A task on the node in question. */
struct candidate {
	size_t task;
	uint64_t device_cost; /* of all movable tasks on its device; 0 without device */
};

/* Tasks of one node whose absence makes room. */
struct set {
	uint32_t node;
	uint64_t cost;
	size_t count;
	size_t tasks[TAKT_MIGRATE_MAX_MOVES];
};

struct search {
	struct takt_cluster *cluster;
	uint32_t kind;
	const struct takt_migrate_task *tasks;
	const struct takt_migrate_limits *limits;
	size_t *order;		      /* owned: tasks by node */
	struct candidate *candidates; /* owned: room for all tasks */
	struct candidate *scratch;    /* owned */
	uint64_t *leave_out;	      /* owned: a bit a node, all 0 between uses */
	size_t words;
	struct set sets[TRIES]; /* cheapest first */
	size_t set_count;
};

static int by_slot(const struct takt_migrate_task *a, const struct takt_migrate_task *b)
{
	if (a->cost != b->cost)
		return a->cost < b->cost ? -1 : 1;
	if (a->slot.dev_mask != b->slot.dev_mask)
		return a->slot.dev_mask < b->slot.dev_mask ? -1 : 1;
	if (a->slot.mig_start != b->slot.mig_start)
		return a->slot.mig_start < b->slot.mig_start ? -1 : 1;
	return a->kind < b->kind ? -1 : a->kind > b->kind;
}

static int by_node(const void *a, const void *b, void *ctx)
{
	const struct takt_migrate_task *tasks = ctx;
	const struct takt_migrate_task *x = &tasks[*(const size_t *)a];
	const struct takt_migrate_task *y = &tasks[*(const size_t *)b];

	if (x->slot.node != y->slot.node)
		return x->slot.node < y->slot.node ? -1 : 1;
	return by_slot(x, y);
}

static int by_device_cost(const void *a, const void *b, void *ctx)
{
	const struct candidate *x = a, *y = b;
	const struct takt_migrate_task *tasks = ctx;

	if (x->device_cost != y->device_cost)
		return x->device_cost < y->device_cost ? -1 : 1;
	if (tasks[x->task].slot.dev_mask != tasks[y->task].slot.dev_mask)
		return tasks[x->task].slot.dev_mask < tasks[y->task].slot.dev_mask ? -1 : 1;
	return by_slot(&tasks[x->task], &tasks[y->task]);
}

/*
 * Which tasks stand in the way.
 */

static bool fits(const struct search *search, uint32_t node)
{
	return takt_cluster_why_not(search->cluster, search->kind, node, NULL) == 0;
}

/* The tasks of a node in the order in which they are taken away. */
static void list_candidates(struct search *search, const size_t *order, size_t count)
{
	const struct takt_migrate_task *tasks = search->tasks;

	for (size_t i = 0; i < count; i++) {
		struct candidate *candidate = &search->candidates[i];

		*candidate = (struct candidate){.task = order[i]};
		for (size_t j = 0; j < count; j++)
			if (tasks[order[j]].slot.dev_mask & tasks[order[i]].slot.dev_mask)
				candidate->device_cost += tasks[order[j]].cost;
	}
	takt_sort_with(search->candidates, count, sizeof(*search->candidates), search->scratch,
		       by_device_cost, (void *)tasks);
}

static void drop(struct set *set, size_t i)
{
	set->count--;
	memmove(&set->tasks[i], &set->tasks[i + 1], (set->count - i) * sizeof(set->tasks[0]));
}

/* Puts back what was not needed. */
static int prune(struct search *search, struct set *set)
{
	for (size_t i = 0; i + 1 < set->count;) {
		const struct takt_migrate_task *task = &search->tasks[set->tasks[i]];
		int rc = takt_cluster_take(search->cluster, task->kind, &task->slot);

		if (rc < 0)
			return rc;
		if (fits(search, set->node)) {
			drop(set, i);
			continue;
		}
		rc = takt_cluster_give(search->cluster, task->kind, &task->slot);
		if (rc < 0)
			return rc;
		i++;
	}
	return 0;
}

/* Takes tasks away until it fits. -ENOENT when it does not, or not with so few. */
static int clear_node(struct search *search, size_t count, struct set *set)
{
	for (size_t i = 0; i < count && set->count < TAKT_MIGRATE_MAX_MOVES; i++) {
		const struct takt_migrate_task *task = &search->tasks[search->candidates[i].task];
		int rc = takt_cluster_give(search->cluster, task->kind, &task->slot);

		if (rc < 0)
			return rc;
		set->tasks[set->count++] = search->candidates[i].task;
		if (fits(search, set->node))
			return prune(search, set);
	}
	return -ENOENT;
}

static bool cheaper(const struct search *search, const struct set *a, const struct set *b)
{
	if (a->cost != b->cost)
		return a->cost < b->cost;
	if (a->count != b->count)
		return a->count < b->count;
	return takt_cluster_node(search->cluster, a->node)->rank <
	       takt_cluster_node(search->cluster, b->node)->rank;
}

static void keep_set(struct search *search, const struct set *set)
{
	size_t at = search->set_count;

	while (at > 0 && cheaper(search, set, &search->sets[at - 1]))
		at--;
	if (at == TRIES)
		return;
	search->set_count += search->set_count < TRIES;
	memmove(&search->sets[at + 1], &search->sets[at],
		(search->set_count - at - 1) * sizeof(search->sets[0]));
	search->sets[at] = *set;
}

static int look_at_node(struct search *search, const size_t *order, size_t count)
{
	struct set set = {.node = search->tasks[order[0]].slot.node};
	uint32_t causes = takt_cluster_why_not(search->cluster, search->kind, set.node, NULL);
	uint64_t mark;
	int rc;

	if (causes == 0 || causes & ~(uint32_t)CURABLE)
		return 0;
	list_candidates(search, order, count);
	mark = takt_cluster_mark(search->cluster);
	rc = clear_node(search, count, &set);
	takt_cluster_rollback(search->cluster, mark);
	if (rc < 0)
		return rc == -ENOENT ? 0 : rc;
	for (size_t i = 0; i < set.count; i++)
		set.cost += search->tasks[set.tasks[i]].cost;
	if (set.count <= search->limits->max_moves && set.cost <= search->limits->max_cost)
		keep_set(search, &set);
	return 0;
}

static int look_at_nodes(struct search *search, size_t count)
{
	size_t from = 0, to;
	int rc = 0;

	for (; from < count && rc == 0; from = to) {
		uint32_t node = search->tasks[search->order[from]].slot.node;

		for (to = from; to < count && search->tasks[search->order[to]].slot.node == node;)
			to++;
		rc = look_at_node(search, search->order + from, to - from);
	}
	return rc;
}

/*
 * Where they could go.
 */

/* New places for all of a set, while they are still where they are. */
static int take_elsewhere(struct search *search, const struct set *set,
			  const struct takt_scope *scope, struct takt_migrate_plan *plan)
{
	for (size_t i = 0; i < set->count; i++) {
		const struct takt_migrate_task *task = &search->tasks[set->tasks[i]];
		struct takt_migrate_move *move = &plan->moves[i];
		int rc;

		move->task = set->tasks[i];
		if (!takt_cluster_pick(search->cluster, task->kind, scope, &move->to, NULL))
			return -ENOENT;
		rc = takt_cluster_take(search->cluster, task->kind, &move->to);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int leave_and_place(struct search *search, const struct set *set,
			   struct takt_migrate_plan *plan)
{
	struct takt_scope there = {.only = &set->node, .only_count = 1};

	for (size_t i = 0; i < set->count; i++) {
		const struct takt_migrate_task *task = &search->tasks[set->tasks[i]];
		int rc = takt_cluster_give(search->cluster, task->kind, &task->slot);

		if (rc < 0)
			return rc;
	}
	return takt_cluster_pick(search->cluster, search->kind, &there, &plan->slot, NULL)
		       ? 0
		       : -ENOENT;
}

/* away: on other nodes only. */
static int try_set(struct search *search, const struct set *set, bool away,
		   struct takt_migrate_plan *ret)
{
	struct takt_migrate_plan plan = {.cost = set->cost, .count = set->count};
	struct takt_scope scope = {.leave_out = search->leave_out,
				   .leave_out_words = away ? search->words : 0};
	uint64_t mark = takt_cluster_mark(search->cluster);
	int rc;

	search->leave_out[set->node / 64] |= UINT64_C(1) << (set->node % 64);
	rc = take_elsewhere(search, set, &scope, &plan);
	if (rc == 0)
		rc = leave_and_place(search, set, &plan);
	search->leave_out[set->node / 64] = 0;
	takt_cluster_rollback(search->cluster, mark);
	if (rc == 0)
		*ret = plan;
	return rc;
}

static int try_sets(struct search *search, struct takt_migrate_plan *ret)
{
	int rc = -ENOENT;

	for (size_t i = 0; i < search->set_count && rc == -ENOENT; i++) {
		rc = try_set(search, &search->sets[i], false, ret);
		if (rc == -ENOENT)
			rc = try_set(search, &search->sets[i], true, ret);
	}
	return rc;
}

static int allocate(struct search *search, size_t count)
{
	search->words = takt_cluster_node_count(search->cluster) / 64 + 1;
	search->order = takt_calloc(count, sizeof(*search->order));
	search->candidates = takt_calloc(count, sizeof(*search->candidates));
	search->scratch = takt_calloc(count, sizeof(*search->scratch));
	search->leave_out = takt_calloc(search->words, sizeof(*search->leave_out));
	if (!search->order || !search->candidates || !search->scratch || !search->leave_out)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		search->order[i] = i;
	return takt_sort(search->order, count, sizeof(*search->order), by_node,
			 (void *)search->tasks);
}

int takt_migrate_for(struct takt_cluster *cluster, uint32_t kind,
		     const struct takt_migrate_task *tasks, size_t count,
		     const struct takt_migrate_limits *limits, struct takt_migrate_plan *ret)
{
	struct search search = {.cluster = cluster, .kind = kind, .tasks = tasks, .limits = limits};
	struct takt_slot slot;
	int rc;

	if (count == 0 || limits->max_moves == 0 ||
	    takt_cluster_pick(cluster, kind, NULL, &slot, NULL))
		return -ENOENT;
	rc = allocate(&search, count);
	if (rc == 0)
		rc = look_at_nodes(&search, count);
	if (rc == 0)
		rc = try_sets(&search, ret);
	takt_free(search.order);
	takt_free(search.candidates);
	takt_free(search.scratch);
	takt_free(search.leave_out);
	return rc;
}
