/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints one number for the plans of many random histories, for many choices of GPUs on large
 * nodes, and for what each placement policy does in random clusters. The same program, compiled in
 * several ways by same_plans.py, must print the same number.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cluster_story.h"
#include "cluster_world.h"
#include "sched/compare/compare.h"
#include "sched/order.h"
#include "sched/place.h"
#include "sched_model.h"

enum {
	HISTORIES = 40,
	STEPS = 300,
	STORIES = 4,
	STORY_STEPS = 80,
	LARGE_CHOICES = 60,
	LARGE_GPUS = 24,
	CLUSTERS = 4, /* a policy */
	CLUSTER_NODES = 30,
	CLUSTER_KINDS = 20,
};

static uint64_t digest = 0xcbf29ce484222325u;

static void add(uint64_t value)
{
	for (int i = 0; i < 8; i++)
		digest = (digest ^ (value >> (8 * i) & 0xff)) * 0x100000001b3u;
}

static void add_wait(const struct takt_plan_wait *wait)
{
	char bytes[256];
	struct takt_str text = TAKT_STR(4096);

	snprintf(bytes, sizeof(bytes), "%u %u %u %u %u %u %u %u %u", wait->why, wait->need,
		 wait->total, wait->unhealthy, wait->outside, wait->running, wait->draining,
		 wait->promised, wait->free);
	takt_why_text(wait, &text);
	takt_str_add(&text, bytes);
	add(wait->job_id);
	add(wait->behind_job);
	add(wait->must_end);
	for (size_t i = 0; i < text.len; i++)
		add((unsigned char)text.s[i]);
	takt_str_fini(&text);
}

static void add_plan(struct takt_sched *sched)
{
	struct takt_plan plan = {0};

	if (takt_sched_run(sched, 0, 0, &plan, NULL) < 0)
		exit(EXIT_FAILURE);
	for (size_t i = 0; i < plan.placement_count; i++) {
		add(plan.placements[i].job_id);
		add(plan.placements[i].node_id);
		add(plan.placements[i].gpu_mask);
		add((uint64_t)plan.placements[i].pair_score_sum);
	}
	for (size_t i = 0; i < plan.wait_count; i++)
		add_wait(&plan.waits[i]);
	takt_plan_fini(&plan);
}

static void add_history(uint64_t seed)
{
	struct takt_sched_config config = {0};
	struct takt_sched *sched;
	struct model model = {0};
	struct takt_rng rng;

	takt_rng_init(&rng, seed);
	if (takt_sched_new(&config, &sched, NULL) < 0)
		exit(EXIT_FAILURE);
	for (int step = 0; step < STEPS; step++) {
		struct takt_sched_event event = model_random_event(&model, &rng);
		struct takt_err err = {0};

		add((uint64_t)takt_sched_update(sched, &event, &err));
		if (err.rc == 0)
			model_apply(&model, &event);
		add_plan(sched);
	}
	takt_sched_free(sched);
}

static void add_cluster_plan(const struct takt_plan *plan)
{
	for (size_t i = 0; i < plan->placement_count; i++) {
		add(plan->placements[i].job_id);
		add(plan->placements[i].node_id);
		add(plan->placements[i].gpu_mask);
		add(plan->placements[i].milli);
	}
	for (size_t i = 0; i < plan->eviction_count; i++) {
		add(plan->evictions[i].job_id);
		add(plan->evictions[i].lost_gpu_ms);
	}
	for (size_t i = 0; i < plan->reservation_count; i++) {
		add(plan->reservations[i].node_id);
		add(plan->reservations[i].gpu_mask);
		add(plan->reservations[i].start_ns);
	}
	for (size_t i = 0; i < plan->migration_count; i++)
		add(plan->migrations[i].to.gpu_mask);
	for (size_t i = 0; i < plan->wait_count; i++)
		add_wait(&plan->waits[i]);
}

/* Histories of a cluster, with gangs, tenants, preemption, failures. */
static void add_story(uint64_t seed)
{
	static const char *const orders[] = {"las", "fair_share", "qssf", "priority"};
	struct takt_order_config order_config = {0};
	struct takt_sched_config config = {
		.order = takt_order_find(orders[seed % 4]),
		.order_config = &order_config,
		.placement = takt_placement_find(seed % 2 ? "fgd" : "takt"),
		.backfill = (enum takt_backfill)(seed % TAKT_BACKFILL_COUNT),
		.preempt = true,
		.migrate_most = 2,
	};
	struct takt_plan plan = {0};
	struct takt_sched *sched;
	struct story story;

	if (takt_sched_new(&config, &sched, NULL) < 0)
		exit(EXIT_FAILURE);
	story_begin(&story, sched, seed);
	for (int step = 0; step < STORY_STEPS; step++) {
		story_step(&story, sched);
		if (takt_sched_run(sched, story.now_ns, 0, &plan, NULL) < 0)
			exit(EXIT_FAILURE);
		add_cluster_plan(&plan);
		story_obey(&story, sched, &plan);
	}
	takt_plan_fini(&plan);
	takt_sched_free(sched);
}

static void add_large_choice(uint64_t seed)
{
	int32_t scores[LARGE_GPUS * LARGE_GPUS] = {0};
	struct takt_rng rng;
	uint64_t free_mask;
	uint64_t mask = 0;
	uint32_t need;
	int64_t sum = 0;

	takt_rng_init(&rng, seed);
	for (uint32_t i = 0; i < LARGE_GPUS; i++)
		for (uint32_t j = 0; j < i; j++)
			scores[i * LARGE_GPUS + j] = scores[j * LARGE_GPUS + i] =
				(int32_t)takt_rng_below(&rng, 5) * 50;
	free_mask = takt_rng_next(&rng) & 0xffffff;
	need = 1 + (uint32_t)takt_rng_below(&rng, 10);
	add((uint64_t)takt_best_set(scores, LARGE_GPUS, free_mask, need, &mask, &sum));
	add(mask);
	add((uint64_t)sum);
}

/* Where one policy puts tasks in a random cluster that changes. */
static void add_cluster(uint64_t seed, const struct takt_placement *placement)
{
	static struct world world;
	struct takt_fit_counts why;

	world_init(&world, seed, placement, CLUSTER_NODES, CLUSTER_KINDS);
	for (int step = 0; step < STEPS; step++) {
		uint32_t kind = world.kinds[takt_rng_below(&world.rng, world.kind_count)];
		struct takt_scope scope;
		struct takt_slot slot;
		uint64_t mask;

		if (step % 8 == 7)
			world_change(&world);
		else if (step % 8 == 3)
			world_give(&world);
		else if (takt_cluster_pick(world.cluster, kind, world_scope(&world, &scope, &mask),
					   &slot, NULL) &&
			 takt_cluster_take(world.cluster, kind, &slot) == 0)
			world_took(&world, kind, &slot);
		takt_cluster_explain(world.cluster, kind, NULL, &why);
		for (int i = 0; i < TAKT_FIT_CAUSES; i++)
			add((uint64_t)why.first[i] << 32 | why.all[i]);
	}
	add(world_digest(&world));
	world_fini(&world);
}

static void add_clusters(const struct takt_placement *const *placements)
{
	for (size_t i = 0; placements[i]; i++)
		for (uint64_t seed = 1; seed <= CLUSTERS; seed++)
			add_cluster(seed, placements[i]);
}

int main(void)
{
	add_clusters(takt_placements);
	add_clusters(takt_compare_placements);
	for (uint64_t seed = 1; seed <= HISTORIES; seed++)
		add_history(seed);
	for (uint64_t seed = 1; seed <= STORIES; seed++)
		add_story(seed);
	for (uint64_t seed = 1; seed <= LARGE_CHOICES; seed++)
		add_large_choice(seed);
	printf("%016" PRIx64 "\n", digest);
	return EXIT_SUCCESS;
}
