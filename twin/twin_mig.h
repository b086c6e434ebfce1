/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a GPU may be cut (MIG): which instances fit where, what they are called and what they get.
 *
 * A GPU has eight slices of memory and seven of computing. A profile takes `size` of the first and
 * `slices` of the second; it may start at each multiple of its size where its computing still fits.
 * So the ids that clients see follow from the place alone: they number the nodes of a binary tree
 * from its root (whole GPU 0, halves 1 and 2, quarters 3 to 6, eighths 7 to 13), as captures of
 * real boards show. Compute instances divide an instance's slices by the same rule.
 *
 * Plain arithmetic over a GPU's state; callers hold the lock where they change it.
 */
#ifndef TAKT_TWIN_MIG_H
#define TAKT_TWIN_MIG_H

#include <stdbool.h>

#include "twin_layout.h"

enum {
	TWIN_COMPUTE_PROFILES = 8, /* NVML_COMPUTE_INSTANCE_PROFILE_...: a number is an id, too */
	TWIN_MIG_DEVICES = 7,
	TWIN_MIG_UUID = 48
};

/* NULL if the board has none of it. */
const struct twin_mig_profile *twin_mig_by_id(const struct twin_board *board, uint32_t id);
const struct twin_mig_profile *twin_mig_by_number(const struct twin_board *board, uint32_t number);

/* The profile of the GPU instance that starts there; only of one that is used. */
const struct twin_mig_profile *twin_mig_profile(const struct twin_gpu *gpu,
						const struct twin_board *board, uint32_t start);

/* May an instance of it start there, on an empty GPU? And on this one? */
bool twin_mig_may_start(const struct twin_mig_profile *profile, uint32_t start);
bool twin_mig_fits(const struct twin_gpu *gpu, const struct twin_board *board,
		   const struct twin_mig_profile *profile, uint32_t start);

/* How many more of it can be made now. */
uint32_t twin_mig_room(const struct twin_gpu *gpu, const struct twin_board *board,
		       const struct twin_mig_profile *profile);

/* Where the driver would put one: where it takes the fewest other places away. The order of ids
 * that it leads to (13, 11, 12, 7, ... for seven small ones; 2, 1 for two halves) is that of public
 * examples. False if there is no room. */
bool twin_mig_choose(const struct twin_gpu *gpu, const struct twin_board *board,
		     const struct twin_mig_profile *profile, uint32_t *ret_start);

uint32_t twin_mig_id(const struct twin_mig_profile *profile, uint32_t start);

/* Slices of a compute profile by its number, 0 if there is none. */
uint32_t twin_compute_slices(uint32_t number);
uint32_t twin_compute_number(uint32_t slices);

/* May a compute instance of so many slices start there in an empty instance? And in this one? */
bool twin_compute_may_start(const struct twin_mig_profile *profile, uint32_t slices,
			    uint32_t start);
bool twin_compute_fits(const struct twin_gpu_instance *instance,
		       const struct twin_mig_profile *profile, uint32_t slices, uint32_t start);

/* SMs of a compute instance. */
uint32_t twin_compute_multiprocessors(const struct twin_board *board,
				      const struct twin_mig_profile *profile, uint32_t slices);

/* "3g.40gb", "1g.10gb+me"; "1c.3g.40gb" for a compute instance that is not all of it. */
void twin_mig_name(const struct twin_board *board, const struct twin_mig_profile *profile,
		   uint32_t compute_slices, char *ret, uint32_t size);

/* UUID of a compute instance as a device of its own: the same each time it is cut so. */
void twin_mig_uuid(const struct twin_gpu_desc *desc, uint32_t id, uint32_t compute_id,
		   char ret[TWIN_MIG_UUID]);

/* Walks the MIG devices of a GPU in the order of their ids: *at starts as 0 and is advanced. */
struct twin_mig_device {
	uint32_t start, compute_start; /* where they are kept */
	uint32_t id, compute_id;       /* what clients see */
	const struct twin_mig_profile *profile;
	uint32_t slices; /* of the compute instance */
};
bool twin_mig_next(const struct twin_gpu *gpu, const struct twin_board *board, uint32_t *at,
		   struct twin_mig_device *ret);

/* Is anybody in it? `compute_start` UINT32_MAX means anywhere in the GPU instance. */
bool twin_mig_busy(const struct twin_gpu *gpu, uint32_t start, uint32_t compute_start);

/* Memory that processes take in a GPU instance. */
uint64_t twin_mig_memory_used(const struct twin_gpu *gpu, uint32_t start);

#endif
