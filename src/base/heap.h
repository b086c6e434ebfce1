/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Indexed binary heap: smallest first, any element can be removed or moved.
 *
 * The caller embeds a struct takt_heap_node in what he queues and gives an order without ties: two
 * different elements never compare equal (end with an id or a sequence number), so that what comes
 * out does not depend on the history of the heap. That is asserted.
 *
 *	static int by_deadline(const struct takt_heap_node *a, const struct takt_heap_node *b);
 *	struct takt_heap timers = TAKT_HEAP(MAX_TIMERS, by_deadline);
 *	rc = takt_heap_push(&timers, &timer->node);
 *	timer = TAKT_CONTAINER_OF(takt_heap_first(&timers), struct timer, node);
 */
#ifndef TAKT_BASE_HEAP_H
#define TAKT_BASE_HEAP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"
#include "base/vec.h"

struct takt_heap_node {
	size_t place; /* 0: in no heap; else where in the heap, plus 1 */
};

/* Negative if a comes out before b, positive if after. */
typedef int takt_heap_fn(const struct takt_heap_node *a, const struct takt_heap_node *b);

struct takt_heap {
	TAKT_VEC(struct takt_heap_node *) nodes; /* array owned, nodes borrowed until removed */
	takt_heap_fn *compare;
};

#define TAKT_HEAP(limit, fn) ((struct takt_heap){.nodes = TAKT_VEC_INIT(limit), .compare = (fn)})

/* The node is in no heap. -ENOMEM, or -TAKT_E_LIMIT beyond the limit, leave it so. */
int takt_heap_push(struct takt_heap *heap, struct takt_heap_node *node);

/* Borrowed; NULL when empty. */
struct takt_heap_node *takt_heap_first(const struct takt_heap *heap);

/* Takes the first out; NULL when empty. */
struct takt_heap_node *takt_heap_pop(struct takt_heap *heap);

/* Takes any element of this heap out. */
void takt_heap_remove(struct takt_heap *heap, struct takt_heap_node *node);

/* After what the order looks at has changed in an element of this heap, and before any other call:
 * one element at a time. */
void takt_heap_update(struct takt_heap *heap, struct takt_heap_node *node);

bool takt_heap_has(const struct takt_heap *heap, const struct takt_heap_node *node);

/* Releases the array and marks the nodes as free; what they are embedded in is the caller's. */
void takt_heap_fini(struct takt_heap *heap);

#endif
