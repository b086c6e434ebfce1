/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPUs that do as they are told, for the tests of the actuator: device.h and device_set.h over
 * plain memory. The test reads and writes the boards directly: `locked` and `range` are the witness
 * of what was done to them, whatever the journal says.
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
	unsigned sets, resets;	       /* calls that reached the driver */

	int set_rc, reset_rc; /* what the driver answers; 0: it does it */
	bool hangs;	      /* calls are taken and do not come back */
	bool silent_samples;  /* samples are not answered */

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

/* The board answers again: what hung is done now. */
void fake_boards_unhang(struct takt_machine *machine, uint32_t gpu);

#endif
