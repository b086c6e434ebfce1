/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cluster that is simulated: nodes from a file, or described in a few characters.
 *
 *	NODES.csv                       a record a node (docs/simulate.md)
 *	uniform:552x8                   552 nodes of 8 GPUs each
 *	uniform:9x4:v100,9x4:p100       parts with models
 *	uniform:autox8                  as many nodes as an offered load asks for
 *
 * Nodes of a description have as much CPU and memory as anybody may ask for: they count GPUs only.
 */
#ifndef TAKT_SIM_CLUSTER_H
#define TAKT_SIM_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/vec.h"
#include "sim/sha256.h"
#include "sim/sim_names.h"

#define TAKT_SIM_NO_MODEL UINT32_MAX

enum {
	TAKT_SIM_MAX_NODES = 1000000,
	TAKT_SIM_MAX_MODELS = 64,
};

struct takt_sim_node {
	const char *name;   /* borrowed from the cluster, "" if none */
	const char *domain; /* the same: "zone/rack", "" = not known */
	int32_t cpu_milli;
	uint32_t gpus;
	int64_t mem_mib;
	uint32_t gpu_mem_mib; /* of each; 0 = not known */
	uint32_t model;	      /* number in models, or TAKT_SIM_NO_MODEL */
};

struct takt_sim_cluster {
	TAKT_VEC(struct takt_sim_node) nodes; /* in order of the file */
	struct takt_arena texts;
	struct takt_sim_names models; /* of nodes first, then of whom jobs ask for */
	uint64_t gpus;		      /* of all nodes */
	bool counts_cpu;	      /* CPU and memory limit placements */
	bool automatic;		      /* `nodes` holds one node of each part: "uniform:autox8" */
	char hash[TAKT_SHA256_TEXT];  /* of the file; "" without one */
};

/* From `text`, a file's path or a description. *ret is overwritten; untouched on failure. */
int takt_sim_cluster_load(const char *text, struct takt_sim_cluster *ret, struct takt_err *err);
void takt_sim_cluster_fini(struct takt_sim_cluster *cluster);

/* The number of a model, new if need be; -TAKT_E_LIMIT beyond TAKT_SIM_MAX_MODELS. */
int takt_sim_cluster_model(struct takt_sim_cluster *cluster, const char *name, uint32_t *ret,
			   struct takt_err *err);

/* Of an automatic cluster: so many nodes of each part, and automatic no more. */
int takt_sim_cluster_size(struct takt_sim_cluster *cluster, uint32_t nodes, struct takt_err *err);

/* Keeps so many of the nodes, spread evenly over the list (which files sort by model), in order. */
int takt_sim_cluster_sample(struct takt_sim_cluster *cluster, size_t nodes, struct takt_err *err);

#endif
