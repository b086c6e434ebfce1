/* SPDX-License-Identifier: Apache-2.0 */
/* What a description asks for beyond GPUs, and what can be changed about a job that waits: holds,
 * priorities, limits, retries, dependencies. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
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

static enum takt_why why(uint64_t id)
{
	uint32_t ahead;
	const struct takt_plan_wait *wait = takt_queue_why(kit.queue, id, &ahead);

	return wait ? wait->why : TAKT_WHY_NONE;
}

static void held_jobs_wait_and_let_others_pass(void **state)
{
	uint64_t held = accept_held(8), other = kit_accept(&kit, 8, 0);

	assert_false(kit_is_started(&kit, held));
	assert_int_equal(why(held), TAKT_WHY_HELD);
	assert_true(kit_is_started(&kit, other));
	assert_int_equal(hold(held, TAKT_HOLD_NONE), 0);
	kit_started(&kit, other);
	kit_ended(&kit, other, TAKT_END_EXITED, 0);
	kit_clean(&kit, 0xff);
	kit_settle(&kit);
	assert_true(kit_is_started(&kit, held));
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
	assert_true(kit_is_started(&kit, second));
	assert_false(kit_is_started(&kit, first));
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
	assert_int_equal(takt_queue_cancel(kit.queue, waits, TAKT_CAUSE_CANCELLED,
					   (struct takt_wall){9}, NULL),
			 0);
	kit_settle(&kit);
	assert_int_equal(kit_stored(&kit, waits), TAKT_JOB_CANCELLED);
	assert_int_equal(kit.noted_count, 2);
}

static int promise(uint64_t id, uint32_t permille)
{
	const struct takt_queue_change change = {.set_promise = true,
						 .promise = {true, permille, "ladder"}};

	return takt_queue_change(kit.queue, id, &change, &kit, NULL);
}

static void assert_promised(uint64_t id, uint32_t permille, const char *policy)
{
	const struct takt_queue_job *job = takt_queue_find(kit.queue, id);

	assert_int_equal(job->spec.max_slowdown_permille, permille);
	assert_string_equal(job->spec.clock_policy, policy);
}

static void a_promise_changes_of_waiting_and_running_jobs(void **state)
{
	uint64_t runs = kit_accept(&kit, 8, 0), waits = accept_held(1);

	kit_started(&kit, runs);
	assert_int_equal(promise(runs, 50), 0);
	assert_int_equal(promise(waits, 70), 0);
	assert_promised(runs, 50, "ladder");
	kit_settle(&kit);
	assert_int_equal(kit.noted_count, 2);
	kit_restart(&kit);
	assert_promised(runs, 50, "ladder");
	assert_promised(waits, 70, "ladder");
	assert_int_equal(set_priority(waits, -3), 0);
	kit_settle(&kit);
	assert_promised(waits, 70, "ladder");
}

static void who_hangs_up_is_not_answered(void **state)
{
	uint64_t waits = accept_held(1);

	assert_int_equal(hold(waits, TAKT_HOLD_NONE), 0);
	takt_queue_forget_token(kit.queue, &kit);
	kit_settle(&kit);
	assert_int_equal(kit.noted_count, 0);
	assert_true(kit_is_started(&kit, waits));
}

static uint64_t accept_limited(uint64_t limit_ms)
{
	struct takt_jobspec spec = kit_spec(1);

	spec.time_limit_ms = limit_ms;
	return kit_accept_spec(&kit, spec);
}

static void a_job_is_stopped_after_its_time_limit(void **state)
{
	uint64_t id = accept_limited(60000);
	uint64_t next;

	kit_started(&kit, id);
	next = kit_pump_in(&kit, 0);
	assert_in_range(next, kit.boot_ns + 1, kit.boot_ns + 60 * TAKT_NS_PER_S);
	kit_later(&kit, 59 * TAKT_NS_PER_S);
	assert_null(kit_action(&kit, TAKT_ACTION_STOP, id));
	kit_later(&kit, TAKT_NS_PER_S);
	assert_non_null(kit_action(&kit, TAKT_ACTION_STOP, id));
	assert_int_equal(kit_stored(&kit, id), TAKT_JOB_STOPPING);
	kit_ended(&kit, id, TAKT_END_SIGNALED, 15);
	assert_non_null(strstr(takt_queue_find(kit.queue, id)->row.message, "time limit of 1m"));
	kit_settle(&kit);
	assert_int_equal(kit.last_state, TAKT_JOB_FAILED);
}

static void a_time_limit_goes_on_over_a_restart(void **state)
{
	uint64_t id = accept_limited(60000);

	kit_started(&kit, id);
	kit_settle(&kit);
	kit_restart(&kit);
	kit.boot_ns += 50 * TAKT_NS_PER_S;
	kit_started(&kit, id); /* adopted */
	kit_later(&kit, 0);
	assert_null(kit_action(&kit, TAKT_ACTION_STOP, id));
	kit_later(&kit, 10 * TAKT_NS_PER_S);
	assert_non_null(kit_action(&kit, TAKT_ACTION_STOP, id));
	kit_restart(&kit);
	kit_started(&kit, id);
	assert_non_null(kit_action(&kit, TAKT_ACTION_STOP, id));
	kit_ended(&kit, id, TAKT_END_EXITED, 0);
	kit_settle(&kit);
	assert_int_equal(kit_stored(&kit, id), TAKT_JOB_FAILED);
}

static int limit(uint64_t id, uint64_t limit_ms)
{
	const struct takt_queue_change change = {.set_time_limit = true, .time_limit_ms = limit_ms};

	return takt_queue_change(kit.queue, id, &change, &kit, NULL);
}

static void a_time_limit_changes_of_waiting_and_running_jobs(void **state)
{
	uint64_t runs = accept_limited(60000), waits = accept_held(1);

	kit_started(&kit, runs);
	kit_later(&kit, 59 * TAKT_NS_PER_S);
	assert_int_equal(limit(waits, 5000), 0);
	assert_int_equal(limit(runs, 59000), -TAKT_E_CONFLICT); /* it has run as long */
	assert_int_equal(limit(runs, 120000), 0);
	kit_settle(&kit);
	assert_int_equal(kit.noted_count, 2);
	kit_later(&kit, 60 * TAKT_NS_PER_S);
	assert_null(kit_action(&kit, TAKT_ACTION_STOP, runs));
	assert_int_equal(limit(runs, 0), 0);
	kit_settle(&kit);
	kit_later(&kit, 600 * TAKT_NS_PER_S);
	assert_null(kit_action(&kit, TAKT_ACTION_STOP, runs));
	assert_int_equal(limit(runs, 720000), 0);
	kit_settle(&kit);
	kit_later(&kit, 2 * TAKT_NS_PER_S);
	assert_non_null(kit_action(&kit, TAKT_ACTION_STOP, runs));
	assert_int_equal(limit(runs, 0), -TAKT_E_CONFLICT); /* it is being stopped */
	kit_settle(&kit);
	assert_int_equal(takt_queue_find(kit.queue, waits)->spec.time_limit_ms, 5000);
}

static void another_time_limit_is_kept_over_a_restart(void **state)
{
	uint64_t runs = accept_limited(60000), waits = accept_held(1);

	kit_started(&kit, runs);
	kit_settle(&kit);
	assert_int_equal(limit(runs, 90000), 0);
	assert_int_equal(limit(waits, 7000), 0);
	kit_settle(&kit);
	kit_restart(&kit);
	assert_int_equal(takt_queue_find(kit.queue, waits)->spec.time_limit_ms, 7000);
	kit.boot_ns += 70 * TAKT_NS_PER_S;
	kit_started(&kit, runs); /* adopted */
	kit_later(&kit, 0);
	assert_null(kit_action(&kit, TAKT_ACTION_STOP, runs));
	kit_later(&kit, 20 * TAKT_NS_PER_S);
	assert_non_null(kit_action(&kit, TAKT_ACTION_STOP, runs));
}

/* Those behind it are told another time, too. */
static void another_time_limit_is_another_estimate(void **state)
{
	uint64_t runs = accept_limited(60000);

	kit_started(&kit, runs);
	kit_settle(&kit);
	assert_int_equal(takt_queue_find(kit.queue, runs)->estimate.ns, 60 * TAKT_NS_PER_S);
	assert_int_equal(limit(runs, 600000), 0);
	kit_settle(&kit);
	assert_int_equal(takt_queue_find(kit.queue, runs)->estimate.ns, 600 * TAKT_NS_PER_S);
	assert_int_equal(takt_queue_find(kit.queue, runs)->estimate.from, TAKT_ESTIMATE_LIMIT);
}

static void a_stop_that_the_engine_refuses_is_asked_for_again(void **state)
{
	uint64_t id = accept_limited(1000);

	kit_started(&kit, id);
	kit_later(&kit, 0);
	kit.engine.refuse_rc = -EAGAIN;
	kit_later(&kit, TAKT_NS_PER_S);
	kit.engine.refuse_rc = 0;
	assert_null(kit_action(&kit, TAKT_ACTION_STOP, id));
	kit_later(&kit, 3 * TAKT_NS_PER_S);
	assert_non_null(kit_action(&kit, TAKT_ACTION_STOP, id));
}

static void a_job_begins_when_its_time_comes(void **state)
{
	struct takt_jobspec spec = kit_spec(8);
	uint64_t id, other, next;

	spec.begin_ms = 3600 * 1000;
	id = kit_accept_spec(&kit, spec);
	other = kit_accept(&kit, 1, 0);
	assert_int_equal(why(id), TAKT_WHY_EARLIEST);
	assert_true(kit_is_started(&kit, other));
	kit_started(&kit, other);
	kit_end_cleanly(&kit, other, TAKT_END_EXITED, 0);
	kit_settle(&kit);
	next = kit_pump_in(&kit, 0);
	assert_in_range(next, kit.boot_ns + 3500 * TAKT_NS_PER_S, 3600 * TAKT_NS_PER_S);
	kit.boot_ns = next - 1000;
	kit_settle(&kit);
	assert_true(kit_is_started(&kit, id));
}

static void a_job_that_fails_is_tried_again_with_growing_pauses(void **state)
{
	struct takt_jobspec spec = kit_spec(1);
	uint64_t id;

	spec.retries = 2;
	id = kit_accept_spec(&kit, spec);
	for (unsigned failures = 1; failures <= 2; failures++) {
		kit_started(&kit, id);
		kit_end_cleanly(&kit, id, TAKT_END_EXITED, 3);
		kit.engine.count = 0;
		kit_settle(&kit);
		assert_int_equal(takt_queue_find(kit.queue, id)->row.failures, failures);
		assert_int_equal(why(id), TAKT_WHY_EARLIEST);
		kit_later(&kit, (failures * 1000 - 100) * TAKT_NS_PER_MS);
		assert_false(kit_is_started(&kit, id));
		if (failures == 1)
			kit_restart(&kit); /* the pause is kept */
		kit_later(&kit, 200 * TAKT_NS_PER_MS);
		assert_true(kit_is_started(&kit, id));
	}
	assert_int_equal(takt_queue_find(kit.queue, id)->row.restarts, 2);
	kit_started(&kit, id);
	kit_ended(&kit, id, TAKT_END_SIGNALED, 9);
	kit_settle(&kit);
	assert_int_equal(kit.last_state, TAKT_JOB_FAILED);
}

static void nobody_tries_again_what_was_stopped(void **state)
{
	struct takt_jobspec spec = kit_spec(1);
	uint64_t cancelled, limited;

	spec.retries = 5;
	cancelled = kit_accept_spec(&kit, spec);
	spec = kit_spec(1);
	spec.retries = 5;
	spec.time_limit_ms = 1000;
	limited = kit_accept_spec(&kit, spec);
	kit_started(&kit, cancelled);
	kit_started(&kit, limited);
	kit_later(&kit, 0);
	assert_int_equal(takt_queue_cancel(kit.queue, cancelled, TAKT_CAUSE_CANCELLED,
					   (struct takt_wall){9}, NULL),
			 0);
	kit_later(&kit, 2 * TAKT_NS_PER_S);
	kit_ended(&kit, cancelled, TAKT_END_SIGNALED, 15);
	kit_ended(&kit, limited, TAKT_END_SIGNALED, 15);
	kit_settle(&kit);
	assert_int_equal(kit_stored(&kit, cancelled), TAKT_JOB_CANCELLED);
	assert_int_equal(kit_stored(&kit, limited), TAKT_JOB_FAILED);
}

static int submit_after(uint64_t first, bool any, struct takt_err *err)
{
	struct takt_jobspec spec = kit_spec(1);
	int rc;

	spec.after = takt_calloc(1, sizeof(*spec.after));
	spec.after[0] = (struct takt_spec_after){.job = first, .any = any};
	spec.after_count = 1;
	rc = takt_queue_submit(kit.queue, 1000, 1000, &spec, (struct takt_wall){5}, &kit, err);
	takt_jobspec_fini(&spec);
	return rc;
}

static uint64_t accept_after(uint64_t first, bool any)
{
	assert_int_equal(submit_after(first, any, NULL), 0);
	kit_settle(&kit);
	return kit.accepted_id;
}

static void a_job_comes_after_another(void **state)
{
	uint64_t first = kit_accept(&kit, 1, 0), ok = accept_after(first, false),
		 last = accept_after(ok, false);

	assert_int_equal(why(ok), TAKT_WHY_DEPENDENCY);
	kit_restart(&kit);
	kit_started(&kit, first);
	kit_settle(&kit);
	assert_false(kit_is_started(&kit, ok));
	kit_ended(&kit, first, TAKT_END_EXITED, 0);
	kit_settle(&kit);
	assert_true(kit_is_started(&kit, ok));
	assert_false(kit_is_started(&kit, last));
}

static void a_chain_behind_a_failure_ends_as_a_whole(void **state)
{
	uint64_t first = kit_accept(&kit, 1, 0), second = accept_after(first, false),
		 third = accept_after(second, false), any = accept_after(third, true);

	kit_started(&kit, first);
	kit_ended(&kit, first, TAKT_END_EXITED, 1);
	kit_settle(&kit);
	assert_int_equal(kit_stored(&kit, second), TAKT_JOB_CANCELLED);
	assert_int_equal(kit_stored(&kit, third), TAKT_JOB_CANCELLED);
	assert_true(kit_is_started(&kit, any));
	assert_false(kit_is_started(&kit, second) || kit_is_started(&kit, third));
}

static void what_is_over_is_decided_at_submit(void **state)
{
	uint64_t good = kit_accept(&kit, 1, 0), bad = kit_accept(&kit, 1, 0);
	struct takt_err err;

	kit_started(&kit, good);
	kit_started(&kit, bad);
	kit_ended(&kit, good, TAKT_END_EXITED, 0);
	kit_ended(&kit, bad, TAKT_END_EXITED, 1);
	kit_settle(&kit);
	assert_true(kit_is_started(&kit, accept_after(good, false)));
	assert_true(kit_is_started(&kit, accept_after(bad, true)));
	assert_int_equal(submit_after(bad, false, &err), -TAKT_E_IMPOSSIBLE);
	assert_non_null(strstr(err.msg, "failed"));
	assert_int_equal(submit_after(77, false, &err), -TAKT_E_NOT_FOUND);
	assert_non_null(strstr(err.msg, "no job 77"));
}

/* The first one's end is on disk, the daemon dies before the other's is. */
static void a_dependency_that_failed_is_seen_after_a_restart(void **state)
{
	uint64_t first = kit_accept(&kit, 1, 0), second = accept_after(first, false);
	struct takt_job row = {0};

	assert_int_equal(takt_store_get(kit.store, first, &row, NULL), 0);
	row.state = TAKT_JOB_LOST;
	assert_true(takt_store_update(kit.store, &row, 0, NULL) > 0);
	takt_job_fini(&row);
	kit_settle(&kit);
	kit_restart(&kit);
	kit_settle(&kit);
	assert_false(kit_is_started(&kit, second));
	assert_int_equal(kit_stored(&kit, second), TAKT_JOB_CANCELLED);
}

/* The dependency ends while the one behind it is being accepted. */
static void a_job_being_accepted_hears_of_a_failure(void **state)
{
	uint64_t first = kit_accept(&kit, 1, 0);

	kit_started(&kit, first);
	assert_int_equal(submit_after(first, false, NULL), 0);
	kit_ended(&kit, first, TAKT_END_EXITED, 1);
	kit_settle(&kit);
	assert_int_equal(kit_stored(&kit, first + 1), TAKT_JOB_CANCELLED);
	assert_false(kit_is_started(&kit, first + 1));
}

static uint64_t accept_room(uint32_t gpus, uint32_t cpu_milli, uint64_t mem_mib)
{
	struct takt_jobspec spec = kit_spec(gpus);

	spec.cpu_milli = cpu_milli;
	spec.mem_mib = mem_mib;
	return kit_accept_spec(&kit, spec);
}

static void cpus_and_memory_are_counted(void **state)
{
	uint64_t first = accept_room(1, 2500, 100), cpus = accept_room(1, 2000, 0);

	assert_true(kit_is_started(&kit, first));
	assert_false(kit_is_started(&kit, cpus));
	assert_int_equal(why(cpus), TAKT_WHY_CPU);
	kit_started(&kit, first);
	kit_end_cleanly(&kit, first, TAKT_END_EXITED, 0);
	kit_settle(&kit);
	assert_true(kit_is_started(&kit, cpus));
}

static void jobs_without_gpus_wait_for_memory(void **state)
{
	uint64_t first = accept_room(0, 0, 1000), second = accept_room(0, 0, 100);

	assert_true(kit_is_started(&kit, first));
	assert_false(kit_is_started(&kit, second));
	assert_int_equal(why(second), TAKT_WHY_MEMORY);
	kit_started(&kit, first);
	kit_ended(&kit, first, TAKT_END_EXITED, 0);
	kit_settle(&kit);
	assert_true(kit_is_started(&kit, second));
}

static void what_no_machine_has_is_refused(void **state)
{
	struct takt_jobspec specs[] = {kit_spec(1), kit_spec(1), kit_spec(1)};
	static const char *const says[] = {
		"4.001 CPUs, the machine has 4.000", "1025 MiB",
		"1 GPUs with 81921 MiB each, 0 here have that, the largest here has 81920"};

	specs[0].cpu_milli = 4001;
	specs[1].mem_mib = 1025;
	specs[2].gpu_mem_mib = 80 * 1024 + 1;
	for (size_t i = 0; i < TAKT_ARRAY_LEN(specs); i++) {
		struct takt_err err;

		assert_int_equal(takt_queue_submit(kit.queue, 1, 1, &specs[i],
						   (struct takt_wall){5}, &kit, &err),
				 -TAKT_E_IMPOSSIBLE);
		assert_non_null(strstr(err.msg, says[i]));
		takt_jobspec_fini(&specs[i]);
	}
}

/* Where GPUs are unlike, who asks for memory gets one that has it, and waits for no other. */
static void who_asks_for_memory_gets_a_gpu_that_has_it(void **state)
{
	static uint32_t each[KIT_GPUS];
	struct takt_jobspec large = kit_spec(1), pair = kit_spec(2), many = kit_spec(3);
	struct takt_err err;
	uint64_t first, second;

	for (uint32_t gpu = 0; gpu < KIT_GPUS; gpu++)
		each[gpu] = gpu == 3 || gpu == 5 ? 80 * 1024 : 24 * 1024;
	kit.each_mem_mib = each;
	kit_restart(&kit);
	large.gpu_mem_mib = pair.gpu_mem_mib = many.gpu_mem_mib = 40 * 1024;
	first = kit_accept_spec(&kit, large);
	second = kit_accept_spec(&kit, pair);
	assert_true(kit_is_started(&kit, first));
	assert_int_equal(takt_queue_gpu(kit.queue, 3, &first), TAKT_GPU_ASSIGNED);
	assert_false(kit_is_started(&kit, second)); /* although seven GPUs are free */
	assert_int_equal(why(second), TAKT_WHY_DEV_MEMORY);
	assert_int_equal(
		takt_queue_submit(kit.queue, 1, 1, &many, (struct takt_wall){5}, &kit, &err),
		-TAKT_E_IMPOSSIBLE);
	assert_non_null(strstr(err.msg, "3 GPUs with 40960 MiB each, 2 here have that"));
	takt_jobspec_fini(&many);
}

/* A GPU whose memory is asked for is a whole one all the same. */
static void gpus_with_memory_are_whole(void **state)
{
	struct takt_jobspec spec = kit_spec(1), other = kit_spec(8);
	uint64_t first, second;

	spec.gpu_mem_mib = 20 * 1024;
	first = kit_accept_spec(&kit, spec);
	second = kit_accept_spec(&kit, other);
	assert_true(kit_is_started(&kit, first));
	assert_false(kit_is_started(&kit, second));
	assert_int_equal(takt_queue_gpu(kit.queue, 0, &second), TAKT_GPU_ASSIGNED);
}

/* The machine came back with fewer CPUs than its running jobs have: they keep their GPUs. */
static void adopted_jobs_keep_their_gpus_on_a_smaller_machine(void **state)
{
	uint64_t first = accept_room(4, 3000, 900), second, on = 0;

	kit_started(&kit, first);
	kit_settle(&kit);
	kit.cpu_milli = 1000;
	kit_restart(&kit);
	kit_started(&kit, first);
	second = kit_accept(&kit, 8, 0);
	assert_false(kit_is_started(&kit, second));
	for (uint32_t gpu = 0; gpu < 4; gpu++) {
		assert_int_equal(takt_queue_gpu(kit.queue, gpu, &on), TAKT_GPU_RUNNING);
		assert_int_equal(on, first);
	}
}

static struct takt_queue_trial try_job(uint32_t gpus)
{
	struct takt_jobspec spec = kit_spec(gpus);
	struct takt_queue_trial trial;

	assert_int_equal(takt_queue_try(kit.queue, 1000,
					&(struct takt_jobspecs){.count = 1, .jobs = &spec},
					(struct takt_wall){(int64_t)kit.boot_ns}, &trial, NULL),
			 0);
	takt_jobspec_fini(&spec);
	return trial;
}

static void a_trial_says_what_would_be_and_leaves_no_trace(void **state)
{
	struct takt_jobspec spec = kit_spec(6);
	uint64_t id, seq = 0;

	assert_true(try_job(8).starts);
	assert_int_equal(try_job(8).gpu_mask, 0xff);
	spec.time_limit_ms = 60000;
	id = kit_accept_spec(&kit, spec);
	kit_started(&kit, id);
	kit_settle(&kit);
	assert_true(try_job(2).starts);
	assert_false(try_job(3).starts);
	assert_int_equal(try_job(3).why, TAKT_WHY_GPUS);
	assert_in_range(try_job(3).start.at.ns, kit.boot_ns + 59 * TAKT_NS_PER_S,
			kit.boot_ns + 61 * TAKT_NS_PER_S);
	kit_settle(&kit);
	assert_int_equal(takt_queue_gpu(kit.queue, 7, &seq), TAKT_GPU_FREE);
	assert_int_equal(kit_accept(&kit, 2, 0), id + 1);
	assert_true(kit_is_started(&kit, id + 1));
}

static int submit_array(uint32_t first, uint32_t last, uint32_t limit, struct takt_err *err)
{
	struct takt_jobspec spec = kit_spec(1);
	int rc;

	spec.has_array = true;
	spec.array_first = first;
	spec.array_last = last;
	spec.array_limit = limit;
	rc = takt_queue_submit(kit.queue, 1000, 1000, &spec, (struct takt_wall){5}, &kit, err);
	takt_jobspec_fini(&spec);
	return rc;
}

static unsigned started_of(uint64_t first, unsigned count)
{
	unsigned n = 0;

	for (unsigned i = 0; i < count; i++)
		n += kit_is_started(&kit, first + i);
	return n;
}

static void an_array_is_accepted_once_and_runs_so_many_at_a_time(void **state)
{
	const struct takt_queue_job *job;

	assert_int_equal(submit_array(3, 7, 2, NULL), 0);
	assert_int_equal(kit.accepted_count, 0);
	kit_settle(&kit);
	assert_int_equal(kit.accepted_count, 1);
	assert_int_equal(kit.accepted_id, 1);
	assert_int_equal(started_of(1, 5), 2);
	job = takt_queue_find(kit.queue, 5);
	assert_int_equal(job->spec.array_index, 7);
	assert_int_equal(job->spec.array_id, 1);
	assert_int_equal(why(5), TAKT_WHY_ARRAY);
	kit_restart(&kit);
	kit_started(&kit, 1);
	kit_started(&kit, 2);
	kit_settle(&kit);
	assert_int_equal(started_of(3, 3), 0);
	kit_end_cleanly(&kit, 1, TAKT_END_EXITED, 0);
	kit_settle(&kit);
	assert_int_equal(started_of(3, 3), 1);
}

static void an_array_beyond_the_limits_leaves_nothing(void **state)
{
	struct takt_err err;
	uint64_t next;

	kit.max_bytes = 2000;
	kit_restart(&kit);
	assert_int_equal(submit_array(0, 99, 0, &err), -TAKT_E_LIMIT);
	assert_non_null(strstr(err.msg, "over 2000 bytes"));
	kit_settle(&kit);
	assert_int_equal(kit.accepted_count + kit.refused_count, 0);
	next = kit_accept(&kit, 1, 0);
	assert_int_equal(next, 1);
	assert_true(kit_is_started(&kit, next));
}

static void an_array_whose_submitter_hangs_up_runs(void **state)
{
	assert_int_equal(submit_array(0, 2, 0, NULL), 0);
	takt_queue_forget_token(kit.queue, &kit);
	assert_int_equal(
		takt_queue_cancel(kit.queue, 2, TAKT_CAUSE_CANCELLED, (struct takt_wall){9}, NULL),
		0);
	kit_settle(&kit);
	assert_int_equal(kit.accepted_count, 0);
	assert_true(kit_is_started(&kit, 1) && kit_is_started(&kit, 3));
	assert_int_equal(kit_stored(&kit, 2), TAKT_JOB_CANCELLED);
}

/* The queue goes while the store still has the array's jobs to write. */
static void an_array_on_its_way_is_there_after_a_restart(void **state)
{
	assert_int_equal(submit_array(0, 4, 0, NULL), 0);
	kit_restart(&kit);
	kit_settle(&kit);
	assert_int_equal(started_of(1, 5), 5);
}

static void several_jobs_are_taken_together_or_not_at_all(void **state)
{
	struct takt_jobspecs specs = {.count = 3, .jobs = takt_calloc(3, sizeof(*specs.jobs))};
	struct takt_err err;

	for (uint32_t i = 0; i < 3; i++)
		specs.jobs[i] = kit_spec(i == 2 ? 9 : 1);
	assert_int_equal(
		takt_queue_submit_many(kit.queue, 1, 1, &specs, (struct takt_wall){5}, &kit, &err),
		-TAKT_E_IMPOSSIBLE);
	assert_non_null(strstr(err.msg, "jobs[2]: asks for 9 GPUs"));
	kit_settle(&kit);
	assert_null(takt_queue_find(kit.queue, 1));
	specs.jobs[2].gpus = 1;
	assert_int_equal(
		takt_queue_submit_many(kit.queue, 1, 1, &specs, (struct takt_wall){5}, &kit, &err),
		0);
	takt_jobspecs_free(&specs);
	kit_settle(&kit);
	assert_int_equal(kit.accepted_count, 1);
	assert_int_equal(started_of(1, 3), 3);
}

struct listed {
	uint64_t ids[400];
	size_t count;
};

static int note_listed(void *ctx, const struct takt_queue_job *job)
{
	struct listed *listed = ctx;

	listed->ids[listed->count++] = job->row.id;
	return 0;
}

/* A plan speaks of the first ones only; whoever looks further is told of all, in the same order. */
static void a_long_queue_is_explained_to_those_who_look(void **state)
{
	enum {
		WAITING = 300
	};
	struct listed listed = {.count = 0};
	uint64_t running = kit_accept(&kit, 8, 0), ids[WAITING];
	uint32_t ahead = 0;

	for (uint32_t i = 0; i < WAITING; i++)
		ids[i] = kit_accept(&kit, 1, 0);
	kit_settle(&kit);
	assert_int_equal(why(ids[100]), TAKT_WHY_GPUS);
	assert_int_equal(why(ids[WAITING - 1]), TAKT_WHY_NONE);
	assert_int_equal(set_priority(ids[WAITING - 1], 5), 0); /* is first now */
	kit_settle(&kit);
	assert_non_null(takt_queue_why(kit.queue, ids[WAITING - 1], &ahead));
	assert_int_equal(ahead, 0);
	assert_null(takt_queue_why(kit.queue, ids[WAITING - 2], &ahead));
	takt_queue_explain(kit.queue, UINT32_MAX);
	assert_int_equal(takt_queue_why(kit.queue, ids[WAITING - 2], &ahead)->why, TAKT_WHY_GPUS);
	assert_int_equal(ahead, WAITING - 1);
	assert_int_equal(takt_queue_cancel(kit.queue, ids[0], TAKT_CAUSE_CANCELLED,
					   (struct takt_wall){9}, NULL),
			 0);
	kit_settle(&kit);
	assert_int_equal(takt_queue_each(kit.queue, 280, note_listed, &listed), 0);
	assert_int_equal(listed.count, WAITING);
	assert_int_equal(listed.ids[0], running);
	assert_int_equal(listed.ids[1], ids[WAITING - 1]);
	for (uint32_t i = 1; i < WAITING - 1; i++)
		assert_int_equal(listed.ids[i + 1], ids[i]);
	assert_int_equal(why(ids[275]), TAKT_WHY_GPUS);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(held_jobs_wait_and_let_others_pass),
		CASE(holds_and_priorities_outlive_a_restart),
		CASE(the_new_priority_decides_who_goes_first),
		CASE(only_waiting_jobs_change_and_one_change_at_a_time),
		CASE(a_promise_changes_of_waiting_and_running_jobs),
		CASE(who_hangs_up_is_not_answered),
		CASE(a_job_is_stopped_after_its_time_limit),
		CASE(a_time_limit_goes_on_over_a_restart),
		CASE(a_time_limit_changes_of_waiting_and_running_jobs),
		CASE(another_time_limit_is_kept_over_a_restart),
		CASE(another_time_limit_is_another_estimate),
		CASE(a_stop_that_the_engine_refuses_is_asked_for_again),
		CASE(a_job_begins_when_its_time_comes),
		CASE(a_job_that_fails_is_tried_again_with_growing_pauses),
		CASE(nobody_tries_again_what_was_stopped),
		CASE(a_job_comes_after_another),
		CASE(a_chain_behind_a_failure_ends_as_a_whole),
		CASE(what_is_over_is_decided_at_submit),
		CASE(a_dependency_that_failed_is_seen_after_a_restart),
		CASE(a_job_being_accepted_hears_of_a_failure),
		CASE(a_trial_says_what_would_be_and_leaves_no_trace),
		CASE(an_array_is_accepted_once_and_runs_so_many_at_a_time),
		CASE(an_array_beyond_the_limits_leaves_nothing),
		CASE(an_array_whose_submitter_hangs_up_runs),
		CASE(an_array_on_its_way_is_there_after_a_restart),
		CASE(several_jobs_are_taken_together_or_not_at_all),
		CASE(cpus_and_memory_are_counted),
		CASE(jobs_without_gpus_wait_for_memory),
		CASE(what_no_machine_has_is_refused),
		CASE(who_asks_for_memory_gets_a_gpu_that_has_it),
		CASE(gpus_with_memory_are_whole),
		CASE(a_long_queue_is_explained_to_those_who_look),
		CASE(adopted_jobs_keep_their_gpus_on_a_smaller_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
