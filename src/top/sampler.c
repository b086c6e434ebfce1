/* SPDX-License-Identifier: Apache-2.0 */
/* See sampler.h. */
#include "top/sampler.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "base/mem.h"

static const uint64_t patience_ns = 300 * TAKT_NS_PER_MS;

struct takt_top_sampler {
	struct takt_top_source *source;
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	struct takt_top_listener listener;
	uint32_t rate_milli_hz;
	uint64_t log_job;
	bool stop, again;
};

static struct timespec add(struct timespec at, uint64_t ns)
{
	ns += (uint64_t)at.tv_nsec;
	at.tv_sec += (time_t)(ns / TAKT_NS_PER_S);
	at.tv_nsec = (long)(ns % TAKT_NS_PER_S);
	return at;
}

static bool is_past(struct timespec a, struct timespec b)
{
	return a.tv_sec > b.tv_sec || (a.tv_sec == b.tv_sec && a.tv_nsec >= b.tv_nsec);
}

/* Until the next look is due, or something else is asked; mutex held. */
static void wait_for_next(struct takt_top_sampler *sampler, struct timespec *last)
{
	struct timespec due, now;
	int rc = 0;

	due = add(*last, 1000 * TAKT_NS_PER_S / sampler->rate_milli_hz);
	while (rc == 0 && !sampler->stop && !sampler->again)
		rc = pthread_cond_clockwait(&sampler->changed, &sampler->mutex, CLOCK_MONOTONIC,
					    &due);
	sampler->again = false;
	clock_gettime(CLOCK_MONOTONIC, &now);
	/* In step, but for looks that took too long. */
	*last = is_past(now, add(due, TAKT_NS_PER_S)) || !is_past(now, due) ? now : due;
}

static void *work(void *ctx)
{
	struct takt_top_sampler *sampler = ctx;
	struct timespec last;

	clock_gettime(CLOCK_MONOTONIC, &last);
	pthread_mutex_lock(&sampler->mutex);
	wait_for_next(sampler, &last);
	while (!sampler->stop) {
		struct takt_top_snapshot snapshot;
		uint64_t log_job = sampler->log_job;

		pthread_mutex_unlock(&sampler->mutex);
		takt_top_source_look(sampler->source, log_job, &snapshot);
		sampler->listener.take(sampler->listener.ctx, &snapshot);
		pthread_mutex_lock(&sampler->mutex);
		wait_for_next(sampler, &last);
	}
	pthread_mutex_unlock(&sampler->mutex);
	return NULL;
}

/* Signals are the main thread's, which waits for the terminal. */
static int start(struct takt_top_sampler *sampler)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&sampler->thread, NULL, work, sampler);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -rc;
}

int takt_top_sampler_start(struct takt_top_source *source, uint32_t rate_milli_hz,
			   struct takt_top_listener listener, struct takt_top_sampler **ret)
{
	struct takt_top_sampler *sampler = takt_zalloc(sizeof(*sampler));
	int rc;

	if (!sampler)
		return -ENOMEM;
	sampler->source = source;
	sampler->listener = listener;
	sampler->rate_milli_hz = rate_milli_hz;
	sampler->again = true;
	pthread_mutex_init(&sampler->mutex, NULL);
	pthread_cond_init(&sampler->changed, NULL);
	rc = start(sampler);
	if (rc < 0) {
		takt_free(sampler);
		return rc;
	}
	*ret = sampler;
	return 0;
}

static void nudge(struct takt_top_sampler *sampler)
{
	pthread_cond_signal(&sampler->changed);
	pthread_mutex_unlock(&sampler->mutex);
}

bool takt_top_sampler_stop(struct takt_top_sampler *sampler)
{
	struct timespec end;

	if (!sampler)
		return true;
	clock_gettime(CLOCK_MONOTONIC, &end);
	end = add(end, patience_ns);
	pthread_mutex_lock(&sampler->mutex);
	sampler->stop = true;
	nudge(sampler);
	if (pthread_clockjoin_np(sampler->thread, NULL, CLOCK_MONOTONIC, &end) != 0)
		return false;
	takt_free(sampler);
	return true;
}

void takt_top_sampler_rate(struct takt_top_sampler *sampler, uint32_t rate_milli_hz)
{
	pthread_mutex_lock(&sampler->mutex);
	sampler->rate_milli_hz = rate_milli_hz;
	sampler->again = true;
	nudge(sampler);
}

void takt_top_sampler_log(struct takt_top_sampler *sampler, uint64_t job_id)
{
	pthread_mutex_lock(&sampler->mutex);
	sampler->log_job = job_id;
	sampler->again = true;
	nudge(sampler);
}
