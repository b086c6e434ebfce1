/* SPDX-License-Identifier: Apache-2.0 */
/* Decayed usage, water-filling, ranks, and who may take from whom. */
#include <errno.h>

#include "base/sort.h"
#include "sched/tenant_state.h"

#define ONE (UINT64_C(1) << 32)

__extension__ typedef unsigned __int128 wide;

/* 2^(-i/64) in units of 2^-32, rounded to nearest. */
static const uint64_t halving[65] = {
	4294967296, 4248701965, 4202935003, 4157661043, 4112874773, 4068570940, 4024744348,
	3981389855, 3938502376, 3896076880, 3854108391, 3812591987, 3771522796, 3730896002,
	3690706840, 3650950594, 3611622603, 3572718252, 3534232978, 3496162267, 3458501653,
	3421246719, 3384393094, 3347936457, 3311872529, 3276197082, 3240905930, 3205994934,
	3171459999, 3137297074, 3103502151, 3070071267, 3037000500, 3004285971, 2971923842,
	2939910317, 2908241642, 2876914102, 2845924021, 2815267765, 2784941738, 2754942382,
	2725266179, 2695909648, 2666869345, 2638141863, 2609723834, 2581611923, 2553802834,
	2526293303, 2499080105, 2472160047, 2445529972, 2419186755, 2393127307, 2367348571,
	2341847524, 2316621173, 2291666561, 2266980759, 2242560872, 2218404036, 2194507417,
	2170868212, 2147483648,
};

uint64_t takt_decay(uint64_t span_ns, uint64_t half_life_ns)
{
	uint64_t halvings = span_ns / half_life_ns;
	uint64_t step, part;
	wide place;

	if (halvings > 32)
		return 0;
	/* In 64ths of a half-life, the rest in units of 2^-32 of one. */
	place = (((wide)(span_ns % half_life_ns)) << 38) / half_life_ns;
	step = (uint64_t)(place >> 32);
	part = (uint64_t)place & (ONE - 1);
	return (halving[step] - ((halving[step] - halving[step + 1]) * part >> 32)) >> halvings;
}

static uint64_t clamp(wide value)
{
	return value > UINT64_MAX ? UINT64_MAX : (uint64_t)value;
}

/* The half-life in ms over ln 2: what one unit that runs for ever comes to. 1/ln 2 in units of
 * 2^-32 is 6196328019. */
static uint64_t tau_ms(uint64_t half_life_ns)
{
	return clamp((wide)half_life_ns * UINT64_C(6196328019) / 1000000 >> 32);
}

uint64_t takt_tenants_node_usage(const struct takt_tenants *tenants,
				 const struct takt_tenant_node *node, uint64_t now_ns)
{
	uint64_t span_ns = now_ns > node->booked_ns ? now_ns - node->booked_ns : 0;
	uint64_t decay = takt_decay(span_ns, tenants->config.half_life_ns);
	uint64_t most = clamp((wide)node->has_milli * tau_ms(tenants->config.half_life_ns));

	return clamp(((wide)node->usage * decay >> 32) + ((wide)most * (ONE - decay) >> 32));
}

/* The weights of those that can still take something. */
static wide open_weight(const uint64_t *weight, const uint64_t *cap, size_t n,
			const uint64_t *given)
{
	wide sum = 0;

	for (size_t i = 0; i < n; i++)
		if (given[i] < cap[i])
			sum += weight[i];
	return sum;
}

/* Gives their cap to those whose part of `amount` reaches it. Returns what they got. */
static uint64_t fill_to_cap(uint64_t amount, wide sum, const uint64_t *weight, const uint64_t *cap,
			    size_t n, uint64_t *given)
{
	uint64_t used = 0;

	for (size_t i = 0; i < n; i++)
		if (given[i] < cap[i] && weight[i] && (wide)amount * weight[i] / sum >= cap[i]) {
			given[i] = cap[i];
			used += cap[i];
		}
	return used;
}

/* Nobody reaches his cap: all get their part. Rounding the running sum, not each part, makes them
 * sum to `amount`. */
static void fill_parts(uint64_t amount, wide sum, const uint64_t *weight, const uint64_t *cap,
		       size_t n, uint64_t *given)
{
	wide reached = 0;

	for (size_t i = 0; i < n; i++)
		if (given[i] < cap[i]) {
			uint64_t before = (uint64_t)(amount * reached / sum);

			reached += weight[i];
			given[i] = (uint64_t)(amount * reached / sum) - before;
		}
}

uint64_t takt_water_fill(uint64_t amount, const uint64_t *weight, const uint64_t *cap, size_t n,
			 uint64_t *given)
{
	for (size_t i = 0; i < n; i++)
		given[i] = 0;
	while (amount) {
		wide sum = open_weight(weight, cap, n, given);
		uint64_t used;

		if (sum == 0)
			break;
		used = fill_to_cap(amount, sum, weight, cap, n, given);
		amount -= used;
		if (used == 0) {
			fill_parts(amount, sum, weight, cap, n, given);
			return 0;
		}
	}
	return amount;
}

/* Scratch of one division, each for all siblings of one parent. */
struct division {
	const struct takt_tenants *tenants;
	uint64_t now_ns;
	struct takt_tenant_node **nodes;
	uint64_t *weight;
	uint64_t *cap;
	uint64_t *given;
	uint64_t *usage;
	uint32_t next_rank;
};

static size_t gather(const struct division *div, const struct takt_tenant_node *parent)
{
	size_t n = 0;

	for (struct takt_tenant_node *node = parent->child; node; node = node->sibling) {
		div->nodes[n] = node;
		div->usage[n] = takt_tenants_node_usage(div->tenants, node, div->now_ns);
		n++;
	}
	return n;
}

static uint64_t request_of(const struct takt_tenant_node *node)
{
	uint64_t request = clamp((wide)node->has_milli + node->want_milli);
	uint64_t limit_milli = node->terms.limit_milli;

	return limit_milli && limit_milli < request ? limit_milli : request;
}

/* Round 1: the quotas. Returns what is left. */
static uint64_t give_quotas(const struct division *div, size_t n, uint64_t amount)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t request = request_of(div->nodes[i]);

		div->weight[i] = div->nodes[i]->terms.quota_milli;
		div->cap[i] = request < div->weight[i] ? request : div->weight[i];
	}
	amount = takt_water_fill(amount, div->weight, div->cap, n, div->given);
	for (size_t i = 0; i < n; i++)
		div->nodes[i]->deserved_milli = div->given[i];
	return amount;
}

/* Thousandths of its weight that a child's usage leaves it in round 2. */
static uint64_t aged_weight(const struct division *div, size_t i, wide weights, wide usages)
{
	int64_t k_milli = div->tenants->config.usage_k_milli;
	int64_t weight_ppm = (int64_t)((wide)div->nodes[i]->terms.weight * 1000000 / weights);
	int64_t usage_ppm = usages ? (int64_t)((wide)div->usage[i] * 1000000 / usages) : 0;
	int64_t aged = weight_ppm * 1000 + k_milli * (weight_ppm - usage_ppm);

	return aged > 0 ? (uint64_t)aged : 0;
}

static void set_weights(const struct division *div, size_t n)
{
	wide weights = 0, usages = 0;

	for (size_t i = 0; i < n; i++) {
		weights += div->nodes[i]->terms.weight;
		usages += div->usage[i];
	}
	for (size_t i = 0; i < n; i++)
		div->weight[i] = div->tenants->config.usage_k_milli
					 ? aged_weight(div, i, weights, usages)
					 : div->nodes[i]->terms.weight;
}

/* The largest priority below `below`; false when there is none. */
static bool next_priority(const struct division *div, size_t n, int64_t below, int64_t *ret)
{
	bool found = false;

	for (size_t i = 0; i < n; i++) {
		int64_t priority = div->nodes[i]->terms.priority;

		if (priority < below && (!found || priority > *ret)) {
			*ret = priority;
			found = true;
		}
	}
	return found;
}

static uint64_t fill_priority(const struct division *div, size_t n, uint64_t amount,
			      int64_t priority)
{
	for (size_t i = 0; i < n; i++) {
		const struct takt_tenant_node *node = div->nodes[i];
		bool open = node->terms.priority == priority && node->terms.may_borrow &&
			    div->weight[i];

		div->cap[i] = open ? request_of(node) - node->deserved_milli : 0;
	}
	amount = takt_water_fill(amount, div->weight, div->cap, n, div->given);
	for (size_t i = 0; i < n; i++)
		div->nodes[i]->deserved_milli += div->given[i];
	return amount;
}

/* Round 2, one priority after another. Those whom their usage has left no weight come last. */
static void give_rest(const struct division *div, size_t n, uint64_t amount)
{
	int64_t priority = INT64_MAX;

	set_weights(div, n);
	while (amount && next_priority(div, n, priority, &priority))
		amount = fill_priority(div, n, amount, priority);
	for (size_t i = 0; i < n; i++)
		div->weight[i] = div->nodes[i]->terms.weight;
	priority = INT64_MAX;
	while (amount && next_priority(div, n, priority, &priority))
		amount = fill_priority(div, n, amount, priority);
}

static void divide_below(struct division *div, const struct takt_tenant_node *parent)
{
	size_t n = gather(div, parent);

	give_rest(div, n, give_quotas(div, n, parent->deserved_milli));
	for (struct takt_tenant_node *node = parent->child; node; node = node->sibling)
		divide_below(div, node);
}

/* Smaller usage for its weight first, then the lower id. */
static int by_need(const void *a, const void *b, void *ctx)
{
	const struct division *div = ctx;
	const struct takt_tenant_node *left = *(struct takt_tenant_node *const *)a;
	const struct takt_tenant_node *right = *(struct takt_tenant_node *const *)b;
	wide left_part = (wide)takt_tenants_node_usage(div->tenants, left, div->now_ns) *
			 right->terms.weight;
	wide right_part = (wide)takt_tenants_node_usage(div->tenants, right, div->now_ns) *
			  left->terms.weight;

	return (left_part > right_part) - (left_part < right_part);
}

/* `nodes` has room for all that are below `parent`; siblings lie side by side in it. */
static void number_below(struct division *div, struct takt_tenant_node *parent,
			 struct takt_tenant_node **nodes, struct takt_tenant_node **scratch)
{
	size_t n = 0;

	for (struct takt_tenant_node *node = parent->child; node; node = node->sibling)
		nodes[n++] = node;
	takt_sort_with(nodes, n, sizeof(struct takt_tenant_node *), scratch, by_need, div);
	for (size_t i = 0; i < n; i++) {
		nodes[i]->rank = div->next_rank++;
		number_below(div, nodes[i], nodes + n, scratch);
	}
}

int takt_tenants_divide(struct takt_tenants *tenants, uint64_t capacity_milli, uint64_t now_ns)
{
	size_t n = tenants->nodes.len;
	size_t bytes = n * (2 * sizeof(struct takt_tenant_node *) + 4 * sizeof(uint64_t));
	uint64_t *memory = n ? takt_alloc(bytes) : NULL;
	struct division div = {.tenants = tenants, .now_ns = now_ns};

	if (n && !memory)
		return -ENOMEM;
	tenants->root.deserved_milli = capacity_milli;
	if (n == 0)
		return 0;
	div.weight = memory;
	div.cap = memory + n;
	div.given = memory + 2 * n;
	div.usage = memory + 3 * n;
	div.nodes = (struct takt_tenant_node **)(memory + 4 * n);
	divide_below(&div, &tenants->root);
	number_below(&div, &tenants->root, div.nodes, div.nodes + n);
	takt_free(memory);
	return 0;
}

uint64_t takt_tenants_deserved_milli(const struct takt_tenants *tenants, uint32_t id)
{
	const struct takt_tenant_node *node = takt_tenants_node(tenants, id);

	return node ? node->deserved_milli : 0;
}

uint32_t takt_tenants_rank(const struct takt_tenants *tenants, uint32_t id)
{
	const struct takt_tenant_node *node = takt_tenants_node(tenants, id);

	return node && node->parent ? node->rank : UINT32_MAX;
}

/* Moves both up to the children of their nearest common ancestor; false when one is above the
 * other. */
static bool branches(const struct takt_tenant_node **a, const struct takt_tenant_node **b)
{
	while ((*a)->depth > (*b)->depth && (*a)->parent != *b)
		*a = (*a)->parent;
	while ((*b)->depth > (*a)->depth && (*b)->parent != *a)
		*b = (*b)->parent;
	while ((*a)->depth == (*b)->depth && (*a)->parent != (*b)->parent) {
		*a = (*a)->parent;
		*b = (*b)->parent;
	}
	return *a != *b && (*a)->parent == (*b)->parent;
}

/* What the victims before number `last` take from the branch. */
static uint64_t taken_from(const struct takt_tenants *tenants,
			   const struct takt_tenant_node *branch,
			   const struct takt_tenant_part *victims, size_t last)
{
	uint64_t milli = 0;

	for (size_t i = 0; i < last; i++) {
		const struct takt_tenant_node *node = takt_tenants_node(tenants, victims[i].tenant);

		while (node && node != branch)
			node = node->parent;
		if (node)
			milli += victims[i].milli;
	}
	return milli;
}

static bool may_take(const struct takt_tenants *tenants, uint32_t id, uint64_t milli,
		     const struct takt_tenant_part *victims, size_t at)
{
	const struct takt_tenant_node *own = takt_tenants_node(tenants, id);
	const struct takt_tenant_node *other = takt_tenants_node(tenants, victims[at].tenant);
	uint64_t taken;
	wide own_milli, other_milli;

	if (!own || !other || !branches(&own, &other) || own->deserved_milli == 0)
		return false;
	taken = taken_from(tenants, other, victims, at);
	if (other->has_milli < taken + victims[at].milli ||
	    other->has_milli - taken <= other->deserved_milli)
		return false;
	own_milli = (wide)own->has_milli + milli;
	other_milli = other->has_milli - taken - victims[at].milli;
	return own_milli <= own->deserved_milli ||
	       own_milli * other->deserved_milli <= other_milli * own->deserved_milli;
}

bool takt_tenants_may_reclaim_all(const struct takt_tenants *tenants, uint32_t id, uint64_t milli,
				  const struct takt_tenant_part *victims, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!may_take(tenants, id, milli, victims, i))
			return false;
	return true;
}

bool takt_tenants_may_reclaim(const struct takt_tenants *tenants, uint32_t id, uint64_t milli,
			      uint32_t victim, uint64_t victim_milli)
{
	const struct takt_tenant_part one = {.tenant = victim, .milli = victim_milli};

	return may_take(tenants, id, milli, &one, 0);
}
