/* SPDX-License-Identifier: Apache-2.0 */
/* The vector against a plain array. */
#include "seeded.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/rng.h"
#include "base/vec.h"

enum {
	LIMIT = 40
};

struct numbers {
	TAKT_VEC(int) vec;
};

struct model {
	int at[LIMIT];
	size_t len;
};

static void model_insert(struct model *model, size_t i, int value)
{
	memmove(&model->at[i + 1], &model->at[i], (model->len - i) * sizeof(int));
	model->at[i] = value;
	model->len++;
}

static void model_remove(struct model *model, size_t i)
{
	model->len--;
	memmove(&model->at[i], &model->at[i + 1], (model->len - i) * sizeof(int));
}

static void step(struct numbers *numbers, struct model *model, struct takt_rng *rng, uint64_t seed)
{
	int value = (int)takt_rng_below(rng, 1000), rc;
	size_t i = takt_rng_below(rng, model->len + 1);

	switch (takt_rng_below(rng, 5)) {
	case 0:
	case 1:
		rc = takt_vec_push(&numbers->vec, value);
		CHECK_SEED(seed, rc == (model->len < LIMIT ? 0 : -TAKT_E_LIMIT));
		if (rc == 0)
			model_insert(model, model->len, value);
		break;
	case 2:
		rc = takt_vec_insert(&numbers->vec, i, value);
		CHECK_SEED(seed, rc == (model->len < LIMIT ? 0 : -TAKT_E_LIMIT));
		if (rc == 0)
			model_insert(model, i, value);
		break;
	case 3:
		if (i == model->len)
			break;
		takt_vec_remove(&numbers->vec, i);
		model_remove(model, i);
		break;
	default:
		if (i == model->len)
			break;
		takt_vec_remove_swap(&numbers->vec, i);
		model->at[i] = model->at[model->len - 1];
		model->len--;
	}
}

static void matches_an_array(void **state)
{
	for (uint64_t seed = 0; seed < 50; seed++) {
		struct numbers numbers = {.vec = TAKT_VEC_INIT(LIMIT)};
		struct model model = {.len = 0};
		struct takt_rng rng;
		size_t i = 0;

		takt_rng_init(&rng, seed);
		for (int n = 0; n < 300; n++) {
			step(&numbers, &model, &rng, seed);
			CHECK_SEED(seed, numbers.vec.len == model.len);
			CHECK_SEED(seed, model.len == 0 || memcmp(numbers.vec.at, model.at,
								  model.len * sizeof(int)) == 0);
		}
		TAKT_VEC_EACH (it, &numbers.vec)
			CHECK_SEED(seed, *it == model.at[i++]);
		CHECK_SEED(seed, i == model.len);
		takt_vec_fini(&numbers.vec);
		CHECK_SEED(seed, numbers.vec.len == 0 && numbers.vec.max == LIMIT);
	}
}

static void keeps_its_limit(void **state)
{
	struct numbers numbers = {.vec = TAKT_VEC_INIT(LIMIT)};

	assert_int_equal(takt_vec_reserve(&numbers.vec, LIMIT + 1), -TAKT_E_LIMIT);
	assert_int_equal(takt_vec_reserve(&numbers.vec, SIZE_MAX), -TAKT_E_LIMIT);
	assert_int_equal(takt_vec_reserve(&numbers.vec, LIMIT), 0);
	assert_int_equal(numbers.vec.cap, LIMIT);
	assert_int_equal(takt_vec_push(&numbers.vec, 7), 0);
	assert_int_equal(takt_vec_reserve(&numbers.vec, LIMIT), -TAKT_E_LIMIT);
	takt_vec_fini(&numbers.vec);
}

static void what_was_reserved_needs_no_memory(void **state)
{
	struct numbers numbers = {.vec = TAKT_VEC_INIT(LIMIT)};
	unsigned long before;

	assert_int_equal(takt_vec_push(&numbers.vec, 0), 0);
	assert_int_equal(takt_vec_reserve(&numbers.vec, 20), 0);
	assert_in_range(numbers.vec.cap, 21, LIMIT);
	before = takt_alloc_count();
	for (int i = 0; i < 20; i++)
		assert_int_equal(takt_vec_push(&numbers.vec, i), 0);
	assert_int_equal(takt_alloc_count(), before);
	takt_vec_fini(&numbers.vec);
}

static void out_of_memory_changes_nothing(void **state)
{
	struct numbers numbers = {.vec = TAKT_VEC_INIT(LIMIT)};
	int failures = 0;

	for (int i = 0; i < LIMIT; i++) {
		takt_alloc_fail_nth(1, 0);
		if (takt_vec_push(&numbers.vec, i) == -ENOMEM) {
			failures++;
			assert_int_equal(numbers.vec.len, i);
			takt_alloc_fail_nth(0, 0);
			assert_int_equal(takt_vec_push(&numbers.vec, i), 0);
		}
	}
	takt_alloc_fail_nth(0, 0);
	assert_true(failures >= 3);
	for (int i = 0; i < LIMIT; i++)
		assert_int_equal(numbers.vec.at[i], i);
	takt_vec_fini(&numbers.vec);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(matches_an_array),
		cmocka_unit_test(keeps_its_limit),
		cmocka_unit_test(what_was_reserved_needs_no_memory),
		cmocka_unit_test(out_of_memory_changes_nothing),
	};

	return cmocka_run_group_tests_name("vec", tests, NULL, NULL);
}
