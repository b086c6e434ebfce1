/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All jobs that wait, in queue order: only for saying why they wait. Who comes to wait is put at
 * the end, who does not any more leaves a gap. What was in order the last time still is, so only
 * who came later is looked at; gaps are closed when whoever goes through has met many.
 */
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "sched/sched_state.h"

enum {
	GONE_KEPT = 64, /* gaps, beside as many as there are jobs */
};

static int compare(const void *a, const void *b, void *ctx)
{
	(void)ctx;
	return takt_order_compare(&(*(struct takt_sched_entry *const *)a)->key,
				  &(*(struct takt_sched_entry *const *)b)->key);
}

static void enter(struct takt_sched *sched, struct takt_sched_entry *entry, size_t at)
{
	sched->queue.at[at] = entry;
	entry->queue_at = (uint32_t)at;
}

struct takt_sched_entry *takt_sched_queue_at(const struct takt_sched *sched, size_t at)
{
	struct takt_sched_entry *entry = sched->queue.at[at];

	return entry && entry->phase == TAKT_SCHED_WAITING ? entry : NULL;
}

static void close_gaps(struct takt_sched *sched)
{
	size_t kept = 0, sorted = 0;

	for (size_t i = 0; i < sched->queue.len; i++) {
		struct takt_sched_entry *entry = sched->queue.at[i];

		if (takt_sched_queue_at(sched, i))
			enter(sched, entry, kept++);
		else if (entry)
			entry->queue_at = TAKT_SCHED_NOWHERE;
		if (i < sched->queue_sorted)
			sorted = kept;
	}
	sched->queue.len = kept;
	sched->queue_sorted = sorted;
	sched->queue_gaps = 0;
}

size_t takt_sched_queue_most(size_t max_jobs)
{
	return 2 * max_jobs + GONE_KEPT + 1;
}

int takt_sched_queue_reserve(struct takt_sched *sched)
{
	if (sched->queue.len > 2 * sched->jobs.len + GONE_KEPT)
		close_gaps(sched);
	return takt_vec_reserve(&sched->queue, 1);
}

void takt_sched_enqueue(struct takt_sched *sched, struct takt_sched_entry *entry)
{
	if (entry->queue_at == TAKT_SCHED_NOWHERE)
		enter(sched, entry, sched->queue.len++);
}

void takt_sched_queue_moved(struct takt_sched *sched, const struct takt_sched_entry *entry)
{
	if (entry->queue_at < sched->queue_sorted)
		sched->queue_sorted = entry->queue_at;
}

/* As far as it is in order; gaps are in order anywhere. */
static void look_how_far(struct takt_sched *sched)
{
	struct takt_sched_entry *last = NULL;
	size_t i = sched->queue_sorted;

	for (size_t before = i; before > 0 && !last;)
		last = takt_sched_queue_at(sched, --before);
	for (; i < sched->queue.len; i++) {
		struct takt_sched_entry *entry = takt_sched_queue_at(sched, i);

		if (entry && last && compare(&last, &entry, NULL) > 0)
			break;
		last = entry ? entry : last;
	}
	sched->queue_sorted = i;
}

/* Puts those behind the sorted ones in their places. There are no gaps. */
static int merge_rest(struct takt_sched *sched)
{
	size_t sorted = sched->queue_sorted, at = sched->queue.len, rest = at - sorted;
	TAKT_CLEANUP(freep)
	struct takt_sched_entry **late = takt_calloc(rest, sizeof(struct takt_sched_entry *));
	int rc = late ? 0 : -ENOMEM;

	if (rc == 0) {
		memcpy(late, &sched->queue.at[sorted], rest * sizeof(struct takt_sched_entry *));
		rc = takt_sort(late, rest, sizeof(struct takt_sched_entry *), compare, NULL);
	}
	if (rc < 0)
		return rc;
	while (rest > 0)
		if (sorted > 0 && compare(&sched->queue.at[sorted - 1], &late[rest - 1], NULL) > 0)
			enter(sched, sched->queue.at[--sorted], --at);
		else
			enter(sched, late[--rest], --at);
	sched->queue_sorted = sched->queue.len;
	return 0;
}

int takt_sched_sort_queue(struct takt_sched *sched)
{
	if (sched->queue_gaps > GONE_KEPT)
		close_gaps(sched);
	look_how_far(sched);
	if (sched->queue_sorted == sched->queue.len)
		return 0;
	close_gaps(sched);
	return merge_rest(sched);
}
