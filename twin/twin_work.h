/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a workload gets on: in which phase of its step it is, how fast it goes there, and when that
 * changes. A position is an exact number (nanoseconds of work and billionth parts of one), so the
 * moment at which a phase ends does not depend on how often anybody looks.
 */
#ifndef TAKT_TWIN_TWIN_WORK_H
#define TAKT_TWIN_TWIN_WORK_H

#include "twin_layout.h"

/* What the GPU's clocks and other loads leave to a load. */
struct twin_pace {
	uint32_t mhz, max_mhz;		  /* SM */
	uint32_t part_permille;		  /* of the GPU, in an instance of it */
	uint32_t share_permille;	  /* of its wish for SMs */
	uint32_t memory_stretch_permille; /* 1000 = all bandwidth that is wished for is there */
	uint32_t bus_stretch_permille;	  /* 1000 = PCI Express as the board has it */
};

/* Work of one step with all phases. 0 for a profile that does not compute. */
uint64_t twin_work_cycle_ns(const struct twin_load *load);

/* The phase that it is in; waiting for the others of its job counts as one. NULL if it has none. */
const struct twin_phase *twin_work_phase(const struct twin_load *load);

/* Nanoseconds of work a second of time in its present phase. */
uint64_t twin_work_speed(const struct twin_load *load, const struct twin_pace *pace);

/* Time until its phase ends at that speed, UINT64_MAX if it never does. */
uint64_t twin_work_until_ns(const struct twin_load *load, uint64_t speed);

/* Moves on by `times` stretches of `ns`. */
void twin_work_advance(struct twin_load *load, uint64_t speed, uint64_t ns, uint64_t times);

#endif
