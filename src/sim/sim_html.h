/* SPDX-License-Identifier: Apache-2.0 */
/* Reports for people with plots: one HTML file a result, complete in itself. */
#ifndef TAKT_SIM_HTML_H
#define TAKT_SIM_HTML_H

#include "sim/fgd_experiment.h"
#include "sim/queue_experiment.h"
#include "sim/sim_meta.h"
#include "sim/timed_experiment.h"

/* Allocation and fragments over arrivals beside the bound, who was placed, intervals. */
void takt_fgd_html(const struct takt_fgd_experiment *experiment, const struct takt_sim_meta *meta,
		   size_t baseline, struct takt_str *out);
/* For each load how completion times and waits are distributed, and the table. */
void takt_queue_html(const struct takt_queue_experiment *experiment,
		     const struct takt_sim_meta *meta, size_t baseline, struct takt_str *out);
void takt_timed_html(const struct takt_timed_experiment *experiment,
		     const struct takt_sim_meta *meta, size_t baseline, struct takt_str *out);

#endif
