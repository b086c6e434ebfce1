/* SPDX-License-Identifier: Apache-2.0 */
/*
 * FGD, fragmentation gradient descent, as published (Weng et al., USENIX ATC 2023; the constants
 *are those of its simulator): place a task where the fragmentation of the node grows least.
 *
 * With the expected workload M of requests m with frequency p, the fragmentation of a node is
 * F = sum over m of p * F(m), where F(m) is
 *	all that is left of the node's GPUs, if m asks for none, or does not fit;
 *	else what is left on GPUs that m cannot use (too little left, another model).
 * The score of a node is int(100 / (1 + exp(-(F before - F after) / 1000))), in milli-GPU. A
 * fraction is tried on every GPU with room, the first of the highest score wins; whole GPUs go to
 * the lowest that are free. CPU counts as a resource that m needs, memory does not; a task
 * without a CPU request counts as 100 milli-CPU.
 *
 * Here frequencies are whole numbers with sum W, so that W * F is exact; the score is then a search
 * among 99 thresholds, W * 1000 * ln(k / (100 - k)) rounded up. A test holds every decision on the
 * given traces against the formula in floating point.
 *
 * Only the heaviest FGD_TYPES requests of the workload count. Without a workload all nodes are
 *equal.
 */
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "sched/cluster.h"

enum {
	FGD_TYPES = 256,
	FGD_LEVELS = 101,
	HALF = 50,
};

/* 10^9 * 1000 * ln(k / (100 - k)) for k = 51 to 99, rounded up. */
static const int64_t logit_nano[HALF - 1] = {
	40005334614,   80042707674,   120144311843,  160342650076,  200670695463,  241162056817,
	281851152141,  322773392264,  363965377202,  405465108109,  447312218044,  489548225319,
	532216813748,  575364144904,  619039208407,  663294217411,  708185057925,  753771802377,
	800119300113,  847297860388,  895384047055,  944461608841,  994622575145,  1045968555183,
	1098612288669, 1152679509939, 1208311205925, 1265666373332, 1324925414744, 1386294361120,
	1450010175506, 1516347489369, 1585627263741, 1658228076604, 1734601055389, 1815289966639,
	1900958761194, 1992430164691, 2090741096934, 2197224577337, 2313634929181, 2442347035370,
	2586689344098, 2751535313042, 2944438979167, 3178053830348, 3476098689836, 3891820298111,
	4595119850135,
};

struct type {
	int32_t cpu_milli;
	uint16_t devices;
	uint16_t milli;
	uint64_t model_mask; /* 0 = any */
	int64_t weight;
};

struct fgd {
	size_t count;
	struct type type[FGD_TYPES];
	int64_t threshold[FGD_LEVELS - 1]; /* least gradient of levels 1 to 100 */
};

static void add_type(struct fgd *fgd, const struct takt_workload_item *item)
{
	const struct takt_request *request = &item->request;
	size_t at = fgd->count < FGD_TYPES ? fgd->count++ : FGD_TYPES - 1;

	if (fgd->type[at].weight >= (int64_t)item->weight)
		return;
	for (; at > 0 && fgd->type[at - 1].weight < (int64_t)item->weight; at--)
		fgd->type[at] = fgd->type[at - 1];
	fgd->type[at] = (struct type){
		.cpu_milli = takt_place_cpu_milli(request),
		.devices = request->devices,
		.milli = request->devices ? request->milli : 0,
		.model_mask = request->model_mask,
		.weight = (int64_t)item->weight,
	};
}

static void set_thresholds(struct fgd *fgd)
{
	int64_t sum = 0;

	for (size_t i = 0; i < fgd->count; i++)
		sum += fgd->type[i].weight;
	for (int k = 1; k < FGD_LEVELS - 1; k++) {
		int away = k > HALF ? k - HALF : HALF - k;
		__extension__ __int128 nano = away ? logit_nano[away - 1] : 0;

		if (k >= HALF)
			fgd->threshold[k - 1] = (int64_t)((nano * sum + 999999999) / 1000000000);
		else
			fgd->threshold[k - 1] = -(int64_t)(nano * sum / 1000000000);
	}
	fgd->threshold[FGD_LEVELS - 2] = INT64_MAX;
}

static int prepare(const struct takt_place_setup *setup, void **ret, struct takt_err *err)
{
	static const char *const none[] = {NULL};
	struct fgd *fgd;
	int rc = takt_place_check_params(setup, none, 0, err);

	if (rc < 0)
		return rc;
	fgd = takt_zalloc(sizeof(*fgd));
	if (!fgd)
		return takt_err_set(err, -ENOMEM, "no memory for the policy fgd");
	for (size_t i = 0; i < setup->workload->count; i++)
		add_type(fgd, &setup->workload->items[i]);
	set_thresholds(fgd);
	*ret = fgd;
	return 0;
}

/* What is left after a task, as far as fragmentation looks at it. */
struct state {
	const struct takt_node *node;
	int32_t cpu_milli;
	uint16_t left[TAKT_REQUEST_MAX_DEVICES];
};

static int64_t fragmentation_for(const struct state *state, const struct type *type)
{
	const struct takt_node *node = state->node;
	int64_t all = 0, unusable = 0;
	uint32_t can = 0;

	for (uint32_t i = 0; i < node->devices; i++) {
		bool model = !type->model_mask || type->model_mask >> node->device[i].model & 1;
		bool usable = model && state->left[i] >= type->milli;

		all += state->left[i];
		unusable += usable ? 0 : state->left[i];
		can += usable;
	}
	if (type->devices == 0 || can < type->devices || state->cpu_milli < type->cpu_milli)
		return all;
	return unusable;
}

static int64_t fragmentation(const struct fgd *fgd, const struct state *state)
{
	int64_t sum = 0;

	for (size_t i = 0; i < fgd->count; i++)
		sum += fgd->type[i].weight * fragmentation_for(state, &fgd->type[i]);
	return sum;
}

static uint32_t level_of(const struct fgd *fgd, int64_t gradient)
{
	uint32_t low = 0, high = FGD_LEVELS - 1;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (fgd->threshold[middle] <= gradient)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Tries the fraction on each of the devices; the first of the highest level. */
static uint32_t try_each(const struct fgd *fgd, struct state *state, int64_t before,
			 const struct takt_request *request, uint64_t devices, uint64_t *ret_device)
{
	uint32_t best = 0;

	*ret_device = devices & -devices;
	for (; devices; devices &= devices - 1) {
		uint32_t i = (uint32_t)__builtin_ctzll(devices), level;
		uint32_t milli = takt_fit_milli(request, &state->node->device[i]);

		state->left[i] = (uint16_t)(state->left[i] - milli);
		level = level_of(fgd, before - fragmentation(fgd, state));
		state->left[i] = (uint16_t)(state->left[i] + milli);
		if (level > best) {
			best = level;
			*ret_device = devices & -devices;
		}
	}
	return best;
}

/* Without a choice to fill in, which devices could be used has to be found out here. */
static uint64_t candidates_of(const struct takt_node *node, const struct takt_request *request,
			      const struct takt_place_choice *choice)
{
	uint64_t devices = 0;

	if (choice)
		return choice->candidates;
	for (uint32_t i = 0; i < node->devices; i++) {
		const struct takt_device *device = &node->device[i];
		bool model = !request->model_mask || request->model_mask >> device->model & 1;

		if (model && node->left[i] >= takt_fit_milli(request, device))
			devices |= UINT64_C(1) << i;
	}
	return devices;
}

static uint32_t score(const void *policy, const struct takt_node *node,
		      const struct takt_request *request, struct takt_place_choice *choice)
{
	const struct fgd *fgd = policy;
	struct state state = {.node = node, .cpu_milli = node->cpu_left_milli};
	uint64_t devices = candidates_of(node, request, choice), device;
	int64_t before;
	uint32_t level;

	memcpy(state.left, node->left, node->devices * sizeof(*state.left));
	before = fragmentation(fgd, &state);
	state.cpu_milli -= takt_place_cpu_milli(request);
	if (request->devices == 1 && request->milli != TAKT_REQUEST_WHOLE && devices) {
		level = try_each(fgd, &state, before, request, devices, &device);
		if (choice)
			choice->dev_mask = device;
		return level;
	}
	for (uint32_t need = request->devices; need && devices; need--, devices &= devices - 1)
		state.left[__builtin_ctzll(devices)] = 0;
	return level_of(fgd, before - fragmentation(fgd, &state));
}

const struct takt_placement takt_place_fgd = {
	.name = "fgd",
	.summary = "least growth of fragmentation, as published (ATC 2023)",
	.levels = FGD_LEVELS,
	.prepare = prepare,
	.release = takt_free,
	.score = score,
};
