/* SPDX-License-Identifier: Apache-2.0 */
/* The collector of "why is my training slow": GPUs and threads, ten times a second. */
#include "health/slow_gather.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/sys.h"

enum {
	INTERVAL_MS = 100,
	NO_GPU = TAKT_DEVICE_MAX_GPUS,
};

struct gather {
	const struct takt_slow_ask *ask;
	struct takt_machine *machine;	      /* NULL = the caller reads */
	uint32_t place[TAKT_DEVICE_MAX_GPUS]; /* in the machine; NO_GPU = not there */
	uint64_t seq[TAKT_DEVICE_MAX_GPUS];
	struct takt_slow_watch *watch;	  /* owned; one a GPU */
	struct takt_gpu_reading *reading; /* owned; one a GPU */
	struct takt_slow_threads threads;
};

static uint64_t now_ns(void)
{
	return takt_mono_now(takt_sys_real()).ns;
}

static void sleep_until(uint64_t ns)
{
	struct timespec at = {(time_t)(ns / TAKT_NS_PER_S), (long)(ns % TAKT_NS_PER_S)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
		;
}

static uint32_t place_of(const struct takt_machine *machine, const char *uuid)
{
	for (uint32_t i = 0; i < takt_machine_info(machine)->gpu_count; i++)
		if (strcmp(takt_machine_facts(machine, i)->uuid, uuid) == 0)
			return i;
	return NO_GPU;
}

/* A driver that does not know the job's GPUs is another machine's. */
static void open_driver(struct gather *g, char *why)
{
	struct takt_machine_config config = {.source = TAKT_SOURCE_NVML,
					     .nvml_path = g->ask->nvml_path,
					     .no_processes = true,
					     .vitals = true};
	struct takt_err err = {0};
	bool all = true;

	why[0] = '\0';
	if (takt_machine_open(&config, &g->machine, &err) < 0) {
		takt_strcpy(why, TAKT_ERR_MSG, err.msg);
		return;
	}
	for (uint32_t i = 0; i < g->ask->gpu_count; i++) {
		g->place[i] = place_of(g->machine, g->ask->uuid[i]);
		all = all && g->place[i] != NO_GPU;
	}
	if (all)
		return;
	takt_machine_close(g->machine);
	g->machine = NULL;
	takt_strcpy(why, TAKT_ERR_MSG, "the driver here does not know the job's GPUs");
}

static void look_at_gpus(struct gather *g)
{
	const struct takt_slow_ask *ask = g->ask;
	bool read = g->machine || ask->read(ask->ctx, g->reading);

	for (uint32_t i = 0; read && i < ask->gpu_count; i++) {
		if (g->machine &&
		    (takt_machine_reading(g->machine, g->place[i], &g->reading[i]) < 0 ||
		     g->reading[i].seq == g->seq[i] || g->reading[i].stale))
			continue;
		g->seq[i] = g->reading[i].seq;
		takt_slow_see(&g->watch[i], &g->reading[i]);
	}
	for (uint32_t i = 0; g->machine && i < ask->gpu_count; i++)
		takt_machine_tick(g->machine, g->place[i]);
}

static int watch(struct gather *g)
{
	const struct takt_slow_ask *ask = g->ask;
	uint64_t interval_ns = (ask->interval_ms ? ask->interval_ms : INTERVAL_MS) * TAKT_NS_PER_MS;
	uint64_t begin_ns = now_ns(), found_ns = 0, at_ns = begin_ns;
	int rc = 0;

	for (; rc == 0 && at_ns - begin_ns <= ask->window_ns; at_ns += interval_ns) {
		sleep_until(at_ns);
		look_at_gpus(g);
		if (found_ns == 0 || at_ns - found_ns >= TAKT_NS_PER_S) {
			rc = takt_slow_threads_find(&g->threads, ask->roots, ask->root_count);
			found_ns = at_ns;
		}
		if (rc == 0)
			rc = takt_slow_threads_look(&g->threads);
		if (now_ns() > at_ns + interval_ns) /* late: what was missed is not made up for */
			at_ns = now_ns();
	}
	return rc;
}

static int sum_up(struct gather *g, struct takt_slow_facts *ret)
{
	static const struct takt_gpu_facts nothing;

	ret->window_ns = g->ask->window_ns;
	ret->gpu_count = g->ask->gpu_count;
	for (uint32_t i = 0; i < ret->gpu_count; i++)
		takt_slow_sum_up(&g->watch[i],
				 g->machine ? takt_machine_facts(g->machine, g->place[i])
					    : &nothing,
				 &ret->gpu[i]);
	return takt_slow_threads_sum_up(&g->threads, ret);
}

int takt_slow_gather(const struct takt_slow_ask *ask, struct takt_slow_facts *ret, char *why)
{
	struct gather g = {.ask = ask};
	int rc = -ENOMEM;

	g.watch = takt_calloc(ask->gpu_count + 1, sizeof(*g.watch));
	g.reading = takt_calloc(ask->gpu_count + 1, sizeof(*g.reading));
	if (g.watch && g.reading) {
		open_driver(&g, why);
		rc = watch(&g);
	}
	if (rc == 0)
		rc = sum_up(&g, ret);
	takt_machine_close(g.machine);
	takt_slow_threads_fini(&g.threads);
	takt_free(g.watch);
	takt_free(g.reading);
	return rc;
}
