/* SPDX-License-Identifier: Apache-2.0 */
/* Shares of GPUs: never more than a whole one, never more memory than it has, whatever ends, stays
 * unclean or comes back from disk. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/rng.h"
#include "queue_kit.h"

static struct takt_jobspec share(uint32_t gpus, uint32_t milli, uint32_t gpu_mem_mib)
{
	struct takt_jobspec spec = kit_spec(gpus);

	spec.gpu_milli = milli;
	spec.gpu_mem_mib = gpu_mem_mib;
	return spec;
}

static uint64_t accept_share(struct kit *kit, uint32_t gpus, uint32_t milli, uint32_t gpu_mem_mib)
{
	return kit_accept_spec(kit, share(gpus, milli, gpu_mem_mib));
}

static uint64_t mask_of(const struct kit *kit, uint64_t id)
{
	const struct takt_action *start = kit_action(kit, TAKT_ACTION_START, id);

	return start ? start->gpu_mask : 0;
}

static void one_gpu(struct kit *kit)
{
	kit_open(kit);
	kit->gpu_count = 1;
	kit_restart(kit);
}

static void run(struct kit *kit, uint64_t id)
{
	kit_started(kit, id);
	kit_settle(kit);
}

static void end(struct kit *kit, uint64_t id)
{
	kit_ended(kit, id, TAKT_END_EXITED, 0);
	kit_settle(kit);
}

/* Of its attempts that have left the GPU, the first. */
static void gone(struct kit *kit, uint32_t gpu, uint64_t id)
{
	size_t count, i = 0;
	const struct takt_queue_holding *all = takt_queue_holdings(kit->queue, &count);
	struct takt_queue_holding holding;

	while (i < count && !(all[i].job_id == id && all[i].gpu == gpu && all[i].left))
		i++;
	assert_true(i < count);
	holding = all[i];
	assert_int_equal(takt_queue_holding_gone(kit->queue, &holding, NULL), 0);
	kit_settle(kit);
}

static void jobs_share_a_gpu_up_to_the_whole(void **state)
{
	struct kit kit;
	uint64_t half, third, other;

	one_gpu(&kit);
	half = accept_share(&kit, 1, 500, 0);
	third = accept_share(&kit, 1, 333, 0);
	other = accept_share(&kit, 1, 250, 0);
	assert_int_equal(mask_of(&kit, half), 1);
	assert_int_equal(mask_of(&kit, third), 1);
	assert_int_equal(mask_of(&kit, other), 0);
	assert_int_equal(takt_queue_find(kit.queue, half)->row.share_milli, 500);
	kit_close(&kit);
}

/* Ledger, not the free memory of the moment: what is promised counts, used or not. */
static void memory_is_reserved(void **state)
{
	struct kit kit;
	uint64_t large, small, next;

	one_gpu(&kit); /* 80 GiB */
	large = accept_share(&kit, 1, 100, 60 * 1024);
	next = accept_share(&kit, 1, 100, 30 * 1024);
	small = accept_share(&kit, 1, 100, 20 * 1024);
	assert_int_equal(mask_of(&kit, large), 1);
	assert_int_equal(mask_of(&kit, next), 0);
	assert_int_equal(takt_queue_find(kit.queue, large)->row.mem_held_mib, 60 * 1024);
	assert_string_equal(takt_why_name(takt_queue_why(kit.queue, next, &(uint32_t){0})->why),
			    "gpu_memory");
	assert_int_equal(mask_of(&kit, small), 0); /* it does not overtake */
	kit_close(&kit);
}

static void a_share_without_a_word_on_memory_has_its_part_of_it(void **state)
{
	struct kit kit;
	uint64_t quarter;

	one_gpu(&kit);
	quarter = accept_share(&kit, 1, 250, 0);
	assert_int_equal(takt_queue_find(kit.queue, quarter)->row.mem_held_mib, 20 * 1024);
	assert_int_equal(mask_of(&kit, accept_share(&kit, 1, 100, 61 * 1024)), 0);
	kit_close(&kit);
}

static void shares_of_several_gpus_are_of_different_ones(void **state)
{
	struct kit kit;
	uint64_t pair;

	kit_open(&kit);
	pair = accept_share(&kit, 2, 250, 0);
	assert_int_equal(__builtin_popcountll(mask_of(&kit, pair)), 2);
	kit_close(&kit);
}

static void whole_and_shared_keep_apart(void **state)
{
	struct kit kit;
	uint64_t whole, part, next;

	kit_open(&kit);
	kit.gpu_count = 2;
	kit_restart(&kit);
	part = accept_share(&kit, 1, 100, 0);
	whole = kit_accept(&kit, 1, 0);
	next = kit_accept(&kit, 1, 0);
	assert_int_equal(mask_of(&kit, part) | mask_of(&kit, whole), 3);
	assert_int_equal(mask_of(&kit, next), 0);
	kit_close(&kit);
}

/* The GPU goes on with others; the share is nobody's until no process of the old job is listed. */
static void a_share_is_handed_on_only_when_its_job_is_gone(void **state)
{
	struct kit kit;
	uint64_t a, b, c, on;
	size_t count;

	one_gpu(&kit);
	a = accept_share(&kit, 1, 600, 0);
	b = accept_share(&kit, 1, 400, 0);
	c = accept_share(&kit, 1, 600, 0);
	run(&kit, a);
	run(&kit, b);
	end(&kit, a);
	assert_int_equal(mask_of(&kit, c), 0);
	assert_int_equal(takt_queue_gpu(kit.queue, 0, &on), TAKT_GPU_RUNNING);
	assert_int_equal(on, b);
	takt_queue_holdings(kit.queue, &count);
	assert_int_equal(count, 2);
	gone(&kit, 0, a);
	assert_int_equal(mask_of(&kit, c), 1);
	kit_close(&kit);
}

static void the_last_share_leaves_a_free_gpu(void **state)
{
	struct kit kit;
	uint64_t part, whole, on;

	one_gpu(&kit);
	part = accept_share(&kit, 1, 600, 0);
	run(&kit, part);
	whole = kit_accept(&kit, 1, 0);
	end(&kit, part);
	assert_int_equal(takt_queue_gpu(kit.queue, 0, &on), TAKT_GPU_DRAINING);
	assert_int_equal(mask_of(&kit, whole), 0);
	gone(&kit, 0, part);
	assert_int_equal(mask_of(&kit, whole), 1);
	kit_close(&kit);
}

/* Run again while the attempt before has not left the GPU. */
static void two_attempts_of_a_job_hold_two_shares(void **state)
{
	struct kit kit;
	uint64_t id;
	size_t count;

	one_gpu(&kit);
	id = accept_share(&kit, 1, 400, 0);
	kit_ended(&kit, id, TAKT_END_NEVER_RAN, 0);
	kit_settle(&kit);
	assert_int_equal(takt_queue_find(kit.queue, id)->row.attempt, 2);
	takt_queue_holdings(kit.queue, &count);
	assert_int_equal(count, 2);
	assert_int_equal(mask_of(&kit, accept_share(&kit, 1, 400, 0)), 0);
	gone(&kit, 0, id);
	takt_queue_holdings(kit.queue, &count);
	assert_int_equal(count, 2);
	kit_close(&kit);
}

static void shares_are_kept_over_a_restart(void **state)
{
	struct kit kit;
	uint64_t a, b, c;

	one_gpu(&kit);
	a = accept_share(&kit, 1, 600, 0);
	b = accept_share(&kit, 1, 300, 30 * 1024);
	run(&kit, a);
	kit_restart(&kit);
	assert_int_equal(kit.claimed_count, 2);
	c = accept_share(&kit, 1, 200, 0);
	assert_int_equal(mask_of(&kit, c), 0);
	kit_started(&kit, a);
	kit_started(&kit, b);
	end(&kit, b);
	gone(&kit, 0, b);
	assert_int_equal(mask_of(&kit, c), 1);
	kit_close(&kit);
}

/* The driver says less of the memory than it did: who has a share keeps it all the same. */
static void shares_are_kept_where_memory_is_not_known_any_more(void **state)
{
	struct kit kit;
	uint64_t a, b;

	one_gpu(&kit);
	a = accept_share(&kit, 1, 500, 40 * 1024);
	b = accept_share(&kit, 1, 400, 0);
	assert_int_equal(mask_of(&kit, b), 1);
	kit.no_gpu_mem = true;
	kit_restart(&kit);
	kit_started(&kit, a);
	kit_started(&kit, b);
	assert_int_equal(mask_of(&kit, accept_share(&kit, 1, 200, 0)), 0);
	end(&kit, a);
	gone(&kit, 0, a);
	assert_int_equal(mask_of(&kit, kit.accepted_id), 1);
	kit_close(&kit);
}

/* As a daemon leaves it that died before a refused end and a called-off start were on disk. */
static void put_attempt(struct kit *kit, uint64_t id, uint32_t milli)
{
	struct takt_job row = {0};
	int64_t ticket;

	assert_int_equal(takt_store_get(kit->store, id, &row, NULL), 0);
	row.state = TAKT_JOB_RUNNING;
	row.attempt = 1;
	row.gpu_mask = 1;
	row.share_milli = milli;
	ticket = takt_store_update(kit->store, &row, 0, NULL);
	assert_true(ticket > 0);
	takt_job_fini(&row);
	kit_settle(kit);
}

static uint64_t accept_held(struct kit *kit, uint32_t milli)
{
	struct takt_jobspec spec = share(1, milli, 0);

	spec.held = true;
	return kit_accept_spec(kit, spec);
}

/* Of three that the store names for one GPU the engine finds the last one alive. */
static void who_is_alive_keeps_his_share_against_the_dead(void **state)
{
	struct kit kit;
	uint64_t dead[2], alive, next;

	one_gpu(&kit);
	dead[0] = accept_held(&kit, 200);
	dead[1] = accept_held(&kit, 700);
	alive = accept_held(&kit, 300);
	put_attempt(&kit, dead[0], 200);
	put_attempt(&kit, dead[1], 700);
	put_attempt(&kit, alive, 300);
	kit_restart(&kit);
	assert_int_equal(kit.claimed_count, 3);
	next = accept_share(&kit, 1, 100, 0);
	kit_started(&kit, alive);
	kit_settle(&kit);
	assert_int_equal(mask_of(&kit, next), 0); /* 100 are left, by the dead one's account */
	end(&kit, dead[0]);
	gone(&kit, 0, dead[0]);
	assert_int_equal(mask_of(&kit, next), 0);
	assert_int_equal(mask_of(&kit, accept_share(&kit, 1, 1, 0)), 0);
	end(&kit, dead[1]);
	gone(&kit, 0, dead[1]);
	assert_int_equal(mask_of(&kit, next), 1);
	assert_int_equal(mask_of(&kit, accept_share(&kit, 1, 700, 0)), 0);
	kit_close(&kit);
}

static void clocks_are_not_locked_on_parts_of_gpus(void **state)
{
	struct takt_jobspec spec = share(1, 0, 0);
	struct takt_err err = {0};
	struct kit kit;

	kit_open(&kit);
	takt_strcpy(spec.mig, sizeof(spec.mig), "1g.10gb");
	spec.clock_ask = TAKT_CLOCK_ASK_LOCK;
	spec.clock_mhz = 1400;
	assert_int_equal(
		takt_queue_submit(kit.queue, 1000, 1000, &spec, (struct takt_wall){5}, NULL, &err),
		-TAKT_E_USAGE);
	assert_non_null(strstr(err.msg, "holds alone"));
	takt_jobspec_fini(&spec);
	kit_close(&kit);
}

/*
 * A day of shares, with deaths of the daemon. The witness is a table of who holds how much of which
 * GPU, kept by the test from what the engine was told.
 */
enum {
	DAY_GPUS = 3,
	DAY_JOBS = 120,
	DAY_HELD = 4096
};

struct witness {
	uint64_t job;
	uint32_t gpu, milli, attempt;
};

struct day {
	struct kit kit;
	struct takt_rng rng;
	uint64_t ids[DAY_JOBS];
	uint32_t milli[DAY_JOBS];
	struct witness held[DAY_HELD];
	size_t held_count, seen;
};

static uint32_t milli_of(const struct day *day, uint64_t id)
{
	for (size_t i = 0; i < DAY_JOBS; i++)
		if (day->ids[i] == id)
			return day->milli[i];
	fail_msg("job %llu is nobody's", (unsigned long long)id);
	return 0;
}

static void take(struct day *day, const struct takt_action *start, uint32_t gpu)
{
	uint32_t sum = milli_of(day, start->job_id);

	for (size_t i = 0; i < day->held_count; i++)
		if (day->held[i].gpu == gpu)
			sum += day->held[i].milli;
	assert_true(sum <= 1000);
	assert_true(day->held_count < DAY_HELD);
	day->held[day->held_count++] =
		(struct witness){start->job_id, gpu, milli_of(day, start->job_id), start->attempt};
}

static void look_at_actions(struct day *day)
{
	for (; day->seen < day->kit.engine.count; day->seen++) {
		const struct takt_action *action = &day->kit.engine.actions[day->seen];

		for (uint32_t gpu = 0; action->kind == TAKT_ACTION_START && gpu < DAY_GPUS; gpu++)
			if (action->gpu_mask >> gpu & 1)
				take(day, action, gpu);
	}
}

/* Its processes go from one GPU, and the driver says so. */
static void leave_gpu(struct day *day, size_t at)
{
	struct witness was = day->held[at];

	day->held[at] = day->held[--day->held_count];
	(void)takt_queue_holding_gone(
		day->kit.queue,
		&(struct takt_queue_holding){
			.job_id = was.job, .attempt = was.attempt, .gpu = was.gpu, .instance = -1},
		NULL);
}

/* Is the attempt over by the engine's word? */
static bool is_over(const struct day *day, const struct witness *held)
{
	const struct takt_queue_job *job = takt_queue_find(day->kit.queue, held->job);

	return !job || job->row.attempt != held->attempt || job->phase == TAKT_PHASE_WAITING ||
	       job->phase == TAKT_PHASE_ENDING;
}

static void leave_some(struct day *day)
{
	for (size_t i = day->held_count; i-- > 0;)
		if (is_over(day, &day->held[i]) && takt_rng_below(&day->rng, 2))
			leave_gpu(day, i);
}

/* What was promised and called off before anybody started on it is clean at once. */
static void clean_unused(struct day *day)
{
	const struct takt_queue_holding *holdings;
	struct takt_queue_holding gone;
	size_t count;

	holdings = takt_queue_holdings(day->kit.queue, &count);
	for (size_t i = 0; i < count; i++) {
		bool used = !holdings[i].left;

		for (size_t k = 0; k < day->held_count; k++)
			used |= day->held[k].gpu == holdings[i].gpu &&
				day->held[k].job == holdings[i].job_id &&
				day->held[k].attempt == holdings[i].attempt;
		if (used)
			continue;
		gone = holdings[i];
		(void)takt_queue_holding_gone(day->kit.queue, &gone, NULL);
		return; /* the list has changed */
	}
}

/* A daemon that comes back knows nothing of unclean GPUs; in its place the watch sees strangers. */
static void die(struct day *day)
{
	while (day->held_count > 0 && is_over(day, &day->held[day->held_count - 1]))
		leave_gpu(day, day->held_count - 1);
	for (size_t i = 0; i < day->held_count; i++)
		if (is_over(day, &day->held[i]))
			return;
	kit_restart(&day->kit);
	day->seen = 0;
}

static void act(struct day *day)
{
	static const enum takt_end ends[] = {TAKT_END_EXITED, TAKT_END_SIGNALED, TAKT_END_NEVER_RAN,
					     TAKT_END_LOST};
	uint64_t id = day->ids[takt_rng_below(&day->rng, DAY_JOBS)];
	const struct takt_queue_job *job = takt_queue_find(day->kit.queue, id);

	if (!job)
		return;
	if (takt_rng_below(&day->rng, 12) == 0)
		(void)takt_queue_cancel(day->kit.queue, id, TAKT_CAUSE_CANCELLED,
					(struct takt_wall){1}, NULL);
	else if (job->phase == TAKT_PHASE_STARTING && takt_rng_below(&day->rng, 2))
		kit_started(&day->kit, id);
	else if (job->phase == TAKT_PHASE_STARTING || job->phase == TAKT_PHASE_RUNNING)
		kit_ended(&day->kit, id, ends[takt_rng_below(&day->rng, TAKT_ARRAY_LEN(ends))], 0);
}

static void submit_day(struct day *day)
{
	static const uint32_t shares[] = {1000, 100, 250, 300, 500, 600, 700, 990};

	for (size_t i = 0; i < DAY_JOBS; i++) {
		uint32_t milli = shares[takt_rng_below(&day->rng, TAKT_ARRAY_LEN(shares))];
		uint32_t gpus = 1 + (uint32_t)takt_rng_below(&day->rng, 2);

		day->milli[i] = milli;
		/* Its number is told beforehand: it may be started before it is accepted here. */
		day->ids[i] = i + 1;
		assert_int_equal(accept_share(&day->kit, gpus, milli % 1000, 0), day->ids[i]);
		look_at_actions(day);
	}
}

static void nothing_is_given_twice(void **state)
{
	struct day *day = takt_zalloc(sizeof(*day));
	size_t steps = 0;
	uint32_t waiting, running;

	kit_open(&day->kit);
	day->kit.gpu_count = DAY_GPUS;
	kit_restart(&day->kit);
	takt_rng_init(&day->rng, 20261122);
	submit_day(day);
	do {
		look_at_actions(day);
		act(day);
		if (steps % 3 == 0)
			leave_some(day);
		if (steps++ % 7 == 0) {
			clean_unused(day);
			kit_settle(&day->kit);
		}
		if (steps % 211 == 0) {
			look_at_actions(day);
			die(day);
		}
		takt_queue_counts(day->kit.queue, &waiting, &running);
		assert_true(steps < 200000);
	} while (waiting + running > 0);
	for (size_t i = 0; i < DAY_JOBS; i++)
		assert_true(takt_job_state_ended(kit_stored(&day->kit, day->ids[i])));
	kit_close(&day->kit);
	takt_free(day);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(jobs_share_a_gpu_up_to_the_whole),
		cmocka_unit_test(memory_is_reserved),
		cmocka_unit_test(a_share_without_a_word_on_memory_has_its_part_of_it),
		cmocka_unit_test(shares_of_several_gpus_are_of_different_ones),
		cmocka_unit_test(whole_and_shared_keep_apart),
		cmocka_unit_test(a_share_is_handed_on_only_when_its_job_is_gone),
		cmocka_unit_test(the_last_share_leaves_a_free_gpu),
		cmocka_unit_test(two_attempts_of_a_job_hold_two_shares),
		cmocka_unit_test(shares_are_kept_over_a_restart),
		cmocka_unit_test(shares_are_kept_where_memory_is_not_known_any_more),
		cmocka_unit_test(who_is_alive_keeps_his_share_against_the_dead),
		cmocka_unit_test(clocks_are_not_locked_on_parts_of_gpus),
		cmocka_unit_test(nothing_is_given_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
