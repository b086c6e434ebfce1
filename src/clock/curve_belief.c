/* SPDX-License-Identifier: Apache-2.0 */
/* Belief in shapes of curves, see the header. */
#include "clock/curve_belief.h"

#include <math.h>
#include <string.h>

/* What shapes there are, and how likely each is before anything was seen. Physics: a is from 0
 * (memory is the limit) to 1 (the clock is), both ends common. Errors are as large as points of
 * measured curves are off their best shape, 0.2 to 0.7 % on average. */
static const struct {
	double at, prior;
} errors[] = {{0.001, 0.5}, {0.003, 0.4}, {0.01, 0.1}};

/* The third is how A100 boards bend that meet their power limit at the highest clocks (fitted to
 * Perseus' sweeps, docs/clocks.md, which also lie between its slopes of 0.85 and 0.95); the others
 * are round numbers. */
static const struct {
	double k, x0, prior;
} bends[] = {{0, 0, 2},	  {0.02, 0, 1},	  {0.05, 0.012, 30}, {0.07, 0, 1},  {0.2, 0, 1},
	     {0.7, 0, 1}, {0, 0.25, 0.5}, {0.2, 0.25, 0.5},  {0, 0.6, 0.5}, {0.2, 0.6, 0.5}};

enum {
	SLOPES = 41, /* from 0 to 1 */
	BENDS = sizeof(bends) / sizeof(bends[0]),
	ERRORS = sizeof(errors) / sizeof(errors[0]),
	FITTED = 2, /* of the bends */
	SHAPES = ((SLOPES - 1) * BENDS + 1) * ERRORS,
};

struct shape {
	double a, k, x0, d, prior;
};

/* What the epochs say under one shape; u is a level's time divided by the shape's. */
struct fit {
	double scale, variance; /* of the unit of time */
	double chi2;		/* misfit */
	double norm;		/* the likelihood's factor */
};

static const double GUESS_WEIGHT = 4;
static const double NEGLIGIBLE = 1e-5;
static const double UNIT = 1e-4; /* variances are of this order; keeps products in range */

static double slope_at(int slope)
{
	return slope / (SLOPES - 1.0);
}

/* Of a slope where the curve bends: only one without a bend ends in the clock's own slope often. */
static double slope_prior(int slope, int bend)
{
	if (slope == 0)
		return 4;
	if (slope == SLOPES - 1 && bends[bend].k <= 0)
		return 2;
	if (bend == FITTED && slope_at(slope) > 0.84 && slope_at(slope) < 0.96)
		return 2;
	return 0.5;
}

/* Without a slope all bends are one. */
static struct shape shape_at(int i)
{
	int error = i % ERRORS, slope = (i / ERRORS + BENDS - 1) / BENDS;
	int bend = (i / ERRORS + BENDS - 1) % BENDS;

	return (struct shape){
		.a = slope_at(slope),
		.k = bends[bend].k,
		.x0 = bends[bend].x0,
		.d = errors[error].at,
		.prior = slope_prior(slope, bend) * errors[error].prior *
			 (slope ? bends[bend].prior : 10),
	};
}

static double time_of(const struct shape *shape, double x)
{
	double u = x - shape->x0;

	return u > 0 ? 1 + shape->a * u * u / (u + shape->k) : 1;
}

static double error_of(const struct shape *shape, double time)
{
	double d = shape->d * (1 + 5 * (time - 1));

	return d * d;
}

double takt_belief_exp(double v)
{
	double term = 1, sum = 1;
	int halvings = 0;

	if (v < -700)
		return 0;
	for (; v < -0.5; v /= 2)
		halvings++;
	for (int i = 1; i < 12; i++) {
		term *= v / i;
		sum += term;
	}
	while (halvings-- > 0)
		sum *= sum;
	return sum;
}

double takt_belief_tail(double z)
{
	double e = takt_belief_exp(-fabs(z) * (1.5976 + 0.07056 * z * z));

	return z > 0 ? e / (1 + e) : 1 / (1 + e);
}

void takt_belief_add(struct takt_belief *belief, uint32_t level, double time)
{
	struct takt_belief_level *at = &belief->level[level];
	double before = at->n > 0 ? time - at->mean : 0;

	at->n++;
	at->mean += at->n > 1 ? before / at->n : time - at->mean;
	at->m2 += before * (time - at->mean) / (at->mean * at->mean);
}

double takt_belief_noise(const struct takt_belief *belief, double guess)
{
	double sum = GUESS_WEIGHT * guess * guess, weight = GUESS_WEIGHT;

	for (uint32_t i = 0; i < belief->count; i++) {
		if (belief->level[i].n < 2)
			continue;
		sum += belief->level[i].m2;
		weight += belief->level[i].n - 1;
	}
	return sqrt(sum / weight);
}

static struct fit fit(const struct takt_belief *belief, const struct shape *shape, double noise)
{
	struct fit fit = {.norm = shape->prior};
	double weights = 0, sum = 0, squares = 0;

	for (uint32_t i = 0; i < belief->count; i++) {
		const struct takt_belief_level *at = &belief->level[i];
		double time, u, variance;

		if (!(at->n > 0))
			continue;
		time = time_of(shape, at->x);
		u = at->mean / time;
		variance = error_of(shape, time) + noise * noise / at->n;
		weights += 1 / variance;
		sum += u / variance;
		squares += u * u / variance;
		fit.norm /= sqrt(variance / UNIT);
	}
	fit.scale = sum / weights;
	fit.variance = 1 / weights;
	/* deviations are relative to the unit of time, which is what `variance` is of */
	fit.chi2 = (squares - sum * fit.scale) / (fit.scale * fit.scale);
	fit.norm *= sqrt(fit.variance / UNIT);
	return fit;
}

/* A level's own value under a shape: how much of it was measured, how sure it is. */
struct own {
	double measured, value, variance;
};

static struct own own_of(const struct takt_belief_level *at, const struct shape *shape, double time,
			 double noise)
{
	double error = error_of(shape, time), q;

	if (!(at->n > 0))
		return (struct own){0, 0, error};
	q = noise * noise / at->n;
	return (struct own){error / (error + q), at->mean / time, error * q / (error + q)};
}

/* Adds what one shape says of all levels, with its weight. */
static void say(const struct takt_belief *belief, const struct shape *shape, const struct fit *fit,
		double noise, double limit, double weight, struct takt_belief_answer *ret)
{
	struct own top = own_of(&belief->level[0], shape, 1, noise);
	double top_u = top.measured * top.value / fit->scale + (1 - top.measured);

	ret[0].mean += weight;
	for (uint32_t i = 1; i < belief->count; i++) {
		double time = time_of(shape, belief->level[i].x), mean, variance, share;
		struct own own = own_of(&belief->level[i], shape, time, noise);
		double u = own.measured * own.value / fit->scale + (1 - own.measured);

		share = top.measured - own.measured;
		mean = time * u / top_u;
		variance = own.variance + top.variance + share * share * fit->variance;
		variance *= mean * mean;
		ret[i].mean += weight * mean;
		ret[i].sd += weight * (variance + mean * mean);
		ret[i].over += weight * takt_belief_tail((limit - mean) / sqrt(variance));
	}
}

void takt_belief_ask(const struct takt_belief *belief, double noise, double limit,
		     struct takt_belief_answer *ret)
{
	struct fit fits[SHAPES];
	double least = INFINITY, best = 0, total = 0;

	memset(ret, 0, belief->count * sizeof(*ret));
	for (int i = 0; i < SHAPES; i++) {
		struct shape shape = shape_at(i);

		fits[i] = fit(belief, &shape, noise);
		least = fits[i].chi2 < least ? fits[i].chi2 : least;
	}
	for (int i = 0; i < SHAPES; i++) {
		fits[i].norm *= takt_belief_exp(-(fits[i].chi2 - least) / 2);
		best = fits[i].norm > best ? fits[i].norm : best;
	}
	for (int i = 0; i < SHAPES; i++) {
		struct shape shape = shape_at(i);

		if (fits[i].norm < NEGLIGIBLE * best)
			continue;
		total += fits[i].norm;
		say(belief, &shape, &fits[i], noise, limit, fits[i].norm, ret);
	}
	for (uint32_t i = 0; i < belief->count; i++) {
		double square = i ? ret[i].sd / total : 1, mean = ret[i].mean / total;

		ret[i] = (struct takt_belief_answer){
			.mean = mean,
			.sd = square > mean * mean ? sqrt(square - mean * mean) : 0,
			.over = ret[i].over / total,
		};
	}
}
