/* SPDX-License-Identifier: Apache-2.0 */
/* What a description asks for beyond GPUs, and what can be changed about a job that waits: holds,
 * priorities. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "queue_kit.h"

static struct kit kit;

static int setup(void **state)
{
	kit_open(&kit);
	return 0;
}

static int teardown(void **state)
{
	kit_close(&kit);
	return 0;
}

static uint64_t accept_held(uint32_t gpus)
{
	struct takt_jobspec spec = kit_spec(gpus);

	spec.held = true;
	return kit_accept_spec(&kit, spec);
}

static int hold(uint64_t id, enum takt_job_hold held)
{
	const struct takt_queue_change change = {.set_held = true, .held = held};

	return takt_queue_change(kit.queue, id, &change, &kit, NULL);
}

static int set_priority(uint64_t id, int32_t priority)
{
	const struct takt_queue_change change = {.set_priority = true, .priority = priority};

	return takt_queue_change(kit.queue, id, &change, &kit, NULL);
}

static bool started(uint64_t id)
{
	return kit_action(&kit, TAKT_ACTION_START, id) != NULL;
}

static enum takt_why why(uint64_t id)
{
	uint32_t ahead;
	const struct takt_plan_wait *wait = takt_queue_why(kit.queue, id, &ahead);

	return wait ? wait->why : TAKT_WHY_NONE;
}

static void held_jobs_wait_and_let_others_pass(void **state)
{
	uint64_t held = accept_held(8), other = kit_accept(&kit, 8, 0);

	assert_false(started(held));
	assert_int_equal(why(held), TAKT_WHY_HELD);
	assert_true(started(other));
	assert_int_equal(hold(held, TAKT_HOLD_NONE), 0);
	kit_started(&kit, other);
	kit_ended(&kit, other, TAKT_END_EXITED, 0);
	kit_clean(&kit, 0xff);
	kit_settle(&kit);
	assert_true(started(held));
}

static void holds_and_priorities_outlive_a_restart(void **state)
{
	uint64_t blocker = kit_accept(&kit, 8, 0), held = kit_accept(&kit, 1, 0),
		 late = kit_accept(&kit, 1, 0);

	assert_int_equal(hold(held, TAKT_HOLD_ADMIN), 0);
	assert_int_equal(set_priority(late, -5), 0);
	assert_int_equal(kit.noted_count, 0); /* not before it is on disk */
	kit_settle(&kit);
	assert_int_equal(kit.noted_count, 2);
	kit_restart(&kit);
	kit_started(&kit, blocker);
	kit_settle(&kit);
	assert_int_equal(takt_queue_find(kit.queue, held)->row.held, TAKT_HOLD_ADMIN);
	assert_int_equal(why(held), TAKT_WHY_HELD);
	assert_int_equal(takt_queue_find(kit.queue, late)->row.priority, -5);
}

static void the_new_priority_decides_who_goes_first(void **state)
{
	uint64_t blocker = kit_accept(&kit, 8, 0), first = kit_accept(&kit, 8, 0),
		 second = kit_accept(&kit, 8, 0);

	assert_int_equal(set_priority(second, 3), 0);
	kit_started(&kit, blocker);
	kit_ended(&kit, blocker, TAKT_END_EXITED, 0);
	kit_clean(&kit, 0xff);
	kit_settle(&kit);
	assert_true(started(second));
	assert_false(started(first));
}

static void only_waiting_jobs_change_and_one_change_at_a_time(void **state)
{
	uint64_t runs = kit_accept(&kit, 8, 0), waits = kit_accept(&kit, 1, 0);

	assert_int_equal(hold(runs, TAKT_HOLD_OWNER), -TAKT_E_CONFLICT);
	assert_int_equal(hold(99, TAKT_HOLD_OWNER), -TAKT_E_CONFLICT);
	assert_int_equal(hold(waits, TAKT_HOLD_OWNER), 0);
	assert_int_equal(set_priority(waits, 1), -TAKT_E_BUSY);
	kit_settle(&kit);
	assert_int_equal(set_priority(waits, 1), 0);
	assert_int_equal(takt_queue_cancel(kit.queue, waits, (struct takt_wall){9}, NULL), 0);
	kit_settle(&kit);
	assert_int_equal(kit_stored(&kit, waits), TAKT_JOB_CANCELLED);
	assert_int_equal(kit.noted_count, 2);
}

static void who_hangs_up_is_not_answered(void **state)
{
	uint64_t waits = accept_held(1);

	assert_int_equal(hold(waits, TAKT_HOLD_NONE), 0);
	takt_queue_forget_token(kit.queue, &kit);
	kit_settle(&kit);
	assert_int_equal(kit.noted_count, 0);
	assert_true(started(waits));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(held_jobs_wait_and_let_others_pass),
		CASE(holds_and_priorities_outlive_a_restart),
		CASE(the_new_priority_decides_who_goes_first),
		CASE(only_waiting_jobs_change_and_one_change_at_a_time),
		CASE(who_hangs_up_is_not_answered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
