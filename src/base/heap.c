/* SPDX-License-Identifier: Apache-2.0 */
/* Each node knows its place, so that removing it needs no search. */
#include "base/heap.h"

static bool before(const struct takt_heap *heap, const struct takt_heap_node *a,
		   const struct takt_heap_node *b)
{
	int order = heap->compare(a, b);

	assert(order != 0 || a == b);
	return order < 0;
}

static void put_at(struct takt_heap *heap, size_t i, struct takt_heap_node *node)
{
	heap->nodes.at[i] = node;
	node->place = i + 1;
}

static void sift_up(struct takt_heap *heap, size_t i)
{
	struct takt_heap_node *node = heap->nodes.at[i];

	for (size_t parent; i > 0; i = parent) {
		parent = (i - 1) / 2;
		if (!before(heap, node, heap->nodes.at[parent]))
			break;
		put_at(heap, i, heap->nodes.at[parent]);
	}
	put_at(heap, i, node);
}

static void sift_down(struct takt_heap *heap, size_t i)
{
	struct takt_heap_node *node = heap->nodes.at[i], **at = heap->nodes.at;
	size_t len = heap->nodes.len;

	for (size_t child = 2 * i + 1; child < len; child = 2 * i + 1) {
		if (child + 1 < len && before(heap, at[child + 1], at[child]))
			child++;
		if (!before(heap, at[child], node))
			break;
		put_at(heap, i, at[child]);
		i = child;
	}
	put_at(heap, i, node);
}

int takt_heap_push(struct takt_heap *heap, struct takt_heap_node *node)
{
	int rc;

	assert(node->place == 0);
	rc = takt_vec_push(&heap->nodes, node);
	if (rc == 0)
		sift_up(heap, heap->nodes.len - 1);
	return rc;
}

struct takt_heap_node *takt_heap_first(const struct takt_heap *heap)
{
	return heap->nodes.len ? heap->nodes.at[0] : NULL;
}

struct takt_heap_node *takt_heap_pop(struct takt_heap *heap)
{
	struct takt_heap_node *node = takt_heap_first(heap);

	if (node)
		takt_heap_remove(heap, node);
	return node;
}

void takt_heap_remove(struct takt_heap *heap, struct takt_heap_node *node)
{
	size_t i = node->place - 1;
	struct takt_heap_node *last;

	assert(takt_heap_has(heap, node));
	last = *takt_vec_last(&heap->nodes);
	takt_vec_remove_swap(&heap->nodes, i);
	node->place = 0;
	if (last == node)
		return;
	last->place = i + 1;
	takt_heap_update(heap, last);
}

void takt_heap_update(struct takt_heap *heap, struct takt_heap_node *node)
{
	assert(takt_heap_has(heap, node));
	sift_up(heap, node->place - 1);
	sift_down(heap, node->place - 1);
}

bool takt_heap_has(const struct takt_heap *heap, const struct takt_heap_node *node)
{
	return node->place != 0 && node->place <= heap->nodes.len &&
	       heap->nodes.at[node->place - 1] == node;
}

void takt_heap_fini(struct takt_heap *heap)
{
	TAKT_VEC_EACH (node, &heap->nodes)
		(*node)->place = 0;
	takt_vec_fini(&heap->nodes);
}
