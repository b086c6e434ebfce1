/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the plan cannot know about why a job waits: who has set a GPU aside and what for, whose
 * process from outside is on it, which of the GPUs that it names are in use.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "daemon/daemon.h"
#include "daemon/gpu_health.h"
#include "daemon/gpu_mig.h"
#include "daemon/gpu_orders.h"

enum {
	MOST = 3, /* GPUs that are named */
};

TAKT_PRINTF(3, 4) static void append(char *text, size_t size, const char *fmt, ...)
{
	size_t used = strlen(text);
	va_list args;

	va_start(args, fmt);
	if (vsnprintf(text + used, size - used, fmt, args) >= (int)(size - used))
		text[used] = '\0'; /* whole or not at all */
	va_end(args);
}

/* The first process on the GPU that is not of the job that holds it. False when none was seen. */
static bool find_outside(struct takt_daemon *daemon, uint32_t gpu, int32_t *ret_pid,
			 const struct takt_proc_who **ret)
{
	struct takt_mono now = takt_mono_now(daemon->sys);
	const struct takt_gpu_reading *reading;
	uint64_t holder;

	if (!daemon->watch[gpu].outside ||
	    takt_telemetry_latest(daemon->telemetry, gpu, now, &reading) < 0)
		return false;
	takt_queue_gpu(daemon->queue, gpu, &holder);
	for (uint32_t i = 0; i < reading->proc_count; i++) {
		*ret_pid = reading->procs[i].pid;
		*ret = takt_proc_who(daemon->procs, *ret_pid, now);
		if ((*ret)->job_id == 0 || (*ret)->job_id != holder)
			return true;
	}
	return false;
}

static bool add_outside(struct takt_daemon *daemon, uint32_t gpu, char *text, size_t size)
{
	const struct takt_proc_who *who;
	char user[33] = "";
	int32_t pid;

	if (!find_outside(daemon, gpu, &pid, &who))
		return false;
	if (who->uid != UINT32_MAX)
		takt_user_name(who->uid, user, sizeof(user));
	append(text, size, "; GPU %u: process %d%s%s is not takt's", gpu, pid,
	       user[0] ? " of " : "", user);
	return true;
}

/* What is to come keeps from a GPU who waits for a reservation, and nobody else. */
static bool add_order(struct takt_daemon *daemon, uint32_t gpu, enum takt_why why, char *text,
		      size_t size)
{
	struct takt_wall now = takt_wall_now(daemon->sys);
	char note[240];

	takt_orders_note(daemon->orders, gpu, now, note, sizeof(note));
	if (!note[0] && daemon->watch[gpu].ill)
		takt_health_note(daemon->health, gpu, note, sizeof(note));
	if (!note[0])
		takt_strcpy(note, sizeof(note), takt_mig_note(daemon->mig, gpu));
	if (!note[0] && why == TAKT_WHY_RESERVATION)
		takt_orders_next(daemon->orders, gpu, now, note, sizeof(note));
	if (note[0])
		append(text, size, "; GPU %u: %s", gpu, note);
	return note[0] != '\0';
}

/* Of those that it names. */
static bool add_use(struct takt_daemon *daemon, uint32_t gpu, char *text, size_t size)
{
	size_t count;
	const struct takt_queue_holding *holdings = takt_queue_holdings(daemon->queue, &count);

	if (gpu >= daemon->gpu_count) {
		append(text, size, "; GPU %u is not there", gpu);
		return true;
	}
	for (size_t i = 0; i < count; i++)
		if (holdings[i].gpu == gpu) {
			append(text, size, "; GPU %u is in use", gpu);
			return true;
		}
	return false;
}

static void add_named(struct takt_daemon *daemon, uint64_t named, char *text, size_t size)
{
	uint32_t told = 0;

	for (; named && told < MOST; named &= named - 1)
		told += add_use(daemon, (uint32_t)__builtin_ctzll(named), text, size);
}

static bool is_of_gpus(enum takt_why why)
{
	return why == TAKT_WHY_GPUS || why == TAKT_WHY_OUTSIDE || why == TAKT_WHY_UNHEALTHY ||
	       why == TAKT_WHY_RESERVATION || why == TAKT_WHY_ORDER;
}

void takt_api_why_more(struct takt_daemon *daemon, enum takt_why why, uint64_t named, char *text,
		       size_t size)
{
	uint64_t among = named ? named : UINT64_MAX;
	uint32_t told = 0;

	if (is_of_gpus(why) || why == TAKT_WHY_FRACTION || why == TAKT_WHY_DEV_MEMORY ||
	    why == TAKT_WHY_MIG || why == TAKT_WHY_IMPOSSIBLE)
		add_named(daemon, named, text, size);
	if (!is_of_gpus(why))
		return;
	for (uint32_t gpu = 0; gpu < daemon->gpu_count && told < MOST; gpu++)
		told += (among >> gpu & 1) && (add_order(daemon, gpu, why, text, size) ||
					       add_outside(daemon, gpu, text, size));
}

/* The plan knows of no GPUs; it cannot know that there are some. */
enum takt_why takt_api_why_no_driver(const struct takt_daemon *daemon, enum takt_why why,
				     const struct takt_jobspec *spec, char *text, size_t size)
{
	const char *why_none = takt_machine_info(daemon->machine)->why_none;
	bool is_for_gpus = why == TAKT_WHY_IMPOSSIBLE || why == TAKT_WHY_UNHEALTHY ||
			   why == TAKT_WHY_GPUS || why == TAKT_WHY_FRACTION ||
			   why == TAKT_WHY_DEV_MEMORY;

	if (!why_none[0] || !spec->gpus || !is_for_gpus)
		return why;
	snprintf(text, size, "no GPU is to be seen: %s%s", why_none,
		 daemon->looks_for_driver ? "; takt looks again every few seconds" : "");
	return TAKT_WHY_UNHEALTHY;
}
