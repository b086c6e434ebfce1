/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A node as a placement policy sees it: what is left, beside what there is.
 *
 * The first cache line holds what nearly every score looks at. A policy reads it and changes
 * nothing. Devices that must not be used now (unhealthy, draining, used from outside, node drained,
 * cut into MIG instances) have nothing left, so a policy that adds up `left` needs no case for
 * them; a request that may share with outside use sees a copy of the node in which that is undone.
 */
#ifndef TAKT_SCHED_CLUSTER_NODE_H
#define TAKT_SCHED_CLUSTER_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include "sched/request.h"

enum {
	TAKT_NODE_INLINE_DEVICES = 8,
	TAKT_NODE_SHAPES = 16,
	TAKT_NODE_REMOVED = 1u << 0,
	TAKT_NODE_DRAINED = 1u << 1, /* takes no new tasks */
	TAKT_NODE_MIXED = 1u << 2,   /* accelerators of several models */
	TAKT_NODE_DEV_MEM = 1u << 3, /* a task here asked for accelerator memory */
	TAKT_NODE_INTACT = 1u << 4,  /* has devices, and all of them are whole */
};

/* One accelerator, and what takt's tasks hold of it whatever its health. */
struct takt_device {
	uint32_t mem_mib;      /* there is; 0 = not known */
	uint32_t mem_held_mib; /* 0 as long as mem_mib is */
	uint16_t held;	       /* milli */
	uint8_t model;
	uint8_t mig;	  /* enum takt_mig_use */
	uint8_t mig_busy; /* memory slices held, as a mask */
	uint8_t spare;
	uint8_t layout[8]; /* FIXED: the profile that starts at each memory slice; 0 = none */
	uint8_t mig_at[8]; /* the profile held that starts at each memory slice; 0 = none */
};

struct takt_node {
	int32_t cpu_left_milli;
	uint8_t devices; /* 0..TAKT_REQUEST_MAX_DEVICES */
	uint8_t flags;	 /* TAKT_NODE_... */
	uint8_t model;	 /* of every device, unless MIXED; of the first one then */
	uint8_t spare;
	int64_t mem_left_mib;
	uint64_t whole; /* usable devices of which nothing is held */
	uint16_t *left; /* milli left of each device; 0 where it may not be used now */
	uint16_t left_inline[TAKT_NODE_INLINE_DEVICES]; /* `left` of small nodes, 0 beyond */
	uint16_t most_left;				/* the largest of `left` */
	uint16_t spare2;
	uint32_t position; /* the index's: rank without gaps */
	uint64_t open;	   /* devices of which something is left */

	int32_t cpu_milli;
	uint32_t id; /* as adding it gave */
	int64_t mem_mib;
	uint64_t usable;	    /* devices that are healthy, clean, without outside use */
	uint64_t models;	    /* bit i: has devices of model i */
	uint32_t rank;		    /* ties go to the lowest */
	uint32_t domain;	    /* innermost; 0 = none */
	struct takt_device *device; /* devices of them */
	uint32_t link_class;
	uint32_t shapes; /* bit i: has tasks of shape i, see takt_node_shape() */
	uint32_t tasks;	 /* placed here */

	uint32_t mem_tasks; /* of them asked for accelerator memory */
	uint64_t unhealthy;
	uint64_t outside;
	uint64_t draining;
} __attribute__((aligned(64)));

/* All its devices. */
static inline uint64_t takt_node_all_devices(const struct takt_node *node)
{
	return node->devices >= 64 ? UINT64_MAX : (UINT64_C(1) << node->devices) - 1;
}

/* What a task with accelerators is by its size: 0 a fraction or a MIG instance, else how many whole
 * devices, TAKT_NODE_SHAPES - 1 standing for more. */
static inline uint32_t takt_node_shape(const struct takt_request *request)
{
	if (request->milli < TAKT_REQUEST_WHOLE)
		return 0;
	return request->devices < TAKT_NODE_SHAPES ? request->devices : TAKT_NODE_SHAPES - 1;
}

#endif
