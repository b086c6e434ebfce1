/* SPDX-License-Identifier: Apache-2.0 */
/* A governor's steps as text: made again they come to the same wishes and the same state, a torn
 * end does not count, and what is no log is refused with its line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "clock/epoch_log.h"
#include "governor_kit.h"

enum {
	EPOCHS = 60,
};

struct scene {
	struct kit kit;
	struct takt_str log;
	struct takt_epoch_replay replay;
};

/* The kit's boards have power limits too. */
static void observe(const struct kit *kit, double noise, struct takt_governor_observation *ret)
{
	*ret = (struct takt_governor_observation){
		.has = TAKT_OBSERVED_WORK | TAKT_OBSERVED_POWER | TAKT_OBSERVED_ENERGY |
		       TAKT_OBSERVED_TEMP,
		.now_ns = kit->now_ns + 2000000000,
		.epoch_ns = 2000000000,
		.cap = kit->wish.cap,
		.work = 2 / (1 + 0.3 * (1 / kit_share(kit) - 1)) * (1 + noise),
		.signal = TAKT_SIGNAL_JOB,
		.power_mw = (uint32_t)(kit_power_w(kit) * 1000),
		.energy_mj = (uint64_t)(kit_power_w(kit) * 2000),
		.temp_c = -3,
	};
}

static void tell(struct scene *scene, const struct takt_governor_observation *seen)
{
	struct kit *kit = &scene->kit;

	takt_governor_step(kit->governor, kit->state.bytes, &kit->setup, seen, &kit->wish);
	kit->now_ns = seen->now_ns;
	assert_int_equal(takt_epoch_log_step(seen, &kit->wish, &scene->log), 0);
}

static void write_log_with(struct scene *scene, const char *governor,
			   const struct takt_governor_param *params, size_t param_count)
{
	struct takt_governor_observation seen = {.now_ns = 5};

	memset(scene, 0, sizeof(*scene));
	scene->log = TAKT_STR(TAKT_EPOCH_LOG_MAX_BYTES);
	kit_begin(&scene->kit, governor);
	scene->kit.setup.job.name = "train me";
	scene->kit.setup.params = params;
	scene->kit.setup.param_count = param_count;
	scene->kit.rising_w = 200;
	scene->kit.fixed_w = 100;
	assert_int_equal(takt_governor_init(scene->kit.governor, scene->kit.state.bytes,
					    &scene->kit.setup, NULL),
			 0);
	assert_int_equal(takt_epoch_log_head(scene->kit.governor, &scene->kit.setup, &scene->log),
			 0);
	tell(scene, &seen);
	for (int i = 0; i < EPOCHS; i++) {
		observe(&scene->kit, i % 7 * 0.001, &seen);
		tell(scene, &seen);
	}
}

static void write_log(struct scene *scene, const char *governor)
{
	write_log_with(scene, governor, NULL, 0);
}

static int again(struct scene *scene, const char *text, size_t len, struct takt_err *err)
{
	return takt_epoch_replay(NULL, text, len, NULL, NULL, &scene->replay, err);
}

/* Some refuse a job such as the kit's: it promises no latency, say. */
static bool begins(const struct takt_governor *governor)
{
	static struct kit kit;

	kit_begin(&kit, "observe");
	return takt_governor_init(governor, kit.state.bytes, &kit.setup, NULL) == 0;
}

static void the_same_inputs_lead_to_the_same(void **state)
{
	static struct scene scene;
	size_t tried = 0;

	for (size_t i = 0; takt_governor_all[i]; i++) {
		const struct takt_governor *governor = takt_governor_all[i];

		if (!begins(governor))
			continue;
		tried++;
		write_log(&scene, governor->name);
		assert_int_equal(again(&scene, scene.log.s, scene.log.len, NULL), 0);
		assert_int_equal(scene.replay.steps, EPOCHS + 1);
		assert_int_equal(scene.replay.differing, 0);
		assert_ptr_equal(scene.replay.governor, governor);
		assert_string_equal(scene.replay.setup.job.name, "train me");
		assert_memory_equal(scene.replay.state, scene.kit.state.bytes,
				    governor->state_bytes);
		assert_memory_equal(&scene.replay.wish, &scene.kit.wish, sizeof(scene.kit.wish));
		takt_epoch_replay_fini(&scene.replay);
		takt_str_fini(&scene.log);
	}
	assert_true(tried >= 10);
}

static void parameters_are_kept(void **state)
{
	static const struct takt_governor_param params[] = {{"window", 3}, {"eta_permille", 900}};
	static struct scene scene;

	write_log_with(&scene, "zeus-cost", params, TAKT_ARRAY_LEN(params));
	assert_non_null(strstr(scene.log.s, "\nparams window=3 eta_permille=900\nstep "));
	assert_int_equal(again(&scene, scene.log.s, scene.log.len, NULL), 0);
	assert_int_equal(scene.replay.steps, EPOCHS + 1);
	assert_int_equal(scene.replay.differing, 0);
	assert_int_equal(scene.replay.setup.param_count, 2);
	assert_string_equal(scene.replay.setup.params[1].name, "eta_permille");
	assert_int_equal(scene.replay.setup.params[1].value, 900);
	takt_epoch_replay_fini(&scene.replay);
	/* Others lead elsewhere. */
	strstr(scene.log.s, "window=3")[strlen("window=")] = '1';
	assert_int_equal(again(&scene, scene.log.s, scene.log.len, NULL), 0);
	assert_true(scene.replay.differing > 0);
	takt_epoch_replay_fini(&scene.replay);
	takt_str_fini(&scene.log);
}

static void step_nowhere(void *state, const struct takt_governor_setup *setup,
			 const struct takt_governor_observation *seen,
			 struct takt_governor_wish *ret)
{
	ret->reason = TAKT_REASON_OBSERVE;
}

static void governors_of_others_are_found_where_they_are(void **state)
{
	static const struct takt_governor own = {.abi = TAKT_GOVERNOR_ABI,
						 .name = "own",
						 .summary = "nothing",
						 .step = step_nowhere};
	static const struct takt_governor *const more[] = {&own, NULL};
	const struct takt_governors all = {more};
	static const char text[] = "takt-epochs 1\ngovernor own 0 1\njob 0 0 0 0 0 x\n"
				   "board 1 0 0 0 0 0 0\nclocks 210 300\n";
	static struct scene scene;

	assert_int_equal(again(&scene, text, strlen(text), NULL), -TAKT_E_NOT_FOUND);
	assert_int_equal(
		takt_epoch_replay(&all, text, strlen(text), NULL, NULL, &scene.replay, NULL), 0);
	assert_ptr_equal(scene.replay.governor, &own);
	takt_epoch_replay_fini(&scene.replay);
}

static void a_torn_end_does_not_count(void **state)
{
	static struct scene scene;

	write_log(&scene, "assured");
	assert_int_equal(again(&scene, scene.log.s, scene.log.len - 1, NULL), 0);
	assert_int_equal(scene.replay.steps, EPOCHS);
	assert_int_equal(scene.log.s[scene.replay.whole_bytes - 1], '\n');
	assert_true(scene.replay.whole_bytes < scene.log.len);
	takt_epoch_replay_fini(&scene.replay);
	takt_str_fini(&scene.log);
}

/* Another digit in what was wished: the step is named. */
static void a_wish_that_differs_is_counted(void **state)
{
	static struct scene scene;
	char *last;

	write_log(&scene, "assured");
	scene.log.s[scene.log.len - 1] = '\0';
	last = strrchr(scene.log.s, ' ');
	*last = '\0';
	last = strrchr(scene.log.s, ' ') + 1; /* whether it probes */
	*last = *last == '0' ? '1' : '0';
	last[1] = ' ';
	scene.log.s[scene.log.len - 1] = '\n';
	assert_int_equal(again(&scene, scene.log.s, scene.log.len, NULL), 0);
	assert_int_equal(scene.replay.differing, 1);
	assert_int_equal(scene.replay.first_differing, EPOCHS + 1);
	takt_epoch_replay_fini(&scene.replay);
	takt_str_fini(&scene.log);
}

static void what_is_no_log_is_refused(void **state)
{
	static const struct {
		const char *text, *says;
		int rc;
	} rows[] = {
		{"", "line 1 is not the head", -TAKT_E_CORRUPT},
		{"takt-epochs 2\n", "the head of a log", -TAKT_E_CORRUPT},
		{"takt-epochs 1\ngovernor nobody 1 1\n", "no governor 'nobody'", -TAKT_E_NOT_FOUND},
		{"takt-epochs 1\ngovernor assured 1\n", "line 3 is not the governor's",
		 -TAKT_E_CORRUPT},
		{"takt-epochs 1\ngovernor assured 1 1\njob 2 0 0 0 0 x\n", "the job's",
		 -TAKT_E_CORRUPT},
		{"takt-epochs 1\ngovernor observe 0 1\njob 0 0 0 0 0 x\nboard 1 0 0 0 0 0 0\n"
		 "clocks 210 x\n",
		 "one of clocks", -TAKT_E_CORRUPT},
		{"takt-epochs 1\ngovernor observe 0 1\njob 0 0 0 0 0 x\nboard 1 0 0 0 0 0 0\n"
		 "clocks 210 200\n",
		 "not ascending", -EINVAL},
		{"takt-epochs 1\ngovernor observe 0 1\njob 0 0 0 0 0 x\nboard 1 0 0 0 0 0 0\n"
		 "clocks 210 300\nstep 1 2 3\n",
		 "line 6 is not a step", -TAKT_E_CORRUPT},
		{"takt-epochs 1\ngovernor ladder 0 1\njob 0 0 0 0 0 x\nboard 1 0 0 0 0 0 0\n"
		 "clocks 210 300\nparams dwell=x\n",
		 "one of parameters", -TAKT_E_CORRUPT},
		{"takt-epochs 1\ngovernor ladder 0 1\njob 0 0 0 0 0 x\nboard 1 0 0 0 0 0 0\n"
		 "clocks 210 300\nparams dwell=0\n",
		 "dwell must be 1 to 1000000, not 0", -TAKT_E_USAGE},
	};
	static struct scene scene;

	for (size_t i = 0; i < TAKT_ARRAY_LEN(rows); i++) {
		struct takt_err err = {0};

		assert_int_equal(again(&scene, rows[i].text, strlen(rows[i].text), &err),
				 rows[i].rc);
		if (!strstr(err.msg, rows[i].says))
			fail_msg("'%s' does not say '%s'", err.msg, rows[i].says);
	}
}

static void every_allocation_may_fail(void **state)
{
	static struct scene scene;
	struct takt_err err;
	int rc = -ENOMEM;

	write_log(&scene, "ladder");
	for (uint64_t nth = 1; rc == -ENOMEM && nth < 10; nth++) {
		takt_alloc_fail_nth(nth, false);
		rc = again(&scene, scene.log.s, scene.log.len, &err);
		takt_alloc_fail_nth(0, false);
		assert_true(rc == 0 || rc == -ENOMEM);
	}
	assert_int_equal(rc, 0);
	takt_epoch_replay_fini(&scene.replay);
	takt_str_fini(&scene.log);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_inputs_lead_to_the_same),
		cmocka_unit_test(parameters_are_kept),
		cmocka_unit_test(governors_of_others_are_found_where_they_are),
		cmocka_unit_test(a_torn_end_does_not_count),
		cmocka_unit_test(a_wish_that_differs_is_counted),
		cmocka_unit_test(what_is_no_log_is_refused),
		cmocka_unit_test(every_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
