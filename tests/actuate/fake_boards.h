/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPUs that do as they are told, for the tests of the actuator: device.h and device_set.h over
 * plain memory. The test reads and writes the boards directly: `locked`, `range` and
 * `power_limit_mw` and `mem_locked` are the witness of what was done to them, whatever the journal
 * says.
 */
#ifndef TAKT_TESTS_FAKE_BOARDS_H
#define TAKT_TESTS_FAKE_BOARDS_H

#include "clock/range.h"
#include "device/device.h"
#include "device/device_set.h"

struct fake_board {
	struct takt_gpu_facts facts; /* 210 to 1980 MHz in steps of 15 */
	bool locked;
	struct takt_clock_range range; /* locked: to this */
	unsigned sets, resets;	       /* calls on the clock that reached the driver */
	uint32_t power_limit_mw;       /* 400 W at first; 100 to 400 W are taken */
	unsigned power_sets;
	bool mem_locked;
	struct takt_clock_range mem_range;
	unsigned mem_sets; /* locks and unlocks */
	uint64_t ecc_corrected, ecc_uncorrected;
	bool no_ecc;
	uint32_t runs_at_mhz; /* what the SM clock reads; 0: the top of what is allowed */
	uint32_t util_pct;
	uint32_t power_mw; /* 0: not told */
	uint64_t throttle;
	uint32_t has_not; /* of enum takt_gpu_has: what it does not say */

	char mig[TAKT_MIG_TEXT]; /* how it is cut; facts->mig_layout is what was seen of it */
	unsigned mig_sets;
	bool mig_asked;	 /* a look has not been answered */
	bool mig_shows;	 /* looks are answered also while it hangs */
	bool mig_in_use; /* a process is on it: nothing is destroyed */
	int mig_rc;	 /* -EPERM: as it is; another: with half of it done */

	int set_rc, reset_rc, power_rc, mem_rc; /* what the driver answers; 0: it does it */
	bool no_power_reading;
	bool hangs;	   /* calls are taken and do not come back */
	bool hangs_inside; /* behind the gate, in the driver itself: they will have an effect */
	bool stray;	   /* such a call, of one who gave up on it */
	struct takt_set_call stray_call;
	struct takt_gpu_facts known; /* what the facts are when the board answers */
	bool silent_samples;	     /* samples are not answered */

	bool posted, finished;
	struct takt_set_call call;
	struct takt_err result;
	uint64_t seq;
};

struct takt_machine {
	struct takt_machine_info info;
	struct fake_board boards[TAKT_DEVICE_MAX_GPUS];
};

/* `count` boards with UUIDs GPU-fake-0, GPU-fake-1, ... */
void fake_boards_init(struct takt_machine *machine, uint32_t count);

/* What takt_machine_open finds, borrowed; NULL: no driver. */
extern struct takt_machine *_Atomic fake_boards_installed;

/* A process opens the driver: a board that hangs then does not say who it is. */
void fake_boards_open(struct takt_machine *machine);

/* A process lets go of the driver; a call that hangs inside it goes on without him. */
void fake_boards_let_go(struct takt_machine *machine);

/* What went on is done, or will never be: nobody of whom it is lives any more. */
void fake_boards_end_stray(struct takt_machine *machine, uint32_t gpu, bool done);

/* The board answers again: what hung is done now. */
void fake_boards_unhang(struct takt_machine *machine, uint32_t gpu);

#endif
