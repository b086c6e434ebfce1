/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is believed of a job's time at each level of a board, from noisy epochs at some of them.
 *
 * Levels are settings from the highest down: x[0] = 0 is the reference, x[i] = highest / setting
 *- 1. A job is believed to follow one of some twelve hundred shapes
 *
 *	time / time at the reference = 1 + a u^2 / (u + k),  u = max(0, x - x0)
 *
 * (a the part that the clock slows in the end, k how softly it begins, x0 how long something else
 * is the limit: convex, as a sum of rooflines is), but for an error of each level of its own, with
 * standard deviation d (1 + 5 (shape - 1)). Given a shape all is Gaussian and in closed form; the
 * shapes are weighed by how well they explain the epochs (Bayes).
 */
#ifndef TAKT_CLOCK_CURVE_BELIEF_H
#define TAKT_CLOCK_CURVE_BELIEF_H

#include <stddef.h>
#include <stdint.h>

enum {
	TAKT_BELIEF_LEVELS = 64
};

/* Epochs at one level; times relative to any common unit. */
struct takt_belief_level {
	double x;
	double n;    /* epochs */
	double mean; /* of their times for one unit of work */
	double m2;   /* sum of squared deviations from it, relative to the mean then */
};

struct takt_belief {
	struct takt_belief_level level[TAKT_BELIEF_LEVELS];
	uint32_t count;
};

/* Of one level: time relative to the reference. */
struct takt_belief_answer {
	double mean, sd;
	double over; /* probability that it is above the limit */
};

void takt_belief_add(struct takt_belief *belief, uint32_t level, double time);

/* Relative standard deviation of one epoch: from epochs at equal levels, and at first `guess`. */
double takt_belief_noise(const struct takt_belief *belief, double guess);

/* All levels at once; ret[belief->count]. limit: 1.05 for 5 %. */
void takt_belief_ask(const struct takt_belief *belief, double noise, double limit,
		     struct takt_belief_answer *ret);

/* exp(v) for v <= 0, and the part of a normal distribution above z: the same on every machine. */
double takt_belief_exp(double v);
double takt_belief_tail(double z);

#endif
