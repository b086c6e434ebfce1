/* SPDX-License-Identifier: Apache-2.0 */
/* The two orders of jobs: by priority and arrival for the queue, by arrival alone for the record.
 */
#include "sched/sched_state.h"

/* Queue order as for a sort; 0 only for the same job. */
static int compare(const struct takt_sched_job *a, const struct takt_sched_job *b)
{
	if (a->priority != b->priority)
		return a->priority > b->priority ? -1 : 1;
	return (a->submit_seq > b->submit_seq) - (a->submit_seq < b->submit_seq);
}

static size_t queue_place(const struct takt_sched *sched, const struct takt_sched_job *job)
{
	size_t low = 0;
	size_t high = sched->queue.len;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (compare(&sched->queue.at[mid]->job, job) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

int takt_sched_queue_insert(struct takt_sched *sched, struct takt_sched_entry *entry)
{
	return takt_vec_insert(&sched->queue, queue_place(sched, &entry->job), entry);
}

void takt_sched_queue_remove(struct takt_sched *sched, const struct takt_sched_entry *entry)
{
	size_t i = queue_place(sched, &entry->job);

	assert(i < sched->queue.len && sched->queue.at[i] == entry);
	takt_vec_remove(&sched->queue, i);
}

size_t takt_sched_job_place(const struct takt_sched *sched, uint64_t submit_seq)
{
	size_t low = 0;
	size_t high = sched->jobs.len;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (sched->jobs.at[mid]->job.submit_seq < submit_seq)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}
