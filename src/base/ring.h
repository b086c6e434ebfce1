/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ring of fixed-size elements in which the newest overwrite the oldest.
 *
 * Each element has a number: the first pushed is 0, counted on for ever, so that a reader who keeps
 * the number of the next one he wants can read in parts of any size, and learns how many he missed.
 * Not thread-safe; the owner locks.
 */
#ifndef TAKT_BASE_RING_H
#define TAKT_BASE_RING_H

#include <stddef.h>
#include <stdint.h>

struct takt_ring {
	unsigned char *bytes; /* owned */
	size_t size;	      /* bytes an element */
	size_t cap;	      /* elements */
	uint64_t pushed;      /* elements ever pushed: the number of the next */
};

/* cap and size at least 1. -ENOMEM leaves *ring as it was. */
int takt_ring_init(struct takt_ring *ring, size_t cap, size_t size);
void takt_ring_fini(struct takt_ring *ring);

void takt_ring_push(struct takt_ring *ring, const void *element);

size_t takt_ring_len(const struct takt_ring *ring);
uint64_t takt_ring_first(const struct takt_ring *ring); /* number of the oldest that is left */

/* Element by number, borrowed until the next push; NULL when overwritten or not yet there. */
const void *takt_ring_at(const struct takt_ring *ring, uint64_t number);

/* The newest, borrowed until the next push; NULL when empty. */
const void *takt_ring_newest(const struct takt_ring *ring);

/*
 * Copies up to `max` elements from number *cursor on, oldest first, and moves *cursor behind them.
 * If some were overwritten, *cursor first jumps to the oldest left and *ret_missed (may be NULL)
 * says over how many. Returns how many were copied; 0 when the reader is up to date.
 */
size_t takt_ring_read(const struct takt_ring *ring, uint64_t *cursor, void *ret, size_t max,
		      uint64_t *ret_missed);

#endif
