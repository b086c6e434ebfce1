/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One epoch of a governed job, built from samples of its GPUs and from what the job says of its
 * progress. What was not told by every GPU, or not by the job, is left out of the observation and
 * never stands for zero.
 *
 * Of several GPUs: means (energy too: what one of them took), the highest temperature, every
 * throttle reason. Work is the job's own counter, at the rate between its first and its last word
 * of the epoch; of several ranks that tell, the slowest one's. Latency is the longest of theirs,
 * load what they answer together. Of a job that says nothing work is what the activity counters of
 * its GPUs make of it (govern_counters.h), where they have such; else it is the driver's
 * utilisation times the clock, which takes for granted that the job slows down as its clock does.
 *
 * An epoch is one of the setting it was begun for only while the boards keep to that. One that ran
 * at another clock, at work and held back by nothing it knows of, was set by somebody else.
 */
#ifndef TAKT_DAEMON_GOVERN_EPOCH_H
#define TAKT_DAEMON_GOVERN_EPOCH_H

#include <stdbool.h>
#include <stdint.h>

#include "clock/governor.h"
#include "daemon/govern_counters.h"
#include "device/device.h"
#include "telemetry/progress_ranks.h"

/* Sums over the samples of one GPU. */
struct takt_epoch_gpu {
	uint64_t seq;	       /* of the newest sample taken; 0 = none */
	uint32_t samples, has; /* has: what every sample had */
	uint64_t first_at_ns, last_at_ns;
	uint64_t first_mj, last_mj;
	uint64_t sm_mhz, mem_mhz, power_mw, gpu_util_pct, mem_util_pct;
	uint64_t busy_mhz_pct; /* utilisation times clock */
	uint64_t throttle;
	int32_t temp_c;
	struct takt_counters counters;
	/* Of samples late enough for the clock to have come to where it is to be; of them, those at
	 * work (device/at_work.h). */
	uint32_t late, at_work;
	uint64_t at_work_mhz;
	uint32_t busy_mhz; /* the highest of one under load */
};

/* What work is measured by: the same in all epochs that are compared with each other. */
struct takt_epoch_basis {
	enum takt_governor_signal signal; /* NONE: nothing tells what this job gets done */
	uint32_t unit;			  /* JOB: takt_epoch_unit() */
	uint32_t parts;			  /* COUNTERS: takt_epoch_parts() */
	uint32_t highest_mhz;		  /* the board's; 0 = not known */
	/* Others use its GPUs too: what the counters of those say is not of this job. */
	bool shared;
};

struct takt_epoch_rank {
	uint32_t has;			       /* counters it tells; 0: it does not, or has ended */
	bool told;			       /* first and last are something */
	struct takt_progress_file first, last; /* said in this epoch */
};

struct takt_epoch {
	uint64_t begun_ns; /* monotonic: the setting was there */
	uint32_t gpu_count;
	struct takt_epoch_gpu gpu[TAKT_DEVICE_MAX_GPUS]; /* of the job, in order */
	struct takt_epoch_rank rank[TAKT_PROGRESS_MAX_RANKS];
};

void takt_epoch_begin(struct takt_epoch *epoch, uint32_t gpu_count, uint64_t now_ns);
/* A sample that is new and was read within the epoch counts; any other is passed over. */
void takt_epoch_sample(struct takt_epoch *epoch, uint32_t which, const struct takt_gpu_facts *facts,
		       const struct takt_gpu_reading *reading);
/* Of those that live (takt_progress_living()). */
void takt_epoch_progress(struct takt_epoch *epoch, const struct takt_progress_said *said);
/* Every rank has said its first word in this epoch, and there is one. */
bool takt_epoch_is_told(const struct takt_epoch *epoch);

/* The counter that work is measured by: steps before tokens before queries; 0 = it says none. */
uint32_t takt_epoch_unit(const struct takt_progress_file *said);
/* Whether each rank that counts in this unit said enough in this epoch to know its rate. */
bool takt_epoch_has_rate(const struct takt_epoch *epoch, uint32_t unit, uint64_t now_ns);

/* Whether all GPUs tell their activity: if the epoch has none yet it will have. */
bool takt_epoch_has_counters(const struct takt_epoch *epoch);
/* Parts that all GPUs told throughout, enough of them for work to be measured by; 0 = none. */
uint32_t takt_epoch_parts(const struct takt_epoch *epoch, uint64_t now_ns);
/* Whether these did something that can be measured: of a job of which they see hardly anything
 * (integers in the caches, say) utilisation says more. */
bool takt_epoch_parts_work(const struct takt_epoch *epoch, uint32_t parts);

/* Whether every GPU kept to a ceiling of max_mhz, as far as it can be told; *ret_which: the first
 * that did not, and the mean clock that it had. reach_mhz: the highest that each was seen to run at
 * (clock/fit.h), which this epoch may raise. */
bool takt_epoch_keeps_to(const struct takt_epoch *epoch, uint32_t max_mhz,
			 uint32_t reach_mhz[TAKT_DEVICE_MAX_GPUS], uint32_t *ret_which,
			 uint32_t *ret_mhz);

/* What a governor is told of it; gap, setting and remaining time are the caller's to add. */
void takt_epoch_observe(const struct takt_epoch *epoch, const struct takt_epoch_basis *basis,
			uint64_t now_ns, struct takt_governor_observation *ret);

#endif
