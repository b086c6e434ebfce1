/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What holds after any sequence of events, judged by the naive model: which events are valid, that
 * nothing is over-committed, that order is kept, that reasons and counts are right, and that the
 * plan depends on nothing but the state.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/vec.h"
#include "sched_model.h"

enum {
	TEXT_MAX = 1000000,
	SEEDS = 30,
	STEPS = 500,
};

static uint32_t count(uint64_t mask)
{
	return (uint32_t)__builtin_popcountll(mask);
}

static bool ranks_before(const struct takt_sched_job *a, const struct takt_sched_job *b)
{
	return a->priority != b->priority ? a->priority > b->priority
					  : a->submit_seq < b->submit_seq;
}

/* Everything that plan-time facts are judged by. */
struct judged {
	const struct model *model;
	const struct takt_plan *plan;
	uint64_t taken[MODEL_NODES]; /* by placements */
	const struct takt_plan_placement *placement[MODEL_JOBS + 1];
	const struct takt_plan_wait *wait[MODEL_JOBS + 1];
};

static const struct takt_sched_job *spec(const struct judged *judged, uint64_t id)
{
	return &judged->model->jobs[id].job;
}

/* What a placement is worth among nodes, as the header words it. */
struct worth {
	uint32_t shared;
	int64_t sum;
	uint32_t left;
};

static bool worth_more(struct worth a, struct worth b)
{
	if (a.shared != b.shared)
		return a.shared < b.shared;
	return a.sum != b.sum ? a.sum > b.sum : a.left < b.left;
}

static struct worth worth_of(const struct model_node *node, uint64_t free_mask, uint64_t mask)
{
	struct worth worth = {.shared = count(mask & node->outside),
			      .left = count(free_mask & ~mask)};

	for (uint32_t i = 0; i < node->machine->gpu_count; i++)
		for (uint32_t j = 0; j < i; j++)
			if (mask >> i & mask >> j & 1)
				worth.sum +=
					node->machine->pair_score[i * node->machine->gpu_count + j];
	return worth;
}

/* No set on any node is worth more than the placement; on lower ids none is worth as much. The
 * node of 16 GPUs has too many sets to list each time. */
static void check_choice(const struct judged *judged, const struct takt_plan_placement *p)
{
	const struct takt_sched_job *job = spec(judged, p->job_id);
	uint64_t own_free =
		model_free(judged->model, p->node_id, job->flags) & ~judged->taken[p->node_id];
	struct worth own = worth_of(&judged->model->nodes[p->node_id], own_free, p->gpu_mask);

	assert_int_equal(own.sum, p->pair_score_sum);
	for (uint32_t n = 0; n < MODEL_NODES && job->gpus > 0; n++) {
		const struct model_node *node = &judged->model->nodes[n];
		uint64_t free_mask = model_free(judged->model, n, job->flags) & ~judged->taken[n];

		if (!node->present || node->machine->gpu_count > 8)
			continue;
		for (uint64_t mask = free_mask; mask; mask = (mask - 1) & free_mask) {
			struct worth other;

			if (count(mask) != job->gpus)
				continue;
			other = worth_of(node, free_mask, mask);
			assert_false(worth_more(other, own));
			assert_false(n < p->node_id && !worth_more(own, other));
		}
	}
}

/* A job that shares takes no GPU with outside use while a clean one is left there. */
static void check_sharing(const struct judged *judged, const struct takt_plan_placement *p)
{
	const struct model_node *node = &judged->model->nodes[p->node_id];
	uint64_t clean = model_free(judged->model, p->node_id, 0) & ~judged->taken[p->node_id];

	if (p->gpu_mask & node->outside)
		assert_int_equal(clean & ~p->gpu_mask, 0);
}

static void check_placement(struct judged *judged, const struct takt_plan_placement *p)
{
	const struct model_job *job = &judged->model->jobs[p->job_id];
	uint64_t allowed = model_free(judged->model, p->node_id, job->job.flags);

	assert_int_equal(job->phase, MODEL_WAITING);
	assert_false(job->job.flags & TAKT_JOB_HELD);
	assert_true(judged->model->nodes[p->node_id].present);
	assert_int_equal(count(p->gpu_mask), job->job.gpus);
	assert_int_equal(p->gpu_mask & ~(allowed & ~judged->taken[p->node_id]), 0);
	assert_null(judged->placement[p->job_id]);
	check_choice(judged, p);
	judged->taken[p->node_id] |= p->gpu_mask;
	judged->placement[p->job_id] = p;
}

/* Each waiting job once, in queue order, both lists. */
static void check_lists(struct judged *judged)
{
	const struct takt_plan *plan = judged->plan;
	size_t waiting = 0;

	for (size_t i = 0; i < plan->placement_count; i++) {
		check_placement(judged, &plan->placements[i]);
		if (i > 0)
			assert_true(ranks_before(spec(judged, plan->placements[i - 1].job_id),
						 spec(judged, plan->placements[i].job_id)));
	}
	for (size_t i = 0; i < plan->wait_count; i++) {
		const struct takt_plan_wait *wait = &plan->waits[i];

		assert_null(judged->placement[wait->job_id]);
		assert_null(judged->wait[wait->job_id]);
		judged->wait[wait->job_id] = wait;
		if (i > 0)
			assert_true(ranks_before(spec(judged, plan->waits[i - 1].job_id),
						 spec(judged, wait->job_id)));
	}
	for (uint32_t id = 1; id <= MODEL_JOBS; id++)
		waiting += judged->model->jobs[id].phase == MODEL_WAITING;
	assert_int_equal(plan->placement_count + plan->wait_count, waiting);
}

static bool waits_for_gpus(const struct takt_plan_wait *wait)
{
	return wait->why == TAKT_WHY_GPUS || wait->why == TAKT_WHY_ORDER;
}

/* The first job that waits for GPUs; NULL if none does. */
static const struct takt_plan_wait *head_of(const struct takt_plan *plan)
{
	for (size_t i = 0; i < plan->wait_count; i++)
		if (waits_for_gpus(&plan->waits[i]))
			return &plan->waits[i];
	return NULL;
}

static void check_no_overtaking(const struct judged *judged)
{
	const struct takt_plan_wait *head = head_of(judged->plan);

	if (!head)
		return;
	assert_int_equal(head->why, TAKT_WHY_GPUS);
	for (size_t i = 0; i < judged->plan->placement_count; i++) {
		const struct takt_sched_job *job = spec(judged, judged->plan->placements[i].job_id);

		assert_true(job->gpus == 0 || ranks_before(job, spec(judged, head->job_id)));
	}
}

static bool fits_now(const struct judged *judged, const struct takt_sched_job *job)
{
	for (uint32_t node = 0; node < MODEL_NODES; node++)
		if (judged->model->nodes[node].present &&
		    count(model_free(judged->model, node, job->flags) & ~judged->taken[node]) >=
			    job->gpus)
			return true;
	return false;
}

static void check_reason(const struct judged *judged, const struct takt_plan_wait *wait)
{
	const struct takt_sched_job *job = spec(judged, wait->job_id);
	enum takt_why ungoverned = model_ungoverned(judged->model, job);

	if (job->flags & TAKT_JOB_HELD)
		assert_int_equal(wait->why, TAKT_WHY_HELD);
	else if (ungoverned != TAKT_WHY_NONE)
		assert_int_equal(wait->why, ungoverned);
	else
		assert_int_equal(wait->why, fits_now(judged, job) ? TAKT_WHY_ORDER : TAKT_WHY_GPUS);
}

/* Whether the counts are those of this node, class by class as the header defines them. */
static bool counts_are_of(const struct judged *judged, uint32_t n,
			  const struct takt_plan_wait *wait)
{
	const struct model_node *node = &judged->model->nodes[n];
	uint64_t eligible, unhealthy, held, draining;

	if (!node->present)
		return false;
	eligible = model_eligible(judged->model, n, spec(judged, wait->job_id)->flags);
	unhealthy = node->quarantined | node->lost;
	held = model_held(judged->model, n);
	draining = node->draining & ~held;
	return wait->total == node->machine->gpu_count && wait->unhealthy == count(unhealthy) &&
	       wait->outside == node->machine->gpu_count - count(eligible) - count(unhealthy) &&
	       wait->running == count(eligible & held) &&
	       wait->draining == count(eligible & draining) &&
	       wait->free + wait->kept + wait->promised == count(eligible & ~held & ~draining) &&
	       wait->promised >= count(eligible & judged->taken[n]);
}

static void check_node_of_counts(const struct judged *judged, const struct takt_plan_wait *wait)
{
	bool any_node = false;
	bool matches = false;

	for (uint32_t n = 0; n < MODEL_NODES; n++) {
		any_node |= judged->model->nodes[n].present;
		matches |= counts_are_of(judged, n, wait);
	}
	assert_true(matches || (!any_node && wait->total == 0));
}

/* The first that waits is told of the node where the fewest GPUs are missing. */
static void check_nearest(const struct judged *judged, const struct takt_plan_wait *head)
{
	const struct takt_sched_job *job = spec(judged, head->job_id);

	for (uint32_t n = 0; n < MODEL_NODES; n++)
		if (count(model_eligible(judged->model, n, job->flags)) >= job->gpus)
			assert_true(count(model_free(judged->model, n, job->flags) &
					  ~judged->taken[n]) <= head->free);
}

static void check_counts(const struct judged *judged, const struct takt_plan_wait *wait)
{
	const struct takt_plan_wait *head = head_of(judged->plan);
	bool first = wait == head;

	check_node_of_counts(judged, wait);
	if (first)
		check_nearest(judged, wait);
	assert_int_equal(wait->need, spec(judged, wait->job_id)->gpus);
	assert_int_equal(wait->total, wait->unhealthy + wait->outside + wait->running +
					      wait->draining + wait->promised + wait->kept +
					      wait->free);
	if (wait->why == TAKT_WHY_GPUS) {
		assert_int_equal(wait->free + wait->must_end, wait->need);
		assert_true(wait->must_end > 0);
		/* There is enough that can come free. */
		assert_true(wait->running + wait->draining + wait->promised >= wait->must_end);
	} else {
		assert_int_equal(wait->must_end, 0);
	}
	if (waits_for_gpus(wait) && !first)
		assert_int_equal(wait->behind_job, head->job_id);
	else
		assert_int_equal(wait->behind_job, 0);
	if (wait->why == TAKT_WHY_ORDER)
		assert_true(wait->free + wait->promised >= wait->need);
	if (wait->why == TAKT_WHY_IMPOSSIBLE)
		assert_true(wait->total < wait->need || wait->total == 0);
	if (wait->why == TAKT_WHY_UNHEALTHY)
		assert_true(wait->total >= wait->need &&
			    wait->total - wait->unhealthy < wait->need);
	if (wait->why == TAKT_WHY_OUTSIDE)
		assert_true(wait->total - wait->unhealthy >= wait->need &&
			    wait->total - wait->unhealthy - wait->outside < wait->need);
}

static void check_plan(const struct model *model, const struct takt_plan *plan)
{
	struct judged judged = {.model = model, .plan = plan};

	check_lists(&judged);
	check_no_overtaking(&judged);
	for (size_t i = 0; i < plan->placement_count; i++)
		check_sharing(&judged, &plan->placements[i]);
	for (size_t i = 0; i < plan->wait_count; i++) {
		check_reason(&judged, &plan->waits[i]);
		check_counts(&judged, &plan->waits[i]);
	}
}

/* The state of each GPU as the real scheduler tells it. */
static void check_gpus(const struct takt_sched *sched, const struct model *model)
{
	for (uint32_t node = 0; node < MODEL_NODES; node++) {
		const struct model_node *at = &model->nodes[node];
		uint32_t n = at->present ? at->machine->gpu_count : 0;

		assert_int_equal(takt_sched_gpu(sched, node, n, NULL, NULL, NULL), -ENOENT);
		for (uint32_t gpu = 0; gpu < n; gpu++) {
			enum takt_gpu_state state;
			bool outside;
			uint64_t holder;

			assert_int_equal(
				takt_sched_gpu(sched, node, gpu, &state, &outside, &holder), 0);
			assert_int_equal(outside, at->outside >> gpu & 1);
			assert_int_equal(state == TAKT_GPU_LOST, at->lost >> gpu & 1);
			assert_int_equal(state == TAKT_GPU_QUARANTINED, at->quarantined >> gpu & 1);
			if (model_held(model, node) >> gpu & 1)
				assert_true(model->jobs[holder].mask >> gpu & 1);
			else if (state == TAKT_GPU_DRAINING)
				assert_true(at->draining >> gpu & 1);
			else if (state == TAKT_GPU_FREE)
				assert_int_equal(at->draining >> gpu & 1, 0);
		}
	}
}

struct log {
	TAKT_VEC(struct takt_sched_event) events;
};

static int keep(void *ctx, const struct takt_sched_event *event)
{
	struct log *log = ctx;

	return takt_vec_push(&log->events, *event);
}

/* The snapshot, with nodes, facts about GPUs, and jobs each told in another order. */
static struct takt_sched *rebuild_shuffled(const struct takt_sched *sched, struct takt_rng *rng)
{
	static const enum takt_sched_event_kind order[] = {
		TAKT_SCHED_NODE_ADD,	TAKT_SCHED_GPU_OUTSIDE,	 TAKT_SCHED_GPU_DRAINING,
		TAKT_SCHED_GPU_HEALTH,	TAKT_SCHED_JOB_ADD,	 TAKT_SCHED_JOB_PLACED,
		TAKT_SCHED_JOB_RUNNING, TAKT_SCHED_JOB_DRAINING, TAKT_SCHED_NODE_REMOVE,
	};
	struct log log = {.events = TAKT_VEC_INIT(10000)};
	struct takt_sched *rebuilt = kit_new();
	size_t fed = 0;

	assert_int_equal(takt_sched_snapshot(sched, keep, &log), 0);
	takt_rng_shuffle(rng, log.events.at, log.events.len, sizeof(*log.events.at));
	for (size_t k = 0; k < TAKT_ARRAY_LEN(order); k++) {
		TAKT_VEC_EACH (event, &log.events) {
			if (event->kind != order[k])
				continue;
			kit_take(rebuilt, *event);
			fed++;
		}
	}
	assert_int_equal(fed, log.events.len);
	takt_vec_fini(&log.events);
	return rebuilt;
}

static void expect_same_plan(struct takt_sched *sched, const struct takt_str *text)
{
	struct takt_plan plan = kit_plan(sched);
	struct takt_str other = TAKT_STR(TEXT_MAX);

	kit_plan_text(&plan, &other);
	assert_string_equal(takt_str_text(&other), takt_str_text(text));
	takt_str_fini(&other);
	takt_plan_fini(&plan);
}

static void check_rebuilt(struct takt_sched *sched, const struct model *model,
			  const struct takt_plan *plan, struct takt_rng *rng)
{
	struct takt_str text = TAKT_STR(TEXT_MAX);
	struct takt_str before = TAKT_STR(TEXT_MAX);
	struct takt_str after = TAKT_STR(TEXT_MAX);
	struct takt_sched *rebuilt;

	kit_plan_text(plan, &text);
	expect_same_plan(sched, &text); /* planning changed nothing */
	rebuilt = kit_rebuild(sched);
	check_gpus(rebuilt, model);
	expect_same_plan(rebuilt, &text);
	kit_state_text(sched, &before);
	kit_state_text(rebuilt, &after);
	assert_string_equal(takt_str_text(&before), takt_str_text(&after));
	takt_sched_free(rebuilt);
	rebuilt = rebuild_shuffled(sched, rng);
	expect_same_plan(rebuilt, &text);
	takt_sched_free(rebuilt);
	takt_str_fini(&text);
	takt_str_fini(&before);
	takt_str_fini(&after);
}

static void take_random_event(struct takt_sched *sched, struct model *model, struct takt_rng *rng)
{
	struct takt_sched_event event = model_random_event(model, rng);

	if (model_valid(model, &event)) {
		kit_take(sched, event);
		model_apply(model, &event);
	} else {
		kit_refuse(sched, event, -EINVAL);
	}
}

/* An engine takes some of what was planned. */
static void take_placements(struct takt_sched *sched, struct model *model,
			    const struct takt_plan *plan, struct takt_rng *rng)
{
	for (size_t i = 0; i < plan->placement_count; i++) {
		const struct takt_plan_placement *p = &plan->placements[i];
		struct takt_sched_event event = kit_placed(p->job_id, p->node_id, p->gpu_mask);

		if (takt_rng_below(rng, 3) > 0)
			continue;
		assert_true(model_valid(model, &event));
		kit_take(sched, event);
		model_apply(model, &event);
	}
}

static void run_seed(uint64_t seed)
{
	struct takt_sched *sched = kit_new();
	struct model model = {0};
	struct takt_rng rng;

	takt_rng_init(&rng, seed);
	for (int step = 0; step < STEPS; step++) {
		struct takt_plan plan;

		take_random_event(sched, &model, &rng);
		plan = kit_plan(sched);
		check_plan(&model, &plan);
		if (step % 10 == 0) {
			check_gpus(sched, &model);
			check_rebuilt(sched, &model, &plan, &rng);
		}
		take_placements(sched, &model, &plan, &rng);
		takt_plan_fini(&plan);
	}
	takt_sched_free(sched);
}

static void test_random_events(void **state)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		run_seed(seed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_events),
	};

	return cmocka_run_group_tests_name("property", tests, NULL, NULL);
}
