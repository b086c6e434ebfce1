/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The choice of GPUs against brute force: every set of every size is scored by a plain double loop
 * and ordered as the header states, which shares nothing with the search.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "sched_kit.h"

static int64_t sum_of(const struct machine *machine, uint64_t mask)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < machine->gpu_count; i++)
		for (uint32_t j = i + 1; j < machine->gpu_count; j++)
			if (mask >> i & 1 && mask >> j & 1)
				sum += machine->pair_score[i * machine->gpu_count + j];
	return sum;
}

/* Whether the list of a's indices is smaller than b's, read index by index. */
static bool list_smaller(uint64_t a, uint64_t b)
{
	for (uint32_t i = 0; i < 64; i++)
		if ((a >> i & 1) != (b >> i & 1))
			return a >> i & 1;
	return false;
}

static bool is_better(const struct machine *machine, uint64_t free_mask, uint64_t a, uint64_t b)
{
	int64_t sum_a = sum_of(machine, a);
	int64_t sum_b = sum_of(machine, b);
	int64_t rest_a = sum_of(machine, free_mask & ~a);
	int64_t rest_b = sum_of(machine, free_mask & ~b);

	if (sum_a != sum_b)
		return sum_a > sum_b;
	return rest_a != rest_b ? rest_a > rest_b : list_smaller(a, b);
}

static uint64_t brute_force(const struct machine *machine, uint64_t free_mask, uint32_t need)
{
	uint64_t best = 0;
	bool found = false;

	for (uint64_t mask = free_mask;; mask = (mask - 1) & free_mask) {
		if ((uint32_t)__builtin_popcountll(mask) == need &&
		    (!found || is_better(machine, free_mask, mask, best))) {
			best = mask;
			found = true;
		}
		if (mask == 0)
			break;
	}
	assert_true(found);
	return best;
}

static void check_against_brute_force(const struct machine *machine, uint64_t free_mask)
{
	uint32_t free_count = (uint32_t)__builtin_popcountll(free_mask);
	uint64_t mask;
	int64_t sum;

	for (uint32_t need = 0; need <= free_count; need++) {
		uint64_t best = brute_force(machine, free_mask, need);

		assert_int_equal(takt_best_set(machine->pair_score, machine->gpu_count, free_mask,
					       need, &mask, &sum),
				 0);
		assert_int_equal(mask, best);
		assert_int_equal(sum, sum_of(machine, best));
	}
	mask = 7;
	sum = 7;
	assert_int_equal(takt_best_set(machine->pair_score, machine->gpu_count, free_mask,
				       free_count + 1, &mask, &sum),
			 -ENOENT);
	assert_int_equal(mask, 7);
	assert_int_equal(sum, 7);
}

/* Every free mask of every machine of up to 8 GPUs, every size: the DGX-1 (V100) and the HGX H100
 * among them. */
static void test_every_set_of_known_machines(void **state)
{
	for (size_t i = 0; i < kit_machine_count; i++) {
		const struct machine *machine = &kit_machines[i];

		if (machine->gpu_count > 8)
			continue;
		for (uint64_t free_mask = 0; free_mask < UINT64_C(1) << machine->gpu_count;
		     free_mask++)
			check_against_brute_force(machine, free_mask);
	}
}

/* Symmetric scores from a handful of values, so that sums tie often. */
static void fill_random(struct takt_rng *rng, int32_t *scores, uint32_t n, uint64_t values)
{
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t j = 0; j <= i; j++)
			scores[i * n + j] = scores[j * n + i] =
				(int32_t)takt_rng_below(rng, values) * 10 - 10;
}

static void test_random_matrices(void **state)
{
	int32_t scores[11 * 11];
	struct takt_rng rng;

	takt_rng_init(&rng, 1);
	for (int round = 0; round < 60; round++) {
		struct machine machine = {"random", 1 + (uint32_t)takt_rng_below(&rng, 11), scores};

		fill_random(&rng, scores, machine.gpu_count, 2 + takt_rng_below(&rng, 20));
		check_against_brute_force(
			&machine, takt_rng_next(&rng) & ((UINT64_C(1) << machine.gpu_count) - 1));
	}
}

static void test_sixteen_gpus_are_exact(void **state)
{
	int32_t scores[16 * 16];
	struct machine machine = {"random", 16, scores};
	struct takt_rng rng;
	uint64_t mask;
	int64_t sum;

	takt_rng_init(&rng, 2);
	fill_random(&rng, scores, 16, 30);
	for (uint32_t need = 3; need <= 13; need += 5) {
		assert_int_equal(takt_best_set(scores, 16, 0xffff, need, &mask, &sum), 0);
		assert_int_equal(mask, brute_force(&machine, 0xffff, need));
	}
}

/* Two boards of `half` GPUs: links of 1,200 inside, of 600 across. */
static void fill_boards(int32_t *scores, uint32_t n, uint32_t board)
{
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t j = 0; j < n; j++)
			scores[i * n + j] = i / board == j / board ? 1200 : 600;
}

static void test_above_the_exact_limit_boards_are_found(void **state)
{
	static int32_t scores[64 * 64];
	uint64_t mask;
	int64_t sum;

	fill_boards(scores, 64, 16);
	/* GPU 0 and 20 busy: the two whole boards are the last two, and what remains is ragged. */
	assert_int_equal(
		takt_best_set(scores, 64, ~(UINT64_C(1) | UINT64_C(1) << 20), 16, &mask, &sum), 0);
	assert_int_equal(mask, UINT64_C(0xffff) << 32);
	assert_int_equal(sum, 1200 * 120);
	/* A job of one GPU takes it from a board that is broken already. */
	assert_int_equal(takt_best_set(scores, 64, ~UINT64_C(0xff), 1, &mask, &sum), 0);
	assert_int_equal(mask, UINT64_C(1) << 8);
}

/* The largest sum of any set of `more` GPUs beside `mask`, by plain recursion. */
static int64_t best_sum(const struct machine *machine, uint64_t mask, uint32_t from, uint32_t more)
{
	int64_t best = INT64_MIN;

	if (more == 0)
		return sum_of(machine, mask);
	for (uint32_t gpu = from; gpu + more <= machine->gpu_count; gpu++) {
		int64_t sum = best_sum(machine, mask | UINT64_C(1) << gpu, gpu + 1, more - 1);

		best = sum > best ? sum : best;
	}
	return best;
}

/* How near the heuristic comes on matrices without any structure, where it has the hardest time:
 * pinned, so that a change for the worse is seen. */
static void test_above_the_exact_limit_is_near_the_optimum(void **state)
{
	enum {
		GPUS = 18,
		ROUNDS = 45
	};
	int32_t scores[GPUS * GPUS];
	struct machine machine = {"random", GPUS, scores};
	struct takt_rng rng;
	int exact = 0;

	takt_rng_init(&rng, 3);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		uint32_t need = 6 + round % 3;
		int64_t best, sum;
		uint64_t mask;

		fill_random(&rng, scores, GPUS, 3 + round);
		best = best_sum(&machine, 0, 0, need);
		assert_int_equal(takt_best_set(scores, GPUS, (1u << GPUS) - 1, need, &mask, &sum),
				 0);
		assert_int_equal(__builtin_popcountll(mask), need);
		assert_int_equal(sum, sum_of(&machine, mask));
		assert_true(sum * 100 >= best * 95);
		exact += sum == best;
	}
	assert_true(exact >= ROUNDS - 1);
}

static void test_bad_arguments(void **state)
{
	const struct machine *machine = kit_machine("hgx-h100");
	uint64_t mask = 7;
	int64_t sum = 7;

	assert_int_equal(takt_best_set(machine->pair_score, 8, 0x100, 1, &mask, &sum), -EINVAL);
	assert_int_equal(takt_best_set(machine->pair_score, 65, 1, 1, &mask, &sum), -EINVAL);
	assert_int_equal(mask, 7);
	assert_int_equal(sum, 7);
}

static void test_link_scores(void **state)
{
	assert_int_equal(takt_link_score(TAKT_LINK_SYS, 0), 10);
	assert_int_equal(takt_link_score(TAKT_LINK_NODE, 0), 20);
	assert_int_equal(takt_link_score(TAKT_LINK_PHB, 0), 30);
	assert_int_equal(takt_link_score(TAKT_LINK_PXB, 0), 40);
	assert_int_equal(takt_link_score(TAKT_LINK_PIX, 2), 250);
	assert_int_equal(takt_link_score(TAKT_LINK_BOARD, 0), 60);
	assert_int_equal(takt_link_score(TAKT_LINK_UNKNOWN, 18), 1800);
	assert_true(takt_link_score(TAKT_LINK_BOARD, UINT32_MAX) > 0);
	assert_string_equal(takt_link_name(TAKT_LINK_PXB), "PXB");
	assert_string_equal(takt_link_name(TAKT_LINK_UNKNOWN), "?");
	assert_string_equal(takt_link_name((enum takt_link)99), "?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_set_of_known_machines),
		cmocka_unit_test(test_random_matrices),
		cmocka_unit_test(test_sixteen_gpus_are_exact),
		cmocka_unit_test(test_above_the_exact_limit_boards_are_found),
		cmocka_unit_test(test_above_the_exact_limit_is_near_the_optimum),
		cmocka_unit_test(test_bad_arguments),
		cmocka_unit_test(test_link_scores),
	};

	return cmocka_run_group_tests_name("linkset", tests, NULL, NULL);
}
