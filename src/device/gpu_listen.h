/* SPDX-License-Identifier: Apache-2.0 */
/*
 * XIDs of a machine's GPUs, heard by a thread of its own: a driver that hangs holds up nobody else.
 * It looks once a second, and begins anew when the driver was loaded anew.
 */
#ifndef TAKT_DEVICE_GPU_LISTEN_H
#define TAKT_DEVICE_GPU_LISTEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/timetypes.h"

enum {
	TAKT_LISTEN_WHY = 160
};

enum takt_heard_kind {
	TAKT_HEARD_XID,
	TAKT_HEARD_LOADED, /* the driver was loaded anew: what was is over, on every GPU */
};

struct takt_heard {
	enum takt_heard_kind kind;
	uint32_t gpu; /* position among the UUIDs */
	uint32_t xid;
	struct takt_mono at; /* when it was heard */
};

struct takt_gpu_listen;

/* Listens to the GPUs of these UUIDs (64 at most; "" = one that is not known), from a moment after
 * this returns. Whether the driver tells anything at all is known later: takt_gpu_listen_why. Heap
 * object; close ends the thread, one that is stuck in the driver is left behind. NULL is fine. */
int takt_gpu_listen_open(const char *nvml_path, const char *const *uuids, uint32_t count,
			 struct takt_gpu_listen **ret, struct takt_err *err);
void takt_gpu_listen_close(struct takt_gpu_listen *listen);

/* The next that was heard, the oldest first; false when there is none. Of a flood the oldest are
 * lost. */
bool takt_gpu_listen_next(struct takt_gpu_listen *listen, struct takt_heard *ret);
/* Whether all is heard that the driver told by `since`; else the thread, which asks it once a
 * second, asks now: look again soon. */
bool takt_gpu_listen_heard(struct takt_gpu_listen *listen, struct takt_mono since);
/* Why not all GPUs are heard at present; "" = all are. */
void takt_gpu_listen_why(struct takt_gpu_listen *listen, char ret[TAKT_LISTEN_WHY]);

#endif
