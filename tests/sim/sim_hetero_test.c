/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the policy hetero is worth, in hours of waiting: Gavel's jobs on 36 V100, 36 P100 and 36
 * K80, the same queue (in order of arrival, whatever fits starts), once blind to models and once
 * not.
 *
 * The cluster, the policies and the jobs are the real ones; the few lines of engine here share
 * nothing with the planner or the simulator, so that they can be held against each other.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sched/cluster.h"
#include "sched/compare/compare.h"
#include "sim/gavel_work.h"
#include "sim_kit.h"

enum {
	MODELS = 3,
	NODES = 9, /* of each model */
	WIDTH = 4,
	JOBS = 1500,
	MAX_TASKS = 2, /* 8 devices are two nodes */
};

static const char *const names[MODELS] = {"v100", "p100", "k80"};
static struct takt_throughputs table;

struct running {
	size_t job;
	uint64_t end_ns;
	uint32_t kind;
	uint32_t tasks;
	struct takt_slot slot[MAX_TASKS];
};

struct world {
	struct takt_cluster *cluster;
	struct takt_gavel_config config;
	struct takt_gavel_work work;
	uint32_t in_table[MODELS]; /* model of the cluster -> of the table */
	size_t queue[JOBS];
	size_t queued;
	struct running running[MODELS * NODES * WIDTH];
	size_t run;
	uint64_t left_out; /* bit i: node i */
	uint64_t now_ns;
	double jct_h; /* sum */
};

static int read_table(void **state)
{
	(void)state;
	return kit_throughputs(&table);
}

static int drop_table(void **state)
{
	(void)state;
	takt_throughputs_fini(&table);
	return 0;
}

/* Nodes of the models in turn: who does not know them gets all alike. */
static void build(struct world *world, const struct takt_placement *placement)
{
	struct takt_cluster_config config = {.placement = placement};
	uint32_t id;

	assert_int_equal(takt_cluster_new(&config, &world->cluster, NULL), 0);
	for (uint32_t i = 0; i < MODELS; i++) {
		struct takt_model_desc model = {.name = names[i]};

		assert_int_equal(takt_cluster_model(world->cluster, &model, &id, NULL), 0);
		while (strcmp(table.models[world->in_table[i]], names[i]) != 0)
			world->in_table[i]++;
		world->config.devices[world->in_table[i]] = NODES * WIDTH;
	}
	for (uint32_t i = 0; i < NODES * MODELS; i++) {
		struct takt_node_desc node = {.device_count = WIDTH, .model = i % MODELS};

		assert_int_equal(takt_cluster_add_node(world->cluster, &node, &id, NULL), 0);
	}
}

static struct takt_request request_of(struct world *world, const struct takt_gavel_job *job)
{
	uint32_t gpus = table.kinds.at[job->kind].gpus, speeds;
	struct takt_request request = {.milli = 1000};
	uint16_t permille[MODELS];

	for (uint32_t i = 0; i < MODELS; i++) {
		permille[i] = (uint16_t)takt_gavel_permille(&world->config, job->kind,
							    world->in_table[i]);
		request.model_mask |= (uint64_t)(permille[i] > 0) << i;
	}
	assert_int_equal(takt_cluster_speeds(world->cluster, permille, MODELS, &speeds, NULL), 0);
	request.speeds = (uint16_t)speeds;
	request.devices = (uint16_t)(gpus > WIDTH ? WIDTH : gpus);
	return request;
}

static bool place_all(struct world *world, const struct takt_request *request, struct running *run)
{
	uint64_t mark = takt_cluster_mark(world->cluster);

	assert_int_equal(takt_cluster_kind(world->cluster, request, &run->kind, NULL), 0);
	for (uint32_t i = 0; i < run->tasks; i++) {
		if (!takt_cluster_pick(world->cluster, run->kind, NULL, &run->slot[i], NULL)) {
			takt_cluster_rollback(world->cluster, mark);
			return false;
		}
		assert_int_equal(takt_cluster_take(world->cluster, run->kind, &run->slot[i]), 0);
	}
	takt_cluster_commit(world->cluster, mark);
	return true;
}

/* All tasks on the model that the policy gives the first of them; else not on that model. Its nodes
 * are left out, but it stays allowed: what is worth waiting for does not change. */
static bool start(struct world *world, size_t index)
{
	const struct takt_gavel_job *job = &world->work.jobs.at[index];
	struct takt_request request = request_of(world, job), one = request;
	struct running *run = &world->running[world->run];
	struct takt_scope scope = {.leave_out = &world->left_out, .leave_out_words = 1};
	struct takt_slot first;
	uint32_t kind;

	world->left_out = 0;
	run->job = index;
	run->tasks = table.kinds.at[job->kind].gpus / request.devices;
	assert_int_equal(takt_cluster_kind(world->cluster, &request, &kind, NULL), 0);
	while (takt_cluster_pick(world->cluster, kind, &scope, &first, NULL)) {
		uint32_t model = first.node % MODELS;

		one.model_mask = UINT64_C(1) << model;
		run->end_ns = world->now_ns +
			      takt_gavel_run_ns(&world->config, job, world->in_table[model]);
		if (place_all(world, &one, run)) {
			world->run++;
			return true;
		}
		for (uint32_t i = model; i < MODELS * NODES; i += MODELS)
			world->left_out |= UINT64_C(1) << i;
	}
	return false;
}

static void start_what_fits(struct world *world)
{
	size_t kept = 0;

	for (size_t i = 0; i < world->queued; i++)
		if (!start(world, world->queue[i]))
			world->queue[kept++] = world->queue[i];
	world->queued = kept;
}

static size_t next_end(const struct world *world)
{
	size_t first = 0;

	for (size_t i = 1; i < world->run; i++)
		if (world->running[i].end_ns < world->running[first].end_ns)
			first = i;
	return first;
}

static void finish(struct world *world, size_t at)
{
	struct running *run = &world->running[at];

	for (uint32_t i = 0; i < run->tasks; i++)
		assert_int_equal(takt_cluster_give(world->cluster, run->kind, &run->slot[i]), 0);
	world->now_ns = run->end_ns;
	world->jct_h += (double)(run->end_ns - world->work.jobs.at[run->job].submit_ns) / 3.6e12;
	*run = world->running[--world->run];
}

/* Mean time from submission to end, in hours. */
static double mean_jct_h(const struct takt_placement *placement, uint64_t seed, uint32_t load)
{
	static struct world world;
	struct takt_rng arrivals, kinds;
	size_t arrived = 0;

	world = (struct world){.config = {.table = &table, .load_permille = load, .jobs = JOBS}};
	build(&world, placement);
	world.config.reference = world.in_table[0];
	takt_rng_init(&arrivals, seed);
	takt_rng_init(&kinds, ~seed);
	assert_int_equal(takt_gavel_generate(&world.config, &arrivals, &kinds, &world.work, NULL),
			 0);
	while (arrived < JOBS || world.run > 0) {
		size_t end = next_end(&world);

		if (arrived < JOBS && (world.run == 0 || world.work.jobs.at[arrived].submit_ns <=
								 world.running[end].end_ns)) {
			world.now_ns = world.work.jobs.at[arrived].submit_ns;
			world.queue[world.queued++] = arrived++;
		} else {
			finish(&world, end);
		}
		start_what_fits(&world);
	}
	assert_int_equal(world.queued, 0);
	takt_gavel_fini(&world.work);
	takt_cluster_free(world.cluster);
	return world.jct_h / JOBS;
}

static void mean_jct_is_shorter_by_a_third_at_every_load(void **state)
{
	static const uint32_t loads[] = {600, 800, 950};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		double all_blind = 0, all_aware = 0;

		for (uint64_t seed = 1000; seed < 1003; seed++) {
			double blind = mean_jct_h(takt_compare_find("bestfit"), seed, loads[i]);
			double aware = mean_jct_h(&takt_place_hetero, seed, loads[i]);

			print_message("# load %u, seed %llu: %.2f h blind, %.2f h, %.2f times\n",
				      loads[i], (unsigned long long)seed, blind, aware,
				      blind / aware);
			assert_true(aware < blind);
			all_blind += blind;
			all_aware += aware;
		}
		assert_true(all_blind > 4 * all_aware / 3);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mean_jct_is_shorter_by_a_third_at_every_load),
	};

	return cmocka_run_group_tests(tests, read_table, drop_table);
}
