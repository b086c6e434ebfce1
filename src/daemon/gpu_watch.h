/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that watch GPUs share: gpu_watch.c, gpu_drain.c, gpu_shares.c. */
#ifndef TAKT_DAEMON_GPU_WATCH_H
#define TAKT_DAEMON_GPU_WATCH_H

#include "daemon/daemon.h"

/* The GPU is given to nobody, and why; or again to anybody. */
void takt_watch_set_aside(struct takt_daemon *daemon, uint32_t gpu, bool aside, const char *why);

/* gpu_drain.c: jobs have left it; is it clean of them? */
void takt_watch_check_drain(struct takt_daemon *daemon, uint32_t gpu,
			    const struct takt_gpu_reading *reading, bool outside,
			    struct takt_mono now, struct takt_boot boot);
/* That cannot be said for now, since `what`. */
void takt_watch_keep_draining(struct takt_daemon *daemon, uint32_t gpu, const char *what,
			      struct takt_boot boot);

/* gpu_shares.c: what jobs use of a GPU that they share. */
void takt_watch_shares(struct takt_daemon *daemon, uint32_t gpu,
		       const struct takt_gpu_reading *reading, bool outside, struct takt_mono now);

#endif
