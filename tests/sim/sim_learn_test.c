/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Run times learned during a simulation: nothing is known at first, nothing is known of the future,
 * and outlooks are given once for each change.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/mem.h"
#include "sim/queue_learn.h"

#define S UINT64_C(1000000000)

enum {
	JOBS = 8
};

struct world {
	struct takt_sim_work work;
	struct takt_queue_learner learner;
	struct takt_sim_job short_job, long_job;
};

static int begin(void **state)
{
	static struct world world;
	struct takt_sim_kind kind = {.gpus = 1, .milli = 1000};

	world = (struct world){.short_job = {.user = 1}, .long_job = {.user = 2}};
	world.work.kinds.max = 4;
	assert_int_equal(takt_vec_push(&world.work.kinds, kind), 0);
	assert_int_equal(takt_queue_learner_init(&world.learner, &world.work, JOBS, NULL), 0);
	*state = &world;
	return 0;
}

static int end(void **state)
{
	struct world *world = *state;

	takt_queue_learner_fini(&world->learner);
	takt_vec_fini(&world->work.kinds);
	return 0;
}

static bool predict(struct world *world, uint32_t index, const struct takt_sim_job *job,
		    uint64_t *ret_ns)
{
	return world->learner.predictor.predict(&world->learner, index, job, ret_ns);
}

static void observe(struct world *world, uint32_t index, uint64_t seconds)
{
	assert_int_equal(world->learner.predictor.observe(&world->learner, index, seconds * S), 0);
}

static void test_predicts_from_the_user_s_own_jobs(void **state)
{
	struct world *world = *state;
	uint64_t ns = 77;

	for (uint32_t i = 0; i < 3; i++) {
		assert_false(predict(world, i, &world->short_job, &ns));
		assert_int_equal(ns, 77);
	}
	for (uint32_t i = 0; i < 3; i++)
		observe(world, i, 100);
	assert_true(predict(world, 3, &world->short_job, &ns));
	assert_int_equal(ns, 100 * S);
	/* Of others until their own have ended: all jobs. */
	for (uint32_t i = 4; i < 7; i++)
		assert_true(predict(world, i, &world->long_job, &ns));
	for (uint32_t i = 4; i < 7; i++)
		observe(world, i, 5000);
	assert_true(predict(world, 7, &world->long_job, &ns));
	assert_int_equal(ns, 5000 * S);
}

static void test_outlooks_are_given_once_for_each_change(void **state)
{
	struct world *world = *state;
	const struct takt_queue_predictor *predictor = &world->learner.predictor;
	struct takt_sched_outlook outlook;
	uint32_t id = 0, other = 0;
	uint64_t first;

	assert_int_equal(predictor->kind(&world->learner, 0, &world->short_job, &id), 0);
	assert_int_equal(id, 1);
	assert_int_equal(predictor->kind(&world->learner, 1, &world->long_job, &other), 0);
	assert_int_equal(other, 2);
	assert_true(predictor->outlook(&world->learner, id, &outlook));
	assert_int_equal(outlook.id, id);
	assert_int_equal(outlook.is.age_s[0], 0);
	first = outlook.is.rank_s[0];
	assert_false(predictor->outlook(&world->learner, id, &outlook));
	/* A job that has run for a day says that this kind may run long. */
	predictor->reached(&world->learner, 0, 86400 * S);
	assert_true(predictor->outlook(&world->learner, id, &outlook));
	assert_true(outlook.is.rank_s[0] > first);
	predictor->reached(&world->learner, 0, 86400 * S);
	assert_false(predictor->outlook(&world->learner, id, &outlook));
}

static void test_every_allocation_may_fail(void **state)
{
	struct world *world = *state;
	struct takt_queue_learner learner;
	unsigned long nth = 0;
	int rc;

	do {
		takt_alloc_fail_nth(++nth, 0);
		rc = takt_queue_learner_init(&learner, &world->work, JOBS, NULL);
		if (rc == 0) {
			uint32_t id;

			rc = learner.predictor.kind(&learner, 0, &world->short_job, &id);
			takt_queue_learner_fini(&learner);
		}
		takt_alloc_fail_nth(0, 0);
	} while (rc < 0);
	assert_true(nth > 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_predicts_from_the_user_s_own_jobs, begin, end),
		cmocka_unit_test_setup_teardown(test_outlooks_are_given_once_for_each_change, begin,
						end),
		cmocka_unit_test_setup_teardown(test_every_allocation_may_fail, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
