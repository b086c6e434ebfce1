/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of the boards: set, restored, refused, hung, lost, and found changed by the next
 * process. The boards of the fake machine are the witness, not the journal.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "actuate_kit.h"
#include "base/compiler.h"
#include "base/str.h"

enum {
	SM = TAKT_KNOB_BIT(TAKT_KNOB_SM_CLOCK),
	POWER = TAKT_KNOB_BIT(TAKT_KNOB_POWER_LIMIT),
};

static struct kit kit;

static int setup(void **state)
{
	kit_init(&kit, 3);
	kit_start(&kit);
	return 0;
}

static int teardown(void **state)
{
	kit_fini(&kit);
	return 0;
}

static const struct takt_keeper_gpu *gpu(uint32_t g)
{
	return &kit_keeper(&kit)->gpus[g];
}

static struct fake_board *board(uint32_t g)
{
	return &kit.machine.boards[g];
}

static void set(uint32_t g, uint32_t min, uint32_t max)
{
	const struct takt_setting setting = {.knobs = SM, .sm = {min, max}};

	assert_int_equal(
		takt_keeper_set(kit_keeper(&kit), g, &setting, 100 + g, 7, kit_now(&kit), NULL), 0);
	kit_run(&kit, 30);
}

static int try_set(uint32_t g, struct takt_setting setting, struct takt_err *err)
{
	return takt_keeper_set(kit_keeper(&kit), g, &setting, 1, 1, kit_now(&kit), err);
}

static void restore(uint32_t g)
{
	takt_keeper_restore(kit_keeper(&kit), g, kit_now(&kit));
	kit_run(&kit, 30);
}

static enum takt_actuate_gpu_state state_of(uint32_t g)
{
	return takt_keeper_state(gpu(g));
}

static void assert_locked(uint32_t g, uint32_t min, uint32_t max)
{
	assert_true(board(g)->locked);
	assert_int_equal(board(g)->range.min_mhz, min);
	assert_int_equal(board(g)->range.max_mhz, max);
}

static void a_range_is_clamped_set_and_read_back(void **state)
{
	set(1, 0, 1417);
	assert_locked(1, 210, 1410);
	assert_int_equal(state_of(1), TAKT_ACTUATE_LEASED);
	assert_true(gpu(1)->settled);
	assert_int_equal(gpu(1)->outcome.rc, 0);
	assert_int_equal(gpu(1)->readback_mhz, 1410);
	assert_false(board(0)->locked);
	assert_false(board(2)->locked);
	restore(1);
	assert_false(board(1)->locked);
	assert_int_equal(state_of(1), TAKT_ACTUATE_CLEAN);
	assert_true(takt_keeper_all_clean(kit_keeper(&kit)));
}

static void the_same_wish_again_calls_no_driver(void **state)
{
	set(0, 0, 900);
	set(0, 0, 905);
	assert_int_equal(board(0)->sets, 1);
	set(0, 0, 600);
	assert_int_equal(board(0)->sets, 2);
	assert_locked(0, 210, 600);
	assert_int_equal(board(0)->resets, 0);
	restore(0);
	restore(0);
	assert_int_equal(board(0)->resets, 1);
}

static void nonsense_is_refused_before_the_journal(void **state)
{
	struct takt_err err;

	assert_int_equal(try_set(0, (struct takt_setting){SM, {900, 800}, 0}, &err), -EINVAL);
	assert_int_equal(try_set(0, (struct takt_setting){POWER, {0, 0}, 99000}, &err), -EINVAL);
	assert_string_equal(err.msg, "a power limit of 99 W: this GPU takes 100 to 400 W");
	board(1)->facts.sm_clock_count = 0;
	assert_int_equal(try_set(1, (struct takt_setting){SM, {0, 800}, 0}, &err),
			 -TAKT_E_UNSUPPORTED);
	board(1)->facts.has &= ~TAKT_FACT_POWER_LIMITS;
	assert_int_equal(try_set(1, (struct takt_setting){POWER, {0, 0}, 200000}, &err),
			 -TAKT_E_UNSUPPORTED);
	kit.machine.info.can_set = false;
	assert_int_equal(try_set(0, (struct takt_setting){SM, {0, 800}, 0}, &err),
			 -TAKT_E_UNSUPPORTED);
	kit_run(&kit, 30);
	assert_null(takt_journal_find(&kit.journal, "GPU-fake-0"));
	assert_int_equal(board(0)->sets, 0);
}

static void an_unreadable_clock_does_not_hold_the_answer_up(void **state)
{
	board(0)->silent_samples = true;
	set(0, 0, 900);
	assert_false(gpu(0)->settled);
	kit_run(&kit, 600);
	assert_true(gpu(0)->settled);
	assert_int_equal(gpu(0)->outcome.rc, 0);
	assert_int_equal(gpu(0)->readback_mhz, 0);
	assert_locked(0, 210, 900);
}

static void without_permission_nothing_changes_and_the_command_is_named(void **state)
{
	board(0)->set_rc = -EPERM;
	set(0, 0, 900);
	assert_int_equal(state_of(0), TAKT_ACTUATE_ADVISE);
	assert_int_equal(gpu(0)->outcome.rc, -EPERM);
	assert_non_null(strstr(gpu(0)->note, "nvidia-smi -i GPU-fake-0 -lgc 210,900"));
	assert_true(takt_keeper_all_clean(kit_keeper(&kit)));
	assert_int_equal(takt_journal_find(&kit.journal, "GPU-fake-0")->state, TAKT_JOURNAL_CLEAN);
	kit_run(&kit, 5000);
	assert_int_equal(board(0)->sets, 1); /* asked once, not for ever */
	restore(0);
	assert_int_equal(state_of(0), TAKT_ACTUATE_CLEAN);
	assert_int_equal(board(0)->resets, 0);
}

static void a_refused_restore_stays_changed_until_it_works(void **state)
{
	unsigned tries;

	set(0, 0, 900);
	board(0)->reset_rc = -EPERM;
	restore(0);
	assert_int_equal(state_of(0), TAKT_ACTUATE_CHANGED);
	assert_int_equal(gpu(0)->outcome.rc, -EPERM);
	assert_non_null(strstr(gpu(0)->note, "nvidia-smi -i GPU-fake-0 -rgc"));
	kit_run(&kit, 20000);
	tries = board(0)->resets;
	assert_in_range(tries, 4, 12); /* again and again, ever more slowly */
	assert_int_equal(state_of(0), TAKT_ACTUATE_CHANGED);
	board(0)->reset_rc = 0;
	kit_run(&kit, 31000);
	assert_false(board(0)->locked);
	assert_int_equal(state_of(0), TAKT_ACTUATE_CLEAN);
	assert_int_equal(takt_journal_find(&kit.journal, "GPU-fake-0")->state, TAKT_JOURNAL_CLEAN);
	assert_non_null(strstr(kit.log, "GPU-fake-0: the baseline is back"));
}

static void a_range_refused_while_another_is_set_brings_the_baseline(void **state)
{
	set(0, 0, 900);
	board(0)->set_rc = -EPERM;
	set(0, 0, 600);
	assert_int_equal(gpu(0)->outcome.rc, -EPERM);
	assert_false(board(0)->locked);
	assert_int_equal(state_of(0), TAKT_ACTUATE_CLEAN);
}

static void a_driver_error_brings_the_baseline(void **state)
{
	board(0)->set_rc = -EIO;
	set(0, 0, 900);
	assert_int_equal(gpu(0)->outcome.rc, -EIO);
	assert_int_equal(board(0)->resets, 1); /* it may have been set in spite of the error */
	assert_true(takt_keeper_all_clean(kit_keeper(&kit)));
}

static void a_hanging_gpu_stalls_nobody_else(void **state)
{
	board(0)->hangs = true;
	set(0, 0, 900);
	set(1, 0, 600);
	assert_locked(1, 210, 600);
	assert_false(gpu(0)->settled);
	kit_run(&kit, 2000);
	assert_true(gpu(0)->settled);
	assert_int_equal(gpu(0)->outcome.rc, -ETIMEDOUT);
	assert_int_equal(state_of(0), TAKT_ACTUATE_UNKNOWN);
	assert_true(takt_keeper_quiet(kit_keeper(&kit)));
	assert_false(takt_keeper_all_clean(kit_keeper(&kit)));
	restore(1);
	assert_false(board(1)->locked);
}

static void what_hung_is_reconciled_when_it_answers(void **state)
{
	board(0)->hangs = board(1)->hangs = true;
	set(0, 0, 900);
	set(1, 0, 900);
	kit_run(&kit, 2500);
	restore(1); /* the lease ended meanwhile */
	fake_boards_unhang(&kit.machine, 0);
	fake_boards_unhang(&kit.machine, 1);
	kit_run(&kit, 50);
	assert_locked(0, 210, 900);
	assert_int_equal(state_of(0), TAKT_ACTUATE_LEASED);
	assert_int_equal(board(1)->sets, 1); /* the late call took effect, */
	assert_false(board(1)->locked);	     /* and was undone */
	assert_int_equal(state_of(1), TAKT_ACTUATE_CLEAN);
}

static void a_lost_gpu_is_unknown_and_tried_again(void **state)
{
	set(0, 0, 900);
	board(0)->set_rc = board(0)->reset_rc = -ENODEV;
	restore(0);
	assert_int_equal(state_of(0), TAKT_ACTUATE_UNKNOWN);
	assert_int_equal(gpu(0)->outcome.rc, -ENODEV);
	kit_run(&kit, 3000);
	board(0)->set_rc = board(0)->reset_rc = 0;
	kit_run(&kit, 5000);
	assert_false(board(0)->locked);
	assert_int_equal(state_of(0), TAKT_ACTUATE_CLEAN);
}

static void a_gpu_lost_while_it_is_set_gets_its_range_when_it_is_back(void **state)
{
	board(0)->set_rc = -ENODEV;
	set(0, 0, 900);
	assert_int_equal(state_of(0), TAKT_ACTUATE_UNKNOWN);
	board(0)->set_rc = 0;
	kit_run(&kit, 2000);
	assert_locked(0, 210, 900);
	assert_int_equal(state_of(0), TAKT_ACTUATE_LEASED);
}

static void a_declared_baseline_is_what_comes_back(void **state)
{
	static const char text[] = "GPU-fake-0 range 300 750\n";

	assert_int_equal(takt_baseline_parse(text, strlen(text), &kit.baseline, NULL), 0);
	set(0, 0, 900);
	set(1, 0, 900);
	restore(0);
	restore(1);
	assert_locked(0, 300, 750);
	assert_false(board(1)->locked);
	assert_int_equal(state_of(0), TAKT_ACTUATE_CLEAN);
}

static void a_new_process_puts_back_what_it_finds_changed(void **state)
{
	set(0, 0, 900);
	set(2, 0, 600);
	restore(2);
	kit_die(&kit);
	assert_locked(0, 210, 900);
	kit_start(&kit);
	assert_int_equal(state_of(0), TAKT_ACTUATE_CHANGED);
	kit_run(&kit, 20);
	assert_false(board(0)->locked);
	assert_int_equal(board(2)->resets, 1); /* clean on record: left alone */
	assert_non_null(strstr(kit.log, "GPU-fake-0: was left at [210,900] MHz for job 7"));
	assert_int_equal(state_of(0), TAKT_ACTUATE_CLEAN);
}

/* The record of GPU 0 as another boot or driver load left it. */
static void record_from_elsewhere(const char *boot_id, const char *load)
{
	struct takt_journal_record record = *takt_journal_find(&kit.journal, "GPU-fake-0");

	if (boot_id)
		takt_strcpy(record.boot_id, sizeof(record.boot_id), boot_id);
	if (load)
		takt_strcpy(record.driver_load, sizeof(record.driver_load), load);
	assert_int_equal(takt_journal_record(&kit.journal, &record, NULL), 0);
}

static void what_a_reboot_or_reload_undid_is_said_and_left_alone(void **state)
{
	static const struct {
		const char *boot, *load, *says;
	} rows[] = {{"another", NULL, "went with the reboot"},
		    {NULL, "550.53 module 3", "went with the reload of the driver"}};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(rows); i++) {
		set(0, 0, 900);
		record_from_elsewhere(rows[i].boot, rows[i].load);
		kit_die(&kit);
		board(0)->locked = false;
		kit_start(&kit);
		kit_run(&kit, 20);
		assert_non_null(strstr(kit.log, rows[i].says));
		assert_int_equal(board(0)->resets, 0);
		assert_true(takt_keeper_all_clean(kit_keeper(&kit)));
		assert_int_equal(takt_journal_find(&kit.journal, "GPU-fake-0")->state,
				 TAKT_JOURNAL_CLEAN);
	}
}

/* Where one process could not tell the boot or the module, nothing is taken for gone. */
static void what_cannot_be_told_to_be_gone_is_put_back(void **state)
{
	char load[TAKT_DRIVER_LOAD + 16];
	const struct {
		const char *boot, *load;
	} rows[] = {{TAKT_NO_BOOT_ID, NULL}, {NULL, load}};

	snprintf(load, sizeof(load), "%s module 3", kit_keeper(&kit)->driver_load);
	for (size_t i = 0; i < TAKT_ARRAY_LEN(rows); i++) {
		set(0, 0, 900);
		record_from_elsewhere(rows[i].boot, rows[i].load);
		kit_die(&kit);
		kit_start(&kit);
		kit_run(&kit, 20);
		assert_false(board(0)->locked);
		assert_true(takt_keeper_all_clean(kit_keeper(&kit)));
	}
}

static void a_changed_gpu_that_is_not_there_stays_on_record(void **state)
{
	set(2, 0, 900);
	kit_die(&kit);
	kit.machine.info.gpu_count = 2;
	kit_start(&kit);
	kit_run(&kit, 20);
	assert_int_equal(kit_keeper(&kit)->unseen, 1);
	assert_non_null(strstr(kit.log, "GPU-fake-2: on record as changed"));
	kit_die(&kit);
	kit.machine.info.gpu_count = 3;
	kit_start(&kit);
	kit_run(&kit, 20);
	assert_false(board(2)->locked);
}

/* Both copies of GPU 0's record, which is the first pair after the holder's. */
static void ruin_record(void)
{
	const struct takt_sys *sys = fake_sys_table(kit.world);
	int fd = sys->openat(sys, AT_FDCWD, KIT_JOURNAL, O_RDWR, 0);
	char noise[1024];

	memset(noise, 0x77, sizeof(noise));
	assert_int_equal(sys->pwrite(sys, fd, noise, sizeof(noise), 1024), sizeof(noise));
	sys->close(sys, fd);
}

static void an_unreadable_record_counts_every_gpu_without_one_as_changed(void **state)
{
	set(0, 0, 900);
	set(1, 0, 900);
	restore(1);
	ruin_record();
	kit_die(&kit);
	kit_start(&kit);
	kit_run(&kit, 20);
	assert_non_null(strstr(kit.log, "1 records of the clock journal are unreadable"));
	assert_false(board(0)->locked);
	assert_int_equal(board(1)->resets, 1); /* has a record of its own: clean */
	assert_int_equal(board(2)->resets, 1); /* has none */
	assert_int_equal(takt_journal_damaged(&kit.journal), 0);
}

/* A keeper that is killed between taking the damage over and restoring is followed by one that does
 * it. */
static void damage_survives_a_kill_in_between(void **state)
{
	set(0, 0, 900);
	ruin_record();
	kit_die(&kit);
	kit_start(&kit);
	kit_die(&kit);
	kit_start(&kit);
	kit_run(&kit, 20);
	assert_false(board(0)->locked);
}

static void nothing_is_set_when_the_journal_cannot_be_written(void **state)
{
	fake_sys_fail_nth(kit.world, FAKE_SYS_FDATASYNC, 1, EIO, true);
	set(0, 0, 900);
	assert_int_equal(gpu(0)->outcome.rc, -EIO);
	assert_int_equal(board(0)->sets, 0);
	fake_sys_fail_nth(kit.world, FAKE_SYS_FDATASYNC, 0, 0, false);
	set(0, 0, 900);
	assert_locked(0, 210, 900);
}

static void a_restore_happens_even_when_the_journal_cannot_be_written(void **state)
{
	set(0, 0, 900);
	fake_sys_fail_nth(kit.world, FAKE_SYS_FDATASYNC, 1, EIO, true);
	restore(0);
	assert_false(board(0)->locked);
	assert_false(takt_keeper_all_clean(kit_keeper(&kit))); /* the record is owed */
	fake_sys_fail_nth(kit.world, FAKE_SYS_FDATASYNC, 0, 0, false);
	kit_run(&kit, 2000);
	assert_true(takt_keeper_all_clean(kit_keeper(&kit)));
	assert_int_equal(board(0)->resets, 1);
	assert_int_equal(takt_journal_find(&kit.journal, "GPU-fake-0")->state, TAKT_JOURNAL_CLEAN);
}

static void without_a_guard_nothing_is_set_but_all_is_restored(void **state)
{
	set(0, 0, 900);
	kit_keeper(&kit)->guarded = false;
	set(1, 0, 900);
	assert_false(gpu(1)->settled); /* one may be about to come */
	kit_run(&kit, 2100);
	assert_int_equal(gpu(1)->outcome.rc, -TAKT_E_UNAVAILABLE);
	assert_int_equal(board(1)->sets, 0);
	restore(0);
	assert_false(board(0)->locked);
}

static void a_guard_that_comes_in_time_lets_the_range_be_set(void **state)
{
	kit_keeper(&kit)->guarded = false;
	set(1, 0, 900);
	kit_keeper(&kit)->guarded = true;
	kit_run(&kit, 20);
	assert_locked(1, 210, 900);
}

/* Somebody removed the lock file, and another process took over with a new one. */
static void take_over(struct takt_mandate *other, struct takt_journal *theirs)
{
	const struct takt_sys *sys = fake_sys_table(kit.world);

	assert_int_equal(takt_mandate_init(other, sys, KIT_LOCK, NULL), 0);
	assert_int_equal(takt_mandate_lock(other, NULL), -TAKT_E_BUSY);
	assert_int_equal(sys->unlinkat(sys, AT_FDCWD, KIT_LOCK, 0), 0);
	assert_int_equal(takt_mandate_lock(other, NULL), 0);
	assert_int_equal(takt_journal_open(sys, KIT_JOURNAL, theirs, NULL), 0);
	assert_int_equal(takt_mandate_begin(other, theirs, "guard", NULL), 0);
}

static void an_old_epoch_sets_nothing_any_more(void **state)
{
	static struct takt_journal theirs;
	struct takt_mandate other;

	set(0, 0, 900);
	take_over(&other, &theirs);
	assert_int_equal(takt_mandate_check(&other), 0);
	assert_int_equal(takt_mandate_check(&kit.mandate), -TAKT_E_STALE);
	set(1, 0, 900);
	restore(0);
	assert_int_equal(board(1)->sets, 0);
	assert_int_equal(board(0)->resets, 0);
	assert_true(kit_keeper(&kit)->stale);
	takt_mandate_fini(&other);
	takt_journal_close(&theirs);
}

/* The epoch goes while the setter waits behind a call that hangs: the gate stops it there. */
static void an_epoch_that_ends_while_a_setter_waits_stops_it(void **state)
{
	static struct takt_journal theirs, after;
	struct takt_mandate other;
	struct takt_journal_record record;

	board(0)->hangs = true;
	set(0, 0, 900);
	take_over(&other, &theirs);
	record = *takt_journal_find(&theirs, "GPU-fake-0");
	record.lease_id = 999;
	assert_int_equal(takt_journal_record(&theirs, &record, NULL), 0);
	fake_boards_unhang(&kit.machine, 0);
	kit_run(&kit, 20);
	assert_int_equal(board(0)->sets, 0);
	assert_false(board(0)->locked);
	assert_true(kit_keeper(&kit)->stale);
	/* The other one's record stands: it may have set the board since. */
	assert_int_equal(takt_journal_open(fake_sys_table(kit.world), KIT_JOURNAL, &after, NULL),
			 0);
	assert_int_equal(takt_journal_find(&after, "GPU-fake-0")->lease_id, 999);
	assert_int_equal(takt_journal_find(&after, "GPU-fake-0")->state, TAKT_JOURNAL_CHANGED);
	takt_journal_close(&after);
	takt_mandate_fini(&other);
	takt_journal_close(&theirs);
}

static void a_gpu_without_facts_is_unknown_and_left_alone(void **state)
{
	memset(&board(1)->facts, 0, sizeof(board(1)->facts));
	assert_int_equal(state_of(1), TAKT_ACTUATE_UNKNOWN);
	takt_keeper_reset(kit_keeper(&kit), 1, kit_now(&kit));
	kit_run(&kit, 20);
	assert_int_equal(board(1)->resets, 0);
	assert_int_equal(takt_keeper_find(kit_keeper(&kit), ""), -1);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_range_is_clamped_set_and_read_back),
		CASE(the_same_wish_again_calls_no_driver),
		CASE(nonsense_is_refused_before_the_journal),
		CASE(an_unreadable_clock_does_not_hold_the_answer_up),
		CASE(without_permission_nothing_changes_and_the_command_is_named),
		CASE(a_refused_restore_stays_changed_until_it_works),
		CASE(a_range_refused_while_another_is_set_brings_the_baseline),
		CASE(a_driver_error_brings_the_baseline),
		CASE(a_hanging_gpu_stalls_nobody_else),
		CASE(what_hung_is_reconciled_when_it_answers),
		CASE(a_lost_gpu_is_unknown_and_tried_again),
		CASE(a_gpu_lost_while_it_is_set_gets_its_range_when_it_is_back),
		CASE(a_declared_baseline_is_what_comes_back),
		CASE(a_new_process_puts_back_what_it_finds_changed),
		CASE(what_a_reboot_or_reload_undid_is_said_and_left_alone),
		CASE(what_cannot_be_told_to_be_gone_is_put_back),
		CASE(a_changed_gpu_that_is_not_there_stays_on_record),
		CASE(an_unreadable_record_counts_every_gpu_without_one_as_changed),
		CASE(damage_survives_a_kill_in_between),
		CASE(nothing_is_set_when_the_journal_cannot_be_written),
		CASE(a_restore_happens_even_when_the_journal_cannot_be_written),
		CASE(without_a_guard_nothing_is_set_but_all_is_restored),
		CASE(a_guard_that_comes_in_time_lets_the_range_be_set),
		CASE(an_old_epoch_sets_nothing_any_more),
		CASE(an_epoch_that_ends_while_a_setter_waits_stops_it),
		CASE(a_gpu_without_facts_is_unknown_and_left_alone),
	};

	return cmocka_run_group_tests_name("keeper", tests, NULL, NULL);
}
