/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which positions are at which level: the structure behind "highest level, then lowest position".
 *
 * A level has a bitmap over all positions and above it a bitmap of which words are not empty; the
 * levels that are in use have a bitmap, too. The best is found in a few instructions, and moving a
 * position costs a few words. A level that nobody is at holds no memory.
 */
#ifndef TAKT_SCHED_PLACE_BUCKETS_H
#define TAKT_SCHED_PLACE_BUCKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	TAKT_BUCKETS_MAX_LEVELS = 1024,
	TAKT_BUCKETS_NOWHERE = UINT16_MAX, /* at no level */
};

struct takt_bucket {
	uint64_t *words; /* owned: positions, then the summary; NULL while empty */
	uint32_t count;
};

struct takt_buckets {
	uint32_t levels;
	uint32_t positions;
	uint32_t word_count;	/* of positions */
	uint32_t summary_count; /* of words that say which of these are not 0 */
	struct takt_bucket *at; /* owned: by level */
	uint64_t used[TAKT_BUCKETS_MAX_LEVELS / 64];
	uint64_t *spare; /* owned: an emptied bucket's words, kept for the next */
	uint32_t total;	 /* positions at any level */
	size_t bytes;	 /* of all this */
};

/* All positions nowhere; which level a position is at is for the caller to remember. -ENOMEM. */
int takt_buckets_init(struct takt_buckets *buckets, uint32_t levels, uint32_t positions);
void takt_buckets_fini(struct takt_buckets *buckets);

/* Moves a position from a level to another; NOWHERE is outside. -ENOMEM leaves it where it was. */
int takt_buckets_move(struct takt_buckets *buckets, uint32_t position, uint32_t from, uint32_t to);

/* The highest level in use at or below `level`; false if there is none. */
bool takt_buckets_highest(const struct takt_buckets *buckets, uint32_t level, uint32_t *ret);
/* The first position at or behind `from` of a level; false if there is none. */
bool takt_buckets_next(const struct takt_buckets *buckets, uint32_t level, uint32_t from,
		       uint32_t *ret);

#endif
