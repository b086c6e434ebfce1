/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tenants: shares worked out by hand for the rules of tenant.h, and on random trees what must
 * always hold: what is given sums up, usage decays without rising, reclaiming never takes turns,
 * and neither the order of adding nor asking in between changes an answer.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/mem.h"
#include "base/rng.h"
#include "sched/tenant.h"

#define S   UINT64_C(1000000000)
#define DAY (86400 * S)
#define GPU UINT64_C(1000)

static struct takt_tenants *new_tenants(uint32_t usage_k_milli)
{
	struct takt_tenants_config config = {.usage_k_milli = usage_k_milli};
	struct takt_tenants *tenants;

	assert_int_equal(takt_tenants_new(&config, &tenants, NULL), 0);
	return tenants;
}

static struct takt_tenant terms_of(uint32_t id, uint32_t parent, uint32_t weight, uint64_t quota)
{
	return (struct takt_tenant){.id = id,
				    .parent = parent,
				    .weight = weight,
				    .quota_milli = quota * GPU,
				    .may_borrow = true};
}

static void add(struct takt_tenants *tenants, uint32_t id, uint32_t parent, uint32_t weight,
		uint64_t quota)
{
	struct takt_tenant terms = terms_of(id, parent, weight, quota);

	assert_int_equal(takt_tenants_set(tenants, &terms, NULL), 0);
}

static void want(struct takt_tenants *tenants, uint32_t id, int64_t gpus)
{
	assert_int_equal(takt_tenants_want(tenants, id, gpus * 1000), 0);
}

static void take(struct takt_tenants *tenants, uint32_t id, uint64_t gpus, uint64_t now_ns)
{
	assert_int_equal(takt_tenants_take(tenants, id, gpus * GPU, now_ns), 0);
}

static void divide(struct takt_tenants *tenants, uint64_t gpus, uint64_t now_ns)
{
	assert_int_equal(takt_tenants_divide(tenants, gpus * GPU, now_ns), 0);
}

static void assert_deserves(const struct takt_tenants *tenants, uint32_t id, uint64_t milli)
{
	assert_int_equal(takt_tenants_deserved_milli(tenants, id), milli);
}

/* What a tenant of these terms deserves that asks for so many GPUs. */
struct division {
	uint32_t id, parent, weight;
	uint64_t quota;
	int64_t wants;
	uint64_t deserves_milli;
	int32_t priority;
};

static void check_division(uint64_t gpus, const struct division *rows, size_t count)
{
	struct takt_tenants *tenants = new_tenants(0);

	for (size_t i = 0; i < count; i++) {
		struct takt_tenant terms =
			terms_of(rows[i].id, rows[i].parent, rows[i].weight, rows[i].quota);

		terms.priority = rows[i].priority;
		assert_int_equal(takt_tenants_set(tenants, &terms, NULL), 0);
		if (rows[i].wants)
			want(tenants, rows[i].id, rows[i].wants);
	}
	divide(tenants, gpus, 0);
	for (size_t i = 0; i < count; i++)
		assert_deserves(tenants, rows[i].id, rows[i].deserves_milli);
	takt_tenants_free(tenants);
}

static void test_quota_first_then_weight(void **state)
{
	/* 4 for the quota, of the other 8 a quarter and three quarters. */
	static const struct division rows[] = {{1, 0, 1, 4, 100, 6000}, {2, 0, 3, 0, 100, 6000}};

	check_division(12, rows, TAKT_ARRAY_LEN(rows));
}

static void test_nobody_gets_more_than_he_asks_for(void **state)
{
	static const struct division rows[] = {
		{1, 0, 1, 8, 2, 2000}, {2, 0, 1, 0, 3, 3000}, {3, 0, 1, 0, 100, 11000}};

	check_division(16, rows, TAKT_ARRAY_LEN(rows));
}

static void test_thirds_sum_up(void **state)
{
	static const struct division rows[] = {
		{1, 0, 1, 0, 100, 3333}, {2, 0, 1, 0, 100, 3333}, {3, 0, 1, 0, 100, 3334}};

	check_division(10, rows, TAKT_ARRAY_LEN(rows));
}

static void test_quotas_beyond_the_capacity_shrink_alike(void **state)
{
	static const struct division rows[] = {{1, 0, 9, 10, 100, 5000}, {2, 0, 1, 30, 100, 15000}};

	check_division(20, rows, TAKT_ARRAY_LEN(rows));
}

static void test_no_borrowing_no_more_than_quota(void **state)
{
	struct takt_tenants *tenants = new_tenants(0);
	struct takt_tenant shy = terms_of(1, 0, 1, 2);
	uint32_t at = 0;

	shy.may_borrow = false;
	assert_int_equal(takt_tenants_set(tenants, &shy, NULL), 0);
	want(tenants, 1, 100);
	divide(tenants, 16, 0);
	assert_deserves(tenants, 1, 2000);
	assert_int_equal(takt_tenants_check(tenants, 1, 2 * GPU, &at), TAKT_QUOTA_OK);
	assert_int_equal(at, 0);
	assert_int_equal(takt_tenants_check(tenants, 1, 3 * GPU, &at), TAKT_QUOTA_FULL);
	assert_int_equal(at, 1);
	takt_tenants_free(tenants);
}

static void test_larger_priority_is_served_before(void **state)
{
	/* The quota comes first of all. */
	static const struct division rows[] = {{1, 0, 1000, 2, 100, 7000},
					       {2, 0, 1, 0, 9, 9000, .priority = 1}};

	check_division(16, rows, TAKT_ARRAY_LEN(rows));
}

static void test_the_tree_divides_level_by_level(void **state)
{
	static const struct division rows[] = {{1, 0, 1, 0, 0, 8000},
					       {2, 0, 1, 0, 50, 8000},
					       {11, 1, 1, 0, 50, 2000},
					       {12, 1, 1, 0, 50, 2000},
					       {13, 1, 2, 0, 50, 4000}};

	check_division(16, rows, TAKT_ARRAY_LEN(rows));
}

static void test_limits_hold_on_every_level(void **state)
{
	struct takt_tenants *tenants = new_tenants(0);
	struct takt_tenant dept = terms_of(1, 0, 1, 2);
	uint32_t at = 0;

	dept.limit_milli = 8 * GPU;
	assert_int_equal(takt_tenants_set(tenants, &dept, NULL), 0);
	add(tenants, 11, 1, 1, 0);
	add(tenants, 12, 1, 1, 0);
	take(tenants, 11, 6, 0);
	assert_int_equal(takt_tenants_has_milli(tenants, 1), 6000);
	assert_int_equal(takt_tenants_check(tenants, 12, 2 * GPU, &at), TAKT_QUOTA_BORROWS);
	assert_int_equal(at, 12);
	assert_int_equal(takt_tenants_check(tenants, 12, 3 * GPU, &at), TAKT_QUOTA_LIMIT);
	assert_int_equal(at, 1);
	assert_int_equal(takt_tenants_check(tenants, 99, 1, &at), TAKT_QUOTA_UNKNOWN);
	assert_int_equal(takt_tenants_give(tenants, 11, 7 * GPU, S), -EINVAL);
	assert_int_equal(takt_tenants_give(tenants, 1, 1 * GPU, S), -EINVAL);
	assert_int_equal(takt_tenants_want(tenants, 11, -1), -EINVAL);
	assert_int_equal(takt_tenants_give(tenants, 11, 6 * GPU, S), 0);
	assert_int_equal(takt_tenants_has_milli(tenants, 1), 0);
	takt_tenants_free(tenants);
}

static void test_usage_halves_in_a_half_life(void **state)
{
	struct takt_tenants *tenants = new_tenants(0);
	uint64_t after_a_day, later;

	add(tenants, 1, 0, 1, 0);
	take(tenants, 1, 8, 0);
	assert_int_equal(takt_tenants_give(tenants, 1, 8 * GPU, DAY), 0);
	after_a_day = takt_tenants_usage(tenants, 1, DAY);
	/* 8 GPUs for a day, decayed meanwhile by about half of a seventh of a halving. */
	assert_in_range(after_a_day, UINT64_C(8000) * 86400 * 1000 * 94 / 100,
			UINT64_C(8000) * 86400 * 1000 * 96 / 100);
	later = takt_tenants_usage(tenants, 1, 8 * DAY);
	assert_in_range(later, after_a_day / 2 - 1, after_a_day / 2 + 1);
	takt_tenants_free(tenants);
}

static void test_rank_goes_to_who_used_least_for_his_weight(void **state)
{
	struct takt_tenants *tenants = new_tenants(0);

	add(tenants, 1, 0, 1, 0);
	add(tenants, 2, 0, 4, 0);
	add(tenants, 3, 0, 1, 0);
	add(tenants, 21, 2, 1, 0);
	add(tenants, 22, 2, 1, 0);
	take(tenants, 1, 2, 0);
	take(tenants, 21, 4, 0);
	divide(tenants, 16, DAY);
	assert_int_equal(takt_tenants_rank(tenants, 3), 0);
	assert_int_equal(takt_tenants_rank(tenants, 2), 1);
	assert_int_equal(takt_tenants_rank(tenants, 22), 2);
	assert_int_equal(takt_tenants_rank(tenants, 21), 3);
	assert_int_equal(takt_tenants_rank(tenants, 1), 4);
	assert_int_equal(takt_tenants_rank(tenants, 7), UINT32_MAX);
	takt_tenants_free(tenants);
}

static void test_past_usage_lowers_the_share_when_told(void **state)
{
	struct takt_tenants *tenants = new_tenants(1000);

	add(tenants, 1, 0, 1, 0);
	add(tenants, 2, 0, 1, 0);
	take(tenants, 1, 8, 0);
	assert_int_equal(takt_tenants_give(tenants, 1, 8 * GPU, DAY), 0);
	want(tenants, 1, 100);
	want(tenants, 2, 100);
	divide(tenants, 16, DAY);
	/* Parts of weight 1/2 each, of usage 1 and 0: 1/2 - 1/2 and 1/2 + 1/2. */
	assert_deserves(tenants, 1, 0);
	assert_deserves(tenants, 2, 16000);
	divide(tenants, 16, 400 * DAY);
	assert_deserves(tenants, 1, 8000);
	takt_tenants_free(tenants);
}

static void test_reclaim_takes_from_who_has_too_much(void **state)
{
	struct takt_tenants *tenants = new_tenants(0);

	add(tenants, 1, 0, 1, 0);
	add(tenants, 2, 0, 1, 0);
	take(tenants, 1, 12, 0);
	take(tenants, 2, 4, 0);
	want(tenants, 2, 8);
	divide(tenants, 16, 0);
	assert_true(takt_tenants_may_reclaim(tenants, 2, 4 * GPU, 1, 4 * GPU));
	/* A borrowed gang may go as a whole, so that the owner gets what he deserves. */
	assert_true(takt_tenants_may_reclaim(tenants, 2, 4 * GPU, 1, 12 * GPU));
	/* More than he deserves, and the other would then have less. */
	assert_false(takt_tenants_may_reclaim(tenants, 2, 5 * GPU, 1, 8 * GPU));
	assert_false(takt_tenants_may_reclaim(tenants, 1, 1 * GPU, 2, 1 * GPU));
	assert_false(takt_tenants_may_reclaim(tenants, 1, 1 * GPU, 1, 1 * GPU));
	assert_false(takt_tenants_may_reclaim(tenants, 2, 1 * GPU, 9, 1 * GPU));
	takt_tenants_free(tenants);
}

static void test_reclaim_compares_branches(void **state)
{
	struct takt_tenants *tenants = new_tenants(0);

	add(tenants, 1, 0, 1, 0);
	add(tenants, 2, 0, 1, 0);
	add(tenants, 11, 1, 1, 0);
	add(tenants, 12, 1, 1, 0);
	take(tenants, 11, 6, 0);
	take(tenants, 2, 10, 0);
	want(tenants, 12, 8);
	divide(tenants, 16, 0);
	/* 12 has nothing and deserves 4; its department has 6 of 8. */
	assert_true(takt_tenants_may_reclaim(tenants, 12, 2 * GPU, 2, 2 * GPU));
	assert_true(takt_tenants_may_reclaim(tenants, 12, 4 * GPU, 11, 2 * GPU));
	/* A parent and its child are one branch. */
	assert_false(takt_tenants_may_reclaim(tenants, 12, 1 * GPU, 1, 1 * GPU));
	takt_tenants_free(tenants);
}

static void test_terms_are_checked(void **state)
{
	struct takt_tenants *tenants = new_tenants(0);
	struct takt_tenant bad = terms_of(5, 9, 1, 0);
	struct takt_err err;

	assert_int_equal(takt_tenants_set(tenants, &bad, &err), -EINVAL);
	assert_string_equal(err.msg, "tenant 5: there is no tenant 9 above it");
	bad = terms_of(5, 0, 0, 0);
	assert_int_equal(takt_tenants_set(tenants, &bad, &err), -EINVAL);
	assert_string_equal(err.msg, "tenant 5: weight 0 is not within 1..1000000");
	bad = terms_of(0, 0, 1, 0);
	assert_int_equal(takt_tenants_set(tenants, &bad, &err), -EINVAL);
	bad = terms_of(5, 0, 1, 4);
	bad.limit_milli = 3999;
	assert_int_equal(takt_tenants_set(tenants, &bad, &err), -EINVAL);
	for (uint32_t id = 1; id <= TAKT_TENANT_MAX_DEPTH; id++)
		add(tenants, id, id - 1, 1, 0);
	bad = terms_of(100, TAKT_TENANT_MAX_DEPTH, 1, 0);
	assert_int_equal(takt_tenants_set(tenants, &bad, &err), -EINVAL);
	assert_string_equal(err.msg, "tenant 100: more than 8 levels");
	assert_int_equal(takt_tenants_count(tenants), TAKT_TENANT_MAX_DEPTH);
	takt_tenants_free(tenants);
}

static void test_remove_refuses_who_is_needed(void **state)
{
	struct takt_tenants *tenants = new_tenants(0);
	struct takt_err err;

	add(tenants, 1, 0, 1, 0);
	add(tenants, 11, 1, 1, 0);
	take(tenants, 11, 1, 0);
	assert_int_equal(takt_tenants_remove(tenants, 1, &err), -EBUSY);
	assert_int_equal(takt_tenants_remove(tenants, 11, &err), -EBUSY);
	assert_int_equal(takt_tenants_give(tenants, 11, GPU, S), 0);
	assert_int_equal(takt_tenants_remove(tenants, 11, &err), 0);
	assert_int_equal(takt_tenants_remove(tenants, 11, &err), -ENOENT);
	assert_int_equal(takt_tenants_remove(tenants, 1, &err), 0);
	assert_null(takt_tenants_find(tenants, 1));
	takt_tenants_free(tenants);
}

static void test_decay_never_rises(void **state)
{
	uint64_t last = UINT64_MAX;

	for (uint64_t span = 0; span < 40 * DAY; span += 97 * S) {
		uint64_t decay = takt_decay(span, DAY);

		assert_true(decay <= last);
		last = decay;
	}
	assert_int_equal(takt_decay(0, DAY), UINT64_C(1) << 32);
	assert_int_equal(takt_decay(3 * DAY, DAY), UINT64_C(1) << 29);
	assert_int_equal(takt_decay(UINT64_MAX, 1), 0);
	/* 2^(-1/128) and 2^(-0.3), between the steps of the table. */
	assert_in_range(takt_decay(DAY / 128, DAY), UINT64_C(4271771943), UINT64_C(4271859000));
	assert_in_range(takt_decay(3 * DAY / 10, DAY), UINT64_C(3488597000), UINT64_C(3488670000));
}

enum {
	MAX_N = 12
};

static void check_fill(uint64_t amount, const uint64_t *weight, const uint64_t *cap, size_t n)
{
	uint64_t given[MAX_N];
	uint64_t left = takt_water_fill(amount, weight, cap, n, given);
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++) {
		assert_true(given[i] <= cap[i]);
		assert_true(weight[i] || given[i] == 0);
		assert_true(left == 0 || weight[i] == 0 || given[i] == cap[i]);
		sum += given[i];
	}
	assert_int_equal(sum + left, amount);
	/* Max-min: who is below his cap has no smaller part for his weight, but for rounding. */
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < n; j++)
			if (weight[i] && weight[j] && given[i] < cap[i])
				assert_true((given[i] + 1) * weight[j] + weight[i] + weight[j] >=
					    given[j] * weight[i]);
}

static void test_water_fill_sums_up(void **state)
{
	struct takt_rng rng;

	takt_rng_init(&rng, 1);
	for (int round = 0; round < 3000; round++) {
		uint64_t weight[MAX_N], cap[MAX_N];
		size_t n = takt_rng_below(&rng, MAX_N + 1);

		for (size_t i = 0; i < n; i++) {
			weight[i] = takt_rng_below(&rng, 5);
			cap[i] = takt_rng_below(&rng, 3) ? takt_rng_below(&rng, 9000) : 0;
		}
		check_fill(takt_rng_below(&rng, 20000), weight, cap, n);
	}
}

enum {
	TENANTS = 14
};

/* A random tree of TENANTS: parents have smaller ids. */
static void random_terms(struct takt_rng *rng, struct takt_tenant *terms)
{
	for (uint32_t i = 0; i < TENANTS; i++) {
		uint32_t parent = (uint32_t)takt_rng_below(rng, i < 6 ? i + 1 : 7);

		terms[i] = terms_of(i + 1, parent, (uint32_t)takt_rng_range(rng, 1, 5),
				    takt_rng_below(rng, 9));
		terms[i].may_borrow = takt_rng_below(rng, 4);
		terms[i].priority = (int32_t)takt_rng_below(rng, 2);
	}
}

static void random_books(struct takt_rng *rng, struct takt_tenants *tenants)
{
	for (uint32_t id = 1; id <= TENANTS; id++) {
		take(tenants, id, takt_rng_below(rng, 6), takt_rng_below(rng, DAY));
		want(tenants, id, (int64_t)takt_rng_below(rng, 20));
	}
}

static void check_shares(const struct takt_tenants *tenants, uint64_t capacity)
{
	bool seen[TENANTS] = {false};

	for (uint32_t parent = 0; parent <= TENANTS; parent++) {
		uint64_t sum = 0;

		for (size_t i = 0; i < TENANTS; i++)
			if (takt_tenants_at(tenants, i)->parent == parent)
				sum += takt_tenants_deserved_milli(tenants, (uint32_t)i + 1);
		assert_true(sum <=
			    (parent ? takt_tenants_deserved_milli(tenants, parent) : capacity));
	}
	for (uint32_t id = 1; id <= TENANTS; id++) {
		uint32_t rank = takt_tenants_rank(tenants, id);

		assert_true(rank < TENANTS && !seen[rank]);
		seen[rank] = true;
	}
}

/* No two tenants may take the same GPUs from each other, one after the other. */
static void check_no_turns(struct takt_tenants *tenants, uint64_t capacity)
{
	for (uint32_t a = 1; a <= TENANTS; a++)
		for (uint32_t b = 1; b <= TENANTS; b++) {
			uint64_t gpus = 1 + (a * b) % 3;

			if (!takt_tenants_may_reclaim(tenants, a, gpus * GPU, b, gpus * GPU) ||
			    takt_tenants_give(tenants, b, gpus * GPU, DAY) < 0)
				continue;
			want(tenants, b, (int64_t)gpus);
			take(tenants, a, gpus, DAY);
			divide(tenants, capacity, DAY);
			assert_false(
				takt_tenants_may_reclaim(tenants, b, gpus * GPU, a, gpus * GPU));
			return;
		}
}

static void test_random_trees(void **state)
{
	struct takt_rng rng;

	takt_rng_init(&rng, 2);
	for (int round = 0; round < 300; round++) {
		struct takt_tenants *tenants = new_tenants(round % 3 * 500);
		struct takt_tenant terms[TENANTS];
		uint64_t capacity = takt_rng_below(&rng, 120);

		random_terms(&rng, terms);
		for (size_t i = 0; i < TENANTS; i++)
			assert_int_equal(takt_tenants_set(tenants, &terms[i], NULL), 0);
		random_books(&rng, tenants);
		divide(tenants, capacity, DAY);
		check_shares(tenants, capacity * GPU);
		if (round % 3 == 0)
			check_no_turns(tenants, capacity);
		takt_tenants_free(tenants);
	}
}

/* Children in any order, and questions in between: the same answers. */
static void test_order_of_adding_does_not_matter(void **state)
{
	struct takt_rng rng, books;

	takt_rng_init(&rng, 3);
	for (int round = 0; round < 50; round++) {
		struct takt_tenants *up = new_tenants(500), *down = new_tenants(500);

		for (uint32_t id = 1; id <= TENANTS; id++) {
			add(up, id, 0, id % 4 + 1, id % 3);
			add(down, TENANTS + 1 - id, 0, (TENANTS + 1 - id) % 4 + 1,
			    (TENANTS + 1 - id) % 3);
		}
		books = rng;
		random_books(&rng, up);
		random_books(&books, down);
		for (uint64_t now_ns = DAY; now_ns < 9 * DAY; now_ns += DAY)
			(void)takt_tenants_usage(up, 3, now_ns);
		divide(up, 40, 9 * DAY);
		divide(down, 40, 9 * DAY);
		for (uint32_t id = 1; id <= TENANTS; id++) {
			assert_int_equal(takt_tenants_deserved_milli(up, id),
					 takt_tenants_deserved_milli(down, id));
			assert_int_equal(takt_tenants_rank(up, id), takt_tenants_rank(down, id));
			assert_int_equal(takt_tenants_usage(up, id, 9 * DAY),
					 takt_tenants_usage(down, id, 9 * DAY));
		}
		takt_tenants_free(up);
		takt_tenants_free(down);
	}
}

/* Idle: never more than before. Busy: never above what for ever would come to. */
static void test_usage_is_monotone(void **state)
{
	struct takt_tenants *tenants = new_tenants(0);
	uint64_t last = UINT64_MAX;

	add(tenants, 1, 0, 1, 0);
	take(tenants, 1, 3, 0);
	for (uint64_t now_ns = 0, before = 0; now_ns < 100 * DAY; now_ns += DAY / 7) {
		uint64_t usage = takt_tenants_usage(tenants, 1, now_ns);

		assert_true(usage >= before);
		assert_true(usage <= UINT64_C(3000) * 872600 * 1000); /* 7 days over ln 2 */
		before = usage;
	}
	assert_int_equal(takt_tenants_give(tenants, 1, 3 * GPU, 100 * DAY), 0);
	for (uint64_t now_ns = 100 * DAY; now_ns < 200 * DAY; now_ns += DAY / 7) {
		uint64_t usage = takt_tenants_usage(tenants, 1, now_ns);

		assert_true(usage <= last);
		last = usage;
	}
	takt_tenants_free(tenants);
}

static int build_all(void)
{
	struct takt_tenants_config config = {0};
	struct takt_tenant terms = terms_of(1, 0, 1, 2);
	struct takt_tenants *tenants;
	int rc = takt_tenants_new(&config, &tenants, NULL);

	if (rc < 0)
		return rc;
	rc = takt_tenants_set(tenants, &terms, NULL);
	assert_int_equal(takt_tenants_count(tenants), rc == 0);
	if (rc == 0)
		rc = takt_tenants_divide(tenants, 8000, 0);
	takt_tenants_free(tenants);
	return rc;
}

static void test_every_allocation_may_fail(void **state)
{
	unsigned long nth = 0;
	int rc;

	do {
		takt_alloc_fail_nth(++nth, 0);
		rc = build_all();
		takt_alloc_fail_nth(0, 0);
		assert_true(rc == 0 || rc == -ENOMEM);
	} while (rc < 0);
	assert_true(nth > 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_quota_first_then_weight),
		cmocka_unit_test(test_nobody_gets_more_than_he_asks_for),
		cmocka_unit_test(test_thirds_sum_up),
		cmocka_unit_test(test_quotas_beyond_the_capacity_shrink_alike),
		cmocka_unit_test(test_no_borrowing_no_more_than_quota),
		cmocka_unit_test(test_larger_priority_is_served_before),
		cmocka_unit_test(test_the_tree_divides_level_by_level),
		cmocka_unit_test(test_limits_hold_on_every_level),
		cmocka_unit_test(test_usage_halves_in_a_half_life),
		cmocka_unit_test(test_rank_goes_to_who_used_least_for_his_weight),
		cmocka_unit_test(test_past_usage_lowers_the_share_when_told),
		cmocka_unit_test(test_reclaim_takes_from_who_has_too_much),
		cmocka_unit_test(test_reclaim_compares_branches),
		cmocka_unit_test(test_terms_are_checked),
		cmocka_unit_test(test_remove_refuses_who_is_needed),
		cmocka_unit_test(test_decay_never_rises),
		cmocka_unit_test(test_water_fill_sums_up),
		cmocka_unit_test(test_random_trees),
		cmocka_unit_test(test_order_of_adding_does_not_matter),
		cmocka_unit_test(test_usage_is_monotone),
		cmocka_unit_test(test_every_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
