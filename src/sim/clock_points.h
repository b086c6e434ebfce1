/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measured tables of clocks: for each workload, what a setting (an SM clock, or a power limit) made
 * of its time and power. A CSV with a header; columns in any order, others are ignored:
 *
 *	dataset gpu workload	whose row it is
 *	core_mhz		SM clock; empty where the driver chose
 *	power_limit_w		empty where the limit was left alone
 *	mem_mhz			optional
 *	time power_w		for the same work at every setting; any unit of time
 */
#ifndef TAKT_SIM_CLOCK_POINTS_H
#define TAKT_SIM_CLOCK_POINTS_H

#include <takt/clock_governor.h>

#include "base/vec.h"
#include "sim/text_lines.h"

enum {
	TAKT_POINTS_MAX = 1024 * 1024, /* rows */
	TAKT_POINTS_NAME = 128,
};

/* Activity counters of a setting, thousandths; has: the bits of an observation. */
struct takt_clock_counters {
	uint32_t has;
	uint32_t dram_permille, sm_permille, tensor_permille;
};

struct takt_clock_setting {
	double value;	      /* MHz, or W */
	double time, power_w; /* > 0 */
	struct takt_clock_counters counters;
};

/* One workload on one board with one actuator; the last setting is the reference. */
struct takt_clock_curve {
	char dataset[TAKT_POINTS_NAME], gpu[TAKT_POINTS_NAME], workload[TAKT_POINTS_NAME];
	enum takt_governor_actuator actuator;
	struct takt_clock_setting *settings; /* owned; ascending in value */
	size_t count;			     /* 2..TAKT_GOVERNOR_MAX_CLOCKS */
};

/* In the order of the file; the curves of a (dataset, gpu, actuator) lie together. */
struct takt_clock_points {
	TAKT_VEC(struct takt_clock_curve) curves;
	char hash[65]; /* SHA-256 of the text */
};

/*
 * A workload's clock curve is at the highest memory clock (rows without one count as of it) and at
 * the power limit that was left alone or else the highest with two clocks; its power curve is at
 * the core clock that was left alone or else the highest with two limits. Settings measured more
 * than once become one, by the mean. -TAKT_E_CORRUPT names file, line and column. Reads `lines` to
 * the end; *ret is overwritten.
 */
int takt_clock_points_read(struct takt_lines *lines, struct takt_clock_points *ret,
			   struct takt_err *err);
void takt_clock_points_fini(struct takt_clock_points *points);

/*
 * Adds counters to the clock curves: columns gpu, dataset, workload, core_mhz, and dram_active,
 * sm_active, tensor_active as fractions, each optional. Rows of other curves are passed over.
 */
int takt_clock_points_counters(struct takt_clock_points *points, struct takt_lines *lines,
			       struct takt_err *err);

#endif
