/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All jobs that wait, in queue order: only for saying why they wait. Who comes to wait is put at
 * the end, who does not any more is dropped when it is next asked for. What was in order the last
 * time is still nearly so, so it is put in order again only where it is not.
 */
#include "base/sort.h"
#include "sched/sched_state.h"

enum {
	GONE_KEPT = 64, /* beside as many as there are jobs */
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

static void drop_gone(struct takt_sched *sched)
{
	size_t kept = 0;

	for (size_t i = 0; i < sched->queue.len; i++) {
		struct takt_sched_entry *entry = sched->queue.at[i];

		if (entry && entry->phase == TAKT_SCHED_WAITING)
			enter(sched, entry, kept++);
		else if (entry)
			entry->queue_at = TAKT_SCHED_NOWHERE;
	}
	sched->queue.len = kept;
}

size_t takt_sched_queue_most(size_t max_jobs)
{
	return 2 * max_jobs + GONE_KEPT + 1;
}

int takt_sched_queue_reserve(struct takt_sched *sched)
{
	if (sched->queue.len > 2 * sched->jobs.len + GONE_KEPT)
		drop_gone(sched);
	return takt_vec_reserve(&sched->queue, 1);
}

void takt_sched_enqueue(struct takt_sched *sched, struct takt_sched_entry *entry)
{
	if (entry->queue_at == TAKT_SCHED_NOWHERE)
		enter(sched, entry, sched->queue.len++);
}

int takt_sched_sort_queue(struct takt_sched *sched)
{
	bool sorted = true;
	int rc;

	drop_gone(sched);
	for (size_t i = 1; sorted && i < sched->queue.len; i++)
		sorted = compare(&sched->queue.at[i - 1], &sched->queue.at[i], NULL) < 0;
	if (sorted)
		return 0;
	rc = takt_sort(sched->queue.at, sched->queue.len, sizeof(*sched->queue.at), compare, NULL);
	for (size_t i = 0; i < sched->queue.len; i++)
		sched->queue.at[i]->queue_at = (uint32_t)i;
	return rc;
}
