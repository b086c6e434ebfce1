/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that are made ready before it is their turn: who, when, and that a staged job is a job that
 * waits in everything else. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "queue_kit.h"

static struct kit kit;

static int set_up(void **state)
{
	kit_open(&kit);
	kit.staging = TAKT_STAGING_ALL;
	kit_restart(&kit);
	return 0;
}

static int tear_down(void **state)
{
	kit_close(&kit);
	return 0;
}

static struct takt_job stored(uint64_t id)
{
	struct takt_job row = {0}, copy;

	kit_settle(&kit);
	assert_int_equal(takt_store_get(kit.store, id, &row, NULL), 0);
	copy = row;
	copy.message = copy.spec_json = copy.mig = NULL;
	takt_job_fini(&row);
	return copy;
}

/* All GPUs are taken, and it runs. */
static uint64_t hold_all(void)
{
	uint64_t id = kit_accept(&kit, KIT_GPUS, 0);

	kit_started(&kit, id);
	return id;
}

static void free_all(uint64_t holder)
{
	kit_ended(&kit, holder, TAKT_END_EXITED, 0);
	kit_settle(&kit);
	kit_clean(&kit, (1u << KIT_GPUS) - 1);
	kit_settle(&kit);
}

static void expect_staged(uint64_t id, uint32_t attempt)
{
	const struct takt_action *stage = kit_action(&kit, TAKT_ACTION_STAGE, id);

	assert_non_null(stage);
	assert_int_equal(stage->attempt, attempt);
	assert_int_equal(stage->gpu_mask, 0);
	assert_null(kit_action(&kit, TAKT_ACTION_START, id));
}

static void the_next_one_is_staged_and_starts_as_that_attempt(void **state)
{
	struct takt_job row;
	uint64_t holder, next;

	holder = hold_all();
	next = kit_accept(&kit, 2, 0);
	expect_staged(next, 1);
	row = stored(next);
	assert_int_equal(row.state, TAKT_JOB_WAITING);
	assert_true(row.staged);
	assert_int_equal(row.attempt, 1);
	assert_int_equal(row.gpu_mask, 0);
	free_all(holder);
	assert_int_equal(kit_action(&kit, TAKT_ACTION_START, next)->attempt, 1);
	row = stored(next);
	assert_int_equal(row.state, TAKT_JOB_STARTING);
	assert_false(row.staged);
	assert_int_equal(__builtin_popcountll(row.gpu_mask), 2);
	kit_started(&kit, next);
	kit_ended(&kit, next, TAKT_END_EXITED, 0);
	kit_settle(&kit);
	assert_int_equal(kit.last_state, TAKT_JOB_DONE);
	assert_null(kit_action(&kit, TAKT_ACTION_STOP, next));
}

static void those_that_could_run_together_are_staged_in_order(void **state)
{
	uint64_t ids[4];

	hold_all();
	ids[0] = kit_accept(&kit, 4, 0);
	ids[1] = kit_accept(&kit, 4, 0);
	ids[2] = kit_accept(&kit, 1, 0);
	ids[3] = kit_accept(&kit, 0, 0); /* runs at once, as it needs no GPU */
	expect_staged(ids[0], 1);
	expect_staged(ids[1], 1);
	assert_null(kit_action(&kit, TAKT_ACTION_STAGE, ids[2]));
	assert_null(kit_action(&kit, TAKT_ACTION_STAGE, ids[3]));
}

static void only_who_asks_is_staged_when_so_configured(void **state)
{
	struct takt_jobspec asks = kit_spec(1), terminal = kit_spec(1), ranks = kit_spec(2);
	uint64_t other, asking, typing, meeting;

	kit.staging = TAKT_STAGING_ASKED;
	kit_restart(&kit);
	hold_all();
	other = kit_accept(&kit, 1, 0);
	asks.stage = true;
	terminal.stage = terminal.pty = true;
	asking = kit_accept_spec(&kit, asks);
	ranks.stage = true;
	ranks.ranks = 2;
	typing = kit_accept_spec(&kit, terminal);
	meeting = kit_accept_spec(&kit, ranks);
	assert_null(kit_action(&kit, TAKT_ACTION_STAGE, other));
	expect_staged(asking, 1);
	expect_staged(typing, 1);
	expect_staged(meeting, 1);
}

static void held_or_not_in_line_it_is_not_staged(void **state)
{
	struct takt_queue_change hold = {.set_held = true, .held = TAKT_HOLD_OWNER};
	struct takt_jobspec later = kit_spec(1);
	uint64_t held, id;

	hold_all();
	later.begin_ms = INT64_C(1) << 41;
	id = kit_accept_spec(&kit, later);
	assert_null(kit_action(&kit, TAKT_ACTION_STAGE, id));
	held = kit_accept(&kit, 1, 0);
	expect_staged(held, 1);
	assert_int_equal(takt_queue_change(kit.queue, held, &hold, NULL, NULL), 0);
	kit_settle(&kit);
	assert_non_null(kit_action(&kit, TAKT_ACTION_STOP, held));
	kit_ended(&kit, held, TAKT_END_NEVER_RAN, 0);
	assert_false(stored(held).staged);
	assert_int_equal(stored(held).state, TAKT_JOB_WAITING);
}

static void cancelled_it_ends_when_nothing_is_left_of_it(void **state)
{
	uint64_t holder, next;

	holder = hold_all();
	next = kit_accept(&kit, 1, 0);
	kit_cancel(&kit, next);
	assert_non_null(kit_action(&kit, TAKT_ACTION_STOP, next));
	free_all(holder); /* it is not started meanwhile */
	assert_null(kit_action(&kit, TAKT_ACTION_START, next));
	assert_int_equal(kit_stored(&kit, next), TAKT_JOB_WAITING);
	kit_ended(&kit, next, TAKT_END_NEVER_RAN, 0);
	kit_settle(&kit);
	assert_int_equal(kit_stored(&kit, next), TAKT_JOB_CANCELLED);
	assert_null(takt_queue_find(kit.queue, next));
}

static void cancel_of_one_that_is_called_off_outlives_a_restart(void **state)
{
	uint64_t next;

	hold_all();
	next = kit_accept(&kit, 1, 0);
	kit_cancel(&kit, next);
	kit_settle(&kit);
	kit_restart(&kit);
	assert_non_null(kit_action(&kit, TAKT_ACTION_STOP, next));
	kit_ended(&kit, next, TAKT_END_NEVER_RAN, 0);
	kit_settle(&kit);
	assert_int_equal(kit_stored(&kit, next), TAKT_JOB_CANCELLED);
}

static void a_job_of_higher_rank_takes_the_stage(void **state)
{
	uint64_t holder, next, higher;

	holder = hold_all();
	next = kit_accept(&kit, 8, 0);
	expect_staged(next, 1);
	higher = kit_accept(&kit, 8, 5);
	kit_settle(&kit);
	assert_non_null(kit_action(&kit, TAKT_ACTION_STOP, next));
	expect_staged(higher, 1);
	kit_ended(&kit, next, TAKT_END_NEVER_RAN, 0);
	free_all(holder);
	assert_non_null(kit_action(&kit, TAKT_ACTION_START, higher));
	kit_settle(&kit);
	assert_int_equal(kit_action(&kit, TAKT_ACTION_STAGE, next)->attempt, 2);
}

static void placed_while_it_is_called_off_it_waits_for_that(void **state)
{
	struct takt_queue_change hold = {.set_held = true, .held = TAKT_HOLD_OWNER};
	struct takt_queue_change release = {.set_held = true};
	uint64_t holder, next;

	holder = hold_all();
	next = kit_accept(&kit, 1, 0);
	assert_int_equal(takt_queue_change(kit.queue, next, &hold, NULL, NULL), 0);
	kit_settle(&kit);
	assert_int_equal(takt_queue_change(kit.queue, next, &release, NULL, NULL), 0);
	free_all(holder);
	assert_null(kit_action(&kit, TAKT_ACTION_START, next));
	kit_ended(&kit, next, TAKT_END_NEVER_RAN, 0);
	kit_settle(&kit);
	assert_int_equal(kit_action(&kit, TAKT_ACTION_START, next)->attempt, 2);
}

static void after_a_restart_it_is_taken_over(void **state)
{
	uint64_t holder, next;

	holder = hold_all();
	next = kit_accept(&kit, 1, 0);
	kit_settle(&kit);
	kit_restart(&kit);
	assert_int_equal(kit.claimed_count, 2);
	assert_int_equal(takt_queue_find(kit.queue, next)->stage, TAKT_STAGE_READY);
	kit_started(&kit, holder);
	kit_settle(&kit);
	assert_null(kit_action(&kit, TAKT_ACTION_STAGE, next)); /* it is that already */
	free_all(holder);
	assert_int_equal(kit_action(&kit, TAKT_ACTION_START, next)->attempt, 1);
}

static void after_a_restart_without_staging_it_is_called_off(void **state)
{
	uint64_t holder, next;

	holder = hold_all();
	next = kit_accept(&kit, 1, 0);
	kit_settle(&kit);
	kit.staging = TAKT_STAGING_OFF;
	kit_restart(&kit);
	kit_started(&kit, holder);
	kit_settle(&kit);
	assert_non_null(kit_action(&kit, TAKT_ACTION_STOP, next));
	kit_ended(&kit, next, TAKT_END_NEVER_RAN, 0);
	free_all(holder);
	assert_int_equal(kit_action(&kit, TAKT_ACTION_START, next)->attempt, 2);
}

static void one_that_cannot_be_staged_starts_as_any_other(void **state)
{
	struct takt_engine_event failed = {
		.kind = TAKT_ENGINE_OUTCOME, .outcome = TAKT_OUTCOME_FAILED, .attempt = 1};
	uint64_t holder;

	holder = hold_all();
	failed.job_id = kit_accept(&kit, 1, 0);
	failed.action_id = kit_action(&kit, TAKT_ACTION_STAGE, failed.job_id)->id;
	takt_engine_emit(&kit.engine.base, failed);
	kit_settle(&kit);
	assert_int_equal(kit_action(&kit, TAKT_ACTION_STAGE, failed.job_id)->attempt, 1);
	free_all(holder);
	assert_int_equal(kit_action(&kit, TAKT_ACTION_START, failed.job_id)->attempt, 2);
}

/* How often it is staged in so long, which fails each time. Nothing else happens. */
static unsigned stagings_that_fail(uint64_t id, unsigned seconds, unsigned every_s)
{
	static uint64_t answered;
	unsigned count = 0;

	for (unsigned s = 0; s < seconds; s += every_s) {
		const struct takt_action *stage = kit_action(&kit, TAKT_ACTION_STAGE, id);

		if (stage && stage->id != answered) {
			count++;
			answered = stage->id;
			takt_engine_emit(&kit.engine.base,
					 (struct takt_engine_event){.kind = TAKT_ENGINE_OUTCOME,
								    .outcome = TAKT_OUTCOME_FAILED,
								    .action_id = stage->id,
								    .job_id = id,
								    .attempt = stage->attempt});
		}
		kit_later(&kit, every_s * TAKT_NS_PER_S);
	}
	return count;
}

static void hours_in_which_it_cannot_be_staged_are_few_tries(void **state)
{
	uint64_t next;

	hold_all();
	next = kit_accept(&kit, 1, 0);
	assert_in_range(stagings_that_fail(next, 60, 1), 4, 5); /* 2, 4, 8 and 16 s apart */
	assert_in_range(stagings_that_fail(next, 6 * 3600, 10), 300, 365);
	kit_later(&kit, 60 * TAKT_NS_PER_S);
	free_all(1);
	assert_non_null(kit_action(&kit, TAKT_ACTION_START, next));
}

/* Killed between its placement and its start: its GPUs are looked at like any others. */
static void lost_while_it_gets_its_gpus_it_waits_again(void **state)
{
	uint64_t holder, next;

	holder = hold_all();
	next = kit_accept(&kit, 1, 0);
	kit_settle(&kit);
	kit.hold_prepare = true;
	free_all(holder);
	assert_int_equal(takt_queue_find(kit.queue, next)->phase, TAKT_PHASE_PREPARING);
	kit_ended(&kit, next, TAKT_END_NEVER_RAN, 0);
	assert_int_equal(takt_queue_find(kit.queue, next)->phase, TAKT_PHASE_WAITING);
	kit.hold_prepare = false;
	kit_settle(&kit);
	assert_int_equal(kit_action(&kit, TAKT_ACTION_START, next)->attempt, 2);
}

static void cancelled_while_it_gets_its_gpus_it_is_called_off(void **state)
{
	uint64_t holder, next;

	holder = hold_all();
	next = kit_accept(&kit, 1, 0);
	kit_settle(&kit);
	kit.hold_prepare = true;
	free_all(holder);
	kit_cancel(&kit, next);
	assert_non_null(kit_action(&kit, TAKT_ACTION_STOP, next));
	assert_null(kit_action(&kit, TAKT_ACTION_START, next));
	kit_ended(&kit, next, TAKT_END_NEVER_RAN, 0);
	kit_settle(&kit);
	assert_int_equal(kit_stored(&kit, next), TAKT_JOB_CANCELLED);
}

static void a_refused_stop_is_said_again(void **state)
{
	uint64_t next;

	hold_all();
	next = kit_accept(&kit, 1, 0);
	kit_settle(&kit);
	kit.engine.refuse_rc = -TAKT_E_LIMIT;
	kit_cancel(&kit, next);
	kit_settle(&kit);
	assert_null(kit_action(&kit, TAKT_ACTION_STOP, next));
	kit.engine.refuse_rc = 0;
	kit.boot_ns += 10 * TAKT_NS_PER_S;
	kit_settle(&kit);
	assert_non_null(kit_action(&kit, TAKT_ACTION_STOP, next));
}

static void one_that_starts_itself_is_over(void **state)
{
	uint64_t next;

	hold_all();
	next = kit_accept(&kit, 1, 0);
	kit_settle(&kit);
	kit_started(&kit, next);
	assert_int_equal(takt_queue_find(kit.queue, next)->phase, TAKT_PHASE_WAITING);
	kit_ended(&kit, next, TAKT_END_EXITED, 0);
	kit_settle(&kit);
	assert_int_equal(kit_stored(&kit, next), TAKT_JOB_FAILED);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(the_next_one_is_staged_and_starts_as_that_attempt),
		CASE(those_that_could_run_together_are_staged_in_order),
		CASE(only_who_asks_is_staged_when_so_configured),
		CASE(held_or_not_in_line_it_is_not_staged),
		CASE(cancelled_it_ends_when_nothing_is_left_of_it),
		CASE(cancel_of_one_that_is_called_off_outlives_a_restart),
		CASE(a_job_of_higher_rank_takes_the_stage),
		CASE(placed_while_it_is_called_off_it_waits_for_that),
		CASE(after_a_restart_it_is_taken_over),
		CASE(after_a_restart_without_staging_it_is_called_off),
		CASE(one_that_cannot_be_staged_starts_as_any_other),
		CASE(hours_in_which_it_cannot_be_staged_are_few_tries),
		CASE(lost_while_it_gets_its_gpus_it_waits_again),
		CASE(cancelled_while_it_gets_its_gpus_it_is_called_off),
		CASE(a_refused_stop_is_said_again),
		CASE(one_that_starts_itself_is_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
