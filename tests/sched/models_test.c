/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work that runs at different speeds on different models, through the whole planner: gangs stand on
 * one model, who waits for a fast model holds nobody back, and says so.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sched/place.h"
#include "sched/sched.h"

enum {
	FAST = 1, /* models; 0 is the one of which nothing is known */
	SLOW,
	CRAWLS = 1,	/* workloads: ten times slower on SLOW, */
	MINDS_LITTLE,	/* or hardly */
	FAST_NODES = 2, /* nodes 0 and 1, then SLOW_NODES, of 4 GPUs each */
	SLOW_NODES = 2,
};

static const int32_t no_links[64];

static void tell(struct takt_sched *sched, struct takt_sched_event event)
{
	struct takt_err err = {0};

	if (takt_sched_update(sched, &event, &err) < 0)
		fail_msg("%s", err.msg);
}

static void tell_workload(struct takt_sched *sched, uint32_t id, uint32_t on_slow)
{
	struct takt_sched_workload workload = {
		.id = id, .count = 3, .permille = {0, 1000, on_slow}};

	tell(sched, (struct takt_sched_event){.kind = TAKT_SCHED_WORKLOAD, .workload = &workload});
}

static struct takt_sched *made(const struct takt_placement *placement)
{
	struct takt_sched_config config = {.placement = placement};
	struct takt_sched *sched;

	assert_int_equal(takt_sched_new(&config, &sched, NULL), 0);
	for (uint32_t id = FAST; id <= SLOW; id++) {
		struct takt_sched_model model = {.id = id, .name = "fast"};

		if (id == SLOW)
			memcpy(model.name, "slow", sizeof("slow"));
		tell(sched, (struct takt_sched_event){.kind = TAKT_SCHED_MODEL, .model = &model});
	}
	for (uint32_t i = 0; i < FAST_NODES + SLOW_NODES; i++)
		tell(sched,
		     (struct takt_sched_event){.kind = TAKT_SCHED_NODE_ADD,
					       .node = {.id = i,
							.gpu_count = 4,
							.pair_score = no_links,
							.model = i < FAST_NODES ? FAST : SLOW}});
	tell_workload(sched, CRAWLS, 100);
	tell_workload(sched, MINDS_LITTLE, 900);
	return sched;
}

static void add(struct takt_sched *sched, uint64_t id, uint32_t gpus, uint32_t tasks,
		uint32_t workload)
{
	tell(sched, (struct takt_sched_event){.kind = TAKT_SCHED_JOB_ADD,
					      .job = {.id = id,
						      .submit_seq = id,
						      .gpus = gpus,
						      .tasks = tasks,
						      .workload = workload}});
}

/* A job of which nothing is known takes a node's first GPUs. */
static void occupy(struct takt_sched *sched, uint64_t id, uint32_t node, uint32_t gpus)
{
	add(sched, id, gpus, 1, 0);
	tell(sched, (struct takt_sched_event){.kind = TAKT_SCHED_JOB_PLACED,
					      .job_id = id,
					      .node_id = node,
					      .gpu_mask = (UINT64_C(1) << gpus) - 1});
}

static void plan_now(struct takt_sched *sched, struct takt_plan *plan)
{
	struct takt_err err = {0};

	memset(plan, 0, sizeof(*plan));
	if (takt_sched_run(sched, 1, 0, plan, &err) < 0)
		fail_msg("%s", err.msg);
}

static void gangs_stand_on_one_model(void **state)
{
	static const struct {
		uint32_t on_fast, on_slow; /* GPUs of the first node of each that are taken */
		uint32_t workload, node;   /* where the first task is */
	} rows[] = {
		{0, 0, CRAWLS, 0},
		{0, 0, MINDS_LITTLE, 0},
		{1, 0, MINDS_LITTLE, FAST_NODES}, /* a task would fit on FAST, both do not */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct takt_sched *sched = made(&takt_place_hetero);
		struct takt_plan plan;

		if (rows[i].on_fast)
			occupy(sched, 90, 0, rows[i].on_fast);
		add(sched, 1, 4, 2, rows[i].workload);
		plan_now(sched, &plan);
		assert_int_equal(plan.placement_count, 2);
		assert_int_equal(plan.placements[0].node_id, rows[i].node);
		assert_int_equal(plan.placements[1].node_id, rows[i].node + 1);
		takt_plan_fini(&plan);
		takt_sched_free(sched);
	}
}

/* One node of each model is full: a gang that knows its speeds waits for two of a kind, one that
 * does not takes what there is. */
static void gangs_wait_rather_than_mix(void **state)
{
	struct takt_sched *sched = made(&takt_place_pack);
	struct takt_plan plan;

	(void)state;
	occupy(sched, 90, 0, 1);
	occupy(sched, 91, FAST_NODES, 1);
	add(sched, 1, 4, 2, MINDS_LITTLE);
	plan_now(sched, &plan);
	assert_int_equal(plan.placement_count, 0);
	assert_int_equal(plan.wait_count, 1);
	assert_int_equal(plan.waits[0].job_id, 1);
	takt_plan_fini(&plan);
	takt_sched_free(sched);

	sched = made(&takt_place_pack);
	occupy(sched, 90, 0, 1);
	occupy(sched, 91, FAST_NODES, 1);
	add(sched, 1, 4, 2, 0);
	plan_now(sched, &plan);
	assert_int_equal(plan.placement_count, 2);
	takt_plan_fini(&plan);
	takt_sched_free(sched);
}

/* In strict order: job 1 lets the slow GPUs pass, job 2 behind it takes them; but behind job 3,
 * which nothing free would do, nobody starts. */
static void who_declines_what_is_free_holds_nobody_back(void **state)
{
	struct takt_sched *sched = made(&takt_place_hetero);
	struct takt_plan plan;

	(void)state;
	occupy(sched, 90, 0, 4);
	occupy(sched, 91, 1, 4);
	occupy(sched, 92, FAST_NODES, 1);
	add(sched, 1, 1, 1, CRAWLS);
	add(sched, 2, 2, 1, MINDS_LITTLE);
	plan_now(sched, &plan);
	assert_int_equal(plan.placement_count, 1);
	assert_int_equal(plan.placements[0].job_id, 2);
	assert_int_equal(plan.wait_count, 1);
	assert_int_equal(plan.waits[0].job_id, 1);
	assert_int_equal(plan.waits[0].behind_job, 0);
	assert_int_equal(plan.waits[0].why, TAKT_WHY_POLICY);
	takt_plan_fini(&plan);

	add(sched, 3, 4, 2, MINDS_LITTLE);
	add(sched, 4, 1, 1, MINDS_LITTLE);
	tell(sched, (struct takt_sched_event){.kind = TAKT_SCHED_JOB_ENDED, .job_id = 2});
	plan_now(sched, &plan);
	assert_int_equal(plan.placement_count, 0);
	assert_int_equal(plan.wait_count, 3);
	takt_plan_fini(&plan);
	takt_sched_free(sched);
}

static void figures_are_told_once(void **state)
{
	struct takt_sched *sched = made(&takt_place_hetero);
	struct takt_sched_workload workload = {
		.id = CRAWLS, .count = 3, .permille = {0, 1000, 100}};
	struct takt_sched_event event = {.kind = TAKT_SCHED_WORKLOAD, .workload = &workload};
	struct takt_err err;

	(void)state;
	tell(sched, event);
	workload.permille[2] = 200;
	assert_int_equal(takt_sched_update(sched, &event, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "workload 1"));
	takt_sched_free(sched);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gangs_stand_on_one_model),
		cmocka_unit_test(gangs_wait_rather_than_mix),
		cmocka_unit_test(who_declines_what_is_free_holds_nobody_back),
		cmocka_unit_test(figures_are_told_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
