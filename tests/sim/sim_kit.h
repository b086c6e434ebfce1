/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the simulator share: clusters and workloads from a few lines of text. */
#ifndef TAKT_TESTS_SIM_KIT_H
#define TAKT_TESTS_SIM_KIT_H

#include "sim/gavel_work.h"
#include "sim/sim_cluster.h"
#include "sim/sim_work.h"

/* Files of data/traces. */
void kit_load_nodes(const char *file, struct takt_sim_cluster *ret);
void kit_load_pods(const char *file, struct takt_sim_cluster *cluster, struct takt_sim_work *ret);
/* Gavel's table of throughputs. 0, or negative where it cannot be read. */
int kit_throughputs(struct takt_throughputs *ret);

/* The same from text, by way of a file of their own under /tmp. */
void kit_nodes(const char *text, struct takt_sim_cluster *ret);
void kit_jobs(const char *text, struct takt_sim_cluster *cluster, struct takt_sim_work *ret);

#endif
