/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How jobs went, for those who look at one: what a job said of its steps and what its governor
 * decided, in memory and bounded. What a job says is thinned as it goes on, so that what is kept is
 * of its whole run; of decisions the newest are kept, and those that follow each other and are the
 * same are one. The last jobs that ended are kept too. After a restart of takt a running job's
 * decisions are made again from its log; what it had said before is not known any more.
 *
 * All times are monotonic. What cannot be kept for want of memory is left out.
 */
#ifndef TAKT_DAEMON_JOB_COURSE_H
#define TAKT_DAEMON_JOB_COURSE_H

#include "base/timetypes.h"
#include "clock/governor.h"
#include "codec/course_view.h"
#include "telemetry/progress_read.h"

enum {
	TAKT_COURSE_ENDED = 64, /* jobs that are over and still kept */
};

struct takt_job_course;

int takt_job_course_new(struct takt_job_course **ret);
void takt_job_course_free(struct takt_job_course *courses);

/* The job said so; the same again, or of a time before, changes nothing. */
void takt_job_course_said(struct takt_job_course *courses, uint64_t job_id, uint32_t attempt,
			  const struct takt_progress_file *said);
/* A governor begins, and knows nothing of before. */
void takt_job_course_governed(struct takt_job_course *courses, uint64_t job_id, uint32_t attempt,
			      const char *governor);
/* A step of it: what it saw of the time until now, and what it wishes for from now on. */
void takt_job_course_step(struct takt_job_course *courses, uint64_t job_id, uint32_t attempt,
			  const struct takt_governor_observation *seen,
			  const struct takt_governor_wish *wish);
/* It is over: what is kept of it may go when others end. */
void takt_job_course_over(struct takt_job_course *courses, uint64_t job_id);

/* Fills what is known, of a moment that is `now` and `wall`; all: also what its owner alone may
 * see, which is how far it came and how fast it works. */
void takt_job_course_fill(const struct takt_job_course *courses, uint64_t job_id, bool all,
			  struct takt_mono now, struct takt_wall wall,
			  struct takt_course_view *ret);

#endif
