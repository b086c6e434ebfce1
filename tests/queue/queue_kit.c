/* SPDX-License-Identifier: Apache-2.0 */
/* See queue_kit.h. */
#include "queue_kit.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"

static int apply(struct takt_engine *engine, const struct takt_action *actions, size_t n,
		 struct takt_err *err)
{
	struct kit_engine *kit = TAKT_CONTAINER_OF(engine, struct kit_engine, base);

	if (kit->refuse_rc < 0)
		return takt_err_set(err, kit->refuse_rc, "the engine is told to refuse");
	for (size_t i = 0; i < n && kit->count < KIT_MAX_ACTIONS; i++)
		kit->actions[kit->count++] = actions[i];
	return 0;
}

static const struct takt_engine_ops ops = {
	.name = "scripted", .caps = TAKT_ENGINE_STAGE, .apply = apply};

static void accepted(void *ctx, void *token, const struct takt_queue_job *job,
		     const struct takt_err *error)
{
	struct kit *kit = ctx;

	if (error) {
		kit->refused = *error;
		kit->refused_count++;
		return;
	}
	kit->accepted_id = job->row.id;
	kit->accepted_count++;
}

static void noted(void *ctx, void *token, const struct takt_queue_job *job,
		  const struct takt_err *error)
{
	struct kit *kit = ctx;

	kit->noted_count += !error;
	kit->refused_count += error != NULL;
}

static void prepare(void *ctx, const struct takt_queue_job *job)
{
	struct kit *kit = ctx;

	if (!kit->hold_prepare)
		takt_queue_prepared(kit->queue, job->row.id, "");
}

static void release(void *ctx, const struct takt_queue_job *job, struct takt_job_report *ret_report)
{
	((struct kit *)ctx)->released_count++;
	ret_report->has = TAKT_REPORT_WALL;
	ret_report->wall_ns = 7;
}

static void changed(void *ctx, const struct takt_queue_job *job)
{
	struct kit *kit = ctx;

	if (!takt_job_state_ended(job->row.state))
		return;
	kit->ended_count++;
	kit->last_state = job->row.state;
	kit->last_exit_code = job->row.exit_code;
}

static void event(void *ctx, const struct takt_queue_job *job, enum takt_job_event event)
{
	struct kit *kit = ctx;
	size_t len = strlen(kit->events);

	snprintf(kit->events + len, sizeof(kit->events) - len, "%llu %s, ",
		 (unsigned long long)job->row.id, takt_job_event_name(event));
}

static bool stands_still(void *ctx, const struct takt_queue_job *job, uint32_t *ret_mem_mib)
{
	const struct kit *kit = ctx;

	*ret_mem_mib = kit->kept_mib;
	return !kit->restless && job->row.id != kit->restless_id;
}

static const struct takt_queue_hooks hooks = {
	.accepted = accepted,
	.noted = noted,
	.prepare = prepare,
	.release = release,
	.changed = changed,
	.event = event,
	.stands_still = stands_still,
};

static int claim(void *ctx, const struct takt_queue_job *job, struct takt_err *err)
{
	struct kit *kit = ctx;

	kit->claimed[kit->claimed_count++] = job->row.id;
	return 0;
}

static const char *const gpu_uuid[] = {"GPU-a", "GPU-b", "GPU-c", "GPU-d",
				       "GPU-e", "GPU-f", "GPU-g", "GPU-h"};

int kit_open_queue(struct kit *kit, struct takt_err *err)
{
	struct takt_queue_config config = {
		.store = kit->store,
		.engine = &kit->engine.base,
		.pair_score = kit->pair_score,
		.gpu_count = kit->has_no_gpus ? 0
			     : kit->gpu_count ? kit->gpu_count
					      : KIT_GPUS,
		.gpu_uuid = gpu_uuid + kit->gpus_gone,
		.why_no_gpus = kit->why_no_gpus,
		.gpus_will_come = kit->gpus_will_come,
		.max_bytes = kit->max_bytes,
		.max_jobs = kit->max_jobs,
		.shared = kit->shared,
		.staging = kit->staging,
		.cpu_milli = kit->cpu_milli ? kit->cpu_milli : 4000,
		.mem_mib = 1024,
		.mig_gpus = kit->mig_gpus,
		.instances = kit->instances,
		.instance_count = kit->instance_count,
		.kinds = kit->kinds,
		.kind_count = kit->kind_count,
		.gpu_mem_mib = kit->no_gpu_mem	   ? 0
			       : kit->each_mem_mib ? kit->each_mem_mib[0]
						   : 80 * 1024,
		.each_mem_mib = kit->each_mem_mib,
		.hooks = &hooks,
		.hooks_ctx = kit,
		.signal_id_base = 1ull << 63,
		.highest_known_id = kit->highest_known_id,
		.wall_ahead_ns = kit->wall_ahead_ns,
		.settings = kit->settings,
		.on_gpu_failure = kit->on_gpu_failure,
	};

	int rc;

	kit->claimed_count = 0;
	rc = takt_queue_new(&config, &kit->queue, err);
	if (rc < 0)
		return rc;
	rc = takt_queue_load(kit->queue, claim, kit, err);
	if (rc < 0)
		takt_queue_free(kit->queue);
	return rc;
}

static void open_both(struct kit *kit)
{
	char path[128];
	struct takt_store_config store_config = {.path = path};

	snprintf(path, sizeof(path), "%s/takt.db", kit->dir);
	assert_int_equal(takt_store_open(&store_config, &kit->store, NULL), 0);
	assert_int_equal(kit_open_queue(kit, NULL), 0);
}

void kit_open(struct kit *kit)
{
	kit_open_with(kit, (struct takt_sched_settings){.preempt = false}, TAKT_FAILURE_KEEP);
}

void kit_open_with(struct kit *kit, struct takt_sched_settings settings,
		   enum takt_failure_policy on_gpu_failure)
{
	memset(kit, 0, sizeof(*kit));
	kit->settings = settings;
	kit->on_gpu_failure = on_gpu_failure;
	takt_strcpy(kit->dir, sizeof(kit->dir), "/tmp/takt-queue-XXXXXX");
	assert_non_null(mkdtemp(kit->dir));
	kit->engine.base.ops = &ops;
	kit->boot_ns = 1;
	for (size_t i = 0; i < KIT_GPUS * KIT_GPUS; i++)
		kit->pair_score[i] = 10;
	open_both(kit);
}

static void close_both(struct kit *kit)
{
	takt_queue_free(kit->queue);
	takt_store_close(kit->store);
}

void kit_open_preempting(struct kit *kit)
{
	kit_open_with(kit, (struct takt_sched_settings){.preempt = true}, TAKT_FAILURE_KEEP);
}

void kit_close(struct kit *kit)
{
	char command[128];

	close_both(kit);
	snprintf(command, sizeof(command), "rm -rf '%s'", kit->dir);
	assert_int_equal(system(command), 0);
}

void kit_restart(struct kit *kit)
{
	close_both(kit);
	kit->engine.count = 0;
	kit->claimed_count = 0;
	open_both(kit);
}

static struct takt_wall wall_now(const struct kit *kit)
{
	return (struct takt_wall){(int64_t)kit->boot_ns + kit->wall_ahead_ns};
}

uint64_t kit_pump_in(struct kit *kit, uint64_t ns)
{
	uint64_t next = 0;

	kit->boot_ns += ns;
	assert_int_equal(takt_queue_pump(kit->queue, (struct takt_boot){kit->boot_ns},
					 wall_now(kit), &next, NULL),
			 0);
	return next;
}

static void pump(struct kit *kit)
{
	(void)kit_pump_in(kit, 1000);
}

void kit_later(struct kit *kit, uint64_t ns)
{
	(void)kit_pump_in(kit, ns);
	kit_settle(kit);
}

void kit_settle(struct kit *kit)
{
	struct pollfd fd = {.fd = takt_store_fd(kit->store), .events = POLLIN};

	do
		pump(kit);
	while (takt_store_outstanding(kit->store) && poll(&fd, 1, 20000) > 0);
}

void kit_until(struct kit *kit, uint64_t job_id, enum takt_evict_step step)
{
	struct pollfd fd = {.fd = takt_store_fd(kit->store), .events = POLLIN};

	do
		pump(kit);
	while (takt_queue_find(kit->queue, job_id)->evict.step != step && poll(&fd, 1, 20000) > 0);
	assert_int_equal(takt_queue_find(kit->queue, job_id)->evict.step, step);
}

struct takt_jobspec kit_spec(uint32_t gpus)
{
	struct takt_jobspec spec;

	takt_jobspec_init(&spec);
	takt_strcpy(spec.name, sizeof(spec.name), "test");
	spec.argv = takt_calloc(3, sizeof(char *));
	spec.argv[0] = takt_strdup("sleep");
	spec.argv[1] = takt_strdup("1");
	spec.env = takt_calloc(1, sizeof(char *));
	spec.cwd = takt_strdup("/");
	spec.gpus = gpus;
	return spec;
}

uint64_t kit_accept_spec(struct kit *kit, struct takt_jobspec spec)
{
	assert_int_equal(
		takt_queue_submit(kit->queue, 1000, 1000, &spec, (struct takt_wall){5}, kit, NULL),
		0);
	takt_jobspec_fini(&spec);
	kit_settle(kit);
	return kit->accepted_id;
}

int kit_submit(struct kit *kit, uint32_t gpus, int priority, struct takt_err *err)
{
	struct takt_jobspec spec = kit_spec(gpus);
	int rc;

	spec.priority = priority;
	rc = takt_queue_submit(kit->queue, 1000, 1000, &spec, (struct takt_wall){5}, kit, err);
	takt_jobspec_fini(&spec);
	return rc;
}

uint64_t kit_accept(struct kit *kit, uint32_t gpus, int priority)
{
	assert_int_equal(kit_submit(kit, gpus, priority, NULL), 0);
	kit_settle(kit);
	return kit->accepted_id;
}

const struct takt_action *kit_action(const struct kit *kit, enum takt_action_kind kind,
				     uint64_t job_id)
{
	for (size_t i = kit->engine.count; i-- > 0;)
		if (kit->engine.actions[i].kind == kind && kit->engine.actions[i].job_id == job_id)
			return &kit->engine.actions[i];
	return NULL;
}

static struct takt_engine_event event_for(struct kit *kit, uint64_t job_id)
{
	const struct takt_queue_job *job = takt_queue_find(kit->queue, job_id);

	assert_non_null(job);
	return (struct takt_engine_event){.job_id = job_id,
					  .attempt = job->row.attempt,
					  .at = {wall_now(kit).ns - kit->set_since_ns},
					  .at_boot = {kit->boot_ns}};
}

void kit_cancel(struct kit *kit, uint64_t job_id)
{
	assert_int_equal(takt_queue_cancel(kit->queue, job_id, TAKT_CAUSE_CANCELLED,
					   (struct takt_wall){9}, NULL),
			 0);
}

void kit_started(struct kit *kit, uint64_t job_id)
{
	struct takt_engine_event event = event_for(kit, job_id);

	event.kind = TAKT_ENGINE_STARTED;
	event.pid = 4242;
	takt_engine_emit(&kit->engine.base, event);
}

void kit_adopted(struct kit *kit, uint64_t job_id)
{
	struct takt_engine_event event = event_for(kit, job_id);

	event.kind = TAKT_ENGINE_ADOPTED;
	event.pid = 4242;
	takt_engine_emit(&kit->engine.base, event);
}

void kit_ended(struct kit *kit, uint64_t job_id, enum takt_end end, int code)
{
	struct takt_engine_event event = event_for(kit, job_id);

	event.kind = TAKT_ENGINE_ENDED;
	event.end = end;
	event.code = code;
	event.run_ns = kit->run_ns;
	takt_engine_emit(&kit->engine.base, event);
}

void kit_clean(struct kit *kit, uint64_t mask)
{
	for (uint32_t gpu = 0; gpu < KIT_GPUS; gpu++)
		if (mask >> gpu & 1)
			assert_int_equal(takt_queue_gpu_clean(kit->queue, gpu, NULL), 0);
}

bool kit_turn(struct kit *kit, uint64_t end_ns)
{
	uint64_t next_ns;

	kit_settle(kit);
	if (kit->boot_ns >= end_ns)
		return false;
	next_ns = kit_pump_in(kit, 0);
	if (next_ns == 0 || next_ns > end_ns)
		next_ns = end_ns;
	kit->boot_ns = next_ns > kit->boot_ns ? next_ns : kit->boot_ns + 1;
	return true;
}

bool kit_is_started(const struct kit *kit, uint64_t job_id)
{
	return kit_action(kit, TAKT_ACTION_START, job_id) != NULL;
}

bool kit_was_stopped(const struct kit *kit, uint64_t job_id)
{
	return kit_action(kit, TAKT_ACTION_STOP, job_id) != NULL;
}

void kit_end_cleanly(struct kit *kit, uint64_t job_id, enum takt_end end, int code)
{
	uint64_t mask = takt_queue_find(kit->queue, job_id)->row.gpu_mask;

	kit_ended(kit, job_id, end, code);
	kit_clean(kit, mask);
}

enum takt_job_state kit_stored(struct kit *kit, uint64_t job_id)
{
	struct takt_job row = {0};
	enum takt_job_state state;

	assert_int_equal(takt_store_get(kit->store, job_id, &row, NULL), 0);
	state = row.state;
	takt_job_fini(&row);
	return state;
}
