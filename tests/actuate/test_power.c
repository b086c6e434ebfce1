/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Power limits, facility caps and what somebody else sets: the same promises as for clocks, and the
 * limit goes back to what was found. The boards of the fake machine are the witness.
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
	FOUND_MW = 380000,
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

static int setup(void **state)
{
	kit_init(&kit, 2);
	kit_start(&kit);
	board()->power_limit_mw = FOUND_MW; /* what an administrator once set */
	return 0;
}

static int teardown(void **state)
{
	kit_fini(&kit);
	return 0;
}

static void wish(uint32_t max_mhz, uint32_t limit_mw)
{
	struct takt_setting setting = {.sm = {210, max_mhz}, .power_limit_mw = limit_mw};

	setting.knobs = (max_mhz ? SM : 0u) | (limit_mw ? POWER : 0u);
	assert_int_equal(takt_keeper_set(kit_keeper(&kit), 0, &setting, 9, 4, kit_now(&kit), NULL),
			 0);
	kit_run(&kit, 50);
}

static void cap(uint32_t cap_mw)
{
	assert_int_equal(takt_keeper_cap(kit_keeper(&kit), 0, cap_mw, kit_now(&kit), NULL), 0);
	kit_run(&kit, 50);
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

static void die_and_start(void)
{
	kit_die(&kit);
	kit_start(&kit);
	kit_run(&kit, 50);
}

static void a_limit_goes_back_to_what_was_found(void **state)
{
	wish(0, 250000);
	assert_int_equal(board()->power_limit_mw, 250000);
	assert_int_equal(state_now(), TAKT_ACTUATE_LEASED);
	assert_int_equal(board()->sets, 0);
	restore();
	assert_int_equal(board()->power_limit_mw, FOUND_MW);
	assert_int_equal(board()->resets, 0); /* the clock was never touched */
	assert_true(takt_keeper_all_clean(kit_keeper(&kit)));
	board()->power_limit_mw = 300000; /* an administrator changes his mind between leases */
	wish(0, 200000);
	restore();
	assert_int_equal(board()->power_limit_mw, 300000);
}

static void clock_and_limit_hold_together_or_not_at_all(void **state)
{
	wish(900, 250000);
	assert_true(board()->locked);
	assert_int_equal(board()->power_limit_mw, 250000);
	board()->power_rc = -EINVAL;
	wish(600, 200000);
	assert_int_equal(gpu()->outcome.rc, -EINVAL);
	board()->power_rc = 0;
	kit_run(&kit, 1000);
	assert_false(board()->locked);
	assert_int_equal(board()->power_limit_mw, FOUND_MW);
	assert_int_equal(state_now(), TAKT_ACTUATE_CLEAN);
}

static void a_knob_that_a_new_wish_leaves_out_goes_back(void **state)
{
	wish(900, 250000);
	wish(900, 0);
	assert_true(board()->locked);
	assert_int_equal(board()->power_limit_mw, FOUND_MW);
	wish(0, 250000);
	assert_false(board()->locked);
	assert_int_equal(board()->power_limit_mw, 250000);
}

static void a_lease_never_raises_the_limit(void **state)
{
	wish(0, 400000);
	assert_int_equal(board()->power_limit_mw, FOUND_MW);
	assert_int_equal(gpu()->outcome.rc, 0);
}

static void a_limit_that_cannot_be_read_is_not_changed(void **state)
{
	board()->no_power_reading = true;
	wish(900, 250000);
	kit_run(&kit, 1000);
	assert_int_equal(gpu()->outcome.rc, -TAKT_E_UNAVAILABLE);
	assert_int_equal(board()->power_sets, 0);
	assert_false(board()->locked);
	assert_int_equal(state_now(), TAKT_ACTUATE_CLEAN);
}

/* The restore that hung was of before the cap: what it did is not what the cap wants. */
static void a_cap_that_comes_while_the_driver_hangs_holds(void **state)
{
	wish(900, 250000);
	board()->hangs = board()->hangs_inside = true;
	restore();
	cap(300000);
	fake_boards_unhang(&kit.machine, 0);
	kit_run(&kit, 50);
	assert_int_equal(board()->power_limit_mw, 300000);
	assert_false(board()->locked);
	die_and_start();
	assert_int_equal(board()->power_limit_mw, 300000);
}

/* The journal must not call clean what has not been told to the board yet. */
static void a_kill_between_reset_and_cap_leaves_the_cap_to_the_next(void **state)
{
	takt_keeper_reset(kit_keeper(&kit), 0, kit_now(&kit));
	assert_int_equal(takt_keeper_cap(kit_keeper(&kit), 0, 300000, kit_now(&kit), NULL), 0);
	for (int steps = 0; board()->power_limit_mw != 300000; steps++) {
		const struct takt_journal_record *on_disk =
			takt_journal_find(&kit.journal, "GPU-fake-0");

		assert_false(on_disk && on_disk->state == TAKT_JOURNAL_CLEAN &&
			     on_disk->cap_power_mw);
		assert_true(steps < 100);
		(void)takt_actuator_step(kit.actuator, kit_now(&kit));
	}
}

static void whoever_comes_after_a_kill_restores_what_was_found(void **state)
{
	wish(900, 250000);
	die_and_start();
	assert_false(board()->locked);
	assert_int_equal(board()->power_limit_mw, FOUND_MW);
	assert_non_null(strstr(kit.log, "was left at [210,900] MHz, 250 W for job 4"));
	assert_true(takt_keeper_all_clean(kit_keeper(&kit)));
}

static void a_record_speaks_of_what_is_at_stake_now(void **state)
{
	wish(900, 250000);
	restore();
	wish(600, 0);
	die_and_start();
	assert_non_null(strstr(kit.log, "was left at [210,600] MHz for job 4"));
	assert_int_equal(state_now(), TAKT_ACTUATE_CLEAN);
	assert_true(takt_keeper_all_clean(kit_keeper(&kit)));
	assert_int_equal(takt_journal_find(&kit.journal, "GPU-fake-0")->state, TAKT_JOURNAL_CLEAN);
}

static void a_declared_baseline_is_where_it_goes_back_to(void **state)
{
	static const char text[] = "* reset power 320\n";

	assert_int_equal(takt_baseline_parse(text, strlen(text), &kit.baseline, NULL), 0);
	wish(0, 250000);
	restore();
	assert_int_equal(board()->power_limit_mw, 320000);
}

static void a_refused_restore_names_the_command_and_goes_on(void **state)
{
	wish(0, 250000);
	board()->power_rc = -EPERM;
	restore();
	assert_int_equal(state_now(), TAKT_ACTUATE_CHANGED);
	assert_non_null(strstr(gpu()->note, "nvidia-smi -i GPU-fake-0 -pl 380"));
	board()->power_rc = 0;
	kit_run(&kit, 31000);
	assert_int_equal(board()->power_limit_mw, FOUND_MW);
	assert_int_equal(state_now(), TAKT_ACTUATE_CLEAN);
}

static void a_limit_that_was_set_goes_back_though_the_driver_forgets_the_knob(void **state)
{
	wish(0, 200000);
	assert_int_equal(board()->power_limit_mw, 200000);
	board()->power_rc = -TAKT_E_UNSUPPORTED;
	restore();
	assert_int_equal(state_now(), TAKT_ACTUATE_CHANGED);
	board()->power_rc = 0;
	kit_run(&kit, 2000);
	assert_int_equal(board()->power_limit_mw, FOUND_MW);
	assert_int_equal(state_now(), TAKT_ACTUATE_CLEAN);
}

static void a_cap_is_not_taken_for_lifted_where_the_driver_forgets_the_knob(void **state)
{
	cap(240000);
	board()->power_rc = -TAKT_E_UNSUPPORTED;
	cap(0);
	assert_int_equal(gpu()->outcome.rc, -TAKT_E_UNSUPPORTED);
	assert_int_equal(gpu()->cap_mw, 240000);
	board()->power_rc = 0;
	cap(0);
	assert_int_equal(board()->power_limit_mw, FOUND_MW);
}

static void a_cap_outlives_leases_and_processes(void **state)
{
	cap(300000);
	assert_int_equal(board()->power_limit_mw, 300000);
	wish(0, 200000);
	die_and_start();
	assert_int_equal(board()->power_limit_mw, 300000); /* the lease is lifted, the cap stays */
	assert_int_equal(state_now(), TAKT_ACTUATE_CLEAN);
	die_and_start();
	assert_int_equal(gpu()->cap_mw, 300000);
	assert_int_equal(board()->power_limit_mw, 300000);
	cap(0);
	assert_int_equal(board()->power_limit_mw, FOUND_MW); /* still known */
}

static void a_cap_that_changes_under_a_lease_holds_at_once(void **state)
{
	wish(0, 250000);
	cap(200000);
	assert_int_equal(board()->power_limit_mw, 200000);
	cap(300000);
	assert_int_equal(board()->power_limit_mw, 250000);
	restore();
	assert_int_equal(board()->power_limit_mw, 300000);
}

static void a_refused_cap_leaves_all_as_it_was(void **state)
{
	board()->power_rc = -EPERM;
	cap(300000);
	assert_int_equal(gpu()->outcome.rc, -EPERM);
	assert_int_equal(gpu()->cap_mw, 0);
	assert_int_equal(state_now(), TAKT_ACTUATE_CLEAN);
	board()->power_rc = 0;
	die_and_start();
	assert_int_equal(board()->power_limit_mw, FOUND_MW);
	assert_int_equal(board()->power_sets, 1);
}

/* What an administrator declares, put in force. */
static void declare(const char *text)
{
	struct takt_baseline_rule was = takt_baseline_of(&kit.baseline, gpu()->facts->uuid);
	struct takt_baseline next = {0};

	assert_int_equal(takt_baseline_parse(text, strlen(text), &next, NULL), 0);
	kit.baseline = next;
	takt_keeper_declare(kit_keeper(&kit), 0, &was, kit_now(&kit));
	kit_run(&kit, 50);
}

static void what_is_declared_stands_and_outlives_leases_and_processes(void **state)
{
	declare("* range 300 900 power 250\n");
	assert_true(board()->locked);
	assert_int_equal(board()->power_limit_mw, 250000);
	assert_int_equal(state_now(), TAKT_ACTUATE_CLEAN);
	wish(1200, 200000);
	assert_int_equal(board()->range.max_mhz, 1200);
	assert_int_equal(board()->power_limit_mw, 200000);
	die_and_start();
	assert_true(board()->locked);
	assert_int_equal(board()->range.max_mhz, 900);
	assert_int_equal(board()->power_limit_mw, 250000);
	declare("");
	assert_false(board()->locked);
	assert_int_equal(board()->power_limit_mw, FOUND_MW); /* after a death, too */
	assert_int_equal(state_now(), TAKT_ACTUATE_CLEAN);
}

static void what_is_declared_waits_for_a_lease(void **state)
{
	wish(1200, 0);
	declare("* range 300 900 power 250\n");
	assert_int_equal(board()->range.max_mhz, 1200);
	assert_int_equal(board()->power_limit_mw, 250000);
	assert_int_equal(state_now(), TAKT_ACTUATE_LEASED);
	restore();
	assert_int_equal(board()->range.max_mhz, 900);
	wish(1200, 0);
	declare("");
	die_and_start();
	assert_false(board()->locked);
	assert_int_equal(board()->power_limit_mw, FOUND_MW);
}

static void what_is_declared_no_more_is_put_back_until_it_is(void **state)
{
	declare("* reset power 250\n");
	board()->power_rc = -EIO;
	declare("");
	assert_int_equal(gpu()->outcome.rc, -EIO);
	assert_int_equal(state_now(), TAKT_ACTUATE_CHANGED);
	assert_int_equal(board()->power_limit_mw, 250000);
	board()->power_rc = 0;
	kit_run(&kit, 40000);
	assert_int_equal(board()->power_limit_mw, FOUND_MW);
	assert_int_equal(state_now(), TAKT_ACTUATE_CLEAN);
}

static void a_refused_declaration_leaves_all_as_it_was(void **state)
{
	cap(300000);
	board()->power_rc = -EPERM;
	declare("* reset power 250\n");
	assert_int_equal(gpu()->outcome.rc, -EPERM);
	assert_non_null(strstr(gpu()->outcome.msg, "nvidia-smi -i"));
	assert_non_null(strstr(gpu()->outcome.msg, "-pl 250"));
	assert_int_equal(gpu()->cap_mw, 300000);
	assert_int_equal(board()->power_limit_mw, 300000);
	assert_int_equal(state_now(), TAKT_ACTUATE_CLEAN);
	fake_sys_fail_nth(kit.world, FAKE_SYS_FDATASYNC, 1, EIO, true);
	board()->power_rc = 0;
	declare("* range 300 900\n");
	assert_int_equal(gpu()->outcome.rc, -EIO);
	assert_false(board()->locked); /* not on disk, so not on the board */
	fake_sys_fail_nth(kit.world, FAKE_SYS_FDATASYNC, 0, 0, false);
}

/* A record that had the cap would have it without the limit that was found, and no board at it. */
static void a_cap_behind_a_declaration_is_on_record_when_it_has_its_way_back(void **state)
{
	board()->silent_samples = true; /* so the cap waits; the declaration does not */
	assert_int_equal(takt_keeper_cap(kit_keeper(&kit), 0, 300000, kit_now(&kit), NULL), 0);
	declare("* range 300 900\n");
	board()->silent_samples = false;
	die_and_start();
	assert_int_equal(board()->range.max_mhz, 900);
	assert_int_equal(board()->power_limit_mw, FOUND_MW);
	assert_int_equal(gpu()->cap_mw, 0);
	wish(0, 250000);
	restore();
	assert_int_equal(board()->power_limit_mw, FOUND_MW);
}

/* "Clean" is written of the refused clock while the board is still at the old cap. */
static void a_cap_lifted_while_a_setter_is_refused_goes_back_to_what_was_found(void **state)
{
	cap(300000);
	board()->hangs = true;
	board()->set_rc = -EPERM;
	wish(900, 0);
	cap(0);
	fake_boards_unhang(&kit.machine, 0);
	kit_run(&kit, 50);
	assert_int_equal(board()->power_limit_mw, FOUND_MW);
	cap(300000);
	assert_int_equal(takt_keeper_cap(kit_keeper(&kit), 0, 0, kit_now(&kit), NULL), 0);
	wish(900, 0); /* refused before the board is told of the other */
	assert_int_equal(board()->power_limit_mw, FOUND_MW);
}

static void a_cap_under_a_lease_stays_when_the_next_cannot_be_written_down(void **state)
{
	wish(0, 200000);
	cap(300000);
	fake_sys_fail_nth(kit.world, FAKE_SYS_FDATASYNC, 1, EIO, true);
	cap(250000);
	assert_int_equal(gpu()->outcome.rc, -EIO);
	assert_int_equal(gpu()->cap_mw, 300000);
	fake_sys_fail_nth(kit.world, FAKE_SYS_FDATASYNC, 0, 0, false);
	restore();
	assert_int_equal(board()->power_limit_mw, 300000);
}

static void a_declaration_that_cannot_be_written_down_takes_a_waiting_cap_with_it(void **state)
{
	assert_int_equal(takt_keeper_cap(kit_keeper(&kit), 0, 300000, kit_now(&kit), NULL), 0);
	fake_sys_fail_nth(kit.world, FAKE_SYS_FDATASYNC, 1, EIO, false);
	declare("* range 300 900\n");
	assert_int_equal(gpu()->outcome.rc, -EIO);
	assert_int_equal(gpu()->cap_mw, 0);
	assert_int_equal(board()->power_limit_mw, FOUND_MW);
	cap(300000);
	assert_int_equal(board()->power_limit_mw, 300000);
}

static void a_refused_cap_takes_the_one_behind_it_along(void **state)
{
	cap(350000);
	board()->hangs = true;
	board()->power_rc = -EPERM;
	cap(300000);
	cap(200000);
	fake_boards_unhang(&kit.machine, 0);
	kit_run(&kit, 50);
	assert_int_equal(gpu()->outcome.rc, -EPERM);
	assert_int_equal(gpu()->cap_mw, 350000);
	die_and_start();
	assert_int_equal(board()->resets, 0); /* the journal called nothing changed */
}

static void a_declared_limit_is_not_set_where_none_can_be_read(void **state)
{
	board()->silent_samples = true;
	declare("* range 300 900 power 250\n");
	kit_run(&kit, 1000);
	assert_int_equal(gpu()->outcome.rc, -TAKT_E_UNAVAILABLE);
	assert_int_equal(board()->range.max_mhz, 900);
	assert_int_equal(board()->power_limit_mw, FOUND_MW);
	board()->silent_samples = false;
	wish(0, 200000); /* it goes back to what is declared, and that can be taken back */
	restore();
	assert_int_equal(board()->power_limit_mw, 250000);
	declare("");
	assert_int_equal(board()->power_limit_mw, FOUND_MW);
}

static void a_declared_limit_that_was_not_set_comes_with_the_next_start(void **state)
{
	static const char text[] = "* reset power 250\n";

	board()->silent_samples = true;
	declare(text);
	kit_run(&kit, 1000);
	assert_int_equal(board()->power_limit_mw, FOUND_MW);
	board()->silent_samples = false;
	kit.declared_path = "/state/declared";
	fake_sys_add_file(kit.world, kit.declared_path, text, strlen(text));
	die_and_start();
	assert_int_equal(board()->power_limit_mw, 250000);
	declare("");
	assert_int_equal(board()->power_limit_mw, FOUND_MW);
}

/* That of a baseline file, which was never put in force. */
static void a_reset_to_a_declared_limit_keeps_what_was_found(void **state)
{
	static const char text[] = "* reset power 250\n";

	assert_int_equal(takt_baseline_parse(text, strlen(text), &kit.baseline, NULL), 0);
	takt_keeper_reset(kit_keeper(&kit), 0, kit_now(&kit));
	kit_run(&kit, 50);
	assert_int_equal(board()->power_limit_mw, 250000);
	declare("");
	assert_int_equal(board()->power_limit_mw, FOUND_MW);
}

/* As one leaves it who dies while a lease waits to know what it would take the place of. */
static void a_declared_limit_waits_for_its_way_back_after_a_death_too(void **state)
{
	static const char text[] = "* reset power 250\n";
	struct takt_journal_record record = {
		.state = TAKT_JOURNAL_CHANGED,
		.setting = {.knobs = TAKT_KNOB_BIT(TAKT_KNOB_POWER_LIMIT),
			    .power_limit_mw = 200000},
		.baseline = {.power_limit_mw = 250000},
		.epoch = kit.mandate.mine.epoch,
	};

	takt_strcpy(record.uuid, sizeof(record.uuid), gpu()->facts->uuid);
	takt_strcpy(record.boot_id, sizeof(record.boot_id), kit_keeper(&kit)->boot_id);
	takt_strcpy(record.driver_load, sizeof(record.driver_load), kit_keeper(&kit)->driver_load);
	assert_int_equal(takt_journal_record(&kit.journal, &record, NULL), 0);
	assert_int_equal(takt_baseline_parse(text, strlen(text), &kit.baseline, NULL), 0);
	die_and_start();
	declare("");
	assert_int_equal(board()->power_limit_mw, FOUND_MW);
}

static void what_is_declared_no_more_goes_back_behind_a_lease_that_never_held(void **state)
{
	declare("* reset power 250\n");
	board()->power_rc = -EPERM;
	wish(0, 200000);
	declare("");
	restore();
	board()->power_rc = 0;
	kit_run(&kit, 40000);
	assert_int_equal(board()->power_limit_mw, FOUND_MW);
}

static void what_is_declared_no_more_goes_back_though_an_order_was_under_way(void **state)
{
	declare("* range 300 900\n");
	board()->hangs = true;
	board()->set_rc = -EPERM;
	takt_keeper_reset(kit_keeper(&kit), 0, kit_now(&kit));
	kit_run(&kit, 50);
	declare("");
	fake_boards_unhang(&kit.machine, 0);
	kit_run(&kit, 40000);
	assert_false(board()->locked);
}

static void what_is_declared_comes_behind_a_lease_that_never_held(void **state)
{
	wish(0, 250000);
	board()->hangs = true;
	wish(0, 200000);
	wish(1200, 0);
	declare("* range 300 900\n");
	restore();
	fake_boards_unhang(&kit.machine, 0);
	kit_run(&kit, 50);
	assert_int_equal(board()->range.max_mhz, 900);
}

static void a_cap_that_cannot_be_written_down_is_not_set(void **state)
{
	fake_sys_fail_nth(kit.world, FAKE_SYS_FDATASYNC, 1, EIO, true);
	cap(300000);
	assert_int_equal(gpu()->outcome.rc, -EIO);
	assert_int_equal(board()->power_limit_mw, FOUND_MW);
	fake_sys_fail_nth(kit.world, FAKE_SYS_FDATASYNC, 0, 0, false);
	cap(300000);
	assert_int_equal(board()->power_limit_mw, 300000);
}

static void what_somebody_else_sets_is_left_alone_until_a_reset(void **state)
{
	const struct takt_setting again = {.knobs = POWER, .power_limit_mw = 200000};
	struct takt_err err;

	wish(900, 250000);
	board()->power_limit_mw = 350000; /* nvidia-smi -pl 350 */
	kit_run(&kit, 6000);
	assert_int_equal(state_now(), TAKT_ACTUATE_FOREIGN);
	assert_non_null(
		strstr(takt_keeper_says(gpu()), "power limit 350 W although takt set 250 W"));
	assert_int_equal(board()->power_limit_mw, 350000);
	assert_false(board()->locked); /* takt's own is lifted */
	assert_int_equal(takt_keeper_set(kit_keeper(&kit), 0, &again, 9, 4, kit_now(&kit), &err),
			 -TAKT_E_CONFLICT);
	takt_keeper_reset(kit_keeper(&kit), 0, kit_now(&kit));
	kit_run(&kit, 50);
	assert_int_equal(state_now(), TAKT_ACTUATE_CLEAN);
	wish(0, 200000);
	assert_int_equal(board()->power_limit_mw, 200000);
}

static void a_clock_above_its_range_is_somebody_elses(void **state)
{
	wish(900, 0);
	board()->runs_at_mhz = 300; /* idle, throttled: no sign of anybody */
	kit_run(&kit, 20000);
	assert_int_equal(state_now(), TAKT_ACTUATE_LEASED);
	board()->runs_at_mhz = 1410; /* nvidia-smi -lgc 1410 */
	board()->range = (struct takt_clock_range){1410, 1410};
	kit_run(&kit, 20000);
	assert_int_equal(state_now(), TAKT_ACTUATE_FOREIGN);
	assert_true(board()->locked);
	assert_int_equal(board()->range.max_mhz, 1410);
	assert_int_equal(board()->resets, 0);
	die_and_start();
	assert_int_equal(board()->resets, 0); /* nor does anybody restore it later */
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_limit_goes_back_to_what_was_found),
		CASE(clock_and_limit_hold_together_or_not_at_all),
		CASE(a_knob_that_a_new_wish_leaves_out_goes_back),
		CASE(a_lease_never_raises_the_limit),
		CASE(a_limit_that_cannot_be_read_is_not_changed),
		CASE(whoever_comes_after_a_kill_restores_what_was_found),
		CASE(a_cap_that_comes_while_the_driver_hangs_holds),
		CASE(a_kill_between_reset_and_cap_leaves_the_cap_to_the_next),
		CASE(a_record_speaks_of_what_is_at_stake_now),
		CASE(a_declared_baseline_is_where_it_goes_back_to),
		CASE(a_refused_restore_names_the_command_and_goes_on),
		CASE(a_limit_that_was_set_goes_back_though_the_driver_forgets_the_knob),
		CASE(a_cap_is_not_taken_for_lifted_where_the_driver_forgets_the_knob),
		CASE(a_cap_outlives_leases_and_processes),
		CASE(a_cap_that_changes_under_a_lease_holds_at_once),
		CASE(a_refused_cap_leaves_all_as_it_was),
		CASE(what_is_declared_stands_and_outlives_leases_and_processes),
		CASE(what_is_declared_waits_for_a_lease),
		CASE(what_is_declared_no_more_is_put_back_until_it_is),
		CASE(a_refused_declaration_leaves_all_as_it_was),
		CASE(a_cap_behind_a_declaration_is_on_record_when_it_has_its_way_back),
		CASE(a_cap_lifted_while_a_setter_is_refused_goes_back_to_what_was_found),
		CASE(a_cap_under_a_lease_stays_when_the_next_cannot_be_written_down),
		CASE(a_declaration_that_cannot_be_written_down_takes_a_waiting_cap_with_it),
		CASE(a_refused_cap_takes_the_one_behind_it_along),
		CASE(a_declared_limit_is_not_set_where_none_can_be_read),
		CASE(a_declared_limit_that_was_not_set_comes_with_the_next_start),
		CASE(a_reset_to_a_declared_limit_keeps_what_was_found),
		CASE(a_declared_limit_waits_for_its_way_back_after_a_death_too),
		CASE(what_is_declared_no_more_goes_back_behind_a_lease_that_never_held),
		CASE(what_is_declared_no_more_goes_back_though_an_order_was_under_way),
		CASE(what_is_declared_comes_behind_a_lease_that_never_held),
		CASE(a_cap_that_cannot_be_written_down_is_not_set),
		CASE(what_somebody_else_sets_is_left_alone_until_a_reset),
		CASE(a_clock_above_its_range_is_somebody_elses),
	};

	return cmocka_run_group_tests_name("power", tests, NULL, NULL);
}
