/* SPDX-License-Identifier: Apache-2.0 */
/* Results of the placement experiment as JSON and CSV: a record for each policy and load. */
#ifndef TAKT_SIM_FGD_REPORT_H
#define TAKT_SIM_FGD_REPORT_H

#include "sim/fgd_experiment.h"
#include "sim/sim_meta.h"

/* `baseline` is the policy that the others are compared with, seed by seed. */
void takt_fgd_json(const struct takt_fgd_experiment *experiment, const struct takt_sim_meta *meta,
		   size_t baseline, struct takt_str *out);
void takt_fgd_csv(const struct takt_fgd_experiment *experiment, const struct takt_sim_meta *meta,
		  size_t baseline, struct takt_str *out);

#endif
