/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who goes first: the seam of queue order policies.
 *
 * A policy turns what is known of one job into a key; smaller keys go first. It sees nothing but
 * its arguments, so a key is the same whenever and in whichever order jobs are asked about. The
 * planner owns the queue, calls the policy when something that the key depends on has changed
 * (`reads`, next_change_ns), and does the rest: placement, backfill, preemption.
 *
 * The order is total: class, band, value, submit_seq, the smaller first in each.
 *
 *	class	the job's priority, negated, when priorities go before the policy (`by_priority`)
 *	band	the policy's coarse order (a queue of LAS); the starvation guard's is the first
 *	value	the policy's fine order
 *
 * A policy that preempts also says whom a waiting job may push out. It never says so of two jobs
 * both ways round, so that no two jobs can take turns in evicting each other (property test).
 *
 * Policies: fifo, priority, round_robin, qssf, las, fair_share, edf, takt, each in order_NAME.c
 *with its formula and source; the starvation guard wraps any of them.
 */
#ifndef TAKT_SCHED_ORDER_H
#define TAKT_SCHED_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* "Never", where an instant is asked for. */
#define TAKT_ORDER_NEVER UINT64_MAX

struct takt_order_outlook; /* see below */

/* What is known of a job. Service is in GPU-milliseconds (one GPU for one millisecond), instants
 * and spans in nanoseconds. What is not known is not valid, never 0. */
struct takt_order_job {
	uint64_t id;
	uint64_t submit_seq; /* unique; the last tie-break of every policy */
	uint64_t submit_ns;
	int32_t priority;     /* larger goes first */
	uint32_t tenant_rank; /* takt_tenants_rank(): 0 is who is owed most */
	/* Jobs of the same tenant that run, and that wait with a smaller submit_seq. */
	uint32_t tenant_ahead;
	uint64_t gpu_milli; /* of all its tasks together; 0 without GPUs */

	/* These three as of since_ns, when it began to wait or run this time; what came since then
	 * follows from `running` and now. */
	uint64_t since_ns;
	uint64_t attained_gpu_ms; /* service of all its attempts, lost work included */
	uint64_t ran_ns;	  /* time in which it held its GPUs, all attempts */
	uint64_t waited_ns;	  /* all its waits together */
	bool running;
	bool preemptible;
	bool has_checkpoint;	/* else it starts anew when it is pushed out */
	uint64_t checkpoint_ns; /* of a running job: its last checkpoint; valid with the above */
	uint64_t min_run_ns;	/* not pushed out before it has run that long this time */

	bool has_prediction;
	uint64_t predicted_ns; /* whole run time, not what is left */
	bool has_deadline;
	uint64_t deadline_ns;
	const struct takt_order_outlook *outlook; /* borrowed; NULL = nothing is known */
};

/*
 * What is to be expected of a job of some kind that has run for a while and not ended: how much
 * more time one has to invest in it for each job that gets done, from each age on (its Gittins
 * index, inverted; src/model/runtime.h has the formula). Told to the scheduler as a fact, since it
 * cannot ask src/model.
 */
enum {
	TAKT_ORDER_OUTLOOK_STEPS = 40
};
struct takt_order_outlook {
	uint32_t mean_s;			   /* of whole run times; 0 = not known */
	uint32_t steps;				   /* 1.. */
	uint32_t age_s[TAKT_ORDER_OUTLOOK_STEPS];  /* time with GPUs; ascending from 0 */
	uint32_t rank_s[TAKT_ORDER_OUTLOOK_STEPS]; /* from that age to the next; > 0 */
};
_Static_assert(sizeof(struct takt_order_outlook) ==
		       (2 + 2 * TAKT_ORDER_OUTLOOK_STEPS) * sizeof(uint32_t),
	       "no padding: it is compared as bytes");

struct takt_order_key {
	int64_t class;
	int64_t band;
	int64_t value;
	uint64_t seq;
};

/* Negative, 0 (only for the same job), positive as a goes before b. */
int takt_order_compare(const struct takt_order_key *a, const struct takt_order_key *b);

/* What a key depends on besides what never changes. A planner may keep a key until one of these
 * has changed; with TAKT_ORDER_TIME until next_change_ns. */
enum takt_order_fact {
	TAKT_ORDER_PRIORITY = 1u << 0,
	TAKT_ORDER_SERVICE = 1u << 1, /* attained, ran, waited, running */
	TAKT_ORDER_PREDICTION = 1u << 2,
	TAKT_ORDER_DEADLINE = 1u << 3,
	TAKT_ORDER_TENANT_RANK = 1u << 4,
	TAKT_ORDER_TENANT_AHEAD = 1u << 5,
	TAKT_ORDER_TIME = 1u << 6,
	TAKT_ORDER_OUTLOOK = 1u << 7,
};

enum {
	TAKT_ORDER_MAX_QUEUES = 8
};

/* Zero means the default in each. */
struct takt_order_config {
	const void *own;  /* of a policy that is not one of these; borrowed, passed on */
	bool by_priority; /* priorities go before the policy */
	/* The starvation guard: a job that has waited (all its waits together) this long goes to
	 * the front of its class. 0 = no guard. */
	uint64_t guard_ns;
	/* qssf: what a job without a prediction counts as; default 1 h. */
	uint64_t unknown_ns;
	/* las: upper limits of attained service of all queues but the last, ascending; default one
	 * limit of 3,250 GPU-seconds. */
	uint64_t las_limit_gpu_ms[TAKT_ORDER_MAX_QUEUES - 1];
	uint32_t las_limits;
	/* las: back to the first queue when the job has waited this many times as long as it has
	 * run; default 8, UINT32_MAX = never. */
	uint32_t las_promote;
	/* takt: nothing is ever pushed out; the scheduler sets it where preemption is off. */
	bool keeps;
	/* takt: a running job is pushed out only for one that is this much more urgent, the loss
	 * counted, in permille; default 8000. */
	uint32_t evict_ratio_permille;
	/* takt: what each eviction costs besides the work since the last checkpoint; default 60 s.
	 */
	uint64_t evict_cost_ns;
	/* takt, where nothing is pushed out: this part of all GPUs, in permille, is kept free of
	 * jobs whose predicted GPU time is above hold_gpu_ms, until they have waited half of
	 * their predicted run time; 0 = none, default of hold_gpu_ms 40 GPU-hours. Not while all
	 * that waits asks for more than hold_backlog_permille of all GPUs; default 1000. */
	uint32_t hold_permille;
	uint64_t hold_gpu_ms;
	uint32_t hold_backlog_permille;
};

/* How full it is, in thousandths of a GPU. */
struct takt_order_load {
	uint64_t free_milli, capacity_milli;
	uint64_t waiting_milli; /* what all that waits asks for */
};

struct takt_order {
	const char *name;
	const char *summary; /* one line for help texts */
	uint32_t reads;	     /* enum takt_order_fact */
	/* Whether running jobs may be pushed out for waiting ones. */
	bool preempts;
	/* Class and seq are filled in by the caller below; the policy sets band and value. */
	void (*key)(const struct takt_order_config *config, const struct takt_order_job *job,
		    uint64_t now_ns, struct takt_order_key *ret);
	/* When the key will be another, or the job no longer held, with nothing but time passing;
	 * > now_ns; optional: never. */
	uint64_t (*next_change_ns)(const struct takt_order_config *config,
				   const struct takt_order_job *job, uint64_t now_ns);
	/* May `waiting` push `running` out? Asked only if the policy preempts, the victim is
	 * preemptible and has had its minimum run time, and the waiting job's key is smaller.
	 * Optional: yes if its (class, band) is smaller. */
	bool (*may_evict)(const struct takt_order_config *config,
			  const struct takt_order_job *waiting,
			  const struct takt_order_job *running, uint64_t now_ns);
	/* Is the job to wait although it fits, so that what is free stays so for others? It then
	 * holds nobody back. Where that ends with nothing but time passing, next_change_ns says
	 * when. Optional: no. See takt_order_holds(). */
	bool (*holds)(const struct takt_order_config *config, const struct takt_order_job *waiting,
		      const struct takt_order_load *load, uint64_t now_ns);
};

extern const struct takt_order takt_order_fifo;
extern const struct takt_order takt_order_priority;
extern const struct takt_order takt_order_round_robin;
extern const struct takt_order takt_order_qssf;
extern const struct takt_order takt_order_las;
extern const struct takt_order takt_order_fair_share;
extern const struct takt_order takt_order_edf;
extern const struct takt_order takt_order_takt;

/* All of them, ends in NULL; and one by name, NULL when there is none. */
extern const struct takt_order *const takt_order_all[];
const struct takt_order *takt_order_find(const char *name);

/* Fills in the defaults. -EINVAL names the field. */
int takt_order_config_check(struct takt_order_config *config, struct takt_err *err);

/* The key of a job, guard and priority class included. `config` has been checked. */
void takt_order_key(const struct takt_order *order, const struct takt_order_config *config,
		    const struct takt_order_job *job, uint64_t now_ns, struct takt_order_key *ret);

/* When that key will be another with nothing but time passing; > now_ns, TAKT_ORDER_NEVER. */
uint64_t takt_order_next_change_ns(const struct takt_order *order,
				   const struct takt_order_config *config,
				   const struct takt_order_job *job, uint64_t now_ns);

/* Whether `waiting` may push `running` out now: the policy preempts and allows it, the victim is
 * preemptible and has had its minimum run time. */
bool takt_order_may_evict(const struct takt_order *order, const struct takt_order_config *config,
			  const struct takt_order_job *waiting,
			  const struct takt_order_job *running, uint64_t now_ns);

/* Whether the policy wants a waiting job to leave what is free to others. Never of one that the
 * guard has brought to the front. */
bool takt_order_holds(const struct takt_order *order, const struct takt_order_config *config,
		      const struct takt_order_job *waiting, const struct takt_order_load *load,
		      uint64_t now_ns);

/* Time that the job has waited in all, and its service and run time, up to now. */
uint64_t takt_order_waited_ns(const struct takt_order_job *job, uint64_t now_ns);
uint64_t takt_order_ran_ns(const struct takt_order_job *job, uint64_t now_ns);
uint64_t takt_order_attained_gpu_ms(const struct takt_order_job *job, uint64_t now_ns);

/* What pushing out a running job throws away: GPU-milliseconds since its checkpoint, or since it
 * began this time. */
uint64_t takt_order_loss_gpu_ms(const struct takt_order_job *job, uint64_t now_ns);

/* to - from, or 0; and now + span, or TAKT_ORDER_NEVER. */
uint64_t takt_order_span_ns(uint64_t from_ns, uint64_t to_ns);
uint64_t takt_order_later(uint64_t now_ns, uint64_t span_ns);

/* GPUs times time, rounded down, UINT64_MAX when it is more. */
uint64_t takt_order_gpu_ms(uint64_t gpu_milli, uint64_t span_ns);

#endif
