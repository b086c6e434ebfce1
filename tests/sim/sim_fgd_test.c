/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the published experiment against figures worked out elsewhere; the whole of it is
 * compared with the published tables in fgd_parity.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sim/fgd_run.h"
#include "sim_kit.h"

struct world {
	struct takt_sim_cluster cluster;
	struct takt_sim_work work;
	struct takt_sim_classes classes;
	struct takt_fgd_typical typical;
};

static void world_init(struct world *world)
{
	assert_int_equal(takt_sim_classes(&world->work, &world->classes, NULL), 0);
	assert_int_equal(takt_fgd_typical(&world->work, &world->typical, NULL), 0);
}

static void world_fini(struct world *world)
{
	takt_sim_classes_fini(&world->classes);
	takt_fgd_typical_fini(&world->typical);
	takt_sim_work_fini(&world->work);
	takt_sim_cluster_fini(&world->cluster);
}

/* Counted for the published variants with another program. */
static void typical_pods_are_as_many_as_published(void **state)
{
	static const struct {
		const char *file;
		size_t kinds, typical;
	} cases[] = {
		{"openb_pod_list_default.csv.gz", 91, 35},
		{"openb_pod_list_gpuspec10.csv.gz", 249, 74},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct world world;
		uint64_t milli = 0;

		kit_load_nodes("openb_node_list_gpu_node.csv", &world.cluster);
		kit_load_pods(cases[i].file, &world.cluster, &world.work);
		world_init(&world);
		assert_int_equal(world.typical.pods.len, cases[i].typical);
		assert_true(world.typical.total * 100 >= world.work.jobs.len * 95);
		TAKT_VEC_EACH (job, &world.work.jobs)
			milli += takt_sim_kind_milli(&world.work.kinds.at[job->kind]);
		assert_int_equal(world.work.jobs.len, 8152);
		assert_in_range(milli, 6000000, 6200000);
		world_fini(&world);
	}
}

/* Four kinds of pods, a node with 300 + 1000 left: worked out on paper. */
static void fragments_are_what_nobody_can_use(void **state)
{
	static const char pods[] = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n"
				   "a,1000,1,0,0,\n"	 /* all of 1300 */
				   "b,1000,1,1,500,\n"	 /* 300 */
				   "b2,1000,2,1,500,\n"	 /* the same kind: memory is left out */
				   "c,1000,1,2,1000,\n"	 /* all: one whole GPU only */
				   "d,1000,1,1,100,T4\n" /* all: another model */
				   "e,9000,1,1,100,\n";	 /* all: too little CPU */
	uint16_t left[2] = {300, 1000};
	struct takt_node node = {.cpu_left_milli = 8000, .devices = 2, .models = 1, .left = left};
	struct world world;

	(void)state;
	kit_nodes("sn,cpu_milli,memory_mib,gpu,model\nn,8000,100,2,V100\n", &world.cluster);
	kit_jobs(pods, &world.cluster, &world.work);
	world_init(&world);
	assert_int_equal(world.typical.pods.len, 5);
	assert_int_equal(world.typical.total, 6);
	assert_int_equal(world.typical.pods.at[0].count, 2);
	assert_int_equal(takt_fgd_fragment(&world.typical, &node), 4 * 1300 + 2 * 300);
	node.cpu_left_milli = 10000;
	assert_int_equal(takt_fgd_fragment(&world.typical, &node), 3 * 1300 + 2 * 300);
	world_fini(&world);
}

static void arrivals_are_all_pods_and_then_copies(void **state)
{
	struct takt_sim_cluster cluster;
	struct takt_sim_work work;
	struct takt_fgd_draw draw, again;
	uint8_t seen[8152] = {0};
	uint64_t milli = 0;

	(void)state;
	kit_load_nodes("openb_node_list_gpu_node.csv", &cluster);
	kit_load_pods("openb_pod_list_default.csv.gz", &cluster, &work);
	assert_int_equal(takt_fgd_draw(&cluster, &work, 7, 1300, &draw, NULL), 0);
	assert_int_equal(takt_fgd_draw(&cluster, &work, 7, 1300, &again, NULL), 0);
	assert_in_range(draw.arrivals.len, 10000, 12000);
	for (size_t i = 0; i < draw.arrivals.len; i++) {
		assert_true(i >= 8152 || !seen[draw.arrivals.at[i]]);
		seen[draw.arrivals.at[i]] = 1;
		milli +=
			takt_sim_kind_milli(&work.kinds.at[work.jobs.at[draw.arrivals.at[i]].kind]);
	}
	assert_null(memchr(seen, 0, sizeof(seen)));
	/* One multi-GPU pod may go beyond: only one of its GPUs is counted before. */
	assert_in_range(milli, 6212 * 1300 - 1000, 6212 * 1300 + 7000);
	assert_int_equal(draw.ranks.len, 1213);
	assert_memory_equal(draw.arrivals.at, again.arrivals.at,
			    draw.arrivals.len * sizeof(draw.arrivals.at[0]));
	takt_fgd_draw_fini(&draw);
	takt_fgd_draw_fini(&again);
	takt_sim_work_fini(&work);
	takt_sim_cluster_fini(&cluster);
}

static void too_many_pods_are_thinned_out(void **state)
{
	struct takt_sim_cluster cluster;
	struct takt_sim_work work;
	struct takt_fgd_draw draw;

	(void)state;
	kit_nodes("sn,cpu_milli,memory_mib,gpu,model\nn,8000,100,2,V100\n", &cluster);
	kit_jobs("name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,1,1,1,1000\nb,1,1,1,1000\n"
		 "c,1,1,1,1000\nd,1,1,1,1000\n",
		 &cluster, &work);
	assert_int_equal(takt_fgd_draw(&cluster, &work, 1, 1300, &draw, NULL), 0);
	assert_int_equal(draw.arrivals.len, 2);
	takt_fgd_draw_fini(&draw);
	takt_sim_work_fini(&work);
	takt_sim_cluster_fini(&cluster);
}

/* Two nodes of two GPUs, seven pods; every event is looked at by hand. */
static void a_small_run_adds_up(void **state)
{
	struct takt_fgd_result result;
	struct world world;
	struct takt_fgd_world shared = {.cluster = &world.cluster,
					.work = &world.work,
					.classes = &world.classes,
					.typical = &world.typical,
					.tuning_permille = 1000,
					.loads = {50, 100},
					.load_count = 2};
	uint64_t counts[2 * 2] = {0}, events[2] = {0};

	(void)state;
	kit_nodes("sn,cpu_milli,memory_mib,gpu,model,count\nn,8000,100,2,V100,2\n", &world.cluster);
	kit_jobs("name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,1,1,2,1000\nb,1,1,2,1000\n",
		 &world.cluster, &world.work);
	world_init(&world);
	assert_int_equal(
		takt_fgd_run(&shared, takt_placement_find("fgd"), NULL, 0, 1, &result, NULL), 0);
	assert_int_equal(result.arrivals, 2);
	assert_int_equal(result.placed, 2);
	assert_int_equal(result.points[0].events, 1);
	assert_int_equal(result.points[0].allocated_milli, 2000);
	assert_int_equal(result.points[0].idle_milli, 2000);
	assert_int_equal(result.points[0].fragment_milli, 0);
	assert_int_equal(result.points[1].allocated_milli, 4000);
	assert_int_equal(result.points[1].fragment_ppm, 0);
	assert_int_equal(result.classes.at[1].arrived, 2);
	assert_int_equal(result.classes.at[1].placed, 2);
	assert_int_equal(takt_fgd_arrived(&shared, 1, counts, events, NULL), 0);
	assert_int_equal(events[0], 1);
	assert_int_equal(counts[0], 1);
	assert_int_equal(counts[1], 2);
	takt_fgd_result_fini(&result);
	world_fini(&world);
}

static void classes_are_by_size(void **state)
{
	static const char *const names[] = {"cpu", "0.045", "0.81", "memory", "1", "8"};
	struct world world;

	(void)state;
	kit_nodes("sn,cpu_milli,memory_mib,gpu,model\nn,8000,100,2,V100\n", &world.cluster);
	kit_jobs("cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_memory_mib\n"
		 "1,1,8,1000,\n1,1,1,810,\n1,1,0,0,\n1,1,1,1000,\n1,1,1,45,\n1,1,1,,4096\n",
		 &world.cluster, &world.work);
	world_init(&world);
	assert_int_equal(world.classes.classes.len, 6);
	for (size_t i = 0; i < 6; i++)
		assert_string_equal(world.classes.classes.at[i].name, names[i]);
	assert_int_equal(world.classes.of_kind.at[0], 5);
	world_fini(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(typical_pods_are_as_many_as_published),
		cmocka_unit_test(fragments_are_what_nobody_can_use),
		cmocka_unit_test(arrivals_are_all_pods_and_then_copies),
		cmocka_unit_test(too_many_pods_are_thinned_out),
		cmocka_unit_test(a_small_run_adds_up),
		cmocka_unit_test(classes_are_by_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
