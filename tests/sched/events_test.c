/* SPDX-License-Identifier: Apache-2.0 */
/* What each event does to a plan and to the state, and what is refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "sched_kit.h"

static struct takt_sched *with_h100(void)
{
	struct takt_sched *sched = kit_new();

	kit_take(sched, kit_node(0, kit_machine("hgx-h100")));
	return sched;
}

static void expect_placed(struct takt_sched *sched, uint64_t job_id, uint64_t gpu_mask)
{
	struct takt_plan plan = kit_plan(sched);

	assert_int_equal(plan.placement_count, 1);
	assert_int_equal(plan.placements[0].job_id, job_id);
	assert_int_equal(plan.placements[0].gpu_mask, gpu_mask);
	takt_plan_fini(&plan);
}

static void expect_gpu(struct takt_sched *sched, uint32_t gpu, enum takt_gpu_state state,
		       uint64_t job_id)
{
	enum takt_gpu_state got;
	bool outside;
	uint64_t holder;

	assert_int_equal(takt_sched_gpu(sched, 0, gpu, &got, &outside, &holder), 0);
	assert_string_equal(takt_gpu_state_name(got), takt_gpu_state_name(state));
	assert_int_equal(holder, job_id);
}

static void test_life_of_a_job(void **state)
{
	struct takt_sched *sched = with_h100();

	kit_take(sched, kit_job(1, 2, 0, 0));
	expect_placed(sched, 1, 0x03);
	expect_placed(sched, 1, 0x03); /* a plan alone changes nothing */
	kit_take(sched, kit_placed(1, 0, 0x03));
	expect_gpu(sched, 0, TAKT_GPU_ASSIGNED, 1);
	kit_take(sched, kit_of_job(TAKT_SCHED_JOB_RUNNING, 1));
	expect_gpu(sched, 1, TAKT_GPU_RUNNING, 1);
	kit_take(sched, kit_of_job(TAKT_SCHED_JOB_DRAINING, 1));
	expect_gpu(sched, 0, TAKT_GPU_DRAINING, 1);
	kit_take(sched, kit_of_gpu(TAKT_SCHED_GPU_DRAINED, 0, 0));
	expect_gpu(sched, 0, TAKT_GPU_FREE, 0);
	expect_gpu(sched, 1, TAKT_GPU_DRAINING, 1);
	kit_take(sched, kit_of_job(TAKT_SCHED_JOB_ENDED, 1));
	expect_gpu(sched, 1, TAKT_GPU_DRAINING, 1);
	kit_take(sched, kit_job(2, 1, 0, 0));
	expect_placed(sched, 2, 0x01);
	kit_take(sched, kit_of_gpu(TAKT_SCHED_GPU_DRAINED, 0, 1));
	expect_gpu(sched, 1, TAKT_GPU_FREE, 0);
	takt_sched_free(sched);
}

static void test_a_requeued_job_waits_in_its_old_order(void **state)
{
	struct takt_sched *sched = with_h100();
	struct takt_plan plan;

	kit_running(sched, 1, 0, 0xff);
	kit_take(sched, kit_job(2, 8, 0, 0));
	kit_take(sched, kit_of_job(TAKT_SCHED_JOB_REQUEUED, 1));
	plan = kit_plan(sched);
	assert_int_equal(plan.wait_count, 2);
	assert_int_equal(plan.waits[0].job_id, 1);
	assert_int_equal(plan.waits[0].draining, 8);
	assert_int_equal(plan.waits[1].behind_job, 1);
	takt_plan_fini(&plan);
	for (uint32_t gpu = 0; gpu < 8; gpu++)
		kit_take(sched, kit_of_gpu(TAKT_SCHED_GPU_DRAINED, 0, gpu));
	expect_placed(sched, 1, 0xff);
	takt_sched_free(sched);
}

/* A job that ends without a word of draining leaves its GPUs unclean all the same. */
static void test_ended_in_any_state(void **state)
{
	struct takt_sched *sched = with_h100();

	kit_running(sched, 1, 0, 0x03);
	kit_take(sched, kit_of_job(TAKT_SCHED_JOB_ENDED, 1));
	expect_gpu(sched, 0, TAKT_GPU_DRAINING, 1);
	kit_take(sched, kit_job(2, 1, 0, 0));
	kit_take(sched, kit_of_job(TAKT_SCHED_JOB_ENDED, 2));
	kit_refuse(sched, kit_of_job(TAKT_SCHED_JOB_ENDED, 2), -EINVAL);
	takt_sched_free(sched);
}

static void test_health_and_holder_are_apart(void **state)
{
	struct takt_sched *sched = with_h100();

	kit_running(sched, 1, 0, 0x01);
	kit_take(sched, kit_health(0, 0, TAKT_GPU_LOST));
	expect_gpu(sched, 0, TAKT_GPU_LOST, 1);
	kit_take(sched, kit_health(0, 0, TAKT_GPU_QUARANTINED));
	expect_gpu(sched, 0, TAKT_GPU_QUARANTINED, 1);
	kit_take(sched, kit_health(0, 0, TAKT_GPU_FREE));
	expect_gpu(sched, 0, TAKT_GPU_RUNNING, 1);
	takt_sched_free(sched);
}

static void test_a_change_reorders_the_queue(void **state)
{
	struct takt_sched *sched = with_h100();
	struct takt_sched_event change = kit_job(2, 8, 5, 0);

	kit_take(sched, kit_job(1, 8, 0, 0));
	kit_take(sched, kit_job(2, 8, 0, 0));
	expect_placed(sched, 1, 0xff);
	change.kind = TAKT_SCHED_JOB_CHANGE;
	kit_take(sched, change);
	expect_placed(sched, 2, 0xff);
	change.job.flags = TAKT_JOB_HELD;
	kit_take(sched, change);
	expect_placed(sched, 1, 0xff);
	takt_sched_free(sched);
}

/* A job on a node that went away keeps its GPUs, also when the node is back. */
static void test_a_node_goes_and_returns(void **state)
{
	struct takt_sched *sched = with_h100();
	struct takt_str text = TAKT_STR(100000);
	struct takt_sched *rebuilt;

	kit_running(sched, 1, 0, 0x0f);
	kit_take(sched, kit_of_gpu(TAKT_SCHED_GPU_DRAINING, 0, 7));
	kit_take(sched, kit_health(0, 6, TAKT_GPU_QUARANTINED));
	kit_take(sched, (struct takt_sched_event){.kind = TAKT_SCHED_NODE_REMOVE, .node_id = 0});
	assert_int_equal(takt_sched_gpu(sched, 0, 0, NULL, NULL, NULL), -ENOENT);
	kit_refuse(sched, kit_health(0, 0, TAKT_GPU_LOST), -EINVAL);
	kit_refuse(sched, kit_node(0, &(struct machine){"none", 0, NULL}), -EINVAL);
	kit_state_text(sched, &text);
	assert_null(strstr(takt_str_text(&text), "gpu_")); /* what it was is forgotten */
	takt_str_fini(&text);
	rebuilt = kit_rebuild(sched);
	takt_sched_free(sched);
	sched = rebuilt;
	kit_take(sched, kit_node(0, kit_machine("dgx1-volta")));
	expect_gpu(sched, 3, TAKT_GPU_RUNNING, 1);
	expect_gpu(sched, 7, TAKT_GPU_FREE, 0);
	kit_take(sched, kit_job(2, 4, 0, 0));
	expect_placed(sched, 2, 0xf0);
	takt_sched_free(sched);
}

/* The last job of a node that went away takes the memory of it along. */
static void test_a_removed_node_is_forgotten_with_its_last_job(void **state)
{
	struct takt_sched *sched = with_h100();
	struct takt_str text = TAKT_STR(100000);

	kit_running(sched, 1, 0, 0x0f);
	kit_take(sched, kit_node(5, kit_machine("hgx-h100")));
	kit_take(sched, (struct takt_sched_event){.kind = TAKT_SCHED_NODE_REMOVE, .node_id = 5});
	kit_take(sched, (struct takt_sched_event){.kind = TAKT_SCHED_NODE_REMOVE, .node_id = 0});
	kit_take(sched, kit_of_job(TAKT_SCHED_JOB_ENDED, 1));
	kit_state_text(sched, &text);
	assert_string_equal(takt_str_text(&text), "");
	takt_str_fini(&text);
	takt_sched_free(sched);
}

static void test_refused_nodes_and_gpus(void **state)
{
	struct takt_sched *sched = with_h100();
	int32_t lopsided[] = {0, 1, 2, 0};
	struct takt_sched_event remove = {.kind = TAKT_SCHED_NODE_REMOVE, .node_id = 9};

	kit_refuse(sched, kit_node(0, kit_machine("hgx-h100")), -EINVAL);
	kit_refuse(sched, kit_node(1, &(struct machine){"wide", 65, lopsided}), -EINVAL);
	kit_refuse(sched, kit_node(1, &(struct machine){"lopsided", 2, lopsided}), -EINVAL);
	kit_refuse(sched, remove, -EINVAL);
	kit_refuse(sched, kit_health(9, 0, TAKT_GPU_LOST), -EINVAL);
	kit_refuse(sched, kit_health(0, 8, TAKT_GPU_LOST), -EINVAL);
	kit_refuse(sched, kit_health(0, 0, TAKT_GPU_RUNNING), -EINVAL);
	kit_refuse(sched, kit_outside(0, 8, true), -EINVAL);
	kit_refuse(sched, kit_of_gpu(TAKT_SCHED_GPU_DRAINED, 0, 0), -EINVAL);
	kit_refuse(sched, kit_of_gpu(TAKT_SCHED_GPU_DRAINED, 0, 64), -EINVAL);
	kit_running(sched, 1, 0, 0x01);
	kit_refuse(sched, kit_of_gpu(TAKT_SCHED_GPU_DRAINING, 0, 0), -EINVAL);
	kit_refuse(sched, (struct takt_sched_event){.kind = TAKT_SCHED_EVENT_COUNT}, -EINVAL);
	kit_refuse(sched, (struct takt_sched_event){.kind = (enum takt_sched_event_kind) - 1},
		   -EINVAL);
	takt_sched_free(sched);
}

static void test_refused_jobs(void **state)
{
	struct takt_sched *sched = with_h100();
	struct takt_sched_event event;

	kit_take(sched, kit_job(1, 2, 0, 0));
	kit_refuse(sched, kit_job(0, 1, 0, 0), -EINVAL);
	kit_refuse(sched, kit_job(2, 1, 0, 1u << 7), -EINVAL);
	event = kit_job(1, 1, 0, 0);
	event.job.submit_seq = 2;
	kit_refuse(sched, event, -EINVAL);
	event = kit_job(2, 1, 0, 0);
	event.job.submit_seq = 1;
	kit_refuse(sched, event, -EINVAL);
	event = kit_job(1, 3, 0, 0);
	event.kind = TAKT_SCHED_JOB_CHANGE;
	kit_refuse(sched, event, -EINVAL);
	event.job = kit_job(1, 2, 0, 0).job;
	event.job.submit_seq = 3;
	kit_refuse(sched, event, -EINVAL);
	event.job = kit_job(9, 2, 0, 0).job;
	kit_refuse(sched, event, -EINVAL);
	kit_refuse(sched, kit_placed(9, 0, 1), -EINVAL);
	kit_refuse(sched, kit_placed(1, 9, 3), -EINVAL);
	kit_refuse(sched, kit_placed(1, 0, 1), -EINVAL);
	kit_refuse(sched, kit_placed(1, 0, 0x101), -EINVAL);
	kit_refuse(sched, kit_of_job(TAKT_SCHED_JOB_RUNNING, 1), -EINVAL);
	kit_refuse(sched, kit_of_job(TAKT_SCHED_JOB_REQUEUED, 1), -EINVAL);
	kit_running(sched, 5, 0, 0x02);
	kit_refuse(sched, kit_placed(1, 0, 0x03), -EINVAL);
	kit_refuse(sched, kit_placed(5, 0, 0x04), -EINVAL);
	kit_refuse(sched, kit_of_job(TAKT_SCHED_JOB_RUNNING, 5), -EINVAL);
	event = kit_job(5, 1, 7, 0);
	event.kind = TAKT_SCHED_JOB_CHANGE;
	kit_refuse(sched, event, -EINVAL);
	kit_take(sched, kit_of_job(TAKT_SCHED_JOB_DRAINING, 5));
	kit_refuse(sched, kit_of_job(TAKT_SCHED_JOB_DRAINING, 5), -EINVAL);
	kit_refuse(sched, kit_placed(1, 0, 0x03), -EINVAL);
	takt_sched_free(sched);
}

static void test_limits(void **state)
{
	struct takt_sched_config config = {.max_jobs = 2, .max_nodes = 1};
	struct takt_sched *sched;

	assert_int_equal(takt_sched_new(&config, &sched, NULL), 0);
	kit_take(sched, kit_node(0, kit_machine("hgx-h100")));
	kit_refuse(sched, kit_node(1, kit_machine("hgx-h100")), -TAKT_E_LIMIT);
	kit_take(sched, kit_job(1, 1, 0, 0));
	kit_take(sched, kit_job(2, 1, 0, 0));
	kit_refuse(sched, kit_job(3, 1, 0, 0), -TAKT_E_LIMIT);
	kit_take(sched, kit_of_job(TAKT_SCHED_JOB_ENDED, 1));
	kit_take(sched, kit_job(3, 1, 0, 0));
	takt_sched_free(sched);
}

static void test_possible(void **state)
{
	struct takt_sched *sched = kit_new();
	struct takt_sched_job job = {.id = 1, .gpus = 9};
	struct takt_err err = {0};

	assert_int_equal(takt_sched_possible(sched, &job, &err), -TAKT_E_IMPOSSIBLE);
	kit_take(sched, kit_node(0, kit_machine("4xrtx8000-nvlink-pairs")));
	kit_take(sched, kit_node(3, kit_machine("hgx-h100")));
	assert_int_equal(takt_sched_possible(sched, &job, &err), -TAKT_E_IMPOSSIBLE);
	assert_string_equal(err.msg, "asks for 9 GPUs, the largest node has 8");
	job.gpus = 8;
	assert_int_equal(takt_sched_possible(sched, &job, &err), 0);
	job.gpus = 0;
	assert_int_equal(takt_sched_possible(sched, &job, &err), 0);
	kit_take(sched, (struct takt_sched_event){.kind = TAKT_SCHED_NODE_REMOVE, .node_id = 3});
	job.gpus = 8;
	assert_int_equal(takt_sched_possible(sched, &job, &err), -TAKT_E_IMPOSSIBLE);
	takt_sched_free(sched);
}

/* Every event that allocates, and a plan, with each allocation failing in turn: refused whole, and
 * the same event succeeds afterwards. */
static void take_with_failures(struct takt_sched *sched, struct takt_sched_event event)
{
	struct takt_str before = TAKT_STR(1000000);
	struct takt_str after = TAKT_STR(1000000);
	int rc = -ENOMEM;

	kit_state_text(sched, &before);
	for (unsigned long nth = 1; rc != 0; nth++) {
		takt_alloc_fail_nth(nth, 0);
		rc = takt_sched_update(sched, &event, NULL);
		takt_alloc_fail_nth(0, 0);
		if (rc == 0)
			break;
		assert_int_equal(rc, -ENOMEM);
		takt_str_reset(&after);
		kit_state_text(sched, &after);
		assert_string_equal(takt_str_text(&before), takt_str_text(&after));
	}
	takt_str_fini(&before);
	takt_str_fini(&after);
}

static void test_every_allocation_may_fail(void **state)
{
	struct takt_sched_config config = {0};
	struct takt_sched *sched = NULL;
	struct takt_plan plan = {0};
	int rc = -ENOMEM;

	takt_alloc_fail_nth(1, 0);
	assert_int_equal(takt_sched_new(&config, &sched, NULL), -ENOMEM);
	takt_alloc_fail_nth(0, 0);
	assert_null(sched);
	sched = kit_new();
	take_with_failures(sched, kit_node(0, kit_machine("hgx-h100")));
	for (uint64_t id = 1; id <= 20; id++)
		take_with_failures(sched, kit_job(id, 1, 0, 0));
	take_with_failures(sched, kit_placed(1, 0, 1));
	for (uint64_t id = 21; id <= 24; id++) /* room in the queue is up */
		take_with_failures(sched, kit_job(id, 1, 0, 0));
	take_with_failures(sched, kit_of_job(TAKT_SCHED_JOB_REQUEUED, 1));
	take_with_failures(sched, kit_placed(2, 0, 2));
	take_with_failures(sched,
			   (struct takt_sched_event){.kind = TAKT_SCHED_NODE_REMOVE, .node_id = 0});
	take_with_failures(sched, kit_node(0, kit_machine("hgx-h100")));
	for (unsigned long nth = 1; rc != 0; nth++) {
		takt_alloc_fail_nth(nth, 0);
		rc = takt_sched_run(sched, 0, 0, &plan, NULL);
		takt_alloc_fail_nth(0, 0);
		assert_true(rc == 0 || rc == -ENOMEM);
		assert_true(rc == 0 || (!plan.placements && !plan.waits && plan.wait_count == 0));
	}
	assert_int_equal(plan.placement_count, 7);
	takt_plan_fini(&plan);
	takt_sched_free(sched);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_life_of_a_job),
		cmocka_unit_test(test_a_requeued_job_waits_in_its_old_order),
		cmocka_unit_test(test_ended_in_any_state),
		cmocka_unit_test(test_health_and_holder_are_apart),
		cmocka_unit_test(test_a_change_reorders_the_queue),
		cmocka_unit_test(test_a_node_goes_and_returns),
		cmocka_unit_test(test_a_removed_node_is_forgotten_with_its_last_job),
		cmocka_unit_test(test_refused_nodes_and_gpus),
		cmocka_unit_test(test_refused_jobs),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_possible),
		cmocka_unit_test(test_every_allocation_may_fail),
	};

	return cmocka_run_group_tests_name("events", tests, NULL, NULL);
}
