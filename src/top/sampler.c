/* SPDX-License-Identifier: Apache-2.0 */
/* See sampler.h. */
#include "top/sampler.h"

#include <errno.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"

static const uint64_t patience_ns = 300 * TAKT_NS_PER_MS;

struct takt_top_sampler {
	struct takt_top_source *source;
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	int eventfd;
	uint32_t rate_milli_hz;
	bool stop, again, full;
	struct takt_top_snapshot slot; /* when full */
};

/* A snapshot that nobody took makes room for the newer one. */
static void hand_over(struct takt_top_sampler *sampler, struct takt_top_snapshot *snapshot)
{
	uint64_t one = 1;

	if (sampler->full) {
		takt_top_keep_queue(snapshot, &sampler->slot);
		takt_top_snapshot_fini(&sampler->slot);
	}
	sampler->slot = *snapshot;
	sampler->full = true;
	/* An eventfd takes more than there are seconds in a life. */
	if (write(sampler->eventfd, &one, sizeof(one)) < 0)
		return;
}

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

		pthread_mutex_unlock(&sampler->mutex);
		takt_top_source_look(sampler->source, &snapshot);
		pthread_mutex_lock(&sampler->mutex);
		hand_over(sampler, &snapshot);
		wait_for_next(sampler, &last);
	}
	pthread_mutex_unlock(&sampler->mutex);
	return NULL;
}

int takt_top_sampler_start(struct takt_top_source *source, uint32_t rate_milli_hz, bool at_once,
			   struct takt_top_sampler **ret)
{
	struct takt_top_sampler *sampler = takt_zalloc(sizeof(*sampler));
	int rc;

	if (!sampler)
		return -ENOMEM;
	sampler->source = source;
	sampler->rate_milli_hz = rate_milli_hz;
	sampler->again = at_once;
	sampler->eventfd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	pthread_mutex_init(&sampler->mutex, NULL);
	pthread_cond_init(&sampler->changed, NULL);
	rc = sampler->eventfd < 0 ? -errno : -pthread_create(&sampler->thread, NULL, work, sampler);
	if (rc < 0) {
		if (sampler->eventfd >= 0)
			close(sampler->eventfd);
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
	if (sampler->full)
		takt_top_snapshot_fini(&sampler->slot);
	close(sampler->eventfd);
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

int takt_top_sampler_fd(const struct takt_top_sampler *sampler)
{
	return sampler->eventfd;
}

bool takt_top_sampler_take(struct takt_top_sampler *sampler, struct takt_top_snapshot *ret)
{
	uint64_t count;
	bool full;

	pthread_mutex_lock(&sampler->mutex);
	if (read(sampler->eventfd, &count, sizeof(count)) < 0)
		count = 0;
	full = sampler->full;
	if (full)
		*ret = sampler->slot;
	sampler->full = false;
	pthread_mutex_unlock(&sampler->mutex);
	return full;
}
