/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that hears XIDs, see the header. What it shares with the caller lies behind one mutex
 * that is never held across a driver call; the last of its two holders frees it. */
#include "device/gpu_listen.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/pace.h"
#include "base/str.h"
#include "base/sys.h"
#include "device/device.h"
#include "device/gpu_events.h"
#include "device/worker.h"

enum {
	HEARD = 64,
};

static const uint64_t every_ns = TAKT_NS_PER_S;
/* To a driver that tells nothing. */
static const struct takt_pace opens = {TAKT_NS_PER_S, 30 * TAKT_NS_PER_S};

struct takt_gpu_listen {
	char nvml_path[PATH_MAX];
	char uuids[TAKT_DEVICE_MAX_GPUS][96];
	uint32_t count;
	pthread_t thread;
	atomic_uint refs;

	pthread_mutex_t lock;
	pthread_cond_t wake; /* to end; and that it has */
	bool want_stop, ended, look_now;
	struct takt_mono looked_at; /* when the last finished look began; 0 = none has */
	uint64_t put, taken;	    /* into and out of the ring, ever */
	struct takt_heard heard[HEARD];
	char why[TAKT_LISTEN_WHY];

	struct takt_gpu_events *events; /* the thread's own; NULL = not open */
	bool was_open;
	uint32_t failures; /* to open them, in a row */
	struct takt_mono open_at;
};

static void unref(struct takt_gpu_listen *listen)
{
	if (atomic_fetch_sub(&listen->refs, 1) != 1)
		return;
	pthread_cond_destroy(&listen->wake);
	pthread_mutex_destroy(&listen->lock);
	takt_free(listen);
}

static void put(struct takt_gpu_listen *listen, struct takt_heard heard)
{
	heard.at = takt_mono_now(takt_sys_real());
	pthread_mutex_lock(&listen->lock);
	listen->heard[listen->put++ % HEARD] = heard;
	if (listen->put - listen->taken > HEARD)
		listen->taken = listen->put - HEARD;
	pthread_mutex_unlock(&listen->lock);
}

static void set_why(struct takt_gpu_listen *listen, const char *why)
{
	pthread_mutex_lock(&listen->lock);
	takt_strcpy(listen->why, sizeof(listen->why), why);
	pthread_mutex_unlock(&listen->lock);
}

/* "GPUs 0, 3 tell no events" */
static void say_who_is_deaf(struct takt_gpu_listen *listen, uint64_t deaf)
{
	struct takt_str text = TAKT_STR(TAKT_LISTEN_WHY - 1);

	for (uint32_t gpu = 0; gpu < listen->count; gpu++)
		if (deaf >> gpu & 1)
			takt_str_addf(&text, "%s%" PRIu32,
				      text.len ? ", "
					       : "the driver tells no "
						 "XIDs of GPU ",
				      gpu);
	set_why(listen, takt_str_text(&text));
	takt_str_fini(&text);
}

static bool open_events(struct takt_gpu_listen *listen)
{
	const char *uuids[TAKT_DEVICE_MAX_GPUS];
	struct takt_err err;
	uint64_t deaf;

	for (uint32_t gpu = 0; gpu < listen->count; gpu++)
		uuids[gpu] = listen->uuids[gpu];
	if (takt_gpu_events_open(listen->nvml_path[0] ? listen->nvml_path : NULL, uuids,
				 listen->count, &listen->events, &deaf, &err) < 0) {
		set_why(listen, err.msg);
		listen->open_at = takt_mono_add(takt_mono_now(takt_sys_real()),
						takt_pace_ns(&opens, listen->failures++));
		return false;
	}
	listen->failures = 0;
	if (listen->was_open)
		put(listen, (struct takt_heard){.kind = TAKT_HEARD_LOADED});
	listen->was_open = true;
	say_who_is_deaf(listen, deaf);
	return true;
}

/* False when the driver tells no more. */
static bool hear(struct takt_gpu_listen *listen)
{
	struct takt_gpu_event event;
	int rc = takt_gpu_events_next(listen->events, &event);

	for (; rc > 0; rc = takt_gpu_events_next(listen->events, &event))
		if (event.kind == TAKT_EVENT_XID && event.gpu < listen->count)
			put(listen, (struct takt_heard){.kind = TAKT_HEARD_XID,
							.gpu = event.gpu,
							.xid = (uint32_t)event.number});
	return rc == 0;
}

/* When it is worth looking again. Whoever wants to know sooner hears nothing of a driver that was
 * asked a moment ago. */
static struct takt_mono look(struct takt_gpu_listen *listen, struct takt_mono now)
{
	if (!listen->events && (now.ns < listen->open_at.ns || !open_events(listen)))
		return listen->open_at;
	if (!hear(listen)) {
		takt_gpu_events_close(listen->events);
		listen->events = NULL;
	}
	return takt_mono_add(takt_mono_now(takt_sys_real()), every_ns);
}

/* False when it is time to end. With the lock. */
static bool rest(struct takt_gpu_listen *listen, struct takt_mono until)
{
	struct timespec at = {.tv_sec = (time_t)(until.ns / TAKT_NS_PER_S),
			      .tv_nsec = (long)(until.ns % TAKT_NS_PER_S)};

	while (!listen->want_stop && !listen->look_now &&
	       pthread_cond_timedwait(&listen->wake, &listen->lock, &at) != ETIMEDOUT)
		;
	listen->look_now = false;
	return !listen->want_stop;
}

static void *listen_main(void *opaque)
{
	struct takt_gpu_listen *listen = opaque;
	bool goes_on;

	do {
		struct takt_mono began = takt_mono_now(takt_sys_real());
		struct takt_mono next = look(listen, began);

		pthread_mutex_lock(&listen->lock);
		listen->looked_at = began;
		goes_on = rest(listen, next);
		pthread_mutex_unlock(&listen->lock);
	} while (goes_on);
	takt_gpu_events_close(listen->events);
	pthread_mutex_lock(&listen->lock);
	listen->ended = true;
	pthread_cond_broadcast(&listen->wake);
	pthread_mutex_unlock(&listen->lock);
	unref(listen);
	return NULL;
}

int takt_gpu_listen_open(const char *nvml_path, const char *const *uuids, uint32_t count,
			 struct takt_gpu_listen **ret, struct takt_err *err)
{
	struct takt_gpu_listen *listen = takt_zalloc(sizeof(*listen));
	int rc;

	if (!listen)
		return takt_err_set(err, -ENOMEM, "events of GPUs");
	atomic_init(&listen->refs, 2);
	pthread_mutex_init(&listen->lock, NULL);
	takt_cond_init_mono(&listen->wake);
	takt_strcpy(listen->nvml_path, sizeof(listen->nvml_path), nvml_path ? nvml_path : "");
	listen->count = count < TAKT_DEVICE_MAX_GPUS ? count : TAKT_DEVICE_MAX_GPUS;
	for (uint32_t gpu = 0; gpu < listen->count; gpu++)
		takt_strcpy(listen->uuids[gpu], sizeof(listen->uuids[gpu]), uuids[gpu]);
	takt_strcpy(listen->why, sizeof(listen->why), "the driver has not answered yet");
	rc = takt_worker_thread(&listen->thread, "xids", listen_main, listen);
	if (rc < 0) {
		atomic_store(&listen->refs, 1);
		unref(listen);
		return takt_err_set(err, rc, "the thread that hears XIDs");
	}
	*ret = listen;
	return 0;
}

void takt_gpu_listen_close(struct takt_gpu_listen *listen)
{
	struct timespec at;
	bool ended;

	if (!listen)
		return;
	clock_gettime(CLOCK_MONOTONIC, &at);
	at.tv_sec += 1;
	pthread_mutex_lock(&listen->lock);
	listen->want_stop = true;
	pthread_cond_broadcast(&listen->wake);
	while (!listen->ended &&
	       pthread_cond_timedwait(&listen->wake, &listen->lock, &at) != ETIMEDOUT)
		;
	ended = listen->ended;
	pthread_mutex_unlock(&listen->lock);
	if (ended)
		pthread_join(listen->thread, NULL);
	else
		pthread_detach(listen->thread);
	unref(listen);
}

bool takt_gpu_listen_next(struct takt_gpu_listen *listen, struct takt_heard *ret)
{
	bool has;

	pthread_mutex_lock(&listen->lock);
	has = listen->taken < listen->put;
	if (has)
		*ret = listen->heard[listen->taken++ % HEARD];
	pthread_mutex_unlock(&listen->lock);
	return has;
}

bool takt_gpu_listen_heard(struct takt_gpu_listen *listen, struct takt_mono since)
{
	bool heard;

	pthread_mutex_lock(&listen->lock);
	heard = listen->looked_at.ns >= since.ns;
	listen->look_now = !heard;
	if (!heard)
		pthread_cond_broadcast(&listen->wake);
	pthread_mutex_unlock(&listen->lock);
	return heard;
}

void takt_gpu_listen_why(struct takt_gpu_listen *listen, char ret[TAKT_LISTEN_WHY])
{
	pthread_mutex_lock(&listen->lock);
	takt_strcpy(ret, TAKT_LISTEN_WHY, listen->why);
	pthread_mutex_unlock(&listen->lock);
}
