/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the governors of running jobs share. */
#ifndef TAKT_DAEMON_GOVERN_IMPL_H
#define TAKT_DAEMON_GOVERN_IMPL_H

#include "base/map.h"
#include "daemon/govern.h"
#include "daemon/govern_epoch.h"
#include "model/load_ahead.h"

enum takt_governed_phase {
	TAKT_GOVERNED_ASKING,	 /* its wish is not, or not known to be, in force everywhere */
	TAKT_GOVERNED_MEASURING, /* an epoch goes by */
	TAKT_GOVERNED_ADVISING,	 /* no permission to set: what it would set is said */
	TAKT_GOVERNED_RESTING,	 /* the job stands still */
	TAKT_GOVERNED_OVER,	 /* given up: the default clocks */
};

/* govern_budget.c: of a job that power-budget governs, each of its boards. */
struct takt_power_share {
	uint32_t least_mw, most_mw; /* most 0 = not known: it has none */
	uint32_t target_mw;	    /* shared out last; 0 = not yet */
	uint32_t told_mw, was_mw;   /* its governor, 0 = nothing yet; and before, which may be in
				     * force still */
	bool breaks_promise;	    /* too little for what was promised */
};

/* govern_load.c: of a job whose governor looks ahead. */
enum takt_load_kind {
	TAKT_LOAD_UNKNOWN,
	TAKT_LOAD_QUERIES,
	TAKT_LOAD_WORK,
};
struct takt_job_load {
	struct takt_load_ahead *ahead; /* owned; NULL = it does not */
	struct takt_load_ahead_config config;
	enum takt_load_kind kind;
};

struct takt_governed {
	uint64_t job_id;
	uint32_t attempt;
	enum takt_governed_phase phase;
	bool shared;			      /* others use its GPUs too */
	const struct takt_governor *governor; /* NULL: OVER, since the one it names is not here */
	uint32_t said_permille; /* by the job's description; another promise: a new beginning */
	char said_policy[TAKT_SPEC_MAX_CLOCK_POLICY];
	struct takt_governor_setup setup; /* points into this */
	uint32_t sm_mhz[TAKT_GOVERNOR_MAX_CLOCKS];
	char name[TAKT_SPEC_MAX_NAME + 1];
	struct takt_policy_text said; /* the governor's parameters */
	struct takt_governor_param params[TAKT_POLICY_MAX_PARAMS];
	void *state; /* owned */
	uint32_t gpu_count, gpu[TAKT_DEVICE_MAX_GPUS];
	struct takt_governor_wish wish; /* the newest */
	struct takt_governor_cap asked; /* of the lease keeper */
	uint64_t epoch_ns;		/* how long one is meant to be */
	/* Monotonic: since when it is watched, when its first wish was in force, when the newest
	 * one was asked for, the end of the last epoch that counted. */
	uint64_t watched_ns, applied_ns, asked_ns, ended_ns;
	uint32_t bids_lost; /* in a row */
	uint64_t out_ns; /* monotonic: since when none of its wishes is known to hold; 0 = one is */
	uint64_t astray_ns; /* the first of the latest epochs in a row at another clock; 0 = none */
	struct takt_epoch epoch;
	uint32_t unit; /* of work, see govern_epoch.h; 0 = the job says nothing */
	/* Its work is measured by activity counters: these, 0 = not known yet since takt began. */
	bool counted;
	uint32_t parts;
	bool better_signal; /* one of the two has just begun */
	uint32_t epochs;
	uint32_t reach_mhz[TAKT_DEVICE_MAX_GPUS]; /* of each GPU at work; 0 = not known */
	struct takt_savings savings;
	int log_fd; /* -1 = none */
	uint32_t log_steps;
	char note[200]; /* why its wish is not in force; "" = it is */
	bool in_budget; /* the machine had a budget when it was found who governs it */
	struct takt_power_share share;
	struct takt_job_load load;
};

/* What a GPU counts with in the budget. */
struct takt_budget_gpu {
	enum {
		TAKT_BUDGET_NONE,
		TAKT_BUDGET_SHARE,   /* of a job, in force */
		TAKT_BUDGET_LIMIT,   /* its limit: something is on it */
		TAKT_BUDGET_DRAWN,   /* what it draws */
		TAKT_BUDGET_UNKNOWN, /* neither is known: nothing */
	} how;
	uint32_t mw;
};
struct takt_budget {
	uint32_t watts; /* 0 = none */
	struct takt_mono shared_at;
	uint64_t aside_mw, left_mw; /* for GPUs without a share; for the others */
	struct takt_budget_gpu gpu[TAKT_DEVICE_MAX_GPUS];
	char note[200]; /* "" = it is kept */
};

struct takt_govern {
	struct takt_daemon *daemon;
	struct takt_map jobs; /* job id -> struct takt_governed, owned */
	struct takt_mono ticked_at;
	int log_dirfd;
	/* Of jobs that are over and whose saving is known. */
	uint64_t governed_mj, highest_mj;
	struct takt_budget budget;
	struct takt_lstm *net; /* owned: forecast_model; NULL = none */
	char net_note[200];    /* why that is not used */
};

/* As a job on its GPUs would be governed; nothing has begun. NULL: no memory. */
struct takt_governed *takt_governed_new(const struct takt_daemon *daemon,
					const struct takt_govern_terms *terms,
					const struct takt_queue_job *job);
void takt_governed_free(struct takt_governed *one); /* NULL is fine */
/* govern_signal.c: whose word its speed is. Activity counters are taken up where they tell. */
void takt_govern_look_for_counters(struct takt_governed *one, uint64_t now_ns);
struct takt_epoch_basis takt_govern_basis(const struct takt_governed *one);
/* Enough was said in this epoch to know its speed. */
bool takt_govern_knows_speed(const struct takt_governed *one, uint64_t now_ns);

/* What is known so far of what was saved. */
void takt_govern_peek(const struct takt_govern *govern, uint64_t job_id,
		      struct takt_job_report *ret);

/* govern_budget.c */
/* What its boards can be held to. */
void takt_budget_describe(const struct takt_govern *govern, struct takt_governed *one);
/* Shares out now and then, and follows the setting. */
void takt_budget_tick(struct takt_govern *govern, struct takt_mono now);
/* Adds its share to what a governor is about to be told. */
void takt_budget_observe(struct takt_govern *govern, struct takt_governed *one,
			 struct takt_governor_observation *seen);
/* It is to draw less, or knows of no share yet: its epoch does not wait for what the job says. */
bool takt_budget_hurries(const struct takt_govern *govern, const struct takt_governed *one);
/* What its owner should know; "" = nothing. */
void takt_budget_job_note(const struct takt_govern *govern, const struct takt_governed *one,
			  char *ret, size_t size);

/* govern_load.c */
void takt_load_read_model(struct takt_govern *govern);
void takt_load_begin(const struct takt_govern *govern, struct takt_governed *one);
void takt_load_end(struct takt_governed *one);
/* An epoch of before a restart. */
void takt_load_retell(struct takt_governed *one, const struct takt_governor_observation *seen);
/* Adds load and forecast to what a governor is about to be told of an epoch. */
void takt_load_observe(const struct takt_govern *govern, struct takt_governed *one,
		       struct takt_governor_observation *seen);
/* Who forecasts it, or why nobody does; "" = its governor does not look ahead. */
void takt_load_text(const struct takt_governed *one, char *ret, size_t size);

/* govern_log.c: steps on disk. What cannot be written is not logged; the job is governed on. */
int takt_govern_log_open(struct takt_govern *govern, struct takt_err *err);
void takt_govern_log_shut(struct takt_govern *govern);
/* A new log, in the place of one of before. */
void takt_govern_log_begin(struct takt_govern *govern, struct takt_governed *one);
void takt_govern_log_step(struct takt_governed *one, const struct takt_governor_observation *seen);
void takt_govern_log_close(struct takt_governed *one);
/* Makes the steps of its log again and goes on from there; false: there is none, or it does not fit
 * any more, and nothing has changed. */
bool takt_govern_log_resume(struct takt_govern *govern, struct takt_governed *one);

#endif
