/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What holds of every plan, with all features at once, in random clusters: nothing over-committed,
 * no gang partial, no place that a job may not have, no eviction without a start and none that was
 * not needed, reservations that do not collide, nothing left waiting that could start where
 * whatever fits may overtake, and a reason for each wait that the naive model confirms. And: the
 * plan depends on nothing but the state, in whatever order that is told.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/vec.h"
#include "codec/json.h"
#include "codec/snapshot.h"
#include "planner_world.h"
#include "sched/order.h"
#include "sched/place.h"
#include "sched_kit.h"

enum {
	TEXT_MAX = 4 * 1024 * 1024,
	SEEDS = 300,
	STEPS = 70,
};

/* A plan and what it is judged by. */
struct judged {
	struct planner_world *world;
	const struct takt_sched_config *config;
	const struct takt_plan *plan;
	struct world_use use; /* held, and placed by the plan */
	uint32_t placed[WORLD_JOBS];
	bool gone[WORLD_JOBS];
};

static uint32_t index_of(const struct judged *judged, uint64_t id)
{
	struct world_job *at = world_find(judged->world, id);

	assert_non_null(at);
	return (uint32_t)(at - judged->world->jobs);
}

static const struct takt_sched_job *spec(const struct judged *judged, uint32_t i)
{
	return &judged->world->jobs[i].job;
}

static uint32_t node_of(uint32_t node_id)
{
	return (node_id - 10) / 3;
}

/* Where jobs are: running, or placed by this plan before entry `until`. */

static uint32_t tasks_at(const struct judged *judged, uint32_t i, size_t until, uint32_t nodes[])
{
	const struct world_job *at = &judged->world->jobs[i];
	uint32_t n = 0;

	for (uint32_t t = 0; at->phase == WORLD_RUNS && t < at->count; t++)
		nodes[n++] = node_of(at->slots[t].node_id);
	for (size_t p = 0; at->phase == WORLD_WAITS && p < until; p++)
		if (judged->plan->placements[p].job_id == at->job.id)
			nodes[n++] = node_of(judged->plan->placements[p].node_id);
	return n;
}

static bool shares_domain(const struct judged *judged, const uint32_t nodes[], uint32_t n,
			  uint32_t node, uint32_t level)
{
	for (uint32_t i = 0; i < n; i++)
		if (world_domain(judged->world, nodes[i], level) ==
		    world_domain(judged->world, node, level))
			return true;
	return false;
}

/* Near to every job of the one group, apart from every one of the other. */
static bool is_affine(const struct judged *judged, const struct takt_sched_job *job, uint32_t node,
		      size_t until)
{
	for (uint32_t i = 0; i < WORLD_JOBS; i++) {
		const struct takt_sched_job *other = spec(judged, i);
		uint32_t nodes[WORLD_TASKS];
		uint32_t n;

		if (judged->world->jobs[i].phase == WORLD_ABSENT || other->id == job->id)
			continue;
		n = tasks_at(judged, i, until, nodes);
		if (n == 0)
			continue;
		if (job->near_group && other->group == job->near_group &&
		    !shares_domain(judged, nodes, n, node, job->near_level))
			return false;
		if (job->apart_group && other->group == job->apart_group &&
		    shares_domain(judged, nodes, n, node, job->apart_level))
			return false;
	}
	return true;
}

/* Tenants and arrays, with what the plan has placed before entry `until`. */

static uint64_t tasks_milli(const struct judged *judged, uint32_t i, size_t until)
{
	uint32_t nodes[WORLD_TASKS];

	return world_charge(judged->world, spec(judged, i)) * tasks_at(judged, i, until, nodes);
}

static bool is_under(const struct judged *judged, uint32_t tenant, uint32_t ancestor)
{
	while (tenant && tenant != ancestor)
		tenant = judged->world->tenants[tenant - 1].parent;
	return tenant == ancestor;
}

static bool within_quota(const struct judged *judged, const struct takt_sched_job *job,
			 uint32_t tasks, size_t until)
{
	for (uint32_t id = job->tenant; id; id = judged->world->tenants[id - 1].parent) {
		const struct takt_tenant *tenant = &judged->world->tenants[id - 1];
		uint64_t has = world_charge(judged->world, job) * tasks;

		for (uint32_t i = 0; i < WORLD_JOBS; i++)
			if (judged->world->jobs[i].phase != WORLD_ABSENT &&
			    is_under(judged, spec(judged, i)->tenant, id))
				has += tasks_milli(judged, i, until);
		if ((tenant->limit_milli && has > tenant->limit_milli) ||
		    (!tenant->may_borrow && has > tenant->quota_milli))
			return false;
	}
	return true;
}

static bool array_is_full(const struct judged *judged, const struct takt_sched_job *job,
			  size_t until)
{
	uint32_t nodes[WORLD_TASKS];
	uint32_t running = 0;

	if (!job->array || !job->array_limit)
		return false;
	for (uint32_t i = 0; i < WORLD_JOBS; i++)
		running += judged->world->jobs[i].phase != WORLD_ABSENT &&
			   spec(judged, i)->array == job->array &&
			   tasks_at(judged, i, until, nodes) > 0;
	return running >= job->array_limit;
}

static enum takt_why not_ready(const struct judged *judged, const struct takt_sched_job *job,
			       size_t until)
{
	if (job->flags & TAKT_JOB_HELD)
		return TAKT_WHY_HELD;
	if (job->after_count)
		return TAKT_WHY_DEPENDENCY;
	if (job->earliest_start_ns > judged->world->now_ns)
		return TAKT_WHY_EARLIEST;
	if (array_is_full(judged, job, until))
		return TAKT_WHY_ARRAY;
	return within_quota(judged, job, world_least(job), until) ? TAKT_WHY_NONE : TAKT_WHY_QUOTA;
}

/* Placements. */

static bool is_usable(const struct judged *judged, const struct takt_plan_placement *p)
{
	const struct world_node *at = &judged->world->nodes[node_of(p->node_id)];

	return at->present && !at->cordoned && !(p->gpu_mask & (at->sick | at->draining));
}

static void check_topology(const struct judged *judged, const struct takt_plan_placement *first,
			   const struct takt_sched_job *job)
{
	for (uint32_t t = 1; job->topology == TAKT_TOPOLOGY_REQUIRED && t < first->tasks; t++)
		assert_int_equal(world_domain(judged->world, node_of(first[t].node_id), job->level),
				 world_domain(judged->world, node_of(first->node_id), job->level));
}

/* Tasks of its kind on the node, this one included, placed by the plan or running. */
static uint32_t alike(const struct judged *judged, const struct takt_sched_job *job,
		      const struct takt_plan_placement *p)
{
	uint32_t n = world_alike(judged->world, job, node_of(p->node_id), NULL);

	for (const struct takt_plan_placement *other = judged->plan->placements; other <= p;
	     other++)
		n += other->node_id == p->node_id &&
		     world_same_kind(job, spec(judged, index_of(judged, other->job_id)));
	return n;
}

static void check_task(struct judged *judged, const struct takt_plan_placement *p, size_t first)
{
	const struct takt_sched_job *job = spec(judged, index_of(judged, p->job_id));
	uint32_t node = node_of(p->node_id);
	struct takt_sched_slot slot = {p->node_id, (uint16_t)p->milli, (uint8_t)p->mig_start,
				       p->gpu_mask};

	assert_true(is_usable(judged, p));
	assert_true(world_hold(judged->world, job, &slot, &judged->use));
	assert_int_equal(p->milli, job->gpus ? world_milli(judged->world, job, node) : p->milli);
	assert_true(world_outside_windows(judged->world, job, node));
	assert_true(is_affine(judged, job, node, first));
	if (job->task.max_per_node)
		assert_true(alike(judged, job, p) <= job->task.max_per_node);
}

static void check_placements(struct judged *judged)
{
	const struct takt_plan *plan = judged->plan;

	for (size_t i = 0; i < plan->placement_count; i += plan->placements[i].tasks) {
		const struct takt_plan_placement *first = &plan->placements[i];
		uint32_t at = index_of(judged, first->job_id);
		const struct takt_sched_job *job = spec(judged, at);

		assert_int_equal(judged->world->jobs[at].phase, WORLD_WAITS);
		assert_int_equal(judged->placed[at], 0);
		assert_in_range(first->tasks, world_least(job), world_tasks(job));
		assert_true(i + first->tasks <= plan->placement_count);
		assert_int_equal(not_ready(judged, job, i), TAKT_WHY_NONE);
		assert_true(within_quota(judged, job, first->tasks, i));
		for (uint32_t t = 0; t < first->tasks; t++) {
			assert_int_equal(first[t].job_id, first->job_id);
			assert_int_equal(first[t].task, t);
			check_task(judged, &first[t], i);
		}
		check_topology(judged, first, job);
		judged->placed[at] = first->tasks;
	}
}

/* Who could start beside all that the plan has placed. */

static bool may_be_there(const struct judged *judged, const struct takt_sched_job *job,
			 uint32_t node)
{
	return world_outside_windows(judged->world, job, node) &&
	       is_affine(judged, job, node, judged->plan->placement_count);
}

static uint32_t room_at(const struct judged *judged, const struct takt_sched_job *job,
			uint32_t node)
{
	uint32_t room = world_room(judged->world, job, node, &judged->use, false);
	uint32_t same = 0;

	if (!job->task.max_per_node)
		return room;
	same = world_alike(judged->world, job, node, NULL);
	for (size_t i = 0; i < judged->plan->placement_count; i++) {
		const struct takt_plan_placement *p = &judged->plan->placements[i];

		same += node_of(p->node_id) == node &&
			world_same_kind(job, spec(judged, index_of(judged, p->job_id)));
	}
	same = same < job->task.max_per_node ? job->task.max_per_node - same : 0;
	return same < room ? same : room;
}

struct room {
	uint32_t nodes;	   /* that could take a task, wherever it may be */
	uint32_t tasks;	   /* that they could take */
	uint32_t allowed;  /* of these where it also may be */
	uint32_t together; /* most tasks in one domain that it requires, where it may be */
	uint32_t ever;	   /* the same, were all nodes empty, healthy and without conditions */
};

static struct room room_for(const struct judged *judged, const struct takt_sched_job *job)
{
	bool required = job->topology == TAKT_TOPOLOGY_REQUIRED && world_tasks(job) > 1;
	struct room room = {0};

	for (uint32_t node = 0; node < WORLD_NODES; node++) {
		uint32_t here = room_at(judged, job, node);
		uint32_t sum = 0, ever = 0;

		room.nodes += here > 0;
		room.tasks += here;
		room.allowed += may_be_there(judged, job, node) ? here : 0;
		for (uint32_t n = 0; n < WORLD_NODES; n++) {
			if (required && world_domain(judged->world, n, job->level) !=
						world_domain(judged->world, node, job->level))
				continue;
			ever += world_room(judged->world, job, n, NULL, true);
			if (may_be_there(judged, job, n))
				sum += room_at(judged, job, n);
		}
		room.together = sum > room.together ? sum : room.together;
		room.ever = ever > room.ever ? ever : room.ever;
	}
	return room;
}

static bool is_of_a_node(enum takt_why why)
{
	return (why >= TAKT_WHY_SELECTOR && why <= TAKT_WHY_OUTSIDE) ||
	       (why >= TAKT_WHY_GPUS && why <= TAKT_WHY_PER_NODE);
}

/* The reason is true, and no other that the model knows is meant. */
static void check_reason(const struct judged *judged, const struct takt_plan_wait *wait)
{
	const struct takt_sched_job *job = spec(judged, index_of(judged, wait->job_id));
	enum takt_why ready = not_ready(judged, job, judged->plan->placement_count);
	struct room room = room_for(judged, job);

	assert_true(wait->also >> wait->why & 1);
	if (ready != TAKT_WHY_NONE) {
		assert_int_equal(wait->why, ready);
		return;
	}
	if (wait->why == TAKT_WHY_PREEMPTION)
		return; /* see check_evictions */
	if (room.ever < world_least(job)) {
		assert_int_not_equal(wait->why, TAKT_WHY_ORDER);
		if (world_tasks(job) == 1)
			assert_false(wait->why >= TAKT_WHY_GPUS && wait->why <= TAKT_WHY_PER_NODE);
		return;
	}
	assert_int_not_equal(wait->why, TAKT_WHY_IMPOSSIBLE);
	if (is_of_a_node(wait->why) && wait->why != TAKT_WHY_UNHEALTHY)
		assert_int_equal(room.nodes, 0);
	if (wait->why == TAKT_WHY_GANG)
		assert_true(room.tasks < world_least(job));
	if (wait->why == TAKT_WHY_AFFINITY)
		assert_true(room.nodes > 0 && room.allowed < world_least(job) &&
			    (job->near_group || job->apart_group));
	if (wait->why == TAKT_WHY_RESERVATION)
		assert_true(room.nodes > 0 && room.allowed < world_least(job));
	if (wait->why == TAKT_WHY_TOPOLOGY)
		assert_true(room.together < world_least(job) &&
			    job->topology == TAKT_TOPOLOGY_REQUIRED);
	if (judged->config->backfill == TAKT_BACKFILL_GREEDY)
		assert_int_not_equal(wait->why, TAKT_WHY_ORDER);
}

/* Where whatever fits may overtake nothing that fits is left. */
static void check_conserving(const struct judged *judged, const struct takt_plan_wait *wait)
{
	const struct takt_sched_job *job = spec(judged, index_of(judged, wait->job_id));

	if (judged->config->backfill == TAKT_BACKFILL_GREEDY &&
	    not_ready(judged, job, judged->plan->placement_count) == TAKT_WHY_NONE)
		assert_true(room_for(judged, job).together < world_least(job));
}

static void check_waits(struct judged *judged)
{
	bool told[WORLD_JOBS] = {0};

	for (size_t i = 0; i < judged->plan->wait_count; i++) {
		const struct takt_plan_wait *wait = &judged->plan->waits[i];
		uint32_t at = index_of(judged, wait->job_id);

		assert_false(told[at]);
		told[at] = true;
		check_reason(judged, wait);
		check_conserving(judged, wait);
	}
	for (uint32_t i = 0; i < WORLD_JOBS; i++)
		assert_int_equal(judged->world->jobs[i].phase == WORLD_WAITS,
				 told[i] + (judged->placed[i] > 0));
}

/* Evictions. */

static const struct takt_plan_wait *wait_of(const struct takt_plan *plan, uint64_t job_id)
{
	for (size_t i = 0; i < plan->wait_count; i++)
		if (plan->waits[i].job_id == job_id)
			return &plan->waits[i];
	return NULL;
}

static bool evicts_for(const struct takt_plan *plan, uint64_t job_id)
{
	for (size_t i = 0; i < plan->eviction_count; i++)
		if (plan->evictions[i].for_job == job_id)
			return true;
	return false;
}

/* With the evicted gone everybody for whom they go finds what is kept for him. */
static bool all_find_room(const struct judged *judged, const bool gone[WORLD_JOBS])
{
	const struct takt_plan *plan = judged->plan;
	struct world_use use;
	bool ok = world_held(judged->world, gone, &use);

	for (size_t i = 0; i < plan->placement_count; i++) {
		const struct takt_plan_placement *p = &plan->placements[i];
		struct takt_sched_slot slot = {p->node_id, 0, (uint8_t)p->mig_start, p->gpu_mask};

		ok = ok && world_hold(judged->world, spec(judged, index_of(judged, p->job_id)),
				      &slot, &use);
	}
	for (size_t i = 0; i < plan->reservation_count; i++) {
		const struct takt_plan_reservation *r = &plan->reservations[i];
		struct takt_sched_slot slot = {r->node_id, 0, (uint8_t)r->mig_start, r->gpu_mask};

		if (r->how == TAKT_START_NOW && evicts_for(plan, r->job_id))
			ok = ok &&
			     world_hold(judged->world, spec(judged, index_of(judged, r->job_id)),
					&slot, &use);
	}
	return ok;
}

static void check_starts(const struct judged *judged, uint64_t job_id)
{
	const struct takt_sched_job *job = spec(judged, index_of(judged, job_id));
	const struct takt_plan_wait *wait = wait_of(judged->plan, job_id);
	uint32_t tasks = 0;

	assert_non_null(wait);
	assert_int_equal(wait->why, TAKT_WHY_PREEMPTION);
	for (size_t i = 0; i < judged->plan->reservation_count; i++) {
		const struct takt_plan_reservation *r = &judged->plan->reservations[i];

		if (r->job_id != job_id)
			continue;
		assert_int_equal(r->how, TAKT_START_NOW);
		assert_int_equal(r->start_ns, judged->world->now_ns);
		assert_true(!judged->world->nodes[node_of(r->node_id)].cordoned);
		assert_int_equal(r->gpu_mask & judged->world->nodes[node_of(r->node_id)].sick, 0);
		tasks++;
	}
	assert_in_range(tasks, world_least(job), world_tasks(job));
}

static void check_evictions(struct judged *judged)
{
	const struct takt_plan *plan = judged->plan;

	for (size_t i = 0; i < plan->eviction_count; i++) {
		uint32_t at = index_of(judged, plan->evictions[i].job_id);
		const struct world_job *victim = &judged->world->jobs[at];

		assert_int_equal(victim->phase, WORLD_RUNS);
		assert_true(victim->job.flags & TAKT_JOB_PREEMPTIBLE);
		assert_true(judged->world->now_ns - victim->since_ns >= victim->job.min_runtime_ns);
		assert_false(judged->gone[at]);
		judged->gone[at] = true;
		check_starts(judged, plan->evictions[i].for_job);
	}
	if (plan->eviction_count == 0)
		return;
	assert_true(all_find_room(judged, judged->gone));
	for (size_t i = 0; i < plan->eviction_count; i++) {
		uint32_t at = index_of(judged, plan->evictions[i].job_id);
		uint32_t by = index_of(judged, plan->evictions[i].for_job);

		judged->gone[at] = false;
		if (!spec(judged, by)->task.max_per_node)
			assert_false(all_find_room(judged, judged->gone));
		judged->gone[at] = true;
	}
}

/* Reservations. */

static uint64_t later(uint64_t at_ns, uint64_t span_ns)
{
	return span_ns > UINT64_MAX - at_ns ? UINT64_MAX : at_ns + span_ns;
}

/* What is kept at that instant collides with nothing else that is. */
static void check_instant(const struct judged *judged, uint64_t at_ns)
{
	struct world_use use = {0};

	for (size_t i = 0; i < judged->plan->reservation_count; i++) {
		const struct takt_plan_reservation *r = &judged->plan->reservations[i];
		const struct takt_sched_job *job = spec(judged, index_of(judged, r->job_id));
		struct takt_sched_slot slot = {r->node_id, 0, (uint8_t)r->mig_start, r->gpu_mask};

		if (r->how == TAKT_START_UNKNOWN || at_ns < r->start_ns ||
		    at_ns >= later(r->start_ns, world_length_ns(job)))
			continue;
		assert_true(world_hold(judged->world, job, &slot, &use));
	}
	for (size_t i = 0; i < judged->plan->placement_count; i++) {
		const struct takt_plan_placement *p = &judged->plan->placements[i];
		const struct takt_sched_job *job = spec(judged, index_of(judged, p->job_id));
		struct takt_sched_slot slot = {p->node_id, 0, (uint8_t)p->mig_start, p->gpu_mask};

		if (at_ns < later(judged->world->now_ns, world_length_ns(job)))
			assert_true(world_hold(judged->world, job, &slot, &use));
	}
}

static void check_reservations(const struct judged *judged)
{
	for (size_t i = 0; i < judged->plan->reservation_count; i++) {
		const struct takt_plan_reservation *r = &judged->plan->reservations[i];
		uint32_t at = index_of(judged, r->job_id);

		assert_int_equal(judged->world->jobs[at].phase, WORLD_WAITS);
		assert_int_equal(judged->placed[at], 0);
		if (r->how == TAKT_START_UNKNOWN)
			continue;
		assert_true(r->start_ns >= judged->world->now_ns);
		assert_true(r->start_ns >= spec(judged, at)->earliest_start_ns);
		check_instant(judged, r->start_ns);
	}
}

static void check_plan(struct planner_world *world, const struct takt_sched_config *config,
		       const struct takt_plan *plan)
{
	struct judged judged = {.world = world, .config = config, .plan = plan};

	assert_true(world_held(world, NULL, &judged.use));
	check_placements(&judged);
	check_waits(&judged);
	check_evictions(&judged);
	check_reservations(&judged);
}

/* The state and nothing else. */

struct log {
	TAKT_VEC(struct takt_str) lines;
	TAKT_VEC(enum takt_sched_event_kind) kinds;
};

static int keep_line(void *ctx, const struct takt_sched_event *event)
{
	struct log *log = ctx;
	struct takt_str line = TAKT_STR(TEXT_MAX);

	assert_int_equal(takt_event_to_json(event, &line, NULL), 0);
	assert_int_equal(takt_vec_push(&log->lines, line), 0);
	return takt_vec_push(&log->kinds, event->kind);
}

/* Nodes and what is told of them, tenants of one parent, windows, places: one may come before the
 * other. */
static uint32_t rank_in_log(enum takt_sched_event_kind kind)
{
	switch (kind) {
	case TAKT_SCHED_NODE_ADD:
		return 1;
	case TAKT_SCHED_GPU_HEALTH:
	case TAKT_SCHED_GPU_DRAINING:
	case TAKT_SCHED_NODE_CORDON:
		return 2;
	case TAKT_SCHED_WINDOW_ADD:
		return 3;
	case TAKT_SCHED_JOB_ADD:
		return 4;
	case TAKT_SCHED_JOB_PLACED:
		return 5;
	case TAKT_SCHED_JOB_RUNNING:
	case TAKT_SCHED_JOB_CHECKPOINT:
		return 6;
	case TAKT_SCHED_TENANT_USAGE:
		return 7;
	default:
		return 0;
	}
}

/* All of one rank in the order of `list`, shuffled but for the words and for jobs, which name
 * earlier ones. */
static void add_shuffled(const struct log *log, uint32_t rank, struct takt_rng *rng,
			 struct takt_str *out)
{
	size_t list[1000];
	size_t n = 0;

	for (size_t i = 0; i < log->lines.len; i++)
		if (rank_in_log(log->kinds.at[i]) == rank)
			list[n++] = i;
	if (rank != 0 && rank != 4)
		takt_rng_shuffle(rng, list, n, sizeof(*list));
	for (size_t i = 0; i < n; i++)
		takt_str_add(out, takt_str_text(&log->lines.at[list[i]]));
}

static struct takt_sched *rebuild(const struct takt_sched *sched,
				  const struct takt_sched_config *config, struct takt_rng *rng)
{
	struct log log = {.lines = TAKT_VEC_INIT(1000), .kinds = TAKT_VEC_INIT(1000)};
	struct takt_str text = TAKT_STR(TEXT_MAX);
	struct takt_sched *rebuilt = NULL;
	struct takt_err err = {0};

	assert_int_equal(takt_sched_snapshot(sched, keep_line, &log), 0);
	assert_int_equal(takt_events_begin(&text), 0);
	if (rng) {
		for (uint32_t rank = 0; rank <= 7; rank++)
			add_shuffled(&log, rank, rng, &text);
	} else {
		TAKT_VEC_EACH (line, &log.lines)
			takt_str_add(&text, takt_str_text(line));
	}
	if (takt_snapshot_load(text.s, text.len, config, &rebuilt, &err) < 0)
		fail_msg("%s", err.msg);
	TAKT_VEC_EACH (line, &log.lines)
		takt_str_fini(line);
	takt_vec_fini(&log.lines);
	takt_vec_fini(&log.kinds);
	takt_str_fini(&text);
	return rebuilt;
}

static void plan_text(const struct takt_plan *plan, struct takt_str *ret)
{
	struct takt_plan copy = *plan;

	copy.version = copy.serial = 0;
	assert_int_equal(takt_plan_to_json(&copy, ret, NULL), 0);
}

static void expect_same_plan(struct takt_sched *sched, uint64_t now_ns, const struct takt_str *text)
{
	struct takt_str other = TAKT_STR(TEXT_MAX);
	struct takt_plan plan = {0};

	assert_int_equal(takt_sched_run(sched, now_ns, 0, &plan, NULL), 0);
	plan_text(&plan, &other);
	assert_string_equal(takt_str_text(&other), takt_str_text(text));
	takt_str_fini(&other);
	takt_plan_fini(&plan);
}

static void check_rebuilt(struct takt_sched *sched, const struct takt_sched_config *config,
			  struct planner_world *world, const struct takt_plan *plan)
{
	struct takt_str text = TAKT_STR(TEXT_MAX);
	struct takt_str before = TAKT_STR(TEXT_MAX);
	struct takt_str after = TAKT_STR(TEXT_MAX);
	struct takt_sched *rebuilt = rebuild(sched, config, NULL);

	plan_text(plan, &text);
	expect_same_plan(sched, world->now_ns, &text);
	expect_same_plan(rebuilt, world->now_ns, &text);
	assert_int_equal(takt_snapshot_to_json(sched, &before, NULL), 0);
	assert_int_equal(takt_snapshot_to_json(rebuilt, &after, NULL), 0);
	assert_string_equal(takt_str_text(&before), takt_str_text(&after));
	takt_sched_free(rebuilt);
	rebuilt = rebuild(sched, config, &world->rng);
	expect_same_plan(rebuilt, world->now_ns, &text);
	takt_sched_free(rebuilt);
	takt_str_fini(&text);
	takt_str_fini(&before);
	takt_str_fini(&after);
}

static void take(void *ctx, const struct takt_sched_event *event)
{
	struct takt_err err = {0};

	if (takt_sched_update(ctx, event, &err) < 0)
		fail_msg("%s refused: %s", takt_sched_event_name(event->kind), err.msg);
}

static struct takt_sched_config config_of(uint64_t seed)
{
	static const char *const orders[] = {"priority", "fifo",       "las",	     "edf",
					     "qssf",	 "fair_share", "round_robin"};
	static const char *const placements[] = {"takt",   "pack", "spread",	    "topology",
						 "energy", "fgd",  "least-utilised"};

	return (struct takt_sched_config){
		.order = takt_order_find(orders[seed % 7]),
		.placement = takt_placement_find(placements[seed / 7 % 7]),
		.backfill = (enum takt_backfill)(seed % TAKT_BACKFILL_COUNT),
		.preempt = seed / 4 % 2,
		.clean_at_end = seed / 2 % 2,
	};
}

/* Where it is, for whoever wants to know where it failed; with a seed on the command line also what
 * had been told and planned by then. */
static struct {
	uint64_t only, seed;
	int step;
	struct takt_str state;
} now_at;

static void note(const struct takt_sched *sched, const struct takt_plan *plan, uint64_t seed,
		 int step)
{
	now_at.seed = seed;
	now_at.step = step;
	if (!now_at.only)
		return;
	takt_str_reset(&now_at.state);
	assert_int_equal(takt_snapshot_to_json(sched, &now_at.state, NULL), 0);
	assert_int_equal(takt_plan_to_json(plan, &now_at.state, NULL), 0);
}

static int tell_where(void **state)
{
	(void)state;
	printf("# last: seed %llu, step %d\n", (unsigned long long)now_at.seed, now_at.step);
	fputs(takt_str_text(&now_at.state), stdout);
	takt_str_fini(&now_at.state);
	return 0;
}

static void run_seed(uint64_t seed)
{
	struct takt_sched_config config = config_of(seed);
	struct planner_world world;
	struct takt_sched *sched;

	assert_int_equal(takt_sched_new(&config, &sched, NULL), 0);
	world_init(&world, seed, config.clean_at_end, take, sched);
	for (int step = 0; step < STEPS; step++) {
		struct takt_plan plan = {0};

		world_step(&world, take, sched);
		assert_int_equal(takt_sched_run(sched, world.now_ns, 0, &plan, NULL), 0);
		note(sched, &plan, seed, step);
		check_plan(&world, &config, &plan);
		if (step % 10 == 9)
			check_rebuilt(sched, &config, &world, &plan);
		world_take_plan(&world, &plan, step % 3 == 0, take, sched);
		takt_plan_fini(&plan);
	}
	takt_sched_free(sched);
}

/* Memory. */

static void state_text(const struct takt_sched *sched, struct takt_str *ret)
{
	takt_str_reset(ret);
	assert_int_equal(takt_snapshot_to_json(sched, ret, NULL), 0);
}

struct failing {
	struct takt_sched *sched;
	struct takt_str before, after;
};

static void expect_unchanged(struct failing *failing)
{
	state_text(failing->sched, &failing->after);
	assert_string_equal(takt_str_text(&failing->before), takt_str_text(&failing->after));
}

/* Each allocation fails in turn, until there are no more. */
static void take_with_failures(void *ctx, const struct takt_sched_event *event)
{
	struct failing *failing = ctx;
	int rc = -ENOMEM;

	state_text(failing->sched, &failing->before);
	for (unsigned long nth = 1; rc != 0; nth++) {
		takt_alloc_fail_nth(nth, 0);
		rc = takt_sched_update(failing->sched, event, NULL);
		takt_alloc_fail_nth(0, 0);
		assert_true(rc == 0 || rc == -ENOMEM);
		if (rc < 0)
			expect_unchanged(failing);
	}
}

static void plan_with_failures(struct failing *failing, uint64_t now_ns, struct takt_plan *plan)
{
	struct takt_str text = TAKT_STR(TEXT_MAX);
	int rc = -ENOMEM;

	state_text(failing->sched, &failing->before);
	for (unsigned long nth = 1; rc != 0; nth += 1 + nth / 20) {
		takt_alloc_fail_nth(nth, 0);
		rc = takt_sched_run(failing->sched, now_ns, 0, plan, NULL);
		takt_alloc_fail_nth(0, 0);
		assert_true(rc == 0 || (rc == -ENOMEM && plan->placement_count == 0));
	}
	expect_unchanged(failing);
	plan_text(plan, &text);
	expect_same_plan(failing->sched, now_ns, &text);
	takt_str_fini(&text);
	/* The newest plan is the one that may be taken. */
	assert_int_equal(takt_sched_run(failing->sched, now_ns, 0, plan, NULL), 0);
}

/* Taken by the scheduler itself, and by the world as if it had been told. */
static void ignore(void *ctx, const struct takt_sched_event *event)
{
	(void)ctx;
	(void)event;
}

static void commit_with_failures(struct failing *failing, struct planner_world *world,
				 const struct takt_plan *plan)
{
	struct takt_plan placed = *plan;
	int rc = -ENOMEM;

	for (unsigned long nth = 1; rc != 0; nth++) {
		takt_alloc_fail_nth(nth, 0);
		rc = takt_sched_commit(failing->sched, plan, world->now_ns, NULL);
		takt_alloc_fail_nth(0, 0);
		assert_true(rc == 0 || rc == -ENOMEM);
		if (rc < 0)
			expect_unchanged(failing);
	}
	placed.eviction_count = 0;
	world_take_plan(world, &placed, false, ignore, NULL);
	placed.placement_count = 0;
	placed.eviction_count = plan->eviction_count;
	world_take_plan(world, &placed, false, take_with_failures, failing);
}

static void test_every_allocation_may_fail(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 4; seed++) {
		struct takt_sched_config config = config_of(2 * seed + 1);
		struct failing failing = {.before = TAKT_STR(TEXT_MAX),
					  .after = TAKT_STR(TEXT_MAX)};
		struct takt_plan plan = {0};
		struct planner_world world;

		config.preempt = true;
		assert_int_equal(takt_sched_new(&config, &failing.sched, NULL), 0);
		world_init(&world, seed, config.clean_at_end, take_with_failures, &failing);
		for (int step = 0; step < 40; step++) {
			world_step(&world, take_with_failures, &failing);
			plan_with_failures(&failing, world.now_ns, &plan);
			check_plan(&world, &config, &plan);
			commit_with_failures(&failing, &world, &plan);
		}
		takt_plan_fini(&plan);
		takt_sched_free(failing.sched);
		takt_str_fini(&failing.before);
		takt_str_fini(&failing.after);
	}
}

static void test_plans(void **state)
{
	(void)state;
	if (now_at.only)
		run_seed(now_at.only);
	for (uint64_t seed = 1; !now_at.only && seed <= SEEDS; seed++)
		run_seed(seed);
}

/* planner_test [SEED] */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_plans, tell_where),
		cmocka_unit_test(test_every_allocation_may_fail),
	};

	now_at.state = TAKT_STR(TEXT_MAX);
	now_at.only = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;

	takt_json_init();
	return cmocka_run_group_tests_name("planner", tests, NULL, NULL);
}
