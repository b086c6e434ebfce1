/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that are to begin anew because somebody asked: on record first, then ended, then run again;
 * and a restart of takt in between changes none of it. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "queue_kit.h"

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

static uint64_t run_job(int checkpoint_signal)
{
	struct takt_jobspec spec = kit_spec(KIT_GPUS);
	uint64_t id;

	spec.checkpoint_signal = checkpoint_signal;
	spec.checkpoint_grace_ms = checkpoint_signal ? 60000 : 0;
	id = kit_accept_spec(&kit, spec);
	kit_started(&kit, id);
	kit_settle(&kit);
	return id;
}

static int requeue(uint64_t id)
{
	const struct takt_queue_change change = {.begin_anew = true};

	return takt_queue_change(kit.queue, id, &change, &kit, NULL);
}

static uint64_t requeued_job(int checkpoint_signal)
{
	uint64_t id = run_job(checkpoint_signal);

	assert_int_equal(requeue(id), 0);
	kit_settle(&kit);
	return id;
}

static const struct takt_job *row_of(uint64_t id)
{
	return &takt_queue_find(kit.queue, id)->row;
}

static void expect_it_waits_again(uint64_t id)
{
	assert_int_equal(row_of(id)->state, TAKT_JOB_WAITING);
	assert_int_equal(row_of(id)->restarts, 1);
	assert_null(row_of(id)->gpu_uuids);
	assert_int_equal(row_of(id)->preemptions, 0);
	assert_int_equal(row_of(id)->evict, 0);
	assert_int_equal(kit.ended_count, 0);
	kit_clean(&kit, 0xff);
	kit_settle(&kit);
	assert_int_equal(kit_action(&kit, TAKT_ACTION_START, id)->attempt, 2);
}

static void it_is_on_record_ended_and_begins_anew(void **state)
{
	uint64_t id = run_job(0);

	assert_int_equal(requeue(id), 0);
	assert_string_equal(row_of(id)->gpu_uuids,
			    "GPU-a,GPU-b,GPU-c,GPU-d,GPU-e,GPU-f,GPU-g,GPU-h");
	assert_false(kit_was_stopped(&kit, id));
	assert_int_equal(kit.noted_count, 0);
	kit_settle(&kit);
	assert_int_equal(kit.noted_count, 1);
	assert_true(kit_was_stopped(&kit, id));
	assert_int_equal(kit_stored(&kit, id), TAKT_JOB_STOPPING);
	assert_string_equal(row_of(id)->message, "begins anew, as was asked");
	kit_ended(&kit, id, TAKT_END_SIGNALED, SIGTERM);
	kit_settle(&kit);
	assert_string_equal(row_of(id)->message, "ended, as was asked, runs again");
	assert_int_equal(kit_action(&kit, TAKT_ACTION_START, id)->attempt, 1);
	expect_it_waits_again(id);
}

static void its_checkpoint_signal_comes_first(void **state)
{
	uint64_t id = requeued_job(SIGUSR1);

	assert_int_equal(kit_action(&kit, TAKT_ACTION_SIGNAL, id)->signal, SIGUSR1);
	assert_false(kit_was_stopped(&kit, id));
	kit.boot_ns += 61 * TAKT_NS_PER_S;
	kit_settle(&kit);
	assert_true(kit_was_stopped(&kit, id));
	kit_ended(&kit, id, TAKT_END_EXITED, 0);
	kit_settle(&kit);
	expect_it_waits_again(id);
}

static void one_that_ends_before_it_is_told_begins_anew(void **state)
{
	uint64_t id = run_job(0);

	assert_int_equal(requeue(id), 0);
	kit_ended(&kit, id, TAKT_END_EXITED, 3);
	kit_settle(&kit);
	assert_false(kit_was_stopped(&kit, id));
	assert_int_equal(kit.noted_count, 1);
	expect_it_waits_again(id);
}

static void a_restart_of_takt_forgets_nothing(void **state)
{
	uint64_t id = requeued_job(SIGUSR1);

	kit_restart(&kit);
	kit_ended(&kit, id, TAKT_END_LOST, 0);
	kit_settle(&kit);
	expect_it_waits_again(id);
}

static void a_restart_of_takt_goes_on_where_it_was(void **state)
{
	uint64_t id = requeued_job(SIGUSR1);

	kit_restart(&kit);
	kit_adopted(&kit, id);
	kit_settle(&kit);
	assert_int_equal(row_of(id)->state, TAKT_JOB_STOPPING);
	assert_false(kit_was_stopped(&kit, id));
	kit.boot_ns += 61 * TAKT_NS_PER_S;
	kit_settle(&kit);
	assert_true(kit_was_stopped(&kit, id));
	kit_ended(&kit, id, TAKT_END_SIGNALED, SIGKILL);
	kit_settle(&kit);
	expect_it_waits_again(id);
}

static void a_cancel_counts_more(void **state)
{
	uint64_t id = run_job(SIGUSR1);

	assert_int_equal(requeue(id), 0);
	assert_int_equal(
		takt_queue_cancel(kit.queue, id, TAKT_CAUSE_CANCELLED, (struct takt_wall){9}, NULL),
		0);
	kit_settle(&kit);
	assert_null(kit_action(&kit, TAKT_ACTION_SIGNAL, id));
	kit_ended(&kit, id, TAKT_END_SIGNALED, SIGTERM);
	kit_settle(&kit);
	assert_int_equal(kit.last_state, TAKT_JOB_CANCELLED);
}

static void only_who_runs_can_begin_anew(void **state)
{
	uint64_t id = run_job(0), waiting = kit_accept(&kit, 1, 0);

	assert_int_equal(requeue(waiting), -TAKT_E_CONFLICT);
	assert_int_equal(requeue(id), 0);
	assert_int_equal(requeue(id), -TAKT_E_BUSY);
	kit_settle(&kit);
	assert_int_equal(requeue(id), -TAKT_E_CONFLICT);
	kit_ended(&kit, id, TAKT_END_SIGNALED, SIGTERM);
	kit_settle(&kit);
	assert_int_equal(requeue(id), -TAKT_E_CONFLICT);
	assert_int_equal(requeue(99), -TAKT_E_CONFLICT);
	assert_int_equal(kit.noted_count, 1);
}

/* Its own try count and pause are those of failures: this is none. */
static void it_is_no_failure(void **state)
{
	struct takt_jobspec spec = kit_spec(1);
	uint64_t id;

	spec.retries = 1;
	spec.retry_backoff_ms = 60000;
	id = kit_accept_spec(&kit, spec);
	kit_started(&kit, id);
	kit_settle(&kit);
	assert_int_equal(requeue(id), 0);
	kit_settle(&kit);
	kit_ended(&kit, id, TAKT_END_SIGNALED, SIGTERM);
	kit_settle(&kit);
	assert_int_equal(row_of(id)->failures, 0);
	assert_int_equal(row_of(id)->retry_at.ns, 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(it_is_on_record_ended_and_begins_anew),
		CASE(its_checkpoint_signal_comes_first),
		CASE(one_that_ends_before_it_is_told_begins_anew),
		CASE(a_restart_of_takt_forgets_nothing),
		CASE(a_restart_of_takt_goes_on_where_it_was),
		CASE(a_cancel_counts_more),
		CASE(only_who_runs_can_begin_anew),
		CASE(it_is_no_failure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
