/* SPDX-License-Identifier: Apache-2.0 */
/* From what became of each job to the figures of a run. */
#ifndef TAKT_SIM_QUEUE_KPI_H
#define TAKT_SIM_QUEUE_KPI_H

#include "base/err.h"
#include "sim/gpu_power.h"
#include "sim/queue_experiment.h"
#include "sim/queue_run.h"

/*
 * Jobs that could never run are left out. Utilisation is GPU time held until the last submission
 * over GPUs times that span: after it a cluster only empties. Lost is time that went into work done
 * twice and into starting again, of all that was held. `power` is for models without a name that is
 * known; NULL = none.
 */
int takt_queue_kpi_of(const struct takt_queue_result *result,
		      const struct takt_sim_cluster *cluster, const struct takt_gpu_power *power,
		      struct takt_queue_kpi *ret, struct takt_err *err);

#endif
