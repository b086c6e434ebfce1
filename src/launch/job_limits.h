/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a job is held to. Plain numbers: the daemon fills them in, they travel to the launcher in
 * the request itself, and the launcher looks up what they stand for. Nothing of it is read from a
 * file that the job's user could change.
 */
#ifndef TAKT_LAUNCH_JOB_LIMITS_H
#define TAKT_LAUNCH_JOB_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

enum {
	TAKT_LIMITS_CPU_WORDS = 16, /* 1024 CPUs */
	TAKT_LIMITS_MAX_GPUS = 64,
	TAKT_LIMITS_MAX_CAPS = 256, /* two a MIG instance */
};

struct takt_job_limits {
	uint32_t cpu_milli;		      /* thousandths of a CPU; 0 = no limit */
	uint32_t cpu_count;		      /* CPUs of `cpus`; 0 = any */
	uint64_t cpus[TAKT_LIMITS_CPU_WORDS]; /* bit n of word n / 64 */
	uint64_t mem_mib;		      /* 0 = no limit */
	uint32_t processes;		      /* and threads; 0 = no limit */
	bool staged;	 /* its GPUs are chosen later; until then it opens none */
	bool any_device; /* which nodes its GPUs have is not known: nothing is closed */
	uint16_t gpu_count, cap_count;
	uint16_t gpu_minor[TAKT_LIMITS_MAX_GPUS]; /* N of /dev/nvidiaN */
	uint16_t cap_minor[TAKT_LIMITS_MAX_CAPS]; /* N of /dev/nvidia-caps/nvidia-capN */
};

#endif
