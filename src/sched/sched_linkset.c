/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The best-linked set of GPUs.
 *
 * A set S of the free GPUs F is worth sum(S), its pair scores; of equal ones the better leaves more
 * behind. What stays has the sum of F, less degree(S), plus sum(S), where degree(g) is the sum of
 * g's scores to all of F: so of equal sums the smaller degree(S) leaves more, and both can be added
 * up while a set grows.
 *
 * Exact: all sets in lexicographic order, one GPU added at a time, a later one taken only when it
 * is strictly better. For 16 free GPUs that is at most 65,535 partial sets.
 *
 * Beyond: from each GPU in turn grow by the best next one, then exchange one GPU for another while
 * that makes the set better. Each exchange is a strict improvement, so it ends.
 */
#include <errno.h>

#include "sched/sched_state.h"

struct set {
	uint64_t mask;
	int64_t sum;
	int64_t degree;
};

struct search {
	const int32_t *pair_score;
	uint32_t gpu_count;
	uint32_t need;
	uint64_t free_mask;
	uint64_t forced;
	int64_t degree[TAKT_SCHED_MAX_NODE_GPUS];
	bool found;
	struct set best;
};

/* Sum of a GPU's scores to those in `mask`. */
static int64_t links_to(const struct search *search, uint32_t gpu, uint64_t mask)
{
	const int32_t *row = search->pair_score + (size_t)gpu * search->gpu_count;
	int64_t sum = 0;

	for (mask &= ~(UINT64_C(1) << gpu); mask; mask &= mask - 1)
		sum += row[__builtin_ctzll(mask)];
	return sum;
}

static struct set with(const struct search *search, struct set set, uint32_t gpu)
{
	set.sum += links_to(search, gpu, set.mask);
	set.degree += search->degree[gpu];
	set.mask |= UINT64_C(1) << gpu;
	return set;
}

static struct set without(const struct search *search, struct set set, uint32_t gpu)
{
	set.mask &= ~(UINT64_C(1) << gpu);
	set.sum -= links_to(search, gpu, set.mask);
	set.degree -= search->degree[gpu];
	return set;
}

/* Whether a's list of indices comes before b's; both have the same length. */
static bool lists_before(uint64_t a, uint64_t b)
{
	uint64_t differ = a ^ b;

	return (a & differ & -differ) != 0;
}

static bool better_linked(struct set a, struct set b)
{
	return a.sum != b.sum ? a.sum > b.sum : a.degree < b.degree;
}

static bool better(struct set a, struct set b)
{
	if (a.sum == b.sum && a.degree == b.degree)
		return lists_before(a.mask, b.mask);
	return better_linked(a, b);
}

static void offer(struct search *search, struct set set)
{
	if (search->found && !better(set, search->best))
		return;
	search->found = true;
	search->best = set;
}

/* All sets that extend `set` by `more` GPUs of `rest`, every forced one of `rest` among them. */
static void extend(struct search *search, struct set set, uint64_t rest, uint32_t more)
{
	if (more == 0) {
		if (!(search->forced & ~set.mask))
			offer(search, set);
		return;
	}
	while (takt_sched_count(rest) >= more) {
		uint64_t bit = rest & -rest;

		rest &= ~bit;
		extend(search, with(search, set, (uint32_t)__builtin_ctzll(bit)), rest, more - 1);
	}
}

/* The best of the sets that differ from `set` by one GPU more (grow) or one exchanged; false when
 * an exchange makes nothing better. */
static bool best_addition(const struct search *search, struct set set, struct set *ret)
{
	bool found = false;

	for (uint64_t in = search->free_mask & ~set.mask; in; in &= in - 1) {
		struct set tried = with(search, set, (uint32_t)__builtin_ctzll(in));

		if (!found || better(tried, *ret))
			*ret = tried;
		found = true;
	}
	return found;
}

static bool best_exchange(const struct search *search, struct set set, struct set *ret)
{
	struct set best = set;

	for (uint64_t out = set.mask & ~search->forced; out; out &= out - 1) {
		uint32_t gpu = (uint32_t)__builtin_ctzll(out);
		struct set tried;

		if (best_addition(search, without(search, set, gpu), &tried) && better(tried, best))
			best = tried;
	}
	*ret = best;
	return best.mask != set.mask;
}

static struct set grow(const struct search *search, struct set set)
{
	while (takt_sched_count(set.mask) < search->need && best_addition(search, set, &set))
		;
	while (best_exchange(search, set, &set))
		;
	return set;
}

static void climb(struct search *search)
{
	struct set forced = {0};
	uint64_t starts;

	for (uint64_t left = search->forced; left; left &= left - 1)
		forced = with(search, forced, (uint32_t)__builtin_ctzll(left));
	starts = search->free_mask & ~forced.mask;
	if (takt_sched_count(forced.mask) == search->need)
		starts = 0;
	if (!starts)
		offer(search, forced);
	for (; starts; starts &= starts - 1)
		offer(search,
		      grow(search, with(search, forced, (uint32_t)__builtin_ctzll(starts))));
}

uint64_t takt_sched_best_with(const int32_t *pair_score, uint32_t gpu_count, uint64_t free_mask,
			      uint64_t forced, uint32_t need, int64_t *ret_sum)
{
	struct search search = {
		.pair_score = pair_score,
		.gpu_count = gpu_count,
		.need = need,
		.free_mask = free_mask,
		.forced = forced,
	};

	for (uint64_t left = free_mask; left; left &= left - 1) {
		uint32_t gpu = (uint32_t)__builtin_ctzll(left);

		search.degree[gpu] = links_to(&search, gpu, free_mask);
	}
	if (takt_sched_count(free_mask) <= TAKT_SCHED_EXACT_GPUS || need == 0)
		extend(&search, (struct set){0}, free_mask, need);
	else
		climb(&search);
	*ret_sum = search.best.sum;
	return search.best.mask;
}

int takt_best_set(const int32_t *pair_score, uint32_t gpu_count, uint64_t free_mask, uint32_t need,
		  uint64_t *ret_mask, int64_t *ret_sum)
{
	if (gpu_count > TAKT_SCHED_MAX_NODE_GPUS || free_mask & ~takt_sched_low_bits(gpu_count))
		return -EINVAL;
	if (takt_sched_count(free_mask) < need)
		return -ENOENT;
	*ret_mask = takt_sched_best_with(pair_score, gpu_count, free_mask, 0, need, ret_sum);
	return 0;
}
