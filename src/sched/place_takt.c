/* SPDX-License-Identifier: Apache-2.0 */
/*
 * takt: the default. A task goes where the value of what is left falls least.
 *
 * The published policies ask how much a task fragments a node for requests one at a time. What
 * counts is whether the remainders will be filled by those who come together: 650 + 320 fill an
 * accelerator, 810 leaves 190 that hardly anybody asks for. So a node in state n is given a cost,
 * and the level of a placement is the growth of that cost, in steps:
 *
 *	cost(n) = sum over devices of waste(left)                      (1)
 *	        + balance(CPU left - sum over devices of cpu(left))    (2)
 *	        - keep(whole devices)                                  (3)
 *	growth  = cost(after) - cost(before) + PRICE * scarcity(model)  (4)
 *
 * (1) waste(left): what is expected to stay unused of it, learnt from the workload (place_value.h).
 *
 * (2) cpu(left): CPU expected to be used beside it, from the same. CPU that is short strands
 * accelerators, CPU in surplus is worth something to those who need only that. In units of the CPU
 * that goes with one accelerator, balance(z) = SHORT * hinge(-z) + SURPLUS * hinge(z), where hinge
 * rises from 0 at -WIDTH to z at +WIDTH along a parabola: the nearer, the less certain which of the
 * two it will be. So light tasks go where CPU is short, heavy ones and those without accelerators
 * where there is plenty.
 *
 * (3) keep(w) = OPEN * w, to begin on a whole device costs a little; and for wide nodes (as many
 * devices as the node of the median device has, or more) that are wholly free INTACT, and what
 * CPU they have beyond the mean of the wide ones at ROOMY a unit: the roomiest are broken last.
 *When fewer than RESERVE of the wide nodes are wholly free, the phase changes and w * w * TOGETHER
 *is added: whole devices are worth more together, and tasks for several of them find room. While
 * there is plenty, that would only keep small tasks from the places where they fit best.
 *
 * (4) keeps for those who can go nowhere else what only they need (place_price.h).
 *
 * The step is as important as the cost. Growths within one STEP count as equal, and the node of the
 * lowest rank wins: so tasks gather on few nodes and the rest stays whole, which is worth more than
 * the last milli. Of equal fractions, the one that leaves its device fuller wins before rank does:
 * without it, devices begun and never filled pile up where tasks come and go.
 *
 * All constants are in milli of an accelerator. They were tuned on seeds 1000 to 1009 of the
 * given traces and variants of them; docs/research/placement.md says what each is worth, and what
 * else was tried. Parameters: `step`, `price`, `reserve` (permille).
 */
#include <errno.h>

#include "base/mem.h"
#include "sched/cluster.h"
#include "sched/place_price.h"
#include "sched/place_share.h"
#include "sched/place_value.h"

enum {
	ONE = TAKT_VALUE_ONE, /* costs are counted in 1 / ONE milli */
	SHORT = 330,
	SURPLUS = 100,
	WIDTH = 2400,
	OPEN = 16,
	INTACT = 4,
	ROOMY = 75,
	TOGETHER = 32,
	STEP = 145,
	PRICE = 640,
	RESERVE = 50,
	MAX_PARAM = 100000,

	TIGHT = 4, /* levels within a step */
	STEPS = 120,
	ZERO_STEP = 85, /* the step of no growth: there is more room for growth than for gain */
	UNIT_BITS = 16,
	MAX_SPARE = 1 << 18,
	MAX_COST = 1 << 30,

	/* (2) in 1 / ONE milli: the slopes outside of WIDTH, and the parabola within. */
	PART = 1 << 10,
	SHORT_SLOPE = SHORT * ONE * PART / 1000,
	SURPLUS_SLOPE = SURPLUS * ONE * PART / 1000,
	CURVE_BITS = 20,
	MIDDLE = (SHORT + SURPLUS) * ONE * (WIDTH / 4) / 1000,
};

/* CURVE_BITS after the point. */
static const int64_t curve = ((int64_t)(SHORT + SURPLUS) * ONE << CURVE_BITS) / (4000 * WIDTH);

/* What is left of a device: waste as in place_value.h, CPU needed beside it in milli of the CPU
 * that goes with a whole one. */
struct worth {
	int16_t waste;
	int16_t need;
};

struct takt {
	struct worth at[TAKT_REQUEST_WHOLE + 1]; /* by what is left */
	struct takt_model_demand demand;
	const struct takt_cluster *cluster; /* borrowed */
	int64_t per_cpu_milli; /* milli of an accelerator a milli-CPU goes with, UNIT_BITS */
	int32_t step;	       /* in 1 / ONE */
	uint64_t per_step;     /* 2^32 / step, rounded up */
	int32_t price;
	uint64_t reserve;
	bool together;
	uint64_t epoch;
	uint64_t shape; /* version of the cluster that the rest is from */
	bool looked;
	uint32_t wide, widest; /* devices of a wide node, of the widest one */
	int64_t wide_cpu_milli;
	uint32_t scarcity[TAKT_CLUSTER_MAX_MODELS]; /* permille */
};

/*
 * The state.
 */

static void release(void *state)
{
	struct takt *takt = state;

	if (takt)
		takt_model_demand_fini(&takt->demand);
	takt_free(takt);
}

/* Milli of accelerators that go with so much CPU. */
static int32_t in_devices(const struct takt *takt, int64_t cpu_milli)
{
	int64_t z = cpu_milli * takt->per_cpu_milli / (1 << UNIT_BITS);

	return (int32_t)(z > MAX_SPARE ? MAX_SPARE : z < -MAX_SPARE ? -MAX_SPARE : z);
}

static void learn(struct takt *takt, const struct takt_workload *workload)
{
	struct takt_place_values values;
	int32_t unit;

	takt_place_values(workload, &values);
	unit = values.at[TAKT_REQUEST_WHOLE].cpu_milli;
	if (unit > 0)
		takt->per_cpu_milli = ((int64_t)TAKT_REQUEST_WHOLE << UNIT_BITS) / unit;
	for (size_t left = 0; left <= TAKT_REQUEST_WHOLE; left++) {
		int32_t need = in_devices(takt, values.at[left].cpu_milli);

		takt->at[left].waste = (int16_t)values.at[left].waste;
		takt->at[left].need = (int16_t)(need < INT16_MAX ? need : INT16_MAX);
	}
}

static int prepare(const struct takt_place_setup *setup, void **ret, struct takt_err *err)
{
	static const char *const names[] = {"step", "price", "reserve", NULL};
	int rc = takt_place_check_params(setup, names, MAX_PARAM, err);
	struct takt *takt;

	if (rc < 0)
		return rc;
	takt = takt_zalloc(sizeof(*takt));
	if (!takt || takt_model_demand_init(&takt->demand, setup->workload) < 0) {
		takt_free(takt);
		return takt_err_set(err, -ENOMEM, "no memory for the policy takt");
	}
	learn(takt, setup->workload);
	takt->cluster = setup->cluster;
	takt->step = (int32_t)takt_place_param(setup, "step", STEP) * ONE;
	takt->step = takt->step ? takt->step : 1;
	takt->per_step = (UINT64_C(1) << 32) / (uint64_t)takt->step + 1;
	takt->price = (int32_t)takt_place_param(setup, "price", PRICE);
	takt->reserve = (uint64_t)takt_place_param(setup, "reserve", RESERVE);
	*ret = takt;
	return 0;
}

/* Devices of the node that the median device is in, and of the widest one. */
static void find_widths(struct takt *takt, const struct takt_cluster_totals *totals)
{
	uint64_t seen = 0;

	takt->wide = takt->widest = 0;
	for (uint32_t width = TAKT_REQUEST_MAX_DEVICES; width > 0; width--) {
		uint64_t nodes = totals->width[width].nodes;

		seen += nodes * width;
		if (nodes && !takt->widest)
			takt->widest = width;
		if (nodes && 2 * seen >= totals->devices) {
			takt->wide = width;
			return;
		}
	}
}

static int64_t mean_cpu_of_wide(const struct takt *takt)
{
	int64_t sum = 0, nodes = 0;

	for (uint32_t i = 0; i < takt_cluster_node_count(takt->cluster); i++) {
		const struct takt_node *node = takt_cluster_node(takt->cluster, i);

		if (node->flags & TAKT_NODE_REMOVED || node->devices < takt->wide)
			continue;
		sum += node->cpu_milli;
		nodes++;
	}
	return nodes ? sum / nodes : 0;
}

static uint64_t epoch(void *state, const struct takt_cluster *cluster)
{
	struct takt *takt = state;
	uint64_t shape = takt_cluster_shape_version(cluster);

	if (takt->looked && takt->shape == shape)
		return takt->epoch;
	find_widths(takt, takt_cluster_totals(cluster));
	takt->wide_cpu_milli = mean_cpu_of_wide(takt);
	takt_model_scarcity(&takt->demand, takt_cluster_totals(cluster), takt->scarcity);
	takt->shape = shape;
	takt->looked = true;
	return ++takt->epoch;
}

static uint32_t phase(void *state, const struct takt_cluster *cluster)
{
	const struct takt_cluster_totals *totals = takt_cluster_totals(cluster);
	struct takt *takt = state;
	uint64_t nodes = 0, intact = 0;

	for (uint32_t width = takt->wide; width <= takt->widest; width++) {
		nodes += totals->width[width].nodes;
		intact += totals->width[width].intact;
	}
	takt->together = intact * 1000 < takt->reserve * nodes;
	return takt->together;
}

/*
 * The cost, in 1 / ONE milli.
 */

/* (2), of CPU in milli of the devices it goes with. */
static inline int32_t balance(int32_t z)
{
	if (z >= WIDTH)
		return (int32_t)((int64_t)z * SURPLUS_SLOPE / PART);
	if (z <= -WIDTH)
		return (int32_t)((int64_t)-z * SHORT_SLOPE / PART);
	return (int32_t)((curve * z * z) >> CURVE_BITS) + MIDDLE -
	       z * ((SHORT_SLOPE - SURPLUS_SLOPE) / 2) / PART;
}

/* What a wide node that is wholly free is worth beyond its devices, with so much CPU left. */
static int32_t intact(const struct takt *takt, const struct takt_node *node, int32_t cpu_milli)
{
	bool idle = cpu_milli == node->cpu_milli;
	int64_t more = idle ? node->cpu_milli - takt->wide_cpu_milli : 0;

	return INTACT + in_devices(takt, more) * ROOMY / 1000;
}

/* (3), of a node with so many whole devices and so much CPU left. */
static inline int32_t keep(const struct takt *takt, const struct takt_node *node, int32_t whole,
			   int32_t cpu_milli)
{
	int32_t value = OPEN * whole;

	if (takt->together)
		value += TOGETHER * whole * whole;
	if (whole == node->devices && node->devices >= takt->wide)
		value += intact(takt, node, cpu_milli);
	return value * ONE;
}

/* A node before and after a task. */
struct change {
	const struct takt *takt;
	const struct takt_node *node;
	int32_t spare;	   /* CPU after it, devices as before */
	int32_t before;	   /* (2) and (3) */
	int32_t whole;	   /* devices, before */
	int32_t cpu_milli; /* left after it */
};

static inline void begin(struct change *change, const struct takt *takt,
			 const struct takt_node *node, int32_t cpu_milli)
{
	int32_t spare = in_devices(takt, node->cpu_left_milli), whole = 0;

	for (uint64_t open = node->open; open; open &= open - 1) {
		uint32_t left = node->left[__builtin_ctzll(open)];

		spare -= takt->at[left].need;
		whole += left == TAKT_REQUEST_WHOLE;
	}
	change->takt = takt;
	change->node = node;
	change->spare = spare - in_devices(takt, cpu_milli);
	change->whole = whole;
	change->cpu_milli = node->cpu_left_milli - cpu_milli;
	change->before = balance(spare) - keep(takt, node, whole, node->cpu_left_milli);
}

/* Growth when so many devices go from `left` to `after`. */
static inline int32_t growth(const struct change *change, int32_t devices, uint32_t left,
			     uint32_t after)
{
	const struct worth *from = &change->takt->at[left], *to = &change->takt->at[after];
	int32_t whole = change->whole - (left == TAKT_REQUEST_WHOLE ? devices : 0);

	return devices * (to->waste - from->waste) +
	       balance(change->spare + devices * (from->need - to->need)) -
	       keep(change->takt, change->node, whole, change->cpu_milli) - change->before;
}

/*
 * Devices.
 */

/* The device on which the fraction costs least; the first of equal ones. */
static int32_t best_device(const struct change *change, const struct takt_request *request,
			   uint64_t candidates, uint64_t *ret_device, uint32_t *ret_left)
{
	const struct takt_node *node = change->node;
	uint32_t last = UINT32_MAX;
	int32_t least = MAX_COST;

	for (candidates &= node->open; candidates; candidates &= candidates - 1) {
		uint32_t i = (uint32_t)__builtin_ctzll(candidates), left = node->left[i];
		uint32_t milli =
			request->milli ? request->milli : takt_fit_milli(request, &node->device[i]);
		int32_t cost;

		if (left < milli || left == last)
			continue;
		last = left;
		cost = growth(change, 1, left, left - milli);
		if (cost < least) {
			least = cost;
			*ret_left = left - milli;
			*ret_device = UINT64_C(1) << i;
		}
	}
	return least;
}

/* An instance takes a whole device unless one that is cut already has room. */
static int32_t instance(const struct change *change, uint64_t candidates)
{
	if (candidates & ~change->node->whole)
		return growth(change, 0, 0, 0);
	return growth(change, 1, TAKT_REQUEST_WHOLE, 0);
}

/* (4): of the model it would get. */
static int32_t price(const struct takt *takt, const struct takt_node *node,
		     const struct takt_request *request)
{
	uint32_t model = node->model;

	if (node->flags & TAKT_NODE_MIXED) {
		uint64_t models =
			node->models & (request->model_mask ? request->model_mask : UINT64_MAX);

		model = models ? (uint32_t)__builtin_ctzll(models) : model;
	}
	return takt->price * (int32_t)takt->scarcity[model] / 1000 * ONE;
}

/* The step of the growth, rounded to the nearest, and within it 0 <= tight < TIGHT. */
static inline uint32_t level_of(const struct takt *takt, int32_t cost, uint32_t tight)
{
	int64_t above = (int64_t)ZERO_STEP * takt->step + takt->step / 2 - 1 - cost;
	uint64_t steps;

	if (above <= 0)
		return tight;
	steps = ((uint64_t)above * takt->per_step) >> 32;
	return (uint32_t)(steps < STEPS ? steps : STEPS - 1) * TIGHT + tight;
}

static uint32_t score(const void *state, const struct takt_node *node,
		      const struct takt_request *request, struct takt_place_choice *choice)
{
	const struct takt *takt = state;
	struct change change;
	uint64_t device = 0;
	uint32_t left = TAKT_REQUEST_WHOLE;
	int32_t cost;

	begin(&change, takt, node, request->cpu_milli);
	if (request->devices == 0)
		return level_of(takt, growth(&change, 0, 0, 0), 0);
	if (request->mig_profile)
		cost = instance(&change, takt_share_devices(takt->cluster, node, request, choice));
	else if (request->milli == TAKT_REQUEST_WHOLE)
		cost = growth(&change, request->devices, TAKT_REQUEST_WHOLE, 0);
	else
		cost = best_device(&change, request,
				   takt_share_devices(takt->cluster, node, request, choice),
				   &device, &left);
	if (choice)
		choice->dev_mask = device;
	cost += price(takt, node, request);
	return level_of(takt, cost, TIGHT * (TAKT_REQUEST_WHOLE - left) / (TAKT_REQUEST_WHOLE + 1));
}

const struct takt_placement takt_place_takt = {
	.name = "takt",
	.summary = "least loss of value of what is left, by what is expected",
	.levels = STEPS * TIGHT,
	.ignores_memory = true,
	.prepare = prepare,
	.release = release,
	.score = score,
	.epoch = epoch,
	.phase = phase,
	.phases = 2,
};
