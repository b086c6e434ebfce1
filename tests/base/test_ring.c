/* SPDX-License-Identifier: Apache-2.0 */
/* The ring against the list of everything ever pushed, read in parts of random size. */
#include "seeded.h"

#include <errno.h>

#include "base/mem.h"
#include "base/ring.h"
#include "base/rng.h"

enum {
	PUSHES = 500
};

struct sample {
	uint64_t value;
	char odd[3]; /* no round size */
};

static uint64_t oldest(uint64_t pushed, size_t cap)
{
	return pushed > cap ? pushed - cap : 0;
}

static void check_contents(const struct takt_ring *ring, const uint64_t *values, uint64_t seed)
{
	uint64_t first = oldest(ring->pushed, ring->cap);
	const struct sample *sample;

	CHECK_SEED(seed, takt_ring_first(ring) == first);
	CHECK_SEED(seed, takt_ring_len(ring) == ring->pushed - first);
	for (uint64_t n = 0; n < ring->pushed; n++) {
		sample = takt_ring_at(ring, n);
		CHECK_SEED(seed, (sample != NULL) == (n >= first));
		CHECK_SEED(seed, !sample || sample->value == values[n]);
	}
	CHECK_SEED(seed, takt_ring_at(ring, ring->pushed) == NULL);
	sample = takt_ring_newest(ring);
	CHECK_SEED(seed, (sample != NULL) == (ring->pushed > 0));
	CHECK_SEED(seed, !sample || sample->value == values[ring->pushed - 1]);
}

/* One read of any size; the reader's own idea of where he is must agree. */
static uint64_t check_read(const struct takt_ring *ring, const uint64_t *values, uint64_t cursor,
			   struct takt_rng *rng, uint64_t seed)
{
	struct sample got[8];
	size_t max = takt_rng_below(rng, 9);
	uint64_t first = oldest(ring->pushed, ring->cap), missed = 99;
	uint64_t from = cursor > first ? cursor : first, at = cursor;
	size_t n = takt_ring_read(ring, &at, got, max, &missed);

	CHECK_SEED(seed, missed == from - cursor);
	CHECK_SEED(seed, n == (ring->pushed - from < max ? ring->pushed - from : max));
	CHECK_SEED(seed, at == from + n);
	for (size_t i = 0; i < n; i++)
		CHECK_SEED(seed, got[i].value == values[from + i]);
	return at;
}

static void matches_everything_pushed(void **state)
{
	for (uint64_t seed = 0; seed < 30; seed++) {
		uint64_t values[PUSHES], cursor = 0;
		struct takt_ring ring;
		struct takt_rng rng;

		takt_rng_init(&rng, seed);
		assert_int_equal(
			takt_ring_init(&ring, takt_rng_range(&rng, 1, 20), sizeof(struct sample)),
			0);
		while (ring.pushed < PUSHES) {
			struct sample sample = {.value = takt_rng_next(&rng)};

			values[ring.pushed] = sample.value;
			takt_ring_push(&ring, &sample);
			if (takt_rng_below(&rng, 3) == 0)
				cursor = check_read(&ring, values, cursor, &rng, seed);
			if (ring.pushed % 50 == 1)
				check_contents(&ring, values, seed);
		}
		takt_ring_fini(&ring);
	}
}

static void empty_has_nothing(void **state)
{
	struct takt_ring ring;
	uint64_t cursor = 0;
	int value;

	assert_int_equal(takt_ring_init(&ring, 3, sizeof(value)), 0);
	assert_null(takt_ring_newest(&ring));
	assert_null(takt_ring_at(&ring, 0));
	assert_int_equal(takt_ring_len(&ring), 0);
	assert_int_equal(takt_ring_read(&ring, &cursor, &value, 1, NULL), 0);
	takt_ring_fini(&ring);
}

static void out_of_memory_leaves_it_alone(void **state)
{
	struct takt_ring ring = {.cap = 77};

	takt_alloc_fail_nth(1, 0);
	assert_int_equal(takt_ring_init(&ring, 3, 8), -ENOMEM);
	takt_alloc_fail_nth(0, 0);
	assert_int_equal(ring.cap, 77);
	assert_int_equal(takt_ring_init(&ring, SIZE_MAX, 8), -ENOMEM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(matches_everything_pushed),
		cmocka_unit_test(empty_has_nothing),
		cmocka_unit_test(out_of_memory_leaves_it_alone),
	};

	return cmocka_run_group_tests_name("ring", tests, NULL, NULL);
}
