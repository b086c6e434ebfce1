/* SPDX-License-Identifier: Apache-2.0 */
/* The fake engine keeps the contract it is to test others against. */
#include "seeded.h"

#include <stdbool.h>
#include <string.h>

#include "base/timetypes.h"
#include "fake_engine.h"

enum {
	JOBS = 40,
	MAX_EVENTS = 2000,
	STEP_MS = 5,
	STEPS = 400,
};

struct heard {
	struct takt_engine_event events[MAX_EVENTS];
	size_t n;
};

static void hear(void *ctx, const struct takt_engine_event *event)
{
	struct heard *heard = ctx;

	assert_true(heard->n < MAX_EVENTS);
	assert_int_equal(event->seq, heard->n + 1);
	heard->events[heard->n++] = *event;
}

static void run(const struct fake_engine_config *config, struct heard *heard)
{
	struct takt_engine *engine = fake_engine_new(config);
	uint64_t next;

	heard->n = 0;
	takt_engine_watch(engine, hear, heard);
	for (uint64_t job = 1; job <= JOBS; job++) {
		struct takt_action action = {.id = job,
					     .kind = TAKT_ACTION_START,
					     .job_id = job,
					     .attempt = 1,
					     .gpu_mask = 1ull << job};

		assert_int_equal(takt_engine_apply(engine, &action, 1, NULL), 0);
	}
	for (uint64_t step = 0; step < STEPS; step++)
		assert_int_equal(
			takt_engine_pump(engine,
					 (struct takt_boot){step * STEP_MS * TAKT_NS_PER_MS}, &next,
					 NULL),
			0);
	assert_int_equal(next, 0);
	assert_int_equal(fake_engine_alive(engine), 0);
	assert_int_equal(fake_engine_violations(engine), 0);
	takt_engine_free(engine);
}

static size_t count(const struct heard *heard, enum takt_engine_event_kind kind, uint64_t job)
{
	size_t n = 0;

	for (size_t i = 0; i < heard->n; i++)
		n += heard->events[i].kind == kind && heard->events[i].job_id == job;
	return n;
}

static bool accepted(const struct heard *heard, uint64_t job)
{
	for (size_t i = 0; i < heard->n; i++)
		if (heard->events[i].kind == TAKT_ENGINE_OUTCOME && heard->events[i].job_id == job)
			return heard->events[i].outcome == TAKT_OUTCOME_ACCEPTED;
	return false;
}

static const struct fake_engine_config awkward = {.delay_max_ms = 30,
						  .run_max_ms = 100,
						  .reject_permille = 200,
						  .lost_permille = 100,
						  .never_ran_permille = 100};

static void test_every_start_has_one_outcome_and_one_end(void **state)
{
	static struct heard heard;
	struct fake_engine_config config = awkward;
	size_t rejected = 0, overtaken = 0;

	for (config.seed = 0; config.seed < 20; config.seed++) {
		run(&config, &heard);
		for (uint64_t job = 1; job <= JOBS; job++) {
			bool taken = accepted(&heard, job);

			CHECK_SEED(config.seed, count(&heard, TAKT_ENGINE_OUTCOME, job) == 1);
			CHECK_SEED(config.seed, count(&heard, TAKT_ENGINE_ENDED, job) == taken);
			CHECK_SEED(config.seed, count(&heard, TAKT_ENGINE_STARTED, job) <= taken);
			rejected += !taken;
		}
		for (size_t i = 1; i < heard.n; i++)
			overtaken += heard.events[i].kind == TAKT_ENGINE_OUTCOME &&
				     heard.events[i].action_id < heard.events[i - 1].action_id;
	}
	assert_in_range(rejected, 1, 20 * JOBS / 2);
	assert_true(overtaken > 0);
}

/* Field by field: padding has no say. */
static bool same(const struct heard *a, const struct heard *b)
{
	for (size_t i = 0; i < a->n && i < b->n; i++) {
		const struct takt_engine_event *x = &a->events[i], *y = &b->events[i];

		if (x->kind != y->kind || x->action_id != y->action_id ||
		    x->outcome != y->outcome || x->job_id != y->job_id ||
		    x->attempt != y->attempt || x->end != y->end || x->run_ns != y->run_ns ||
		    x->at.ns != y->at.ns)
			return false;
	}
	return a->n == b->n;
}

static void test_the_same_seed_says_the_same(void **state)
{
	static struct heard once, again;
	struct fake_engine_config config = awkward;

	config.seed = 5;
	run(&config, &once);
	run(&config, &again);
	assert_true(same(&once, &again));
	config.seed = 6;
	run(&config, &again);
	assert_false(same(&once, &again));
}

static void test_nothing_follows_an_end(void **state)
{
	static struct heard heard;
	struct fake_engine_config config = awkward;
	bool ended[JOBS + 1];

	config.reorder = true;
	config.duplicate_permille = 200;
	for (config.seed = 0; config.seed < 20; config.seed++) {
		run(&config, &heard);
		memset(ended, 0, sizeof(ended));
		for (size_t i = 0; i < heard.n; i++) {
			const struct takt_engine_event *event = &heard.events[i];

			CHECK_SEED(config.seed,
				   !ended[event->job_id] || event->kind == TAKT_ENGINE_OUTCOME);
			ended[event->job_id] |= event->kind == TAKT_ENGINE_ENDED;
		}
	}
}

static void test_it_notices_a_gpu_handed_out_twice(void **state)
{
	struct fake_engine_config config = {.run_max_ms = UINT32_MAX};
	struct takt_engine *engine = fake_engine_new(&config);
	struct takt_action actions[] = {
		{.id = 1, .kind = TAKT_ACTION_START, .job_id = 1, .attempt = 1, .gpu_mask = 6},
		{.id = 2, .kind = TAKT_ACTION_START, .job_id = 2, .attempt = 1, .gpu_mask = 4},
		{.id = 3, .kind = TAKT_ACTION_START, .job_id = 1, .attempt = 2, .gpu_mask = 8},
		{.id = 4, .kind = TAKT_ACTION_START, .job_id = 3, .attempt = 1, .gpu_mask = 1},
	};
	uint64_t next;

	assert_int_equal(takt_engine_apply(engine, actions, 4, NULL), 0);
	assert_int_equal(takt_engine_pump(engine, (struct takt_boot){1}, &next, NULL), 0);
	assert_int_equal(fake_engine_violations(engine), 2);
	assert_int_equal(fake_engine_alive(engine), 2);
	assert_true(fake_engine_end(engine, 1, TAKT_END_EXITED, 0));
	assert_false(fake_engine_end(engine, 2, TAKT_END_EXITED, 0));
	assert_int_equal(takt_engine_pump(engine, (struct takt_boot){2}, &next, NULL), 0);
	assert_int_equal(fake_engine_alive(engine), 1);
	takt_engine_free(engine);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_start_has_one_outcome_and_one_end),
		cmocka_unit_test(test_the_same_seed_says_the_same),
		cmocka_unit_test(test_nothing_follows_an_end),
		cmocka_unit_test(test_it_notices_a_gpu_handed_out_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
