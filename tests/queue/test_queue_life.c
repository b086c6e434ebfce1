/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a job, step by step: what must be on disk before what, and what a restart finds at
 * each step. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "base/rng.h"
#include "base/str.h"
#include "codec/snapshot.h"
#include "queue_kit.h"

static struct kit kit;

static int set_up(void **state)
{
	kit_open(&kit);
	return 0;
}

static int tear_down(void **state)
{
	kit_close(&kit);
	return 0;
}

static void accepted_only_when_on_disk(void **state)
{
	assert_int_equal(kit_submit(&kit, 1, 0, NULL), 0);
	assert_int_equal(kit.accepted_count, 0);
	kit_settle(&kit);
	assert_int_equal(kit.accepted_count, 1);
	kit_restart(&kit);
	assert_non_null(takt_queue_find(kit.queue, kit.accepted_id));
}

static void impossible_is_refused_at_submit(void **state)
{
	struct takt_err err = {0};

	assert_int_equal(kit_submit(&kit, 9, 0, &err), -TAKT_E_IMPOSSIBLE);
	assert_non_null(strstr(err.msg, "9"));
	assert_non_null(strstr(err.msg, "8"));
}

static void gpus_that_cannot_be_seen_are_not_called_impossible(void **state)
{
	struct takt_err err = {0};

	kit.why_no_gpus = "the module is not loaded";
	kit_restart(&kit);
	assert_int_equal(kit_submit(&kit, 1, 0, &err), -TAKT_E_UNAVAILABLE);
	assert_non_null(strstr(err.msg, "the module is not loaded"));
	assert_int_equal(kit_submit(&kit, 0, 0, &err), 0);
}

static void gpus_that_will_come_are_waited_for(void **state)
{
	struct takt_jobspec cut = kit_spec(1);
	uint64_t wide, none, too_wide;
	struct takt_err err = {0};

	kit.why_no_gpus = "the module is not loaded";
	kit.gpus_will_come = kit.has_no_gpus = true;
	kit_restart(&kit);
	wide = kit_accept(&kit, KIT_GPUS, 0);
	too_wide = kit_accept(&kit, KIT_GPUS + 1, 0);
	none = kit_accept(&kit, 0, 0);
	takt_strcpy(cut.mig, sizeof(cut.mig), "1g.10gb");
	assert_int_equal(
		takt_queue_submit(kit.queue, 1000, 1000, &cut, (struct takt_wall){5}, &kit, &err),
		-TAKT_E_UNAVAILABLE);
	takt_jobspec_fini(&cut);
	kit_settle(&kit);
	assert_true(kit_is_started(&kit, none));
	assert_false(kit_is_started(&kit, wide));
	kit_started(&kit, none);
	kit_ended(&kit, none, TAKT_END_EXITED, 0);

	kit.why_no_gpus = NULL;
	kit.gpus_will_come = kit.has_no_gpus = false;
	kit_restart(&kit);
	kit_settle(&kit);
	assert_true(kit_is_started(&kit, wide));
	assert_false(kit_is_started(&kit, too_wide));
	assert_int_equal(kit_stored(&kit, too_wide), TAKT_JOB_WAITING);
}

static void engine_hears_of_an_attempt_only_when_the_store_has_it(void **state)
{
	uint64_t id;

	kit.hold_prepare = true;
	id = kit_accept(&kit, 2, 0);
	assert_null(kit_action(&kit, TAKT_ACTION_START, id));
	assert_int_equal(kit_stored(&kit, id), TAKT_JOB_STARTING);
	takt_queue_prepared(kit.queue, id, "");
	assert_non_null(kit_action(&kit, TAKT_ACTION_START, id));
	assert_int_equal(__builtin_popcountll(kit_action(&kit, TAKT_ACTION_START, id)->gpu_mask),
			 2);
}

static void exit_code_and_report_are_kept(void **state)
{
	struct takt_job row = {0};
	uint64_t id;

	id = kit_accept(&kit, 8, 0);
	kit_started(&kit, id);
	kit_ended(&kit, id, TAKT_END_EXITED, 3);
	assert_int_equal(kit.ended_count, 0); /* not before it is on disk */
	kit_settle(&kit);
	assert_int_equal(kit.ended_count, 1);
	assert_null(takt_queue_find(kit.queue, id));
	assert_int_equal(takt_store_get(kit.store, id, &row, NULL), 0);
	assert_int_equal(row.state, TAKT_JOB_FAILED);
	assert_int_equal(row.exit_code, 3);
	assert_int_equal(row.report.wall_ns, 7);
	takt_job_fini(&row);
}

static void missing_command_is_127(void **state)
{
	uint64_t id;

	id = kit_accept(&kit, 1, 0);
	kit_ended(&kit, id, TAKT_END_NOT_STARTED, ENOENT);
	kit_settle(&kit);
	assert_int_equal(kit.last_state, TAKT_JOB_FAILED);
	assert_int_equal(kit.last_exit_code, 127);
}

static void gpus_are_handed_on_only_when_clean(void **state)
{
	uint64_t first, second;

	first = kit_accept(&kit, 8, 0);
	second = kit_accept(&kit, 1, 0);
	kit_started(&kit, first);
	kit_ended(&kit, first, TAKT_END_EXITED, 0);
	kit_settle(&kit);
	assert_null(kit_action(&kit, TAKT_ACTION_START, second));
	kit_clean(&kit, 1u << 5);
	kit_settle(&kit);
	assert_non_null(kit_action(&kit, TAKT_ACTION_START, second));
	assert_int_equal(kit_action(&kit, TAKT_ACTION_START, second)->gpu_mask, 1u << 5);
}

static void cancel_while_waiting_never_starts(void **state)
{
	uint64_t holder, waiting;

	holder = kit_accept(&kit, 8, 0);
	waiting = kit_accept(&kit, 1, 0);
	kit_cancel(&kit, waiting);
	kit_settle(&kit);
	assert_int_equal(kit.last_state, TAKT_JOB_CANCELLED);
	kit_ended(&kit, holder, TAKT_END_EXITED, 0);
	kit_clean(&kit, 0xff);
	kit_settle(&kit);
	assert_null(kit_action(&kit, TAKT_ACTION_START, waiting));
	assert_int_equal(takt_queue_cancel(kit.queue, waiting, TAKT_CAUSE_CANCELLED,
					   (struct takt_wall){9}, NULL),
			 -TAKT_E_CONFLICT);
}

static void cancel_while_preparing_gives_the_gpus_back(void **state)
{
	uint64_t first, second;

	kit.hold_prepare = true;
	first = kit_accept(&kit, 8, 0);
	kit_cancel(&kit, first);
	kit_settle(&kit);
	assert_int_equal(kit_stored(&kit, first), TAKT_JOB_CANCELLED);
	assert_int_equal(kit.released_count, 1);
	kit.hold_prepare = false;
	kit_clean(&kit, 0xff);
	second = kit_accept(&kit, 8, 0);
	assert_non_null(kit_action(&kit, TAKT_ACTION_START, second));
}

static void cancel_while_running_stops_it(void **state)
{
	uint64_t id;

	id = kit_accept(&kit, 1, 0);
	kit_started(&kit, id);
	kit_cancel(&kit, id);
	assert_non_null(kit_action(&kit, TAKT_ACTION_STOP, id));
	kit_settle(&kit);
	assert_int_equal(kit_stored(&kit, id), TAKT_JOB_STOPPING);
	kit_ended(&kit, id, TAKT_END_SIGNALED, 15);
	kit_settle(&kit);
	assert_int_equal(kit_stored(&kit, id), TAKT_JOB_CANCELLED);
}

static void cancel_is_remembered_over_a_restart(void **state)
{
	uint64_t id;

	id = kit_accept(&kit, 1, 0);
	kit_started(&kit, id);
	kit_cancel(&kit, id);
	kit_settle(&kit);
	kit_restart(&kit);
	kit_started(&kit, id); /* adopted */
	assert_non_null(kit_action(&kit, TAKT_ACTION_STOP, id));
}

static void refused_start_waits_again(void **state)
{
	uint64_t id;

	kit.engine.refuse_rc = -EAGAIN;
	id = kit_accept(&kit, 1, 0);
	assert_int_equal(takt_queue_find(kit.queue, id)->phase, TAKT_PHASE_WAITING);
	kit.engine.refuse_rc = 0;
	assert_true(kit.released_count >= 1);
	kit.boot_ns += 10 * TAKT_NS_PER_S;
	kit_settle(&kit);
	assert_non_null(kit_action(&kit, TAKT_ACTION_START, id));
}

/* What a full disk does: rows can be read and not changed. Of another connection, as a disk is. */
static void fill_disk(bool full)
{
	char path[sizeof(kit.dir) + 16];
	sqlite3 *db = NULL;

	snprintf(path, sizeof(path), "%s/takt.db", kit.dir);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_busy_timeout(db, 20000), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db,
				      full ? "CREATE TRIGGER full BEFORE UPDATE ON job "
					     "BEGIN SELECT RAISE(ABORT, 'full'); END"
					   : "DROP TRIGGER full",
				      NULL, NULL, NULL),
			 SQLITE_OK);
	sqlite3_close(db);
}

/* The daemon's turns, whenever the queue wants one, for so long. What left a GPU is found clean. */
static void live_for(uint64_t seconds)
{
	uint64_t end_ns = kit.boot_ns + seconds * TAKT_NS_PER_S;

	while (kit_turn(&kit, end_ns))
		for (uint32_t gpu = 0; gpu < KIT_GPUS; gpu++)
			(void)takt_queue_gpu_clean(kit.queue, gpu, NULL);
}

/* Of a job that waits for what refuses its start: hours are few tries, the first come soon, and the
 * end of it is noticed within seconds. */
static void check_hours(unsigned hours, void (*refuse)(bool on))
{
	uint64_t id;

	refuse(true);
	id = kit_accept(&kit, 1, 0);
	live_for(4);
	assert_in_range(kit.released_count, 3, 5);
	live_for(hours * 3600);
	assert_in_range(kit.released_count, hours * 600, hours * 720 + 5);
	assert_null(kit_action(&kit, TAKT_ACTION_START, id));
	refuse(false);
	live_for(5);
	assert_non_null(kit_action(&kit, TAKT_ACTION_START, id));
	/* What has gone well is forgotten: the next time begins with a short pause. */
	kit_started(&kit, id);
	kit.released_count = 0;
	refuse(true);
	(void)kit_accept(&kit, 1, 0);
	live_for(4);
	assert_in_range(kit.released_count, 3, 5);
}

static void refuse_in_engine(bool on)
{
	kit.engine.refuse_rc = on ? -EAGAIN : 0;
}

static void hours_of_a_full_disk_are_few_tries(void **state)
{
	check_hours(6, fill_disk);
}

static void hours_without_an_engine_are_few_tries(void **state)
{
	check_hours(1, refuse_in_engine);
}

/* Its GPU goes to nobody before the store has the end. */
static void an_end_is_on_disk_within_seconds_of_there_being_room(void **state)
{
	uint64_t id, next;

	id = kit_accept(&kit, KIT_GPUS, 0);
	kit_started(&kit, id);
	kit_settle(&kit);
	next = kit_accept(&kit, 1, 0);
	fill_disk(true);
	kit_end_cleanly(&kit, id, TAKT_END_EXITED, 0);
	live_for(3600);
	assert_int_equal(kit_stored(&kit, id), TAKT_JOB_RUNNING);
	assert_null(kit_action(&kit, TAKT_ACTION_START, next));
	fill_disk(false);
	live_for(11); /* the end, then the start */
	assert_int_equal(kit_stored(&kit, id), TAKT_JOB_DONE);
	assert_non_null(kit_action(&kit, TAKT_ACTION_START, next));
}

static void cancelled_job_whose_start_is_refused_does_not_wait_again(void **state)
{
	struct takt_engine_event event = {.kind = TAKT_ENGINE_OUTCOME, .attempt = 1};

	event.job_id = kit_accept(&kit, 1, 0);
	event.action_id = kit_action(&kit, TAKT_ACTION_START, event.job_id)->id;
	event.outcome = TAKT_OUTCOME_FAILED;
	kit_cancel(&kit, event.job_id);
	takt_engine_emit(&kit.engine.base, event);
	kit_settle(&kit);
	assert_int_equal(kit_stored(&kit, event.job_id), TAKT_JOB_CANCELLED);
	assert_int_equal(kit.released_count, 1);
	kit_clean(&kit, 1);
	assert_int_equal(takt_queue_gpu(kit.queue, 0, &(uint64_t){0}), TAKT_GPU_FREE);
}

static void lost_attempt_ends_or_waits_again_as_asked(void **state)
{
	uint64_t id;

	id = kit_accept(&kit, 1, 0);
	kit_started(&kit, id);
	kit_ended(&kit, id, TAKT_END_LOST, 0);
	kit_settle(&kit);
	assert_int_equal(kit_stored(&kit, id), TAKT_JOB_LOST);
}

static void what_never_ran_is_started_as_the_next_attempt(void **state)
{
	uint64_t id, mask;

	id = kit_accept(&kit, 4, 0);
	mask = kit_action(&kit, TAKT_ACTION_START, id)->gpu_mask;
	kit_restart(&kit);
	assert_int_equal(kit.claimed_count, 1);
	assert_int_equal(kit.claimed[0], id);
	kit_settle(&kit);
	assert_null(kit_action(&kit, TAKT_ACTION_START,
			       id)); /* not before the engine has said what became of it */
	kit_ended(&kit, id, TAKT_END_NEVER_RAN, 0);
	kit_clean(&kit, mask);
	kit_settle(&kit);
	assert_int_equal(kit_action(&kit, TAKT_ACTION_START, id)->attempt, 2);
}

static void adopted_job_keeps_its_gpus(void **state)
{
	uint64_t id, other, mask;

	id = kit_accept(&kit, 6, 0);
	mask = kit_action(&kit, TAKT_ACTION_START, id)->gpu_mask;
	kit_started(&kit, id);
	kit_settle(&kit);
	kit_restart(&kit);
	other = kit_accept(&kit, 2, 0);
	assert_int_equal(kit_action(&kit, TAKT_ACTION_START, other)->gpu_mask & mask, 0);
}

static int replay(void *ctx, const struct takt_store_decision_row *row)
{
	struct takt_sched_config config = {0};
	struct takt_sched *sched = NULL;
	struct takt_plan plan = {0};
	struct takt_str again = TAKT_STR(1 << 20);
	uint64_t now_ns = 0;

	assert_int_equal(
		takt_events_now_ns(row->snapshot_json, strlen(row->snapshot_json), &now_ns, NULL),
		0);
	assert_true(now_ns > 0);
	assert_int_equal(takt_snapshot_load(row->snapshot_json, strlen(row->snapshot_json), &config,
					    &sched, NULL),
			 0);
	assert_int_equal(takt_sched_run(sched, now_ns, 0, &plan, NULL), 0);
	plan.version = row->version;
	assert_int_equal(takt_plan_to_json(&plan, &again, NULL), 0);
	assert_string_equal(takt_str_text(&again), row->plan_json);
	takt_str_fini(&again);
	takt_plan_fini(&plan);
	takt_sched_free(sched);
	++*(size_t *)ctx;
	return 0;
}

static void decisions_are_kept_and_replay(void **state)
{
	size_t kept = 0;

	kit_accept(&kit, 3, 0);
	kit.boot_ns += TAKT_NS_PER_S;
	kit_accept(&kit, 2, 1);
	kit.boot_ns += TAKT_NS_PER_S;
	kit_accept(&kit, 6, 2); /* waits: nothing placed, nothing kept */
	kit_restart(&kit);
	assert_int_equal(takt_store_each_decision(kit.store, 100, replay, &kept, NULL), 0);
	assert_int_equal(kept, 2);
}

static void ids_start_above_what_is_on_disk(void **state)
{
	kit.highest_known_id = 41; /* attempts of job 41, whose database is gone */
	kit_restart(&kit);
	assert_int_equal(kit_accept(&kit, 1, 0), 42);
}

/* A day in random order: starts, ends of every kind, cancels and restarts; the witness is a table
 * of who may hold which GPU, kept by the test from the actions it was given. */
struct day {
	struct kit kit;
	uint64_t holder[KIT_GPUS];
	struct takt_rng rng;
	uint64_t ids[256];
	size_t count;
};

static void check_actions(struct day *day, size_t *seen)
{
	for (; *seen < day->kit.engine.count; (*seen)++) {
		const struct takt_action *action = &day->kit.engine.actions[*seen];

		if (action->kind != TAKT_ACTION_START)
			continue;
		for (uint32_t gpu = 0; gpu < KIT_GPUS; gpu++) {
			if (!(action->gpu_mask >> gpu & 1))
				continue;
			assert_int_equal(day->holder[gpu], 0); /* handed out twice? */
			day->holder[gpu] = action->job_id;
		}
	}
}

static void give_back(struct day *day, uint64_t job_id)
{
	for (uint32_t gpu = 0; gpu < KIT_GPUS; gpu++)
		if (day->holder[gpu] == job_id) {
			day->holder[gpu] = 0;
			kit_clean(&day->kit, 1ull << gpu);
		}
}

/* What was promised and called off before anybody started on it is clean at once. */
static void clean_idle(struct day *day)
{
	uint64_t job;

	for (uint32_t gpu = 0; gpu < KIT_GPUS; gpu++)
		if (day->holder[gpu] == 0 &&
		    takt_queue_gpu(day->kit.queue, gpu, &job) == TAKT_GPU_DRAINING)
			kit_clean(&day->kit, 1ull << gpu);
}

static void random_step(struct day *day)
{
	static const enum takt_end ends[] = {TAKT_END_EXITED, TAKT_END_SIGNALED, TAKT_END_NEVER_RAN,
					     TAKT_END_LOST};
	uint64_t id = day->ids[takt_rng_below(&day->rng, day->count)];
	const struct takt_queue_job *job = takt_queue_find(day->kit.queue, id);

	if (!job)
		return;
	if (takt_rng_below(&day->rng, 10) == 0)
		(void)takt_queue_cancel(day->kit.queue, id, TAKT_CAUSE_CANCELLED,
					(struct takt_wall){1}, NULL);
	else if (job->phase == TAKT_PHASE_STARTING && takt_rng_below(&day->rng, 2))
		kit_started(&day->kit, id);
	else if (job->phase == TAKT_PHASE_STARTING || job->phase == TAKT_PHASE_RUNNING) {
		kit_ended(&day->kit, id, ends[takt_rng_below(&day->rng, TAKT_ARRAY_LEN(ends))], 0);
		give_back(day, id);
	}
}

static void nothing_is_lost_and_no_gpu_is_given_twice(void **state)
{
	struct day day = {0};
	size_t seen = 0, steps = 0;

	kit_open(&day.kit);
	takt_rng_init(&day.rng, 20261120);
	for (day.count = 0; day.count < 60; day.count++)
		day.ids[day.count] = kit_accept(&day.kit, 1 + (uint32_t)takt_rng_below(&day.rng, 4),
						(int)takt_rng_below(&day.rng, 3));
	do {
		check_actions(&day, &seen);
		random_step(&day);
		if (steps++ % 7 == 0) {
			clean_idle(&day);
			kit_settle(&day.kit);
		}
		assert_true(steps < 20000);
	} while (day.kit.ended_count < day.count);
	for (size_t i = 0; i < day.count; i++)
		assert_true(takt_job_state_ended(kit_stored(&day.kit, day.ids[i])));
	kit_close(&day.kit);
}

static void say_outcome(uint64_t id, enum takt_outcome outcome)
{
	takt_engine_emit(&kit.engine.base,
			 (struct takt_engine_event){
				 .kind = TAKT_ENGINE_OUTCOME,
				 .action_id = kit_action(&kit, TAKT_ACTION_START, id)->id,
				 .outcome = outcome,
				 .job_id = id,
				 .attempt = kit_action(&kit, TAKT_ACTION_START, id)->attempt,
				 .message = "stopped before it started"});
}

static void cancel_of_a_start_that_is_refused_ends_the_job(void **state)
{
	uint64_t id;

	id = kit_accept(&kit, 2, 0);
	kit_cancel(&kit, id);
	say_outcome(id, TAKT_OUTCOME_FAILED);
	kit_settle(&kit);
	assert_int_equal(kit.last_state, TAKT_JOB_CANCELLED);
	assert_int_equal(kit_stored(&kit, id), TAKT_JOB_CANCELLED);
	assert_null(takt_queue_find(kit.queue, id));
}

/* The machine comes back with fewer GPUs than a job was on: takt starts, and gives none of the
 * job's GPUs away before the engine has said what became of it. */
static void missing_gpus_are_kept_for_their_job(void **state)
{
	uint64_t id, next;

	id = kit_accept(&kit, 8, 0);
	kit_started(&kit, id);
	kit_settle(&kit);
	kit.gpu_count = 5;
	kit_restart(&kit);
	assert_int_equal(kit.claimed_count, 1);
	next = kit_accept(&kit, 1, 0);
	assert_null(kit_action(&kit, TAKT_ACTION_START, next));
	kit_ended(&kit, id, TAKT_END_INTERRUPTED, 0);
	kit_settle(&kit);
	assert_int_equal(kit_stored(&kit, id), TAKT_JOB_INTERRUPTED);
	kit_clean(&kit, 0xff);
	kit_settle(&kit);
	assert_int_equal(kit_action(&kit, TAKT_ACTION_START, next)->gpu_mask, 1);
}

/* The machine comes back without its first GPU, so that all others have other numbers: a job keeps
 * the GPU that it has, by its UUID, and what is free is given to others. */
static void gpus_are_known_by_their_uuids(void **state)
{
	const struct takt_queue_job *job;
	uint64_t first, wide, next;

	first = kit_accept(&kit, 1, 0);
	wide = kit_accept(&kit, 2, 0);
	kit_started(&kit, first);
	kit_started(&kit, wide);
	kit_settle(&kit);
	assert_int_equal(takt_queue_find(kit.queue, wide)->row.gpu_mask, 1 << 1 | 1 << 2);
	kit.gpus_gone = 1;
	kit.gpu_count = 3;
	kit_restart(&kit);
	job = takt_queue_find(kit.queue, wide);
	assert_int_equal(job->row.gpu_mask, 1 << 0 | 1 << 1);
	assert_string_equal(job->row.gpu_uuids, "GPU-b,GPU-c");
	job = takt_queue_find(kit.queue, first);
	assert_int_equal(job->row.gpu_mask, 1 << 3); /* beyond those that there are */
	assert_string_equal(job->row.gpu_uuids, "GPU-a");
	next = kit_accept(&kit, 1, 0);
	assert_int_equal(kit_action(&kit, TAKT_ACTION_START, next)->gpu_mask, 1 << 2);
	kit.gpus_gone = 0;
	kit.gpu_count = 0;
	kit_restart(&kit);
	assert_int_equal(takt_queue_find(kit.queue, first)->row.gpu_mask, 1 << 0);
	assert_int_equal(takt_queue_find(kit.queue, wide)->row.gpu_mask, 1 << 1 | 1 << 2);
}

/* The store could not take the end of one job and took the start of the next on its GPU: the next
 * must not start, and a crash at that point must not keep takt from starting. */
static void start_behind_an_end_that_is_not_on_disk_waits(void **state)
{
	struct takt_job row = {0};
	uint64_t first, second;

	first = kit_accept(&kit, 8, 0);
	kit_started(&kit, first);
	kit_settle(&kit);
	second = kit_accept(&kit, 8, 0);
	/* As if the end had been posted and refused: the row goes back to what it was. */
	assert_int_equal(takt_store_get(kit.store, first, &row, NULL), 0);
	kit_ended(&kit, first, TAKT_END_EXITED, 0);
	kit_clean(&kit, 0xff);
	kit_settle(&kit);
	assert_true(takt_store_update(kit.store, &row, 3, NULL) > 0);
	takt_job_fini(&row);
	kit_settle(&kit);
	kit_restart(&kit);
	assert_int_equal(kit.claimed_count, 2);
	kit_ended(&kit, first, TAKT_END_EXITED, 0);
	kit_ended(&kit, second, TAKT_END_NEVER_RAN, 0);
	kit_clean(&kit, 0xff);
	kit_settle(&kit);
	assert_int_equal(kit_stored(&kit, first), TAKT_JOB_DONE);
	assert_non_null(kit_action(&kit, TAKT_ACTION_START, second));
}

static void no_more_jobs_than_the_limit_are_taken(void **state)
{
	struct takt_err err;
	uint64_t first;

	first = kit_accept(&kit, 8, 0);
	kit.max_jobs = 2;
	kit_restart(&kit);
	(void)kit_accept(&kit, 1, 0);
	assert_int_equal(kit_submit(&kit, 1, 0, &err), -TAKT_E_LIMIT);
	assert_non_null(strstr(err.msg, "full with 2 jobs"));
	kit_started(&kit, first);
	kit_ended(&kit, first, TAKT_END_EXITED, 0);
	kit_settle(&kit);
	assert_int_equal(kit_submit(&kit, 1, 0, &err), 0);
	kit_settle(&kit);
}

static void descriptions_have_a_limit_together(void **state)
{
	struct takt_err err;
	uint64_t first;

	first = kit_accept(&kit, 8, 0);
	kit.max_bytes = 2 * takt_queue_find(kit.queue, first)->bytes + 20;
	kit_restart(&kit);
	(void)kit_accept(&kit, 1, 0);
	assert_int_equal(kit_submit(&kit, 1, 0, &err), -TAKT_E_LIMIT);
	assert_non_null(strstr(err.msg, "full"));
	kit_started(&kit, first);
	kit_ended(&kit, first, TAKT_END_EXITED, 0);
	kit_settle(&kit);
	assert_int_equal(kit_submit(&kit, 1, 0, &err), 0);
	kit_settle(&kit);
}

static void wall_time_is_the_shims(void **state)
{
	struct takt_job row = {0};
	uint64_t id;

	kit.run_ns = 12345;
	id = kit_accept(&kit, 1, 0);
	kit_started(&kit, id);
	kit_ended(&kit, id, TAKT_END_EXITED, 0);
	kit_settle(&kit);
	assert_int_equal(takt_store_get(kit.store, id, &row, NULL), 0);
	assert_true(row.report.has & TAKT_REPORT_WALL);
	assert_int_equal(row.report.wall_ns, 12345);
	takt_job_fini(&row);
}

static void adopted_job_learns_when_it_started(void **state)
{
	struct takt_engine_event adopted = {.kind = TAKT_ENGINE_ADOPTED, .attempt = 1};

	adopted.job_id = kit_accept(&kit, 1, 0);
	kit_restart(&kit);
	takt_engine_emit(&kit.engine.base, adopted);
	assert_int_equal(takt_queue_find(kit.queue, adopted.job_id)->row.started.ns, 0);
	kit_started(&kit, adopted.job_id);
	assert_int_equal(takt_queue_find(kit.queue, adopted.job_id)->row.started.ns, kit.boot_ns);
	assert_int_equal(takt_queue_find(kit.queue, adopted.job_id)->pid, 4242);
}

/* Tried again at once, then with pauses: a start that dies each time must not be a busy loop. */
static void what_never_runs_is_not_tried_without_end(void **state)
{
	uint64_t id;

	id = kit_accept(&kit, 0, 0);
	for (int i = 0; i < 20 && takt_queue_find(kit.queue, id)->phase == TAKT_PHASE_STARTING;
	     i++) {
		kit_ended(&kit, id, TAKT_END_NEVER_RAN, 0);
		kit_settle(&kit);
	}
	assert_int_equal(takt_queue_find(kit.queue, id)->phase, TAKT_PHASE_WAITING);
	assert_int_equal(takt_queue_find(kit.queue, id)->row.attempt, 2);
	kit.boot_ns += 3000000000ull;
	kit_settle(&kit);
	assert_int_equal(takt_queue_find(kit.queue, id)->row.attempt, 3);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(accepted_only_when_on_disk),
		CASE(impossible_is_refused_at_submit),
		CASE(gpus_that_cannot_be_seen_are_not_called_impossible),
		CASE(gpus_that_will_come_are_waited_for),
		CASE(engine_hears_of_an_attempt_only_when_the_store_has_it),
		CASE(exit_code_and_report_are_kept),
		CASE(missing_command_is_127),
		CASE(gpus_are_handed_on_only_when_clean),
		CASE(cancel_while_waiting_never_starts),
		CASE(cancel_while_preparing_gives_the_gpus_back),
		CASE(cancel_while_running_stops_it),
		CASE(cancel_is_remembered_over_a_restart),
		CASE(cancel_of_a_start_that_is_refused_ends_the_job),
		CASE(missing_gpus_are_kept_for_their_job),
		CASE(gpus_are_known_by_their_uuids),
		CASE(start_behind_an_end_that_is_not_on_disk_waits),
		CASE(no_more_jobs_than_the_limit_are_taken),
		CASE(descriptions_have_a_limit_together),
		CASE(wall_time_is_the_shims),
		CASE(adopted_job_learns_when_it_started),
		CASE(what_never_runs_is_not_tried_without_end),
		CASE(refused_start_waits_again),
		CASE(hours_of_a_full_disk_are_few_tries),
		CASE(hours_without_an_engine_are_few_tries),
		CASE(an_end_is_on_disk_within_seconds_of_there_being_room),
		CASE(cancelled_job_whose_start_is_refused_does_not_wait_again),
		CASE(lost_attempt_ends_or_waits_again_as_asked),
		CASE(what_never_ran_is_started_as_the_next_attempt),
		CASE(adopted_job_keeps_its_gpus),
		CASE(decisions_are_kept_and_replay),
		CASE(ids_start_above_what_is_on_disk),
		cmocka_unit_test(nothing_is_lost_and_no_gpu_is_given_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
