/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long jobs run, learned from those that ran before. Pure: what it says is a function of what
 *it was told, in that order.
 *
 * Kinds. A job belongs to a chain of groups: all jobs; those of its size (GPUs: 1, 2, 3-4, 5-8,
 *...); of its owner; of its owner and size; of its owner, name and size (where a name is known).
 *The last one is its kind. Whatever is asked of a kind that has seen little comes from the groups
 *above it.
 *
 * Mean. Quasi-shortest-service-first's estimate (Hu et al., SC 2021: the rolling mean of the
 * owner's jobs of that name and size): an average over the last MEAN_OF or so jobs of the narrowest
 * group that has seen SEEN_ENOUGH. It carries its error: what the predictions from this group were
 * off by, on average over as many jobs.
 *
 * Outlook. What is to be expected of a job that has run for some time and not ended. Run times are
 * cut into steps, two for each doubling. For step b of a group
 *
 *	n(b)	jobs that have come to its beginning
 *	d(b)	of these, those that ended in it
 *	h(b)	chance to end in it once there: (d + K h') / (n + K), h' being that of the group
 *		above, K = 10
 *
 * so h follows Kaplan and Meier: a job that still runs counts for all steps that it has come to
 * (leaving those out makes everybody look short, and was measured to cost 2 % of mean completion
 * time). In groups of one owner and size a job's weight falls by a 32nd with each one that ends
 *after it: what people run changes.
 *
 * Rank. The Gittins index of what is left at age a, inverted so that smaller is more urgent (Aalto,
 * Ayesta and Righter 2009; Tiresias' second policy is a form of it):
 *
 *	rank(a) = min over b of  E[min(S - a, T(b) - a) | S > a] / P(S <= T(b) | S > a)
 *
 * S the run time, T(b) the end of step b >= step of a: the time one must invest, at the best moment
 * to give up, for each job that gets done. With memoryless run times it is the mean; where those
 *who have run long run longer yet it rises with age, as least attained service has it; where jobs
 *end all at about the same time it falls as that time comes, as shortest remaining time has it.
 */
#ifndef TAKT_MODEL_RUNTIME_H
#define TAKT_MODEL_RUNTIME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum {
	TAKT_RUNTIME_STEPS = 40, /* of run time; the last is open */
};

struct takt_runtime_config {
	uint32_t max_groups; /* 0 = 20,000, at 700 bytes; jobs of later kinds count above only */
};

struct takt_runtime;

/* Heap object; free takes NULL. */
int takt_runtime_new(const struct takt_runtime_config *config, struct takt_runtime **ret,
		     struct takt_err *err);
void takt_runtime_free(struct takt_runtime *model);

/* What is known of a job before it runs. Numbers of the caller's, equal for the same. */
struct takt_runtime_job {
	uint64_t owner;
	uint64_t name; /* 0 = not known */
	uint32_t gpus; /* in all */
};

/* The kind of such jobs, the same number for ever: 0..takt_runtime_kinds() - 1. -ENOMEM. */
int takt_runtime_kind(struct takt_runtime *model, const struct takt_runtime_job *job,
		      uint32_t *ret_kind, struct takt_err *err);
uint32_t takt_runtime_kinds(const struct takt_runtime *model);

/*
 * A job of that kind has run for ran_ns and runs on. *step is the caller's, one for each job, at
 * first TAKT_RUNTIME_NEW: what the model has been told of this job. Nothing is counted twice.
 */
#define TAKT_RUNTIME_NEW 0
void takt_runtime_reached(struct takt_runtime *model, uint32_t kind, uint32_t *step,
			  uint64_t ran_ns);
/* It has ended after ran_ns. `predicted_ns` is what takt_runtime_predict said of it, 0 = nothing.
 */
void takt_runtime_ended(struct takt_runtime *model, uint32_t kind, uint32_t *step, uint64_t ran_ns,
			uint64_t predicted_ns);

struct takt_runtime_prediction {
	uint64_t mean_ns;  /* of the whole run */
	uint64_t error_ns; /* by how much such predictions were off on average */
	bool has_error;	   /* false: none has been put to the test */
	uint32_t seen;	   /* jobs that it rests on; counts up to a million */
	bool alike;	   /* all of these are of its kind */
};
/* False when too little has been seen of anything. */
bool takt_runtime_predict(const struct takt_runtime *model, uint32_t kind,
			  struct takt_runtime_prediction *ret);

/* For each step its beginning and the rank from there on, in ms. */
struct takt_runtime_outlook {
	uint64_t age_ms[TAKT_RUNTIME_STEPS]; /* ascending, the first is 0 */
	uint64_t rank_ms[TAKT_RUNTIME_STEPS];
};
void takt_runtime_outlook(const struct takt_runtime *model, uint32_t kind,
			  struct takt_runtime_outlook *ret);

/* How much the kind has been told, groups above it included: an outlook is the same while this is.
 */
uint64_t takt_runtime_told(const struct takt_runtime *model, uint32_t kind);

/* The step of a run time, and where a step begins. */
uint32_t takt_runtime_step(uint64_t ran_ms);
uint64_t takt_runtime_step_ms(uint32_t step);

#endif
