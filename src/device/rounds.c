/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread behind rounds.h. It and the machine both hold the object, so that a round that never
 * comes back from the driver can be left behind.
 */
#include "device/rounds.h"

#include <errno.h>

#include "base/mem.h"

struct takt_rounds {
	struct takt_source *source;			   /* the thread holds a reference */
	struct takt_worker *workers[TAKT_DEVICE_MAX_GPUS]; /* holds references */
	uint32_t count;
	pthread_t thread;
	atomic_uint refs;
	atomic_bool overtaken; /* the workers have been asked for what this round has not reached */

	pthread_mutex_t lock;
	pthread_cond_t work, done;
	/* Behind the lock. */
	bool wanted, busy, want_stop, ended;
};

static void rounds_unref(struct takt_rounds *rounds)
{
	if (atomic_fetch_sub(&rounds->refs, 1) != 1)
		return;
	for (uint32_t g = 0; g < rounds->count; g++)
		takt_worker_unref(rounds->workers[g]);
	pthread_cond_destroy(&rounds->done);
	pthread_cond_destroy(&rounds->work);
	pthread_mutex_destroy(&rounds->lock);
	takt_free(rounds);
}

/* With the lock, which is free during the round. */
static void go_round(struct takt_rounds *rounds, void (*visit)(struct takt_worker *worker))
{
	rounds->busy = true;
	atomic_store(&rounds->overtaken, false);
	pthread_mutex_unlock(&rounds->lock);
	for (uint32_t g = 0; g < rounds->count && !atomic_load(&rounds->overtaken); g++)
		visit(rounds->workers[g]);
	pthread_mutex_lock(&rounds->lock);
	rounds->busy = false;
	pthread_cond_broadcast(&rounds->done);
}

static void *rounds_main(void *opaque)
{
	struct takt_rounds *rounds = opaque;

	pthread_mutex_lock(&rounds->lock);
	if (rounds->busy && !rounds->want_stop)
		go_round(rounds, takt_worker_facts_here);
	while (!rounds->want_stop) {
		if (rounds->wanted) {
			rounds->wanted = false;
			go_round(rounds, takt_worker_tick_here);
		} else {
			pthread_cond_wait(&rounds->work, &rounds->lock);
		}
	}
	pthread_mutex_unlock(&rounds->lock);

	/* Closes it where no worker has a thread, which may block as any driver call. */
	takt_source_unref(rounds->source);

	pthread_mutex_lock(&rounds->lock);
	rounds->ended = true;
	pthread_cond_broadcast(&rounds->done);
	pthread_mutex_unlock(&rounds->lock);
	rounds_unref(rounds);
	return NULL;
}

int takt_rounds_start(struct takt_source *source, struct takt_worker *const *workers,
		      uint32_t count, bool reads_facts, struct takt_rounds **ret,
		      struct takt_err *err)
{
	struct takt_rounds *rounds = takt_zalloc(sizeof(*rounds));
	int rc;

	if (!rounds)
		return takt_err_set(err, -ENOMEM, "rounds of the GPUs");
	atomic_init(&rounds->refs, 2);
	pthread_mutex_init(&rounds->lock, NULL);
	takt_cond_init_mono(&rounds->work);
	takt_cond_init_mono(&rounds->done);
	rounds->busy = reads_facts;
	rounds->source = source;
	atomic_fetch_add(&source->refs, 1);
	for (; rounds->count < count; rounds->count++) {
		rounds->workers[rounds->count] = workers[rounds->count];
		takt_worker_ref(workers[rounds->count]);
	}
	rc = takt_worker_thread(&rounds->thread, "rounds", rounds_main, rounds);
	if (rc < 0) {
		takt_source_unref(source);
		atomic_store(&rounds->refs, 1);
		rounds_unref(rounds);
		return takt_err_set(err, rc, "thread that goes round the GPUs");
	}
	*ret = rounds;
	return 0;
}

/* With the lock; false when the deadline is over. */
static bool wait_until(struct takt_rounds *rounds, struct takt_mono deadline)
{
	struct timespec at = {.tv_sec = (time_t)(deadline.ns / TAKT_NS_PER_S),
			      .tv_nsec = (long)(deadline.ns % TAKT_NS_PER_S)};

	return pthread_cond_timedwait(&rounds->done, &rounds->lock, &at) != ETIMEDOUT;
}

bool takt_rounds_await(struct takt_rounds *rounds, struct takt_mono deadline)
{
	bool busy;

	pthread_mutex_lock(&rounds->lock);
	while (rounds->busy && wait_until(rounds, deadline))
		;
	busy = rounds->busy;
	pthread_mutex_unlock(&rounds->lock);
	return !busy;
}

bool takt_rounds_ask(struct takt_rounds *rounds)
{
	bool free;

	pthread_mutex_lock(&rounds->lock);
	free = !rounds->busy && !rounds->wanted;
	rounds->wanted |= free;
	pthread_mutex_unlock(&rounds->lock);
	if (free)
		pthread_cond_signal(&rounds->work);
	else
		atomic_store(&rounds->overtaken, true);
	return free;
}

void takt_rounds_stop(struct takt_rounds *rounds, struct takt_mono deadline)
{
	bool ended;

	if (!rounds)
		return;
	pthread_mutex_lock(&rounds->lock);
	rounds->want_stop = true;
	pthread_cond_signal(&rounds->work);
	atomic_store(&rounds->overtaken, true);
	while (!rounds->ended && wait_until(rounds, deadline))
		;
	ended = rounds->ended;
	pthread_mutex_unlock(&rounds->lock);
	if (ended)
		pthread_join(rounds->thread, NULL);
	else
		pthread_detach(rounds->thread);
	rounds_unref(rounds);
}
