/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that have to go for others: nobody for nothing, whoever goes runs again, and a restart of
 * takt in between changes neither. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "queue_kit.h"

/* `gpus` GPUs, may be pushed out, and runs. */
static uint64_t run_preemptible(struct kit *kit, uint32_t gpus, int checkpoint_signal)
{
	struct takt_jobspec spec = kit_spec(gpus);
	uint64_t id;

	spec.preemptible = true;
	spec.checkpoint_signal = checkpoint_signal;
	spec.checkpoint_grace_ms = checkpoint_signal ? 60000 : 0;
	id = kit_accept_spec(kit, spec);
	kit_started(kit, id);
	kit_settle(kit);
	return id;
}

/* A kit in which such a job holds all GPUs and has been told to go for another: its id. */
static uint64_t open_pushing(struct kit *kit, int checkpoint_signal)
{
	uint64_t victim;

	kit_open_preempting(kit);
	victim = run_preemptible(kit, KIT_GPUS, checkpoint_signal);
	kit_accept(kit, KIT_GPUS, 5);
	kit_settle(kit);
	return victim;
}

static enum takt_job_state state_of(const struct kit *kit, uint64_t id)
{
	return takt_queue_find(kit->queue, id)->row.state;
}

static void who_makes_room_waits_and_runs_again(void **state)
{
	struct kit kit;
	const struct takt_queue_job *job;
	uint64_t victim, urgent;

	kit_open_preempting(&kit);
	victim = run_preemptible(&kit, 8, 0);
	urgent = kit_accept(&kit, 4, 5);
	kit_settle(&kit);
	assert_true(kit_was_stopped(&kit, victim));
	assert_int_equal(state_of(&kit, victim), TAKT_JOB_STOPPING);
	job = takt_queue_find(kit.queue, victim);
	assert_non_null(strstr(job->row.message, "makes room for job 2"));
	kit_ended(&kit, victim, TAKT_END_SIGNALED, SIGTERM);
	kit_settle(&kit);
	assert_int_equal(state_of(&kit, victim), TAKT_JOB_WAITING);
	assert_int_equal(kit_stored(&kit, victim), TAKT_JOB_WAITING);
	kit_clean(&kit, 0xff);
	kit_settle(&kit);
	assert_non_null(kit_action(&kit, TAKT_ACTION_START, urgent));
	assert_int_equal(kit_action(&kit, TAKT_ACTION_START, victim)->attempt, 1);
	kit_started(&kit, urgent);
	kit_ended(&kit, urgent, TAKT_END_EXITED, 0);
	kit_clean(&kit, kit_action(&kit, TAKT_ACTION_START, urgent)->gpu_mask);
	kit_settle(&kit);
	assert_int_equal(kit_action(&kit, TAKT_ACTION_START, victim)->attempt, 2);
	job = takt_queue_find(kit.queue, victim);
	assert_int_equal(job->row.restarts, 1);
	assert_int_equal(job->row.failures, 0);
	kit_close(&kit);
}

static void who_is_not_preemptible_stays(void **state)
{
	struct kit kit;
	uint64_t holder;

	kit_open_preempting(&kit);
	holder = kit_accept(&kit, 8, 0);
	kit_started(&kit, holder);
	kit_accept(&kit, 4, 5);
	kit_settle(&kit);
	assert_false(kit_was_stopped(&kit, holder));
	kit_close(&kit);
}

static void nobody_goes_where_preemption_is_off(void **state)
{
	struct kit kit;
	uint64_t holder;

	kit_open(&kit);
	holder = run_preemptible(&kit, 8, 0);
	kit_accept(&kit, 4, 5);
	kit_settle(&kit);
	assert_false(kit_was_stopped(&kit, holder));
	kit_close(&kit);
}

static void nobody_goes_for_equals(void **state)
{
	struct kit kit;
	uint64_t holder;

	kit_open_preempting(&kit);
	holder = run_preemptible(&kit, 8, 0);
	kit_accept(&kit, 4, 0);
	kit_settle(&kit);
	assert_false(kit_was_stopped(&kit, holder));
	kit_close(&kit);
}

static void nobody_goes_before_its_least_run_time(void **state)
{
	struct kit kit;
	uint64_t holder;

	kit_open_with(
		&kit,
		(struct takt_sched_settings){.preempt = true, .min_runtime_ns = 60 * TAKT_NS_PER_S},
		TAKT_FAILURE_KEEP);
	holder = run_preemptible(&kit, 8, 0);
	kit_accept(&kit, 4, 5);
	kit_settle(&kit);
	assert_false(kit_was_stopped(&kit, holder));
	kit.boot_ns += 61 * TAKT_NS_PER_S;
	kit_settle(&kit);
	kit_settle(&kit);
	assert_true(kit_was_stopped(&kit, holder));
	kit_close(&kit);
}

/* The store has not said yet that the eviction is on disk when its reason goes away. */
static void an_eviction_without_its_reason_is_called_off(void **state)
{
	struct kit kit;
	uint64_t holder, urgent;

	kit_open_preempting(&kit);
	holder = run_preemptible(&kit, 8, 0);
	assert_int_equal(kit_submit(&kit, 4, 5, NULL), 0);
	kit_until(&kit, holder, TAKT_EVICT_DECIDED);
	urgent = kit.accepted_id;
	assert_int_equal(takt_queue_cancel(kit.queue, urgent, TAKT_CAUSE_CANCELLED,
					   (struct takt_wall){9}, NULL),
			 0);
	kit_settle(&kit);
	assert_false(kit_was_stopped(&kit, holder));
	assert_int_equal(state_of(&kit, holder), TAKT_JOB_RUNNING);
	assert_int_equal(takt_queue_find(kit.queue, holder)->row.evict, 0);
	kit_ended(&kit, holder, TAKT_END_EXITED, 3);
	kit_settle(&kit);
	assert_int_equal(kit.last_state, TAKT_JOB_FAILED);
	kit_close(&kit);
}

/* Its limit was over while it was to go anyway, so that nobody looked. */
static void one_that_stays_after_all_keeps_its_time_limit(void **state)
{
	struct kit kit;
	struct takt_jobspec spec = kit_spec(8);
	uint64_t holder;

	kit_open_preempting(&kit);
	spec.preemptible = true;
	spec.time_limit_ms = 60000;
	holder = kit_accept_spec(&kit, spec);
	kit_started(&kit, holder);
	kit_settle(&kit);
	assert_int_equal(kit_submit(&kit, 4, 5, NULL), 0);
	kit_until(&kit, holder, TAKT_EVICT_DECIDED);
	assert_int_equal(takt_queue_cancel(kit.queue, kit.accepted_id, TAKT_CAUSE_CANCELLED,
					   (struct takt_wall){9}, NULL),
			 0);
	kit_later(&kit, 61 * TAKT_NS_PER_S);
	assert_int_equal(takt_queue_find(kit.queue, holder)->row.evict, 0);
	kit_settle(&kit);
	assert_true(kit_was_stopped(&kit, holder));
	kit_close(&kit);
}

static void the_checkpoint_signal_comes_first(void **state)
{
	struct kit kit;
	uint64_t victim = open_pushing(&kit, SIGUSR1);

	assert_int_equal(kit_action(&kit, TAKT_ACTION_SIGNAL, victim)->signal, SIGUSR1);
	assert_false(kit_was_stopped(&kit, victim));
	kit.boot_ns += 59 * TAKT_NS_PER_S;
	kit_settle(&kit);
	assert_false(kit_was_stopped(&kit, victim));
	kit.boot_ns += 2 * TAKT_NS_PER_S;
	kit_settle(&kit);
	assert_true(kit_was_stopped(&kit, victim));
	kit_close(&kit);
}

/* What it was told is to save its work and go: that it did so with 0 does not mean it was done. */
static void who_saves_and_exits_is_run_again(void **state)
{
	struct kit kit;
	uint64_t victim = open_pushing(&kit, SIGUSR1);

	kit_ended(&kit, victim, TAKT_END_EXITED, 0);
	kit_settle(&kit);
	assert_int_equal(state_of(&kit, victim), TAKT_JOB_WAITING);
	assert_int_equal(kit.ended_count, 0);
	kit_close(&kit);
}

static void a_cancelled_victim_is_cancelled(void **state)
{
	struct kit kit;
	uint64_t victim = open_pushing(&kit, SIGUSR1);

	assert_int_equal(takt_queue_cancel(kit.queue, victim, TAKT_CAUSE_CANCELLED,
					   (struct takt_wall){9}, NULL),
			 0);
	kit_ended(&kit, victim, TAKT_END_SIGNALED, SIGTERM);
	kit_settle(&kit);
	assert_int_equal(kit.last_state, TAKT_JOB_CANCELLED);
	kit_close(&kit);
}

/* takt dies between the signal and the end; meanwhile the job ends. */
static void a_restart_in_between_loses_nobody(void **state)
{
	struct kit kit;
	uint64_t victim = open_pushing(&kit, SIGUSR1);

	kit_restart(&kit);
	assert_int_equal(takt_queue_find(kit.queue, victim)->row.evict, 2);
	kit_ended(&kit, victim, TAKT_END_SIGNALED, SIGTERM);
	kit_settle(&kit);
	assert_int_equal(state_of(&kit, victim), TAKT_JOB_WAITING);
	assert_int_equal(kit.ended_count, 0);
	kit_close(&kit);
}

/* It lives still: what was begun is brought to its end. */
static void a_restart_goes_on_where_it_was(void **state)
{
	struct kit kit;
	uint64_t victim = open_pushing(&kit, SIGUSR1);

	kit_restart(&kit);
	kit_adopted(&kit, victim);
	kit_settle(&kit);
	assert_int_equal(state_of(&kit, victim), TAKT_JOB_STOPPING);
	assert_false(kit_was_stopped(&kit, victim));
	kit.boot_ns += 61 * TAKT_NS_PER_S;
	kit_settle(&kit);
	assert_true(kit_was_stopped(&kit, victim));
	kit_close(&kit);
}

/* takt dies, and the next one finds the job running. */
static void next_takt(struct kit *kit, uint64_t victim)
{
	kit_restart(kit);
	kit_adopted(kit, victim);
	kit_settle(kit);
}

/* A job that a takt noted as one to go, and may have told so, before it died. Whom it was to go for
 * is gone: the next takt's plan wants nothing of it. */
static uint64_t open_in_doubt(struct kit *kit, uint64_t time_limit_ms, bool requeue)
{
	struct takt_jobspec spec = kit_spec(KIT_GPUS);
	uint64_t victim;

	kit_open_with(kit, (struct takt_sched_settings){.preempt = true}, TAKT_FAILURE_REQUEUE);
	spec.preemptible = true;
	spec.requeue = requeue;
	spec.time_limit_ms = time_limit_ms;
	victim = kit_accept_spec(kit, spec);
	kit_started(kit, victim);
	kit_settle(kit);
	assert_int_equal(kit_submit(kit, 4, 5, NULL), 0);
	kit_until(kit, victim, TAKT_EVICT_DECIDED);
	assert_int_equal(takt_queue_cancel(kit->queue, kit->accepted_id, TAKT_CAUSE_CANCELLED,
					   (struct takt_wall){9}, NULL),
			 0);
	next_takt(kit, victim);
	assert_int_equal(state_of(kit, victim), TAKT_JOB_RUNNING);
	assert_int_equal(takt_queue_find(kit->queue, victim)->evict.step, TAKT_EVICT_NONE);
	kit->ended_count = 0;
	return victim;
}

static void what_may_have_been_told_before_two_restarts_runs_again(void **state)
{
	struct kit kit;
	uint64_t victim = open_in_doubt(&kit, 0, false);

	next_takt(&kit, victim);
	assert_false(kit_was_stopped(&kit, victim));
	kit_ended(&kit, victim, TAKT_END_SIGNALED, SIGTERM);
	kit_settle(&kit);
	assert_int_equal(kit.ended_count, 0);
	assert_int_equal(state_of(&kit, victim), TAKT_JOB_WAITING);
	kit_close(&kit);
}

/* It ends while nobody looks. */
static void so_does_one_that_ended_before_the_second(void **state)
{
	struct kit kit;
	uint64_t victim = open_in_doubt(&kit, 0, false);

	kit_restart(&kit);
	kit_ended(&kit, victim, TAKT_END_SIGNALED, SIGTERM);
	kit_settle(&kit);
	assert_int_equal(kit.ended_count, 0);
	assert_int_equal(state_of(&kit, victim), TAKT_JOB_WAITING);
	kit_close(&kit);
}

/* By then it would have ended of what it was told: what it does from now on is its own. */
static void the_doubt_ends(void **state)
{
	struct kit kit;
	uint64_t victim = open_in_doubt(&kit, 0, false);

	kit_later(&kit, 600 * TAKT_NS_PER_S);
	assert_int_equal(takt_queue_find(kit.queue, victim)->row.evict, 0);
	next_takt(&kit, victim);
	kit_ended(&kit, victim, TAKT_END_SIGNALED, SIGTERM);
	kit_settle(&kit);
	assert_int_equal(kit.last_state, TAKT_JOB_FAILED);
	kit_close(&kit);
}

static void one_in_doubt_may_be_cancelled(void **state)
{
	struct kit kit;
	uint64_t victim = open_in_doubt(&kit, 0, false);

	assert_int_equal(takt_queue_cancel(kit.queue, victim, TAKT_CAUSE_CANCELLED,
					   (struct takt_wall){9}, NULL),
			 0);
	assert_true(kit_was_stopped(&kit, victim));
	next_takt(&kit, victim);
	kit_ended(&kit, victim, TAKT_END_SIGNALED, SIGTERM);
	kit_settle(&kit);
	assert_int_equal(kit.last_state, TAKT_JOB_CANCELLED);
	kit_close(&kit);
}

static void one_in_doubt_keeps_its_time_limit(void **state)
{
	struct kit kit;
	uint64_t victim = open_in_doubt(&kit, 5000, false);

	kit_later(&kit, 6 * TAKT_NS_PER_S);
	assert_true(kit_was_stopped(&kit, victim));
	kit_ended(&kit, victim, TAKT_END_SIGNALED, SIGTERM);
	kit_settle(&kit);
	assert_int_equal(kit.last_state, TAKT_JOB_FAILED);
	kit_close(&kit);
}

static void one_in_doubt_goes_when_it_has_to(void **state)
{
	struct kit kit;
	uint64_t victim = open_in_doubt(&kit, 0, false), urgent;

	urgent = kit_accept(&kit, 4, 5);
	kit_settle(&kit);
	assert_true(kit_was_stopped(&kit, victim));
	kit_ended(&kit, victim, TAKT_END_SIGNALED, SIGTERM);
	kit_clean(&kit, 0xff);
	kit_settle(&kit);
	assert_non_null(kit_action(&kit, TAKT_ACTION_START, urgent));
	assert_int_equal(state_of(&kit, victim), TAKT_JOB_WAITING);
	kit_close(&kit);
}

static void the_doubt_is_of_one_attempt(void **state)
{
	struct kit kit;
	uint64_t victim = open_in_doubt(&kit, 0, true);

	kit_ended(&kit, victim, TAKT_END_LOST, 0);
	assert_int_equal(takt_queue_find(kit.queue, victim)->row.evict, 0);
	kit_clean(&kit, 0xff);
	kit_settle(&kit);
	assert_int_equal(state_of(&kit, victim), TAKT_JOB_STARTING);
	next_takt(&kit, victim);
	kit_ended(&kit, victim, TAKT_END_EXITED, 3);
	kit_settle(&kit);
	assert_int_equal(kit.last_state, TAKT_JOB_FAILED);
	kit_close(&kit);
}

static void one_in_doubt_may_be_run_again(void **state)
{
	struct kit kit;
	uint64_t victim = open_in_doubt(&kit, 0, false);
	struct takt_queue_change anew = {.begin_anew = true};

	assert_int_equal(takt_queue_change(kit.queue, victim, &anew, NULL, NULL), 0);
	kit_settle(&kit);
	assert_true(kit_was_stopped(&kit, victim));
	next_takt(&kit, victim);
	kit_ended(&kit, victim, TAKT_END_SIGNALED, SIGTERM);
	kit_settle(&kit);
	assert_int_equal(state_of(&kit, victim), TAKT_JOB_WAITING);
	assert_int_equal(takt_queue_find(kit.queue, victim)->row.evict, 0);
	assert_int_equal(takt_queue_find(kit.queue, victim)->row.preemptions, 0);
	kit_close(&kit);
}

/* A note of long ago is no reason to believe one reading. */
static void a_failed_gpu_under_one_in_doubt_is_looked_at_twice(void **state)
{
	struct kit kit;
	uint64_t victim = open_in_doubt(&kit, 0, true);

	kit_restart(&kit);
	assert_int_equal(takt_queue_gpu_health(kit.queue, 3, TAKT_GPU_LOST, NULL), 0);
	kit_adopted(&kit, victim);
	kit_settle(&kit);
	assert_false(kit_was_stopped(&kit, victim));
	assert_int_equal(takt_queue_find(kit.queue, victim)->evict.step, TAKT_EVICT_SUSPECTED);
	kit_close(&kit);
}

static void a_failed_gpu_is_looked_at_twice(void **state)
{
	struct kit kit;
	struct takt_jobspec spec = kit_spec(1);
	uint64_t id;

	kit_open_with(&kit, (struct takt_sched_settings){.preempt = false}, TAKT_FAILURE_STOP);
	spec.requeue = true;
	id = kit_accept_spec(&kit, spec);
	kit_started(&kit, id);
	kit_settle(&kit);
	assert_int_equal(takt_queue_gpu_health(kit.queue, 0, TAKT_GPU_LOST, NULL), 0);
	kit_settle(&kit);
	assert_false(kit_was_stopped(&kit, id));
	assert_int_equal(takt_queue_gpu_health(kit.queue, 0, TAKT_GPU_FREE, NULL), 0);
	kit_settle(&kit);
	assert_int_equal(takt_queue_gpu_health(kit.queue, 0, TAKT_GPU_LOST, NULL), 0);
	kit_settle(&kit);
	kit.boot_ns += 31 * TAKT_NS_PER_S;
	kit_settle(&kit);
	kit_settle(&kit);
	assert_true(kit_was_stopped(&kit, id));
	kit_ended(&kit, id, TAKT_END_SIGNALED, SIGTERM);
	kit_settle(&kit);
	assert_int_equal(kit_action(&kit, TAKT_ACTION_START, id)->attempt, 2);
	assert_int_not_equal(kit_action(&kit, TAKT_ACTION_START, id)->gpu_mask, 1);
	kit_close(&kit);
}

/* The administrator wants it stopped: its retries are for failures of its own. */
static void who_is_stopped_for_a_lost_gpu_is_not_tried_again(void **state)
{
	struct kit kit;
	struct takt_jobspec spec = kit_spec(1);
	uint64_t id;

	kit_open_with(&kit, (struct takt_sched_settings){.preempt = false}, TAKT_FAILURE_STOP);
	spec.retries = 2;
	id = kit_accept_spec(&kit, spec);
	kit_started(&kit, id);
	kit_settle(&kit);
	assert_int_equal(takt_queue_gpu_health(kit.queue, 0, TAKT_GPU_LOST, NULL), 0);
	kit_settle(&kit);
	kit_later(&kit, 31 * TAKT_NS_PER_S);
	kit_settle(&kit);
	assert_true(kit_was_stopped(&kit, id));
	kit_ended(&kit, id, TAKT_END_SIGNALED, SIGTERM);
	kit_settle(&kit);
	assert_int_equal(kit.ended_count, 1);
	assert_int_equal(kit.last_state, TAKT_JOB_FAILED);
	kit_close(&kit);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_makes_room_waits_and_runs_again),
		cmocka_unit_test(who_is_not_preemptible_stays),
		cmocka_unit_test(nobody_goes_where_preemption_is_off),
		cmocka_unit_test(nobody_goes_for_equals),
		cmocka_unit_test(nobody_goes_before_its_least_run_time),
		cmocka_unit_test(an_eviction_without_its_reason_is_called_off),
		cmocka_unit_test(one_that_stays_after_all_keeps_its_time_limit),
		cmocka_unit_test(the_checkpoint_signal_comes_first),
		cmocka_unit_test(who_saves_and_exits_is_run_again),
		cmocka_unit_test(a_cancelled_victim_is_cancelled),
		cmocka_unit_test(a_restart_in_between_loses_nobody),
		cmocka_unit_test(a_restart_goes_on_where_it_was),
		cmocka_unit_test(what_may_have_been_told_before_two_restarts_runs_again),
		cmocka_unit_test(so_does_one_that_ended_before_the_second),
		cmocka_unit_test(the_doubt_ends),
		cmocka_unit_test(one_in_doubt_may_be_cancelled),
		cmocka_unit_test(one_in_doubt_keeps_its_time_limit),
		cmocka_unit_test(one_in_doubt_goes_when_it_has_to),
		cmocka_unit_test(the_doubt_is_of_one_attempt),
		cmocka_unit_test(one_in_doubt_may_be_run_again),
		cmocka_unit_test(a_failed_gpu_under_one_in_doubt_is_looked_at_twice),
		cmocka_unit_test(a_failed_gpu_is_looked_at_twice),
		cmocka_unit_test(who_is_stopped_for_a_lost_gpu_is_not_tried_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
