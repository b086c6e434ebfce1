/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was possible: takt-bound (docs/research/placement.md), run as a program of its own, its
 * answers kept.
 *
 * Answers are kept under $XDG_CACHE_HOME/takt/bound (or ~/.cache/takt/bound) by the SHA-256 of the
 * program and of all that it is given, so that they are used again only where it would say the
 * same.
 */
#ifndef TAKT_SIM_BOUND_RUN_H
#define TAKT_SIM_BOUND_RUN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"

struct takt_bound_program {
	const char *path;  /* borrowed */
	const char *cache; /* directory, made if need be; NULL = keep nothing */
};

enum {
	TAKT_BOUND_MAX_BYTES = 512 * 1024 * 1024,
	TAKT_BOUND_SECONDS = 3600, /* then it is killed */
};

/*
 * Runs the program on a cluster and what arrived, both as CSV, and appends its answer (JSON) to
 * `answer`. 1 if that was kept from before, 0 if computed now. -TAKT_E_UNAVAILABLE with its own
 * words when it cannot compute here (no solver, no program), -TAKT_E_CORRUPT when it found the
 * input wrong.
 */
int takt_bound_run(const struct takt_bound_program *program, const struct takt_str *cluster_csv,
		   const struct takt_str *arrived_csv, struct takt_str *answer,
		   struct takt_err *err);

/* Into bounds[seed_count * load_count], percent, for seeds from first_seed on and these loads; what
 * the answer leaves out stays as it is. -TAKT_E_CORRUPT when it is none. */
int takt_bound_read(const struct takt_str *answer, unsigned long long first_seed, size_t seed_count,
		    const unsigned *loads, size_t load_count, double *bounds, struct takt_err *err);

#endif
