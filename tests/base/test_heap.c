/* SPDX-License-Identifier: Apache-2.0 */
/* The heap against a search for the smallest. */
#include "seeded.h"

#include <errno.h>
#include <stdbool.h>

#include "base/err.h"
#include "base/heap.h"
#include "base/mem.h"
#include "base/rng.h"

enum {
	ITEMS = 50,
	LIMIT = 40,
};

struct item {
	struct takt_heap_node node;
	uint64_t key;
	int id;
	bool in;
};

static struct item *item_of(const struct takt_heap_node *node)
{
	return TAKT_CONTAINER_OF(node, struct item, node);
}

static int by_key_then_id(const struct takt_heap_node *a, const struct takt_heap_node *b)
{
	const struct item *x = item_of(a), *y = item_of(b);

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->id - y->id;
}

static struct item *smallest(struct item *items)
{
	struct item *best = NULL;

	for (int i = 0; i < ITEMS; i++)
		if (items[i].in && (!best || by_key_then_id(&items[i].node, &best->node) < 0))
			best = &items[i];
	return best;
}

static void step(struct takt_heap *heap, struct item *items, struct takt_rng *rng, uint64_t seed)
{
	struct item *item = &items[takt_rng_below(rng, ITEMS)];
	uint64_t key = takt_rng_below(rng, 10); /* few keys: many ties */

	if (!item->in) {
		bool full = heap->nodes.len == LIMIT;

		item->key = key;
		CHECK_SEED(seed, takt_heap_push(heap, &item->node) == (full ? -TAKT_E_LIMIT : 0));
		item->in = !full;
	} else if (takt_rng_below(rng, 2)) {
		item->key = key;
		takt_heap_update(heap, &item->node);
	} else if (takt_rng_below(rng, 2)) {
		takt_heap_remove(heap, &item->node);
		item->in = false;
	} else {
		struct item *first = smallest(items);

		CHECK_SEED(seed, item_of(takt_heap_pop(heap)) == first);
		first->in = false;
	}
}

static void matches_a_search(void **state)
{
	for (uint64_t seed = 0; seed < 40; seed++) {
		struct takt_heap heap = TAKT_HEAP(LIMIT, by_key_then_id);
		struct item items[ITEMS] = {0};
		struct takt_rng rng;
		struct item *first;

		takt_rng_init(&rng, seed);
		for (int i = 0; i < ITEMS; i++)
			items[i].id = i;
		for (int n = 0; n < 500; n++) {
			step(&heap, items, &rng, seed);
			first = smallest(items);
			CHECK_SEED(seed, takt_heap_first(&heap) == (first ? &first->node : NULL));
			for (int i = 0; i < ITEMS; i++)
				CHECK_SEED(seed,
					   takt_heap_has(&heap, &items[i].node) == items[i].in);
		}
		while ((first = smallest(items))) {
			CHECK_SEED(seed, takt_heap_pop(&heap) == &first->node);
			first->in = false;
		}
		CHECK_SEED(seed, takt_heap_pop(&heap) == NULL);
		takt_heap_fini(&heap);
	}
}

static void fini_frees_the_nodes(void **state)
{
	struct takt_heap heap = TAKT_HEAP(LIMIT, by_key_then_id);
	struct item item = {.key = 1};

	assert_int_equal(takt_heap_push(&heap, &item.node), 0);
	takt_heap_fini(&heap);
	assert_int_equal(takt_heap_push(&heap, &item.node), 0);
	takt_heap_fini(&heap);
}

static void out_of_memory_leaves_the_node_out(void **state)
{
	struct takt_heap heap = TAKT_HEAP(LIMIT, by_key_then_id);
	struct item item = {.key = 1};

	takt_alloc_fail_nth(1, 0);
	assert_int_equal(takt_heap_push(&heap, &item.node), -ENOMEM);
	takt_alloc_fail_nth(0, 0);
	assert_false(takt_heap_has(&heap, &item.node));
	assert_null(takt_heap_first(&heap));
	takt_heap_fini(&heap);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(matches_a_search),
		cmocka_unit_test(fini_frees_the_nodes),
		cmocka_unit_test(out_of_memory_leaves_the_node_out),
	};

	return cmocka_run_group_tests_name("heap", tests, NULL, NULL);
}
