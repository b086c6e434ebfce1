/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gangs near together.
 *
 * Nearest is one node, for gangs that ask for that level; then one domain of the narrowest level,
 * and so on outwards. A gang that requires a level goes no further than that, one that prefers it
 * ends with the whole cluster. On a level the tightest domain that fits takes it, that with the
 * least room for its tasks, then the one with the lowest node, so that roomier ones stay whole for
 * others (Kueue's and KAI's best fit).
 *
 * Inside a domain with domains in it the gang is spread over as few of these as can be: the
 * tightest one that holds all that is left, else the roomiest, and so on down to the nodes.
 */
#include "sched/plan_state.h"

enum {
	MAX_TRIES = 16, /* domains of a level that had room, but not in the job's scope */
};

struct gang {
	struct takt_planner *planner;
	uint32_t kind;
	struct takt_scope scope; /* of the job; `domain` is set anew for each try */
	uint32_t least, most;
};

static struct takt_scope in_domain(const struct gang *gang, uint32_t domain)
{
	struct takt_scope scope = gang->scope;

	scope.domain = domain;
	return scope;
}

static bool is_tried(const uint32_t *tried, uint32_t n, uint32_t domain)
{
	for (uint32_t i = 0; i < n; i++)
		if (tried[i] == domain)
			return true;
	return false;
}

/* A domain is better if it holds all `n` more tightly, else if it holds more. */
static bool is_better(uint64_t room, uint64_t best_room, uint64_t n)
{
	if (best_room >= n)
		return room >= n && room < best_room;
	return room > best_room;
}

/* Numbers of domains depend on who was told of first; the lowest node in them does not. */
static uint32_t first_rank(struct takt_cluster *cluster, uint32_t domain)
{
	const uint32_t *nodes;
	size_t count;

	if (takt_cluster_domain_nodes(cluster, domain, &nodes, &count) < 0 || count == 0)
		return UINT32_MAX;
	return takt_cluster_node(cluster, nodes[0])->rank;
}

static bool comes_first(struct takt_cluster *cluster, uint32_t domain, uint32_t other)
{
	return first_rank(cluster, domain) < first_rank(cluster, other);
}

/* Domains by level, found anew when there are more. */
static int list_levels(struct takt_sched *sched)
{
	uint32_t count = (uint32_t)takt_cluster_domain_count(sched->cluster);

	while (sched->domains_known < count) {
		uint32_t domain = sched->domains_known + 1;
		uint32_t level = takt_cluster_domain_level(sched->cluster, domain);
		int rc = takt_vec_push(&sched->domains_of[level - 1], domain);

		if (rc < 0)
			return rc;
		sched->domains_known++;
	}
	return 0;
}

/* The best domain of a level, inside `parent` unless that is 0, that is not tried yet and has room
 * for `least` tasks; 0 = none. */
static uint32_t best_domain(const struct gang *gang, uint32_t level, uint32_t parent, uint64_t n,
			    uint64_t least, const uint32_t *tried, uint32_t tries)
{
	struct takt_sched *sched = gang->planner->sched;
	uint64_t best_room = 0;
	uint32_t best = 0;

	takt_plan_fail(gang->planner, list_levels(sched));
	TAKT_VEC_EACH (it, &sched->domains_of[level - 1]) {
		uint64_t room = takt_cluster_domain_room(sched->cluster, gang->kind, *it);

		if (room < least || room < 1 ||
		    (best && room != best_room && !is_better(room, best_room, n)))
			continue;
		if ((parent && takt_cluster_domain_parent(sched->cluster, *it) != parent) ||
		    is_tried(tried, tries, *it))
			continue;
		if (best && room == best_room && !comes_first(sched->cluster, *it, best))
			continue;
		best = *it;
		best_room = room;
	}
	return best;
}

static uint32_t spread(const struct gang *gang, uint32_t domain, uint32_t at, uint32_t n);

/* Over the domains of the next level that are in `domain`. */
static uint32_t spread_over(const struct gang *gang, uint32_t domain, uint32_t level, uint32_t at,
			    uint32_t n)
{
	uint32_t tried[MAX_TRIES];
	uint32_t tries = 0;
	uint32_t done = 0;

	while (done < n && tries < MAX_TRIES) {
		uint32_t child = best_domain(gang, level, domain, n - done, 1, tried, tries);

		if (!child)
			break;
		tried[tries++] = child;
		done += spread(gang, child, at + done, n - done);
	}
	return done;
}

/* Tasks at.. of n go into the domain; how many found a place. */
static uint32_t spread(const struct gang *gang, uint32_t domain, uint32_t at, uint32_t n)
{
	const struct takt_cluster *cluster = gang->planner->sched->cluster;
	uint32_t level = takt_cluster_domain_level(cluster, domain) + 1;
	struct takt_scope scope = in_domain(gang, domain);
	uint32_t done = 0;

	if (level <= takt_cluster_level_count(cluster))
		done = spread_over(gang, domain, level, at, n);
	return done + takt_plan_fill(gang->planner, gang->kind, &scope, at + done, n - done);
}

/* In one domain of that level. */
static uint32_t place_on_level(const struct gang *gang, uint32_t level)
{
	struct takt_cluster *cluster = gang->planner->sched->cluster;
	uint32_t tried[MAX_TRIES];

	for (uint32_t tries = 0; tries < MAX_TRIES; tries++) {
		uint32_t domain =
			best_domain(gang, level, 0, gang->most, gang->least, tried, tries);
		uint64_t mark;
		uint32_t n;

		if (!domain)
			return 0;
		tried[tries] = domain;
		mark = takt_cluster_mark(cluster);
		n = spread(gang, domain, 0, gang->most);
		if (n >= gang->least) {
			takt_cluster_commit(cluster, mark);
			return n;
		}
		takt_cluster_rollback(cluster, mark);
	}
	return 0;
}

/* A request for n tasks at once, if there is such a thing. */
static bool together(const struct takt_request *request, uint32_t n, struct takt_request *ret)
{
	*ret = *request;
	if (n > 1 && request->flags & TAKT_REQUEST_ONE_NUMA)
		return false; /* each on one, not all on the same */
	if (request->mig_profile || (request->devices && request->milli != TAKT_REQUEST_WHOLE) ||
	    (uint64_t)request->devices * n > TAKT_REQUEST_MAX_DEVICES ||
	    (uint64_t)request->cpu_milli * n > INT32_MAX || request->max_per_node)
		return false;
	ret->devices = (uint16_t)(request->devices * n);
	ret->cpu_milli = (int32_t)((uint32_t)request->cpu_milli * n);
	ret->mem_mib = request->mem_mib * n;
	return true;
}

/* The node with the least room of those that hold all; UINT32_MAX = none. For tasks of which
 * several are no request. */
static uint32_t tightest_node(const struct gang *gang)
{
	struct takt_cluster *cluster = gang->planner->sched->cluster;
	uint32_t best_room = 0;
	uint32_t best = UINT32_MAX;

	TAKT_VEC_EACH (it, &gang->planner->sched->hosts) {
		uint32_t node = (*it)->node;
		uint32_t room = (*it)->removed ? 0 : takt_cluster_room(cluster, gang->kind, node);

		if (room < gang->least || !is_better(room, best_room, gang->most) ||
		    takt_cluster_why_not(cluster, gang->kind, node, &gang->scope) != 0)
			continue;
		best = node;
		best_room = room;
	}
	return best;
}

static uint32_t node_for(const struct gang *gang)
{
	struct takt_planner *planner = gang->planner;
	struct takt_cluster *cluster = planner->sched->cluster;
	const struct takt_request *request = takt_cluster_request(cluster, gang->kind);
	struct takt_request all;
	struct takt_slot slot;
	uint32_t kind;

	if (!together(request, gang->most, &all) || gang->least < gang->most)
		return (uint64_t)request->devices * gang->least > TAKT_REQUEST_MAX_DEVICES
			       ? UINT32_MAX
			       : tightest_node(gang);
	if (takt_cluster_kind(cluster, &all, &kind, NULL) < 0 ||
	    !takt_plan_pick(planner, kind, &gang->scope, &slot))
		return UINT32_MAX;
	return slot.node;
}

static uint32_t place_on_node(const struct gang *gang)
{
	struct takt_cluster *cluster = gang->planner->sched->cluster;
	uint32_t node = node_for(gang);
	struct takt_scope scope = gang->scope;
	uint64_t mark;
	uint32_t n;

	if (node == UINT32_MAX)
		return 0;
	scope.only = &node;
	scope.only_count = 1;
	mark = takt_cluster_mark(cluster);
	n = takt_plan_fill(gang->planner, gang->kind, &scope, 0, gang->most);
	if (n >= gang->least) {
		takt_cluster_commit(cluster, mark);
		return n;
	}
	takt_cluster_rollback(cluster, mark);
	return 0;
}

/* Whether looking for one node for all is cheap and may find one. */
static bool may_share_a_node(const struct gang *gang)
{
	struct takt_cluster *cluster = gang->planner->sched->cluster;
	const struct takt_cluster_totals *totals = takt_cluster_totals(cluster);
	struct takt_request all;

	if (gang->least < gang->most ||
	    !together(takt_cluster_request(cluster, gang->kind), gang->most, &all))
		return false;
	for (uint32_t width = all.devices; width <= TAKT_REQUEST_MAX_DEVICES; width++)
		if (totals->width[width].nodes > 0)
			return true;
	return false;
}

uint32_t takt_plan_place_near(struct takt_planner *planner, const struct takt_sched_entry *entry,
			      const struct takt_scope *scope, uint32_t least, uint32_t most)
{
	struct gang gang = {planner, entry->kind, scope ? *scope : (struct takt_scope){0}, least,
			    most};
	bool required = entry->job.topology == TAKT_TOPOLOGY_REQUIRED;
	uint32_t level = (uint32_t)takt_cluster_level_count(planner->sched->cluster);
	uint32_t widest = required ? entry->job.level : 1;
	uint32_t n = entry->job.level == 0 || may_share_a_node(&gang) ? place_on_node(&gang) : 0;

	if (n > 0 || (required && widest == 0))
		return n;
	for (; n == 0 && level >= widest; level--)
		n = place_on_level(&gang, level);
	if (n == 0 && !required)
		n = takt_plan_fill(planner, entry->kind, scope, 0, most);
	return n;
}
