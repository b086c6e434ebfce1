/* SPDX-License-Identifier: Apache-2.0 */
/* The map against a list that is searched from the front. */
#include "seeded.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/rng.h"

enum {
	LIMIT = 60,
	KEYS = 100, /* more keys than fit */
};

/* Keys in order of insertion. A key is a number below KEYS; as text it is "k<number>". */
struct model {
	struct {
		uint64_t key, value;
	} at[LIMIT];
	size_t len;
};

static size_t model_find(const struct model *model, uint64_t key)
{
	size_t i = 0;

	while (i < model->len && model->at[i].key != key)
		i++;
	return i;
}

static int model_put(struct model *model, uint64_t key, uint64_t value)
{
	size_t i = model_find(model, key);

	if (i == LIMIT)
		return -TAKT_E_LIMIT;
	model->at[i].key = key;
	model->at[i].value = value;
	model->len += i == model->len;
	return 0;
}

static bool model_remove(struct model *model, uint64_t key)
{
	size_t i = model_find(model, key);

	if (i == model->len)
		return false;
	model->len--;
	memmove(&model->at[i], &model->at[i + 1], (model->len - i) * sizeof(model->at[0]));
	return true;
}

static const char *text_of(uint64_t key)
{
	static char text[24];

	snprintf(text, sizeof(text), "k%llu", (unsigned long long)key);
	return text;
}

static int put(struct takt_map *map, uint64_t key, uint64_t value)
{
	union takt_map_value boxed = {.u64 = value};

	if (map->kind == TAKT_MAP_KIND_STR)
		return takt_map_str_put(map, text_of(key), boxed);
	return takt_map_u64_put(map, key, boxed);
}

static bool drop(struct takt_map *map, uint64_t key)
{
	if (map->kind == TAKT_MAP_KIND_STR)
		return takt_map_str_remove(map, text_of(key));
	return takt_map_u64_remove(map, key);
}

static union takt_map_value *get(const struct takt_map *map, uint64_t key)
{
	if (map->kind == TAKT_MAP_KIND_STR)
		return takt_map_str_get(map, text_of(key));
	return takt_map_u64_get(map, key);
}

static bool entry_is(const struct takt_map *map, const struct takt_map_entry *entry, uint64_t key)
{
	if (map->kind == TAKT_MAP_KIND_STR)
		return strcmp(entry->str, text_of(key)) == 0;
	return entry->key == key;
}

static void compare(const struct takt_map *map, const struct model *model, uint64_t seed)
{
	size_t i = 0;

	CHECK_SEED(seed, map->len == model->len);
	TAKT_MAP_EACH(entry, map)
	{
		CHECK_SEED(seed, i < model->len && entry_is(map, entry, model->at[i].key));
		CHECK_SEED(seed, entry->value.u64 == model->at[i].value);
		i++;
	}
	CHECK_SEED(seed, i == model->len);
	for (uint64_t key = 0; key < KEYS; key++) {
		union takt_map_value *value = get(map, key);
		size_t at = model_find(model, key);

		CHECK_SEED(seed, (value != NULL) == (at < model->len));
		CHECK_SEED(seed, !value || value->u64 == model->at[at].value);
	}
}

static void run(struct takt_map map, uint64_t seed)
{
	struct model model = {.len = 0};
	struct takt_rng rng;

	takt_rng_init(&rng, seed);
	for (int n = 0; n < 400; n++) {
		uint64_t key = takt_rng_below(&rng, KEYS), value = takt_rng_next(&rng);

		if (takt_rng_below(&rng, 5) < 3)
			CHECK_SEED(seed, put(&map, key, value) == model_put(&model, key, value));
		else
			CHECK_SEED(seed, drop(&map, key) == model_remove(&model, key));
		if (takt_rng_below(&rng, 100) == 0) {
			takt_map_clear(&map);
			model.len = 0;
		}
		compare(&map, &model, seed);
	}
	takt_map_fini(&map);
	assert_int_equal(map.len, 0);
}

static void numbers_match_a_list(void **state)
{
	for (uint64_t seed = 0; seed < 30; seed++)
		run(TAKT_MAP_U64(LIMIT), seed);
}

static void strings_match_a_list(void **state)
{
	for (uint64_t seed = 0; seed < 30; seed++)
		run(TAKT_MAP_STR(LIMIT), seed);
}

static void removing_while_walking_skips_nothing(void **state)
{
	struct takt_map map = TAKT_MAP_U64(LIMIT);
	uint64_t seen = 0;

	for (uint64_t key = 0; key < 40; key++)
		assert_int_equal(put(&map, key, key), 0);
	TAKT_MAP_EACH(entry, &map)
	{
		assert_int_equal(entry->key, seen++);
		if (entry->key % 2)
			assert_true(takt_map_u64_remove(&map, entry->key));
	}
	assert_int_equal(seen, 40);
	assert_int_equal(map.len, 20);
	takt_map_fini(&map);
}

static void sorted_by_key(void **state)
{
	static const char *const words[] = {"b", "", "ab", "a", "B"};
	static const char *const want[] = {"", "B", "a", "ab", "b"};
	struct takt_map map = TAKT_MAP_STR(LIMIT);
	struct takt_map_entry **sorted;

	for (size_t i = 0; i < 5; i++)
		assert_int_equal(takt_map_str_put_ptr(&map, words[i], NULL), 0);
	assert_int_equal(takt_map_sorted(&map, &sorted), 0);
	for (size_t i = 0; i < 5; i++)
		assert_string_equal(sorted[i]->str, want[i]);
	takt_free(sorted);
	takt_map_fini(&map);
}

static void sorted_numbers_ascend(void **state)
{
	struct takt_map map = TAKT_MAP_U64(LIMIT);
	struct takt_map_entry **sorted;

	put(&map, UINT64_MAX, 0);
	put(&map, 0, 0);
	put(&map, 1, 0);
	assert_int_equal(takt_map_sorted(&map, &sorted), 0);
	assert_int_equal(sorted[0]->key, 0);
	assert_int_equal(sorted[1]->key, 1);
	assert_true(sorted[2]->key == UINT64_MAX);
	takt_free(sorted);
	takt_map_fini(&map);
}

static void empty_and_prefix_keys_differ(void **state)
{
	struct takt_map map = TAKT_MAP_STR(LIMIT);
	int a, b;

	assert_null(takt_map_str_ptr(&map, ""));
	assert_int_equal(takt_map_str_put_ptr(&map, "", &a), 0);
	assert_int_equal(takt_map_str_put_ptr(&map, "x", &b), 0);
	assert_ptr_equal(takt_map_str_ptr(&map, ""), &a);
	assert_ptr_equal(takt_map_str_ptr(&map, "x"), &b);
	assert_null(takt_map_str_ptr(&map, "xx"));
	takt_map_fini(&map);
}

/* The number of allocations that had to fail before the put went through. */
static int put_at_last(struct takt_map *map, const struct model *model, uint64_t key)
{
	int rc, failures = 0;

	do {
		takt_alloc_fail_nth((unsigned long)failures + 1, 0);
		rc = put(map, key, key * 3);
		takt_alloc_fail_nth(0, 0);
		if (rc == 0)
			return failures;
		assert_int_equal(rc, -ENOMEM);
		compare(map, model, key);
	} while (++failures < 100);
	fail_msg("key %llu never went in", (unsigned long long)key);
	return failures;
}

static void out_of_memory_changes_nothing(void **state)
{
	struct takt_map map = TAKT_MAP_STR(LIMIT);
	struct model model = {.len = 0};
	int failures = 0;

	for (uint64_t key = 0; key < LIMIT; key++) {
		failures += put_at_last(&map, &model, key);
		model_put(&model, key, key * 3);
		compare(&map, &model, key);
	}
	assert_true(failures > LIMIT);
	takt_map_fini(&map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_match_a_list),
		cmocka_unit_test(strings_match_a_list),
		cmocka_unit_test(removing_while_walking_skips_nothing),
		cmocka_unit_test(sorted_by_key),
		cmocka_unit_test(sorted_numbers_ascend),
		cmocka_unit_test(empty_and_prefix_keys_differ),
		cmocka_unit_test(out_of_memory_changes_nothing),
	};

	return cmocka_run_group_tests_name("map", tests, NULL, NULL);
}
