/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that are frozen for others: two on a GPU only while one stands still, and each has it again
 * when the other has left. And what owners are told of their jobs. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "queue_kit.h"

enum {
	ALL = 0xff,
	MEM_MIB = 30000
};

static struct takt_jobspec freezable(uint32_t gpus)
{
	struct takt_jobspec spec = kit_spec(gpus);

	spec.preemptible = spec.freezable = true;
	spec.gpu_mem_mib = MEM_MIB;
	spec.hook = takt_strdup("true");
	return spec;
}

static uint64_t run_freezable(struct kit *kit)
{
	uint64_t id = kit_accept_spec(kit, freezable(KIT_GPUS));

	kit_started(kit, id);
	kit_settle(kit);
	return id;
}

static uint64_t accept_urgent(struct kit *kit, uint32_t gpus, uint32_t mem_mib)
{
	struct takt_jobspec spec = kit_spec(gpus);

	spec.priority = 5;
	spec.gpu_mem_mib = mem_mib;
	return kit_accept_spec(kit, spec);
}

/* A kit in which victim holds all GPUs and will not stand still for urgent. */
static void open_restless(struct kit *kit, uint64_t *ret_victim, uint64_t *ret_urgent)
{
	kit_open_preempting(kit);
	*ret_victim = run_freezable(kit);
	kit->restless = true;
	*ret_urgent = accept_urgent(kit, KIT_GPUS, MEM_MIB);
}

static const struct takt_queue_job *job_of(const struct kit *kit, uint64_t id)
{
	return takt_queue_find(kit->queue, id);
}

/* What it was signalled last; 0 = nothing. */
static int signalled(const struct kit *kit, uint64_t id)
{
	const struct takt_action *action = kit_action(kit, TAKT_ACTION_SIGNAL, id);

	return action ? action->signal : 0;
}

static bool was_signalled(const struct kit *kit, uint64_t id, int signal)
{
	for (size_t i = 0; i < kit->engine.count; i++)
		if (kit->engine.actions[i].kind == TAKT_ACTION_SIGNAL &&
		    kit->engine.actions[i].job_id == id && kit->engine.actions[i].signal == signal)
			return true;
	return false;
}

static void pass(struct kit *kit, uint64_t ms)
{
	kit->boot_ns += ms * TAKT_NS_PER_MS;
	kit_settle(kit);
	kit_settle(kit);
}

/* victim stands still for urgent, which runs. */
static void freeze(struct kit *kit, uint64_t *ret_victim, uint64_t *ret_urgent)
{
	*ret_victim = run_freezable(kit);
	*ret_urgent = accept_urgent(kit, KIT_GPUS, MEM_MIB);
	kit_settle(kit);
	assert_int_equal(signalled(kit, *ret_victim), SIGSTOP);
	assert_null(kit_action(kit, TAKT_ACTION_START, *ret_urgent));
	pass(kit, 100);
	assert_int_equal(job_of(kit, *ret_victim)->evict.step, TAKT_EVICT_STILL);
	assert_int_equal(kit_action(kit, TAKT_ACTION_START, *ret_urgent)->gpu_mask, ALL);
	kit_started(kit, *ret_urgent);
	kit_settle(kit);
}

static void it_stands_still_and_has_its_gpus_again(void **state)
{
	struct kit kit;
	uint64_t victim, urgent, holder;

	kit_open_preempting(&kit);
	freeze(&kit, &victim, &urgent);
	assert_non_null(strstr(job_of(&kit, victim)->row.message, "frozen for job 2"));
	assert_int_equal(takt_queue_signal(kit.queue, victim, SIGCONT, NULL), -TAKT_E_CONFLICT);
	assert_int_equal(takt_queue_freeze(kit.queue, victim, false, NULL), -TAKT_E_CONFLICT);
	kit_accept(&kit, KIT_GPUS, 3); /* would have them first, were they anybody's */
	kit_ended(&kit, urgent, TAKT_END_EXITED, 0);
	kit_settle(&kit);
	kit_clean(&kit, 0x7f);
	kit_settle(&kit);
	assert_int_equal(signalled(&kit, victim), SIGSTOP);
	kit_clean(&kit, 0x80);
	assert_int_equal(signalled(&kit, victim), SIGCONT);
	takt_queue_gpu(kit.queue, 0, &holder);
	assert_int_equal(holder, victim);
	assert_false(kit_was_stopped(&kit, victim));
	assert_int_equal(job_of(&kit, victim)->row.attempt, 1);
	assert_int_equal(job_of(&kit, victim)->row.preemptions, 0);
	kit_close(&kit);
}

static uint64_t thaw_refused; /* of this job, by a scheduler that has no memory, say */
static unsigned thaws;

/* The linker puts it in between: meson.build here. */
int __real_takt_sched_update(struct takt_sched *sched, const struct takt_sched_event *event,
			     struct takt_err *err);
int __wrap_takt_sched_update(struct takt_sched *sched, const struct takt_sched_event *event,
			     struct takt_err *err);
int __wrap_takt_sched_update(struct takt_sched *sched, const struct takt_sched_event *event,
			     struct takt_err *err)
{
	if (event->kind != TAKT_SCHED_JOB_PLACED || event->job_id != thaw_refused)
		return __real_takt_sched_update(sched, event, err);
	thaws++;
	return takt_err_set(err, -ENOMEM, "no memory");
}

static int refuse_no_more(void **state)
{
	thaw_refused = 0;
	return 0;
}

static void hours_in_which_it_cannot_go_on_are_few_tries(void **state)
{
	struct kit kit;
	uint64_t victim, urgent, end_ns;

	kit_open_preempting(&kit);
	freeze(&kit, &victim, &urgent);
	thaw_refused = victim;
	thaws = 0;
	kit_ended(&kit, urgent, TAKT_END_EXITED, 0);
	kit_settle(&kit);
	kit_clean(&kit, ALL);
	end_ns = kit.boot_ns + 4 * TAKT_NS_PER_S;
	while (kit_turn(&kit, end_ns))
		continue;
	assert_in_range(thaws, 3, 5);
	end_ns = kit.boot_ns + 6 * 3600 * TAKT_NS_PER_S;
	while (kit_turn(&kit, end_ns))
		continue;
	assert_in_range(thaws, 6 * 600, 6 * 720 + 5);
	assert_int_equal(signalled(&kit, victim), SIGSTOP);
	thaw_refused = 0;
	kit_later(&kit, 5 * TAKT_NS_PER_S);
	assert_int_equal(signalled(&kit, victim), SIGCONT);
	kit_close(&kit);
}

static uint64_t learned_ns(struct kit *kit)
{
	uint64_t id = kit_accept(kit, KIT_GPUS, 0);

	return job_of(kit, id)->estimate.ns;
}

static bool is_about_forty_seconds(uint64_t ns)
{
	return ns > 39 * TAKT_NS_PER_S && ns < 41 * TAKT_NS_PER_S;
}

static void end_after(struct kit *kit, uint64_t id, uint64_t ran_ns)
{
	kit->run_ns = ran_ns;
	kit_end_cleanly(kit, id, TAKT_END_EXITED, 0);
	kit_settle(kit);
}

/* Its kind takes forty seconds: a hundred more were another's, which also the store knows. */
static void how_long_it_stood_is_not_how_long_it_runs(void **state)
{
	struct kit kit;
	uint64_t victim, urgent, ran_ns;

	kit_open_preempting(&kit);
	end_after(&kit, run_freezable(&kit), 40 * TAKT_NS_PER_S);
	end_after(&kit, run_freezable(&kit), 40 * TAKT_NS_PER_S);
	freeze(&kit, &victim, &urgent);
	pass(&kit, 100000);
	kit_ended(&kit, urgent, TAKT_END_LOST, 0);
	kit_clean(&kit, ALL);
	kit_settle(&kit);
	ran_ns = job_of(&kit, victim)->row.stood_ns + 40 * TAKT_NS_PER_S;
	assert_true(ran_ns > 140 * TAKT_NS_PER_S);
	end_after(&kit, victim, ran_ns);
	assert_true(is_about_forty_seconds(learned_ns(&kit)));
	kit_restart(&kit);
	kit_settle(&kit);
	assert_true(is_about_forty_seconds(learned_ns(&kit)));
	kit_close(&kit);
}

static void it_tells_its_owner(void **state)
{
	struct kit kit;
	uint64_t victim, urgent;

	kit_open_preempting(&kit);
	freeze(&kit, &victim, &urgent);
	kit_ended(&kit, urgent, TAKT_END_EXITED, 0);
	kit_clean(&kit, ALL);
	kit_settle(&kit);
	kit_ended(&kit, victim, TAKT_END_EXITED, 0);
	kit_settle(&kit);
	assert_string_equal(kit.events, "1 started, 1 frozen, 1 thawed, 1 ended, ");
	kit_close(&kit);
}

static void what_does_not_fit_is_ended(void **state)
{
	static const struct {
		uint32_t gpus, mem_mib;
	} urgent[] = {{KIT_GPUS, 0}, {KIT_GPUS, 60000}, {4, MEM_MIB}};
	struct kit kit;
	uint64_t victim;

	for (size_t i = 0; i < TAKT_ARRAY_LEN(urgent); i++) {
		kit_open_preempting(&kit);
		victim = run_freezable(&kit);
		accept_urgent(&kit, urgent[i].gpus, urgent[i].mem_mib);
		kit_settle(&kit);
		assert_true(kit_was_stopped(&kit, victim));
		kit_close(&kit);
	}
}

static void what_uses_more_than_it_said_is_ended(void **state)
{
	struct kit kit;
	uint64_t victim;

	kit_open_preempting(&kit);
	victim = run_freezable(&kit);
	kit.kept_mib = 60000;
	accept_urgent(&kit, KIT_GPUS, MEM_MIB);
	pass(&kit, 0);
	pass(&kit, 100);
	assert_int_equal(signalled(&kit, victim), SIGCONT);
	assert_true(kit_was_stopped(&kit, victim));
	kit_close(&kit);
}

static void what_does_not_stand_still_is_ended(void **state)
{
	struct kit kit;
	uint64_t victim, urgent;

	open_restless(&kit, &victim, &urgent);
	pass(&kit, 0);
	pass(&kit, 5000);
	assert_false(kit_was_stopped(&kit, victim));
	assert_null(kit_action(&kit, TAKT_ACTION_START, urgent));
	pass(&kit, 6000);
	assert_true(kit_was_stopped(&kit, victim));
	kit_close(&kit);
}

static void without_its_reason_it_goes_on(void **state)
{
	struct kit kit;
	uint64_t victim, urgent;

	open_restless(&kit, &victim, &urgent);
	kit_settle(&kit);
	assert_int_equal(takt_queue_cancel(kit.queue, urgent, TAKT_CAUSE_CANCELLED,
					   (struct takt_wall){9}, NULL),
			 0);
	pass(&kit, 100);
	assert_int_equal(signalled(&kit, victim), SIGCONT);
	assert_int_equal(job_of(&kit, victim)->row.evict, 0);
	kit_close(&kit);
}

static void cancelled_it_is_killed_at_once(void **state)
{
	struct kit kit;
	uint64_t victim, urgent;

	kit_open_preempting(&kit);
	freeze(&kit, &victim, &urgent);
	assert_int_equal(takt_queue_cancel(kit.queue, victim, TAKT_CAUSE_CANCELLED,
					   (struct takt_wall){9}, NULL),
			 0);
	assert_int_equal(signalled(&kit, victim), SIGKILL);
	assert_false(kit_was_stopped(&kit, victim));
	kit_ended(&kit, victim, TAKT_END_SIGNALED, SIGKILL);
	kit_settle(&kit);
	assert_int_equal(kit.last_state, TAKT_JOB_CANCELLED);
	assert_int_equal(job_of(&kit, urgent)->row.state, TAKT_JOB_RUNNING);
	kit_ended(&kit, urgent, TAKT_END_EXITED, 0);
	kit_clean(&kit, ALL);
	kit_settle(&kit);
	kit_accept(&kit, KIT_GPUS, 0);
	kit_settle(&kit);
	assert_non_null(kit_action(&kit, TAKT_ACTION_START, 3));
	kit_close(&kit);
}

static void it_is_run_again_when_it_is_lost(void **state)
{
	struct kit kit;
	struct takt_jobspec spec = freezable(KIT_GPUS);
	uint64_t victim, urgent;

	kit_open_preempting(&kit);
	spec.requeue = true;
	victim = kit_accept_spec(&kit, spec);
	kit_started(&kit, victim);
	kit_settle(&kit);
	urgent = accept_urgent(&kit, KIT_GPUS, MEM_MIB);
	pass(&kit, 0);
	pass(&kit, 100);
	kit_started(&kit, urgent);
	kit_ended(&kit, victim, TAKT_END_LOST, 0);
	kit_settle(&kit);
	assert_int_equal(job_of(&kit, victim)->row.state, TAKT_JOB_WAITING);
	kit_ended(&kit, urgent, TAKT_END_EXITED, 0);
	kit_clean(&kit, ALL);
	kit_settle(&kit);
	assert_int_equal(kit_action(&kit, TAKT_ACTION_START, victim)->attempt, 2);
	kit_close(&kit);
}

/* Both come back, and nobody else gets the GPUs. */
static void a_restart_keeps_both(void **state)
{
	struct kit kit;
	uint64_t victim, urgent, holder;

	kit_open_preempting(&kit);
	freeze(&kit, &victim, &urgent);
	kit_restart(&kit);
	kit_accept(&kit, KIT_GPUS, 9);
	kit_adopted(&kit, victim);
	kit_adopted(&kit, urgent);
	pass(&kit, 100);
	assert_int_equal(job_of(&kit, victim)->evict.step, TAKT_EVICT_STILL);
	assert_int_equal(signalled(&kit, victim), 0);
	takt_queue_gpu(kit.queue, 0, &holder);
	assert_int_equal(holder, urgent);
	assert_null(kit_action(&kit, TAKT_ACTION_START, 3));
	kit_ended(&kit, urgent, TAKT_END_EXITED, 0);
	kit_clean(&kit, ALL);
	assert_int_equal(signalled(&kit, victim), SIGCONT);
	kit_close(&kit);
}

/* The other's end is on disk, and that the frozen one goes on is not. */
static void a_restart_without_the_other_lets_it_go_on(void **state)
{
	struct kit kit;
	uint64_t victim, urgent, holder;

	kit_open_preempting(&kit);
	freeze(&kit, &victim, &urgent);
	kit_ended(&kit, urgent, TAKT_END_EXITED, 0);
	kit_settle(&kit);
	kit_restart(&kit);
	takt_queue_gpu(kit.queue, 0, &holder);
	assert_int_equal(holder, victim);
	kit_adopted(&kit, victim);
	pass(&kit, 100);
	assert_int_equal(signalled(&kit, victim), SIGCONT);
	assert_int_equal(job_of(&kit, victim)->row.evict, 0);
	kit_close(&kit);
}

/* It was told to stand still, and nobody knows whether it does. */
static void a_restart_while_it_is_told_lets_it_go_on(void **state)
{
	struct kit kit;
	uint64_t victim, urgent;

	open_restless(&kit, &victim, &urgent);
	kit_settle(&kit);
	assert_int_equal(signalled(&kit, victim), SIGSTOP);
	kit_restart(&kit);
	kit_adopted(&kit, victim);
	kit_settle(&kit);
	assert_true(was_signalled(&kit, victim, SIGCONT));
	assert_false(job_of(&kit, victim)->evict.taken_over);
	kit_close(&kit);
}

/* It may have been given up and told to go, which is not on disk: its end is not its own fault. */
static void what_may_have_been_told_before_a_restart_runs_again(void **state)
{
	struct kit kit;
	uint64_t victim, urgent;

	open_restless(&kit, &victim, &urgent);
	kit_settle(&kit);
	kit_restart(&kit);
	kit_adopted(&kit, victim);
	kit_settle(&kit);
	assert_true(was_signalled(&kit, victim, SIGCONT));
	kit_ended(&kit, victim, TAKT_END_SIGNALED, SIGKILL);
	kit_settle(&kit);
	assert_int_equal(job_of(&kit, victim)->row.state, TAKT_JOB_WAITING);
	assert_int_equal(job_of(&kit, victim)->row.failures, 0);
	kit_close(&kit);
}

/* The takt between saw no use in its going, and died before it had ended of that. */
static void so_does_what_was_told_before_two_restarts(void **state)
{
	struct kit kit;
	uint64_t victim, urgent;

	open_restless(&kit, &victim, &urgent);
	kit_settle(&kit);
	assert_int_equal(takt_queue_cancel(kit.queue, urgent, TAKT_CAUSE_CANCELLED,
					   (struct takt_wall){9}, NULL),
			 0);
	for (int i = 0; i < 2; i++) {
		kit_restart(&kit);
		kit_adopted(&kit, victim);
		kit_settle(&kit);
		kit_settle(&kit);
		assert_int_equal(job_of(&kit, victim)->evict.step, TAKT_EVICT_NONE);
	}
	kit.ended_count = 0;
	kit_ended(&kit, victim, TAKT_END_SIGNALED, SIGTERM);
	kit_settle(&kit);
	assert_int_equal(kit.ended_count, 0);
	assert_int_equal(job_of(&kit, victim)->row.state, TAKT_JOB_WAITING);
	kit_close(&kit);
}

static void but_only_for_so_long(void **state)
{
	struct kit kit;
	uint64_t victim, urgent;

	open_restless(&kit, &victim, &urgent);
	kit_settle(&kit);
	assert_int_equal(takt_queue_cancel(kit.queue, urgent, TAKT_CAUSE_CANCELLED,
					   (struct takt_wall){9}, NULL),
			 0);
	kit_restart(&kit);
	kit_adopted(&kit, victim);
	kit_settle(&kit);
	kit_later(&kit, 600 * TAKT_NS_PER_S);
	assert_int_equal(job_of(&kit, victim)->row.evict, 0);
	kit_ended(&kit, victim, TAKT_END_SIGNALED, SIGKILL);
	kit_settle(&kit);
	assert_int_equal(kit.last_state, TAKT_JOB_FAILED);
	kit_close(&kit);
}

enum {
	HALF = KIT_GPUS / 2
};

/* Two jobs with half of the GPUs each, and one that is to have all. */
static void open_two(struct kit *kit, uint64_t victims[2], uint64_t *ret_urgent)
{
	kit_open_preempting(kit);
	for (int i = 0; i < 2; i++) {
		victims[i] = kit_accept_spec(kit, freezable(HALF));
		kit_started(kit, victims[i]);
	}
	kit_settle(kit);
	*ret_urgent = accept_urgent(kit, KIT_GPUS, MEM_MIB);
}

static void freeze_two(struct kit *kit, uint64_t victims[2], uint64_t *ret_urgent)
{
	open_two(kit, victims, ret_urgent);
	kit_settle(kit);
	for (int i = 0; i < 2; i++)
		assert_int_equal(signalled(kit, victims[i]), SIGSTOP);
	assert_null(kit_action(kit, TAKT_ACTION_START, *ret_urgent));
	pass(kit, 100);
	for (int i = 0; i < 2; i++)
		assert_int_equal(job_of(kit, victims[i])->evict.step, TAKT_EVICT_STILL);
	assert_int_equal(kit_action(kit, TAKT_ACTION_START, *ret_urgent)->gpu_mask, ALL);
	kit_started(kit, *ret_urgent);
	kit_settle(kit);
}

/* Each has its own again as soon as those are clean. */
static void several_stand_still_for_one(void **state)
{
	struct kit kit;
	uint64_t victims[2], urgent, holder;

	freeze_two(&kit, victims, &urgent);
	kit_ended(&kit, urgent, TAKT_END_EXITED, 0);
	kit_settle(&kit);
	kit_clean(&kit, ALL & ~job_of(&kit, victims[0])->row.gpu_mask);
	kit_settle(&kit);
	assert_int_equal(signalled(&kit, victims[0]), SIGSTOP);
	assert_int_equal(signalled(&kit, victims[1]), SIGCONT);
	kit_clean(&kit, job_of(&kit, victims[0])->row.gpu_mask);
	kit_settle(&kit);
	for (uint32_t gpu = 0; gpu < KIT_GPUS; gpu++) {
		takt_queue_gpu(kit.queue, gpu, &holder);
		assert_int_equal(holder,
				 victims[job_of(&kit, victims[1])->row.gpu_mask >> gpu & 1]);
	}
	for (int i = 0; i < 2; i++) {
		assert_int_equal(signalled(&kit, victims[i]), SIGCONT);
		assert_false(kit_was_stopped(&kit, victims[i]));
		assert_int_equal(job_of(&kit, victims[i])->row.attempt, 1);
	}
	kit_close(&kit);
}

/* Nobody stands still for a room that is not enough. */
static void where_one_does_not_stand_still_none_is_left_frozen(void **state)
{
	struct kit kit;
	uint64_t victims[2], urgent;

	for (int i = 0; i < 2; i++) {
		open_two(&kit, victims, &urgent);
		kit.restless_id = victims[i];
		pass(&kit, 0);
		pass(&kit, 5000);
		assert_null(kit_action(&kit, TAKT_ACTION_START, urgent));
		assert_false(kit_was_stopped(&kit, victims[i]));
		pass(&kit, 6000);
		assert_true(kit_was_stopped(&kit, victims[i]));
		pass(&kit, 100);
		pass(&kit, 100);
		assert_null(kit_action(&kit, TAKT_ACTION_START, urgent));
		assert_true(was_signalled(&kit, victims[1 - i], SIGCONT));
		assert_int_not_equal(signalled(&kit, victims[1 - i]), SIGSTOP);
		for (int j = 0; j < 2; j++) {
			kit_ended(&kit, victims[j], TAKT_END_SIGNALED, SIGTERM);
			kit_settle(&kit);
		}
		kit_clean(&kit, ALL);
		pass(&kit, 100);
		assert_int_equal(kit_action(&kit, TAKT_ACTION_START, urgent)->gpu_mask, ALL);
		kit_close(&kit);
	}
}

static void where_one_may_not_stand_still_all_are_ended(void **state)
{
	struct kit kit;
	struct takt_jobspec spec = freezable(HALF);
	uint64_t victims[2];

	kit_open_preempting(&kit);
	victims[0] = kit_accept_spec(&kit, freezable(HALF));
	spec.freezable = false;
	victims[1] = kit_accept_spec(&kit, spec);
	for (int i = 0; i < 2; i++)
		kit_started(&kit, victims[i]);
	kit_settle(&kit);
	accept_urgent(&kit, KIT_GPUS, MEM_MIB);
	pass(&kit, 0);
	pass(&kit, 100);
	for (int i = 0; i < 2; i++) {
		assert_true(kit_was_stopped(&kit, victims[i]));
		assert_false(was_signalled(&kit, victims[i], SIGSTOP));
	}
	kit_close(&kit);
}

static void when_one_of_several_is_cancelled_first_the_other_goes_on(void **state)
{
	struct kit kit;
	uint64_t victims[2], urgent;

	open_two(&kit, victims, &urgent);
	kit.restless = true;
	kit_settle(&kit);
	assert_int_equal(takt_queue_cancel(kit.queue, victims[0], TAKT_CAUSE_CANCELLED,
					   (struct takt_wall){9}, NULL),
			 0);
	kit.restless = false;
	pass(&kit, 100);
	assert_true(was_signalled(&kit, victims[1], SIGCONT));
	assert_null(kit_action(&kit, TAKT_ACTION_START, urgent));
	kit_close(&kit);
}

static void a_restart_keeps_several(void **state)
{
	struct kit kit;
	uint64_t victims[2], urgent, holder;

	freeze_two(&kit, victims, &urgent);
	kit_restart(&kit);
	kit_accept(&kit, KIT_GPUS, 9);
	for (int i = 0; i < 2; i++)
		kit_adopted(&kit, victims[i]);
	kit_adopted(&kit, urgent);
	pass(&kit, 100);
	for (uint32_t gpu = 0; gpu < KIT_GPUS; gpu++) {
		takt_queue_gpu(kit.queue, gpu, &holder);
		assert_int_equal(holder, urgent);
	}
	for (int i = 0; i < 2; i++) {
		assert_int_equal(job_of(&kit, victims[i])->evict.step, TAKT_EVICT_STILL);
		assert_int_equal(signalled(&kit, victims[i]), 0);
	}
	kit_ended(&kit, urgent, TAKT_END_EXITED, 0);
	kit_clean(&kit, ALL);
	for (int i = 0; i < 2; i++)
		assert_int_equal(signalled(&kit, victims[i]), SIGCONT);
	assert_null(kit_action(&kit, TAKT_ACTION_START, urgent + 1));
	kit_close(&kit);
}

static void what_cannot_be_kept_is_refused(void **state)
{
	struct kit kit;
	struct takt_jobspec spec = freezable(KIT_GPUS);
	struct takt_err err;

	kit_open_preempting(&kit);
	spec.preemptible = false;
	assert_int_equal(
		takt_queue_submit(kit.queue, 1, 1, &spec, (struct takt_wall){9}, NULL, &err),
		-TAKT_E_USAGE);
	assert_non_null(strstr(err.msg, "--preemptible"));
	spec.preemptible = true;
	spec.gpu_mem_mib = 0;
	assert_int_equal(
		takt_queue_submit(kit.queue, 1, 1, &spec, (struct takt_wall){9}, NULL, &err),
		-TAKT_E_USAGE);
	assert_non_null(strstr(err.msg, "--gpu-mem"));
	takt_jobspec_fini(&spec);
	kit_close(&kit);
}

/* What was told before takt died is not told again, and an adopted job has not started anew. */
static void events_are_told_once(void **state)
{
	struct kit kit;
	struct takt_jobspec spec = kit_spec(1);
	uint64_t id;

	kit_open(&kit);
	spec.hook = takt_strdup("true");
	spec.retries = 1;
	id = kit_accept_spec(&kit, spec);
	kit_started(&kit, id);
	kit_settle(&kit);
	kit_restart(&kit);
	kit_adopted(&kit, id);
	kit_settle(&kit);
	kit_ended(&kit, id, TAKT_END_EXITED, 1);
	kit_settle(&kit);
	kit_restart(&kit);
	kit_settle(&kit);
	assert_string_equal(kit.events, "1 started, 1 requeued, ");
	assert_int_equal(
		takt_queue_cancel(kit.queue, id, TAKT_CAUSE_CANCELLED, (struct takt_wall){9}, NULL),
		0);
	kit_settle(&kit);
	kit_restart(&kit);
	kit_settle(&kit);
	assert_string_equal(kit.events, "1 started, 1 requeued, 1 ended, ");
	kit_close(&kit);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_stands_still_and_has_its_gpus_again),
		cmocka_unit_test_teardown(hours_in_which_it_cannot_go_on_are_few_tries,
					  refuse_no_more),
		cmocka_unit_test(how_long_it_stood_is_not_how_long_it_runs),
		cmocka_unit_test(it_tells_its_owner),
		cmocka_unit_test(what_does_not_fit_is_ended),
		cmocka_unit_test(what_uses_more_than_it_said_is_ended),
		cmocka_unit_test(what_does_not_stand_still_is_ended),
		cmocka_unit_test(without_its_reason_it_goes_on),
		cmocka_unit_test(cancelled_it_is_killed_at_once),
		cmocka_unit_test(it_is_run_again_when_it_is_lost),
		cmocka_unit_test(a_restart_keeps_both),
		cmocka_unit_test(several_stand_still_for_one),
		cmocka_unit_test(where_one_does_not_stand_still_none_is_left_frozen),
		cmocka_unit_test(where_one_may_not_stand_still_all_are_ended),
		cmocka_unit_test(when_one_of_several_is_cancelled_first_the_other_goes_on),
		cmocka_unit_test(a_restart_keeps_several),
		cmocka_unit_test(a_restart_without_the_other_lets_it_go_on),
		cmocka_unit_test(a_restart_while_it_is_told_lets_it_go_on),
		cmocka_unit_test(what_may_have_been_told_before_a_restart_runs_again),
		cmocka_unit_test(so_does_what_was_told_before_two_restarts),
		cmocka_unit_test(but_only_for_so_long),
		cmocka_unit_test(what_cannot_be_kept_is_refused),
		cmocka_unit_test(events_are_told_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
