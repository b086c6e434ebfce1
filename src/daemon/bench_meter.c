/* SPDX-License-Identifier: Apache-2.0 */
/* takt-bench meter: the meter behind a pipe. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/bench.h"
#include "daemon/meter.h"

enum {
	TURN_MS = 50
};

static void print_mark(const struct takt_meter_mark *mark)
{
	char energy[24] = "-";

	if (mark->has_energy)
		snprintf(energy, sizeof(energy), "%llu", (unsigned long long)mark->energy_mj);
	printf("mark %llu %s %llu %llu %llu %llu\n", (unsigned long long)mark->at_ns, energy,
	       (unsigned long long)mark->power_sum_mw, (unsigned long long)mark->power_count,
	       (unsigned long long)mark->sm_sum_mhz, (unsigned long long)mark->sm_count);
}

static void answer(struct takt_meter *meter)
{
	struct takt_meter_mark mark;
	struct takt_err err;

	if (takt_meter_mark(meter, &mark, &err) < 0)
		printf("lost %s: %s\n", err.msg, takt_err_sentence(err.rc));
	else
		print_mark(&mark);
}

static void tell_events(struct takt_meter *meter)
{
	struct takt_gpu_event event;
	char text[64];

	while (takt_meter_event(meter, &event)) {
		takt_gpu_event_text(&event, text, sizeof(text));
		printf("event %s\n", text);
	}
}

/* True while there is somebody who may ask. */
static bool serve_input(struct takt_meter *meter)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
	char bytes[64];
	ssize_t n;

	if (poll(&input, 1, TURN_MS) <= 0)
		return true;
	n = read(STDIN_FILENO, bytes, sizeof(bytes));
	for (ssize_t i = 0; i < n; i++)
		if (bytes[i] == '\n')
			answer(meter);
	return n > 0 || (n < 0 && errno == EINTR);
}

int takt_bench_meter_main(int argc, char **argv)
{
	const char *nvml = NULL;
	struct takt_meter *meter;
	struct takt_err err = {0};
	int first = 1, rc;

	if (argc > 2 && strcmp(argv[1], "--nvml") == 0) {
		nvml = argv[2];
		first = 3;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	rc = takt_meter_open(nvml, (const char *const *)argv + first, (uint32_t)(argc - first),
			     &meter, &err);
	if (rc < 0) {
		printf("lost %s\n", err.msg);
		return takt_err_exit_status(rc);
	}
	printf("ready %d %s\n", takt_meter_simulated(meter), takt_meter_gpu_name(meter));
	if (takt_meter_deaf(meter)[0])
		printf("deaf %s\n", takt_meter_deaf(meter));
	else
		printf("hears\n");
	do {
		takt_meter_turn(meter);
		tell_events(meter);
	} while (serve_input(meter));
	takt_meter_close(meter);
	return 0;
}
