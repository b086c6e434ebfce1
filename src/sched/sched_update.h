/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handlers of events. Each checks everything, then takes the memory it needs, then changes: so
 * a refused event has changed nothing.
 */
#ifndef TAKT_SCHED_UPDATE_H
#define TAKT_SCHED_UPDATE_H

#include "sched/sched_state.h"

typedef int takt_sched_handler(struct takt_sched *sched, const struct takt_sched_event *event,
			       struct takt_err *err);

takt_sched_handler takt_sched_on_node_add;
takt_sched_handler takt_sched_on_node_remove;
takt_sched_handler takt_sched_on_gpu_health;
takt_sched_handler takt_sched_on_gpu_outside;
takt_sched_handler takt_sched_on_gpu_draining;
takt_sched_handler takt_sched_on_gpu_drained;
takt_sched_handler takt_sched_on_job_add;
takt_sched_handler takt_sched_on_job_change;
takt_sched_handler takt_sched_on_job_placed;
takt_sched_handler takt_sched_on_job_running;
takt_sched_handler takt_sched_on_job_draining;
takt_sched_handler takt_sched_on_job_requeued;
takt_sched_handler takt_sched_on_job_ended;
takt_sched_handler takt_sched_on_model;
takt_sched_handler takt_sched_on_name;
takt_sched_handler takt_sched_on_selector;
takt_sched_handler takt_sched_on_workload;
takt_sched_handler takt_sched_on_outlook;
takt_sched_handler takt_sched_on_tenant;
takt_sched_handler takt_sched_on_tenant_remove;
takt_sched_handler takt_sched_on_tenant_usage;
takt_sched_handler takt_sched_on_node_cordon;
takt_sched_handler takt_sched_on_node_failed;
takt_sched_handler takt_sched_on_window_add;
takt_sched_handler takt_sched_on_window_remove;
takt_sched_handler takt_sched_on_job_estimate;
takt_sched_handler takt_sched_on_job_checkpoint;
takt_sched_handler takt_sched_on_job_moved;
takt_sched_handler takt_sched_on_gpu_layout;

/* A node that is there; NULL sets err to -EINVAL. */
struct takt_sched_host *takt_sched_need_host(const struct takt_sched *sched, uint32_t id,
					     struct takt_err *err);
/* A known job; NULL sets err to -EINVAL. */
struct takt_sched_entry *takt_sched_need_job(const struct takt_sched *sched, uint64_t id,
					     struct takt_err *err);
/* Takes a node out of `hosts` and frees it. */
void takt_sched_host_forget(struct takt_sched *sched, struct takt_sched_host *host);

#endif
