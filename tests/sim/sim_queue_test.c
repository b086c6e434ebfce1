/* SPDX-License-Identifier: Apache-2.0 */
/* The queue engine on schedules that can be worked out on paper. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/timetypes.h"
#include "sim/queue_arrivals.h"
#include "sim_kit.h"

#define S TAKT_NS_PER_S

struct rig {
	struct takt_sim_cluster cluster;
	struct takt_sim_work work;
	struct takt_queue_arrivals arrivals;
	struct takt_queue_config config;
	struct takt_queue_result result;
};

static void rig_init(struct rig *rig, const char *cluster, const char *jobs)
{
	struct takt_err err = {0};

	memset(rig, 0, sizeof(*rig));
	assert_int_equal(takt_sim_cluster_load(cluster, &rig->cluster, NULL), 0);
	kit_jobs(jobs, &rig->cluster, &rig->work);
	assert_int_equal(takt_queue_split_gangs(&rig->work, &rig->cluster, NULL), 0);
	if (takt_queue_arrivals(&rig->work, false, 0, &rig->arrivals, &err) < 0)
		fail_msg("%s", err.msg);
	rig->config = (struct takt_queue_config){
		.cluster = &rig->cluster,
		.work = &rig->work,
		.jobs = rig->arrivals.jobs.at,
		.job_count = rig->arrivals.jobs.len,
	};
}

static void rig_run(struct rig *rig)
{
	struct takt_err err = {0};

	if (takt_queue_run(&rig->config, &rig->result, &err) < 0)
		fail_msg("%s", err.msg);
}

static void rig_fini(struct rig *rig)
{
	takt_queue_result_fini(&rig->result);
	takt_queue_arrivals_fini(&rig->arrivals);
	takt_sim_work_fini(&rig->work);
	takt_sim_cluster_fini(&rig->cluster);
}

static void must_be(const struct rig *rig, size_t job, uint64_t jct_s, uint64_t wait_s)
{
	assert_true(rig->result.outcomes[job].done);
	assert_int_equal(rig->result.outcomes[job].jct_ns / S, jct_s);
	assert_int_equal(rig->result.outcomes[job].wait_ns / S, wait_s);
}

static void jobs_wait_their_turn(void **state)
{
	struct rig rig;

	(void)state;
	/* a: 0-10 on both; b and c: from 10. */
	rig_init(&rig, "uniform:1x2",
		 "name,submit_s,duration_s,gpus\na,100,10,2\nb,101,5,1\nc,103,2.5,1\n");
	rig_run(&rig);
	assert_int_equal(rig.result.done, 3);
	assert_int_equal(rig.result.impossible, 0);
	must_be(&rig, 0, 10, 0);
	must_be(&rig, 1, 14, 9);
	must_be(&rig, 2, 9, 7);
	assert_int_equal((rig.result.end_ns - rig.result.first_submit_ns) / S, 15);
	assert_int_equal(rig.result.held_gpu_ms, 20000 + 5000 + 2500);
	/* Until the last submission, at 3 s. */
	assert_int_equal(rig.result.held_gpu_ms_window, 6000);
	assert_int_equal(rig.result.held_gpu_ms_model[TAKT_SIM_MAX_MODELS], 27500);
	assert_int_equal(rig.result.outcomes[0].rho_ppm < 1000000, 1);
	rig_fini(&rig);
}

static void fairness_is_one_alone(void **state)
{
	struct rig rig;

	(void)state;
	rig_init(&rig, "uniform:1x2", "submit_s,duration_s,gpus\n5,10,2\n15,10,1\n");
	rig_run(&rig);
	assert_int_equal(rig.result.outcomes[0].rho_ppm, 1000000);
	assert_int_equal(rig.result.outcomes[1].rho_ppm, 1000000);
	rig_fini(&rig);
}

/* Down from 12 s to 20 s, checkpoints every 5 s: 10 s of 30 are safe, then 1 s for starting anew.
 */
static void a_failed_node_costs_what_was_not_safe(void **state)
{
	static const struct takt_queue_failure failures[] = {
		{TAKT_QUEUE_START_NS + 12 * S, 8 * S, 0},
		{TAKT_QUEUE_START_NS + 13 * S, 3 * S, 0},
		{TAKT_QUEUE_START_NS + 500 * S, 3 * S, 0},
	};
	struct rig rig;

	(void)state;
	rig_init(&rig, "uniform:1x2", "submit_s,duration_s,gpus\n0,30,2\n");
	rig.config.failures = failures;
	rig.config.failure_count = 3;
	rig.config.checkpoint_ns = 5 * S;
	rig.config.preempt_cost_ns = S;
	rig_run(&rig);
	must_be(&rig, 0, 20 + 1 + 20, 8);
	assert_int_equal(rig.result.failures, 1);
	assert_int_equal(rig.result.preemptions, 0);
	assert_int_equal(rig.result.lost_gpu_ms, 2 * (2000 + 1000));
	rig_fini(&rig);
}

static void without_checkpoints_all_is_lost(void **state)
{
	static const struct takt_queue_failure failure = {TAKT_QUEUE_START_NS + 12 * S, 0, 0};
	struct rig rig;

	(void)state;
	rig_init(&rig, "uniform:1x2", "submit_s,duration_s,gpus\n0,30,2\n");
	rig.config.failures = &failure;
	rig.config.failure_count = 1;
	rig_run(&rig);
	must_be(&rig, 0, 42, 0);
	rig_fini(&rig);
}

static void wide_jobs_become_gangs(void **state)
{
	static const struct {
		const char *gpus;
		uint32_t tasks, part;
	} cases[] = {{"8", 1, 8}, {"16", 2, 8}, {"12", 3, 4}, {"24", 3, 8}, {"9", 9, 1}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[80] = "submit_s,duration_s,gpus\n0,1,";
		struct rig rig;

		strcat(text, cases[i].gpus);
		rig_init(&rig, "uniform:4x8", text);
		assert_int_equal(rig.arrivals.jobs.at[0].tasks, cases[i].tasks);
		assert_int_equal(rig.work.kinds.at[rig.work.jobs.at[0].kind].gpus, cases[i].part);
		assert_int_equal(rig.arrivals.gpu_ms, 1000u * cases[i].tasks * cases[i].part);
		rig_fini(&rig);
	}
}

/* 2 GPUs for 30 s of the 40 s between first and last submission. */
static void load_is_work_over_room(void **state)
{
	struct rig rig;

	(void)state;
	rig_init(&rig, "uniform:autox4", "submit_s,duration_s,gpus\n0,20,2\n40,20,1\n");
	assert_int_equal(takt_queue_offered(&rig.arrivals, 4), 375);
	assert_int_equal(takt_queue_gpus_for(&rig.arrivals, 375), 4);
	assert_int_equal(takt_queue_gpus_for(&rig.arrivals, 374), 5);
	takt_queue_stretch(&rig.arrivals, 375, 750);
	assert_int_equal(rig.arrivals.jobs.at[1].submit_ns, TAKT_QUEUE_START_NS + 20 * S);
	assert_int_equal(takt_queue_offered(&rig.arrivals, 4), 750);
	assert_int_equal(takt_sim_cluster_size(&rig.cluster, 3, NULL), 0);
	assert_int_equal(rig.cluster.gpus, 12);
	rig_fini(&rig);
}

/* Three whole weeks and a bit: each drawn week keeps its jobs and their times within it. */
static void weeks_are_drawn_whole(void **state)
{
	enum {
		WEEK = 7 * 24 * 3600
	};
	struct takt_queue_arrivals drawn;
	struct rig rig;
	uint32_t differing = 0;

	(void)state;
	rig_init(&rig, "uniform:1x1",
		 "submit_s,duration_s,gpus\n1000,1,1\n2000,1,1\n606800,2,1\n1210600,3,1\n"
		 "1300000,3,1\n1900000,9,1\n");
	for (uint64_t seed = 0; seed < 20; seed++) {
		assert_int_equal(takt_queue_arrivals(&rig.work, true, seed, &drawn, NULL), 0);
		for (size_t i = 0; i < drawn.jobs.len; i++) {
			const struct takt_queue_job *job = &drawn.jobs.at[i];
			uint64_t was = (uint64_t)rig.work.jobs.at[job->source].submit_ns / S - 1000;
			uint64_t is = (job->submit_ns - TAKT_QUEUE_START_NS) / S;

			assert_int_equal(was % WEEK, is % WEEK);
			assert_true(is < 3 * WEEK && was < 3 * WEEK);
			differing += was != is;
		}
		takt_queue_arrivals_fini(&drawn);
	}
	assert_true(differing > 20);
	rig_fini(&rig);
}

static void jobs_without_times_are_refused(void **state)
{
	struct takt_sim_cluster cluster;
	struct takt_sim_work work;
	struct takt_queue_arrivals arrivals;
	struct takt_err err = {0};

	(void)state;
	assert_int_equal(takt_sim_cluster_load("uniform:1x1", &cluster, NULL), 0);
	kit_jobs("name,submit_s,duration_s,gpus\na,0,1,1\nb,0,,1\n", &cluster, &work);
	assert_int_equal(takt_queue_arrivals(&work, false, 0, &arrivals, &err), -TAKT_E_CORRUPT);
	assert_string_equal(err.msg, "job 2 ('b') has no duration: a queue needs both columns "
				     "submit_s and duration_s (or end_s)");
	takt_sim_work_fini(&work);
	takt_sim_cluster_fini(&cluster);
}

static void clusters_are_described(void **state)
{
	static const char *const bad[] = {"uniform:",	  "uniform:3",	  "uniform:x8",
					  "uniform:2x65", "uniform:2x8:", "uniform:autox8,2x8",
					  "uniform:0x1"};
	struct takt_sim_cluster cluster;

	(void)state;
	assert_int_equal(takt_sim_cluster_load("uniform:9x4:v100,2x8:k80", &cluster, NULL), 0);
	assert_int_equal(cluster.nodes.len, 11);
	assert_int_equal(cluster.gpus, 52);
	assert_string_equal(cluster.models.texts.at[cluster.nodes.at[10].model], "k80");
	takt_sim_cluster_fini(&cluster);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(takt_sim_cluster_load(bad[i], &cluster, NULL), -TAKT_E_USAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(jobs_wait_their_turn),
		cmocka_unit_test(fairness_is_one_alone),
		cmocka_unit_test(a_failed_node_costs_what_was_not_safe),
		cmocka_unit_test(without_checkpoints_all_is_lost),
		cmocka_unit_test(wide_jobs_become_gangs),
		cmocka_unit_test(load_is_work_over_room),
		cmocka_unit_test(weeks_are_drawn_whole),
		cmocka_unit_test(jobs_without_times_are_refused),
		cmocka_unit_test(clusters_are_described),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
