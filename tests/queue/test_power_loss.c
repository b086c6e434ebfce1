/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The power-loss campaign over everything that keeps a job on this machine: queue, scheduler, store
 * (SQLite through sys_vfs), local engine and attempts' directories, all on one disk that drops,
 * tears and reorders what was not synced. Launcher and shims are stand-ins that make the same calls
 * (loss_procs.h). The machine's power, or the daemon alone, is cut at any call; after some such
 * lives everything is left to come to rest, and a witness outside the machine judges: no accepted
 * job is lost, none is run twice at once or again without leave, one of which somebody was told
 * that it begins anew does so, no GPU is given to two, nobody is told a false end. And the proof
 * that the campaign can fail: each mistake that a sync guards against must be found.
 *
 * The store's writer is a thread, so a seed does not repeat a run exactly; each run is judged on
 * its own. Clocks have their own campaign in tests/actuate: a machine that lost power comes back
 * with the driver's own.
 */
#include <stdio.h>
#include <stdlib.h>

#include "sanitized.h"
#include "seeded.h"

#include "loss_life.h"

enum {
	SEEDS = SANITIZED ? 50 : 200,
	EVERY = SANITIZED ? 5 : 1, /* call is cut at */
	SEEDS_LONG = SANITIZED ? 1000 : 4000,
	SEEDS_OF_A_MISTAKE = 60, /* found in far fewer; it stops at the first */
	LIVES = 4,
	TURNS = 60,
	CALLS_A_LIFE = 1200, /* about what TURNS take */
	SUBMITS = 10,
};

struct campaign {
	const char *name;
	unsigned lies;	   /* of the disk */
	unsigned mistakes; /* of launcher and shims */
	bool no_sync;	   /* of SQLite */
	bool kill_only;
	bool stages;
	unsigned kill_one_in;	  /* shims */
	unsigned launcher_one_in; /* the launcher */
};

static void set_up(struct loss_machine *machine, const struct campaign *campaign, uint64_t seed)
{
	loss_machine_init(machine, seed);
	fake_sys_lie(machine->world, campaign->lies);
	machine->procs.mistakes = campaign->mistakes;
	machine->procs.kill_one_in = campaign->kill_one_in;
	machine->procs.launcher_one_in = campaign->launcher_one_in;
	machine->no_sync = campaign->no_sync;
	machine->kill_only = campaign->kill_only;
	machine->stages = campaign->stages;
}

/* What a campaign has met, so that one that tries nothing does not pass. */
struct tally {
	unsigned ends[TAKT_JOB_STATE_COUNT];
	unsigned repeated; /* attempts beyond a job's first that were executed */
	unsigned anew;	   /* of these, those that somebody had asked for */
};

static void count_up(struct tally *tally, const struct witness *witness)
{
	for (int state = 0; state < TAKT_JOB_STATE_COUNT; state++)
		tally->ends[state] += witness->ends[state];
	for (uint32_t a = 0; a < witness->nr_runs; a++) {
		bool again = false;

		for (uint32_t b = 0; b < a && !again; b++)
			again = witness->runs[a].serial == witness->runs[b].serial;
		tally->repeated += again;
		tally->anew += witness->runs[a].anew;
	}
}

static bool random_run(const struct campaign *campaign, uint64_t seed, struct tally *tally,
		       char why[200])
{
	struct loss_machine machine;
	bool held;

	set_up(&machine, campaign, seed);
	machine.cancel_one_in = machine.anew_one_in = 8;
	for (int i = 0; i < LIVES && !machine.witness.why[0]; i++) {
		machine.submits = SUBMITS;
		loss_machine_live(&machine, TURNS, takt_rng_range(&machine.rng, 1, CALLS_A_LIFE));
	}
	held = loss_machine_settle(&machine);
	count_up(tally, &machine.witness);
	snprintf(why, 200, "%s", machine.witness.why);
	loss_machine_fini(&machine);
	return held;
}

static uint64_t seeds(void)
{
	const char *wanted = getenv("TAKT_TEST_LONG");

	return wanted && wanted[0] == '1' ? SEEDS_LONG : SEEDS;
}

static struct tally hold_at_random_cuts(const struct campaign *campaign)
{
	struct tally tally = {0};
	char why[200];

	for (uint64_t seed = 1; seed <= seeds(); seed++)
		if (!random_run(campaign, seed, &tally, why))
			fail_msg("%s, seed %llu: %s", campaign->name, (unsigned long long)seed,
				 why);
	print_message("# trials: %llu %s cut at random\n", (unsigned long long)seeds(),
		      campaign->name);
	assert_true(tally.ends[TAKT_JOB_DONE] > seeds());
	assert_true(tally.ends[TAKT_JOB_FAILED] > 0);
	assert_true(tally.ends[TAKT_JOB_CANCELLED] > 0);
	assert_true(tally.anew > 0);
	return tally;
}

static void power_goes_at_random(void **state)
{
	struct tally tally = hold_at_random_cuts(&(struct campaign){.name = "power"});

	assert_true(tally.ends[TAKT_JOB_INTERRUPTED] > 0);
	assert_true(tally.repeated > tally.anew);
}

static void power_goes_and_helpers_are_killed(void **state)
{
	struct tally tally = hold_at_random_cuts(&(struct campaign){
		.name = "power and helpers", .kill_one_in = 60, .launcher_one_in = 20});

	assert_true(tally.ends[TAKT_JOB_INTERRUPTED] > 0);
	assert_true(tally.ends[TAKT_JOB_LOST] > 0);
}

static void daemon_is_killed_at_random(void **state)
{
	struct tally tally =
		hold_at_random_cuts(&(struct campaign){.name = "daemon", .kill_only = true});

	assert_int_equal(tally.repeated, tally.anew); /* a job outlives the daemon */
}

static void daemon_and_helpers_are_killed(void **state)
{
	struct tally tally = hold_at_random_cuts(&(struct campaign){.name = "daemon and helpers",
								    .kill_only = true,
								    .kill_one_in = 60,
								    .launcher_one_in = 20});

	assert_true(tally.ends[TAKT_JOB_LOST] > 0);
	assert_true(tally.repeated > tally.anew);
}

static void power_goes_while_jobs_are_staged(void **state)
{
	struct tally tally = hold_at_random_cuts(&(struct campaign){
		.name = "power, staged", .stages = true, .kill_one_in = 60, .launcher_one_in = 20});

	assert_true(tally.ends[TAKT_JOB_INTERRUPTED] > 0);
}

static void daemon_is_killed_while_jobs_are_staged(void **state)
{
	struct tally tally = hold_at_random_cuts(&(struct campaign){.name = "daemon, staged",
								    .stages = true,
								    .kill_only = true,
								    .kill_one_in = 60,
								    .launcher_one_in = 20});

	assert_true(tally.ends[TAKT_JOB_LOST] > 0);
}

/* Two jobs on a machine with a past or without; each of its calls is once the first to find it
 * off. */
static bool short_run(const struct campaign *campaign, bool has_past, unsigned long cut,
		      bool *ret_was_cut, char why[200])
{
	struct loss_machine machine;
	bool held;

	set_up(&machine, campaign, cut);
	if (has_past) {
		machine.submits = 1;
		loss_machine_live(&machine, 5, 0);
	}
	machine.submits = 2;
	loss_machine_live(&machine, 40, cut);
	*ret_was_cut = machine.was_cut;
	held = loss_machine_settle(&machine);
	snprintf(why, 200, "%s", machine.witness.why);
	loss_machine_fini(&machine);
	return held;
}

static void hold_at_any_cut(const struct campaign *campaign, bool has_past)
{
	unsigned long cut, trials = 0;
	bool was_cut = true;
	char why[200];

	for (cut = 1; was_cut; cut += EVERY, trials++)
		if (!short_run(campaign, has_past, cut, &was_cut, why))
			fail_msg("%s, call %lu: %s", campaign->name, cut, why);
	print_message("# trials: %lu %s cut at each call\n", trials, campaign->name);
}

static void power_goes_at_any_call_of_the_first_day(void **state)
{
	hold_at_any_cut(&(struct campaign){.name = "power"}, false);
}

static void power_goes_at_any_call(void **state)
{
	hold_at_any_cut(&(struct campaign){.name = "power"}, true);
}

static void daemon_is_killed_at_any_call(void **state)
{
	hold_at_any_cut(&(struct campaign){.name = "daemon", .kill_only = true}, true);
}

static void daemon_is_killed_at_any_call_while_jobs_are_staged(void **state)
{
	hold_at_any_cut(
		&(struct campaign){.name = "daemon, staged", .stages = true, .kill_only = true},
		true);
}

static void must_be_found(const struct campaign *campaign)
{
	struct tally unused = {0};
	char why[200];

	for (uint64_t seed = 1; seed <= SEEDS_OF_A_MISTAKE; seed++)
		if (!random_run(campaign, seed, &unused, why)) {
			print_message("# %s: seed %llu: %s\n", campaign->name,
				      (unsigned long long)seed, why);
			return;
		}
	fail_msg("%s: nothing found with %d seeds", campaign->name, SEEDS_OF_A_MISTAKE);
}

static void found_when_sqlite_does_not_sync(void **state)
{
	must_be_found(&(struct campaign){.name = "synchronous=OFF", .no_sync = true});
}

static void found_when_files_are_not_synced(void **state)
{
	must_be_found(&(struct campaign){.name = "no fsync", .lies = FAKE_SYS_NO_FILE_SYNC});
}

static void found_when_directories_are_not_synced(void **state)
{
	must_be_found(&(struct campaign){.name = "no fsync of directories",
					 .lies = FAKE_SYS_NO_DIR_SYNC});
}

static void found_when_the_launcher_does_not_sync_attempts(void **state)
{
	must_be_found(&(struct campaign){.name = "no fsync of the attempts' directory",
					 .mistakes = LOSS_NO_JOBS_SYNC});
}

static void found_when_started_is_written_after_exec(void **state)
{
	must_be_found(
		&(struct campaign){.name = "started after exec", .mistakes = LOSS_LATE_STARTED});
}

static void found_when_a_shim_drops_its_lock(void **state)
{
	must_be_found(
		&(struct campaign){.name = "no lock", .mistakes = LOSS_NO_LOCK, .kill_only = true});
}

static void found_when_a_staged_shim_does_not_wait(void **state)
{
	must_be_found(&(struct campaign){
		.name = "no turn", .stages = true, .mistakes = LOSS_NO_TURN, .kill_only = true});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(power_goes_at_any_call_of_the_first_day),
		cmocka_unit_test(power_goes_at_any_call),
		cmocka_unit_test(daemon_is_killed_at_any_call),
		cmocka_unit_test(power_goes_at_random),
		cmocka_unit_test(power_goes_and_helpers_are_killed),
		cmocka_unit_test(daemon_is_killed_at_random),
		cmocka_unit_test(daemon_and_helpers_are_killed),
		cmocka_unit_test(power_goes_while_jobs_are_staged),
		cmocka_unit_test(daemon_is_killed_while_jobs_are_staged),
		cmocka_unit_test(daemon_is_killed_at_any_call_while_jobs_are_staged),
		cmocka_unit_test(found_when_sqlite_does_not_sync),
		cmocka_unit_test(found_when_files_are_not_synced),
		cmocka_unit_test(found_when_directories_are_not_synced),
		cmocka_unit_test(found_when_the_launcher_does_not_sync_attempts),
		cmocka_unit_test(found_when_started_is_written_after_exec),
		cmocka_unit_test(found_when_a_shim_drops_its_lock),
		cmocka_unit_test(found_when_a_staged_shim_does_not_wait),
	};

	return cmocka_run_group_tests_name("power loss", tests, NULL, NULL);
}
