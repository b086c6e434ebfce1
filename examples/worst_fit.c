/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A placement policy of one's own: worst fit, the node with the most GPU left.
 *
 *	cc -shared -fPIC -Iinclude -o worst_fit.so examples/worst_fit.c
 *	takt simulate --cluster data/traces/openb_node_list_gpu_node.csv \
 *	    --trace data/traces/openb_pod_list_default.csv.gz --placement fgd,random,./worst_fit.so
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <takt/policy.h>

struct state {
	int64_t keep_milli; /* --param keep=N: nodes with less than that left are refused */
};

static int prepare(const struct takt_policy_setup *setup, void **ret_state, char *message,
		   size_t message_size)
{
	struct state *state = calloc(1, sizeof(*state));

	if (!state) {
		snprintf(message, message_size, "no memory");
		return -1;
	}
	for (size_t i = 0; i < setup->param_count; i++) {
		if (strcmp(setup->params[i].name, "keep") == 0) {
			state->keep_milli = setup->params[i].value;
			continue;
		}
		snprintf(message, message_size, "worst-fit has no parameter '%s', only 'keep'",
			 setup->params[i].name);
		free(state);
		return -1;
	}
	*ret_state = state;
	return 0;
}

static uint32_t score(const void *opaque, const struct takt_policy_node *node,
		      const struct takt_policy_request *request, uint64_t candidates,
		      uint64_t *ret_gpus)
{
	const struct state *state = opaque;
	uint32_t left = 0;

	(void)candidates;
	(void)ret_gpus; /* takt chooses the GPUs */
	for (uint32_t i = 0; i < node->gpus; i++)
		left += node->gpu_left[i];
	if (request->gpus && left < state->keep_milli)
		return TAKT_POLICY_REFUSE;
	return left / 100; /* up to 8 GPUs are 80 levels; the levels are more, for larger nodes */
}

const struct takt_policy_placement takt_policy_placement = {
	.abi = TAKT_POLICY_ABI,
	.name = "worst-fit",
	.summary = "the node with the most GPU left",
	.levels = 641,
	.prepare = prepare,
	.release = free,
	.score = score,
};
