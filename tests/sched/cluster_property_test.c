/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What holds of every plan for a cluster, whatever has happened: nothing is over-committed, no gang
 * is partial, nothing new is on what is out of service, limits and required topology hold, nobody
 * is pushed out without somebody who starts; and a plan depends on nothing but the state, so that a
 * scheduler rebuilt from its snapshot plans the same.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "cluster_story.h"
#include "codec/snapshot.h"
#include "sched/order.h"
#include "sched/place.h"

enum {
	STEPS = 250,
	SEEDS = 12,
	TEXT_MAX = 4 << 20,
};

struct use {
	int64_t cpu[STORY_NODES + 1], mem[STORY_NODES + 1];
	uint32_t milli[STORY_NODES + 1][STORY_GPUS];
	uint64_t tenant[STORY_TENANTS + 1];
};

static void add_task(struct use *use, const struct takt_sched_job *job, uint32_t node,
		     uint64_t mask, uint32_t milli)
{
	use->cpu[node] += job->task.cpu_milli;
	use->mem[node] += job->task.mem_mib;
	for (uint32_t gpu = 0; gpu < STORY_GPUS; gpu++)
		if (mask >> gpu & 1)
			use->milli[node][gpu] += milli;
	use->tenant[job->tenant] += (uint64_t)job->gpus * milli;
	if (job->tenant > 2)
		use->tenant[1] += (uint64_t)job->gpus * milli;
}

static void check_use(const struct use *use)
{
	for (uint32_t node = 1; node <= STORY_NODES; node++) {
		assert_true(use->cpu[node] <= STORY_CPU);
		assert_true(use->mem[node] <= STORY_MEM);
		for (uint32_t gpu = 0; gpu < STORY_GPUS; gpu++)
			assert_true(use->milli[node][gpu] <= 1000);
	}
	assert_true(use->tenant[1] <= 40000);
	assert_true(use->tenant[3] <= 16000);
}

/* Nothing is started on a node or GPU that is kept for others, or that would not be over by then.
 */
static void check_window(const struct story *story, const struct takt_plan_placement *p)
{
	const struct takt_sched_job *job = &story->jobs[p->job_id].job;

	if (story->window.node != p->node_id || story->window.end_ns <= story->now_ns ||
	    (story->window.owner && story->window.owner == job->owner) ||
	    (story->window.gpu_mask && !(story->window.gpu_mask & p->gpu_mask)))
		return;
	assert_true(job->estimate_ns > 0);
	assert_true(story->now_ns < story->window.start_ns);
}

/* All that run and all that the plan starts fit together; every new place is in service. */
static void check_room(const struct story *story, const struct takt_plan *plan)
{
	struct use use = {0};

	for (uint32_t id = 1; id <= STORY_JOBS; id++)
		for (uint32_t i = 0; i < story->jobs[id].slot_count; i++)
			add_task(&use, &story->jobs[id].job, story->jobs[id].slots[i].node_id,
				 story->jobs[id].slots[i].gpu_mask, story->jobs[id].slots[i].milli);
	for (size_t i = 0; i < plan->placement_count; i++) {
		const struct takt_plan_placement *p = &plan->placements[i];

		add_task(&use, &story->jobs[p->job_id].job, p->node_id, p->gpu_mask, p->milli);
		assert_true(story->nodes[p->node_id].there);
		assert_false(story->nodes[p->node_id].cordoned);
		check_window(story, p);
		assert_int_equal(story->nodes[p->node_id].bad & p->gpu_mask, 0);
		assert_int_equal(__builtin_popcountll(p->gpu_mask),
				 story->jobs[p->job_id].job.gpus);
	}
	check_use(&use);
}

static void check_topology(const struct takt_sched_job *job, const struct takt_plan_placement *p)
{
	if (job->topology != TAKT_TOPOLOGY_REQUIRED)
		return;
	for (uint32_t i = 1; i < p->tasks; i++)
		assert_int_equal(story_domain(p[i].node_id, job->level),
				 story_domain(p[0].node_id, job->level));
}

static void check_gangs(const struct story *story, const struct takt_plan *plan)
{
	for (size_t i = 0; i < plan->placement_count; i += plan->placements[i].tasks) {
		const struct takt_plan_placement *p = &plan->placements[i];
		const struct takt_sched_job *job = &story->jobs[p->job_id].job;
		uint32_t most = job->tasks ? job->tasks : 1;

		assert_int_equal(story->jobs[p->job_id].state, STORY_WAITS);
		assert_true(p->tasks <= most);
		assert_true(p->tasks >= (job->min_tasks ? job->min_tasks : most));
		assert_true(i + p->tasks <= plan->placement_count);
		for (uint32_t task = 0; task < p->tasks; task++) {
			assert_int_equal(p[task].job_id, p->job_id);
			assert_int_equal(p[task].task, task);
		}
		check_topology(job, p);
		assert_true(job->earliest_start_ns <= story->now_ns);
	}
}

static bool is_next(const struct takt_plan *plan, uint64_t job_id)
{
	for (size_t i = 0; i < plan->reservation_count; i++)
		if (plan->reservations[i].job_id == job_id)
			return true;
	return false;
}

static void check_evictions(const struct story *story, const struct takt_plan *plan)
{
	for (size_t i = 0; i < plan->eviction_count; i++) {
		const struct takt_plan_eviction *e = &plan->evictions[i];
		const struct story_job *at = &story->jobs[e->job_id];

		assert_int_equal(at->state, STORY_PLACED);
		for (size_t j = 0; j < i; j++)
			assert_int_not_equal(plan->evictions[j].job_id, e->job_id);
		if (e->why == TAKT_EVICT_FAILURE || e->why == TAKT_EVICT_WINDOW)
			continue;
		assert_true(at->job.flags & TAKT_JOB_PREEMPTIBLE);
		assert_int_equal(story->jobs[e->for_job].state, STORY_WAITS);
		assert_true(is_next(plan, e->for_job));
	}
}

/* Every job that waits is placed or told why, once. */
static void check_waits(const struct story *story, const struct takt_plan *plan)
{
	uint32_t told[STORY_JOBS + 1] = {0};

	for (size_t i = 0; i < plan->placement_count; i += plan->placements[i].tasks)
		told[plan->placements[i].job_id]++;
	for (size_t i = 0; i < plan->wait_count; i++) {
		told[plan->waits[i].job_id]++;
		assert_int_not_equal(plan->waits[i].why, TAKT_WHY_NONE);
		assert_true(plan->waits[i].also >> plan->waits[i].why & 1);
	}
	for (uint32_t id = 1; id <= STORY_JOBS; id++)
		assert_int_equal(told[id], story->jobs[id].state == STORY_WAITS);
}

/* The plan as JSON without its version. */
static void plan_text(struct takt_sched *sched, uint64_t now_ns, struct takt_plan *plan,
		      struct takt_str *text)
{
	assert_int_equal(takt_sched_run(sched, now_ns, 0, plan, NULL), 0);
	plan->version = 0;
	assert_int_equal(takt_plan_to_json(plan, text, NULL), 0);
}

static void check_rebuilt(struct takt_sched *sched, const struct takt_sched_config *config,
			  uint64_t now_ns)
{
	struct takt_str log = TAKT_STR(TEXT_MAX);
	struct takt_str again = TAKT_STR(TEXT_MAX);
	struct takt_str lived = TAKT_STR(TEXT_MAX);
	struct takt_str fresh = TAKT_STR(TEXT_MAX);
	struct takt_plan plan = {0};
	struct takt_sched *rebuilt;
	struct takt_err err = {0};

	assert_int_equal(takt_snapshot_to_json(sched, &log, NULL), 0);
	if (takt_snapshot_load(log.s, log.len, config, &rebuilt, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(takt_snapshot_to_json(rebuilt, &again, NULL), 0);
	assert_string_equal(log.s, again.s);
	plan_text(sched, now_ns, &plan, &lived);
	plan_text(rebuilt, now_ns, &plan, &fresh);
	assert_string_equal(lived.s, fresh.s);
	takt_plan_fini(&plan);
	takt_sched_free(rebuilt);
	takt_str_fini(&log);
	takt_str_fini(&again);
	takt_str_fini(&lived);
	takt_str_fini(&fresh);
}

/* A brief plan is the whole one, but for what it says of those who wait far behind. */
static void check_brief(struct takt_sched *sched, uint64_t now_ns)
{
	static const uint32_t most = 16;
	struct takt_str whole_text = TAKT_STR(TEXT_MAX);
	struct takt_str brief_text = TAKT_STR(TEXT_MAX);
	struct takt_plan whole = {0}, brief = {0};
	size_t waiting;

	assert_int_equal(takt_sched_run_briefly(sched, now_ns, most, &brief, NULL), 0);
	assert_int_equal(takt_sched_run(sched, now_ns, 0, &whole, NULL), 0);
	waiting = whole.wait_count;
	assert_false(whole.waits_cut);
	assert_int_equal(brief.waits_cut, waiting > most);
	assert_int_equal(brief.wait_count, waiting > most ? most : waiting);
	whole.wait_count = brief.wait_count;
	whole.fit_count = brief.fit_count;
	assert_int_equal(takt_plan_to_json(&whole, &whole_text, NULL), 0);
	assert_int_equal(takt_plan_to_json(&brief, &brief_text, NULL), 0);
	assert_string_equal(brief_text.s, whole_text.s);
	takt_plan_fini(&whole);
	takt_plan_fini(&brief);
	takt_str_fini(&whole_text);
	takt_str_fini(&brief_text);
}

/* What has happened at all: a history in which nothing does would prove nothing. */
struct seen {
	uint32_t gangs, elastic, shares, pushed_out, failed, moved, next, predicted;
};

static void note(struct seen *seen, const struct story *story, const struct takt_plan *plan)
{
	for (size_t i = 0; i < plan->placement_count; i += plan->placements[i].tasks) {
		const struct takt_plan_placement *p = &plan->placements[i];
		const struct takt_sched_job *job = &story->jobs[p->job_id].job;

		seen->gangs += p->tasks > 1;
		seen->elastic += job->tasks > 1 && p->tasks < job->tasks;
		seen->shares += p->milli < 1000;
	}
	for (size_t i = 0; i < plan->eviction_count; i++) {
		seen->pushed_out += plan->evictions[i].for_job != 0;
		seen->failed += plan->evictions[i].why == TAKT_EVICT_FAILURE;
	}
	seen->moved += plan->migration_count > 0;
	seen->next += plan->reservation_count > 0;
	for (size_t i = 0; i < plan->wait_count; i++)
		seen->predicted += plan->waits[i].how == TAKT_START_BEHIND;
}

static void live(const struct takt_sched_config *config, uint64_t seed, struct seen *seen)
{
	struct takt_sched *sched;
	struct takt_plan plan = {0};
	struct story story;

	assert_int_equal(takt_sched_new(config, &sched, NULL), 0);
	story_begin(&story, sched, seed);
	for (int step = 0; step < STEPS; step++) {
		story_step(&story, sched);
		if (step % 8 == 0)
			check_rebuilt(sched, config, story.now_ns);
		if (step % 8 == 4)
			check_brief(sched, story.now_ns);
		assert_int_equal(takt_sched_run(sched, story.now_ns, 0, &plan, NULL), 0);
		check_room(&story, &plan);
		check_gangs(&story, &plan);
		check_evictions(&story, &plan);
		check_waits(&story, &plan);
		note(seen, &story, &plan);
		story_obey(&story, sched, &plan);
	}
	takt_plan_fini(&plan);
	takt_sched_free(sched);
}

/* Every kind of order, backfill and placement, with and without preemption. */
static void test_any_history(void **state)
{
	static const char *const orders[] = {"priority",   "fifo",	  "las",
					     "fair_share", "round_robin", "qssf"};
	struct takt_order_config order_config = {0};
	struct seen seen = {0};

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct takt_sched_config config = {
			.order = takt_order_find(orders[seed % TAKT_ARRAY_LEN(orders)]),
			.order_config = &order_config,
			.placement = seed % 3 ? takt_placement_find("fgd") : NULL,
			.backfill = (enum takt_backfill)(seed % TAKT_BACKFILL_COUNT),
			.preempt = seed % 2,
			.migrate_most = seed % 3,
			.flap_count = 2,
			.flap_window_ns = 600000000000,
			.flap_rest_ns = 900000000000,
		};

		live(&config, seed, &seen);
	}
	assert_true(seen.gangs && seen.elastic && seen.shares && seen.pushed_out && seen.failed &&
		    seen.moved && seen.next && seen.predicted);
}

/* Loading a cluster and planning for it, with each allocation failing in turn: -ENOMEM, or done. */
static void test_every_allocation_may_fail(void **state)
{
	struct takt_sched_config config = {
		.backfill = TAKT_BACKFILL_EASY, .preempt = true, .migrate_most = 2};
	struct takt_str log = TAKT_STR(TEXT_MAX);
	struct takt_plan plan = {0};
	struct takt_sched *sched;
	struct story story;
	int rc = -ENOMEM;

	assert_int_equal(takt_sched_new(&config, &sched, NULL), 0);
	story_begin(&story, sched, 7);
	for (int step = 0; step < 120; step++) {
		story_step(&story, sched);
		assert_int_equal(takt_sched_run(sched, story.now_ns, 0, &plan, NULL), 0);
		story_obey(&story, sched, &plan);
	}
	assert_int_equal(takt_snapshot_to_json(sched, &log, NULL), 0);
	takt_sched_free(sched);
	for (unsigned long nth = 1; rc != 0; nth += 1 + nth / 50) {
		takt_alloc_fail_nth(nth, 0);
		rc = takt_snapshot_load(log.s, log.len, &config, &sched, NULL);
		takt_alloc_fail_nth(0, 0);
		assert_true(rc == 0 || rc == -ENOMEM);
	}
	rc = -ENOMEM;
	for (unsigned long nth = 1; rc != 0; nth++) {
		takt_alloc_fail_nth(nth, 0);
		rc = takt_sched_run(sched, story.now_ns, 0, &plan, NULL);
		takt_alloc_fail_nth(0, 0);
		assert_true(rc == 0 || (rc == -ENOMEM && plan.placement_count == 0));
	}
	takt_plan_fini(&plan);
	takt_sched_free(sched);
	takt_str_fini(&log);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_any_history),
		cmocka_unit_test(test_every_allocation_may_fail),
	};

	return cmocka_run_group_tests_name("cluster_property", tests, NULL, NULL);
}
