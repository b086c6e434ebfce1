/* SPDX-License-Identifier: Apache-2.0 */
/* The arena: what it hands out is zeroed, aligned, apart from everything else, and bounded. */
#include "seeded.h"

#include <stdalign.h>
#include <stdbool.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/rng.h"

enum {
	PIECES = 200
};

struct piece {
	unsigned char *at;
	size_t size;
	unsigned char mark;
};

static bool all(const unsigned char *at, size_t n, unsigned char byte)
{
	for (size_t i = 0; i < n; i++)
		if (at[i] != byte)
			return false;
	return true;
}

static void fill(struct takt_arena *arena, struct takt_rng *rng, uint64_t seed)
{
	struct piece pieces[PIECES];

	for (int i = 0; i < PIECES; i++) {
		bool large = takt_rng_below(rng, 20) == 0;
		struct piece *piece = &pieces[i];

		piece->size = takt_rng_below(rng, large ? 20000 : 100);
		piece->mark = (unsigned char)i;
		piece->at = takt_arena_alloc(arena, piece->size);
		CHECK_SEED(seed, piece->at && (uintptr_t)piece->at % alignof(max_align_t) == 0);
		CHECK_SEED(seed, all(piece->at, piece->size, 0));
		memset(piece->at, piece->mark, piece->size);
	}
	for (int i = 0; i < PIECES; i++)
		CHECK_SEED(seed, all(pieces[i].at, pieces[i].size, pieces[i].mark));
}

static void pieces_do_not_touch(void **state)
{
	for (uint64_t seed = 0; seed < 10; seed++) {
		struct takt_arena arena = TAKT_ARENA(10 << 20);
		struct takt_rng rng;

		takt_rng_init(&rng, seed);
		fill(&arena, &rng, seed);
		takt_arena_reset(&arena);
		fill(&arena, &rng, seed);
		takt_arena_fini(&arena);
		CHECK_SEED(seed, arena.total == 0);
	}
}

static void limit_holds(void **state)
{
	struct takt_arena arena = TAKT_ARENA(10000);
	int got = 0;

	assert_null(takt_arena_alloc(&arena, 10000)); /* its header does not fit */
	assert_null(takt_arena_alloc(&arena, SIZE_MAX));
	assert_null(takt_arena_array(&arena, SIZE_MAX / 2, 3));
	while (takt_arena_alloc(&arena, 100))
		got++;
	assert_in_range(got, 70, 100);
	assert_true(arena.total <= 10000);
	takt_arena_reset(&arena);
	assert_non_null(takt_arena_alloc(&arena, 100));
	takt_arena_fini(&arena);
}

static void reset_keeps_one_block_for_the_next_round(void **state)
{
	struct takt_arena arena = TAKT_ARENA(100000);
	unsigned long calls;

	for (int i = 0; i < 50; i++)
		assert_non_null(takt_arena_alloc(&arena, 100));
	takt_arena_reset(&arena);
	calls = takt_alloc_count();
	for (int i = 0; i < 50; i++)
		assert_non_null(takt_arena_alloc(&arena, 100));
	assert_int_equal(takt_alloc_count(), calls);
	takt_arena_reset(&arena);
	assert_in_range(arena.total, 5000, 10000);
	takt_arena_fini(&arena);
}

static void copies_text(void **state)
{
	struct takt_arena arena = TAKT_ARENA(10000);
	char text[] = "takt";
	char *copy = takt_arena_strdup(&arena, text);

	text[0] = 'x';
	assert_string_equal(copy, "takt");
	assert_string_equal(takt_arena_strdup(&arena, ""), "");
	takt_arena_fini(&arena);
}

static void survives_no_memory(void **state)
{
	struct takt_arena arena = TAKT_ARENA(100000);

	takt_alloc_fail_nth(1, 0);
	assert_null(takt_arena_alloc(&arena, 10));
	takt_alloc_fail_nth(0, 0);
	assert_non_null(takt_arena_alloc(&arena, 10));
	takt_alloc_fail_nth(1, 0);
	assert_null(takt_arena_alloc(&arena, 5000));
	takt_alloc_fail_nth(0, 0);
	assert_non_null(takt_arena_alloc(&arena, 5000));
	takt_arena_fini(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces_do_not_touch),
		cmocka_unit_test(limit_holds),
		cmocka_unit_test(reset_keeps_one_block_for_the_next_round),
		cmocka_unit_test(copies_text),
		cmocka_unit_test(survives_no_memory),
	};

	return cmocka_run_group_tests_name("arena", tests, NULL, NULL);
}
