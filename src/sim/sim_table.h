/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of results: variants (policies) by loads by seeds by measures, and how it is written as
 * JSON and CSV. Experiments fill one in with what they have; the statistics are here.
 */
#ifndef TAKT_SIM_TABLE_H
#define TAKT_SIM_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "sim/sim_meta.h"
#include "sim/sim_stats.h"

struct takt_sim_measure {
	const char *name;	  /* for machines, with its unit: "wait_mean_s" */
	const char *unit, *title; /* for people */
	int decimals;
};

/* Borrows everything; ctx is passed on. */
struct takt_sim_table {
	const char *label; /* what a variant is: "queue", "placement" */
	size_t variant_count, load_count, seed_count;
	const struct takt_sim_measure *measures;
	size_t measure_count;
	const void *ctx;
	const char *(*name)(const void *ctx, size_t variant);
	/* False: not known. */
	bool (*value)(const void *ctx, size_t variant, size_t load, size_t seed, size_t measure,
		      double *ret);
	/* Of a load and variant, for JSON and CSV alike: names, and values as text. */
	const char *const *facts; /* ended by NULL */
	void (*fact)(const void *ctx, size_t variant, size_t load, size_t fact,
		     struct takt_str *out);
	/* Optional: more members of a JSON record, each with a comma before it. */
	void (*more)(const void *ctx, size_t variant, size_t load, struct takt_str *out);
};

/* Over the seeds where it is known; n = 0 when it is nowhere. */
struct takt_sim_stat takt_sim_table_stat(const struct takt_sim_table *table, size_t variant,
					 size_t load, size_t measure);
/* Of variant less other, on the same seeds. */
struct takt_sim_stat takt_sim_table_difference(const struct takt_sim_table *table, size_t variant,
					       size_t other, size_t load, size_t measure);

/* A record for each variant and load; `baseline` is what the others are compared with. */
void takt_sim_table_json(const struct takt_sim_table *table, const struct takt_sim_meta *meta,
			 size_t baseline, struct takt_str *out);
void takt_sim_table_csv(const struct takt_sim_table *table, const struct takt_sim_meta *meta,
			size_t baseline, struct takt_str *out);

#endif
