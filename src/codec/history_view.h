/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One metric of one GPU over time, as the API shows it. JSON as in views.h, but for the points,
 * which are many: each is a list [at_ms, min, mean, max]. A step in which nothing was measured has
 * no point.
 */
#ifndef TAKT_CODEC_HISTORY_VIEW_H
#define TAKT_CODEC_HISTORY_VIEW_H

#include "codec/views.h"

enum {
	TAKT_HISTORY_VIEW_MAX = 20000, /* points */
};

struct takt_history_view_point {
	int64_t at_ms; /* when the step began, wall clock; the sample's own time where step_ms is 0
			*/
	double min, mean, max;
};

struct takt_history_view {
	bool simulated;
	uint32_t gpu;
	char uuid[96];	  /* "" = not known */
	char metric[32];  /* "power" */
	char unit[16];	  /* "W"; "" = a number of things */
	uint64_t step_ms; /* a point stands for so long; 0 = a point a sample */
	int64_t from_ms, until_ms;
	uint64_t lost; /* records of all GPUs that could not be written since takt was started */
	uint32_t point_count;
	struct takt_history_view_point *points; /* owned, oldest first */
};
void takt_history_view_fini(struct takt_history_view *view);
int takt_history_view_to_json(const struct takt_history_view *view, struct takt_str *out);
/* The caller finis *ret after success. */
int takt_history_view_from_json(const char *text, size_t len, struct takt_history_view *ret,
				struct takt_err *err);

#endif
