/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Classes of jobs, so that a table shows who was starved: without GPUs ("cpu"), each size of a
 * fraction ("0.81"), each number of whole GPUs ("1", "2", "8"); "memory" for parts of a GPU that
 * are asked for by memory alone. In that order, the smaller first.
 */
#ifndef TAKT_SIM_CLASS_H
#define TAKT_SIM_CLASS_H

#include <stdint.h>

#include "base/err.h"
#include "base/vec.h"
#include "sim/sim_work.h"

enum {
	TAKT_SIM_CLASS_NAME = 16,
	TAKT_SIM_MAX_CLASSES = 4096,
};

struct takt_sim_class {
	char name[TAKT_SIM_CLASS_NAME];
	uint64_t order; /* the smaller first */
};

struct takt_sim_classes {
	TAKT_VEC(struct takt_sim_class) classes;
	TAKT_VEC(uint32_t) of_kind; /* class of each kind of the work */
};

/* *ret is overwritten; untouched on failure. */
int takt_sim_classes(const struct takt_sim_work *work, struct takt_sim_classes *ret,
		     struct takt_err *err);
void takt_sim_classes_fini(struct takt_sim_classes *classes);

#endif
