/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that take the next number, see the header. */
#include "sim/sim_pool.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	MAX_THREADS = 256
};

struct shared {
	const struct takt_sim_pool *pool;
	pthread_mutex_t lock;
	size_t count, next, done;
	bool stop;
	size_t failed_at; /* SIZE_MAX: none */
	int rc;
	struct takt_err err;
};

static bool take_next(struct shared *shared, size_t *ret)
{
	bool some;

	pthread_mutex_lock(&shared->lock);
	some = !shared->stop && shared->next < shared->count;
	if (some)
		*ret = shared->next++;
	pthread_mutex_unlock(&shared->lock);
	return some;
}

static void book(struct shared *shared, size_t i, int rc, const struct takt_err *err)
{
	const struct takt_sim_pool *pool = shared->pool;

	pthread_mutex_lock(&shared->lock);
	shared->done++;
	if (rc < 0 && i < shared->failed_at) {
		shared->failed_at = i;
		shared->rc = rc;
		shared->err = *err;
	}
	if (rc < 0)
		shared->stop = true;
	if (pool->progress && !shared->stop) {
		rc = pool->progress(pool->ctx, shared->done, shared->count);
		if (rc < 0) {
			shared->stop = true;
			shared->rc = takt_err_set(&shared->err, rc, "stopped after %zu of %zu runs",
						  shared->done, shared->count);
		}
	}
	pthread_mutex_unlock(&shared->lock);
}

static void *work(void *ctx)
{
	struct shared *shared = ctx;
	size_t i;

	while (take_next(shared, &i)) {
		struct takt_err err = {0};
		int rc = shared->pool->run(shared->pool->ctx, i, &err);

		book(shared, i, rc, &err);
	}
	return NULL;
}

static unsigned core_count(void)
{
	cpu_set_t set;
	int n = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;

	return n > 0 ? (unsigned)n : 1;
}

int takt_sim_pool_run(const struct takt_sim_pool *pool, size_t count, struct takt_err *err)
{
	struct shared shared = {.pool = pool,
				.lock = PTHREAD_MUTEX_INITIALIZER,
				.count = count,
				.failed_at = SIZE_MAX};
	unsigned want = pool->threads ? pool->threads : core_count(), started = 0;
	pthread_t threads[MAX_THREADS];

	if (want > MAX_THREADS)
		want = MAX_THREADS;
	/* One of them is the caller's own thread; fewer do as well. */
	while (started + 1 < want && started + 1 < count &&
	       pthread_create(&threads[started], NULL, work, &shared) == 0)
		started++;
	work(&shared);
	for (unsigned i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
	pthread_mutex_destroy(&shared.lock);
	if (shared.rc < 0 && err)
		*err = shared.err;
	return shared.rc;
}
