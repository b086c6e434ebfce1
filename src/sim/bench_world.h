/* SPDX-License-Identifier: Apache-2.0 */
/* What a run of `takt bench sched` works on: the cluster, the mix, tenants; for its files only. */
#ifndef TAKT_SIM_BENCH_WORLD_H
#define TAKT_SIM_BENCH_WORLD_H

#include "base/vec.h"
#include "sched/cluster.h"
#include "sched/tenant.h"
#include "sim/bench_sched.h"
#include "sim/fgd_typical.h"
#include "sim/sim_cluster.h"
#include "sim/sim_work.h"

enum {
	BENCH_RACK_NODES = 16,
	BENCH_TEAMS = 8, /* tenants at the top ... */
	BENCH_USERS = 8, /* ... and below each */
	BENCH_MAX_TASKS = 1 << 24,
};

/* Read once, shared by all runs. */
struct bench_input {
	const struct takt_placement *placement;
	struct takt_sim_cluster cluster;
	struct takt_sim_work work;
	struct takt_fgd_typical typical;
};

int takt_bench_read(const struct takt_bench_config *config, struct bench_input *ret,
		    struct takt_err *err);
void takt_bench_input_fini(struct bench_input *input);

struct bench_draw {
	uint32_t kind;	/* cluster's */
	uint32_t milli; /* GPU, in all */
};

struct bench_task {
	uint32_t kind;
	uint32_t tenant;
	struct takt_slot slot;
};

struct bench_world {
	struct takt_cluster *cluster;
	struct takt_tenants *tenants;	 /* NULL without quotas */
	uint32_t rack_level;		 /* 0 without topology */
	TAKT_VEC(uint32_t) kinds;	 /* cluster's, by the work's */
	TAKT_VEC(struct bench_draw) mix; /* what each job of the file asks for, close together */
	TAKT_VEC(struct bench_task) running;
	uint64_t capacity_milli;
	uint64_t setup_ns, warm_ns;
};

/* Empty, with every kind asked for once. */
int takt_bench_build(const struct takt_bench_config *config, const struct bench_input *input,
		     struct bench_world *ret, struct takt_err *err);
void takt_bench_world_fini(struct bench_world *world);

/* The i-th of BENCH_TEAMS * (BENCH_USERS + 1): teams first. They may together have the cluster
 * twice over, and a user half of what a team may: some are refused, and not all. */
struct takt_tenant takt_bench_tenant(uint32_t i, uint64_t capacity_milli);

/* bench_planner.c */
int takt_bench_planner(const struct takt_bench_config *config, const struct bench_input *input,
		       struct takt_bench_result *ret, struct takt_err *err);

/* bench_sched.c: sorts the times. -ENOMEM. */
int takt_bench_percentiles(uint32_t *ns, size_t count, struct takt_bench_class *ret);
uint64_t takt_bench_per_s(uint64_t count, uint64_t ns);

uint64_t takt_bench_now_ns(void);
uint64_t takt_bench_cpu_ns(void); /* of this thread */

#endif
