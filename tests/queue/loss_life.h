/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A machine that takt runs on, and one life of the daemon on it: store, local engine and queue over
 * the fake disk, wired and started as daemon does it, with a few users. A life ends by a cut: of
 * the power, or of the daemon alone.
 */
#ifndef TAKT_TESTS_LOSS_LIFE_H
#define TAKT_TESTS_LOSS_LIFE_H

#include "engine/engine.h"
#include "loss_procs.h"
#include "queue/queue.h"
#include "sys_vfs.h"

enum {
	LOSS_GPUS = 4
};

struct loss_machine {
	struct fake_sys *world;
	struct sys_vfs *vfs;
	struct loss_procs procs;
	struct witness witness;
	struct takt_rng rng;
	bool no_sync;		/* SQLite does not sync */
	bool kill_only;		/* a cut kills the daemon, the machine stays on */
	bool stages;		/* jobs are staged */
	bool may_not_start;	/* calls fail: takt may refuse to start */
	bool was_cut;		/* the last life did not come to its end */
	unsigned submits;	/* still to come */
	unsigned cancel_one_in; /* a turn; 0 = never */
	unsigned anew_one_in;	/* the same: a job that runs is to begin anew */

	/* The daemon; NULL between lives. */
	struct takt_store *store;
	struct takt_engine *engine;
	struct takt_queue *queue;
};

void loss_machine_init(struct loss_machine *machine, uint64_t seed);
void loss_machine_fini(struct loss_machine *machine);

/*
 * Starts the daemon, lets users and jobs go on for some turns, and cuts at call `cut` of the disk
 * from now on (0 = after the last turn; with kill_only calls of the daemon alone are counted).
 */
void loss_machine_live(struct loss_machine *machine, unsigned turns, unsigned long cut);

/* The last life: no new jobs, no cut, until all have ended; then the witness judges. True when all
 * is well, else see machine->witness.why. */
bool loss_machine_settle(struct loss_machine *machine);

#endif
