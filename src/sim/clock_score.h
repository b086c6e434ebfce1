/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Governors over whole tables: each (dataset, gpu, actuator) apart, each workload with each seed,
 * beside the settings that one could have chosen for all. docs/research/clocks-replay.md
 * defines the figures.
 */
#ifndef TAKT_SIM_CLOCK_SCORE_H
#define TAKT_SIM_CLOCK_SCORE_H

#include "sim/clock_run.h"
#include "sim/sim_stats.h"

enum {
	TAKT_SCORE_MAX_LENGTHS = 16,
	TAKT_SCORE_MAX_NOISES = 16,
	TAKT_SCORE_MAX_GOVERNORS = 64,
	TAKT_SCORE_MAX = 65536,
	TAKT_SCORE_MIN_SAVING_PERMILLE = 10, /* below it a workload's own share says nothing */
};

struct takt_score_governor {
	const struct takt_governor *governor;
	const struct takt_governor_param *params;
	size_t param_count;
	bool train; /* its state goes through all other workloads first */
};

/* Standard deviations of an epoch's measurement, relative. */
struct takt_score_noise {
	double time, power;
};
_Static_assert(sizeof(struct takt_score_noise) == 2 * sizeof(double),
	       "no padding: it is compared as bytes");

struct takt_score_config {
	const struct takt_clock_points *points;
	struct takt_clock_world world; /* but for the noise */
	struct takt_score_noise noises[TAKT_SCORE_MAX_NOISES];
	size_t noise_count;
	const struct takt_score_governor *governors;
	size_t governor_count;
	uint32_t max_slowdown_permille;
	uint32_t lengths[TAKT_SCORE_MAX_LENGTHS]; /* of jobs, epochs */
	size_t length_count;
	uint64_t first_seed, last_seed;
	uint32_t phases;  /* workloads that a job consists of */
	unsigned threads; /* 0 = one a core; results do not depend on it */
	int (*progress)(void *ctx, size_t done, size_t count); /* optional; negative stops */
	void *progress_ctx;
};

struct takt_score_workload {
	const struct takt_clock_curve *curve; /* the first phase's; borrowed */
	double optimum_saved_pct, saved_pct;  /* saved_pct: mean over seeds */
	double slowdown_pct, slowdown_max_pct;
	size_t violating_jobs;
};

/* One governor, or a setting for all, on one board with jobs of one length at one noise. */
struct takt_score {
	const struct takt_clock_curve *board; /* any curve of it; borrowed */
	struct takt_score_noise noise;
	char governor[48];
	bool trained;
	double setting; /* of settings for all; 0 = a governor */
	uint32_t epochs;
	size_t runs, violating_jobs;
	double optimum_saved_pct;
	struct takt_sim_stat share_pct, saved_pct, slowdown_pct; /* over seeds */
	double slowdown_p95_pct, slowdown_max_pct;
	double violating_epochs_pct, overhead_time_pct, overhead_energy_pct;
	double settling_loss_pct; /* of what the optimum saves in the whole job */
	double changes;		  /* of the setting, a job */
	size_t worst;		  /* the workload with the lowest share; SIZE_MAX = none saves */
	TAKT_VEC(struct takt_score_workload) workloads;
};

struct takt_scores {
	TAKT_VEC(struct takt_score) all;
};

int takt_clock_score(const struct takt_score_config *config, struct takt_scores *ret,
		     struct takt_err *err);
void takt_scores_fini(struct takt_scores *scores);

/* Do both stand in one table: the same board, with the same noise? */
bool takt_score_together(const struct takt_score *a, const struct takt_score *b);

/* Percent of the optimum's saving; NAN where it saves nothing. */
double takt_score_share_pct(const struct takt_score_workload *workload);

#endif
