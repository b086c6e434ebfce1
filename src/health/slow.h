/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "Why is my training slow": readings of a running job's GPUs and looks at its threads in, one
 * answer a cause out, with the evidence, and the cause that holds the job up most. Where what was
 * seen fits two causes, both are UNKNOWN and say what would tell them apart. All of this is pure;
 * slow_gather.h collects.
 */
#ifndef TAKT_HEALTH_SLOW_H
#define TAKT_HEALTH_SLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "device/device.h"

/* Valid bits of struct takt_slow_gpu. */
enum takt_slow_has {
	TAKT_SLOW_UTIL = 1u << 0,
	TAKT_SLOW_MEM_UTIL = 1u << 1,
	TAKT_SLOW_SM_CLOCK = 1u << 2,
	TAKT_SLOW_SM_MAX = 1u << 3,
	TAKT_SLOW_POWER = 1u << 4,
	TAKT_SLOW_POWER_LIMIT = 1u << 5,
	TAKT_SLOW_POWER_DEFAULT = 1u << 6,
	TAKT_SLOW_THROTTLE = 1u << 7,
	TAKT_SLOW_HELD_POLICIES = 1u << 8,
	TAKT_SLOW_HELD_REASONS = 1u << 9,
	TAKT_SLOW_NVLINK = 1u << 10,
	TAKT_SLOW_ACTIVE = 1u << 11, /* shifted by enum takt_active: each part alone */
};

/* One of the job's GPUs over the time that was looked; means, in permille of that time. */
struct takt_slow_gpu {
	uint32_t index, has;
	bool shared;	     /* others' work is in these readings, too */
	bool held_by_takt;   /* the clock or the power limit was set through takt */
	uint32_t util;	     /* of the time, some kernel ran */
	uint32_t mem_util;   /* of the time, memory was read or written */
	uint32_t sm_mhz;     /* while it worked */
	uint32_t sm_max_mhz; /* of the board */
	uint32_t power_mw, power_limit_mw, power_default_mw;
	uint32_t heat, brake; /* of the working readings, those with such a reason */
	uint32_t at_limit;    /* the same: the power limit */
	uint32_t held[TAKT_HELD_COUNT];
	uint32_t active[TAKT_ACTIVE_COUNT];
	uint32_t nvlink; /* of what its links carry one way, the busier way */
};

enum {
	TAKT_SLOW_TEXT = 240
};

/* Of the job's communication library, the operation that takes longest. */
struct takt_slow_nccl {
	bool known;
	char operation[64];
	uint32_t gpu, ranks, nodes;
	uint64_t bus_bytes_s, operation_us;
};

struct takt_slow_facts {
	uint64_t window_ns; /* that was looked */
	uint32_t gpu_count;
	struct takt_slow_gpu gpu[TAKT_DEVICE_MAX_GPUS];
	/* The job's threads; host_known false = they could not be seen. Thousandths of a thread, on
	 * average over the looks. */
	bool host_known;
	uint32_t processes, threads;
	uint32_t cpu_milli;    /* that ran or wanted a CPU */
	uint32_t lead_milli;   /* of these, the busiest ones, as many as there are GPUs */
	uint32_t within_milli; /* of these, the others of the same processes */
	uint32_t io_milli;     /* that waited for a disk or a file server */
	struct takt_slow_nccl nccl;
};

/* In the order in which they are named: what stands first explains what follows. */
enum takt_slow_cause {
	TAKT_SLOW_THROTTLING,
	TAKT_SLOW_IMBALANCE,
	TAKT_SLOW_DATA,
	TAKT_SLOW_LAUNCH,
	TAKT_SLOW_COMMUNICATION,
	TAKT_SLOW_MEMORY,
	TAKT_SLOW_COMPUTE,
	TAKT_SLOW_CAUSES,
};
extern const char *const takt_slow_causes[TAKT_SLOW_CAUSES]; /* "throttling", ... */

enum takt_slow_answer {
	TAKT_SLOW_NO,
	TAKT_SLOW_UNKNOWN,
	TAKT_SLOW_PART, /* it costs something, and is not what the job waits for */
	TAKT_SLOW_YES,
	TAKT_SLOW_ANSWERS,
};
extern const char *const takt_slow_answers[TAKT_SLOW_ANSWERS]; /* "NO", "UNKNOWN", ... */

struct takt_slow_row {
	enum takt_slow_answer answer;
	uint64_t gpus; /* by index; 0 = all of the job's */
	char evidence[TAKT_SLOW_TEXT];
	char next[TAKT_SLOW_TEXT]; /* what would tell, or what to do; "" = nothing */
};

struct takt_slow_verdict {
	struct takt_slow_row row[TAKT_SLOW_CAUSES];
	bool found;
	enum takt_slow_cause bottleneck; /* when found */
};

void takt_slow_judge(const struct takt_slow_facts *facts, struct takt_slow_verdict *ret);
/* 0: the GPUs' own speed is what limits it; 1: something else; 3: not found. */
int takt_slow_exit(const struct takt_slow_verdict *verdict);

/* Sums of the readings of one GPU. Zeroed at the beginning. */
struct takt_slow_watch {
	uint32_t utils, mem_utils, clocks, powers, throttles, slow_parts;
	uint64_t util, mem_util, sm_mhz, power_mw, heat, brake, at_limit;
	uint32_t actives[TAKT_ACTIVE_COUNT];
	uint64_t active[TAKT_ACTIVE_COUNT];
	struct takt_mono first_at, last_at; /* of the slow parts */
	struct takt_gpu_vitals first, last;
	struct takt_gpu_reading reading; /* the newest */
};
void takt_slow_see(struct takt_slow_watch *watch, const struct takt_gpu_reading *reading);
/* What follows from them; index, shared and held_by_takt are the caller's. */
void takt_slow_sum_up(const struct takt_slow_watch *watch, const struct takt_gpu_facts *facts,
		      struct takt_slow_gpu *ret);

#endif
