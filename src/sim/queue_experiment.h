/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queue policies compared on the same jobs: every policy at every offered load with every seed,
 * over the cores.
 *
 * A load sizes an automatic cluster (as many nodes as keep the load at or below it), and stretches
 * the times between the submissions of a trace on a cluster of given size. Both are reckoned on the
 * trace as it is, also where weeks are drawn anew.
 */
#ifndef TAKT_SIM_QUEUE_EXPERIMENT_H
#define TAKT_SIM_QUEUE_EXPERIMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "sim/gpu_power.h"
#include "sim/queue_arrivals.h"
#include "sim/queue_policy.h"
#include "sim/queue_run.h"
#include "sim/sim_policies.h"
#include "sim/sim_table.h"
#include "sim/throughputs.h"

enum {
	TAKT_QUEUE_MAX_LOADS = 64,
	TAKT_QUEUE_QUANTILES = 101, /* 0 % to 100 % */
};

/* What is believed of run times. */
enum takt_queue_estimates {
	TAKT_ESTIMATES_LEARNED, /* from jobs that have ended before; see queue_learn.h */
	TAKT_ESTIMATES_NONE,
	TAKT_ESTIMATES_GIVEN,	/* the trace's column estimate_s */
	TAKT_ESTIMATES_PERFECT, /* what they will be: for comparison */
	TAKT_ESTIMATES_COUNT
};
extern const char *const takt_queue_estimates_names[]; /* "learned", "none", ... NULL */

struct takt_queue_experiment_config {
	const char *cluster; /* as for takt_sim_cluster_load */
	const char *trace;   /* file of jobs, or with `gavel_jobs` a table of throughputs */
	/* So many jobs are drawn for each seed and load, as Gavel's simulator does; 0 = a trace. */
	uint32_t gavel_jobs;
	const struct takt_queue_policies *policies;
	const struct takt_sim_placements *placements; /* NULL: the scheduler's default */
	uint32_t loads[TAKT_QUEUE_MAX_LOADS]; /* percent; none: the trace and cluster as they are */
	size_t load_count;
	uint64_t first_seed, last_seed;
	bool resample; /* weeks */
	enum takt_queue_estimates estimates;
	uint64_t preempt_cost_ns, checkpoint_ns;
	uint64_t mtbf_ns,
		repair_ns;    /* of a node: mean time between failures, exponential; 0 = none */
	const char *failures; /* a file of failures instead; NULL */
	uint32_t migrate_most;
	const struct takt_gpu_power
		*power; /* of models that the table does not know; NULL = none */
	unsigned threads;
	int (*progress)(void *ctx, size_t done, size_t count);
	void *progress_ctx;
};

/* name for machines, unit, title for people, decimals */
#define TAKT_QUEUE_MEASURES(X)                                          \
	X(JCT_MEAN, jct_mean_s, "s", "JCT mean", 0)                     \
	X(JCT_MEDIAN, jct_median_s, "s", "JCT median", 0)               \
	X(JCT_P99, jct_p99_s, "s", "JCT p99", 0)                        \
	X(WAIT_MEAN, wait_mean_s, "s", "wait mean", 0)                  \
	X(WAIT_MEDIAN, wait_median_s, "s", "wait median", 0)            \
	X(WAIT_P99, wait_p99_s, "s", "wait p99", 0)                     \
	X(MAKESPAN, makespan_s, "s", "makespan", 0)                     \
	X(UTILISATION, utilisation_pct, "%", "GPUs held", 2)            \
	X(RHO_MEAN, rho_mean, "", "rho mean", 3)                        \
	X(RHO_P99, rho_p99, "", "rho p99", 3)                           \
	X(PREEMPTIONS, preemptions_per_job, "", "preemptions a job", 4) \
	X(MIGRATIONS, migrations_per_job, "", "migrations a job", 4)    \
	X(FAILURES, failures_per_job, "", "failures a job", 4)          \
	X(LOST, lost_pct, "%", "GPU time lost", 3)                      \
	X(ENERGY, energy_kwh, "kWh", "energy", 0)

enum takt_queue_measure {
#define X(id, name, unit, title, decimals) TAKT_QUEUE_##id,
	TAKT_QUEUE_MEASURES(X)
#undef X
	TAKT_QUEUE_MEASURE_COUNT
};

extern const struct takt_sim_measure takt_queue_measures[];

/* What is compared: a queue policy with a placement policy. */
struct takt_queue_variant {
	char name[2 * TAKT_SIM_POLICY_NAME + 1]; /* "las", or "las/fgd" with several placements */
	const struct takt_queue_policy *policy;
	const struct takt_placement *placement; /* NULL: the default */
};

/* Of one variant, load and seed. */
struct takt_queue_kpi {
	double values[TAKT_QUEUE_MEASURE_COUNT];
	bool has_energy;
	uint64_t jobs, impossible, preemptions, plans;
	/* Seconds at each percent of the jobs. */
	double jct_s[TAKT_QUEUE_QUANTILES], wait_s[TAKT_QUEUE_QUANTILES];
};

struct takt_queue_experiment {
	const struct takt_queue_experiment_config *config; /* borrowed */
	struct takt_queue_variant *variants;		   /* owned */
	size_t variant_count;
	struct takt_sim_work work;	     /* the trace; empty where jobs are drawn */
	struct takt_throughputs throughputs; /* where jobs are drawn */
	struct takt_sim_cluster *clusters;   /* owned: of each load */
	uint64_t *offered_permille;	     /* owned: of each load, as it came out */
	uint64_t *stretch_permille;	     /* owned: of each load, 0 = submissions as they were */
	size_t load_count;		     /* at least 1 */
	size_t seed_count;
	struct takt_queue_kpi *kpis; /* owned: (variant * load_count + load) * seed_count + seed */
};

/* *ret is overwritten; untouched on failure. */
int takt_queue_experiment(const struct takt_queue_experiment_config *config,
			  struct takt_queue_experiment *ret, struct takt_err *err);
void takt_queue_experiment_fini(struct takt_queue_experiment *experiment);

const struct takt_queue_kpi *takt_queue_kpi(const struct takt_queue_experiment *experiment,
					    size_t variant, size_t load, size_t seed);
/* The results as a table; it borrows the experiment. */
struct takt_sim_table takt_queue_table(const struct takt_queue_experiment *experiment);

#endif
