/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the model of run times remembers, for runtime*.c only.
 */
#ifndef TAKT_MODEL_RUNTIME_STATE_H
#define TAKT_MODEL_RUNTIME_STATE_H

#include "base/map.h"
#include "base/vec.h"
#include "model/runtime.h"

enum {
	RUNTIME_LEVELS = 5,  /* all, size, owner, owner and size, owner, name and size */
	RUNTIME_SIZES = 1,   /* the level of sizes */
	RUNTIME_FORGETS = 3, /* from this level on old jobs count less */
};

/* Counts of jobs are in units of 2^-16, since old ones count less. */
#define RUNTIME_ONE (UINT64_C(1) << 16)

struct runtime_group {
	uint64_t came[TAKT_RUNTIME_STEPS];  /* to the beginning of the step */
	uint64_t ended[TAKT_RUNTIME_STEPS]; /* within the step */
	uint64_t told;
	uint64_t mean_ms;
	uint64_t error_ms;
	uint32_t seen;	 /* jobs in mean_ms */
	uint32_t tested; /* predictions in error_ms */
};

struct runtime_kind {
	struct runtime_group *groups[RUNTIME_LEVELS]; /* borrowed; NULL where there is none */
};

struct takt_runtime {
	TAKT_VEC(struct runtime_group *) groups; /* owned */
	TAKT_VEC(struct runtime_kind) kinds;
	struct takt_map by_key;	 /* key of a group -> the group */
	struct takt_map kind_of; /* key of the narrowest group -> index in kinds */
};

#endif
