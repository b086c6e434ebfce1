/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks double from 4 KiB up; something larger than the next block gets one of its own size. */
#include "base/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <string.h>

#include "base/mem.h"

enum {
	BLOCK_FIRST = 4096,
	BLOCK_LARGEST = 1 << 20,
	ALIGN = alignof(max_align_t),
};

struct takt_arena_block {
	struct takt_arena_block *next;
	size_t size; /* bytes of the block, this header included */
	size_t used; /* likewise */
};

/* The header, rounded up so that what follows is aligned. */
#define HEADER ((sizeof(struct takt_arena_block) + ALIGN - 1) / ALIGN * ALIGN)

static size_t next_size(const struct takt_arena *arena, size_t need)
{
	size_t size = arena->blocks ? arena->blocks->size * 2 : BLOCK_FIRST;

	if (size > BLOCK_LARGEST)
		size = BLOCK_LARGEST;
	if (size > arena->max - arena->total)
		size = arena->max - arena->total;
	return size > need ? size : need;
}

static struct takt_arena_block *add_block(struct takt_arena *arena, size_t need)
{
	struct takt_arena_block *block;
	size_t size;

	if (need > arena->max - arena->total)
		return NULL;
	size = next_size(arena, need);
	block = takt_alloc(size);
	if (!block)
		return NULL;
	*block = (struct takt_arena_block){arena->blocks, size, HEADER};
	arena->blocks = block;
	arena->total += size;
	return block;
}

void *takt_arena_alloc(struct takt_arena *arena, size_t size)
{
	struct takt_arena_block *block = arena->blocks;
	size_t rounded;
	void *got;

	if (size > SIZE_MAX - HEADER - ALIGN)
		return NULL;
	rounded = (size + (size == 0) + ALIGN - 1) / ALIGN * ALIGN;
	if (!block || rounded > block->size - block->used)
		block = add_block(arena, HEADER + rounded);
	if (!block)
		return NULL;
	got = (unsigned char *)block + block->used;
	block->used += rounded;
	return memset(got, 0, rounded);
}

void *takt_arena_array(struct takt_arena *arena, size_t n, size_t size)
{
	if (size != 0 && n > SIZE_MAX / size)
		return NULL;
	return takt_arena_alloc(arena, n * size);
}

char *takt_arena_strdup(struct takt_arena *arena, const char *text)
{
	size_t n = strlen(text) + 1;
	char *copy = takt_arena_alloc(arena, n);

	return copy ? memcpy(copy, text, n) : NULL;
}

static void free_blocks(struct takt_arena *arena, struct takt_arena_block *block)
{
	struct takt_arena_block *next;

	for (; block; block = next) {
		next = block->next;
		arena->total -= block->size;
		takt_free(block);
	}
}

void takt_arena_reset(struct takt_arena *arena)
{
	if (!arena->blocks)
		return;
	free_blocks(arena, arena->blocks->next);
	arena->blocks->next = NULL;
	arena->blocks->used = HEADER;
}

void takt_arena_fini(struct takt_arena *arena)
{
	free_blocks(arena, arena->blocks);
	*arena = TAKT_ARENA(arena->max);
}
