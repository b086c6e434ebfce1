/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The quick way to sample a whole machine: one thread that goes through all GPUs, so that a tick
 * costs one waking instead of one a GPU. Idle is what takt is most of the time, and there the
 * waking is dearer than the driver calls.
 *
 * Internal to device. A GPU is sampled under the same rules as by its own worker (worker.h: one
 * thread in the driver for it, no lock held there). A round that the driver holds up is overtaken:
 * at the next tick takt_rounds_ask() refuses, and each GPU's own worker is asked instead, until the
 * thread is back. So a hanging GPU delays the others by one tick, once.
 */
#ifndef TAKT_DEVICE_ROUNDS_H
#define TAKT_DEVICE_ROUNDS_H

#include "device/worker.h"

struct takt_rounds;

/* Takes references to the source and its workers, in the order in which they are to be sampled.
 * `reads_facts`: the first round begins at once and reads the facts of the GPUs whose workers have
 * no threads of their own. */
int takt_rounds_start(struct takt_source *source, struct takt_worker *const *workers,
		      uint32_t count, bool reads_facts, struct takt_rounds **ret,
		      struct takt_err *err);
/* Until no round is under way; false: one is, at the deadline. */
bool takt_rounds_await(struct takt_rounds *rounds, struct takt_mono deadline);
/* False: still in an earlier round. */
bool takt_rounds_ask(struct takt_rounds *rounds);
/* Asks the thread to end and waits for it until `deadline`, then lets go either way. NULL is fine.
 */
void takt_rounds_stop(struct takt_rounds *rounds, struct takt_mono deadline);

#endif
