/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The journal against power loss, kills, failing calls and damage. The witness of what was changed
 * is an array of the test's own, written where the driver would be called: after the journal has
 * agreed.
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

#include "actuate/journal.h"
#include "base/str.h"
#include "fake_sys.h"

#define PATH "/state/clocks.journal"

enum {
	GPUS = 3,
	SLOT = 512,
	FILE_SIZE = 129 * 1024,
};

static struct takt_journal journal;

/* What the scenario did to its boards. */
struct hardware {
	bool changed[GPUS];
};

static struct takt_journal_record record_of(int gpu, enum takt_journal_state state, uint64_t lease)
{
	struct takt_journal_record record = {
		.state = state,
		.setting = {TAKT_KNOB_BIT(TAKT_KNOB_SM_CLOCK) |
				    TAKT_KNOB_BIT(TAKT_KNOB_POWER_LIMIT),
			    {210, 1410},
			    250000},
		.found_power_mw = 400000,
		.cap_power_mw = 350000,
		.lease_id = lease,
		.job_id = 40 + lease,
		.epoch = 3,
		.baseline = {true, {300, 600}, 390000},
	};

	(void)snprintf(record.uuid, sizeof(record.uuid), "GPU-%d", gpu);
	takt_strcpy(record.boot_id, sizeof(record.boot_id), "boot");
	takt_strcpy(record.driver_load, sizeof(record.driver_load), "550.54 module 7");
	return record;
}

static int put(int gpu, enum takt_journal_state state, uint64_t lease)
{
	struct takt_journal_record record = record_of(gpu, state, lease);

	return takt_journal_record(&journal, &record, NULL);
}

static struct fake_sys *new_world(void)
{
	struct fake_sys *world = fake_sys_new();

	fake_sys_add_dir(world, "/state");
	return world;
}

static bool open_journal(struct fake_sys *world)
{
	return takt_journal_open(fake_sys_table(world), PATH, &journal, NULL) == 0;
}

/* Leases come and go on three GPUs. A board changes only after its record, and is marked clean only
 * after it was put back, as the keeper does it. */
static void scenario(struct fake_sys *world, struct hardware *hw)
{
	if (!open_journal(world))
		return;
	(void)takt_journal_raise_epoch(&journal, (struct takt_journal_holder){.pid = 1}, NULL);
	for (uint64_t turn = 0; turn < 4; turn++) {
		for (int gpu = 0; gpu < GPUS; gpu++) {
			if (put(gpu, TAKT_JOURNAL_CHANGED, turn + 1) == 0)
				hw->changed[gpu] = true;
		}
		for (int gpu = 0; gpu < GPUS - 1; gpu++) {
			if (fake_sys_is_off(world))
				break;
			hw->changed[gpu] = false;
			(void)put(gpu, TAKT_JOURNAL_CLEAN, 0);
		}
	}
	takt_journal_close(&journal);
}

static bool said_changed(int gpu)
{
	const struct takt_journal_record *record;
	char uuid[16];

	(void)snprintf(uuid, sizeof(uuid), "GPU-%d", gpu);
	record = takt_journal_find(&journal, uuid);
	return record && record->state == TAKT_JOURNAL_CHANGED;
}

/* Boards that are changed and not on record: what must never be. */
static unsigned forgotten(const struct hardware *hw)
{
	unsigned n = 0;

	for (int gpu = 0; gpu < GPUS; gpu++)
		n += hw->changed[gpu] && !said_changed(gpu);
	return n;
}

/* Cuts the power at each call of the scenario, with some seeds each; returns the forgotten boards.
 */
static unsigned campaign(unsigned lies)
{
	struct fake_sys *world = new_world();
	struct hardware hw = {0};
	unsigned long calls, lost = 0;

	scenario(world, &hw);
	calls = fake_sys_calls(world, FAKE_SYS_ANY);
	fake_sys_free(world);
	assert_true(calls > 50);
	for (unsigned long at = 1; at <= calls; at++) {
		for (uint64_t seed = 1; seed <= 6; seed++) {
			world = new_world();
			hw = (struct hardware){0};
			fake_sys_lie(world, lies);
			fake_sys_cut_power_at(world, at);
			scenario(world, &hw);
			fake_sys_power_loss(world, seed);
			assert_true(open_journal(world));
			lost += forgotten(&hw);
			takt_journal_close(&journal);
			fake_sys_free(world);
		}
	}
	return (unsigned)lost;
}

static void no_change_is_forgotten_by_power_loss(void **state)
{
	assert_int_equal(campaign(FAKE_SYS_HONEST), 0);
}

/* The campaign proves something: it notices when the syncs are gone. */
static void the_campaign_notices_missing_syncs(void **state)
{
	assert_true(campaign(FAKE_SYS_NO_FILE_SYNC) > 0);
	assert_true(campaign(FAKE_SYS_NO_DIR_SYNC) > 0);
}

/* Each call fails once, in each way that disks fail; the process goes on, dies, and is followed. */
static void no_change_is_forgotten_when_calls_fail(void **state)
{
	static const int errors[] = {EIO, ENOSPC, EINTR};
	struct fake_sys *world;
	struct hardware hw;
	bool done = false;

	for (unsigned long nth = 1; !done; nth++) {
		for (size_t e = 0; e < TAKT_ARRAY_LEN(errors); e++) {
			world = new_world();
			hw = (struct hardware){0};
			fake_sys_fail_nth(world, FAKE_SYS_ANY, nth, errors[e], false);
			scenario(world, &hw);
			done = fake_sys_calls(world, FAKE_SYS_ANY) < nth;
			assert_int_equal(fake_sys_open_count(world), 0);
			fake_sys_process_death(world);
			assert_true(open_journal(world));
			assert_int_equal(forgotten(&hw), 0);
			takt_journal_close(&journal);
			fake_sys_free(world);
		}
	}
}

static void short_reads_and_writes_make_no_difference(void **state)
{
	struct fake_sys *world = new_world();
	struct hardware hw = {0};

	fake_sys_short_io(world, 5);
	scenario(world, &hw);
	assert_true(open_journal(world));
	assert_true(said_changed(2));
	assert_false(said_changed(0));
	takt_journal_close(&journal);
	fake_sys_free(world);
}

static void a_record_comes_back_as_it_was_written(void **state)
{
	struct fake_sys *world = new_world();
	struct takt_journal_record wrote = record_of(1, TAKT_JOURNAL_CHANGED, 9);
	const struct takt_journal_record *read;

	assert_true(open_journal(world));
	assert_null(takt_journal_find(&journal, "GPU-1"));
	assert_int_equal(takt_journal_record(&journal, &wrote, NULL), 0);
	takt_journal_close(&journal);
	assert_true(open_journal(world));
	read = takt_journal_find(&journal, "GPU-1");
	assert_non_null(read);
	assert_int_equal(read->lease_id, 9);
	assert_int_equal(read->job_id, 49);
	assert_int_equal(read->epoch, 3);
	assert_int_equal(read->setting.knobs, wrote.setting.knobs);
	assert_int_equal(read->setting.sm.min_mhz, 210);
	assert_int_equal(read->setting.sm.max_mhz, 1410);
	assert_int_equal(read->setting.power_limit_mw, 250000);
	assert_int_equal(read->found_power_mw, 400000);
	assert_int_equal(read->cap_power_mw, 350000);
	assert_true(read->baseline.locked);
	assert_int_equal(read->baseline.range.max_mhz, 600);
	assert_int_equal(read->baseline.power_limit_mw, 390000);
	assert_string_equal(read->boot_id, "boot");
	assert_string_equal(read->driver_load, "550.54 module 7");
	takt_journal_close(&journal);
	fake_sys_free(world);
}

static void a_full_disk_does_not_keep_from_recording(void **state)
{
	struct fake_sys *world = new_world();

	assert_true(open_journal(world));
	fake_sys_set_space(world, FILE_SIZE);
	for (uint64_t i = 0; i < 20; i++)
		assert_int_equal(put((int)(i % GPUS), TAKT_JOURNAL_CHANGED, i + 1), 0);
	takt_journal_close(&journal);
	fake_sys_free(world);
}

static void a_disk_too_small_is_said_at_once(void **state)
{
	struct fake_sys *world = new_world();
	struct takt_err err;

	fake_sys_set_space(world, 1000);
	assert_int_equal(takt_journal_open(fake_sys_table(world), PATH, &journal, &err), -ENOSPC);
	assert_non_null(strstr(err.msg, PATH));
	assert_int_equal(fake_sys_open_count(world), 0);
	fake_sys_free(world);
}

/* Overwrites bytes of the file behind the journal's back. */
static void damage(struct fake_sys *world, off_t at, size_t n)
{
	const struct takt_sys *sys = fake_sys_table(world);
	int fd = sys->openat(sys, AT_FDCWD, PATH, O_RDWR, 0);
	char noise[2 * SLOT];

	memset(noise, 0x5a, sizeof(noise));
	assert_int_equal(sys->pwrite(sys, fd, noise, n, at), (ssize_t)n);
	sys->close(sys, fd);
}

/* GPU-0 changed with lease 1, then lease 2; its records are in pair 1, at 1024. */
static struct fake_sys *world_with_two_records(void)
{
	struct fake_sys *world = new_world();

	assert_true(open_journal(world));
	assert_int_equal(put(0, TAKT_JOURNAL_CHANGED, 1), 0);
	assert_int_equal(put(0, TAKT_JOURNAL_CHANGED, 2), 0);
	takt_journal_close(&journal);
	return world;
}

static void of_a_torn_pair_the_other_slot_is_used(void **state)
{
	/* The second record went to the second slot: byte offsets all over each slot. */
	for (off_t at = 0; at < SLOT; at += 37) {
		struct fake_sys *world = world_with_two_records();

		damage(world, 1024 + SLOT + at, 1);
		assert_true(open_journal(world));
		assert_int_equal(journal.torn, 1);
		assert_int_equal(takt_journal_find(&journal, "GPU-0")->lease_id, 1);
		takt_journal_close(&journal);
		damage(world, 1024 + at, 1);
		assert_true(open_journal(world));
		assert_null(takt_journal_find(&journal, "GPU-0"));
		assert_int_equal(takt_journal_damaged(&journal), 1);
		takt_journal_close(&journal);
		fake_sys_free(world);
	}
}

static void damage_stays_until_it_is_forgotten(void **state)
{
	struct fake_sys *world = world_with_two_records();

	damage(world, 1024, (size_t)2 * SLOT);
	assert_true(open_journal(world));
	assert_int_equal(put(1, TAKT_JOURNAL_CHANGED, 1), 0);
	assert_int_equal(takt_journal_damaged(&journal), 1);
	takt_journal_close(&journal);
	assert_true(open_journal(world));
	assert_int_equal(takt_journal_damaged(&journal), 1);
	assert_int_equal(takt_journal_forget_damage(&journal, NULL), 0);
	takt_journal_close(&journal);
	assert_true(open_journal(world));
	assert_int_equal(takt_journal_damaged(&journal), 0);
	assert_true(said_changed(1));
	takt_journal_close(&journal);
	fake_sys_free(world);
}

static void a_file_cut_short_is_damage(void **state)
{
	const struct takt_sys *sys;
	struct fake_sys *world;
	int fd;

	for (off_t size = 100; size < FILE_SIZE; size += 20000) {
		world = world_with_two_records();
		assert_true(open_journal(world));
		assert_int_equal(takt_journal_raise_epoch(
					 &journal, (struct takt_journal_holder){.pid = 5}, NULL),
				 0);
		assert_int_equal(takt_journal_raise_epoch(
					 &journal, (struct takt_journal_holder){.pid = 5}, NULL),
				 0);
		takt_journal_close(&journal);
		sys = fake_sys_table(world);
		fd = sys->openat(sys, AT_FDCWD, PATH, O_RDWR, 0);
		assert_int_equal(sys->ftruncate(sys, fd, size), 0);
		sys->close(sys, fd);
		assert_true(open_journal(world));
		assert_true(takt_journal_damaged(&journal) > 0);
		takt_journal_close(&journal);
		assert_true(open_journal(world)); /* and it does not go away by looking again */
		assert_true(takt_journal_damaged(&journal) > 0);
		takt_journal_close(&journal);
		fake_sys_free(world);
	}
}

static void an_interrupted_creation_is_no_damage(void **state)
{
	static const char zeros[5000];
	struct fake_sys *world = new_world();

	fake_sys_add_file(world, PATH, zeros, sizeof(zeros));
	assert_true(open_journal(world));
	assert_int_equal(takt_journal_damaged(&journal), 0);
	takt_journal_close(&journal);
	fake_sys_free(world);
}

static void a_look_changes_nothing(void **state)
{
	struct fake_sys *world = world_with_two_records();
	const struct takt_sys *sys = fake_sys_table(world);
	struct takt_journal look;
	struct stat st;
	int fd;

	assert_int_equal(takt_journal_look(sys, PATH, &look, NULL), 0);
	assert_int_equal(takt_journal_find(&look, "GPU-0")->state, TAKT_JOURNAL_CHANGED);
	assert_int_equal(takt_journal_look(sys, "/state/other", &look, NULL), -ENOENT);
	fd = sys->openat(sys, AT_FDCWD, PATH, O_RDWR, 0);
	assert_int_equal(sys->ftruncate(sys, fd, 5000), 0);
	assert_int_equal(takt_journal_look(sys, PATH, &look, NULL), -TAKT_E_CORRUPT);
	assert_int_equal(sys->fstat(sys, fd, &st), 0);
	assert_int_equal(st.st_size, 5000);
	sys->close(sys, fd);
	fake_sys_free(world);
}

static void another_kind_of_file_is_left_alone(void **state)
{
	struct fake_sys *world = new_world();
	struct takt_err err;
	size_t len;

	fake_sys_add_file(world, PATH, "root:x:0:0\n", 11);
	assert_int_equal(takt_journal_open(fake_sys_table(world), PATH, &journal, &err),
			 -TAKT_E_CORRUPT);
	assert_non_null(strstr(err.msg, "is no clock journal of takt"));
	assert_string_equal(fake_sys_read_file(world, PATH, &len), "root:x:0:0\n");
	assert_int_equal(fake_sys_open_count(world), 0);
	fake_sys_free(world);
}

static void epochs_rise_even_over_a_damaged_holder(void **state)
{
	struct fake_sys *world = new_world();
	struct takt_journal_holder seen, holder = {.pid = 77, .name = "actuator"};

	assert_true(open_journal(world));
	for (uint64_t epoch = 1; epoch <= 5; epoch++) {
		assert_int_equal(takt_journal_raise_epoch(&journal, holder, NULL), 0);
		assert_int_equal(journal.holder.epoch, epoch);
		assert_int_equal(takt_journal_read_holder(&journal, &seen), 0);
		assert_int_equal(seen.epoch, epoch);
		assert_int_equal(seen.pid, 77);
		assert_string_equal(seen.name, "actuator");
	}
	assert_int_equal(put(0, TAKT_JOURNAL_CHANGED, 1), 0); /* of epoch 3 */
	takt_journal_close(&journal);
	damage(world, 0, (size_t)2 * SLOT);
	assert_true(open_journal(world));
	assert_int_equal(takt_journal_read_holder(&journal, &seen), -TAKT_E_CORRUPT);
	assert_int_equal(takt_journal_raise_epoch(&journal, holder, NULL), 0);
	assert_int_equal(journal.holder.epoch, 4);
	takt_journal_close(&journal);
	fake_sys_free(world);
}

static void gpus_that_came_and_went_make_room(void **state)
{
	struct fake_sys *world = new_world();

	assert_true(open_journal(world));
	for (int gpu = 0; gpu < TAKT_JOURNAL_PAIRS; gpu++)
		assert_int_equal(put(gpu, TAKT_JOURNAL_CHANGED, 1), 0);
	assert_int_equal(put(TAKT_JOURNAL_PAIRS, TAKT_JOURNAL_CHANGED, 1), -TAKT_E_LIMIT);
	assert_int_equal(put(70, TAKT_JOURNAL_CLEAN, 0), 0);
	assert_int_equal(put(TAKT_JOURNAL_PAIRS, TAKT_JOURNAL_CHANGED, 1), 0);
	takt_journal_close(&journal);
	assert_true(open_journal(world));
	assert_true(said_changed(TAKT_JOURNAL_PAIRS));
	assert_null(takt_journal_find(&journal, "GPU-70"));
	assert_true(said_changed(0));
	takt_journal_close(&journal);
	fake_sys_free(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_record_comes_back_as_it_was_written),
		cmocka_unit_test(no_change_is_forgotten_by_power_loss),
		cmocka_unit_test(the_campaign_notices_missing_syncs),
		cmocka_unit_test(no_change_is_forgotten_when_calls_fail),
		cmocka_unit_test(short_reads_and_writes_make_no_difference),
		cmocka_unit_test(a_full_disk_does_not_keep_from_recording),
		cmocka_unit_test(a_disk_too_small_is_said_at_once),
		cmocka_unit_test(of_a_torn_pair_the_other_slot_is_used),
		cmocka_unit_test(damage_stays_until_it_is_forgotten),
		cmocka_unit_test(a_file_cut_short_is_damage),
		cmocka_unit_test(an_interrupted_creation_is_no_damage),
		cmocka_unit_test(a_look_changes_nothing),
		cmocka_unit_test(another_kind_of_file_is_left_alone),
		cmocka_unit_test(epochs_rise_even_over_a_damaged_holder),
		cmocka_unit_test(gpus_that_came_and_went_make_room),
	};

	return cmocka_run_group_tests_name("journal", tests, NULL, NULL);
}
