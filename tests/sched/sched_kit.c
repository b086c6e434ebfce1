/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers of the scheduler's tests; see the header. */
#include "sched_kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <inttypes.h>

#include <cmocka.h>

#include "base/compiler.h"

enum {
	TEXT_MAX = 16 * 1024 * 1024
};

const struct machine *kit_machine(const char *name)
{
	for (size_t i = 0; i < kit_machine_count; i++)
		if (strcmp(kit_machines[i].name, name) == 0)
			return &kit_machines[i];
	fail_msg("no machine %s", name);
	return NULL;
}

struct takt_sched *kit_new(void)
{
	struct takt_sched_config config = {0};
	struct takt_sched *sched = NULL;

	assert_int_equal(takt_sched_new(&config, &sched, NULL), 0);
	return sched;
}

void kit_take(struct takt_sched *sched, struct takt_sched_event event)
{
	struct takt_err err = {0};
	uint64_t version = takt_sched_version(sched);

	if (takt_sched_update(sched, &event, &err) != 0)
		fail_msg("%s: %s", takt_sched_event_name(event.kind), err.msg);
	assert_int_equal(takt_sched_version(sched), version + 1);
}

void kit_refuse(struct takt_sched *sched, struct takt_sched_event event, int rc)
{
	struct takt_str before = TAKT_STR(TEXT_MAX);
	struct takt_str after = TAKT_STR(TEXT_MAX);
	struct takt_err err = {0};
	uint64_t version = takt_sched_version(sched);

	kit_state_text(sched, &before);
	assert_int_equal(takt_sched_update(sched, &event, &err), rc);
	assert_int_equal(err.rc, rc);
	assert_true(strlen(err.msg) > 0);
	kit_state_text(sched, &after);
	assert_string_equal(takt_str_text(&before), takt_str_text(&after));
	assert_int_equal(takt_sched_version(sched), version);
	takt_str_fini(&before);
	takt_str_fini(&after);
}

struct takt_sched_event kit_node(uint32_t id, const struct machine *machine)
{
	return (struct takt_sched_event){
		.kind = TAKT_SCHED_NODE_ADD,
		.node = {id, machine->gpu_count, machine->pair_score},
	};
}

struct takt_sched_event kit_job(uint64_t id, uint32_t gpus, int32_t priority, uint32_t flags)
{
	return (struct takt_sched_event){
		.kind = TAKT_SCHED_JOB_ADD,
		.job = {.id = id,
			.submit_seq = id,
			.priority = priority,
			.gpus = gpus,
			.flags = flags},
	};
}

struct takt_sched_event kit_placed(uint64_t id, uint32_t node_id, uint64_t gpu_mask)
{
	return (struct takt_sched_event){.kind = TAKT_SCHED_JOB_PLACED,
					 .job_id = id,
					 .node_id = node_id,
					 .gpu_mask = gpu_mask};
}

struct takt_sched_event kit_of_job(enum takt_sched_event_kind kind, uint64_t id)
{
	return (struct takt_sched_event){.kind = kind, .job_id = id};
}

struct takt_sched_event kit_of_gpu(enum takt_sched_event_kind kind, uint32_t node_id, uint32_t gpu)
{
	return (struct takt_sched_event){.kind = kind, .node_id = node_id, .gpu = gpu};
}

struct takt_sched_event kit_health(uint32_t node_id, uint32_t gpu, enum takt_gpu_state state)
{
	struct takt_sched_event event = kit_of_gpu(TAKT_SCHED_GPU_HEALTH, node_id, gpu);

	event.state = state;
	return event;
}

struct takt_sched_event kit_outside(uint32_t node_id, uint32_t gpu, bool outside)
{
	struct takt_sched_event event = kit_of_gpu(TAKT_SCHED_GPU_OUTSIDE, node_id, gpu);

	event.outside = outside;
	return event;
}

void kit_running(struct takt_sched *sched, uint64_t id, uint32_t node_id, uint64_t gpu_mask)
{
	kit_take(sched, kit_job(id, (uint32_t)__builtin_popcountll(gpu_mask), 0, 0));
	kit_take(sched, kit_placed(id, node_id, gpu_mask));
	kit_take(sched, kit_of_job(TAKT_SCHED_JOB_RUNNING, id));
}

struct takt_plan kit_plan(struct takt_sched *sched)
{
	struct takt_plan plan = {0};

	assert_int_equal(takt_sched_run(sched, 1000, 1, &plan, NULL), 0);
	assert_int_equal(plan.version, takt_sched_version(sched));
	return plan;
}

void kit_plan_text(const struct takt_plan *plan, struct takt_str *ret)
{
	takt_str_addf(ret, "wakeup %" PRIu64 "\n", plan->next_wakeup_ns);
	for (size_t i = 0; i < plan->placement_count; i++) {
		const struct takt_plan_placement *p = &plan->placements[i];

		takt_str_addf(ret,
			      "place %" PRIu64 " on %" PRIu32 " gpus %" PRIx64 " sum %" PRIi64 "\n",
			      p->job_id, p->node_id, p->gpu_mask, p->pair_score_sum);
	}
	for (size_t i = 0; i < plan->wait_count; i++) {
		const struct takt_plan_wait *w = &plan->waits[i];

		takt_str_addf(ret,
			      "wait %" PRIu64 " %s need %u total %u unhealthy %u outside %u "
			      "running %u draining %u promised %u free %u behind %" PRIu64
			      " must_end %u\n",
			      w->job_id, takt_why_name(w->why), w->need, w->total, w->unhealthy,
			      w->outside, w->running, w->draining, w->promised, w->free,
			      w->behind_job, w->must_end);
	}
	assert_int_equal(ret->rc, 0);
}

static void event_text(const struct takt_sched_event *event, struct takt_str *text)
{
	takt_str_addf(text,
		      "%s node %u gpu %u %s outside %d job %" PRIu64 " mask %" PRIx64
		      " [%u %u] [%" PRIu64 " %" PRIu64 " %d %u %x]\n",
		      takt_sched_event_name(event->kind), event->node_id, event->gpu,
		      takt_gpu_state_name(event->state), event->outside, event->job_id,
		      event->gpu_mask, event->node.id, event->node.gpu_count, event->job.id,
		      event->job.submit_seq, event->job.priority, event->job.gpus,
		      event->job.flags);
	for (uint32_t i = 0; i < event->node.gpu_count * event->node.gpu_count; i++)
		takt_str_addf(text, "%d ", event->node.pair_score[i]);
}

static int add_event_text(void *ctx, const struct takt_sched_event *event)
{
	event_text(event, ctx);
	return 0;
}

void kit_state_text(const struct takt_sched *sched, struct takt_str *ret)
{
	assert_int_equal(takt_sched_snapshot(sched, add_event_text, ret), 0);
	assert_int_equal(ret->rc, 0);
}

static int feed(void *ctx, const struct takt_sched_event *event)
{
	kit_take(ctx, *event);
	return 0;
}

struct takt_sched *kit_rebuild(const struct takt_sched *sched)
{
	struct takt_sched *rebuilt = kit_new();

	assert_int_equal(takt_sched_snapshot(sched, feed, rebuilt), 0);
	return rebuilt;
}
