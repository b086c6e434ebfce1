/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What must hold of any history: the fast choice is the one that looking at every node makes,
 * nothing is over-committed, undoing restores, counts kept are counts taken anew.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cluster_world.h"
#include "sched/compare/compare.h"

enum {
	HISTORIES = 12,
	STEPS = 400,
	NODES = 40,
	KINDS = 24,
};

static void same_choice(struct world *world, uint32_t kind, const struct takt_scope *scope)
{
	struct takt_slot fast = {0}, naive = {0};
	uint32_t fast_level = 0, naive_level = 0;
	bool found = takt_cluster_pick(world->cluster, kind, scope, &fast, &fast_level);

	assert_int_equal(
		found, takt_cluster_pick_naive(world->cluster, kind, scope, &naive, &naive_level));
	if (!found)
		return;
	assert_memory_equal(&fast, &naive, sizeof(fast));
	assert_int_equal(fast_level, naive_level);
	assert_int_equal(takt_cluster_why_not(world->cluster, kind, fast.node, scope), 0);
	assert_int_equal(takt_cluster_take(world->cluster, kind, &fast), 0);
	world_took(world, kind, &fast);
}

static void same_counts(struct world *world, uint32_t kind, const struct takt_scope *scope)
{
	struct takt_fit_counts kept, naive;
	uint32_t domain = (uint32_t)takt_rng_below(&world->rng, world->domains + 1);

	takt_cluster_explain(world->cluster, kind, scope, &kept);
	takt_cluster_explain_naive(world->cluster, kind, scope, &naive);
	assert_memory_equal(&kept, &naive, sizeof(kept));
	assert_int_equal(takt_cluster_domain_room(world->cluster, kind, domain),
			 takt_cluster_domain_room_naive(world->cluster, kind, domain));
}

/* Whether a node is among those where it fits, and whether there is a reason why not, agree. */
static void same_fit(struct world *world, uint32_t kind)
{
	uint32_t node =
		(uint32_t)takt_rng_below(&world->rng, takt_cluster_node_count(world->cluster));
	struct takt_scope scope = {.only = &node, .only_count = 1};
	struct takt_slot slot;
	bool fits = takt_cluster_pick_naive(world->cluster, kind, &scope, &slot, NULL);
	bool removed = (takt_cluster_node(world->cluster, node)->flags & TAKT_NODE_REMOVED) != 0;
	bool why_not = takt_cluster_why_not(world->cluster, kind, node, NULL) != 0;

	assert_true(removed || fits == !why_not);
	assert_int_equal(takt_cluster_room(world->cluster, kind, node) > 0, fits);
	assert_true(takt_cluster_node(world->cluster, node)->tasks > 0 ||
		    takt_cluster_room_when_empty(world->cluster, kind, node) <=
			    takt_cluster_room(world->cluster, kind, node));
}

static void what_if(struct world *world)
{
	uint64_t before = world_digest(world), mark = takt_cluster_mark(world->cluster);
	size_t tasks = world->task_count;
	struct takt_slot slot;

	for (int i = 0; i < 10; i++) {
		uint32_t kind = world->kinds[takt_rng_below(&world->rng, world->kind_count)];
		struct world_task *task = &world->tasks[takt_rng_below(&world->rng, tasks + 1)];

		if (i == 5)
			takt_cluster_commit(world->cluster, takt_cluster_mark(world->cluster));
		if (i % 2 && (size_t)(task - world->tasks) < tasks)
			takt_cluster_give(world->cluster, task->kind, &task->slot);
		else if (takt_cluster_pick(world->cluster, kind, NULL, &slot, NULL))
			takt_cluster_take(world->cluster, kind, &slot);
	}
	takt_cluster_rollback(world->cluster, mark);
	assert_true(before == world_digest(world));
}

static void live(struct world *world)
{
	struct takt_scope scope;
	uint64_t mask;

	for (int step = 0; step < STEPS; step++) {
		uint32_t kind = world->kinds[takt_rng_below(&world->rng, world->kind_count)];
		const char *wrong;

		switch (takt_rng_below(&world->rng, 10)) {
		case 0:
			world_change(world);
			break;
		case 1:
		case 2:
			world_give(world);
			break;
		case 3:
			what_if(world);
			break;
		case 4:
			same_counts(world, kind, world_scope(world, &scope, &mask));
			same_fit(world, kind);
			break;
		default:
			same_choice(world, kind, world_scope(world, &scope, &mask));
			break;
		}
		wrong = step % 16 ? NULL : world_check(world);
		if (wrong)
			fail_msg("%s", wrong);
	}
}

static void choices_are_the_naive_ones(const struct takt_placement *placement)
{
	for (uint64_t seed = 1; seed <= HISTORIES; seed++) {
		struct world world;

		world_init(&world, seed, placement, NODES, KINDS);
		live(&world);
		assert_true(world.task_count > 20);
		world_fini(&world);
	}
}

static void test_own_policies_choose_as_the_naive_scan(void **state)
{
	for (size_t i = 0; takt_placements[i]; i++)
		choices_are_the_naive_ones(takt_placements[i]);
}

static void test_published_policies_choose_as_the_naive_scan(void **state)
{
	choices_are_the_naive_ones(takt_compare_find("bestfit"));
	choices_are_the_naive_ones(takt_compare_find("dotprod"));
	choices_are_the_naive_ones(takt_compare_find("gpupacking"));
	choices_are_the_naive_ones(takt_compare_find("gpuclustering"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own_policies_choose_as_the_naive_scan),
		cmocka_unit_test(test_published_policies_choose_as_the_naive_scan),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
