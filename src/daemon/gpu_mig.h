/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How GPUs are cut into MIG instances, while takt runs: what the driver shows, MIG mode included,
 * is looked at every few seconds and told to the queue, and an administrator's order goes to the
 * actuator. An order needs a drained GPU with no job and no process on it, and until it is done
 * nobody gets anything of that GPU.
 */
#ifndef TAKT_DAEMON_GPU_MIG_H
#define TAKT_DAEMON_GPU_MIG_H

#include "codec/orders.h"
#include "daemon/daemon.h"

struct takt_mig;

int takt_mig_new(struct takt_daemon *daemon, struct takt_mig **ret, struct takt_err *err);
void takt_mig_free(struct takt_mig *mig); /* NULL is fine */

/* For the queue at the start: GPUs that are cut, their instances, and what they may be cut into
 * later. `ret` and `ret_kinds` have room for each GPU's most. */
uint32_t takt_mig_list(const struct takt_daemon *daemon, struct takt_queue_instance *ret,
		       uint64_t *ret_cut);
uint32_t takt_mig_kinds(const struct takt_daemon *daemon, struct takt_queue_instance *ret);

void takt_mig_tick(struct takt_mig *mig, struct takt_boot now);

/* After something of what it asks about has changed: no job gets an instance of a GPU whose layout
 * is being changed, is to be put back, or has not been looked at since. */
void takt_mig_close(struct takt_mig *mig);
/* Nothing new is to start on the GPU, for one of those reasons, since a job holds an instance of it
 * that is gone, or since somebody has switched MIG mode. */
bool takt_mig_waits(const struct takt_mig *mig, uint32_t gpu);
/* That somebody has, and what to do; "" = nobody. NULL is fine. */
const char *takt_mig_note(const struct takt_mig *mig, uint32_t gpu);

/* Whether the GPU may be cut now: it is in MIG mode, nobody is on it, and it is drained or has no
 * instances, so that nobody can come. */
int takt_mig_check(const struct takt_mig *mig, uint32_t gpu, struct takt_err *err);

/* An order of kind TAKT_GPU_MIG by an administrator of that name; finishes with the orders view. */
int takt_mig_order(struct takt_mig *mig, const struct takt_gpu_request *request,
		   const struct takt_peer *peer, struct takt_pending *pending,
		   struct takt_err *err);
/* Whatever the actuator says; NULL is fine. */
void takt_mig_heard(struct takt_mig *mig, const struct takt_actuate_reply *reply);

void takt_mig_view(const struct takt_mig *mig, struct takt_orders_view *ret);

#endif
