/* SPDX-License-Identifier: Apache-2.0 */
/* Room by moving tasks: examples by hand, and what must hold in any cluster. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "cluster_world.h"
#include "place_kit.h"
#include "sched/place_migrate.h"

enum {
	HISTORIES = 10,
	STEPS = 300,
	NODES = 24,
	KINDS = 20,
};

static const struct takt_migrate_limits any = {TAKT_MIGRATE_MAX_MOVES, UINT64_MAX};

/* One fraction on each of two nodes of one device. */
static struct takt_cluster *two_halves(uint16_t first, uint16_t second,
				       struct takt_migrate_task tasks[2])
{
	struct takt_cluster *cluster = few_cluster("pack", NULL, NULL);
	uint16_t milli[] = {first, second};

	for (uint32_t i = 0; i < 2; i++) {
		struct takt_request request = few_request(1, milli[i], 1000);

		few_node(cluster, FEW_A, 1, 8000);
		few_put(cluster, i, 1, milli[i], 1000);
		tasks[i] = (struct takt_migrate_task){
			.kind = few_kind(cluster, &request),
			.cost = milli[i],
			.slot = {.node = i, .dev_mask = 1, .milli = milli[i]},
		};
	}
	return cluster;
}

static int migrate(struct takt_cluster *cluster, const struct takt_migrate_task *tasks,
		   struct takt_request request, const struct takt_migrate_limits *limits,
		   struct takt_migrate_plan *plan)
{
	return takt_migrate_for(cluster, few_kind(cluster, &request), tasks, 2, limits, plan);
}

static void two_halves_make_a_whole(void **state)
{
	struct takt_migrate_task tasks[2];
	struct takt_cluster *cluster = two_halves(500, 400, tasks);
	struct takt_migrate_plan plan;

	(void)state;
	assert_int_equal(migrate(cluster, tasks, few_request(1, 1000, 0), &any, &plan), 0);
	assert_int_equal(plan.count, 1);
	assert_int_equal(plan.moves[0].task, 1); /* the cheaper one */
	assert_int_equal(plan.moves[0].to.node, 0);
	assert_int_equal(plan.slot.node, 1);
	assert_int_equal(plan.cost, 400);
	takt_cluster_free(cluster);
}

static void what_does_not_fit_together_stays(void **state)
{
	struct takt_migrate_task tasks[2];
	struct takt_cluster *cluster = two_halves(500, 600, tasks);
	struct takt_migrate_plan plan;

	(void)state;
	assert_int_equal(migrate(cluster, tasks, few_request(1, 1000, 0), &any, &plan), -ENOENT);
	takt_cluster_free(cluster);
}

static void limits_are_kept(void **state)
{
	static const struct takt_migrate_limits cheap = {1, 399}, none = {0, UINT64_MAX};
	struct takt_migrate_task tasks[2];
	struct takt_cluster *cluster = two_halves(500, 400, tasks);
	struct takt_migrate_plan plan;

	(void)state;
	assert_int_equal(migrate(cluster, tasks, few_request(1, 1000, 0), &cheap, &plan), -ENOENT);
	assert_int_equal(migrate(cluster, tasks, few_request(1, 1000, 0), &none, &plan), -ENOENT);
	takt_cluster_free(cluster);
}

static void nobody_moves_for_what_fits_or_never_can(void **state)
{
	struct takt_request other = few_request(1, 1000, 0);
	struct takt_migrate_task tasks[2];
	struct takt_cluster *cluster = two_halves(500, 400, tasks);
	struct takt_migrate_plan plan;

	(void)state;
	other.model_mask = 1 << FEW_B;
	assert_int_equal(migrate(cluster, tasks, few_request(1, 600, 0), &any, &plan), -ENOENT);
	assert_int_equal(migrate(cluster, tasks, other, &any, &plan), -ENOENT);
	assert_int_equal(migrate(cluster, tasks, few_request(2, 1000, 0), &any, &plan), -ENOENT);
	assert_int_equal(migrate(cluster, tasks, few_request(1, 1000, 9000), &any, &plan), -ENOENT);
	takt_cluster_free(cluster);
}

static void cpu_is_made_room_for_too(void **state)
{
	struct takt_migrate_task tasks[2];
	struct takt_cluster *cluster = two_halves(300, 300, tasks);
	struct takt_migrate_plan plan;

	(void)state;
	assert_int_equal(migrate(cluster, tasks, few_request(1, 500, 8000), &any, &plan), 0);
	assert_int_equal(plan.count, 1);
	assert_int_equal(plan.slot.node, plan.moves[0].task);
	takt_cluster_free(cluster);
}

/*
 * Any cluster.
 */

static size_t movable_of(const struct world *world, struct takt_migrate_task *tasks)
{
	size_t count = 0;

	for (size_t i = 0; i < world->task_count; i++) {
		const struct takt_node *node =
			takt_cluster_node(world->cluster, world->tasks[i].slot.node);

		if (!(node->flags & TAKT_NODE_REMOVED))
			tasks[count++] = (struct takt_migrate_task){
				.kind = world->tasks[i].kind,
				.cost = 1 + world->tasks[i].slot.milli,
				.slot = world->tasks[i].slot,
			};
	}
	return count;
}

/* In the order promised: all new places, then all old ones, then the new task. */
static void carry_out(struct takt_cluster *cluster, uint32_t kind,
		      const struct takt_migrate_task *tasks, const struct takt_migrate_plan *plan)
{
	uint64_t mark = takt_cluster_mark(cluster), cost = 0;

	for (size_t i = 0; i < plan->count; i++) {
		const struct takt_migrate_task *task = &tasks[plan->moves[i].task];

		cost += task->cost;
		assert_int_equal(takt_cluster_take(cluster, task->kind, &plan->moves[i].to), 0);
	}
	for (size_t i = 0; i < plan->count; i++) {
		const struct takt_migrate_task *task = &tasks[plan->moves[i].task];

		assert_int_equal(takt_cluster_give(cluster, task->kind, &task->slot), 0);
	}
	assert_int_equal(takt_cluster_take(cluster, kind, &plan->slot), 0);
	assert_int_equal(cost, plan->cost);
	takt_cluster_rollback(cluster, mark);
}

static void reverse(struct takt_migrate_task *tasks, size_t count)
{
	for (size_t i = 0; i < count / 2; i++) {
		struct takt_migrate_task kept = tasks[i];

		tasks[i] = tasks[count - 1 - i];
		tasks[count - 1 - i] = kept;
	}
}

static void same_whatever_the_order(struct world *world, uint32_t kind,
				    struct takt_migrate_task *tasks, size_t count,
				    const struct takt_migrate_plan *plan)
{
	struct takt_migrate_plan again;

	reverse(tasks, count);
	assert_int_equal(takt_migrate_for(world->cluster, kind, tasks, count, &any, &again), 0);
	assert_int_equal(again.cost, plan->cost);
	assert_int_equal(again.count, plan->count);
	assert_memory_equal(&again.slot, &plan->slot, sizeof(plan->slot));
	for (size_t i = 0; i < plan->count; i++)
		assert_memory_equal(&again.moves[i].to, &plan->moves[i].to,
				    sizeof(plan->moves[i].to));
}

/* How many plans were found. */
static int try_kinds(struct world *world)
{
	static struct takt_migrate_task tasks[WORLD_MAX_TASKS];
	size_t count = movable_of(world, tasks);
	uint64_t before = world_digest(world);
	int found = 0;

	for (size_t i = 0; i < world->kind_count; i++) {
		struct takt_migrate_plan plan;
		int rc = takt_migrate_for(world->cluster, world->kinds[i], tasks, count, &any,
					  &plan);

		assert_true(before == world_digest(world));
		if (rc == -ENOENT)
			continue;
		assert_int_equal(rc, 0);
		assert_in_range(plan.count, 1, TAKT_MIGRATE_MAX_MOVES);
		carry_out(world->cluster, world->kinds[i], tasks, &plan);
		same_whatever_the_order(world, world->kinds[i], tasks, count, &plan);
		found++;
	}
	return found;
}

static void plans_can_be_carried_out(void **state)
{
	int found = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= HISTORIES; seed++) {
		struct world world;
		struct takt_slot slot;

		world_init(&world, seed, NULL, NODES, KINDS);
		for (int step = 0; step < STEPS; step++) {
			uint32_t kind = world.kinds[takt_rng_below(&world.rng, world.kind_count)];

			if (takt_cluster_pick(world.cluster, kind, NULL, &slot, NULL) &&
			    takt_cluster_take(world.cluster, kind, &slot) == 0)
				world_took(&world, kind, &slot);
			if (step % 4 == 0)
				world_give(&world);
		}
		found += try_kinds(&world);
		world_fini(&world);
	}
	assert_true(found >= HISTORIES);
}

static void without_memory_nothing_changes(void **state)
{
	struct takt_migrate_task tasks[2];
	struct takt_cluster *cluster = two_halves(500, 400, tasks);
	struct takt_migrate_plan plan;
	int rc = -ENOMEM;

	(void)state;
	for (unsigned long nth = 1; rc == -ENOMEM; nth++) {
		takt_alloc_fail_nth(nth, 0);
		rc = migrate(cluster, tasks, few_request(1, 1000, 0), &any, &plan);
		takt_alloc_fail_nth(0, 0);
		assert_int_equal(takt_cluster_node(cluster, 0)->left[0], 500);
		assert_int_equal(takt_cluster_node(cluster, 1)->left[0], 600);
	}
	assert_int_equal(rc, 0);
	takt_cluster_free(cluster);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_halves_make_a_whole),
		cmocka_unit_test(what_does_not_fit_together_stays),
		cmocka_unit_test(limits_are_kept),
		cmocka_unit_test(nobody_moves_for_what_fits_or_never_can),
		cmocka_unit_test(cpu_is_made_room_for_too),
		cmocka_unit_test(plans_can_be_carried_out),
		cmocka_unit_test(without_memory_nothing_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
