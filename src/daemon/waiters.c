/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that wait for a job's end, each with its own deadline. */
#include <errno.h>

#include "base/mem.h"
#include "base/vec.h"
#include "daemon/daemon.h"

enum {
	MAX_WAITERS = 4096
};

struct waiter {
	struct takt_waiters *all;
	struct takt_pending *pending; /* NULL = hung up */
	struct takt_peer peer;
	uint64_t job_id, deadline_ns;
};

struct takt_waiters {
	struct takt_daemon *daemon;
	TAKT_VEC(struct waiter *) list; /* owned */
};

int takt_waiters_new(struct takt_daemon *daemon, struct takt_waiters **ret)
{
	struct takt_waiters *waiters = takt_zalloc(sizeof(*waiters));

	if (!waiters)
		return -ENOMEM;
	waiters->daemon = daemon;
	waiters->list.max = MAX_WAITERS;
	*ret = waiters;
	return 0;
}

void takt_waiters_free(struct takt_waiters *waiters)
{
	if (!waiters)
		return;
	TAKT_VEC_EACH (w, &waiters->list)
		takt_free(*w);
	takt_vec_fini(&waiters->list);
	takt_free(waiters);
}

static void hung_up(void *ctx)
{
	((struct waiter *)ctx)->pending = NULL;
}

int takt_waiters_add(struct takt_waiters *waiters, uint64_t job_id, uint64_t deadline_ns,
		     const struct takt_peer *peer, struct takt_pending *pending,
		     struct takt_err *err)
{
	struct waiter *waiter = takt_zalloc(sizeof(*waiter));
	int rc = waiter ? takt_vec_push(&waiters->list, waiter) : -ENOMEM;

	if (rc < 0) {
		takt_free(waiter);
		return takt_err_set(err, rc, "too many requests wait for jobs");
	}
	*waiter = (struct waiter){waiters, pending, *peer, job_id, deadline_ns};
	takt_pending_set_cancel(pending, hung_up, waiter);
	return 0;
}

static void gone(struct waiter *waiter)
{
	struct takt_err err;

	takt_err_set(&err, -TAKT_E_UNAVAILABLE, "job %llu has ended meanwhile; ask again",
		     (unsigned long long)waiter->job_id);
	takt_pending_error(waiter->pending, &err);
}

/* Answers and removes waiter i; the last takes its place. */
static void finish(struct takt_waiters *waiters, size_t i, const struct takt_queue_job *job)
{
	struct waiter *waiter = waiters->list.at[i];

	takt_vec_remove_swap(&waiters->list, i);
	if (waiter->pending && job)
		takt_api_answer_job(waiters->daemon, waiter->pending, 200, &waiter->peer, job);
	else if (waiter->pending)
		gone(waiter);
	takt_free(waiter);
}

void takt_waiters_ended(struct takt_waiters *waiters, const struct takt_queue_job *job)
{
	for (size_t i = waiters->list.len; i-- > 0;)
		if (waiters->list.at[i]->job_id == job->row.id)
			finish(waiters, i, job);
}

void takt_waiters_expire(struct takt_waiters *waiters, struct takt_boot now, uint64_t *ret_next_ns)
{
	*ret_next_ns = 0;
	for (size_t i = waiters->list.len; i-- > 0;) {
		const struct waiter *waiter = waiters->list.at[i];

		if (!waiter->pending || waiter->deadline_ns <= now.ns)
			finish(waiters, i, takt_queue_find(waiters->daemon->queue, waiter->job_id));
		else if (*ret_next_ns == 0 || waiter->deadline_ns < *ret_next_ns)
			*ret_next_ns = waiter->deadline_ns;
	}
}
