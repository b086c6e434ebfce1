/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A GPU is never left changed: the actuator and the guard die at every crash point that their code
 * has, at random passes and in random order, alone, one after the other and both at once, over
 * boards that get lost, drivers that are loaded anew and calls of theirs that never return, among
 * leases, MIG layouts and a facility's caps, which stay. Time is virtual, a death is a jump out of
 * the middle of the call: what was in memory is gone, what is in the fake world stays. After each
 * round of deaths somebody starts who lives; then the boards, not the journal, are asked.
 *
 * TAKT_GUARDIAN_DEATHS=N for more than a few thousand deaths; the last lines say what was tried.
 */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "actuate/journal.h"
#include "actuate_kit.h"
#include "base/compiler.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/str.h"
#include "fake_cpus.h"

enum {
	GPUS = 3,
	DEFAULT_DEATHS = 3000,
	MOST_PASSES = 60, /* of any crash point, before the armed one strikes */
	FOUND_MW = 400000,
	PATIENCE_MS = 120000, /* longer than any pause between two tries */
	MOST_WAITS = 300,     /* of a guard, before it is killed at last */
	POINTS = 40,
};

static const char FOUND_MIG[] = "9:0,9:4";

static struct kit kit;
static struct takt_rng rng;

static struct {
	jmp_buf back;
	bool armed;
	uint32_t passes_left, waits;
	void *owned[8]; /* what the process allocated */
	size_t owned_count;
} process;

static struct {
	unsigned long deaths, of_actuator, of_guard, of_both, reloads, losses, refusals, hangs,
		in_driver, caps, cuts, declarations, left_changed;
	struct {
		const char *name;
		unsigned long deaths;
	} points[POINTS];
} tally;

/* What may stand, 0 = nothing: what the boards said last, and what was asked for since. */
struct may_be {
	uint32_t values[64];
	uint32_t count;
};

static struct may_be caps_mw[GPUS];

/* Of GPU 0, and what the file says now, which may come into force later than all that follows it.
 */
#define DECLARED "/state/declared"
static struct {
	struct may_be mhz, mw;
	uint32_t file_mhz, file_mw;
} declared;

static bool journal_lies; /* for the mutation check: records are dropped */

/* What the linker puts in place of the real ones. */
void __wrap_takt_crash_point(const char *name);
void *__wrap_takt_zalloc(size_t size);
void *__real_takt_zalloc(size_t size);
void __wrap_takt_free(void *p);
void __real_takt_free(void *p);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms);
int __wrap_nanosleep(const struct timespec *ts, struct timespec *left);
int __wrap_takt_journal_record(struct takt_journal *journal,
			       const struct takt_journal_record *record, struct takt_err *err);
int __real_takt_journal_record(struct takt_journal *journal,
			       const struct takt_journal_record *record, struct takt_err *err);

static void count_point(const char *name)
{
	size_t i = 0;

	while (tally.points[i].name && strcmp(tally.points[i].name, name) != 0)
		i++;
	assert_true(i < POINTS - 1);
	tally.points[i].name = name;
	tally.points[i].deaths++;
}

void __wrap_takt_crash_point(const char *name)
{
	if (!process.armed || process.passes_left-- > 0)
		return;
	process.armed = false;
	count_point(name);
	longjmp(process.back, 1);
}

void *__wrap_takt_zalloc(size_t size)
{
	void *made = __real_takt_zalloc(size);

	assert_true(process.owned_count < TAKT_ARRAY_LEN(process.owned));
	process.owned[process.owned_count++] = made;
	return made;
}

void __wrap_takt_free(void *p)
{
	for (size_t i = 0; p && i < process.owned_count; i++)
		if (process.owned[i] == p)
			process.owned[i] = process.owned[--process.owned_count];
	__real_takt_free(p);
}

static void wake_or_hang(bool hang);

/* Time in which a hanging driver may come back. Who waits for ever is killed some day. */
static void wait_once(void)
{
	wake_or_hang(false);
	if (++process.waits < MOST_WAITS)
		return;
	process.armed = false;
	count_point("waiting");
	longjmp(process.back, 1);
}

/* The guard waits for its actuator's end without a limit, and that has come; any other wait is time
 * that passes. */
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
	if (timeout_ms < 0) {
		fds[n - 1].revents = POLLIN;
		return 1;
	}
	wait_once();
	fake_sys_advance(kit.world, ((uint64_t)timeout_ms + 1) * TAKT_NS_PER_MS);
	return 0;
}

int __wrap_nanosleep(const struct timespec *ts, struct timespec *left)
{
	wait_once();
	fake_sys_advance(kit.world, (uint64_t)ts->tv_sec * TAKT_NS_PER_S + (uint64_t)ts->tv_nsec);
	return 0;
}

int __wrap_takt_journal_record(struct takt_journal *journal,
			       const struct takt_journal_record *record, struct takt_err *err)
{
	return journal_lies ? 0 : __real_takt_journal_record(journal, record, err);
}

static uint64_t below(uint64_t n)
{
	return takt_rng_below(&rng, n);
}

static bool may_be(const struct may_be *set, uint32_t value)
{
	for (uint32_t i = 0; i < set->count; i++)
		if (set->values[i] == value)
			return true;
	return false;
}

static void add(struct may_be *set, uint32_t value)
{
	if (may_be(set, value))
		return;
	assert_true(set->count < TAKT_ARRAY_LEN(set->values));
	set->values[set->count++] = value;
}

/* A thread inside the driver outlives its process, and the lock with it: before anybody else may
 * set, its call has had its effect, or the kill has kept it from that. */
static void end_calls(void)
{
	fake_boards_let_go(&kit.machine);
	for (uint32_t g = 0; g < GPUS; g++) {
		tally.in_driver += kit.machine.boards[g].stray;
		fake_boards_end_stray(&kit.machine, g, below(2));
	}
}

/* Memory, descriptors, locks and threads of a process go with it. */
static void bury(void)
{
	fake_sys_process_death(kit.world);
	while (process.owned_count)
		__real_takt_free(process.owned[--process.owned_count]);
	kit.actuator = NULL;
	memset(&kit.mandate, 0, sizeof(kit.mandate));
	memset(&kit.journal, 0, sizeof(kit.journal));
	kit.journal.fd = -1;
	kit.log[0] = '\0';
	end_calls();
	close_range(3, ~0u, 0);
}

static void arm(bool mortal)
{
	process.armed = mortal;
	process.waits = 0;
	process.passes_left = (uint32_t)below(1 + below(MOST_PASSES));
}

static void died(void)
{
	tally.deaths++;
	bury();
}

/* --- what the world does ----------------------------------------------------------------- */

/* One whose setters the driver refuses to this user is as good as lost. */
static void lose_or_find_a_gpu(void)
{
	struct fake_board *board = &kit.machine.boards[below(GPUS)];
	bool lost = board->set_rc == 0 && below(4) == 0;
	int rc = lost ? (below(3) ? -ENODEV : -EPERM) : 0;

	tally.losses += rc == -ENODEV;
	tally.refusals += rc == -EPERM;
	board->set_rc = board->reset_rc = board->power_rc = board->mem_rc = board->mig_rc = rc;
}

/* A process comes to a GPU or leaves it: while it is there nothing of it is destroyed. */
static void use_or_leave_a_gpu(void)
{
	struct fake_board *board = &kit.machine.boards[below(GPUS)];

	board->mig_in_use = !board->mig_in_use;
}

/* A driver call that never returns, or does after a while. */
static void wake_or_hang(bool hang)
{
	for (uint32_t g = 0; g < GPUS; g++) {
		struct fake_board *board = &kit.machine.boards[g];

		if (board->hangs && below(8) == 0) {
			fake_boards_unhang(&kit.machine, g);
		} else if (hang && below(GPUS) == 0) {
			board->hangs = true;
			board->hangs_inside = below(4);
			tally.hangs++;
		}
	}
}

/* The driver forgets locks and limits; which load it is can be told. */
static void reload_the_driver(void)
{
	static unsigned load;

	for (uint32_t g = 0; g < GPUS; g++) {
		kit.machine.boards[g].locked = kit.machine.boards[g].mem_locked = false;
		kit.machine.boards[g].power_limit_mw = FOUND_MW;
		takt_strcpy(kit.machine.boards[g].mig, TAKT_MIG_TEXT, FOUND_MIG);
		caps_mw[g] = (struct may_be){.count = 1};
	}
	add(&declared.mhz, 0);
	add(&declared.mw, 0);
	(void)snprintf(kit.machine.info.driver_version, sizeof(kit.machine.info.driver_version),
		       "550.%u", ++load);
	tally.reloads++;
}

/* Lost ones are there again; those that hang may do so for ever, while nobody but a guard cares. */
static void heal(bool wake)
{
	for (uint32_t g = 0; g < GPUS; g++) {
		struct fake_board *board = &kit.machine.boards[g];

		board->set_rc = board->reset_rc = board->power_rc = board->mem_rc = 0;
		board->mig_rc = 0;
		board->mig_in_use = false;
		if (wake)
			fake_boards_unhang(&kit.machine, g);
	}
}

/* --- the actuator ------------------------------------------------------------------------ */

static void note_cap(const struct takt_actuate_request *request)
{
	uint32_t g = (uint32_t)(request->uuid[strlen(request->uuid) - 1] - '0');

	tally.caps++;
	add(&caps_mw[g], request->power_limit_mw);
}

/* As takt serve does it: the file is on disk before anybody is asked to go by it. */
static void write_declaration(void)
{
	uint32_t mhz = below(3) ? 600 + 15 * (uint32_t)below(60) : 0;
	uint32_t watts = below(2) ? 150 + (uint32_t)below(250) : 0;
	char clock[32] = "reset", power[32] = "", text[96] = "";

	if (mhz)
		(void)snprintf(clock, sizeof(clock), "range 210 %u", mhz);
	if (watts)
		(void)snprintf(power, sizeof(power), " power %u", watts);
	if (mhz || watts)
		(void)snprintf(text, sizeof(text), "GPU-fake-0 %s%s\n", clock, power);
	fake_sys_add_file(kit.world, DECLARED, text, strlen(text));
	declared.file_mhz = mhz;
	declared.file_mw = 1000 * watts;
	add(&declared.mhz, declared.file_mhz);
	add(&declared.mw, declared.file_mw);
	tally.declarations++;
}

static void request(enum takt_actuate_op op)
{
	struct takt_actuate_request request = {
		.version = TAKT_ACTUATE_VERSION,
		.op = op,
		.seq = 1,
		.lease_id = 1 + below(5),
		.job_id = 1 + below(5),
		.ttl_ns = (50 + below(500)) * TAKT_NS_PER_MS,
		.rank = TAKT_ACTUATE_RANK_JOB,
		.max_mhz = below(3) ? 300 + (uint32_t)below(1600) : 0,
		.power_limit_mw = below(3) ? 0 : 100000 + (uint32_t)below(300000),
		.mem_max_mhz = below(4) ? 0 : 405 + (uint32_t)below(1200),
	};
	struct takt_actuate_reply reply;
	uint64_t whose;

	(void)snprintf(request.uuid, sizeof(request.uuid), "GPU-fake-%u", (unsigned)below(GPUS));
	if (op == TAKT_ACTUATE_CAP)
		note_cap(&request);
	if (op == TAKT_ACTUATE_DECLARE)
		write_declaration();
	tally.cuts += op == TAKT_ACTUATE_MIG;
	if (below(3))
		takt_strcpy(request.mig, sizeof(request.mig), below(2) ? "none" : "3g.40gb");
	(void)takt_actuator_request(kit.actuator, 1, &request, kit_now(&kit), &reply);
	kit_run(&kit, 10 * (unsigned)below(8));
	while (takt_actuator_reply(kit.actuator, &whose, &reply))
		;
}

static void work(uint32_t turns)
{
	static const enum takt_actuate_op ops[] = {
		TAKT_ACTUATE_SET, TAKT_ACTUATE_SET,   TAKT_ACTUATE_SET,
		TAKT_ACTUATE_END, TAKT_ACTUATE_RESET, TAKT_ACTUATE_CAP,
		TAKT_ACTUATE_CPU, TAKT_ACTUATE_MIG,   TAKT_ACTUATE_DECLARE};

	for (uint32_t i = 0; i < turns; i++) {
		request(ops[below(TAKT_ARRAY_LEN(ops))]);
		if (below(6) == 0)
			lose_or_find_a_gpu();
		if (below(6) == 0)
			wake_or_hang(below(2));
		if (below(6) == 0)
			use_or_leave_a_gpu();
		if (below(8) == 0)
			kit_run(&kit, 700);
	}
}

/* Starts, works and, if it lives that long, is killed. */
static void an_actuators_life(void)
{
	arm(true);
	if (setjmp(process.back) == 0) {
		kit_start(&kit);
		work(40);
		process.armed = false;
	}
	tally.of_actuator++;
	died();
}

/* --- the guard --------------------------------------------------------------------------- */

/* True when it came to its own end. */
static bool a_guards_life(bool mortal)
{
	struct takt_actuate_config config = {
		.sys = fake_sys_table(kit.world),
		.listen_fd = -1,
		.stop_fd = -1,
		.journal_path = KIT_JOURNAL,
		.lock_path = KIT_LOCK,
		.baseline_path = "",
		.declared_path = DECLARED,
	};
	volatile bool ended = false;
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
	close(ends[0]);
	fake_boards_installed = &kit.machine;
	arm(mortal);
	if (setjmp(process.back) == 0) {
		ended = takt_guard_run(&config, ends[1], NULL) == 0;
		process.armed = false;
		bury();
		return ended;
	}
	tally.of_guard++;
	died();
	return false;
}

/* A start that nothing kills; until all is back. */
static void a_start_that_lives(void)
{
	process.armed = false;
	kit_start(&kit);
	for (unsigned ms = 0; ms < PATIENCE_MS && !takt_keeper_all_clean(kit_keeper(&kit));
	     ms += 100)
		kit_run(&kit, 100);
	bury();
}

/* The limit of a GPU for which this is declared and that is its cap; 0: not. */
static uint32_t limit_of(uint32_t declared_mw, uint32_t cap_mw)
{
	uint32_t base_mw = declared_mw ? declared_mw : FOUND_MW;

	return cap_mw && cap_mw < base_mw ? cap_mw : base_mw;
}

/* The limit is one that may stand; from then on only what comes to it may. */
static bool power_is_back(uint32_t g)
{
	const struct may_be nowhere = {.count = 1}, caps = caps_mw[g];
	const struct may_be rules = g == 0 ? declared.mw : nowhere;
	struct may_be rules_left = {0}, caps_left = {0};

	for (uint32_t i = 0; i < rules.count * caps.count; i++) {
		uint32_t rule = rules.values[i / caps.count], cap = caps.values[i % caps.count];

		if (limit_of(rule, cap) != kit.machine.boards[g].power_limit_mw)
			continue;
		add(&rules_left, rule);
		add(&caps_left, cap);
	}
	caps_mw[g] = caps_left;
	if (g == 0) {
		declared.mw = rules_left;
		add(&declared.mw, declared.file_mw);
	}
	return caps_left.count > 0;
}

static bool lock_is_back(uint32_t g)
{
	const struct fake_board *board = &kit.machine.boards[g];
	uint32_t mhz = board->locked ? board->range.max_mhz : 0;

	if (g != 0)
		return !board->locked;
	if (!may_be(&declared.mhz, mhz))
		return false;
	declared.mhz = (struct may_be){{mhz}, 1};
	add(&declared.mhz, declared.file_mhz);
	return true;
}

static bool all_are_back(void)
{
	for (uint32_t g = 0; g < GPUS; g++)
		if (!lock_is_back(g) || kit.machine.boards[g].mem_locked ||
		    strcmp(kit.machine.boards[g].mig, FOUND_MIG) != 0 || !power_is_back(g))
			return false;
	return fake_cpus_as_found(kit.world);
}

/* One actuator's life and what follows it. A guard may not wait for boards that are lost for good,
 * so they are found before it begins, or it is killed as well; so it is where one hangs on. */
static void round_of_deaths(void)
{
	bool back = false;

	an_actuators_life();
	if (below(10) == 0)
		reload_the_driver();
	if (below(3) == 0) {
		tally.of_both++; /* nobody is left to restore */
	} else {
		heal(below(2));
		for (int tries = 0; !back && tries < 3; tries++)
			back = a_guards_life(below(2));
	}
	heal(true);
	if (!back && below(3) == 0)
		an_actuators_life(); /* dies while it recovers, or later */
	else if (back)
		goto judge;
	heal(true);
	a_start_that_lives();
judge:
	if (!all_are_back())
		tally.left_changed++;
}

static void begin(void)
{
	memset(&tally, 0, sizeof(tally));
	takt_rng_init(&rng, 1);
	kit_init(&kit, GPUS);
	fake_cpus_add(kit.world);
	fake_sys_add_file(kit.world, DECLARED, "", 0);
	kit.declared_path = DECLARED;
	memset(&declared, 0, sizeof(declared));
	declared.mhz.count = declared.mw.count = 1;
	process.owned_count = 0;
	for (uint32_t g = 0; g < GPUS; g++) {
		caps_mw[g] = (struct may_be){.count = 1};
		kit.machine.boards[g].util_pct = g % 2 ? 100 : 0; /* at work, or idle */
	}
}

static unsigned long deaths_wanted(void)
{
	const char *text = getenv("TAKT_GUARDIAN_DEATHS");

	return text ? strtoul(text, NULL, 10) : DEFAULT_DEATHS;
}

static void no_gpu_is_left_changed_whoever_dies_where(void **state)
{
	begin();
	while (tally.deaths < deaths_wanted()) {
		round_of_deaths();
		if (tally.left_changed)
			fail_msg("a GPU is left changed after %lu deaths", tally.deaths);
	}
	printf("# trials: %lu deaths at crash points within one process\n", tally.deaths);
	printf("# deaths %lu actuator %lu guard %lu both %lu reloads %lu losses %lu refusals %lu "
	       "hangs %lu in_driver %lu caps %lu cuts %lu declarations %lu left %lu\n",
	       tally.deaths, tally.of_actuator, tally.of_guard, tally.of_both, tally.reloads,
	       tally.losses, tally.refusals, tally.hangs, tally.in_driver, tally.caps, tally.cuts,
	       tally.declarations, tally.left_changed);
	for (size_t i = 0; tally.points[i].name; i++)
		printf("# point %s %lu\n", tally.points[i].name, tally.points[i].deaths);
	fake_sys_free(kit.world);
}

/* Every point that these two pass; the actuator's own main loop has one more, which the test of the
 * real processes reaches. */
static void every_crash_point_was_died_at(void **state)
{
	static const char *const names[] = {
		"actuate.set_begin",	    "actuate.set_journaled",   "actuate.set_posted",
		"actuate.set_done",	    "actuate.restore_begin",   "actuate.restore_done",
		"actuate.restore_recorded", "actuate.journal_written", "actuate.journal_synced",
		"actuate.guard_opened",	    "actuate.guard_began",     "actuate.guard_locked",
		"actuate.guard_woken",	    "actuate.guard_restored",  "actuate.cpu_journaled",
		"actuate.cpu_set",	    "actuate.cpu_put_back",    "actuate.mig_begin",
		"actuate.mig_journaled",    "actuate.mig_posted",      "actuate.mig_set",
		"actuate.mig_restore",	    "actuate.mig_restored"};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(names); i++) {
		size_t k = 0;

		while (tally.points[k].name && strcmp(tally.points[k].name, names[i]) != 0)
			k++;
		if (!tally.points[k].name)
			fail_msg("nobody died at %s", names[i]);
	}
}

static void a_journal_that_forgets_is_found_out(void **state)
{
	begin();
	journal_lies = true;
	while (tally.deaths < 300)
		round_of_deaths();
	journal_lies = false;
	assert_true(tally.left_changed > 0);
	fake_sys_free(kit.world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_gpu_is_left_changed_whoever_dies_where),
		cmocka_unit_test(every_crash_point_was_died_at),
		cmocka_unit_test(a_journal_that_forgets_is_found_out),
	};

	return cmocka_run_group_tests_name("guardian", tests, NULL, NULL);
}
