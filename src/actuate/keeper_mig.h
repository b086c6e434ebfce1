/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps each GPU cut into the MIG instances that an administrator asked for, or else as it is
 * declared to be cut, or else as it was found: under the journal, the lock and the guard of the
 * clocks, in a record of its own.
 *
 * A layout is set or put back by one call on the GPU's worker, which destroys nothing while a
 * process is on the GPU. What could not be put back is tried again until it is.
 */
#ifndef TAKT_ACTUATE_KEEPER_MIG_H
#define TAKT_ACTUATE_KEEPER_MIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mig_layout.h"
#include "base/timetypes.h"

struct takt_keeper_mig {
	bool changed;		    /* perhaps not as found; the journal says so */
	bool was_changed;	    /* before the latest set began */
	bool owed;		    /* to be put as declared even if takt changed nothing */
	char found[TAKT_MIG_TEXT];  /* changed: before takt did it */
	char wish[TAKT_MIG_TEXT];   /* "" = as declared or found */
	char stands[TAKT_MIG_TEXT]; /* the wish that is in force, "" = none */
	enum takt_keeper_mig_step {
		TAKT_MIG_IDLE,
		TAKT_MIG_LOOKING, /* how it is cut before takt changes it */
		TAKT_MIG_SETTING,
		TAKT_MIG_RESTORING,
	} step;
	struct takt_boot since; /* of the step */
	bool overdue;
	bool settled; /* the newest wish was tried once */
	struct takt_err outcome;
	uint32_t failures;     /* in a row, to put it back */
	struct takt_boot next; /* not to be tried before */
	char note[160];
};

struct takt_keeper;
struct takt_keeper_gpu;
struct takt_journal_record;

/* -TAKT_E_UNSUPPORTED: no setters, no MIG, or its mode is off, which takt leaves to administrators.
 */
int takt_keeper_mig_may(const struct takt_keeper *keeper, uint32_t gpu, struct takt_err *err);

/* "" = as declared, else as found. -EINVAL, -TAKT_E_UNSUPPORTED (as above) and
 * -TAKT_E_BUSY (a change is under way) leave what was wished before. */
int takt_keeper_mig_set(struct takt_keeper *keeper, uint32_t gpu, const char *layout,
			struct takt_boot now, struct takt_err *err);

/* Nothing is wished any more; also while a change is under way. */
void takt_keeper_mig_end(struct takt_keeper *keeper, uint32_t gpu, struct takt_boot now);

/* Parts of the functions of the same name in keeper.h. */
void takt_keeper_mig_declare(struct takt_keeper *keeper, uint32_t gpu, struct takt_boot now);
int takt_keeper_mig_recover(struct takt_keeper *keeper, const struct takt_journal_record *record,
			    struct takt_boot now, struct takt_err *err);
void takt_keeper_mig_step(struct takt_keeper *keeper, struct takt_keeper_gpu *gpu,
			  struct takt_boot now);
struct takt_boot takt_keeper_mig_due(const struct takt_keeper *keeper,
				     const struct takt_keeper_gpu *gpu);

/* The GPU's worker has a setter of ours: no other can be posted. */
bool takt_keeper_mig_flies(const struct takt_keeper_mig *mig);

/* It should be as declared or found, and perhaps is not. */
bool takt_keeper_mig_to_be_put_back(const struct takt_keeper_mig *mig);

#endif
