/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queue order policies: each one's formula on cases small enough to work out by hand, and what must
 * hold of all of them on random jobs: the order is total, keys change when next_change_ns says so
 * and not before, and no two jobs may push each other out.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "sched/order.h"

#define S UINT64_C(1000000000)

static struct takt_order_config defaults(void)
{
	struct takt_order_config config = {0};

	assert_int_equal(takt_order_config_check(&config, NULL), 0);
	return config;
}

/* A job of whole GPUs that waits since it was submitted at second 0. */
static struct takt_order_job waiting(uint64_t seq, uint32_t gpus)
{
	return (struct takt_order_job){.id = seq,
				       .submit_seq = seq,
				       .gpu_milli = gpus * UINT64_C(1000),
				       .preemptible = true};
}

static struct takt_order_job running(uint64_t seq, uint32_t gpus, uint64_t since_s)
{
	struct takt_order_job job = waiting(seq, gpus);

	job.running = true;
	job.since_ns = since_s * S;
	job.waited_ns = job.since_ns;
	return job;
}

/* Rises, falls, stays. */
static const struct takt_order_outlook outlooks[] = {
	{.steps = 3, .age_s = {0, 1000, 8000}, .rank_s = {50, 9000, 90000}},
	{.steps = 3, .age_s = {0, 1000, 8000}, .rank_s = {8000, 70, 6}},
	{.steps = 2, .age_s = {0, 1000}, .rank_s = {600, 600}},
};

/* Negative if a goes before b. */
static int order_at(const struct takt_order *order, const struct takt_order_config *config,
		    const struct takt_order_job *a, const struct takt_order_job *b, uint64_t now_ns)
{
	struct takt_order_key key_a, key_b;

	takt_order_key(order, config, a, now_ns, &key_a);
	takt_order_key(order, config, b, now_ns, &key_b);
	return takt_order_compare(&key_a, &key_b);
}

static void assert_before(const struct takt_order *order, const struct takt_order_job *a,
			  const struct takt_order_job *b, uint64_t now_ns)
{
	struct takt_order_config config = defaults();

	assert_true(order_at(order, &config, a, b, now_ns) < 0);
	assert_true(order_at(order, &config, b, a, now_ns) > 0);
}

static void test_names(void **state)
{
	for (size_t i = 0; takt_order_all[i]; i++) {
		assert_ptr_equal(takt_order_find(takt_order_all[i]->name), takt_order_all[i]);
		assert_non_null(takt_order_all[i]->summary);
	}
	assert_null(takt_order_find("shortest"));
}

static void test_fifo_ignores_all_but_arrival(void **state)
{
	struct takt_order_job a = waiting(1, 8);
	struct takt_order_job b = waiting(2, 1);

	b.priority = 9;
	b.has_prediction = true;
	assert_before(&takt_order_fifo, &a, &b, S);
}

static void test_priority_then_arrival(void **state)
{
	struct takt_order_job a = waiting(1, 1);
	struct takt_order_job b = waiting(2, 1);
	struct takt_order_job c = waiting(3, 1);

	b.priority = c.priority = 5;
	assert_before(&takt_order_priority, &b, &a, S);
	assert_before(&takt_order_priority, &b, &c, S);
	a.priority = INT32_MIN;
	b.priority = INT32_MAX;
	assert_before(&takt_order_priority, &b, &a, S);
}

static void test_priorities_go_before_any_policy_when_told(void **state)
{
	struct takt_order_config config = defaults();
	struct takt_order_job a = waiting(1, 1);
	struct takt_order_job b = waiting(2, 1);

	b.priority = 1;
	assert_true(order_at(&takt_order_fifo, &config, &a, &b, S) < 0);
	config.by_priority = true;
	assert_true(order_at(&takt_order_fifo, &config, &a, &b, S) > 0);
}

static void test_round_robin_takes_first_jobs_first(void **state)
{
	struct takt_order_job second_of_one = waiting(2, 1);
	struct takt_order_job first_of_other = waiting(9, 1);

	second_of_one.tenant_ahead = 1;
	assert_before(&takt_order_round_robin, &first_of_other, &second_of_one, S);
}

static void test_qssf_weighs_time_by_gpus(void **state)
{
	struct takt_order_job wide = waiting(1, 8);
	struct takt_order_job narrow = waiting(2, 1);

	wide.has_prediction = narrow.has_prediction = true;
	wide.predicted_ns = 100 * S;
	narrow.predicted_ns = 799 * S;
	assert_before(&takt_order_qssf, &narrow, &wide, S);
	narrow.predicted_ns = 801 * S;
	assert_before(&takt_order_qssf, &wide, &narrow, S);
}

static void test_qssf_without_prediction_counts_an_hour(void **state)
{
	struct takt_order_job unknown = waiting(1, 1);
	struct takt_order_job known = waiting(2, 1);

	known.has_prediction = true;
	known.predicted_ns = 3599 * S;
	assert_before(&takt_order_qssf, &known, &unknown, S);
	known.predicted_ns = 3601 * S;
	assert_before(&takt_order_qssf, &unknown, &known, S);
}

static void test_las_sinks_at_the_limit(void **state)
{
	/* 3,250 GPU-seconds with two GPUs are 1,625 seconds. */
	struct takt_order_config config = defaults();
	struct takt_order_job old = running(1, 2, 0);
	struct takt_order_job fresh = waiting(2, 1);

	assert_before(&takt_order_las, &old, &fresh, 1624 * S);
	assert_before(&takt_order_las, &fresh, &old, 1625 * S);
	assert_int_equal(takt_order_next_change_ns(&takt_order_las, &config, &old, 0), 1625 * S);
	assert_false(takt_order_may_evict(&takt_order_las, &config, &fresh, &old, 1625 * S - 1));
	assert_true(takt_order_may_evict(&takt_order_las, &config, &fresh, &old, 1625 * S));
	assert_false(takt_order_may_evict(&takt_order_las, &config, &old, &fresh, 1625 * S));
}

static void test_las_raises_who_waits_too_long(void **state)
{
	struct takt_order_config config = defaults();
	struct takt_order_job sunk = waiting(1, 1);
	struct takt_order_job fresh = waiting(2, 1);

	sunk.attained_gpu_ms = 4000 * 1000;
	sunk.ran_ns = 4000 * S;
	assert_before(&takt_order_las, &fresh, &sunk, 31999 * S);
	assert_before(&takt_order_las, &sunk, &fresh, 32000 * S);
	assert_int_equal(takt_order_next_change_ns(&takt_order_las, &config, &sunk, S), 32000 * S);
	config.las_promote = UINT32_MAX;
	assert_true(order_at(&takt_order_las, &config, &fresh, &sunk, 99999 * S) < 0);
}

static void test_las_keeps_a_raised_job_up_for_a_while(void **state)
{
	struct takt_order_config config = defaults();
	struct takt_order_job raised = running(1, 1, 32000);
	struct takt_order_job fresh = waiting(2, 1);

	raised.attained_gpu_ms = 4000 * 1000;
	raised.ran_ns = 4000 * S;
	assert_false(takt_order_may_evict(&takt_order_las, &config, &fresh, &raised, 35999 * S));
	assert_true(takt_order_may_evict(&takt_order_las, &config, &fresh, &raised, 36001 * S));
}

static void test_fair_share_goes_by_rank(void **state)
{
	struct takt_order_job a = waiting(1, 1);
	struct takt_order_job b = waiting(2, 1);

	a.tenant_rank = 4;
	b.tenant_rank = 3;
	assert_before(&takt_order_fair_share, &b, &a, S);
}

static void test_edf_puts_deadlines_first(void **state)
{
	struct takt_order_job none = waiting(1, 1);
	struct takt_order_job late = waiting(2, 1);
	struct takt_order_job early = waiting(3, 1);

	late.has_deadline = early.has_deadline = true;
	late.deadline_ns = UINT64_MAX;
	early.deadline_ns = 5 * S;
	assert_before(&takt_order_edf, &early, &late, 6 * S);
	assert_before(&takt_order_edf, &late, &none, 6 * S);
}

static void test_takt_goes_by_what_is_left_to_invest(void **state)
{
	struct takt_order_job fresh = waiting(1, 1), old = running(2, 1, 0);
	struct takt_order_job wide = waiting(3, 8);
	struct takt_order_config config = defaults();

	fresh.outlook = old.outlook = wide.outlook = &outlooks[0];
	/* Old by 1,000 s: 9,000 s are left to invest; by less, as much as in a new one. */
	assert_before(&takt_order_takt, &fresh, &old, 1000 * S);
	assert_before(&takt_order_takt, &fresh, &old, 999 * S);
	assert_before(&takt_order_takt, &fresh, &wide, 0);
	assert_before(&takt_order_takt, &wide, &old, 1000 * S);
	assert_int_equal(takt_order_next_change_ns(&takt_order_takt, &config, &old, S), 1000 * S);
	/* Nearly done by its kind's habits: goes before a new one. */
	fresh.outlook = old.outlook = &outlooks[1];
	assert_before(&takt_order_takt, &old, &fresh, 8000 * S);
}

static void test_takt_counts_what_an_eviction_costs(void **state)
{
	struct takt_order_config config = defaults();
	struct takt_order_job fresh = waiting(1, 1), old = running(2, 1, 0);

	config.evict_ratio_permille = 4000;
	fresh.outlook = old.outlook = &outlooks[0];
	/* (50 s + loss + 60 s) x 4 < 9,000 s: a loss below 2,140 s. */
	assert_false(takt_order_may_evict(&takt_order_takt, &config, &fresh, &old, 999 * S));
	assert_true(takt_order_may_evict(&takt_order_takt, &config, &fresh, &old, 1000 * S));
	assert_true(takt_order_may_evict(&takt_order_takt, &config, &fresh, &old, 2139 * S));
	assert_false(takt_order_may_evict(&takt_order_takt, &config, &fresh, &old, 2140 * S));
	old.has_checkpoint = true;
	old.checkpoint_ns = 1800 * S;
	assert_true(takt_order_may_evict(&takt_order_takt, &config, &fresh, &old, 2140 * S));
	config.evict_ratio_permille = 90000;
	assert_false(takt_order_may_evict(&takt_order_takt, &config, &fresh, &old, 2140 * S));
}

static void test_takt_takes_the_whole_job_where_nothing_is_pushed_out(void **state)
{
	struct takt_order_config config = defaults();
	struct takt_order_job gamble = waiting(1, 1), sure = waiting(2, 1);
	struct takt_order_outlook learned;

	gamble.outlook = &outlooks[0]; /* likely over at once, but long on average */
	sure.outlook = &outlooks[2];
	gamble.has_prediction = sure.has_prediction = true;
	gamble.predicted_ns = 5000 * S;
	sure.predicted_ns = 600 * S;
	assert_true(order_at(&takt_order_takt, &config, &gamble, &sure, S) < 0);
	config.keeps = true;
	assert_true(order_at(&takt_order_takt, &config, &gamble, &sure, S) > 0);
	/* More has been learned since they came. */
	learned = outlooks[2];
	learned.mean_s = 6000;
	sure.outlook = &learned;
	assert_true(order_at(&takt_order_takt, &config, &gamble, &sure, S) < 0);
}

static void test_takt_without_outlook_is_least_attained_service(void **state)
{
	struct takt_order_job fresh = waiting(1, 1), old = waiting(2, 1);

	old.ran_ns = 7199 * S;
	assert_before(&takt_order_takt, &fresh, &old, S);
	fresh.submit_seq = 3;
	assert_before(&takt_order_takt, &old, &fresh, S);
	old.ran_ns = 7200 * S;
	assert_before(&takt_order_takt, &fresh, &old, S);
}

static bool holds(const struct takt_order *order, const struct takt_order_config *config,
		  const struct takt_order_job *job, uint64_t free_milli, uint64_t capacity_milli,
		  uint64_t now_ns)
{
	struct takt_order_load load = {free_milli, capacity_milli, job->gpu_milli};

	return takt_order_holds(order, config, job, &load, now_ns);
}

static void test_takt_keeps_a_part_free_of_long_jobs(void **state)
{
	struct takt_order_config config = defaults();
	struct takt_order_job job = waiting(1, 4);

	config.keeps = true;
	config.hold_permille = 50;
	config.guard_ns = 1000 * S;
	job.has_prediction = true;
	job.predicted_ns = 10 * 3600 * S; /* 40 GPU-hours */
	assert_false(holds(&takt_order_takt, &config, &job, 4000, 100000, S));
	job.predicted_ns += S;
	assert_true(holds(&takt_order_takt, &config, &job, 8999, 100000, S));
	assert_false(holds(&takt_order_takt, &config, &job, 9000, 100000, S));
	/* Wider than all but the kept part; and one that has waited as long as the guard allows. */
	assert_false(holds(&takt_order_takt, &config, &job, 4000, 4100, S));
	assert_false(holds(&takt_order_takt, &config, &job, 4000, 100000, 1000 * S));
	config.keeps = false; /* who can be pushed out need not be held */
	assert_false(holds(&takt_order_takt, &config, &job, 8999, 100000, S));
	assert_false(holds(&takt_order_qssf, &config, &job, 4000, 100000, S));
}

static void test_takt_holds_nobody_where_more_waits_than_there_is(void **state)
{
	struct takt_order_config config = defaults();
	struct takt_order_job job = waiting(1, 4);
	struct takt_order_load load = {8000, 100000, 100000};

	config.keeps = true;
	config.hold_permille = 50;
	job.has_prediction = true;
	job.predicted_ns = 11 * 3600 * S;
	assert_true(takt_order_holds(&takt_order_takt, &config, &job, &load, S));
	load.waiting_milli = 100001;
	assert_false(takt_order_holds(&takt_order_takt, &config, &job, &load, S));
	config.hold_backlog_permille = 1500;
	assert_true(takt_order_holds(&takt_order_takt, &config, &job, &load, S));
	load.waiting_milli = 150001;
	assert_false(takt_order_holds(&takt_order_takt, &config, &job, &load, S));
}

static void test_takt_holds_a_long_job_for_half_of_its_run(void **state)
{
	struct takt_order_config config = defaults();
	struct takt_order_job job = waiting(1, 8);
	uint64_t until_ns;

	config.keeps = true;
	config.hold_permille = 50;
	job.has_prediction = true;
	job.predicted_ns = 40000 * S;
	until_ns = job.since_ns + 20000 * S;
	assert_true(holds(&takt_order_takt, &config, &job, 8999, 100000, until_ns - 1));
	assert_int_equal(takt_order_next_change_ns(&takt_order_takt, &config, &job, until_ns - 1),
			 until_ns);
	assert_false(holds(&takt_order_takt, &config, &job, 8999, 100000, until_ns));
	assert_int_equal(takt_order_next_change_ns(&takt_order_takt, &config, &job, until_ns),
			 TAKT_ORDER_NEVER);
	job.predicted_ns = 10000 * S; /* not long, so never held */
	assert_int_equal(takt_order_next_change_ns(&takt_order_takt, &config, &job, job.since_ns),
			 TAKT_ORDER_NEVER);
}

static void test_guard_lets_nobody_wait_longer(void **state)
{
	struct takt_order_config config = defaults();
	struct takt_order_job big = waiting(1, 8);
	struct takt_order_job small = waiting(2, 1);

	big.has_prediction = small.has_prediction = true;
	big.predicted_ns = 9000 * S;
	config.guard_ns = 100 * S;
	small.submit_ns = small.since_ns = 60 * S;
	assert_true(order_at(&takt_order_qssf, &config, &small, &big, 99 * S) < 0);
	assert_true(order_at(&takt_order_qssf, &config, &big, &small, 100 * S) < 0);
	assert_int_equal(takt_order_next_change_ns(&takt_order_qssf, &config, &big, 0), 100 * S);
	assert_int_equal(takt_order_next_change_ns(&takt_order_qssf, &config, &big, 100 * S),
			 TAKT_ORDER_NEVER);
}

static void test_nobody_evicts_the_protected(void **state)
{
	struct takt_order_config config = defaults();
	struct takt_order_job victim = running(1, 1, 0);
	struct takt_order_job urgent = waiting(2, 1);

	urgent.priority = 1;
	assert_true(takt_order_may_evict(&takt_order_priority, &config, &urgent, &victim, S));
	victim.min_run_ns = 2 * S;
	assert_false(takt_order_may_evict(&takt_order_priority, &config, &urgent, &victim, S));
	assert_true(takt_order_may_evict(&takt_order_priority, &config, &urgent, &victim, 2 * S));
	victim.preemptible = false;
	assert_false(takt_order_may_evict(&takt_order_priority, &config, &urgent, &victim, 2 * S));
	victim.preemptible = true;
	assert_false(takt_order_may_evict(&takt_order_fifo, &config, &urgent, &victim, 2 * S));
}

static void test_loss_counts_from_the_checkpoint(void **state)
{
	struct takt_order_job job = running(1, 4, 100);

	assert_int_equal(takt_order_loss_gpu_ms(&job, 160 * S), 240 * 1000);
	job.has_checkpoint = true;
	job.checkpoint_ns = 50 * S; /* of an earlier attempt */
	assert_int_equal(takt_order_loss_gpu_ms(&job, 160 * S), 240 * 1000);
	job.checkpoint_ns = 150 * S;
	assert_int_equal(takt_order_loss_gpu_ms(&job, 160 * S), 40 * 1000);
	job.running = false;
	assert_int_equal(takt_order_loss_gpu_ms(&job, 160 * S), 0);
}

static void test_huge_numbers_saturate(void **state)
{
	struct takt_order_job job = running(1, 1, 0);

	job.gpu_milli = UINT64_MAX;
	assert_true(takt_order_attained_gpu_ms(&job, UINT64_MAX) == UINT64_MAX);
	job.attained_gpu_ms = UINT64_MAX;
	assert_true(takt_order_attained_gpu_ms(&job, 1) == UINT64_MAX);
	assert_true(takt_order_later(UINT64_MAX - 1, 5) == TAKT_ORDER_NEVER);
}

static void test_config_is_checked(void **state)
{
	struct takt_order_config config = {.las_limits = TAKT_ORDER_MAX_QUEUES};
	struct takt_err err;

	assert_int_equal(takt_order_config_check(&config, &err), -EINVAL);
	assert_string_equal(err.msg, "las limits: 8, at most 7");
	config = (struct takt_order_config){.evict_ratio_permille = 999};
	assert_int_equal(takt_order_config_check(&config, &err), -EINVAL);
	assert_string_equal(err.msg, "evict ratio: 999 permille, at least 1000");
	config = (struct takt_order_config){.hold_permille = 1000};
	assert_int_equal(takt_order_config_check(&config, &err), -EINVAL);
	config = (struct takt_order_config){.las_limits = 2, .las_limit_gpu_ms = {5, 5}};
	assert_int_equal(takt_order_config_check(&config, &err), -EINVAL);
	assert_string_equal(err.msg, "las limits: number 2 is not larger than the one before it");
}

static struct takt_order_job random_job(struct takt_rng *rng, uint64_t seq, uint64_t now_ns)
{
	struct takt_order_job job = waiting(seq, (uint32_t)takt_rng_below(rng, 9));

	job.submit_ns = takt_rng_below(rng, now_ns + 1);
	job.since_ns = takt_rng_range(rng, job.submit_ns, now_ns);
	job.running = takt_rng_below(rng, 2);
	job.priority = (int32_t)takt_rng_below(rng, 3);
	job.tenant_rank = (uint32_t)takt_rng_below(rng, 3);
	job.tenant_ahead = (uint32_t)takt_rng_below(rng, 3);
	if (takt_rng_below(rng, 2)) {
		job.ran_ns = takt_rng_below(rng, 5000 * S);
		job.attained_gpu_ms = takt_order_gpu_ms(job.gpu_milli, job.ran_ns);
	}
	job.waited_ns = takt_rng_below(rng, 20000 * S);
	job.has_prediction = takt_rng_below(rng, 2);
	job.predicted_ns = takt_rng_below(rng, 4) * 3000 * S;
	if (takt_rng_below(rng, 2))
		job.outlook = &outlooks[takt_rng_below(rng, 3)];
	job.has_deadline = takt_rng_below(rng, 2);
	job.deadline_ns = takt_rng_below(rng, 4) * 3000 * S;
	return job;
}

enum {
	JOBS = 24,
	ROUNDS = 200
};

/* Antisymmetric and transitive, and equal only to itself: so sorting gives one result from any
 * order of input. */
static void check_total(const struct takt_order_key *keys)
{
	for (size_t a = 0; a < JOBS; a++)
		for (size_t b = 0; b < JOBS; b++) {
			int ab = takt_order_compare(&keys[a], &keys[b]);

			assert_int_equal(ab == 0, a == b);
			assert_int_equal(ab<0, takt_order_compare(&keys[b], &keys[a])> 0);
			for (size_t c = 0; c < JOBS; c++)
				if (ab < 0 && takt_order_compare(&keys[b], &keys[c]) < 0)
					assert_true(takt_order_compare(&keys[a], &keys[c]) < 0);
		}
}

static void test_order_is_total(void **state)
{
	struct takt_order_config config = defaults();
	struct takt_rng rng;

	config.guard_ns = 15000 * S;
	takt_rng_init(&rng, 1);
	for (size_t i = 0; takt_order_all[i]; i++)
		for (int round = 0; round < 20; round++) {
			struct takt_order_key keys[JOBS];

			config.by_priority = round % 2;
			for (size_t j = 0; j < JOBS; j++) {
				struct takt_order_job job = random_job(&rng, j + 1, 9000 * S);

				takt_order_key(takt_order_all[i], &config, &job, 9000 * S,
					       &keys[j]);
			}
			check_total(keys);
		}
}

/* What the key is for the order. */
static bool is_same_key(const struct takt_order_key *a, const struct takt_order_key *b)
{
	return takt_order_compare(a, b) == 0;
}

static void check_change(const struct takt_order *order, const struct takt_order_config *config,
			 const struct takt_order_job *job, uint64_t now_ns)
{
	uint64_t change_ns = takt_order_next_change_ns(order, config, job, now_ns);
	uint64_t last_ns = change_ns == TAKT_ORDER_NEVER ? 1000000 * S : change_ns - 1;
	struct takt_order_key now, before, after;

	assert_true(change_ns > now_ns);
	takt_order_key(order, config, job, now_ns, &now);
	takt_order_key(order, config, job, last_ns, &before);
	assert_true(is_same_key(&now, &before));
	if (change_ns == TAKT_ORDER_NEVER)
		return;
	takt_order_key(order, config, job, change_ns, &after);
	assert_false(is_same_key(&now, &after));
}

static void test_keys_change_when_they_say(void **state)
{
	struct takt_order_config config = defaults();
	struct takt_rng rng;

	takt_rng_init(&rng, 2);
	config.guard_ns = 15000 * S;
	for (size_t i = 0; takt_order_all[i]; i++)
		for (int round = 0; round < ROUNDS; round++) {
			struct takt_order_job job = random_job(&rng, 1, 9000 * S);

			check_change(takt_order_all[i], &config, &job, 9000 * S);
		}
}

/* With the roles exchanged nobody gets his place back at the same instant. */
static void test_nobody_takes_turns_in_evicting(void **state)
{
	struct takt_order_config config = defaults();
	struct takt_rng rng;

	takt_rng_init(&rng, 3);
	for (size_t i = 0; takt_order_all[i]; i++)
		for (int round = 0; round < ROUNDS; round++) {
			struct takt_order_job a = random_job(&rng, 1, 9000 * S);
			struct takt_order_job b = random_job(&rng, 2, 9000 * S);

			a.running = false;
			b.running = true;
			if (!takt_order_may_evict(takt_order_all[i], &config, &a, &b, 9000 * S))
				continue;
			assert_true(order_at(takt_order_all[i], &config, &a, &b, 9000 * S) < 0);
			assert_true(takt_order_all[i]->preempts);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_fifo_ignores_all_but_arrival),
		cmocka_unit_test(test_priority_then_arrival),
		cmocka_unit_test(test_priorities_go_before_any_policy_when_told),
		cmocka_unit_test(test_round_robin_takes_first_jobs_first),
		cmocka_unit_test(test_qssf_weighs_time_by_gpus),
		cmocka_unit_test(test_qssf_without_prediction_counts_an_hour),
		cmocka_unit_test(test_las_sinks_at_the_limit),
		cmocka_unit_test(test_las_raises_who_waits_too_long),
		cmocka_unit_test(test_las_keeps_a_raised_job_up_for_a_while),
		cmocka_unit_test(test_fair_share_goes_by_rank),
		cmocka_unit_test(test_edf_puts_deadlines_first),
		cmocka_unit_test(test_takt_goes_by_what_is_left_to_invest),
		cmocka_unit_test(test_takt_counts_what_an_eviction_costs),
		cmocka_unit_test(test_takt_takes_the_whole_job_where_nothing_is_pushed_out),
		cmocka_unit_test(test_takt_without_outlook_is_least_attained_service),
		cmocka_unit_test(test_takt_keeps_a_part_free_of_long_jobs),
		cmocka_unit_test(test_takt_holds_nobody_where_more_waits_than_there_is),
		cmocka_unit_test(test_takt_holds_a_long_job_for_half_of_its_run),
		cmocka_unit_test(test_guard_lets_nobody_wait_longer),
		cmocka_unit_test(test_nobody_evicts_the_protected),
		cmocka_unit_test(test_loss_counts_from_the_checkpoint),
		cmocka_unit_test(test_huge_numbers_saturate),
		cmocka_unit_test(test_config_is_checked),
		cmocka_unit_test(test_order_is_total),
		cmocka_unit_test(test_keys_change_when_they_say),
		cmocka_unit_test(test_nobody_takes_turns_in_evicting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
