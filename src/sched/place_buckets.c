/* SPDX-License-Identifier: Apache-2.0 */
/* Bitmaps by level, each with a summary: see place_buckets.h. */
#include "sched/place_buckets.h"

#include <errno.h>

#include "base/mem.h"

static size_t words_of(const struct takt_buckets *buckets)
{
	return (size_t)buckets->word_count + buckets->summary_count;
}

int takt_buckets_init(struct takt_buckets *buckets, uint32_t levels, uint32_t positions)
{
	*buckets = (struct takt_buckets){
		.levels = levels,
		.positions = positions,
		.word_count = (positions + 63) / 64,
	};
	buckets->summary_count = (buckets->word_count + 63) / 64;
	buckets->at = takt_calloc(levels, sizeof(*buckets->at));
	if (!buckets->at)
		return -ENOMEM;
	buckets->bytes = levels * sizeof(*buckets->at);
	return 0;
}

void takt_buckets_fini(struct takt_buckets *buckets)
{
	for (uint32_t i = 0; buckets->at && i < buckets->levels; i++)
		takt_free(buckets->at[i].words);
	takt_free(buckets->at);
	takt_free(buckets->spare);
	*buckets = (struct takt_buckets){0};
}

static int begin(struct takt_buckets *buckets, uint32_t level)
{
	uint64_t *words = buckets->spare;

	buckets->spare = NULL;
	if (!words) {
		words = takt_calloc(words_of(buckets), sizeof(*words));
		if (!words)
			return -ENOMEM;
		buckets->bytes += words_of(buckets) * sizeof(*words);
	}
	buckets->at[level].words = words;
	buckets->used[level / 64] |= UINT64_C(1) << (level % 64);
	return 0;
}

static void end(struct takt_buckets *buckets, uint32_t level)
{
	uint64_t *words = buckets->at[level].words;

	buckets->at[level].words = NULL;
	buckets->used[level / 64] &= ~(UINT64_C(1) << (level % 64));
	if (!buckets->spare) {
		buckets->spare = words; /* all zero: nobody is left in it */
		return;
	}
	takt_free(words);
	buckets->bytes -= words_of(buckets) * sizeof(*words);
}

static void take_out(struct takt_buckets *buckets, uint32_t position, uint32_t level)
{
	struct takt_bucket *bucket = &buckets->at[level];
	uint64_t *summary = bucket->words + buckets->word_count;
	uint32_t word = position / 64;

	bucket->words[word] &= ~(UINT64_C(1) << (position % 64));
	if (!bucket->words[word])
		summary[word / 64] &= ~(UINT64_C(1) << (word % 64));
	if (--bucket->count == 0)
		end(buckets, level);
}

int takt_buckets_move(struct takt_buckets *buckets, uint32_t position, uint32_t from, uint32_t to)
{
	uint32_t word = position / 64;
	struct takt_bucket *bucket;

	if (to != TAKT_BUCKETS_NOWHERE) {
		bucket = &buckets->at[to];
		if (bucket->count == 0 && begin(buckets, to) < 0)
			return -ENOMEM;
		bucket->words[word] |= UINT64_C(1) << (position % 64);
		bucket->words[buckets->word_count + word / 64] |= UINT64_C(1) << (word % 64);
		bucket->count++;
		buckets->total++;
	}
	if (from != TAKT_BUCKETS_NOWHERE) {
		take_out(buckets, position, from);
		buckets->total--;
	}
	return 0;
}

bool takt_buckets_highest(const struct takt_buckets *buckets, uint32_t level, uint32_t *ret)
{
	uint32_t word = level / 64;
	uint64_t used = buckets->used[word] & (UINT64_MAX >> (63 - level % 64));

	while (!used) {
		if (word == 0)
			return false;
		used = buckets->used[--word];
	}
	*ret = word * 64 + 63 - (uint32_t)__builtin_clzll(used);
	return true;
}

bool takt_buckets_next(const struct takt_buckets *buckets, uint32_t level, uint32_t from,
		       uint32_t *ret)
{
	const uint64_t *words = buckets->at[level].words;
	uint32_t word = from / 64, group;
	uint64_t bits;

	if (!words || word >= buckets->word_count)
		return false;
	bits = words[word] & (UINT64_MAX << (from % 64));
	if (!bits) {
		const uint64_t *summary = words + buckets->word_count;

		group = ++word / 64;
		if (group >= buckets->summary_count)
			return false;
		bits = summary[group] & (UINT64_MAX << (word % 64));
		while (!bits) {
			if (++group >= buckets->summary_count)
				return false;
			bits = summary[group];
		}
		word = group * 64 + (uint32_t)__builtin_ctzll(bits);
		bits = words[word];
	}
	*ret = word * 64 + (uint32_t)__builtin_ctzll(bits);
	return true;
}
