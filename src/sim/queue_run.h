/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queue of a training cluster on a virtual clock: jobs are submitted, wait, run, are pushed
 * out, fail and end, and takt_sched, the scheduler that the daemon uses, decides which runs where.
 *
 * What is modelled:
 *  - A job has so much work: its duration. On an accelerator of relative speed s (its workload's
 *    figure for the model, permille; 1000 unless told) it gets done in duration / s.
 *  - A job that was pushed out has lost what it did since its last checkpoint. It makes one every
 *    `checkpoint_ns` of running; with 0 it makes none and starts anew. Its next start holds the
 * GPUs for `preempt_cost_ns` before work goes on. Moving a job costs the same, but loses no work.
 *  - A node that fails ends what ran on it, as above, and is back after its repair.
 *  - GPUs are clean the moment their job is over.
 * At one instant everything that happens is told to the scheduler first (ends, failures, repairs,
 * submissions, in this order, the lower number first), then it is asked for a plan, until a plan
 * has nothing more to do.
 */
#ifndef TAKT_SIM_QUEUE_RUN_H
#define TAKT_SIM_QUEUE_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "sched/sched.h"
#include "sim/sim_cluster.h"
#include "sim/sim_work.h"

enum {
	TAKT_QUEUE_START_NS = 1000000000, /* the virtual clock's first instant: never 0 */
	TAKT_QUEUE_MAX_TASKS = 16384,
};

/* A job as the engine runs it. */
struct takt_queue_job {
	uint64_t submit_ns; /* on the virtual clock; ascending over the list */
	uint64_t work_ns;
	uint32_t tasks;
	uint32_t source;   /* index of work->jobs: what it asks for, who submitted it */
	uint32_t workload; /* id of a workload; 0 = as fast everywhere */
};

/* What is believed of run times. A job is told by its index in the list and what the trace says.
 * All but `predict` are optional. */
struct takt_queue_predictor {
	void *ctx;
	/* Predicted run time of a job that is submitted now; false: none. */
	bool (*predict)(void *ctx, uint32_t index, const struct takt_sim_job *job,
			uint64_t *ret_ns);
	/* A job has ended after that run time. */
	int (*observe)(void *ctx, uint32_t index, uint64_t ran_ns);
	/* With outlooks (see TAKT_SCHED_OUTLOOK), told anew every so often; 0 = without. */
	uint64_t refresh_ns;
	/* Which one a job that is submitted now goes by; ids from 1 without gaps. */
	int (*kind)(void *ctx, uint32_t index, const struct takt_sim_job *job, uint32_t *ret_id);
	/* A job that runs has got so far. */
	void (*reached)(void *ctx, uint32_t index, uint64_t ran_ns);
	/* False: there is none of that id, or it is as when it was last asked for. */
	bool (*outlook)(void *ctx, uint32_t id, struct takt_sched_outlook *ret);
};

/* A node is down for a while. */
struct takt_queue_failure {
	uint64_t at_ns; /* ascending over the list */
	uint64_t repair_ns;
	uint32_t node; /* index in the cluster */
};

struct takt_queue_config {
	const struct takt_sim_cluster *cluster;
	const struct takt_sim_work *work;
	const struct takt_queue_job *jobs; /* ascending by submit_ns */
	size_t job_count;
	const struct takt_queue_failure *failures;
	size_t failure_count;
	const struct takt_sched_workload *workloads; /* ids 1.. in order */
	size_t workload_count;
	struct takt_sched_config sched;
	const struct takt_queue_predictor *predictor; /* NULL: nothing is predicted */
	uint64_t preempt_cost_ns;
	uint64_t checkpoint_ns;
	uint64_t seed;
};

/* What became of a job. */
struct takt_queue_outcome {
	uint64_t jct_ns;  /* from submission to end */
	uint64_t wait_ns; /* of that, without GPUs */
	/* Finish-time fairness (Themis, as Shockwave measures it): jct over the time that it would
	 * have taken with its share, work times the mean over its stay of max(1, GPUs asked for by
	 * all jobs there / GPUs). Millionths; above 1,000,000 it got less than its share. */
	uint64_t rho_ppm;
	uint32_t preemptions; /* failures not counted */
	bool done;	      /* false: it can never run on this cluster */
};

struct takt_queue_result {
	struct takt_queue_outcome *outcomes; /* owned, by job */
	size_t job_count;
	uint64_t done, impossible, preemptions, migrations, failures, plans;
	uint64_t first_submit_ns, last_submit_ns, end_ns; /* end: of the last job */
	uint64_t held_gpu_ms; /* GPU-milliseconds held, until the last submission and after */
	uint64_t held_gpu_ms_window; /* until the last submission */
	uint64_t lost_gpu_ms;	     /* work done twice, and time for starting again */
	/* Held by accelerator model (number in cluster->models; unnamed ones last). */
	uint64_t held_gpu_ms_model[TAKT_SIM_MAX_MODELS + 1];
};

/* *ret is overwritten; untouched on failure. */
int takt_queue_run(const struct takt_queue_config *config, struct takt_queue_result *ret,
		   struct takt_err *err);
void takt_queue_result_fini(struct takt_queue_result *result);

#endif
