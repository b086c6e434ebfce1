/* SPDX-License-Identifier: Apache-2.0 */
/* What happens in a random cluster: see planner_world.h. */
#include "planner_world.h"

#include <stdio.h>
#include <string.h>

enum {
	LABEL_FAST = 1,
	LABEL_SPOT = 2,
	MODEL_T4 = 1,
	MODEL_A100 = 2,
	T4_MIB = 16384,
	A100_MIB = 40960,
	NODE_ID = 10, /* of the first; the next ones by 3, so that ids are no indices */
};

static uint64_t below(struct planner_world *world, uint64_t n)
{
	return takt_rng_below(&world->rng, n);
}

static bool one_in(struct planner_world *world, uint64_t n)
{
	return below(world, n) == 0;
}

struct teller {
	world_tell *tell;
	void *ctx;
};

static void tell(const struct teller *teller, struct takt_sched_event event)
{
	teller->tell(teller->ctx, &event);
}

/* Words. */

static void tell_name(const struct teller *teller, enum takt_sched_space space, uint32_t id,
		      const char *name)
{
	tell(teller, (struct takt_sched_event){
			     .kind = TAKT_SCHED_NAME, .space = space, .name_id = id, .name = name});
}

static void tell_models(struct planner_world *world, const struct teller *teller)
{
	world->models[0] = (struct takt_sched_model){.id = MODEL_T4,
						     .name = "T4",
						     .mem_mib = T4_MIB,
						     .idle_mw = 10000,
						     .busy_mw = 70000};
	world->models[1] = (struct takt_sched_model){
		.id = MODEL_A100,
		.name = "A100",
		.mem_mib = A100_MIB,
		.idle_mw = 50000,
		.busy_mw = 400000,
		.profile_count = WORLD_PROFILES,
		.profiles = {{"1g", 1, 1, 7, 4864},
			     {"2g", 2, 2, 3, 9856},
			     {"3g", 4, 3, 2, 19968},
			     {"4g", 4, 4, 1, 19968},
			     {"7g", 8, 7, 1, 40192}},
	};
	for (uint32_t i = 0; i < 2; i++)
		tell(teller, (struct takt_sched_event){.kind = TAKT_SCHED_MODEL,
						       .model = &world->models[i]});
	for (uint32_t i = 0; i < WORLD_PROFILES; i++)
		tell_name(teller, TAKT_SPACE_PROFILE, i + 1, world->models[1].profiles[i].name);
}

static void tell_words(struct planner_world *world, const struct teller *teller)
{
	tell_models(world, teller);
	tell_name(teller, TAKT_SPACE_LABEL, LABEL_FAST, "disk=fast");
	tell_name(teller, TAKT_SPACE_LABEL, LABEL_SPOT, "spot");
	tell_name(teller, TAKT_SPACE_LEVEL, 1, "zone");
	tell_name(teller, TAKT_SPACE_LEVEL, 2, "rack");
	world->selectors[0] =
		(struct takt_sched_selector){.id = 1, .all_count = 1, .all = {LABEL_FAST}};
	world->selectors[1] = (struct takt_sched_selector){
		.id = 2, .tolerate_count = 1, .tolerate = {LABEL_SPOT}};
	for (uint32_t i = 0; i < WORLD_SELECTORS; i++)
		tell(teller, (struct takt_sched_event){.kind = TAKT_SCHED_SELECTOR,
						       .selector = &world->selectors[i]});
}

/* A department with two teams, and a borrower. */
static void tell_tenants(struct planner_world *world, const struct teller *teller)
{
	static const struct takt_tenant tenants[WORLD_TENANTS] = {
		{.id = 1,
		 .weight = 2,
		 .quota_milli = 12000,
		 .limit_milli = 14000,
		 .may_borrow = true},
		{.id = 2, .parent = 1, .weight = 1, .quota_milli = 6000},
		{.id = 3, .parent = 1, .weight = 1, .quota_milli = 4000, .may_borrow = true},
		{.id = 4, .weight = 1, .quota_milli = 4000, .may_borrow = true},
	};

	memcpy(world->tenants, tenants, sizeof(tenants));
	for (uint32_t i = 0; i < WORLD_TENANTS; i++)
		tell(teller, (struct takt_sched_event){.kind = TAKT_SCHED_TENANT,
						       .tenant = &world->tenants[i]});
}

/* Nodes. */

static void wire(struct planner_world *world, uint32_t gpus)
{
	for (uint32_t i = 0; i < gpus; i++)
		for (uint32_t j = 0; j < gpus; j++)
			world->pair_score[i * gpus + j] =
				i == j ? 0
				: i / (gpus / 2) == j / (gpus / 2)
					? takt_link_score(TAKT_LINK_PIX, 0)
					: takt_link_score(TAKT_LINK_SYS, 0);
}

static void add_node(struct planner_world *world, const struct teller *teller, uint32_t n)
{
	struct world_node *at = &world->nodes[n];
	uint32_t gpus = 2u << below(world, 3);
	bool a100 = one_in(world, 2);

	*at = (struct world_node){.present = true};
	at->node = (struct takt_sched_node){
		.id = NODE_ID + 3 * n,
		.gpu_count = gpus,
		.pair_score = world->pair_score,
		.cpu_milli = 8000 + 8000 * (int32_t)below(world, 3),
		.mem_mib = 65536,
		.dev_mem_mib = a100 ? A100_MIB : T4_MIB,
		.model = a100 ? MODEL_A100 : MODEL_T4,
		.mig_mask = a100 ? 0xfcu & ((1u << gpus) - 1) : 0,
		.domain = {1 + n / 4, 1 + n / 2 % 2},
		.labels = at->labels,
		.taints = at->labels + 1,
		.label_count = (uint32_t)below(world, 2),
		.taint_count = one_in(world, 5) ? 1 : 0,
	};
	at->labels[0] = LABEL_FAST;
	at->labels[1] = LABEL_SPOT;
	wire(world, gpus);
	tell(teller, (struct takt_sched_event){.kind = TAKT_SCHED_NODE_ADD, .node = at->node});
	at->node.pair_score = NULL;
}

void world_init(struct planner_world *world, uint64_t seed, bool clean_at_end, world_tell *fn,
		void *ctx)
{
	struct teller teller = {fn, ctx};

	memset(world, 0, sizeof(*world));
	takt_rng_init(&world->rng, seed);
	world->now_ns = WORLD_SECOND;
	world->next_id = world->next_window = 1;
	world->clean_at_end = clean_at_end;
	tell_words(world, &teller);
	tell_tenants(world, &teller);
	for (uint32_t n = 0; n < 3 + below(world, WORLD_NODES - 2); n++)
		add_node(world, &teller, n);
}

/* Jobs: what a task asks. */

static void ask_memory_share(struct planner_world *world, struct takt_sched_job *job)
{
	job->gpus = 1;
	job->task.dev_mem_mib = 1024 * (uint32_t)(1 + below(world, 14));
}

static void ask_fraction(struct planner_world *world, struct takt_sched_job *job)
{
	job->gpus = 1;
	job->task.milli = (uint16_t)(50 * (1 + below(world, 19)));
	if (one_in(world, 3))
		job->task.dev_mem_mib = 1024 * (uint32_t)(1 + below(world, 8));
}

static void ask_whole(struct planner_world *world, struct takt_sched_job *job)
{
	job->gpus = (uint32_t)(1 + below(world, 4));
	if (job->gpus > 1 && one_in(world, 3))
		job->task.flags = TAKT_REQUEST_ONE_NUMA;
	if (one_in(world, 6))
		job->task.dev_mem_mib = 20000;
	if (job->task.dev_mem_mib)
		job->task.milli = 1000;
}

static void ask_task(struct planner_world *world, struct takt_sched_job *job)
{
	switch (below(world, 8)) {
	case 0:
		ask_memory_share(world, job);
		break;
	case 1:
	case 2:
		ask_fraction(world, job);
		break;
	case 3:
		job->gpus = 1;
		job->task.mig_profile = (uint8_t)(1 + below(world, WORLD_PROFILES));
		break;
	case 4:
		job->task.cpu_milli = 1000 * (int32_t)(1 + below(world, 6));
		break;
	default:
		ask_whole(world, job);
	}
	if (one_in(world, 2))
		job->task.cpu_milli = 500 * (int32_t)(1 + below(world, 10));
	if (one_in(world, 3))
		job->task.mem_mib = 4096 * (int64_t)(1 + below(world, 8));
	if (job->gpus && one_in(world, 8))
		job->task.model_mask = UINT64_C(1) << (1 + below(world, 2));
	if (one_in(world, 6))
		job->task.selector = (uint32_t)(1 + below(world, WORLD_SELECTORS));
	if (one_in(world, 8))
		job->task.max_per_node = (uint32_t)(1 + below(world, 3));
}

static void ask_gang(struct planner_world *world, struct takt_sched_job *job)
{
	job->tasks = (uint32_t)(2 + below(world, WORLD_TASKS - 1));
	if (one_in(world, 2))
		job->min_tasks = (uint32_t)(1 + below(world, job->tasks));
	if (one_in(world, 2)) {
		job->topology = (enum takt_topology_want)(1 + below(world, 2));
		job->level = (uint32_t)below(world, 3);
	}
}

/* When, with whom, after what. */
static void ask_conditions(struct planner_world *world, struct world_job *at)
{
	struct takt_sched_job *job = &at->job;

	if (one_in(world, 10))
		job->earliest_start_ns = world->now_ns + WORLD_SECOND * below(world, 60);
	if (one_in(world, 8)) {
		job->array = 1 + below(world, 2);
		job->array_limit = (uint32_t)job->array;
	}
	if (one_in(world, 4))
		job->group = (uint32_t)(1 + below(world, 2));
	if (one_in(world, 8)) {
		job->near_group = (uint32_t)(1 + below(world, 2));
		job->near_level = (uint32_t)below(world, 3);
	}
	if (one_in(world, 8)) {
		job->apart_group = (uint32_t)(1 + below(world, 2));
		job->apart_level = (uint32_t)below(world, 3);
	}
	if (one_in(world, 10) && world->next_id > 2) {
		at->after = (struct takt_sched_after){
			.job_id = 1 + below(world, world->next_id - 1), .any = one_in(world, 2)};
		if (world_find(world, at->after.job_id) && at->after.job_id != job->id) {
			job->after = &at->after;
			job->after_count = 1;
		}
	}
}

static void add_job(struct planner_world *world, const struct teller *teller)
{
	struct world_job *at = world->jobs;
	struct takt_sched_job *job;

	while (at < world->jobs + WORLD_JOBS && at->phase != WORLD_ABSENT)
		at++;
	if (at == world->jobs + WORLD_JOBS)
		return;
	*at = (struct world_job){.since_ns = world->now_ns};
	job = &at->job;
	job->id = job->submit_seq = world->next_id++;
	job->submit_ns = world->now_ns;
	job->priority = (int32_t)below(world, 4);
	job->flags = (one_in(world, 2) ? TAKT_JOB_PREEMPTIBLE : 0) |
		     (one_in(world, 20) ? TAKT_JOB_HELD : 0);
	job->tenant = (uint32_t)below(world, WORLD_TENANTS + 1);
	job->estimate_ns = one_in(world, 4) ? 0 : WORLD_SECOND * (10 + below(world, 200));
	job->deadline_ns = one_in(world, 3) ? world->now_ns + WORLD_SECOND * below(world, 500) : 0;
	job->min_runtime_ns = one_in(world, 4) ? 30ull * WORLD_SECOND : 0;
	ask_task(world, job);
	if (one_in(world, 3))
		ask_gang(world, job);
	ask_conditions(world, at);
	tell(teller, (struct takt_sched_event){
			     .kind = TAKT_SCHED_JOB_ADD, .job = *job, .at_ns = world->now_ns});
	at->phase = WORLD_WAITS;
}

/* Jobs: what becomes of them. */

static bool is_held_gpu(const struct planner_world *world, uint32_t node_id, uint64_t bit)
{
	for (uint32_t i = 0; i < WORLD_JOBS; i++)
		for (uint32_t t = 0; world->jobs[i].phase == WORLD_RUNS && t < world->jobs[i].count;
		     t++)
			if (world->jobs[i].slots[t].node_id == node_id &&
			    world->jobs[i].slots[t].gpu_mask & bit)
				return true;
	return false;
}

/* GPUs that nobody holds any more drain. */
static void let_go(struct planner_world *world, struct world_job *at)
{
	uint32_t count = at->count;

	at->count = 0;
	for (uint32_t t = 0; t < count && !world->clean_at_end; t++) {
		const struct takt_sched_slot *slot = &at->slots[t];

		for (uint64_t left = slot->gpu_mask; left; left &= left - 1)
			if (!is_held_gpu(world, slot->node_id, left & -left))
				world->nodes[(slot->node_id - NODE_ID) / 3].draining |=
					left & -left;
	}
}

static struct world_job *some_job(struct planner_world *world, enum world_phase phase)
{
	uint64_t first = below(world, WORLD_JOBS);

	for (uint64_t i = 0; i < WORLD_JOBS; i++) {
		struct world_job *at = &world->jobs[(first + i) % WORLD_JOBS];

		if (at->phase == phase)
			return at;
	}
	return NULL;
}

static void settle_after(struct planner_world *world, uint64_t id, bool failed)
{
	for (uint32_t i = 0; i < WORLD_JOBS; i++) {
		struct world_job *at = &world->jobs[i];

		if (at->phase != WORLD_WAITS || at->job.after_count == 0 || at->after.job_id != id)
			continue;
		if (at->after.any || !failed)
			at->job.after_count = 0;
		else
			at->after.failed = true;
	}
}

static void end_job(struct planner_world *world, const struct teller *teller)
{
	struct world_job *at = some_job(world, one_in(world, 8) ? WORLD_WAITS : WORLD_RUNS);
	bool failed = one_in(world, 4);

	if (!at)
		return;
	tell(teller, (struct takt_sched_event){.kind = TAKT_SCHED_JOB_ENDED,
					       .job_id = at->job.id,
					       .failed = failed,
					       .at_ns = world->now_ns});
	at->phase = WORLD_ABSENT;
	let_go(world, at);
	settle_after(world, at->job.id, failed);
}

static void requeue(struct planner_world *world, struct world_job *at, const struct teller *teller)
{
	tell(teller, (struct takt_sched_event){.kind = TAKT_SCHED_JOB_REQUEUED,
					       .job_id = at->job.id,
					       .at_ns = world->now_ns});
	at->phase = WORLD_WAITS;
	let_go(world, at);
	at->since_ns = world->now_ns;
}

static void change_job(struct planner_world *world, const struct teller *teller)
{
	struct world_job *at = some_job(world, WORLD_WAITS);

	if (!at)
		return;
	at->job.priority = (int32_t)below(world, 4);
	at->job.flags ^= one_in(world, 2) ? TAKT_JOB_HELD : 0;
	tell(teller, (struct takt_sched_event){.kind = TAKT_SCHED_JOB_CHANGE, .job = at->job});
}

static void correct_estimate(struct planner_world *world, const struct teller *teller)
{
	struct world_job *at = some_job(world, one_in(world, 2) ? WORLD_WAITS : WORLD_RUNS);

	if (!at)
		return;
	at->job.estimate_ns = WORLD_SECOND * below(world, 200);
	tell(teller, (struct takt_sched_event){.kind = TAKT_SCHED_JOB_ESTIMATE,
					       .job_id = at->job.id,
					       .estimate_ns = at->job.estimate_ns});
}

/* Machines and windows. */

static struct world_node *some_node(struct planner_world *world)
{
	struct world_node *at = &world->nodes[below(world, WORLD_NODES)];

	return at->present ? at : NULL;
}

static void change_health(struct planner_world *world, const struct teller *teller)
{
	struct world_node *at = some_node(world);
	uint32_t gpu = (uint32_t)below(world, WORLD_GPUS);
	bool sick;

	if (!at || gpu >= at->node.gpu_count)
		return;
	sick = !(at->sick >> gpu & 1) && one_in(world, 2);
	at->sick = (at->sick & ~(UINT64_C(1) << gpu)) | (uint64_t)sick << gpu;
	tell(teller,
	     (struct takt_sched_event){.kind = TAKT_SCHED_GPU_HEALTH,
				       .node_id = at->node.id,
				       .gpu = gpu,
				       .state = sick ? TAKT_GPU_QUARANTINED : TAKT_GPU_FREE});
}

static void cordon(struct planner_world *world, const struct teller *teller)
{
	struct world_node *at = some_node(world);

	if (!at)
		return;
	at->cordoned = !at->cordoned && one_in(world, 2);
	tell(teller, (struct takt_sched_event){.kind = TAKT_SCHED_NODE_CORDON,
					       .node_id = at->node.id,
					       .outside = at->cordoned});
}

static void change_window(struct planner_world *world, const struct teller *teller)
{
	struct world_window *at = &world->windows[below(world, WORLD_WINDOWS)];
	struct takt_sched_window *window = &at->window;

	if (window->id) {
		tell(teller, (struct takt_sched_event){.kind = TAKT_SCHED_WINDOW_REMOVE,
						       .window_id = window->id});
		window->id = 0;
		return;
	}
	*window = (struct takt_sched_window){
		.id = world->next_window++,
		.start_ns = world->now_ns + WORLD_SECOND * below(world, 100),
		.tenant = one_in(world, 4) ? 4 : 0,
		.nodes = at->nodes,
		.node_count = (uint32_t)(1 + below(world, 2)),
	};
	window->end_ns = window->start_ns + WORLD_SECOND * (1 + below(world, 200));
	at->nodes[0] = NODE_ID + 3 * (uint32_t)below(world, 3);
	at->nodes[1] = at->nodes[0] == NODE_ID ? NODE_ID + 3 : NODE_ID;
	tell(teller, (struct takt_sched_event){.kind = TAKT_SCHED_WINDOW_ADD, .window = window});
}

static void clean(struct planner_world *world, const struct teller *teller)
{
	for (uint32_t n = 0; n < WORLD_NODES; n++) {
		struct world_node *at = &world->nodes[n];

		for (uint64_t left = at->draining; left; left &= left - 1) {
			if (one_in(world, 3))
				continue;
			tell(teller,
			     (struct takt_sched_event){.kind = TAKT_SCHED_GPU_DRAINED,
						       .node_id = at->node.id,
						       .gpu = (uint32_t)__builtin_ctzll(left)});
			at->draining &= ~(left & -left);
		}
	}
}

void world_step(struct planner_world *world, world_tell *fn, void *ctx)
{
	struct teller teller = {fn, ctx};

	world->now_ns += WORLD_SECOND * below(world, 20);
	clean(world, &teller);
	switch (below(world, 16)) {
	case 0:
	case 1:
	case 2:
	case 3:
		end_job(world, &teller);
		break;
	case 4:
		change_job(world, &teller);
		break;
	case 5:
		correct_estimate(world, &teller);
		break;
	case 6:
		change_health(world, &teller);
		break;
	case 7:
		cordon(world, &teller);
		break;
	case 8:
		change_window(world, &teller);
		break;
	default:
		add_job(world, &teller);
	}
}

void world_take_plan(struct planner_world *world, const struct takt_plan *plan, bool some,
		     world_tell *fn, void *ctx)
{
	struct teller teller = {fn, ctx};

	for (size_t i = 0; i < plan->placement_count; i += plan->placements[i].tasks) {
		const struct takt_plan_placement *first = &plan->placements[i];
		struct world_job *at = world_find(world, first->job_id);

		if (some && one_in(world, 4))
			continue;
		for (uint32_t t = 0; t < first->tasks; t++)
			at->slots[t] = (struct takt_sched_slot){
				.node_id = first[t].node_id,
				.milli = (uint16_t)(first[t].milli == 1000 ? 0 : first[t].milli),
				.mig_start = (uint8_t)first[t].mig_start,
				.gpu_mask = first[t].gpu_mask,
			};
		at->count = first->tasks;
		tell(&teller, (struct takt_sched_event){.kind = TAKT_SCHED_JOB_PLACED,
							.job_id = at->job.id,
							.slots = at->slots,
							.slot_count = at->count,
							.at_ns = world->now_ns});
		at->phase = WORLD_RUNS;
		at->since_ns = world->now_ns;
	}
	for (size_t i = 0; i < plan->eviction_count; i++)
		requeue(world, world_find(world, plan->evictions[i].job_id), &teller);
}
