/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that looks at the network, see the header. What it shares with the caller lies behind
 * one mutex that is never held across a read; the last of its two holders frees it. */
#include "device/net_watch.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/sys.h"
#include "device/worker.h"

static const uint64_t every_ns = 5 * TAKT_NS_PER_S;
static const uint64_t patience_ns = TAKT_NS_PER_S;

struct takt_net_watch {
	char root[PATH_MAX];
	pthread_t thread;
	atomic_uint refs;

	pthread_mutex_t lock;
	pthread_cond_t wake; /* to end; and that it has */
	bool want_stop, ended;
	struct takt_net_ports latest;

	struct takt_net_ports reading; /* the thread's own */
};

static void unref(struct takt_net_watch *watch)
{
	if (atomic_fetch_sub(&watch->refs, 1) != 1)
		return;
	pthread_cond_destroy(&watch->wake);
	pthread_mutex_destroy(&watch->lock);
	takt_free(watch);
}

/* When it began is when it was read: what a port says is not younger than that. */
static void look(struct takt_net_watch *watch)
{
	struct takt_mono begun = takt_mono_now(takt_sys_real());

	takt_net_ports_read(watch->root, &watch->reading);
	for (uint32_t i = 0; i < watch->reading.count; i++)
		watch->reading.port[i].at = begun;
}

/* Until the bool is set, or so long. With the lock. */
static void wait_for(struct takt_net_watch *watch, const bool *done, uint64_t ns)
{
	struct takt_mono until = takt_mono_add(takt_mono_now(takt_sys_real()), ns);
	struct timespec at = {.tv_sec = (time_t)(until.ns / TAKT_NS_PER_S),
			      .tv_nsec = (long)(until.ns % TAKT_NS_PER_S)};

	while (!*done && pthread_cond_timedwait(&watch->wake, &watch->lock, &at) != ETIMEDOUT)
		;
}

static void *watch_main(void *opaque)
{
	struct takt_net_watch *watch = opaque;

	pthread_mutex_lock(&watch->lock);
	while (!watch->want_stop) {
		pthread_mutex_unlock(&watch->lock);
		look(watch);
		pthread_mutex_lock(&watch->lock);
		watch->latest = watch->reading;
		wait_for(watch, &watch->want_stop, every_ns);
	}
	watch->ended = true;
	pthread_cond_broadcast(&watch->wake);
	pthread_mutex_unlock(&watch->lock);
	unref(watch);
	return NULL;
}

int takt_net_watch_open(const char *root, struct takt_net_watch **ret, struct takt_err *err)
{
	struct takt_net_watch *watch = takt_zalloc(sizeof(*watch));
	int rc;

	if (!watch)
		return takt_err_set(err, -ENOMEM, "the network's counters");
	atomic_init(&watch->refs, 2);
	pthread_mutex_init(&watch->lock, NULL);
	takt_cond_init_mono(&watch->wake);
	takt_strcpy(watch->root, sizeof(watch->root), root);
	rc = takt_worker_thread(&watch->thread, "network", watch_main, watch);
	if (rc < 0) {
		atomic_store(&watch->refs, 1);
		unref(watch);
		return takt_err_set(err, rc, "the thread that looks at the network");
	}
	*ret = watch;
	return 0;
}

void takt_net_watch_close(struct takt_net_watch *watch)
{
	bool ended;

	if (!watch)
		return;
	pthread_mutex_lock(&watch->lock);
	watch->want_stop = true;
	pthread_cond_broadcast(&watch->wake);
	wait_for(watch, &watch->ended, patience_ns);
	ended = watch->ended;
	pthread_mutex_unlock(&watch->lock);
	if (ended)
		pthread_join(watch->thread, NULL);
	else
		pthread_detach(watch->thread);
	unref(watch);
}

void takt_net_watch_latest(struct takt_net_watch *watch, struct takt_net_ports *ret)
{
	pthread_mutex_lock(&watch->lock);
	*ret = watch->latest;
	pthread_mutex_unlock(&watch->lock);
}
