/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The health of each GPU: readings, XIDs from the driver and the kernel's log are handed to the
 * rules (rules/rules.h), what these find is shown and tells the watch which GPUs get no jobs. Only
 * what can be read is used; what cannot is said.
 */
#ifndef TAKT_DAEMON_GPU_HEALTH_H
#define TAKT_DAEMON_GPU_HEALTH_H

#include "codec/health.h"
#include "daemon/daemon.h"
#include "rules/rules.h"

struct takt_gpu_health;

/* For the GPUs of the daemon's machine. */
int takt_health_new(struct takt_daemon *daemon, struct takt_gpu_health **ret, struct takt_err *err);
void takt_health_free(struct takt_gpu_health *health); /* NULL is fine */
/* Looks once a second, however often it is called, and when a GPU is lost or back. */
void takt_health_tick(struct takt_gpu_health *health, struct takt_mono now);
/* Somebody has looked at the GPU: what no reading would ever end is over. */
void takt_health_looked_at(struct takt_gpu_health *health, uint32_t gpu);

/* "suspect: SW thermal slowdown for 80 s of 10 min, limit 60 s (check-cooling)"; "" = healthy.
 * Returns buf. */
const char *takt_health_note(const struct takt_gpu_health *health, uint32_t gpu, char *buf,
			     size_t size);
/* "GPU 3 is suspect: ...", of the first of the job's GPUs that is not healthy; "" = all are. */
void takt_health_job_note(const struct takt_gpu_health *health, const struct takt_queue_job *job,
			  char *buf, size_t size);
/* The gravest of what befell the GPU since then; false: nothing. *ret_known: how the GPU was after
 * `ended` is known; else the driver is asked. */
bool takt_health_befell(struct takt_gpu_health *health, uint32_t gpu, struct takt_mono since,
			struct takt_mono ended, struct takt_rules_blow *ret, bool *ret_known);
/* Of the gravest of these GPUs. */
enum takt_level takt_health_severity_of(const struct takt_gpu_health *health, uint64_t gpu_mask);
/* How grave it is what ails the GPU, for every view: the rules' word; one that does not answer is
 * as grave as one that is lost. */
enum takt_level takt_health_severity(const struct takt_gpu_health *health, uint32_t gpu);
/* "healthy", ... Static. */
const char *takt_health_state(const struct takt_gpu_health *health, uint32_t gpu);
/* From the driver or the kernel's log: an XID that is not told has not happened. */
bool takt_health_hears_xids(const struct takt_gpu_health *health);
/* For the server. Names of processes only for root. */
int takt_api_health(void *ctx, const struct takt_peer *peer, struct takt_health_view *ret,
		    struct takt_err *err);

#endif
