/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the plan cannot know about why a job waits: who has set a GPU aside and what for, whose
 * process from outside is on it.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "daemon/daemon.h"
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

static bool add_order(struct takt_daemon *daemon, uint32_t gpu, char *text, size_t size)
{
	char note[240];

	takt_orders_note(daemon->orders, gpu, takt_wall_now(daemon->sys), note, sizeof(note));
	if (note[0])
		append(text, size, "; GPU %u: %s", gpu, note);
	return note[0] != '\0';
}

void takt_api_why_more(struct takt_daemon *daemon, enum takt_why why, char *text, size_t size)
{
	uint32_t named = 0;

	if (why != TAKT_WHY_GPUS && why != TAKT_WHY_OUTSIDE && why != TAKT_WHY_UNHEALTHY &&
	    why != TAKT_WHY_RESERVATION && why != TAKT_WHY_ORDER)
		return;
	for (uint32_t gpu = 0; gpu < daemon->gpu_count && named < MOST; gpu++)
		named += add_order(daemon, gpu, text, size) || add_outside(daemon, gpu, text, size);
}
