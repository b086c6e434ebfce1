/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a GPU's activity counters (device/vitals.h) said in one epoch of a governed job, and how
 *much work that was: the second best word on a job's speed, after its own.
 *
 * The driver tells activity as means between two reads of the slow part of a sample, about a second
 * apart. Such a window counts when it lies in the epoch as a whole; one that began before the
 * setting was there is of two settings.
 *
 * Work, of one GPU, in a second:
 *
 *	DRAM + 8 * (TENSOR + FP64 + FP32 + FP16) * clock / highest clock
 *
 * DRAM is the used share of the memory's bandwidth, so it counts bytes (the memory's clock is not
 * changed for jobs); the others are shares of cycles in which a pipe worked, so that times the
 * clock they count instructions. For one mix of kernels each is proportional to what the job gets
 * done at whatever SM clock, and so is any sum of them with fixed weights: the unit does not depend
 * on the setting. A maximum of them, as is proposed elsewhere, would change its unit where another
 * one becomes the largest. SM activity is not part of it: it says that warps were there, not that
 * they did anything, and stays at 1 where a job waits for memory. Pipes weigh eight times as much
 * because what a cache spares the memory depends on the clock, and instructions do not. Which parts
 * are summed is fixed for a job with the first epoch that tells.
 *
 * Measured on tables of others (bench/clocks_signals.py): relative error of 3.0 % (root of the mean
 * square; 138 microbenchmarks at nine clocks down to 0.41 of the highest, Quadro RTX 8000), 1.6 %
 * for nine real programs there; utilisation times the clock: 17 % and 22 %. None of it is from a
 * board with GPM.
 */
#ifndef TAKT_DAEMON_GOVERN_COUNTERS_H
#define TAKT_DAEMON_GOVERN_COUNTERS_H

#include "device/device.h"

struct takt_counters {
	uint64_t slow_ns; /* when the newest slow part was read: windows begin there; 0 = none */
	uint32_t tells;	  /* parts (1 << enum takt_active) that the newest sample has */
	uint32_t parts;	  /* that all windows of the epoch have */
	uint64_t ns;	  /* that those cover */
	uint64_t ppm_ns[TAKT_ACTIVE_COUNT];
};

/* An epoch begins: what was read last stays known. */
void takt_counters_begin(struct takt_counters *counters);
/* Any sample that is neither stale nor lost, in order of time. */
void takt_counters_add(struct takt_counters *counters, const struct takt_gpu_reading *reading,
		       uint64_t begun_ns);

/* Whether the board tells the parts that work needs at least, now. */
bool takt_counters_are_there(const struct takt_counters *counters);
/* Parts that work is the sum of, where windows cover half of so much time; 0 = none. */
uint32_t takt_counters_parts(const struct takt_counters *counters, uint64_t passed_ns);

/* Mean of a part over the epoch, a millionth; of one that `parts` has. */
double takt_counters_ppm(const struct takt_counters *counters, enum takt_active part);
/* Sum of these parts, without weights: 1 = one of them worked all the time. */
double takt_counters_sum(const struct takt_counters *counters, uint32_t parts);
/* In a second, as above; clock_share: of the highest clock. */
double takt_counters_work(const struct takt_counters *counters, uint32_t parts, double clock_share);

#endif
