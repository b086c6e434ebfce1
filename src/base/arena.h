/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arena: many small things that end together.
 *
 * Memory comes in blocks, is handed out in sequence and is released as a whole. What it hands out
 * is zeroed and aligned for any type, and valid until takt_arena_reset or takt_arena_fini.
 */
#ifndef TAKT_BASE_ARENA_H
#define TAKT_BASE_ARENA_H

#include <stddef.h>

struct takt_arena_block;

struct takt_arena {
	struct takt_arena_block *blocks; /* owned, newest first */
	size_t total;			 /* bytes of all blocks, their headers included */
	size_t max;			 /* total never exceeds this */
};

#define TAKT_ARENA(limit) ((struct takt_arena){.max = (limit)})

/* NULL when out of memory or over the limit; the arena stays usable. size 0 gives a valid pointer.
 */
void *takt_arena_alloc(struct takt_arena *arena, size_t size);
void *takt_arena_array(struct takt_arena *arena, size_t n, size_t size); /* NULL on overflow too */
char *takt_arena_strdup(struct takt_arena *arena, const char *text);

/* Forgets everything handed out and keeps one block for the next round. */
void takt_arena_reset(struct takt_arena *arena);
void takt_arena_fini(struct takt_arena *arena); /* may be used again */

#endif
