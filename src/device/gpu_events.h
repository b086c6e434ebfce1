/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What goes wrong on a GPU, as the driver tells it while it happens: XIDs and ECC errors. The calls
 * are made on the caller's thread and may block as long as the driver likes: for processes of their
 * own that measure, and for the thread of gpu_listen.h.
 */
#ifndef TAKT_DEVICE_GPU_EVENTS_H
#define TAKT_DEVICE_GPU_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum takt_gpu_event_kind {
	TAKT_EVENT_XID,
	TAKT_EVENT_ECC_CORRECTED,
	TAKT_EVENT_ECC_UNCORRECTED,
};

struct takt_gpu_event {
	enum takt_gpu_event_kind kind;
	uint32_t gpu;	 /* position among the UUIDs */
	uint64_t number; /* of the XID */
};

struct takt_gpu_events;

/* Listens to the GPUs of these UUIDs (64 at most) from now on. nvml_path as in takt_machine_config.
 * One that tells no such events (many desktop boards have no ECC) is fine as long as it tells some;
 * -TAKT_E_UNSUPPORTED when one tells none, -TAKT_E_NOT_FOUND for an unknown UUID. With ret_deaf
 * (may be NULL) such a GPU is no error but its bit is set. */
int takt_gpu_events_open(const char *nvml_path, const char *const *uuids, size_t count,
			 struct takt_gpu_events **ret, uint64_t *ret_deaf, struct takt_err *err);
/* The next one that has happened: 1, 0 when there is none; does not wait. Negative when the driver
 * tells no more (it was loaded anew): close, and open again. */
int takt_gpu_events_next(struct takt_gpu_events *events, struct takt_gpu_event *ret);
void takt_gpu_events_close(struct takt_gpu_events *events); /* NULL is fine */

/* "XID 79", "a corrected ECC error" */
void takt_gpu_event_text(const struct takt_gpu_event *event, char *buf, size_t size);

#endif
