/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The jobs that are simulated, held in memory: what each asks for as a kind (equal requests are
 * one), and its times. About 100 bytes a job.
 */
#ifndef TAKT_SIM_WORK_H
#define TAKT_SIM_WORK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/map.h"
#include "base/vec.h"
#include "sim/sha256.h"
#include "sim/sim_cluster.h"
#include "sim/sim_names.h"

enum {
	TAKT_SIM_MAX_JOBS = 20000000,
	TAKT_SIM_MAX_KINDS = 1000000,
};

/* What a job asks for. */
struct takt_sim_kind {
	int32_t cpu_milli;
	uint32_t gpus;
	int64_t mem_mib;
	uint32_t milli;	      /* of each GPU, 1000 = whole; 0 without GPUs or by memory alone */
	uint32_t gpu_mem_mib; /* of each GPU; 0 = not asked */
	uint32_t models;      /* number in specs */
	uint32_t spare;	      /* 0: equal kinds are equal bytes */
	uint64_t model_mask;  /* of the cluster's models; 0 = any */
};

struct takt_sim_job {
	const char *name; /* borrowed from the work; "" if none */
	uint32_t kind;
	uint32_t tasks;
	int32_t priority;
	uint32_t user, tenant; /* numbers in `groups` */
	uint32_t has;	       /* bits by enum takt_trace_job_field */
	int64_t submit_ns;
	int64_t duration_ns;
	int64_t estimate_ns;
	int64_t deadline_ns;
};

struct takt_sim_work {
	TAKT_VEC(struct takt_sim_job) jobs;   /* in order of the file */
	TAKT_VEC(struct takt_sim_kind) kinds; /* in order of appearance */
	TAKT_VEC(uint64_t) counts;	      /* jobs of each kind */
	struct takt_map kind_ids;
	struct takt_sim_names specs;  /* "V100M16|V100M32"; the first is "" */
	struct takt_sim_names groups; /* users and tenants; the first is "" */
	struct takt_arena texts;
	char hash[TAKT_SHA256_TEXT]; /* of the file */
};

/*
 * All jobs of a file. `required` as in takt_trace_open. The models that jobs ask for are added to
 * the cluster's. A job's duration is its own, or from start to end (from submission to end without
 * a start). *ret is overwritten; untouched on failure.
 */
int takt_sim_work_load(const char *path, uint32_t required, struct takt_sim_cluster *cluster,
		       struct takt_sim_work *ret, struct takt_err *err);
void takt_sim_work_fini(struct takt_sim_work *work);

/* An empty one, to be filled with the next function (generated workloads). */
int takt_sim_work_init(struct takt_sim_work *ret, struct takt_err *err);
/* The number of a kind, new if need be; `spec` is "" or model names separated by '|'. The caller
 * counts it. */
int takt_sim_work_kind(struct takt_sim_work *work, struct takt_sim_cluster *cluster,
		       const struct takt_sim_kind *kind, const char *spec, uint32_t *ret,
		       struct takt_err *err);

/* milli-GPU of one job of a kind, one task of it. */
static inline uint64_t takt_sim_kind_milli(const struct takt_sim_kind *kind)
{
	return (uint64_t)kind->gpus * kind->milli;
}

#endif
