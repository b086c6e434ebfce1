/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What GPUs use and how fast they run between two moments, and what goes wrong meanwhile: the
 * instrument of takt tune and takt bench gpu, in processes of their own.
 */
#ifndef TAKT_DAEMON_METER_H
#define TAKT_DAEMON_METER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "device/gpu_events.h"

/* Sums since the meter was opened: the difference of two marks is what was between them. */
struct takt_meter_mark {
	uint64_t at_ns;	    /* CLOCK_MONOTONIC */
	bool has_energy;    /* every GPU counts it */
	uint64_t energy_mj; /* of all GPUs */
	/* Of readings meanwhile, 20 a second and GPU: the mean is sum / count. No power of several
	 * GPUs, from then on, when one of them did not tell its own. */
	uint64_t power_sum_mw, power_count, sm_sum_mhz, sm_count;
};

struct takt_meter;

/* GPUs by UUID; none: the first GPU of the machine. nvml_path NULL: the loader's. */
int takt_meter_open(const char *nvml_path, const char *const *uuids, uint32_t count,
		    struct takt_meter **ret, struct takt_err *err);
void takt_meter_close(struct takt_meter *meter); /* NULL is fine */
bool takt_meter_simulated(const struct takt_meter *meter);
const char *takt_meter_gpu_name(const struct takt_meter *meter); /* of its first GPU */
const char *takt_meter_gpu_uuid(const struct takt_meter *meter);
uint32_t takt_meter_gpu_count(const struct takt_meter *meter);
/* "" when events are told, else why not. */
const char *takt_meter_deaf(const struct takt_meter *meter);

/* To be called every 50 ms: adds the newest readings to the sums. */
void takt_meter_turn(struct takt_meter *meter);
bool takt_meter_event(struct takt_meter *meter, struct takt_gpu_event *ret);
/* Reads anew. -ETIMEDOUT when a GPU does not answer, -ENODEV when it is lost. */
int takt_meter_mark(struct takt_meter *meter, struct takt_meter_mark *ret, struct takt_err *err);

#endif
