/* SPDX-License-Identifier: Apache-2.0 */
/* Drawing events that are valid, and keeping book of what they did. */
#include "cluster_story.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	SECOND = 1000000000,
};

static void feed(struct takt_sched *sched, const struct takt_sched_event *event)
{
	struct takt_err err = {0};

	if (takt_sched_update(sched, event, &err) == 0)
		return;
	fprintf(stderr, "event %s: %s\n", takt_sched_event_name(event->kind), err.msg);
	abort();
}

uint32_t story_domain(uint32_t node, uint32_t level)
{
	return level == 0 ? 1000 + node : level == 1 ? 1 + (node - 1) / 6 : 1 + (node - 1) / 3;
}

static void add_node(struct story *story, struct takt_sched *sched, uint32_t id)
{
	struct takt_sched_event event = {
		.kind = TAKT_SCHED_NODE_ADD,
		.node = {.id = id,
			 .gpu_count = STORY_GPUS,
			 .cpu_milli = STORY_CPU,
			 .mem_mib = STORY_MEM,
			 .domain = {story_domain(id, 1), story_domain(id, 2)}},
	};

	feed(sched, &event);
	story->nodes[id] = (struct story_node){.there = true};
}

static void add_tenants(struct takt_sched *sched)
{
	for (uint32_t id = 1; id <= STORY_TENANTS; id++) {
		struct takt_tenant tenant = {
			.id = id,
			.parent = id > 2 ? 1 : TAKT_TENANT_ROOT,
			.weight = id,
			.quota_milli = 12000,
			.limit_milli = id == 1	 ? 40000
				       : id == 3 ? 16000
						 : 0,
			.may_borrow = true,
		};
		struct takt_sched_event event = {.kind = TAKT_SCHED_TENANT, .tenant = &tenant};

		feed(sched, &event);
	}
}

void story_begin(struct story *story, struct takt_sched *sched, uint64_t seed)
{
	static const char *const levels[STORY_LEVELS] = {"rack", "leaf"};

	memset(story, 0, sizeof(*story));
	takt_rng_init(&story->rng, seed);
	story->now_ns = 1000ull * SECOND;
	for (uint32_t i = 0; i < STORY_LEVELS; i++) {
		struct takt_sched_event event = {.kind = TAKT_SCHED_NAME,
						 .space = TAKT_SPACE_LEVEL,
						 .name_id = i + 1,
						 .name = levels[i]};

		feed(sched, &event);
	}
	add_tenants(sched);
	for (uint32_t id = 1; id <= STORY_NODES; id++)
		add_node(story, sched, id);
}

static uint32_t draw(struct story *story, uint32_t n)
{
	return (uint32_t)takt_rng_below(&story->rng, n);
}

static void draw_gang(struct story *story, struct takt_sched_job *job)
{
	if (draw(story, 3) > 0)
		return;
	job->tasks = 2 + draw(story, STORY_TASKS - 1);
	if (draw(story, 3) == 0)
		job->min_tasks = 1 + draw(story, job->tasks);
	job->topology = (enum takt_topology_want)draw(story, TAKT_TOPOLOGY_WANT_COUNT);
	job->level = draw(story, STORY_LEVELS + 1);
}

static void draw_size(struct story *story, struct takt_sched_job *job)
{
	static const uint16_t shares[] = {250, 300, 500, 700};

	job->gpus = draw(story, 4) == 0 ? STORY_GPUS : 1 + draw(story, 4);
	if (draw(story, 4) == 0) {
		job->gpus = 1;
		job->task.milli = shares[draw(story, 4)];
	}
	job->task.cpu_milli = (int32_t)(1000 * draw(story, 12));
	job->task.mem_mib = 1000 * draw(story, 40);
}

static void draw_rest(struct story *story, struct takt_sched_job *job)
{
	job->priority = (int32_t)draw(story, 3);
	job->tenant = draw(story, STORY_TENANTS + 1);
	job->owner = draw(story, 3);
	if (draw(story, 3) > 0)
		job->estimate_ns = (uint64_t)(60 + draw(story, 7200)) * SECOND;
	if (draw(story, 2) == 0)
		job->flags |= TAKT_JOB_PREEMPTIBLE;
	if (draw(story, 3) == 0)
		job->flags |= TAKT_JOB_MOVABLE;
	job->on_failure = (enum takt_failure_policy)draw(story, TAKT_FAILURE_POLICY_COUNT);
	if (draw(story, 8) == 0)
		job->earliest_start_ns = story->now_ns + (uint64_t)draw(story, 500) * SECOND;
	if (draw(story, 6) == 0) {
		job->array = 1 + draw(story, 2);
		job->array_limit = 2;
	}
	if (draw(story, 10) == 0)
		job->apart_group = job->group = 1 + draw(story, 2);
}

static void add_job(struct story *story, struct takt_sched *sched, uint32_t id)
{
	struct story_job *at = &story->jobs[id];
	uint32_t other = 1 + draw(story, STORY_JOBS);
	struct takt_sched_event event = {.kind = TAKT_SCHED_JOB_ADD, .at_ns = story->now_ns};

	*at = (struct story_job){.state = STORY_WAITS};
	at->job.id = id;
	at->job.submit_seq = ++story->next_seq;
	draw_size(story, &at->job);
	draw_gang(story, &at->job);
	draw_rest(story, &at->job);
	if (draw(story, 10) == 0 && other != id && story->jobs[other].state != STORY_ABSENT) {
		at->after.job_id = other;
		at->job.after = &at->after;
		at->job.after_count = 1;
	}
	event.job = at->job;
	feed(sched, &event);
}

static void leave(struct story *story, struct story_job *at)
{
	for (uint32_t i = 0; i < at->slot_count; i++)
		if (story->nodes[at->slots[i].node_id].there)
			story->nodes[at->slots[i].node_id].drain |= at->slots[i].gpu_mask;
	at->slot_count = 0;
}

static void tell_job(struct story *story, struct takt_sched *sched, uint32_t id,
		     enum takt_sched_event_kind kind)
{
	struct takt_sched_event event = {.kind = kind, .job_id = id, .at_ns = story->now_ns};

	event.failed = kind == TAKT_SCHED_JOB_ENDED && draw(story, 5) == 0;
	feed(sched, &event);
}

static void end_job(struct story *story, struct takt_sched *sched, uint32_t id)
{
	leave(story, &story->jobs[id]);
	story->jobs[id].state = STORY_ABSENT;
	tell_job(story, sched, id, TAKT_SCHED_JOB_ENDED);
}

static void requeue(struct story *story, struct takt_sched *sched, uint32_t id)
{
	leave(story, &story->jobs[id]);
	story->jobs[id].state = STORY_WAITS;
	tell_job(story, sched, id, TAKT_SCHED_JOB_REQUEUED);
}

static void change_health(struct story *story, struct takt_sched *sched)
{
	uint32_t node = 1 + draw(story, STORY_NODES);
	struct takt_sched_event event = {
		.kind = TAKT_SCHED_GPU_HEALTH, .node_id = node, .at_ns = story->now_ns};
	uint64_t bit;

	if (!story->nodes[node].there)
		return;
	event.gpu = draw(story, STORY_GPUS);
	bit = UINT64_C(1) << event.gpu;
	event.state = draw(story, 2) ? TAKT_GPU_LOST : TAKT_GPU_QUARANTINED;
	if (story->nodes[node].bad & bit || draw(story, 2))
		event.state = TAKT_GPU_FREE;
	story->nodes[node].bad &= ~bit;
	if (event.state != TAKT_GPU_FREE)
		story->nodes[node].bad |= bit;
	feed(sched, &event);
}

static void change_cordon(struct story *story, struct takt_sched *sched)
{
	uint32_t node = 1 + draw(story, STORY_NODES);
	struct takt_sched_event event = {.kind = TAKT_SCHED_NODE_CORDON, .node_id = node};

	if (!story->nodes[node].there)
		return;
	event.outside = story->nodes[node].cordoned = draw(story, 3) == 0;
	feed(sched, &event);
}

/* A node goes, what drains there is forgotten; or comes back. */
static void change_presence(struct story *story, struct takt_sched *sched)
{
	uint32_t node = 1 + draw(story, STORY_NODES);
	struct takt_sched_event event = {
		.kind = TAKT_SCHED_NODE_REMOVE, .node_id = node, .at_ns = story->now_ns};

	if (!story->nodes[node].there) {
		add_node(story, sched, node);
		return;
	}
	story->nodes[node] = (struct story_node){.there = false};
	feed(sched, &event);
}

/* Maintenance of one node is announced, or called off. */
static void change_window(struct story *story, struct takt_sched *sched)
{
	struct takt_sched_window window = {.id = 1};
	struct takt_sched_event event = {.kind = TAKT_SCHED_WINDOW_ADD, .window = &window};

	if (story->window.end_ns > 0) {
		event = (struct takt_sched_event){.kind = TAKT_SCHED_WINDOW_REMOVE, .window_id = 1};
		story->window.end_ns = 0;
		feed(sched, &event);
		return;
	}
	story->window.node = 1 + draw(story, STORY_NODES);
	story->window.start_ns = story->now_ns + (uint64_t)draw(story, 3000) * SECOND;
	story->window.end_ns = story->window.start_ns + 1800ull * SECOND;
	story->window.gpu_mask = draw(story, 2) ? 0 : 1 + draw(story, 15);
	story->window.owner = draw(story, 3);
	window.gpu_mask = story->window.gpu_mask;
	window.owner = story->window.owner;
	window.start_ns = story->window.start_ns;
	window.end_ns = story->window.end_ns;
	window.nodes = &story->window.node;
	window.node_count = 1;
	feed(sched, &event);
}

/* GPUs get clean; those of which others still hold a part do not drain yet, which is refused. */
static void clean(struct story *story, struct takt_sched *sched)
{
	for (uint32_t node = 1; node <= STORY_NODES; node++) {
		for (uint32_t gpu = 0; gpu < STORY_GPUS; gpu++) {
			struct takt_sched_event event = {
				.kind = TAKT_SCHED_GPU_DRAINED, .node_id = node, .gpu = gpu};

			if (!(story->nodes[node].drain >> gpu & 1) || draw(story, 4) == 0)
				continue;
			if (takt_sched_update(sched, &event, NULL) == 0)
				story->nodes[node].drain &= ~(UINT64_C(1) << gpu);
		}
	}
}

void story_step(struct story *story, struct takt_sched *sched)
{
	uint32_t id = 1 + draw(story, STORY_JOBS);
	struct story_job *at = &story->jobs[id];
	uint32_t what = draw(story, 22);

	story->now_ns += (uint64_t)(1 + draw(story, 90)) * SECOND;
	if (what == 0)
		change_health(story, sched);
	else if (what == 1)
		change_cordon(story, sched);
	else if (what == 20)
		change_presence(story, sched);
	else if (what == 21)
		change_window(story, sched);
	else if (what < 5)
		clean(story, sched);
	else if (at->state == STORY_ABSENT)
		add_job(story, sched, id);
	else if (at->state == STORY_PLACED && what < 13)
		end_job(story, sched, id);
	else if (at->state == STORY_PLACED && what == 13)
		requeue(story, sched, id);
	else if (at->state == STORY_PLACED && what == 14)
		tell_job(story, sched, id, TAKT_SCHED_JOB_CHECKPOINT);
	else if (at->state == STORY_WAITS && what == 15)
		end_job(story, sched, id);
}

static size_t take_gang(struct story *story, struct takt_sched *sched, const struct takt_plan *plan,
			size_t i, bool tell)
{
	const struct takt_plan_placement *first = &plan->placements[i];
	struct story_job *at = &story->jobs[first->job_id];
	struct takt_sched_event event = {
		.kind = TAKT_SCHED_JOB_PLACED, .job_id = first->job_id, .at_ns = story->now_ns};

	at->state = STORY_PLACED;
	at->slot_count = first->tasks;
	for (uint32_t task = 0; task < first->tasks; task++) {
		const struct takt_plan_placement *p = &plan->placements[i + task];

		at->slots[task] = (struct takt_sched_slot){p->node_id, (uint16_t)p->milli,
							   (uint8_t)p->mig_start, p->gpu_mask};
	}
	event.slots = at->slots;
	event.slot_count = at->slot_count;
	if (tell)
		feed(sched, &event);
	return first->tasks;
}

/* One task goes over; the GPUs that it leaves are not clean. */
static void move_task(struct story *story, struct takt_sched *sched,
		      const struct takt_plan_migration *migration)
{
	struct story_job *at = &story->jobs[migration->job_id];
	struct takt_sched_slot *slot = &at->slots[migration->task];
	struct takt_sched_event event = {
		.kind = TAKT_SCHED_JOB_MOVED,
		.job_id = migration->job_id,
		.slots = at->slots,
		.slot_count = at->slot_count,
	};

	story->nodes[slot->node_id].drain |= slot->gpu_mask;
	*slot = migration->to;
	feed(sched, &event);
}

void story_obey(struct story *story, struct takt_sched *sched, const struct takt_plan *plan)
{
	bool commit = draw(story, 2) == 0;

	if (commit && takt_sched_commit(sched, plan, story->now_ns, NULL) < 0)
		abort();
	for (size_t i = 0; i < plan->placement_count;)
		i += commit || draw(story, 4) > 0 ? take_gang(story, sched, plan, i, !commit)
						  : plan->placements[i].tasks;
	for (size_t i = 0; i < plan->migration_count; i++)
		if (draw(story, 3) > 0)
			move_task(story, sched, &plan->migrations[i]);
	for (size_t i = 0; i < plan->eviction_count; i++)
		if (draw(story, 3) > 0)
			requeue(story, sched, (uint32_t)plan->evictions[i].job_id);
}
