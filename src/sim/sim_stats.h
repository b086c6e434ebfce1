/* SPDX-License-Identifier: Apache-2.0 */
/* Means, deviations, intervals and percentiles of results. For tables only: no decision is made by
 * these. */
#ifndef TAKT_SIM_STATS_H
#define TAKT_SIM_STATS_H

#include <stddef.h>
#include <stdint.h>

struct takt_sim_stat {
	size_t n;
	double mean;
	double sd;     /* of the sample (n - 1); 0 with one value */
	double half95; /* mean +- half95 holds the true mean in 95 of 100 cases: Student's t */
};

/* n >= 1 */
struct takt_sim_stat takt_sim_stat(const double *values, size_t n);
/* Of the differences a[i] - b[i]. */
struct takt_sim_stat takt_sim_stat_paired(const double *a, const double *b, size_t n);

/* Two-sided 95 % quantile of Student's t. */
double takt_sim_t95(size_t degrees);

/* Value at `permille` of ascending values by the nearest rank: no interpolation. n >= 1. */
int64_t takt_sim_percentile(const int64_t *ascending, size_t n, uint32_t permille);

#endif
