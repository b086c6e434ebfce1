/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one physical model: clock -> voltage -> power -> temperature -> throttling -> speed of the
 * simulated work -> energy.
 *
 *   voltage      v(r) = max(floor, 1 - slope * (1 - r)), r = f / fmax
 *   power        P = idle + held * r v^2 + sum over loads (dynamic * activity * r v^2)
 *                    + memory * bandwidth in use + leak * (T - 30 C)
 *   temperature  one RC: it moves towards ambient + R * P with time constant tau; R is the board's,
 *                less with faster fans, more with blocked air
 *   power cap    the highest supported clock at which P stays under the limit
 *   thermal      at the board's maximum operating temperature the limit becomes the power that
 *                holds it; at the slowdown temperature, and under the power brake, the clock is
 *                halved
 *   speed        1 / (1 + a * (fmax / f - 1) + (1 - a) * (bandwidth wished for / there - 1)),
 * shared when loads ask for more than the whole GPU (twin_work.h)
 *
 * (form and calibration: fits of measured clock sweeps; see the board files for each number).
 *
 * Between two events (a cell boundary, the end of a lease or of a workload's phase) everything is
 * constant, and all is integer arithmetic: advancing to t in one step or in many gives the same
 * state, bit for bit, in every process. Once the temperature stands still, any number of cells is
 * one step.
 */
#ifndef TAKT_TWIN_PHYSICS_H
#define TAKT_TWIN_PHYSICS_H

#include "twin_layout.h"

/* A GPU as it leaves the factory, at `now_ns`. */
void twin_physics_init(struct twin_gpu *gpu, const struct twin_board *board, uint64_t now_ns);

/* No two specimens are alike: a little warmer a place, a little more or less power. `draw` is any
 * number; the same one gives the same specimen. Only right after init. */
void twin_physics_vary(struct twin_gpu *gpu, const struct twin_board *board, uint64_t draw);

/* Bring the state forward to `now_ns`; a time in the past changes nothing. */
void twin_physics_advance(struct twin_gpu *gpu, const struct twin_board *board, uint64_t now_ns);

/* Work out again what follows from settings and loads, after they were changed. */
void twin_physics_settle(struct twin_gpu *gpu, const struct twin_board *board);

/* Power at a clock with the present loads and temperature, in microwatts. */
uint32_t twin_physics_power_uw(const struct twin_gpu *gpu, const struct twin_board *board,
			       uint32_t sm_mhz);

/* The highest clock at which the part of power that follows the clock is no more than so many
 * permille of what it is at the top. */
uint32_t twin_physics_clock_of(const struct twin_board *board, uint32_t permille);

/* The phase that a load computes in at this moment, NULL if it does not compute. */
const struct twin_phase *twin_physics_phase(const struct twin_gpu *gpu,
					    const struct twin_load *load);

/* Permille of the GPU that a load may use at most: its part of an instance that it shares, or all.
 */
uint32_t twin_physics_part(const struct twin_gpu *gpu, const struct twin_load *load);

/* Progress of a load in nanoseconds of work a second of time, at the present clock. */
uint64_t twin_physics_speed(const struct twin_gpu *gpu, const struct twin_board *board,
			    const struct twin_load *load);

/* What the fans are told: by whoever set them, or by the temperature. */
uint32_t twin_physics_fan_target(const struct twin_gpu *gpu, const struct twin_board *board);

/* Readings, as the board would report them. */
uint32_t twin_physics_power_reading_mw(const struct twin_gpu *gpu, const struct twin_board *board,
				       bool average);
uint32_t twin_physics_util_percent(const struct twin_gpu *gpu);
uint32_t twin_physics_memory_util_percent(const struct twin_gpu *gpu);
uint64_t twin_physics_memory_used(const struct twin_gpu *gpu);

/* Is this entry a process that runs, as far as anybody noticed? */
static inline bool twin_load_alive(const struct twin_load *load)
{
	return load->pid != 0 && load->gone_ns == 0;
}

#endif
