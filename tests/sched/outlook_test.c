/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Outlooks as facts: what is refused, that new figures change the order at the next plan, and that
 * a scheduler rebuilt from its snapshot knows them.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/mem.h"
#include "sched/order.h"
#include "sched/sched.h"

static struct takt_sched *new_sched(void)
{
	struct takt_sched_config config = {
		.order = &takt_order_takt, .backfill = TAKT_BACKFILL_GREEDY, .preempt = true};
	struct takt_sched *sched;

	assert_int_equal(takt_sched_new(&config, &sched, NULL), 0);
	return sched;
}

static int tell(struct takt_sched *sched, uint32_t id, uint32_t first_rank_s, struct takt_err *err)
{
	struct takt_sched_outlook outlook = {
		.id = id, .is = {.steps = 2, .age_s = {0, 600}, .rank_s = {first_rank_s, 9000}}};
	struct takt_sched_event event = {.kind = TAKT_SCHED_OUTLOOK, .outlook = &outlook};

	return takt_sched_update(sched, &event, err);
}

static int add_job(struct takt_sched *sched, uint64_t id, uint32_t outlook, struct takt_err *err)
{
	struct takt_sched_event event = {
		.kind = TAKT_SCHED_JOB_ADD,
		.job = {.id = id, .submit_seq = id, .gpus = 1, .outlook = outlook}};

	return takt_sched_update(sched, &event, err);
}

static void add_node(struct takt_sched *sched)
{
	struct takt_sched_event event = {.kind = TAKT_SCHED_NODE_ADD, .node = {.gpu_count = 1}};

	assert_int_equal(takt_sched_update(sched, &event, NULL), 0);
}

/* Which job a plan places. */
static uint64_t placed(struct takt_sched *sched)
{
	struct takt_plan plan = {0};
	uint64_t id;

	assert_int_equal(takt_sched_run(sched, 1000000000, 0, &plan, NULL), 0);
	assert_int_equal(plan.placement_count, 1);
	id = plan.placements[0].job_id;
	takt_plan_fini(&plan);
	return id;
}

/* A refused one says where it is wrong and leaves nothing behind: no job may name it, until a good
 * one of that number is told. */
static void test_bad_ones_are_refused(void **state)
{
	static const struct {
		const char *named; /* in the message */
		struct takt_sched_outlook outlook;
	} bad[] = {
		{"outlook.id", {.is = {.steps = 1, .rank_s = {5}}}},
		{"steps", {.id = 9, .is = {.rank_s = {5}}}},
		{"steps", {.id = 9, .is = {.steps = TAKT_ORDER_OUTLOOK_STEPS + 1, .rank_s = {5}}}},
		{"step 0", {.id = 9, .is = {.steps = 1, .rank_s = {0}}}},
		{"step 0", {.id = 9, .is = {.steps = 1, .age_s = {1}, .rank_s = {5}}}},
		{"step 1", {.id = 9, .is = {.steps = 2, .rank_s = {5, 5}}}},
		{"step 1", {.id = 9, .is = {.steps = 2, .age_s = {0, 600}, .rank_s = {5, 0}}}},
	};
	struct takt_sched *sched = new_sched();
	struct takt_err err;

	add_node(sched);
	for (size_t i = 0; i < TAKT_ARRAY_LEN(bad); i++) {
		struct takt_sched_event event = {.kind = TAKT_SCHED_OUTLOOK,
						 .outlook = &bad[i].outlook};

		print_message("# %s\n", bad[i].named);
		assert_int_equal(takt_sched_update(sched, &event, &err), -EINVAL);
		assert_non_null(strstr(err.msg, bad[i].named));
		assert_int_equal(add_job(sched, 1, 9, &err), -EINVAL);
		assert_non_null(strstr(err.msg, "outlook 9 of job 1"));
	}
	assert_int_equal(tell(sched, 9, 300, NULL), 0);
	assert_int_equal(add_job(sched, 1, 9, NULL), 0);
	assert_int_equal(placed(sched), 1);
	takt_sched_free(sched);
}

static void test_new_figures_change_the_order(void **state)
{
	struct takt_sched *sched = new_sched();

	add_node(sched);
	assert_int_equal(tell(sched, 7, 300, NULL), 0);
	assert_int_equal(tell(sched, 3, 400, NULL), 0);
	assert_int_equal(add_job(sched, 1, 3, NULL), 0);
	assert_int_equal(add_job(sched, 2, 7, NULL), 0);
	assert_int_equal(placed(sched), 2);
	assert_int_equal(tell(sched, 7, 500, NULL), 0);
	assert_int_equal(placed(sched), 1);
	takt_sched_free(sched);
}

static int replay(void *ctx, const struct takt_sched_event *event)
{
	return takt_sched_update(ctx, event, NULL);
}

static void test_a_rebuilt_scheduler_knows_them(void **state)
{
	struct takt_sched *sched = new_sched(), *again = new_sched();

	add_node(sched);
	assert_int_equal(tell(sched, 7, 300, NULL), 0);
	assert_int_equal(tell(sched, 3, 400, NULL), 0);
	assert_int_equal(add_job(sched, 1, 3, NULL), 0);
	assert_int_equal(add_job(sched, 2, 7, NULL), 0);
	assert_int_equal(takt_sched_snapshot(sched, replay, again), 0);
	assert_int_equal(placed(again), 2);
	takt_sched_free(sched);
	takt_sched_free(again);
}

static void test_every_allocation_may_fail(void **state)
{
	unsigned long nth = 0;
	int rc;

	do {
		struct takt_sched *sched = new_sched();

		takt_alloc_fail_nth(++nth, 0);
		rc = tell(sched, 1, 300, NULL);
		takt_alloc_fail_nth(0, 0);
		assert_true(rc == 0 || rc == -ENOMEM);
		assert_int_equal(takt_sched_version(sched), rc == 0);
		takt_sched_free(sched);
	} while (rc < 0);
	assert_true(nth > 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bad_ones_are_refused),
		cmocka_unit_test(test_new_figures_change_the_order),
		cmocka_unit_test(test_a_rebuilt_scheduler_knows_them),
		cmocka_unit_test(test_every_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
