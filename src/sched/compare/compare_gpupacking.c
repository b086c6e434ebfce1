/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPU packing: fill devices that are in use before free ones, and nodes in use before free ones.
 *
 *	all devices of the node are free:	  max(33 - free, free)
 *	it needs k free devices on a used node:	  max(50 - k, 33)
 *	shared devices are enough:		  max(100 - sum of their left in percent / 10, 50)
 *
 * Devices are taken by what is left of them, the least first. Tasks without devices score 0
 *anywhere.
 */
#include "sched/compare/compare.h"

enum {
	BEST = 100,
	HALF = BEST / 2,
	THIRD = BEST / 3,
};

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* The device with the least left that is enough, the lowest of equal ones. */
static uint32_t tightest(const struct takt_node *node, uint64_t among, uint32_t milli)
{
	uint32_t best = node->devices;

	for (; among; among &= among - 1) {
		uint32_t i = (uint32_t)__builtin_ctzll(among);

		if (node->left[i] >= milli &&
		    (best == node->devices || node->left[i] < node->left[best]))
			best = i;
	}
	return best;
}

static uint32_t score(const void *state, const struct takt_node *node,
		      const struct takt_request *request, struct takt_place_choice *choice)
{
	uint64_t among = takt_node_all_devices(node);
	int64_t whole = __builtin_popcountll(node->whole), fresh = 0, percent = 0;

	(void)state;
	(void)choice;
	if (request->devices == 0)
		return 0;
	if (whole == node->devices)
		return takt_compare_level(larger(THIRD - whole, whole));
	for (uint32_t need = request->devices; need; need--) {
		uint32_t i = tightest(node, among, request->milli);

		if (i == node->devices)
			return 0;
		among &= ~(UINT64_C(1) << i);
		fresh += node->left[i] == TAKT_REQUEST_WHOLE;
		percent += node->left[i] * 100 / TAKT_REQUEST_WHOLE;
	}
	return takt_compare_level(fresh ? larger(HALF - fresh, THIRD)
					: larger(BEST - percent / 10, HALF));
}

const struct takt_placement takt_compare_gpupacking = {
	.name = "gpupacking",
	.summary = "accelerators in use before free ones",
	.levels = TAKT_COMPARE_LEVELS,
	.ignores_memory = true,
	.score = score,
};
