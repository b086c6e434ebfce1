/* SPDX-License-Identifier: Apache-2.0 */
/* Starts that are refused: the reason stays for whoever looks, the job is tried at a pace, and
 * nobody else waits for it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "queue_kit.h"

enum {
	ALICE = 1001,
	BOB = 1002
};

static struct kit kit;

static int set_up(void **state)
{
	kit_open(&kit);
	return 0;
}

static int tear_down(void **state)
{
	kit_close(&kit);
	return 0;
}

static uint64_t accept_of(uid_t uid, uint32_t gpus, int priority)
{
	struct takt_jobspec spec = kit_spec(gpus);

	spec.priority = priority;
	assert_int_equal(
		takt_queue_submit(kit.queue, uid, uid, &spec, (struct takt_wall){5}, &kit, NULL),
		0);
	takt_jobspec_fini(&spec);
	kit_settle(&kit);
	return kit.accepted_id;
}

static size_t tries(uint64_t id)
{
	size_t count = 0;

	for (size_t i = 0; i < kit.engine.count; i++)
		count += kit.engine.actions[i].kind == TAKT_ACTION_START &&
			 kit.engine.actions[i].job_id == id;
	return count;
}

/* Its newest start comes to nothing. */
static void refuse(uint64_t id, enum takt_refusal why)
{
	const struct takt_action *start = kit_action(&kit, TAKT_ACTION_START, id);
	struct takt_engine_event event = {.kind = TAKT_ENGINE_OUTCOME,
					  .action_id = start->id,
					  .outcome = TAKT_OUTCOME_FAILED,
					  .refusal = why,
					  .job_id = id,
					  .attempt = start->attempt,
					  .message = "no"};

	takt_engine_emit(&kit.engine.base, event);
	kit_clean(&kit, start->gpu_mask);
	kit_settle(&kit);
}

static const struct takt_queue_refusal *refused(uint64_t id)
{
	return takt_queue_refused(kit.queue, takt_queue_find(kit.queue, id));
}

/* It starts so much later and no earlier; *n is how often it was tried. */
static void expect_try_in(uint64_t id, uint64_t ns, size_t *n)
{
	kit_later(&kit, ns - TAKT_NS_PER_S / 10);
	assert_int_equal(tries(id), *n);
	kit_later(&kit, TAKT_NS_PER_S / 10);
	assert_int_equal(tries(id), ++*n);
}

static void it_says_why_and_is_tried_ever_less_often(void **state)
{
	uint64_t id = accept_of(ALICE, 1, 0);
	size_t n = 1;

	refuse(id, TAKT_REFUSAL_CGROUP);
	assert_int_equal(refused(id)->kind, TAKT_REFUSAL_CGROUP);
	assert_int_equal(refused(id)->tries, 1);
	assert_string_equal(refused(id)->text, "no");
	assert_int_equal(takt_queue_find(kit.queue, id)->row.state, TAKT_JOB_WAITING);
	for (uint64_t pause_s = 1; pause_s < 64; pause_s *= 2) {
		expect_try_in(id, pause_s * TAKT_NS_PER_S, &n);
		refuse(id, TAKT_REFUSAL_CGROUP);
	}
	for (int i = 0; i < 3; i++) {
		expect_try_in(id, 60 * TAKT_NS_PER_S, &n);
		refuse(id, TAKT_REFUSAL_CGROUP);
	}
	assert_int_equal(refused(id)->tries, n);
	assert_true(refused(id)->since.ns < (int64_t)TAKT_NS_PER_S);
}

static void a_start_that_succeeds_ends_it(void **state)
{
	uint64_t id = accept_of(ALICE, 1, 0);

	refuse(id, TAKT_REFUSAL_CGROUP);
	kit_later(&kit, TAKT_NS_PER_S);
	assert_non_null(refused(id)); /* nothing has come of this one yet */
	kit_started(&kit, id);
	assert_null(refused(id));
	assert_null(takt_queue_all_refused(kit.queue));
}

static void others_have_its_gpus_meanwhile(void **state)
{
	uint64_t first = accept_of(ALICE, KIT_GPUS, 9), second;

	refuse(first, TAKT_REFUSAL_ATTEMPT);
	second = accept_of(BOB, KIT_GPUS, 0);
	assert_int_equal(tries(second), 1);
	kit_started(&kit, second);
	kit_later(&kit, 10 * TAKT_NS_PER_S);
	assert_int_equal(tries(first), 1);
	assert_non_null(refused(first));
	kit_end_cleanly(&kit, second, TAKT_END_EXITED, 0);
	kit_settle(&kit);
	assert_int_equal(tries(first), 2);
}

static void a_users_other_jobs_wait_with_it_and_nobody_elses(void **state)
{
	uint64_t first = accept_of(ALICE, 1, 0), second, others;

	refuse(first, TAKT_REFUSAL_ISOLATION);
	second = accept_of(ALICE, 1, 0);
	others = accept_of(BOB, 1, 0);
	assert_int_equal(tries(second), 0);
	assert_int_equal(refused(second)->kind, TAKT_REFUSAL_ISOLATION);
	assert_int_equal(tries(others), 1);
	assert_null(refused(others));
	kit_started(&kit, others);
	kit_later(&kit, TAKT_NS_PER_S);
	assert_int_equal(tries(first) + tries(second), 2); /* one of them is tried */
	kit_started(&kit, first);
	kit_settle(&kit);
	assert_int_equal(tries(second), 1);
	assert_null(refused(second));
}

/* What was under way when the first was refused tells nothing new. */
static void refusals_at_once_are_one_for_the_pause(void **state)
{
	uint64_t ids[KIT_GPUS];
	size_t tried = 0;

	for (size_t i = 0; i < KIT_GPUS; i++)
		ids[i] = accept_of(ALICE, 1, 0);
	for (size_t i = 0; i < KIT_GPUS; i++)
		refuse(ids[i], TAKT_REFUSAL_USER);
	kit_later(&kit, TAKT_NS_PER_S);
	for (size_t i = 0; i < KIT_GPUS; i++)
		tried += tries(ids[i]);
	assert_int_equal(tried, KIT_GPUS + 1);
}

/* Each for a reason of its own: a user may have thousands of such jobs. */
static void several_of_a_users_jobs_hold_up_the_rest(void **state)
{
	for (int i = 0; i < 3; i++)
		refuse(accept_of(ALICE, 1, 0), TAKT_REFUSAL_ATTEMPT);
	assert_int_equal(tries(accept_of(ALICE, 1, 0)), 0);
	assert_int_equal(tries(accept_of(BOB, 1, 0)), 1);
}

static void one_job_again_and_again_holds_up_no_other(void **state)
{
	uint64_t id = accept_of(ALICE, 1, 0);

	for (int i = 0; i < 6; i++) {
		refuse(id, TAKT_REFUSAL_ATTEMPT);
		kit_later(&kit, 60 * TAKT_NS_PER_S);
	}
	assert_int_equal(tries(accept_of(ALICE, 1, 0)), 1);
}

static void nobody_starts_where_there_is_no_launcher(void **state)
{
	uint64_t id = accept_of(ALICE, 1, 0), other;

	refuse(id, TAKT_REFUSAL_LAUNCHER);
	assert_int_equal(takt_queue_all_refused(kit.queue)->kind, TAKT_REFUSAL_LAUNCHER);
	other = accept_of(BOB, 1, 0);
	assert_int_equal(tries(other), 0);
	assert_int_equal(refused(other)->kind, TAKT_REFUSAL_LAUNCHER);
	kit_later(&kit, TAKT_NS_PER_S / 2);
	assert_int_equal(tries(id), 2);
	assert_int_equal(tries(other), 1);
	kit_started(&kit, other);
	assert_null(takt_queue_all_refused(kit.queue));
	assert_null(refused(id));
}

static void that_no_start_succeeds_is_said_after_the_third(void **state)
{
	uint64_t ids[] = {accept_of(ALICE, 1, 0), accept_of(BOB, 1, 0), accept_of(1003, 1, 0)};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(ids); i++) {
		assert_null(takt_queue_all_refused(kit.queue));
		refuse(ids[i], TAKT_REFUSAL_CGROUP);
	}
	assert_int_equal(takt_queue_all_refused(kit.queue)->tries, 3);
	kit_started(&kit, accept_of(1004, 1, 0));
	assert_null(takt_queue_all_refused(kit.queue));
}

/* Once may be takt's own death at the wrong moment. */
static void what_comes_to_nothing_twice_is_refused(void **state)
{
	uint64_t id = accept_of(ALICE, 1, 0);

	kit_end_cleanly(&kit, id, TAKT_END_NEVER_RAN, 0);
	kit_settle(&kit);
	assert_int_equal(tries(id), 2);
	assert_null(refused(id));
	kit_end_cleanly(&kit, id, TAKT_END_NEVER_RAN, 0);
	kit_settle(&kit);
	assert_int_equal(tries(id), 2);
	assert_int_equal(refused(id)->kind, TAKT_REFUSAL_SHIM);
	kit_later(&kit, TAKT_NS_PER_S);
	assert_int_equal(tries(id), 3);
}

static void a_wall_clock_that_is_set_changes_no_pause(void **state)
{
	uint64_t id = accept_of(ALICE, 1, 0);
	size_t n = 1;

	refuse(id, TAKT_REFUSAL_USER);
	kit.wall_ahead_ns += 3600 * (int64_t)TAKT_NS_PER_S;
	kit_later(&kit, 0);
	expect_try_in(id, TAKT_NS_PER_S, &n);
	refuse(id, TAKT_REFUSAL_USER);
	kit.wall_ahead_ns -= 1800 * (int64_t)TAKT_NS_PER_S;
	kit_later(&kit, 0);
	expect_try_in(id, 2 * TAKT_NS_PER_S, &n);
}

static void it_can_be_cancelled_and_is_forgotten_with_its_user(void **state)
{
	uint64_t id = accept_of(ALICE, 1, 0);

	refuse(id, TAKT_REFUSAL_USER);
	kit_cancel(&kit, id);
	kit_settle(&kit);
	assert_int_equal(kit.last_state, TAKT_JOB_CANCELLED);
	assert_int_equal(tries(accept_of(ALICE, 1, 0)), 1);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(it_says_why_and_is_tried_ever_less_often),
		CASE(a_start_that_succeeds_ends_it),
		CASE(others_have_its_gpus_meanwhile),
		CASE(a_users_other_jobs_wait_with_it_and_nobody_elses),
		CASE(refusals_at_once_are_one_for_the_pause),
		CASE(several_of_a_users_jobs_hold_up_the_rest),
		CASE(one_job_again_and_again_holds_up_no_other),
		CASE(nobody_starts_where_there_is_no_launcher),
		CASE(that_no_start_succeeds_is_said_after_the_third),
		CASE(what_comes_to_nothing_twice_is_refused),
		CASE(a_wall_clock_that_is_set_changes_no_pause),
		CASE(it_can_be_cancelled_and_is_forgotten_with_its_user),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
