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
 * What can be used of a node, tot - F, is a sum over its devices of what is left times the weight
 *of those requests that could use it. That weight depends on model, CPU left and milli left alone,
 *and for requests of several devices on how many are whole; both are tables made beforehand. A node
 *with several models is rare and takes the long way, by the definition.
 *
 * MIG instances are not in the paper: only the CPU that they take counts.
 *
 * Only the heaviest FGD_TYPES requests of the workload count. Without a workload all nodes are
 *equal.
 */
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "sched/cluster.h"
#include "sched/place_ladder.h"

enum {
	FGD_TYPES = 256,
	FGD_LEVELS = 101,
	HALF = 50,
	MAX_WEIGHT_BITS = 40, /* of all requests together */
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
	int64_t weight; /* of all */

	int64_t threshold[FGD_LEVELS - 2]; /* least gradient of levels 1 to 99 */
	struct takt_ladder level;

	int64_t cpu_step[FGD_TYPES]; /* what requests ask of CPU, each once */
	struct takt_ladder cpu;
	uint32_t cpu_classes;

	/* How many of the fractions asked for are not above so many milli. */
	uint16_t milli_class[TAKT_REQUEST_WHOLE + 1];
	uint32_t milli_classes;
	uint32_t wholes; /* most devices asked for, plus 1 */

	/* By model, CPU class and milli class: weight of the requests of one device that such a
	 * device could serve; and by whole devices: of those of several. */
	int64_t *single;  /* owned */
	int64_t *several; /* owned */
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
	for (int k = 1; k < FGD_LEVELS - 1; k++) {
		int away = k > HALF ? k - HALF : HALF - k;
		__extension__ __int128 nano = away ? logit_nano[away - 1] : 0;

		if (k >= HALF)
			fgd->threshold[k - 1] =
				(int64_t)((nano * fgd->weight + 999999999) / 1000000000);
		else
			fgd->threshold[k - 1] = -(int64_t)(nano * fgd->weight / 1000000000);
	}
	takt_ladder_init(&fgd->level, fgd->threshold, TAKT_ARRAY_LEN(fgd->threshold));
}

static int ascending(const void *a, const void *b, void *ctx)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	(void)ctx;
	return x < y ? -1 : x > y;
}

/* Sorts values and keeps each once; returns how many are left. */
static size_t each_once(int64_t *values, size_t count)
{
	int64_t scratch[FGD_TYPES];
	size_t kept = 0;

	takt_sort_with(values, count, sizeof(*values), scratch, ascending, NULL);
	for (size_t i = 0; i < count; i++)
		if (i == 0 || values[i] != values[kept - 1])
			values[kept++] = values[i];
	return kept;
}

static void set_classes(struct fgd *fgd)
{
	int64_t milli[FGD_TYPES];
	size_t millis = 0, class = 0;

	fgd->wholes = 1;
	for (size_t i = 0; i < fgd->count; i++) {
		fgd->cpu_step[i] = fgd->type[i].cpu_milli;
		if (fgd->type[i].devices == 1)
			milli[millis++] = fgd->type[i].milli;
		if (fgd->type[i].devices >= fgd->wholes)
			fgd->wholes = fgd->type[i].devices + 1u;
	}
	millis = each_once(milli, millis);
	for (int i = 0; i <= TAKT_REQUEST_WHOLE; i++) {
		while (class < millis && milli[class] <= i)
			class ++;
		fgd->milli_class[i] = (uint8_t) class;
	}
	fgd->milli_classes = (uint32_t)millis + 1;
	takt_ladder_init(&fgd->cpu, fgd->cpu_step, each_once(fgd->cpu_step, fgd->count));
	fgd->cpu_classes = fgd->cpu.count + 1;
}

static int64_t *single_row(const struct fgd *fgd, uint32_t model, uint32_t cpu_class)
{
	return &fgd->single[((size_t)model * fgd->cpu_classes + cpu_class) * fgd->milli_classes];
}

static int64_t *several_row(const struct fgd *fgd, uint32_t model, uint32_t cpu_class)
{
	return &fgd->several[((size_t)model * fgd->cpu_classes + cpu_class) * fgd->wholes];
}

/* Enters a request wherever it can be served. */
static void enter(struct fgd *fgd, const struct type *type, uint32_t model)
{
	uint32_t from = takt_ladder_count(&fgd->cpu, type->cpu_milli);

	if (!type->devices || (type->model_mask && !(type->model_mask >> model & 1)))
		return;
	for (uint32_t cpu = from; cpu < fgd->cpu_classes; cpu++) {
		if (type->devices == 1) {
			for (uint32_t i = fgd->milli_class[type->milli]; i < fgd->milli_classes;
			     i++)
				single_row(fgd, model, cpu)[i] += type->weight;
			continue;
		}
		for (uint32_t i = type->devices; i < fgd->wholes; i++)
			several_row(fgd, model, cpu)[i] += type->weight;
	}
}

static int make_tables(struct fgd *fgd)
{
	size_t rows = (size_t)TAKT_CLUSTER_MAX_MODELS * fgd->cpu_classes;

	fgd->single = takt_calloc(rows * fgd->milli_classes, sizeof(*fgd->single));
	fgd->several = takt_calloc(rows * fgd->wholes, sizeof(*fgd->several));
	if (!fgd->single || !fgd->several)
		return -ENOMEM;
	for (uint32_t model = 0; model < TAKT_CLUSTER_MAX_MODELS; model++)
		for (size_t i = 0; i < fgd->count; i++)
			enter(fgd, &fgd->type[i], model);
	return 0;
}

static void release(void *policy)
{
	struct fgd *fgd = policy;

	takt_free(fgd->single);
	takt_free(fgd->several);
	takt_free(fgd);
}

static int check_weights(const struct takt_workload *workload, struct takt_err *err)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < workload->count; i++) {
		if (workload->items[i].weight >> MAX_WEIGHT_BITS)
			sum = UINT64_MAX >> 1;
		else
			sum += workload->items[i].weight;
	}
	return sum >> MAX_WEIGHT_BITS
		       ? takt_err_set(err, -EINVAL, "the weights of a workload add up to 2^%d",
				      MAX_WEIGHT_BITS)
		       : 0;
}

static int prepare(const struct takt_place_setup *setup, void **ret, struct takt_err *err)
{
	static const char *const none[] = {NULL};
	struct fgd *fgd;
	int rc = takt_place_check_params(setup, none, 0, err);

	if (rc == 0)
		rc = check_weights(setup->workload, err);
	if (rc < 0)
		return rc;
	fgd = takt_zalloc(sizeof(*fgd));
	if (!fgd)
		return takt_err_set(err, -ENOMEM, "no memory for the policy fgd");
	for (size_t i = 0; i < setup->workload->count; i++)
		add_type(fgd, &setup->workload->items[i]);
	for (size_t i = 0; i < fgd->count; i++)
		fgd->weight += fgd->type[i].weight;
	set_thresholds(fgd);
	set_classes(fgd);
	if (make_tables(fgd) < 0) {
		release(fgd);
		return takt_err_set(err, -ENOMEM, "no memory for the policy fgd");
	}
	*ret = fgd;
	return 0;
}

/*
 * The long way, by the definition.
 */

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
		level = takt_ladder_count(&fgd->level, before - fragmentation(fgd, state));
		state->left[i] = (uint16_t)(state->left[i] + milli);
		if (level > best) {
			best = level;
			*ret_device = devices & -devices;
		}
	}
	return best;
}

static bool is_fraction(const struct takt_request *request)
{
	return request->devices == 1 && request->milli < TAKT_REQUEST_WHOLE &&
	       !request->mig_profile;
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

static uint32_t score_mixed(const struct fgd *fgd, const struct takt_node *node,
			    const struct takt_request *request, struct takt_place_choice *choice)
{
	struct state state = {.node = node, .cpu_milli = node->cpu_left_milli};
	uint64_t devices = candidates_of(node, request, choice), device;
	uint32_t level, need;
	int64_t before;

	memcpy(state.left, node->left, node->devices * sizeof(*state.left));
	before = fragmentation(fgd, &state);
	state.cpu_milli -= takt_place_cpu_milli(request);
	if (is_fraction(request) && devices) {
		level = try_each(fgd, &state, before, request, devices, &device);
		if (choice)
			choice->dev_mask = device;
		return level;
	}
	need = request->mig_profile ? 0 : request->devices;
	for (; need && devices; need--, devices &= devices - 1)
		state.left[__builtin_ctzll(devices)] = 0;
	return takt_ladder_count(&fgd->level, before - fragmentation(fgd, &state));
}

/*
 * The short way, for a node of one model.
 */

struct usable {
	int64_t before;	       /* what can be used of the node, weighted */
	int64_t parts;	       /* of its fractions, with the CPU left after the task */
	const int64_t *single; /* with that CPU */
	const int64_t *several;
	uint32_t wholes; /* devices that are whole */
};

/* What can be used of so many whole devices. */
static int64_t of_wholes(const struct fgd *fgd, const int64_t *single, const int64_t *several,
			 uint32_t wholes)
{
	uint32_t class = wholes < fgd->wholes ? wholes : fgd->wholes - 1;

	return (int64_t)TAKT_REQUEST_WHOLE * wholes *
	       (single[fgd->milli_classes - 1] + several[class]);
}

static void look(const struct fgd *fgd, const struct takt_node *node,
		 const struct takt_request *request, struct usable *ret)
{
	int32_t cpu_after = node->cpu_left_milli - takt_place_cpu_milli(request);
	uint32_t class = takt_ladder_count(&fgd->cpu, node->cpu_left_milli);
	uint32_t class_after = takt_ladder_count(&fgd->cpu, cpu_after);
	const int64_t *single = single_row(fgd, node->model, class);
	const int64_t *single_after = single_row(fgd, node->model, class_after);
	int64_t before = 0, after = 0;

	for (uint64_t parts = node->open & ~node->whole; parts; parts &= parts - 1) {
		uint32_t left = node->left[__builtin_ctzll(parts)];
		uint32_t milli_class = fgd->milli_class[left];

		before += left * single[milli_class];
		after += left * single_after[milli_class];
	}
	ret->wholes = (uint32_t)__builtin_popcountll(node->whole);
	ret->before =
		before + of_wholes(fgd, single, several_row(fgd, node->model, class), ret->wholes);
	ret->parts = after;
	ret->single = single_after;
	ret->several = several_row(fgd, node->model, class_after);
}

/* Gradient of putting a fraction on a device that has `left`. */
static int64_t gradient_on(const struct fgd *fgd, const struct usable *usable, uint32_t left,
			   uint32_t milli)
{
	uint32_t rest = left - milli, wholes = usable->wholes;
	int64_t parts = usable->parts + rest * usable->single[fgd->milli_class[rest]];

	if (left == TAKT_REQUEST_WHOLE)
		wholes--;
	else
		parts -= left * usable->single[fgd->milli_class[left]];
	return milli * fgd->weight - usable->before + parts +
	       of_wholes(fgd, usable->single, usable->several, wholes);
}

/* Devices that differ in what is left, as far as that is seen at once: one whole one stands for
 * all. */
static uint64_t different(const struct takt_node *node)
{
	return (node->open & ~node->whole) | (node->whole & -node->whole);
}

/* The highest level of the devices with enough left. */
static uint32_t score_fraction(const struct fgd *fgd, const struct takt_node *node,
			       const struct usable *usable, const struct takt_request *request)
{
	uint64_t devices = request->milli ? different(node) : node->open;
	int64_t best = INT64_MIN;

	for (; devices; devices &= devices - 1) {
		uint32_t i = (uint32_t)__builtin_ctzll(devices);
		uint32_t left = node->left[i], milli = request->milli;
		int64_t gradient;

		if (milli == 0)
			milli = takt_fit_milli(request, &node->device[i]);
		if (left < milli)
			continue;
		gradient = gradient_on(fgd, usable, left, milli);
		best = gradient > best ? gradient : best;
	}
	return takt_ladder_count(&fgd->level, best);
}

/* The first device of the highest level. */
static uint64_t first_of(const struct fgd *fgd, const struct takt_node *node,
			 const struct usable *usable, const struct takt_request *request,
			 uint64_t candidates)
{
	uint64_t first = candidates & -candidates;
	uint32_t highest = 0;

	for (; candidates; candidates &= candidates - 1) {
		uint32_t i = (uint32_t)__builtin_ctzll(candidates), level;
		int64_t gradient = gradient_on(fgd, usable, node->left[i],
					       takt_fit_milli(request, &node->device[i]));

		level = takt_ladder_count(&fgd->level, gradient);
		if (level > highest) {
			highest = level;
			first = UINT64_C(1) << i;
		}
	}
	return first;
}

static uint32_t score(const void *policy, const struct takt_node *node,
		      const struct takt_request *request, struct takt_place_choice *choice)
{
	const struct fgd *fgd = policy;
	uint32_t need = request->devices;
	struct usable usable;
	int64_t gradient;

	if (node->flags & TAKT_NODE_MIXED)
		return score_mixed(fgd, node, request, choice);
	look(fgd, node, request, &usable);
	if (is_fraction(request)) {
		if (choice)
			choice->dev_mask =
				first_of(fgd, node, &usable, request, choice->candidates);
		return score_fraction(fgd, node, &usable, request);
	}
	if (request->mig_profile || need > usable.wholes)
		need = 0;
	gradient = (int64_t)need * TAKT_REQUEST_WHOLE * fgd->weight - usable.before + usable.parts +
		   of_wholes(fgd, usable.single, usable.several, usable.wholes - need);
	return takt_ladder_count(&fgd->level, gradient);
}

const struct takt_placement takt_place_fgd = {
	.name = "fgd",
	.summary = "least growth of fragmentation, as published (ATC 2023)",
	.levels = FGD_LEVELS,
	.ignores_memory = true,
	.prepare = prepare,
	.release = release,
	.score = score,
};
