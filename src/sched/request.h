/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one task asks of one node, and where it is. These two travel between the planner, the
 * cluster and the placement policies, and stand in events and plans.
 */
#ifndef TAKT_SCHED_REQUEST_H
#define TAKT_SCHED_REQUEST_H

#include <stdint.h>

enum {
	TAKT_REQUEST_MAX_DEVICES = 64,
	TAKT_REQUEST_WHOLE = 1000, /* milli of a whole accelerator */
};

enum {
	TAKT_REQUEST_SHARE_OUTSIDE = 1u << 0, /* may use accelerators with outside use */
	TAKT_REQUEST_ONE_NUMA = 1u << 1,      /* its accelerators hang on one NUMA node */
};

/* Equal requests are one kind; zero in a field asks for nothing. */
struct takt_request {
	int32_t cpu_milli;
	uint16_t devices; /* accelerators, 0..TAKT_REQUEST_MAX_DEVICES */
	uint16_t milli;	  /* of each, all different ones; TAKT_REQUEST_WHOLE is whole */
	int64_t mem_mib;
	/* Accelerator memory of each. A fraction may be asked by memory alone (milli 0, devices 1):
	 * it is then the share of the memory, in milli, rounded up. */
	uint32_t dev_mem_mib;
	uint32_t selector;     /* interned requirements on labels and taints; 0 = none */
	uint64_t model_mask;   /* bit i: interned accelerator model i is allowed; 0 = any */
	uint64_t only_devices; /* bit i: accelerator i of its node is allowed; 0 = any */
	uint32_t max_per_node; /* tasks of this kind at a time on a node; 0 = no limit */
	uint32_t flags;	       /* TAKT_REQUEST_... */
	uint16_t speeds;       /* interned: how fast it runs on each model; 0 = equally */
	uint8_t mig_profile;   /* interned; 0 = none */
	uint8_t spare[5];      /* 0: equal requests are equal bytes */
};
_Static_assert(sizeof(struct takt_request) == 56, "no padding: it is compared as bytes");

/* Where one task is. */
struct takt_slot {
	uint32_t node;	   /* index in the cluster, as adding it gave */
	uint16_t milli;	   /* held of each device of the mask; 0 = no device, or a MIG slice */
	uint8_t mig_start; /* first memory slice of a MIG instance; only with a profile */
	uint8_t spare;	   /* 0 */
	uint64_t dev_mask; /* accelerators of the node */
};
_Static_assert(sizeof(struct takt_slot) == 16, "no padding: it is compared as bytes");

#endif
