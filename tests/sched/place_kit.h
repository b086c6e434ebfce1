/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small clusters for tests of placement policies: two models, nodes by a line each, tasks placed by
 * the policy or put where the test wants them. Everything that fails ends the test.
 */
#ifndef TAKT_TEST_PLACE_KIT_H
#define TAKT_TEST_PLACE_KIT_H

#include "sched/cluster.h"

enum {
	FEW_A, /* models: 50 to 300 W */
	FEW_B, /* 10 to 70 W */
	FEW_C, /* power not known */
	FEW_NOWHERE = -1,
};

struct few_work {
	uint64_t weight;
	uint16_t devices, milli;
	int32_t cpu_milli;
	uint64_t models;
};

/* `works` ended by weight 0; NULL = nothing is known. params ended by a NULL name; may be NULL. */
struct takt_cluster *few_cluster(const char *placement, const struct few_work *works,
				 const struct takt_place_param *params);

/* Returns the node's number. */
uint32_t few_node(struct takt_cluster *cluster, uint32_t model, uint32_t devices,
		  int32_t cpu_milli);
uint32_t few_linked_node(struct takt_cluster *cluster, uint32_t devices, const int32_t *scores);

struct takt_request few_request(uint16_t devices, uint16_t milli, int32_t cpu_milli);
uint32_t few_kind(struct takt_cluster *cluster, const struct takt_request *request);

/* Places it where the policy says; FEW_NOWHERE if it fits nowhere. */
int few_place(struct takt_cluster *cluster, uint16_t devices, uint16_t milli, int32_t cpu_milli);
/* The same, and on which devices. */
int few_place_on(struct takt_cluster *cluster, uint16_t devices, uint16_t milli, uint64_t *ret);
/* Puts it there. */
void few_put(struct takt_cluster *cluster, uint32_t node, uint64_t devices, uint16_t milli,
	     int32_t cpu_milli);

#endif
