/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Governors of running jobs. One governor a job, whatever the number of its GPUs: it is told, at
 * the end of each epoch, how the job fared, and what it then wishes for is set on all of them
 * together. An epoch begins when that was read back everywhere, so that every epoch is of one
 * setting; where a wish does not come true, or not on every GPU, nothing is learned from that time.
 * A job whose GPUs cannot all be set runs at the default on all of them.
 *
 * Leases are the lease keeper's; here nothing is set. Every step is logged (clock/epoch_log.h)
 * below the state folder; a daemon that starts again makes the steps again and goes on.
 */
#ifndef TAKT_DAEMON_GOVERN_H
#define TAKT_DAEMON_GOVERN_H

#include "clock/governor_choice.h"
#include "clock/savings.h"
#include "daemon/daemon.h"

/* govern_terms.c: who governs a job, and what was promised. */
struct takt_govern_terms {
	const struct takt_governor *governor;  /* NULL = nobody: its clocks are left alone */
	struct takt_policy_text said;	       /* its parameters */
	uint32_t max_slowdown_permille;	       /* 0 = no promise */
	uint32_t slo_latency_us, slo_permille; /* 0 = none */
};
/* -TAKT_E_USAGE: there is no such governor, it takes no such parameters, or lacks what it needs. */
int takt_govern_terms(const struct takt_daemon *daemon, uid_t uid, const struct takt_jobspec *spec,
		      struct takt_govern_terms *ret, struct takt_err *err);

/* The same, and of one that the description names, whether it could begin on a GPU that the job may
 * get: -EINVAL, with its own words. */
int takt_govern_check_job(const struct takt_daemon *daemon, uid_t uid,
			  const struct takt_jobspec *spec, struct takt_err *err);

/* Whether the governors that tenants' rules, or the daemon's settings, name are there and could
 * begin on a GPU of this machine; the error names the tenant, the setting. */
int takt_govern_check_rules(const struct takt_daemon *daemon, const struct takt_share_rules *rules,
			    struct takt_err *err);
int takt_govern_check_setting(const struct takt_daemon *daemon, const struct takt_config *config,
			      struct takt_err *err);

/* govern_try.c: whether it could begin on one of the GPUs that such a job may get (NULL: any job);
 * 0, too, where the clocks of none of them can be set. -EINVAL, -TAKT_E_USAGE: its own words. */
int takt_govern_try(const struct takt_daemon *daemon, const struct takt_govern_terms *terms,
		    const struct takt_jobspec *spec, struct takt_err *err);

int takt_govern_new(struct takt_daemon *daemon, struct takt_govern **ret, struct takt_err *err);
void takt_govern_free(struct takt_govern *govern);
/* It runs; nothing happens to one that is not to be governed, or is already. */
void takt_govern_watch(struct takt_govern *govern, const struct takt_queue_job *job);
/* It is over: what was saved goes into its report. Its leases are the keeper's to end. */
void takt_govern_over(struct takt_govern *govern, const struct takt_queue_job *job,
		      struct takt_job_report *ret_report);
/* Samples have come. */
void takt_govern_tick(struct takt_govern *govern, struct takt_mono now);
/* History has let go of it. */
void takt_govern_forget_log(struct takt_govern *govern, uint64_t job_id, uint32_t attempt);
/* For the job's view. */
void takt_govern_fill(const struct takt_govern *govern, const struct takt_queue_job *job,
		      struct takt_job_view *ret);
/* Of a report: who governed and what that saved. */
void takt_govern_fill_saved(const struct takt_job_report *report, struct takt_report_view *ret);
/* "job", "counters", "utilisation", "" for none. */
const char *takt_govern_signal_name(uint32_t signal);
/* Who governs a running job and why it wishes as it does, for a GPU's view; "" = nobody. */
void takt_govern_note(const struct takt_govern *govern, uint64_t job_id, char *ret, size_t size);
/* The budget, what each GPU counts with, and who has how much; the readings are there already. */
void takt_govern_fill_budget(const struct takt_govern *govern, struct takt_clock_view *ret);
/* What an administrator should see of the budget, of forecast_model; "" = nothing. */
const char *takt_govern_budget_note(const struct takt_govern *govern);
const char *takt_govern_model_note(const struct takt_govern *govern);
void takt_govern_update_page(const struct takt_govern *govern);

#endif
