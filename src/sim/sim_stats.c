/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics, see the header. */
#include "sim/sim_stats.h"

#include <math.h>

#include "base/compiler.h"

double takt_sim_t95(size_t degrees)
{
	static const double table[] = {
		0,     12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
		2.201, 2.179,  2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080,
		2.074, 2.069,  2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
	};
	double d = (double)degrees;

	if (degrees < TAKT_ARRAY_LEN(table))
		return table[degrees];
	/* Cornish-Fisher's first terms: right to three digits from 30 degrees on. */
	return 1.959964 + 2.372271 / d + 2.822500 / (d * d);
}

static struct takt_sim_stat finish(double sum, double squares, size_t n)
{
	struct takt_sim_stat stat = {.n = n, .mean = sum / (double)n};

	if (n < 2)
		return stat;
	stat.sd = sqrt(squares / (double)(n - 1));
	stat.half95 = takt_sim_t95(n - 1) * stat.sd / sqrt((double)n);
	return stat;
}

struct takt_sim_stat takt_sim_stat(const double *values, size_t n)
{
	double sum = 0, squares = 0, mean;

	for (size_t i = 0; i < n; i++)
		sum += values[i];
	mean = sum / (double)n;
	for (size_t i = 0; i < n; i++)
		squares += (values[i] - mean) * (values[i] - mean);
	return finish(sum, squares, n);
}

struct takt_sim_stat takt_sim_stat_paired(const double *a, const double *b, size_t n)
{
	double sum = 0, squares = 0, mean;

	for (size_t i = 0; i < n; i++)
		sum += a[i] - b[i];
	mean = sum / (double)n;
	for (size_t i = 0; i < n; i++)
		squares += (a[i] - b[i] - mean) * (a[i] - b[i] - mean);
	return finish(sum, squares, n);
}

int64_t takt_sim_percentile(const int64_t *ascending, size_t n, uint32_t permille)
{
	size_t rank = (n * permille + 999) / 1000;

	return ascending[rank ? rank - 1 : 0];
}
