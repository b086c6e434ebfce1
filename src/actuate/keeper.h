/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps each GPU at what is wished for it: a lease's range, or the baseline. Actuator and guard are
 * both built on it; a guard is a keeper to whom nothing is ever wished but the baseline.
 *
 * A wish is stated once and the keeper works towards it, a step at a time and never waiting:
 * journal (durable), driver, read back; when the driver refuses or hangs, again after a pause that
 * doubles from 250 ms to 30 s. A GPU is "settled" when the wish it has now was tried once: the
 * outcome is then known, good or bad, though a bad one may still be worked on.
 *
 * What a board holds is known only by what was done to it: `held` is BASELINE, RANGE or UNKNOWN,
 * and UNKNOWN from the moment a setter is begun until its outcome is certain.
 */
#ifndef TAKT_ACTUATE_KEEPER_H
#define TAKT_ACTUATE_KEEPER_H

#include <stdbool.h>
#include <stdint.h>

#include "actuate/actuate.h"
#include "actuate/baseline.h"
#include "actuate/journal.h"
#include "actuate/mandate.h"
#include "base/timetypes.h"
#include "device/device.h"

enum {
	TAKT_KEEPER_NOTE = 160
};

struct takt_keeper_gpu {
	const struct takt_gpu_facts *facts; /* borrowed from the machine; no UUID: it did not answer
					       when takt started, and is left alone */

	enum takt_keeper_held {
		TAKT_HELD_BASELINE,
		TAKT_HELD_RANGE,
		TAKT_HELD_UNKNOWN,
	} held;
	struct takt_clock_range held_range; /* RANGE */

	bool wish_range; /* false: the baseline is wished for */
	struct takt_clock_range wish;
	uint64_t wish_lease, wish_job;
	uint64_t wish_number; /* counts wishes of this GPU */
	struct takt_boot wished_at;
	bool forced; /* the baseline is to be set even if nothing is known to have changed it */
	bool settled;
	struct takt_err outcome; /* settled: of this wish */

	enum takt_keeper_flight {
		TAKT_FLIGHT_NONE,
		TAKT_FLIGHT_SET,
		TAKT_FLIGHT_RESTORE,
	} flight; /* the setter that was posted and has not finished */
	struct takt_clock_range flight_range;
	enum takt_keeper_held held_before;
	struct takt_boot posted_at;
	bool overdue;

	bool reading; /* waits for a sample newer than after_seq */
	uint64_t after_seq;
	struct takt_boot read_until;
	uint32_t readback_mhz; /* 0 = not readable */

	bool denied;	       /* no permission: the wish is advice */
	bool silent;	       /* lost, or did not answer in time */
	bool record_owed;      /* restored, but the journal could not be told yet */
	uint32_t failures;     /* in a row */
	struct takt_boot next; /* not to be tried before */
	char note[TAKT_KEEPER_NOTE];
};

struct takt_keeper {
	const struct takt_sys *sys; /* all borrowed until the end */
	struct takt_machine *machine;
	struct takt_journal *journal;
	struct takt_mandate *mandate;
	const struct takt_baseline *baseline; /* NULL: what the journal's records say */
	struct takt_actuate_log log;
	uint64_t call_deadline_ns;

	bool guarded; /* somebody would restore if this process died; without it nothing is set */
	bool stale;   /* lost the right to set: the owner must stop */
	char boot_id[TAKT_JOURNAL_BOOT];
	char driver_load[TAKT_DRIVER_LOAD];
	uint32_t unseen; /* GPUs on record as changed that this machine does not show now */
	uint32_t gpu_count;
	struct takt_keeper_gpu gpus[TAKT_ACTUATE_MAX_GPUS];
};

/* Fills what follows `call_deadline_ns` (0: 2 s); the caller has filled what precedes it. */
void takt_keeper_init(struct takt_keeper *keeper);

/* Takes over what the journal says: what was left changed in this boot and driver load is going to
 * be restored, what a reboot or reload undid is marked clean, and each is said in the log. */
int takt_keeper_recover(struct takt_keeper *keeper, struct takt_boot now, struct takt_err *err);

/* Index of a GPU, -1 when no GPU here has this UUID. */
int takt_keeper_find(const struct takt_keeper *keeper, const char *uuid);

/* A wish that equals the present one changes nothing. `range` is clamped to the driver's list here:
 * -EINVAL, -TAKT_E_UNSUPPORTED (no list, no setters) leave the old wish. */
int takt_keeper_set(struct takt_keeper *keeper, uint32_t gpu, struct takt_clock_range range,
		    uint64_t lease_id, uint64_t job_id, struct takt_boot now, struct takt_err *err);
void takt_keeper_restore(struct takt_keeper *keeper, uint32_t gpu, struct takt_boot now);

/* Restores in any case, which also undoes what somebody else did to the board: for an administrator
 * who asks for it. */
void takt_keeper_reset(struct takt_keeper *keeper, uint32_t gpu, struct takt_boot now);

/* Does what can be done now; returns when to come back at the latest. Also to be called when the
 * machine's eventfd says that something has finished. */
struct takt_boot takt_keeper_step(struct takt_keeper *keeper, struct takt_boot now);

enum takt_actuate_gpu_state takt_keeper_state(const struct takt_keeper_gpu *gpu);

/* Every GPU is at its baseline, and the journal says so. */
bool takt_keeper_all_clean(const struct takt_keeper *keeper);

/* No setter is under way, but for those that have been overdue. */
bool takt_keeper_quiet(const struct takt_keeper *keeper);

#endif
