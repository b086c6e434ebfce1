/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All jobs that wait, in queue order: only for saying why they wait. What was in order the last
 * time is still nearly so, so it is put in order again only where it is not.
 */
#include "base/sort.h"
#include "sched/sched_state.h"

static int compare(const void *a, const void *b, void *ctx)
{
	(void)ctx;
	return takt_order_compare(&(*(struct takt_sched_entry *const *)a)->key,
				  &(*(struct takt_sched_entry *const *)b)->key);
}

static void drop_gone(struct takt_sched *sched)
{
	size_t kept = 0;

	for (size_t i = 0; i < sched->queue.len; i++) {
		struct takt_sched_entry *entry = sched->queue.at[i];

		if (entry && entry->phase == TAKT_SCHED_WAITING)
			sched->queue.at[kept++] = entry;
		else if (entry)
			entry->queue_at = TAKT_SCHED_NOWHERE;
	}
	sched->queue.len = kept;
}

int takt_sched_sort_queue(struct takt_sched *sched)
{
	bool sorted = true;
	int rc = 0;

	drop_gone(sched);
	for (size_t i = 0; rc == 0 && i < sched->jobs.len; i++) {
		struct takt_sched_entry *entry = sched->jobs.at[i];

		if (entry->phase == TAKT_SCHED_WAITING && entry->queue_at == TAKT_SCHED_NOWHERE)
			rc = takt_vec_push(&sched->queue, entry);
	}
	for (size_t i = 1; sorted && i < sched->queue.len; i++)
		sorted = compare(&sched->queue.at[i - 1], &sched->queue.at[i], NULL) < 0;
	if (rc == 0 && !sorted)
		rc = takt_sort(sched->queue.at, sched->queue.len, sizeof(*sched->queue.at), compare,
			       NULL);
	for (size_t i = 0; i < sched->queue.len; i++)
		sched->queue.at[i]->queue_at = (uint32_t)i;
	return rc;
}
