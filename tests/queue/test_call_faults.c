/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each call to the disk fails in turn: of the daemon and its SQLite, of the launcher, of the shims;
 * once, or from then on until the daemon's life is over. On the machine of test_power_loss.c, with
 * the same witness: what was accepted is not lost, nothing runs twice, no GPU is given to two, and
 * when calls succeed again everything comes to its right end.
 */
#include <errno.h>
#include <stdio.h>

#include "sanitized.h"
#include "seeded.h"

#include "loss_life.h"

enum {
	TURNS_BEFORE = 5,
	TURNS = 40,
	EVERY = SANITIZED ? 5 : 1, /* call fails */
};

struct fault {
	const char *name;
	enum fake_sys_op op;
	int error;
	bool and_after;
	unsigned mistakes; /* of launcher and shims */
};

static void live_with(struct loss_machine *machine, const struct fault *fault, unsigned long nth)
{
	machine->may_not_start = machine->witness.calls_failed = true;
	fake_sys_fail_nth(machine->world, fault->op, nth, fault->error, fault->and_after);
	machine->submits = 2;
	loss_machine_live(machine, TURNS, 0);
	fake_sys_fail_nth(machine->world, fault->op, 0, 0, false);
	machine->may_not_start = false;
}

/* A machine with a past; *ret_made calls of the kind were made while one was to fail. */
static bool run(const struct fault *fault, unsigned long nth, unsigned long *ret_made,
		char why[200])
{
	struct loss_machine machine;
	unsigned long before;
	bool held;

	loss_machine_init(&machine, nth);
	machine.procs.mistakes = fault->mistakes;
	machine.kill_only = nth % 2;
	machine.submits = 1;
	loss_machine_live(&machine, TURNS_BEFORE, 0);
	before = fake_sys_calls(machine.world, fault->op);
	live_with(&machine, fault, nth);
	*ret_made = fake_sys_calls(machine.world, fault->op) - before;
	held = loss_machine_settle(&machine);
	snprintf(why, 200, "%s", machine.witness.why);
	loss_machine_fini(&machine);
	return held;
}

static void hold(const struct fault *fault)
{
	unsigned long nth = 1, made = 1, trials = 0;
	char why[200];

	for (unsigned long tried = 0; tried <= made; tried = nth, nth += EVERY, trials++)
		if (!run(fault, nth, &made, why))
			fail_msg("%s, call %lu: %s", fault->name, nth, why);
	print_message("# trials: %lu %s\n", trials - 1, fault->name);
	assert_true(nth > 5);
}

static void any_call_may_fail_once(void **state)
{
	hold(&(struct fault){"any call fails once", FAKE_SYS_ANY, EIO, false, 0});
}

static void any_call_and_all_after_it_may_fail(void **state)
{
	hold(&(struct fault){"any call fails, and all that follow", FAKE_SYS_ANY, EIO, true, 0});
}

static void the_disk_may_be_full_for_a_while(void **state)
{
	hold(&(struct fault){"no space for writes", FAKE_SYS_PWRITE, ENOSPC, true, 0});
}

static void files_may_not_be_synced_for_a_while(void **state)
{
	hold(&(struct fault){"fdatasync fails", FAKE_SYS_FDATASYNC, EIO, true, 0});
	hold(&(struct fault){"fsync fails", FAKE_SYS_FSYNC, EIO, true, 0});
}

static void descriptors_may_run_out_for_a_while(void **state)
{
	hold(&(struct fault){"no descriptor for open", FAKE_SYS_OPENAT, EMFILE, true, 0});
}

static void names_may_not_change_for_a_while(void **state)
{
	hold(&(struct fault){"rename fails", FAKE_SYS_RENAMEAT, ENOSPC, true, 0});
}

static void found_when_a_job_runs_without_its_record(void **state)
{
	const struct fault fault = {"careless shim", FAKE_SYS_FSYNC, EIO, true, LOSS_CARELESS};
	unsigned long nth = 0, made;
	char why[200];

	do {
		nth++;
		if (!run(&fault, nth, &made, why)) {
			print_message("# %s: call %lu: %s\n", fault.name, nth, why);
			return;
		}
	} while (nth <= made);
	fail_msg("%s: nothing found", fault.name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_call_may_fail_once),
		cmocka_unit_test(any_call_and_all_after_it_may_fail),
		cmocka_unit_test(the_disk_may_be_full_for_a_while),
		cmocka_unit_test(files_may_not_be_synced_for_a_while),
		cmocka_unit_test(descriptors_may_run_out_for_a_while),
		cmocka_unit_test(names_may_not_change_for_a_while),
		cmocka_unit_test(found_when_a_job_runs_without_its_record),
	};

	return cmocka_run_group_tests_name("call faults", tests, NULL, NULL);
}
