/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread behind rounds.h. It and the machine both hold the object, so that a round that never
 * comes back from the driver can be left behind.
 */
#include "device/rounds.h"

#include <errno.h>

#include "base/mem.h"

struct takt_rounds {
	struct takt_source *source;			   /* holds a reference */
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
	takt_source_unref(rounds->source);
	pthread_cond_destroy(&rounds->done);
	pthread_cond_destroy(&rounds->work);
	pthread_mutex_destroy(&rounds->lock);
	takt_free(rounds);
}

/* With the lock, which is free during the round. */
static void go_round(struct takt_rounds *rounds)
{
	rounds->wanted = false;
	rounds->busy = true;
	atomic_store(&rounds->overtaken, false);
	pthread_mutex_unlock(&rounds->lock);
	for (uint32_t g = 0; g < rounds->count && !atomic_load(&rounds->overtaken); g++)
		takt_worker_tick_here(rounds->workers[g]);
	pthread_mutex_lock(&rounds->lock);
	rounds->busy = false;
}

static void *rounds_main(void *opaque)
{
	struct takt_rounds *rounds = opaque;

	pthread_mutex_lock(&rounds->lock);
	while (!rounds->want_stop) {
		if (rounds->wanted)
			go_round(rounds);
		else
			pthread_cond_wait(&rounds->work, &rounds->lock);
	}
	rounds->ended = true;
	pthread_cond_broadcast(&rounds->done);
	pthread_mutex_unlock(&rounds->lock);
	rounds_unref(rounds);
	return NULL;
}

int takt_rounds_start(struct takt_source *source, struct takt_worker *const *workers,
		      uint32_t count, struct takt_rounds **ret, struct takt_err *err)
{
	struct takt_rounds *rounds = takt_zalloc(sizeof(*rounds));
	int rc;

	if (!rounds)
		return takt_err_set(err, -ENOMEM, "rounds of the GPUs");
	atomic_init(&rounds->refs, 2);
	pthread_mutex_init(&rounds->lock, NULL);
	takt_cond_init_mono(&rounds->work);
	takt_cond_init_mono(&rounds->done);
	rounds->source = source;
	atomic_fetch_add(&source->refs, 1);
	for (; rounds->count < count; rounds->count++) {
		rounds->workers[rounds->count] = workers[rounds->count];
		takt_worker_ref(workers[rounds->count]);
	}
	rc = takt_worker_thread(&rounds->thread, "rounds", rounds_main, rounds);
	if (rc < 0) {
		atomic_store(&rounds->refs, 1);
		rounds_unref(rounds);
		return takt_err_set(err, rc, "thread that goes round the GPUs");
	}
	*ret = rounds;
	return 0;
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
	struct timespec at = {.tv_sec = (time_t)(deadline.ns / TAKT_NS_PER_S),
			      .tv_nsec = (long)(deadline.ns % TAKT_NS_PER_S)};
	bool ended;
	int rc = 0;

	if (!rounds)
		return;
	pthread_mutex_lock(&rounds->lock);
	rounds->want_stop = true;
	pthread_cond_signal(&rounds->work);
	atomic_store(&rounds->overtaken, true);
	while (!rounds->ended && rc != ETIMEDOUT)
		rc = pthread_cond_timedwait(&rounds->done, &rounds->lock, &at);
	ended = rounds->ended;
	pthread_mutex_unlock(&rounds->lock);
	if (ended)
		pthread_join(rounds->thread, NULL);
	else
		pthread_detach(rounds->thread);
	rounds_unref(rounds);
}
