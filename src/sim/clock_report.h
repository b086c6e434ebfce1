/* SPDX-License-Identifier: Apache-2.0 */
/* Scores of governors as JSON and CSV; docs/research/clocks-replay.md has the figures. */
#ifndef TAKT_SIM_CLOCK_REPORT_H
#define TAKT_SIM_CLOCK_REPORT_H

#include "sim/clock_score.h"
#include "sim/sim_meta.h"

/* The figures of one score, in the order of the tables. NAN: there is none. */
struct takt_score_figure {
	const char *name; /* for machines, with its unit */
	double (*value)(const struct takt_score *score);
};
extern const struct takt_score_figure takt_score_figures[];
extern const size_t takt_score_figure_count;

/* "clock" or "power_limit" */
const char *takt_score_actuator(const struct takt_score *score);

void takt_scores_json(const struct takt_scores *scores, const struct takt_score_config *config,
		      const struct takt_sim_meta *meta, struct takt_str *out);
void takt_scores_csv(const struct takt_scores *scores, const struct takt_score_config *config,
		     const struct takt_sim_meta *meta, struct takt_str *out);

#endif
