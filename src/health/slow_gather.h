/* SPDX-License-Identifier: Apache-2.0 */
/* Looks at a running job for some seconds: at its GPUs through the driver, or through the caller
 * where the driver cannot be had, and at its threads through /proc. Changes nothing. */
#ifndef TAKT_HEALTH_SLOW_GATHER_H
#define TAKT_HEALTH_SLOW_GATHER_H

#include "base/vec.h"
#include "health/slow.h"

enum {
	TAKT_SLOW_MAX_THREADS = 65536,
	TAKT_SLOW_MAX_ROOTS = 64,
};

struct takt_slow_ask {
	const char *nvml_path; /* as in takt_machine_config */
	uint32_t interval_ms;  /* 0 = 100 */
	uint64_t window_ns;
	uint32_t gpu_count;
	char (*uuid)[96]; /* of the job's GPUs; borrowed */
	/* Its processes, and those below them, are looked at. */
	uint32_t root_count;
	int32_t roots[TAKT_SLOW_MAX_ROOTS];
	/* A reading of each, in the order of uuid, where the driver cannot be asked here; a GPU
	 * without one has no bits. False: none to be had now. */
	bool (*read)(void *ctx, struct takt_gpu_reading *ret);
	void *ctx;
};

/* Fills window_ns, the threads and what is known of each GPU (indices are the caller's). Fails for
 * want of memory alone: -ENOMEM. `why` (of TAKT_ERR_MSG): "" or why the driver was not asked. */
int takt_slow_gather(const struct takt_slow_ask *ask, struct takt_slow_facts *ret, char *why);

/* Threads of some processes, looked at again and again. */
struct takt_slow_thread {
	int32_t pid, tid;
	uint32_t ran; /* looks at which it ran or wanted to */
};
struct takt_slow_threads {
	TAKT_VEC(int32_t) pids;
	TAKT_VEC(struct takt_slow_thread) at;
	uint32_t looks, processes, threads; /* the latter two: the most at one look */
	uint64_t ran, waited;		    /* sums over threads and looks */
};
/* Finds the processes: the roots and all that descend from them. */
int takt_slow_threads_find(struct takt_slow_threads *threads, const int32_t *roots,
			   uint32_t root_count);
int takt_slow_threads_look(struct takt_slow_threads *threads);
int takt_slow_threads_sum_up(struct takt_slow_threads *threads, struct takt_slow_facts *ret);
void takt_slow_threads_fini(struct takt_slow_threads *threads);

#endif
