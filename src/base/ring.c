/* SPDX-License-Identifier: Apache-2.0 */
/* Element `number` lies at number modulo cap: nothing to wrap, nothing to keep in step. */
#include "base/ring.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/mem.h"

int takt_ring_init(struct takt_ring *ring, size_t cap, size_t size)
{
	unsigned char *bytes;

	assert(cap > 0 && size > 0);
	bytes = takt_calloc(cap, size);
	if (!bytes)
		return -ENOMEM;
	*ring = (struct takt_ring){.bytes = bytes, .size = size, .cap = cap};
	return 0;
}

void takt_ring_fini(struct takt_ring *ring)
{
	takt_free(ring->bytes);
	*ring = (struct takt_ring){0};
}

static unsigned char *place(const struct takt_ring *ring, uint64_t number)
{
	return ring->bytes + (size_t)(number % ring->cap) * ring->size;
}

void takt_ring_push(struct takt_ring *ring, const void *element)
{
	memcpy(place(ring, ring->pushed), element, ring->size);
	ring->pushed++;
}

size_t takt_ring_len(const struct takt_ring *ring)
{
	return ring->pushed < ring->cap ? (size_t)ring->pushed : ring->cap;
}

uint64_t takt_ring_first(const struct takt_ring *ring)
{
	return ring->pushed - takt_ring_len(ring);
}

const void *takt_ring_at(const struct takt_ring *ring, uint64_t number)
{
	if (number < takt_ring_first(ring) || number >= ring->pushed)
		return NULL;
	return place(ring, number);
}

const void *takt_ring_newest(const struct takt_ring *ring)
{
	return ring->pushed ? place(ring, ring->pushed - 1) : NULL;
}

size_t takt_ring_read(const struct takt_ring *ring, uint64_t *cursor, void *ret, size_t max,
		      uint64_t *ret_missed)
{
	uint64_t first = takt_ring_first(ring);
	uint64_t from = *cursor > first ? *cursor : first;
	uint64_t left = from < ring->pushed ? ring->pushed - from : 0;
	size_t n = left < max ? (size_t)left : max;

	for (size_t i = 0; i < n; i++)
		memcpy((unsigned char *)ret + i * ring->size, place(ring, from + i), ring->size);
	if (ret_missed)
		*ret_missed = from - *cursor;
	*cursor = from + n;
	return n;
}
