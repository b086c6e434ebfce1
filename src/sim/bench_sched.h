/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast the scheduler's core decides: `takt bench sched`.
 *
 * A cluster of equal nodes, and a mix: the requests of a workload file, as often as they stand
 * there. Tasks are drawn from the mix by the seed, with repetition.
 *
 * fill: tasks arrive until what was asked for is the whole cluster's; none ends. Rates are over the
 * time of all decisions, rejections among them: CPU time of the one thread, so that they are one
 * core's whatever else the machine does; wall time is given beside it.
 *
 * churn: filled to `load_permille`; then tasks arrive while less is held, and one drawn by the seed
 * ends while not: so many operations, placements and releases.
 *
 * Everything runs twice: once with a clock around the whole for the rates, once with one around
 *each decision for the percentiles (two readings of the clock are in each of these). The naive scan
 *is timed on a sample of the second run: after a decision the same question is asked of both, and
 *the answers must be the same, else the measurement fails.
 *
 * Features, in the order in which a decision meets them:
 *	quota	 tenants in two levels that take, and are refused beyond their limits
 *	gang	 one task in eight brings up to seven like itself: all are placed, or none
 *	topology a gang stands in one rack; the tightest that has room is tried first
 *	why	 every rejection is followed by its reasons, nodes counted by cause
 *
 * With planner_batch the mix goes through the whole scheduler instead (bench_planner.c): so many
 *jobs arrive, one plan is made and taken. It runs once; a placement's time is its plan's divided by
 *the jobs in it, and nothing is compared with a scan.
 */
#ifndef TAKT_SIM_BENCH_SCHED_H
#define TAKT_SIM_BENCH_SCHED_H

#include <stdint.h>

#include "base/err.h"

enum {
	TAKT_BENCH_GANG = 1u << 0,
	TAKT_BENCH_TOPOLOGY = 1u << 1,
	TAKT_BENCH_QUOTA = 1u << 2,
	TAKT_BENCH_WHY = 1u << 3,
	TAKT_BENCH_MAX_NODES = 1 << 20,
	TAKT_BENCH_MAX_GPUS = 64, /* a node */
	TAKT_BENCH_MAX_BATCH = 1000000,
};

struct takt_bench_config {
	const char *mix; /* path of a file with openb's pod columns, or any that a trace may have */
	const char *cluster; /* path of a node list, repeated up to `nodes`; NULL = uniform */
	uint32_t nodes;
	uint32_t gpus;		    /* a node */
	int64_t cpu_milli, mem_mib; /* a node */
	bool churn;
	uint32_t features;
	uint32_t load_permille; /* of churn */
	uint64_t operations;	/* of churn */
	uint32_t naive_samples;
	uint32_t planner_batch; /* jobs a plan; 0 = the core alone, without the planner */
	uint64_t seed;
	const char *placement; /* name of a policy; NULL = "takt" */
};

struct takt_bench_class {
	uint64_t count;
	uint64_t ns;			  /* of all of them, from the second run */
	uint64_t p50_ns, p99_ns, p999_ns; /* 0 if there are none */
};

struct takt_bench_result {
	uint64_t nodes, gpus, kinds;
	uint64_t setup_ns;	  /* nodes entered */
	uint64_t warm_ns;	  /* every kind asked for once on the empty cluster */
	uint64_t snapshot_ns;	  /* all nodes and tasks entered again into an empty cluster */
	uint64_t wall_ns, cpu_ns; /* of the first run's decisions */
	uint64_t asked_milli, held_milli;   /* at the end */
	struct takt_bench_class placements; /* tasks placed, one by one or in gangs */
	struct takt_bench_class releases;
	struct takt_bench_class rejections;
	uint64_t naive_count, naive_ns; /* decisions */
	uint64_t node_bytes, index_bytes, other_bytes;
	uint64_t placements_per_s, ops_per_s, rejections_per_s, naive_per_s;
	double ratio_to_naive;
};

/* -EINVAL for an unknown policy, -TAKT_E_CORRUPT when the naive scan chose otherwise. */
int takt_bench_sched(const struct takt_bench_config *config, struct takt_bench_result *ret,
		     struct takt_err *err);

#endif
