/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lock that somebody else set before takt came is never taken the place of unknowingly: what is
 * seen of a board, and what follows. The boards of the fake machine are the witness: `locked`,
 * `range` and how often the driver was called.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "actuate_kit.h"
#include "base/compiler.h"
#include "base/str.h"

enum {
	SM = TAKT_KNOB_BIT(TAKT_KNOB_SM_CLOCK),
	POWER = TAKT_KNOB_BIT(TAKT_KNOB_POWER_LIMIT),
	TOP_MHZ = 1980,
	STEP_MHZ = 15,
	THEIRS_MHZ = 1200,
	LONG_MS = 4000, /* more than it takes to make up one's mind */
	SOON_MS = 400,	/* one look later */
};

static struct kit kit;

static struct fake_board *board(void)
{
	return &kit.machine.boards[0];
}

static const struct takt_keeper_gpu *gpu(void)
{
	return &kit_keeper(&kit)->gpus[0];
}

static void is_idle(void)
{
	board()->runs_at_mhz = 345;
	board()->util_pct = 0;
	board()->throttle = TAKT_THROTTLE_IDLE;
}

/* At the top of what it may. */
static void is_busy(void)
{
	board()->runs_at_mhz = 0;
	board()->util_pct = 100;
	board()->throttle = 0;
}

static void others_lock(void)
{
	board()->locked = true;
	board()->range = (struct takt_clock_range){210, THEIRS_MHZ};
}

static int setup(void **state)
{
	kit_init(&kit, 2);
	kit.looks = true;
	kit_start(&kit);
	is_idle();
	return 0;
}

static int teardown(void **state)
{
	kit_fini(&kit);
	return 0;
}

static void wish_all(struct takt_setting setting)
{
	assert_int_equal(takt_keeper_set(kit_keeper(&kit), 0, &setting, 9, 4, kit_now(&kit), NULL),
			 0);
	kit_run(&kit, 50);
}

static void wish(uint32_t max_mhz)
{
	wish_all((struct takt_setting){.knobs = SM, .sm = {210, max_mhz}});
}

static void restore(void)
{
	takt_keeper_restore(kit_keeper(&kit), 0, kit_now(&kit));
	kit_run(&kit, 50);
}

static enum takt_actuate_gpu_state state_now(void)
{
	return takt_keeper_state(gpu());
}

static void assert_set(uint32_t max_mhz)
{
	assert_true(board()->locked);
	assert_int_equal(board()->range.max_mhz, max_mhz);
	assert_int_equal(state_now(), TAKT_ACTUATE_LEASED);
	assert_true(gpu()->settled);
	assert_int_equal(gpu()->outcome.rc, 0);
}

static void assert_untouched(enum takt_actuate_gpu_state state, int rc)
{
	assert_int_equal(board()->sets + board()->resets, 0);
	assert_null(takt_journal_find(&kit.journal, "GPU-fake-0"));
	assert_int_equal(state_now(), state);
	assert_true(gpu()->settled);
	assert_int_equal(gpu()->outcome.rc, rc);
}

static void assert_says(const char *words)
{
	assert_non_null(strstr(gpu()->note, words));
	assert_non_null(strstr(gpu()->note, "'takt clock apply'"));
	assert_non_null(strstr(gpu()->note, "--assume-unlocked"));
	assert_true(strlen(gpu()->note) < sizeof(gpu()->note) - 1);
}

static void one_at_its_highest_clock_is_set_at_once(void **state)
{
	is_busy();
	wish(900);
	assert_set(900);
}

static void one_that_idles_at_its_highest_clock_too(void **state)
{
	board()->runs_at_mhz = TOP_MHZ;
	wish(900);
	assert_set(900);
}

static void one_step_below_is_high_enough_and_two_are_not(void **state)
{
	is_busy();
	board()->runs_at_mhz = TOP_MHZ - 2 * STEP_MHZ;
	wish(900);
	kit_run(&kit, LONG_MS);
	assert_untouched(TAKT_ACTUATE_ADVISE, -EPERM);
	board()->runs_at_mhz = TOP_MHZ - STEP_MHZ;
	kit_run(&kit, SOON_MS);
	assert_int_equal(board()->sets, 1);
}

static void an_idle_one_waits_for_its_load(void **state)
{
	wish(900);
	assert_untouched(TAKT_ACTUATE_WAITING, -EAGAIN);
	assert_says("clock not set yet: first to be seen under load");
	kit_run(&kit, LONG_MS);
	assert_untouched(TAKT_ACTUATE_WAITING, -EAGAIN);
	is_busy();
	kit_run(&kit, SOON_MS);
	assert_set(900);
	assert_string_equal(gpu()->note, "");
	restore();
	assert_false(board()->locked);
	assert_true(takt_keeper_all_clean(kit_keeper(&kit)));
}

static void a_lock_of_others_stays_as_it_is(void **state)
{
	others_lock();
	wish(900);
	is_busy();
	kit_run(&kit, LONG_MS);
	assert_untouched(TAKT_ACTUATE_ADVISE, -EPERM);
	assert_says("it ran at 1200 MHz under load for no reason");
	assert_non_null(strstr(gpu()->note, "nvidia-smi -rgc"));
	assert_non_null(strstr(kit.log, "1200 MHz"));
	restore();
	kit_run(&kit, LONG_MS);
	assert_int_equal(board()->sets + board()->resets, 0);
	assert_int_equal(board()->range.max_mhz, THEIRS_MHZ);
	assert_int_equal(state_now(), TAKT_ACTUATE_CLEAN);
	is_idle(); /* and is not forgotten */
	wish(1000);
	assert_untouched(TAKT_ACTUATE_ADVISE, -EPERM);
}

static void once_they_lift_it_the_wish_is_set(void **state)
{
	others_lock();
	wish(900);
	is_busy();
	kit_run(&kit, LONG_MS);
	assert_untouched(TAKT_ACTUATE_ADVISE, -EPERM);
	board()->locked = false;
	kit_run(&kit, SOON_MS);
	assert_set(900);
}

static void what_is_held_back_tells_nothing(void **state)
{
	static const struct {
		uint64_t bit;
		const char *name;
	} reasons[] = {
		{TAKT_THROTTLE_APP_CLOCKS, "applications_clocks_setting"},
		{TAKT_THROTTLE_SW_POWER, "sw_power_cap"},
		{TAKT_THROTTLE_HW_SLOWDOWN, "hw_slowdown"},
		{TAKT_THROTTLE_SYNC_BOOST, "sync_boost"},
		{TAKT_THROTTLE_SW_THERMAL, "sw_thermal_slowdown"},
		{TAKT_THROTTLE_HW_THERMAL, "hw_thermal_slowdown"},
		{TAKT_THROTTLE_POWER_BRAKE, "hw_power_brake_slowdown"},
		{TAKT_THROTTLE_DISPLAY, "display_clock_setting"},
	};

	wish(900);
	is_busy();
	board()->runs_at_mhz = 1700;
	for (size_t i = 0; i < TAKT_ARRAY_LEN(reasons); i++) {
		board()->throttle = reasons[i].bit;
		kit_run(&kit, LONG_MS);
		assert_untouched(TAKT_ACTUATE_WAITING, -EAGAIN);
		assert_says(reasons[i].name);
	}
	is_busy();
	kit_run(&kit, 1100); /* it was looked at seldom by then */
	assert_set(900);
}

/* Load that begins and ends, or is slight: its clock is on the way, or need not be high. */
static void a_moment_below_tells_nothing(void **state)
{
	wish(900);
	for (int i = 0; i < 5; i++) {
		is_busy();
		board()->runs_at_mhz = 1000;
		kit_run(&kit, 1500);
		is_idle();
		kit_run(&kit, SOON_MS);
	}
	board()->throttle = 0;
	board()->util_pct = 30;
	kit_run(&kit, LONG_MS);
	assert_untouched(TAKT_ACTUATE_WAITING, -EAGAIN);
}

static void a_declared_baseline_ends_the_question(void **state)
{
	static const char *const files[] = {"GPU-fake-0 reset\n", "* range 210 1410\n"};

	kit_die(&kit);
	assert_int_equal(takt_baseline_parse("GPU-fake-1 reset\n", 17, &kit.baseline, NULL), 0);
	kit_start(&kit);
	wish(900);
	assert_untouched(TAKT_ACTUATE_WAITING, -EAGAIN); /* it says nothing of this one */
	for (size_t i = 0; i < TAKT_ARRAY_LEN(files); i++) {
		kit_die(&kit);
		assert_int_equal(
			takt_baseline_parse(files[i], strlen(files[i]), &kit.baseline, NULL), 0);
		kit_start(&kit);
		wish(900);
		assert_set(900);
		restore();
	}
}

/* What stood there is known once takt itself has lifted it. */
static void after_takts_own_reset_nobodys_lock_is_left(void **state)
{
	others_lock();
	takt_keeper_reset(kit_keeper(&kit), 0, kit_now(&kit));
	kit_run(&kit, 50);
	assert_false(board()->locked);
	wish(900);
	assert_set(900);
	restore();
	wish(795);
	assert_set(795);
}

static void a_refused_reset_proves_nothing(void **state)
{
	board()->reset_rc = -EPERM;
	takt_keeper_reset(kit_keeper(&kit), 0, kit_now(&kit));
	kit_run(&kit, 50);
	board()->reset_rc = 0;
	wish(900);
	assert_int_equal(state_now(), TAKT_ACTUATE_WAITING);
	assert_int_equal(board()->sets, 0);
}

static void the_next_process_looks_for_itself(void **state)
{
	is_busy();
	wish(900);
	assert_set(900);
	restore();
	kit_die(&kit);
	is_idle();
	others_lock();
	kit_start(&kit);
	wish(900);
	is_busy();
	kit_run(&kit, LONG_MS);
	assert_int_equal(state_now(), TAKT_ACTUATE_ADVISE);
	assert_int_equal(board()->range.max_mhz, THEIRS_MHZ);
	assert_int_equal(board()->sets, 1);
}

/* takt's own lock is no evidence of another's. */
static void one_that_was_killed_over_its_own_lock_is_no_riddle(void **state)
{
	is_busy();
	wish(900);
	kit_die(&kit);
	kit_start(&kit);
	wish(795);
	assert_set(795);
}

static void a_board_that_says_nothing_is_left_alone(void **state)
{
	board()->silent_samples = true;
	wish(900);
	kit_run(&kit, 600);
	assert_untouched(TAKT_ACTUATE_WAITING, -EAGAIN);
	board()->silent_samples = false;
	is_busy();
	board()->has_not = TAKT_HAS_SM_CLOCK;
	kit_run(&kit, LONG_MS);
	assert_untouched(TAKT_ACTUATE_WAITING, -EAGAIN);
	others_lock();
	board()->has_not = TAKT_HAS_THROTTLE;
	kit_run(&kit, LONG_MS);
	assert_untouched(TAKT_ACTUATE_WAITING, -EAGAIN);
	board()->has_not = TAKT_HAS_GPU_UTIL; /* as with MIG */
	kit_run(&kit, LONG_MS);
	assert_untouched(TAKT_ACTUATE_ADVISE, -EPERM);
}

static void wish_both(uint32_t max_mhz, uint32_t limit_mw)
{
	wish_all((struct takt_setting){
		.knobs = SM | POWER, .sm = {210, max_mhz}, .power_limit_mw = limit_mw});
}

static void assert_only_limited(uint32_t limit_mw, enum takt_actuate_gpu_state state, int rc)
{
	assert_int_equal(board()->power_limit_mw, limit_mw);
	assert_int_equal(board()->sets, 0);
	assert_int_equal(state_now(), state);
	assert_int_equal(gpu()->outcome.rc, rc);
}

static void only_the_sm_clock_waits(void **state)
{
	wish_all((struct takt_setting){.knobs = POWER, .power_limit_mw = 300000});
	assert_int_equal(board()->power_limit_mw, 300000);
	assert_int_equal(state_now(), TAKT_ACTUATE_LEASED);
	wish_both(900, 250000);
	kit_run(&kit, 600);
	assert_only_limited(250000, TAKT_ACTUATE_WAITING, -EAGAIN);
	assert_says("clock not set yet");
	is_busy();
	kit_run(&kit, SOON_MS);
	assert_set(900);
	assert_int_equal(board()->power_limit_mw, 250000);
	restore();
	assert_int_equal(board()->power_limit_mw, 400000);
	assert_true(takt_keeper_all_clean(kit_keeper(&kit)));
}

/* A board that power holds back throughout is never seen at its top, and a budget needs its limit.
 */
static void a_limit_comes_though_power_holds_the_board_back(void **state)
{
	is_busy();
	board()->runs_at_mhz = 1700;
	board()->throttle = TAKT_THROTTLE_SW_POWER;
	wish_both(900, 250000);
	kit_run(&kit, LONG_MS);
	assert_only_limited(250000, TAKT_ACTUATE_WAITING, -EAGAIN);
	wish_both(900, 200000); /* a share that shrinks */
	kit_run(&kit, SOON_MS);
	assert_only_limited(200000, TAKT_ACTUATE_WAITING, -EAGAIN);
	kit_die(&kit);
	kit_start(&kit);
	kit_run(&kit, 50);
	assert_int_equal(board()->power_limit_mw, 400000);
}

static void a_limit_holds_beside_a_clock_that_may_be_anothers(void **state)
{
	others_lock();
	is_busy();
	wish_both(900, 250000);
	kit_run(&kit, LONG_MS);
	assert_only_limited(250000, TAKT_ACTUATE_ADVISE, -EPERM);
	assert_says("1200 MHz");
	restore();
	assert_int_equal(board()->power_limit_mw, 400000);
	assert_int_equal(board()->range.max_mhz, THEIRS_MHZ);
}

static void a_limit_beside_a_clock_that_waits_is_looked_at(void **state)
{
	wish_both(900, 250000);
	assert_only_limited(250000, TAKT_ACTUATE_WAITING, -EAGAIN);
	board()->power_limit_mw = 350000; /* nvidia-smi -pl 350 */
	kit_run(&kit, 6000);
	assert_int_equal(state_now(), TAKT_ACTUATE_FOREIGN);
	assert_int_equal(board()->power_limit_mw, 350000);
}

static struct takt_actuate_reply ask(uint32_t op, uint64_t lease, bool assume)
{
	struct takt_actuate_request request = {
		.version = TAKT_ACTUATE_VERSION,
		.op = op,
		.lease_id = lease,
		.job_id = lease,
		.ttl_ns = 10 * TAKT_NS_PER_S,
		.rank = TAKT_ACTUATE_RANK_JOB,
		.max_mhz = 900,
		.assume_unlocked = assume,
		.uuid = "GPU-fake-0",
	};
	struct takt_actuate_reply reply;
	uint64_t whose;
	bool done = takt_actuator_request(kit.actuator, 1, &request, kit_now(&kit), &reply);

	for (int i = 0; !done && i < 1000; i++) {
		kit_run(&kit, 10);
		done = takt_actuator_reply(kit.actuator, &whose, &reply);
	}
	assert_true(done);
	return reply;
}

static void a_lease_is_answered_kept_and_set_later(void **state)
{
	struct takt_actuate_reply reply = ask(TAKT_ACTUATE_SET, 5, false);

	assert_int_equal(reply.rc, -EAGAIN);
	assert_int_equal(reply.gpu_state, TAKT_ACTUATE_WAITING);
	assert_string_equal(reply.message, gpu()->note);
	is_busy();
	kit_run(&kit, SOON_MS);
	assert_true(board()->locked);
	assert_int_equal(ask(TAKT_ACTUATE_STATUS, 0, false).applied_max_mhz, 900);
	assert_int_equal(ask(TAKT_ACTUATE_SET, 5, false).rc, 0);
	assert_int_equal(ask(TAKT_ACTUATE_END, 5, false).rc, 0);
	assert_false(board()->locked);
}

static void a_lease_ends_while_it_waits(void **state)
{
	assert_int_equal(ask(TAKT_ACTUATE_SET, 5, false).rc, -EAGAIN);
	assert_int_equal(ask(TAKT_ACTUATE_END, 5, false).rc, 0);
	assert_int_equal(ask(TAKT_ACTUATE_SET, 6, false).rc, -EAGAIN);
	kit_run(&kit, 11000); /* nobody renews it */
	is_busy();
	kit_run(&kit, LONG_MS);
	assert_int_equal(board()->sets + board()->resets, 0);
	assert_int_equal(state_now(), TAKT_ACTUATE_CLEAN);
}

static void an_administrators_word_is_enough(void **state)
{
	assert_int_equal(ask(TAKT_ACTUATE_SET, 5, false).rc, -EAGAIN);
	assert_int_equal(ask(TAKT_ACTUATE_SET, 5, true).rc, 0);
	assert_set(900);
	assert_int_equal(gpu()->found_mw, 0);
}

static void an_administrators_word_outweighs_a_doubt(void **state)
{
	others_lock();
	is_busy();
	assert_int_equal(ask(TAKT_ACTUATE_SET, 5, false).rc, -EPERM);
	assert_int_equal(ask(TAKT_ACTUATE_SET, 5, true).rc, 0);
	assert_set(900);
}

static void every_look_may_be_the_last_before_death(void **state)
{
	for (unsigned ms = 0; ms < 3000; ms += 70) {
		is_idle();
		others_lock();
		wish(900);
		is_busy();
		kit_run(&kit, ms);
		kit_die(&kit);
		kit_start(&kit);
		kit_run(&kit, 50);
		assert_int_equal(board()->sets + board()->resets, 0);
		assert_int_equal(board()->range.max_mhz, THEIRS_MHZ);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		CASE(one_at_its_highest_clock_is_set_at_once),
		CASE(one_that_idles_at_its_highest_clock_too),
		CASE(one_step_below_is_high_enough_and_two_are_not),
		CASE(an_idle_one_waits_for_its_load),
		CASE(a_lock_of_others_stays_as_it_is),
		CASE(once_they_lift_it_the_wish_is_set),
		CASE(what_is_held_back_tells_nothing),
		CASE(a_moment_below_tells_nothing),
		CASE(a_declared_baseline_ends_the_question),
		CASE(after_takts_own_reset_nobodys_lock_is_left),
		CASE(a_refused_reset_proves_nothing),
		CASE(the_next_process_looks_for_itself),
		CASE(one_that_was_killed_over_its_own_lock_is_no_riddle),
		CASE(a_board_that_says_nothing_is_left_alone),
		CASE(only_the_sm_clock_waits),
		CASE(a_limit_comes_though_power_holds_the_board_back),
		CASE(a_limit_holds_beside_a_clock_that_may_be_anothers),
		CASE(a_limit_beside_a_clock_that_waits_is_looked_at),
		CASE(a_lease_is_answered_kept_and_set_later),
		CASE(a_lease_ends_while_it_waits),
		CASE(an_administrators_word_is_enough),
		CASE(an_administrators_word_outweighs_a_doubt),
		CASE(every_look_may_be_the_last_before_death),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
