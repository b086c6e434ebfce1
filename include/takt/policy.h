/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Policies of your own for `takt simulate`, from a shared object.
 *
 *	cc -shared -fPIC -o mine.so mine.c
 *	takt simulate --cluster NODES.csv --trace PODS.csv --placement fgd,./mine.so
 *	takt simulate --cluster uniform:70x8 --trace philly:JOBS.csv --queue fifo,./mine.so
 *
 * An object has a placement policy, a queue policy, or both, as variables of these names:
 *
 *	const struct takt_policy_placement takt_policy_placement = {
 *		.abi = TAKT_POLICY_ABI, .name = "mine", .score = score, ...
 *	};
 *	const struct takt_policy_queue takt_policy_queue = {
 *		.abi = TAKT_POLICY_ABI, .name = "mine", .key = key, ...
 *	};
 *
 * Complete examples are examples/worst_fit.c and examples/smallest_first.c.
 *
 * Functions are called from several threads at a time, each run with a state of its own: use no
 * globals that change. They must be functions of their arguments and the state; then a seed gives
 * the same result every time. Whole numbers keep it so on every machine. What is pointed at is
 * borrowed until the call returns, unless it says otherwise. A policy runs inside takt: where it
 * crashes, so does takt.
 */
#ifndef TAKT_POLICY_H
#define TAKT_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Grows by one when what is below changes; an object for another number is refused. */
#define TAKT_POLICY_ABI 1u

/* Answers of score() beside 0..levels-1. */
#define TAKT_POLICY_REFUSE UINT32_MAX /* not on this node, though it fits */

enum {
	TAKT_POLICY_MAX_LEVELS = 1024,
};

/* What one task asks of a node. */
struct takt_policy_request {
	int32_t cpu_milli; /* 1000 = one core */
	int64_t mem_mib;
	uint32_t gpus;
	uint32_t milli;	      /* of each GPU; 1000 = whole; less only with one GPU */
	uint32_t gpu_mem_mib; /* of each GPU; 0 = not asked */
	uint64_t model_mask;  /* bit i: model i will do; 0 = any; see the setup for names */
};

/* A node, with what is left on it. */
struct takt_policy_node {
	uint32_t id;   /* place in the cluster's file */
	uint32_t rank; /* of equal levels the lowest rank wins */
	int32_t cpu_left_milli, cpu_milli;
	int64_t mem_left_mib, mem_mib;
	uint32_t gpus;
	uint32_t model;		  /* of its GPUs, bit of model_mask */
	uint32_t tasks;		  /* placed there */
	const uint16_t *gpu_left; /* milli left of each GPU; 0 where it may not be used now */
};

/* What is expected to arrive, and what there is; a policy is told no more. */
struct takt_policy_setup {
	const struct takt_policy_expected {
		struct takt_policy_request request;
		uint64_t weight; /* how often, in any unit */
	} * expected;
	size_t expected_count;
	/* --param NAME=NUMBER of the command line. */
	const struct takt_policy_param {
		const char *name;
		int64_t value;
	} * params;
	size_t param_count;
	uint64_t seed; /* for policies that draw */
};

/*
 * Which node. The level must depend on nothing but the node, the request and the state: it is kept
 * until the node changes.
 */
struct takt_policy_placement {
	uint32_t abi;	  /* TAKT_POLICY_ABI */
	const char *name; /* a-z, 0-9, '-' and '_', shorter than 32 */
	const char *summary;
	uint32_t levels; /* 1..TAKT_POLICY_MAX_LEVELS */
	/* Optional. Negative refuses: the message says why. */
	int (*prepare)(const struct takt_policy_setup *setup, void **ret_state, char *message,
		       size_t message_size);
	void (*release)(void *state); /* optional */
	/*
	 * 0..levels-1, the highest wins, or TAKT_POLICY_REFUSE. The task fits on the node.
	 * ret_gpus may be NULL; else *ret_gpus is 0 and may be set to the GPUs to take, as many as
	 * asked for, of `candidates`; left at 0, takt takes the tightest or the best-linked.
	 */
	uint32_t (*score)(const void *state, const struct takt_policy_node *node,
			  const struct takt_policy_request *request, uint64_t candidates,
			  uint64_t *ret_gpus);
};

/* What is known of a job of the queue. Service is in GPU-milliseconds. */
struct takt_policy_job {
	uint64_t id;
	uint64_t submit_ns;
	int32_t priority;
	uint64_t gpu_milli;	    /* of all its tasks together */
	uint64_t attained_gpu_ms;   /* service so far, lost work included, up to now */
	uint64_t ran_ns, waited_ns; /* in all, up to now */
	bool running;
	bool has_prediction;
	uint64_t predicted_ns; /* whole run time */
	bool has_deadline;
	uint64_t deadline_ns;
};

/* Who goes first. */
struct takt_policy_queue {
	uint32_t abi;	  /* TAKT_POLICY_ABI */
	const char *name; /* as above */
	const char *summary;
	bool preempts; /* running jobs of a larger band may be pushed out for smaller ones */
	/* Smaller goes first: band, then value, then who was submitted first. */
	void (*key)(const struct takt_policy_job *job, uint64_t now_ns, int64_t *ret_band,
		    int64_t *ret_value);
	/* Optional: when the key will be another although nothing happens but time, > now_ns. Left
	 * out: a key changes only when the job starts, stops or learns something. */
	uint64_t (*next_change_ns)(const struct takt_policy_job *job, uint64_t now_ns);
};

/* What the object defines; found by name however it is compiled. */
extern const struct takt_policy_placement takt_policy_placement
	__attribute__((visibility("default")));
extern const struct takt_policy_queue takt_policy_queue __attribute__((visibility("default")));

#ifdef __cplusplus
}
#endif

#endif
