/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events of a job that its owner wants to hear of. Each is said when what it rests on is on disk:
 * a crash before that makes it happen again and be said then, a crash after it leaves it unsaid. So
 * it is said at most once.
 */
#include "base/sys.h"
#include "queue/queue_impl.h"

const char *takt_job_event_name(enum takt_job_event event)
{
	static const char *const names[TAKT_EVENT_COUNT] = {
		[TAKT_EVENT_STARTED] = "started",     [TAKT_EVENT_REQUEUED] = "requeued",
		[TAKT_EVENT_PREEMPTED] = "preempted", [TAKT_EVENT_FROZEN] = "frozen",
		[TAKT_EVENT_THAWED] = "thawed",	      [TAKT_EVENT_ENDED] = "ended",
	};

	return names[event];
}

void takt_queue_note_event(struct takt_queue_job *job, enum takt_job_event event)
{
	if (job->spec.hook)
		job->events |= 1u << event;
}

/* An end that was refused is posted again; what else was is not known after a crash. */
void takt_queue_tell_events(struct takt_queue *queue, struct takt_queue_job *job,
			    const struct takt_err *refused)
{
	job->writes--;
	if (refused)
		job->events &= 1u << TAKT_EVENT_ENDED;
	if (refused || job->writes > 0)
		return;
	for (; job->events; job->events &= job->events - 1) {
		takt_crash_point("queue.before_event");
		if (queue->config.hooks->event)
			queue->config.hooks->event(queue->config.hooks_ctx, job,
						   __builtin_ctz(job->events));
	}
}
