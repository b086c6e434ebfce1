/* SPDX-License-Identifier: Apache-2.0 */
/* Failures of nodes: drawn from a seed, or as a file has them. */
#ifndef TAKT_SIM_QUEUE_FAILURES_H
#define TAKT_SIM_QUEUE_FAILURES_H

#include <stdint.h>

#include "base/err.h"
#include "base/vec.h"
#include "sim/queue_run.h"
#include "sim/sim_cluster.h"

struct takt_queue_failures {
	TAKT_VEC(struct takt_queue_failure) at; /* ascending by time, then node */
};

/*
 * Each node fails after exponentially distributed times of that mean since its last repair (stream
 * FAILURES, node by node), until end_ns of the virtual clock. *ret is overwritten.
 */
int takt_queue_failures_draw(const struct takt_sim_cluster *cluster, uint64_t mtbf_ns,
			     uint64_t repair_ns, uint64_t end_ns, uint64_t seed,
			     struct takt_queue_failures *ret, struct takt_err *err);

/*
 * A file with the columns at_s (since the first submission), node (its name, or its number from 0)
 * and repair_s, in any order of lines.
 */
int takt_queue_failures_load(const char *path, const struct takt_sim_cluster *cluster,
			     struct takt_queue_failures *ret, struct takt_err *err);
void takt_queue_failures_fini(struct takt_queue_failures *failures);

#endif
