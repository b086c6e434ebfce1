/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time limits. They run by the boot clock; when a job is taken over from an earlier takt, what it
 * ran before is known by the wall clock only. Running jobs are looked at when one with a limit
 * starts and when the first limit is due.
 */
#include <stdio.h>

#include "base/timetext.h"
#include "queue/queue_impl.h"

void takt_queue_watch_limit(struct takt_queue *queue, const struct takt_queue_job *job)
{
	if (job->spec.time_limit_ms)
		queue->next_limit_ns = 1; /* at the next pump, which knows what time it is */
}

void takt_queue_limit_anew(struct takt_queue *queue, struct takt_queue_job *job)
{
	job->limit_ns = 0;
	takt_queue_watch_limit(queue, job);
}

uint64_t takt_queue_ran_ns(const struct takt_queue *queue, const struct takt_queue_job *job)
{
	uint64_t ran_ns = 0;

	if (job->row.started.ns && queue->wall.ns > job->row.started.ns)
		ran_ns = (uint64_t)(queue->wall.ns - job->row.started.ns);
	return ran_ns > job->row.stood_ns ? ran_ns - job->row.stood_ns : 0;
}

static uint64_t limit_of(const struct takt_queue *queue, const struct takt_queue_job *job)
{
	uint64_t limit_ns = job->spec.time_limit_ms * TAKT_NS_PER_MS;
	uint64_t ran_ns = takt_queue_ran_ns(queue, job);

	return queue->now.ns + (limit_ns > ran_ns ? limit_ns - ran_ns : 0);
}

static void time_is_up(struct takt_queue *queue, struct takt_queue_job *job)
{
	char limit[TAKT_DURATION_TEXT], text[80];

	if (!job->row.timed_out) {
		snprintf(text, sizeof(text), "stopped: its time limit of %s was over",
			 takt_duration_text(job->spec.time_limit_ms * TAKT_NS_PER_MS, limit));
		takt_queue_say(job, text);
		job->row.timed_out = job->stop_wanted = true;
		takt_queue_note_cause(job, TAKT_CAUSE_TIME_LIMIT);
		job->row.state = TAKT_JOB_STOPPING;
	}
	if (!job->stop_sent)
		takt_queue_stop(queue, job);
	(void)takt_queue_post(queue, job, TICKET_NOTE, NULL);
	takt_queue_changed(queue, job);
}

/* Boot time to look at it again; UINT64_MAX = no need, or, of one that is being changed, not before
 * that is on disk. */
static uint64_t check(struct takt_queue *queue, struct takt_queue_job *job)
{
	if (job->phase != TAKT_PHASE_RUNNING || job->end || job->spec.time_limit_ms == 0 ||
	    job->changing || job->row.cancel_wanted || job->evict.step >= TAKT_EVICT_DECIDED ||
	    job->stop_sent)
		return UINT64_MAX;
	if (job->limit_ns == 0)
		job->limit_ns = limit_of(queue, job);
	if (job->limit_ns > queue->now.ns)
		return job->limit_ns;
	time_is_up(queue, job);
	return job->stop_sent ? UINT64_MAX : takt_queue_stop_again_ns(queue, job);
}

void takt_queue_check_limits(struct takt_queue *queue)
{
	uint64_t next_ns = UINT64_MAX;

	TAKT_MAP_EACH(entry, &queue->jobs)
	{
		uint64_t due_ns = check(queue, entry->value.ptr);

		next_ns = due_ns < next_ns ? due_ns : next_ns;
	}
	queue->next_limit_ns = next_ns == UINT64_MAX ? 0 : next_ns;
}
