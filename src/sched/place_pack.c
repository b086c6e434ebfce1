/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack: where the largest part is held after it, so that whole nodes stay free.
 *
 * What counts is the task's scarcest kind: devices if it asks for any, else CPU (Kubernetes'
 * MostAllocated, and the packing of the batch schedulers for GPUs, look at one number a node too).
 * A task without devices goes to a node without devices if it can. Fractions go where the
 * least is left.
 */
#include "sched/place_share.h"

enum {
	LEVELS = 1000,
};

static uint32_t score(const void *state, const struct takt_node *node,
		      const struct takt_request *request, struct takt_place_choice *choice)
{
	uint32_t share = takt_share_asked(node, request);

	(void)state;
	(void)choice; /* the cluster packs inside a node */
	share = share < LEVELS ? share : LEVELS - 1;
	if (request->devices)
		return share;
	return share / 2 + (node->devices ? 0 : LEVELS / 2);
}

static int prepare(const struct takt_place_setup *setup, void **ret, struct takt_err *err)
{
	static const char *const none[] = {NULL};

	(void)ret;
	return takt_place_check_params(setup, none, 0, err);
}

const struct takt_placement takt_place_pack = {
	.name = "pack",
	.summary = "the node of which most is held, so that others stay free",
	.levels = LEVELS,
	.ignores_memory = true,
	.prepare = prepare,
	.score = score,
};
