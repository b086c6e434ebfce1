/* SPDX-License-Identifier: Apache-2.0 */
/* The sort against insertion one by one, with many equal keys: order and stability at once. */
#include "seeded.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/sort.h"

enum {
	MOST = 300
};

struct card {
	int key, was;
	char odd;
};

static int by_key(const void *a, const void *b, void *ctx)
{
	const struct card *x = a, *y = b;

	(*(int *)ctx)++;
	return x->key - y->key;
}

static void insert_in_order(struct card *sorted, size_t n, struct card card)
{
	size_t i = n;

	for (; i > 0 && sorted[i - 1].key > card.key; i--)
		sorted[i] = sorted[i - 1];
	sorted[i] = card;
}

static void stable_at_every_length(void **state)
{
	for (uint64_t seed = 0; seed < MOST; seed++) {
		struct card cards[MOST], want[MOST];
		size_t n = seed;
		struct takt_rng rng;
		int compared = 0;

		takt_rng_init(&rng, seed);
		for (size_t i = 0; i < n; i++) {
			cards[i] = (struct card){(int)takt_rng_below(&rng, 20), (int)i, 'x'};
			insert_in_order(want, i, cards[i]);
		}
		CHECK_SEED(seed, takt_sort(cards, n, sizeof(*cards), by_key, &compared) == 0);
		for (size_t i = 0; i < n; i++)
			CHECK_SEED(seed,
				   cards[i].key == want[i].key && cards[i].was == want[i].was);
		CHECK_SEED(seed, compared <= (int)n * 14);
	}
}

static void out_of_memory_changes_nothing(void **state)
{
	struct card cards[3] = {{3, 0, 'x'}, {1, 1, 'x'}, {2, 2, 'x'}};
	int compared = 0;

	takt_alloc_fail_nth(1, 0);
	assert_int_equal(takt_sort(cards, 3, sizeof(*cards), by_key, &compared), -ENOMEM);
	takt_alloc_fail_nth(0, 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(cards[i].was, i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stable_at_every_length),
		cmocka_unit_test(out_of_memory_changes_nothing),
	};

	return cmocka_run_group_tests_name("sort", tests, NULL, NULL);
}
