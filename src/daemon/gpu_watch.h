/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that watch GPUs share: gpu_watch.c, gpu_drain.c, gpu_shares.c. */
#ifndef TAKT_DAEMON_GPU_WATCH_H
#define TAKT_DAEMON_GPU_WATCH_H

#include "daemon/daemon.h"

/* The GPU is given to nobody, and why; or again to anybody. */
void takt_watch_set_aside(struct takt_daemon *daemon, uint32_t gpu, bool aside, const char *why);

/* The same while the rules of health find it unfit (gpu_health.c). */
void takt_watch_set_ill(struct takt_daemon *daemon, uint32_t gpu, bool ill, const char *why);

/* gpu_drain.c: jobs have left it; is it clean of them? */
void takt_watch_check_drain(struct takt_daemon *daemon, uint32_t gpu,
			    const struct takt_gpu_reading *reading, bool outside,
			    struct takt_mono now, struct takt_boot boot);
/* That cannot be said for now, since `what`. */
void takt_watch_keep_draining(struct takt_daemon *daemon, uint32_t gpu, const char *what,
			      struct takt_boot boot);

/* Has one that drains looked at when it is time to. */
void takt_watch_ask_drain(struct takt_daemon *daemon, uint32_t gpu, struct takt_boot boot);

/* The GPU was left just now. */
void takt_watch_drain(struct takt_daemon *daemon, uint32_t gpu);

/* drain_kept.c: what is known of a drain, over a restart. The job was placed on the GPU, where
 * nobody else is, and what is used of it is known; nobody has it, and it is clean. */
void takt_drain_keep(struct takt_daemon *daemon, uint32_t gpu, const struct takt_queue_job *job);
void takt_drain_forget(struct takt_daemon *daemon, uint32_t gpu);

/* gpu_shares.c: what jobs use of a GPU that they share. */
void takt_watch_shares(struct takt_daemon *daemon, uint32_t gpu,
		       const struct takt_gpu_reading *reading, bool outside, struct takt_mono now);

#endif
