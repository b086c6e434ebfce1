/* SPDX-License-Identifier: Apache-2.0 */
/* Requests and leases: who gets what, when he is answered, and what he is told. */
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
	ME = 1,
	ANOTHER = 2,
	TTL_MS = 1000,
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

static struct takt_actuate_request request_of(enum takt_actuate_op op, uint64_t lease)
{
	static uint64_t seq;

	return (struct takt_actuate_request){
		.version = TAKT_ACTUATE_VERSION,
		.op = op,
		.seq = ++seq,
		.lease_id = lease,
		.job_id = lease / 10,
		.ttl_ns = TTL_MS * TAKT_NS_PER_MS,
		.rank = TAKT_ACTUATE_RANK_JOB,
		.max_mhz = 900,
	};
}

static struct takt_actuate_request set_request(uint64_t lease, const char *uuid)
{
	struct takt_actuate_request request = request_of(TAKT_ACTUATE_SET, lease);

	takt_strcpy(request.uuid, sizeof(request.uuid), uuid);
	return request;
}

/* Asks and lets the actuator work until it answers; no other reply may come meanwhile. */
static struct takt_actuate_reply ask(uint64_t connection, struct takt_actuate_request request)
{
	struct takt_actuate_reply reply;
	uint64_t whose = connection;
	bool done;

	done = takt_actuator_request(kit.actuator, connection, &request, kit_now(&kit), &reply);
	for (int i = 0; !done && i < 1000; i++) {
		kit_run(&kit, 10);
		done = takt_actuator_reply(kit.actuator, &whose, &reply);
	}
	assert_true(done);
	assert_int_equal(whose, connection);
	assert_int_equal(reply.seq, request.seq);
	assert_int_equal(reply.op, request.op);
	assert_int_equal(reply.version, TAKT_ACTUATE_VERSION);
	return reply;
}

static struct takt_actuate_reply ask_set(uint64_t connection, uint64_t lease, const char *uuid)
{
	return ask(connection, set_request(lease, uuid));
}

static struct takt_actuate_reply status(uint32_t g)
{
	struct takt_actuate_request request = request_of(TAKT_ACTUATE_STATUS, 0);

	request.gpu_index = g;
	return ask(ME, request);
}

static bool locked(uint32_t g)
{
	return kit.machine.boards[g].locked;
}

static void hello_tells_epoch_and_gpus(void **state)
{
	struct takt_actuate_reply reply = ask(ME, request_of(TAKT_ACTUATE_HELLO, 0));

	assert_int_equal(reply.rc, 0);
	assert_int_equal(reply.epoch, 1);
	assert_int_equal(reply.gpu_count, 3);
}

static void a_lease_is_set_shown_and_ended(void **state)
{
	struct takt_actuate_reply reply = ask_set(ME, 50, "GPU-fake-1");

	assert_int_equal(reply.rc, 0);
	assert_int_equal(reply.gpu_state, TAKT_ACTUATE_LEASED);
	assert_int_equal(reply.applied_min_mhz, 210);
	assert_int_equal(reply.applied_max_mhz, 900);
	assert_int_equal(reply.readback_mhz, 900);
	assert_true(locked(1));
	reply = status(1);
	assert_int_equal(reply.lease_id, 50);
	assert_int_equal(reply.job_id, 5);
	assert_string_equal(reply.uuid, "GPU-fake-1");
	reply = ask(ME, request_of(TAKT_ACTUATE_END, 50));
	assert_int_equal(reply.rc, 0);
	assert_int_equal(reply.gpu_state, TAKT_ACTUATE_CLEAN);
	assert_false(locked(1));
	assert_int_equal(ask(ME, request_of(TAKT_ACTUATE_END, 50)).rc, -TAKT_E_NOT_FOUND);
}

static void a_lease_runs_out_unless_it_is_renewed(void **state)
{
	struct takt_actuate_request renew = request_of(TAKT_ACTUATE_RENEW, 50);

	ask_set(ME, 50, "GPU-fake-0");
	for (int i = 0; i < 10; i++) {
		kit_run(&kit, TTL_MS / 2);
		assert_int_equal(ask(ME, renew).rc, 0);
		assert_true(locked(0));
	}
	kit_run(&kit, TTL_MS + 50);
	assert_false(locked(0));
	assert_non_null(strstr(kit.log, "GPU-fake-0: the lease of job 5 ran out"));
	assert_int_equal(status(0).lease_id, 0);
	assert_int_equal(ask(ME, renew).rc, -TAKT_E_NOT_FOUND);
}

static void time_asleep_counts(void **state)
{
	ask_set(ME, 50, "GPU-fake-0");
	fake_sys_suspend(kit.world, 2 * TTL_MS * TAKT_NS_PER_MS);
	kit_run(&kit, 20);
	assert_false(locked(0));
}

static void one_renewal_renews_all_of_a_connection_and_no_others(void **state)
{
	struct takt_actuate_request renew = request_of(TAKT_ACTUATE_RENEW, 0);

	ask_set(ME, 50, "GPU-fake-0");
	ask_set(ME, 51, "GPU-fake-1");
	ask_set(ANOTHER, 60, "GPU-fake-2");
	renew.ttl_ns = 0; /* as before */
	for (int i = 0; i < 4; i++) {
		kit_run(&kit, TTL_MS / 2);
		assert_int_equal(ask(ME, renew).rc, 0);
	}
	assert_true(locked(0) && locked(1));
	assert_false(locked(2));
}

static void the_same_request_again_changes_nothing(void **state)
{
	ask_set(ME, 50, "GPU-fake-0");
	kit_run(&kit, TTL_MS / 2);
	assert_int_equal(ask_set(ANOTHER, 50, "GPU-fake-0").rc, 0);
	assert_int_equal(kit.machine.boards[0].sets, 1);
	kit_run(&kit, TTL_MS / 2 + 100);
	assert_true(locked(0)); /* but it was renewed */
}

static struct takt_actuate_reply ask_mhz(uint64_t lease, uint32_t max_mhz,
					 enum takt_actuate_rank rank)
{
	struct takt_actuate_request request = set_request(lease, "GPU-fake-0");

	request.max_mhz = max_mhz;
	request.rank = rank;
	return ask(ME, request);
}

static void a_job_has_one_lease_a_gpu(void **state)
{
	ask_set(ME, 50, "GPU-fake-0");
	assert_int_equal(ask_set(ANOTHER, 51, "GPU-fake-0").rc, 0); /* of the same job: replaced */
	assert_int_equal(status(0).lease_id, 51);
	assert_int_equal(ask_set(ME, 51, "GPU-fake-1").rc, -TAKT_E_CONFLICT);
}

static void of_jobs_that_share_a_gpu_the_most_demanding_wins(void **state)
{
	struct takt_actuate_reply reply;

	ask_mhz(50, 900, TAKT_ACTUATE_RANK_JOB);
	reply = ask_mhz(60, 600, TAKT_ACTUATE_RANK_JOB);
	assert_int_equal(reply.rc, 0);
	assert_int_equal(reply.applied_max_mhz, 900);
	assert_int_equal(kit.machine.boards[0].sets, 1);
	assert_int_equal(ask_mhz(70, 1200, TAKT_ACTUATE_RANK_JOB).applied_max_mhz, 1200);
	assert_int_equal(status(0).lease_id, 70);
	ask(ME, request_of(TAKT_ACTUATE_END, 70));
	ask(ME, request_of(TAKT_ACTUATE_END, 50));
	assert_int_equal(kit.machine.boards[0].range.max_mhz, 600);
	assert_true(locked(0));
	ask(ME, request_of(TAKT_ACTUATE_END, 60));
	assert_false(locked(0));
}

static void a_job_that_wants_no_limit_lifts_the_others(void **state)
{
	ask_mhz(50, 900, TAKT_ACTUATE_RANK_JOB);
	assert_int_equal(ask_mhz(60, 0, TAKT_ACTUATE_RANK_JOB).rc, 0);
	assert_false(locked(0));
	assert_int_equal(status(0).lease_id, 60);
	kit_run(&kit, TTL_MS / 2);
	assert_int_equal(status(0).lease_id, 60); /* both live on */
	ask(ME, request_of(TAKT_ACTUATE_END, 60));
	assert_true(locked(0));
}

static void a_benchmark_outranks_jobs_and_jobs_a_standing_wish(void **state)
{
	ask_mhz(1, 1500, TAKT_ACTUATE_RANK_STANDING);
	assert_int_equal(kit.machine.boards[0].range.max_mhz, 1500);
	ask_mhz(50, 900, TAKT_ACTUATE_RANK_JOB);
	assert_int_equal(kit.machine.boards[0].range.max_mhz, 900);
	ask_mhz(60, 600, TAKT_ACTUATE_RANK_BENCHMARK);
	assert_int_equal(kit.machine.boards[0].range.max_mhz, 600);
	assert_int_equal(ask_mhz(70, 1800, TAKT_ACTUATE_RANK_JOB).applied_max_mhz, 600);
	assert_int_equal(ask_mhz(80, 300, TAKT_ACTUATE_RANK_BENCHMARK).rc, -TAKT_E_BUSY);
	ask(ME, request_of(TAKT_ACTUATE_END, 60));
	assert_int_equal(kit.machine.boards[0].range.max_mhz, 1800);
	ask(ME, request_of(TAKT_ACTUATE_END, 50));
	ask(ME, request_of(TAKT_ACTUATE_END, 70));
	assert_int_equal(kit.machine.boards[0].range.max_mhz, 1500);
	ask_mhz(90, 0, TAKT_ACTUATE_RANK_JOB); /* no wish of its own: the standing one holds */
	assert_int_equal(kit.machine.boards[0].range.max_mhz, 1500);
}

static void a_job_never_raises_a_standing_power_limit(void **state)
{
	struct takt_actuate_request standing = set_request(1, "GPU-fake-0");
	struct takt_actuate_request job = set_request(50, "GPU-fake-0");

	standing.rank = TAKT_ACTUATE_RANK_STANDING;
	standing.power_limit_mw = 250000;
	assert_int_equal(ask(ME, standing).applied_power_mw, 250000);
	job.power_limit_mw = 300000;
	job.max_mhz = 1200;
	assert_int_equal(ask(ME, job).applied_power_mw, 250000);
	assert_int_equal(status(0).applied_max_mhz, 1200); /* its clock is its own */
	assert_int_equal(kit.machine.boards[0].power_limit_mw, 250000);
	job.power_limit_mw = 200000; /* less is for a job to ask */
	assert_int_equal(ask(ME, job).applied_power_mw, 200000);
	ask(ME, request_of(TAKT_ACTUATE_END, 50));
	assert_int_equal(kit.machine.boards[0].power_limit_mw, 250000);
}

static void a_refused_wish_leaves_the_lease_as_it_was(void **state)
{
	struct takt_actuate_request request = set_request(50, "GPU-fake-0");

	ask(ME, request);
	request = set_request(50, "GPU-fake-0");
	request.power_limit_mw = 50000;
	assert_int_equal(ask(ME, request).rc, -EINVAL);
	assert_int_equal(status(0).applied_max_mhz, 900);
	assert_int_equal(status(0).lease_id, 50);
}

static void a_cap_holds_without_any_lease(void **state)
{
	struct takt_actuate_request cap = request_of(TAKT_ACTUATE_CAP, 0);
	struct takt_actuate_request set = set_request(50, "GPU-fake-0");

	cap.power_limit_mw = 300000;
	assert_int_equal(ask(ME, cap).rc, 0);
	for (uint32_t g = 0; g < 3; g++) {
		assert_int_equal(kit.machine.boards[g].power_limit_mw, 300000);
		assert_int_equal(status(g).cap_power_mw, 300000);
		assert_int_equal(status(g).gpu_state, TAKT_ACTUATE_CLEAN);
	}
	set.power_limit_mw = 350000; /* not above the cap */
	assert_int_equal(ask(ME, set).applied_power_mw, 300000);
	takt_actuator_end_all(kit.actuator, kit_now(&kit));
	kit_run(&kit, 100);
	assert_int_equal(kit.machine.boards[0].power_limit_mw, 300000);
	cap = request_of(TAKT_ACTUATE_CAP, 0);
	assert_int_equal(ask(ME, cap).rc, 0);
	for (uint32_t g = 0; g < 3; g++)
		assert_int_equal(kit.machine.boards[g].power_limit_mw, 400000);
}

static void a_cap_that_one_gpu_cannot_take_is_set_on_none(void **state)
{
	struct takt_actuate_request cap = request_of(TAKT_ACTUATE_CAP, 0);

	kit.machine.boards[2].facts.power_min_mw = 250000;
	cap.power_limit_mw = 200000;
	assert_int_equal(ask(ME, cap).rc, -EINVAL);
	kit_run(&kit, 100);
	assert_int_equal(kit.machine.boards[0].power_limit_mw, 400000);
}

/* Told to set nothing it refuses whoever asks, and puts back what was set. */
static void one_that_sets_nothing_refuses_all_but_what_puts_back(void **state)
{
	static const char declared[] = "* reset cap 350\n";
	struct takt_actuate_request set = set_request(50, "GPU-fake-0"), more = set;
	struct takt_actuate_request cap = request_of(TAKT_ACTUATE_CAP, 0);
	struct takt_actuate_request cpu = request_of(TAKT_ACTUATE_CPU, 0);
	struct takt_actuate_request mig = request_of(TAKT_ACTUATE_MIG, 0);
	struct takt_err err;

	set.ttl_ns = more.ttl_ns = 60 * TAKT_NS_PER_S;
	assert_int_equal(ask(ME, set).rc, 0);
	kit.actuator->sets_nothing = true;
	more.lease_id = 51;
	more.max_mhz = more.min_mhz = 1200;
	cap.power_limit_mw = 300000;
	cpu.ttl_ns = TAKT_NS_PER_S;
	cpu.max_mhz = 2000;
	takt_strcpy(mig.uuid, sizeof(mig.uuid), "GPU-fake-1");
	takt_strcpy(mig.mig, sizeof(mig.mig), "3g.40gb,3g.40gb");
	assert_int_equal(ask(ME, more).rc, -EPERM);
	assert_non_null(strstr(ask(ME, cap).message, "set_clocks = no"));
	assert_int_equal(ask(ME, cap).rc, -EPERM);
	assert_int_equal(ask(ME, cpu).rc, -EPERM);
	assert_int_equal(ask(ME, mig).rc, -EPERM);
	fake_sys_add_file(kit.world, "/state/declared", declared, strlen(declared));
	assert_int_equal(
		takt_actuator_declare(kit.actuator, "/state/declared", kit_now(&kit), &err),
		-EPERM);
	kit_run(&kit, 100);
	assert_int_equal(kit.machine.boards[1].power_limit_mw, 400000);
	assert_int_equal(kit.machine.boards[0].range.max_mhz, set.max_mhz);
	assert_int_equal(ask(ME, request_of(TAKT_ACTUATE_END, 50)).rc, 0);
	assert_false(locked(0));
	cap.power_limit_mw = 0;
	assert_int_equal(ask(ME, cap).rc, 0);
	assert_int_equal(ask(ME, request_of(TAKT_ACTUATE_RESET, 0)).rc, 0);
}

/* What a GPU's clock is suspected of is no reason against a facility's cap, on it or on others. */
static void a_cap_comes_where_the_clock_is_left_alone(void **state)
{
	static const char declared[] = "* reset cap 350\n";
	struct takt_actuate_request cap = request_of(TAKT_ACTUATE_CAP, 0);
	struct takt_actuate_request set = set_request(50, "GPU-fake-0");
	struct fake_board *board = &kit.machine.boards[0];

	set.ttl_ns = 60 * TAKT_NS_PER_S;
	set.min_mhz = set.max_mhz = 1410;
	board->util_pct = 100;
	board->runs_at_mhz = 705;
	ask(ME, set);
	kit_run(&kit, 5000);
	assert_int_equal(status(0).gpu_state, TAKT_ACTUATE_INEFFECTIVE);
	cap.power_limit_mw = 300000;
	assert_int_equal(ask(ME, cap).rc, 0);
	for (uint32_t g = 0; g < 3; g++)
		assert_int_equal(kit.machine.boards[g].power_limit_mw, 300000);
	assert_int_equal(status(0).gpu_state, TAKT_ACTUATE_INEFFECTIVE);
	assert_non_null(strstr(status(0).message, "it ran at 705 MHz under load"));
	assert_int_equal(ask(ME, set).rc, -TAKT_E_CONFLICT);
	cap.power_limit_mw = 0;
	assert_int_equal(ask(ME, cap).rc, 0);
	assert_int_equal(board->power_limit_mw, 400000);
	assert_int_equal(board->sets, 1);
	fake_sys_add_file(kit.world, "/state/declared", declared, strlen(declared));
	assert_int_equal(
		takt_actuator_declare(kit.actuator, "/state/declared", kit_now(&kit), NULL), 0);
	kit_run(&kit, 50);
	assert_int_equal(board->power_limit_mw, 350000);
}

/* What somebody else made of the limit itself stays, until a reset. */
static void a_cap_overwrites_no_limit_of_others(void **state)
{
	struct takt_actuate_request cap = request_of(TAKT_ACTUATE_CAP, 0);
	struct takt_actuate_request set = set_request(50, "GPU-fake-0");

	set.ttl_ns = 60 * TAKT_NS_PER_S;
	set.power_limit_mw = 250000;
	ask(ME, set);
	kit.machine.boards[0].power_limit_mw = 200000; /* nvidia-smi -pl 200 */
	kit_run(&kit, 6000);
	assert_int_equal(status(0).gpu_state, TAKT_ACTUATE_FOREIGN);
	cap.power_limit_mw = 300000;
	assert_int_equal(ask(ME, cap).rc, -TAKT_E_CONFLICT);
	assert_int_equal(kit.machine.boards[0].power_limit_mw, 200000);
	assert_int_equal(kit.machine.boards[1].power_limit_mw, 400000);
}

static void an_administrator_clears_one_or_all(void **state)
{
	struct takt_actuate_request reset = request_of(TAKT_ACTUATE_RESET, 0);

	ask_set(ME, 50, "GPU-fake-0");
	ask_set(ME, 60, "GPU-fake-1");
	takt_strcpy(reset.uuid, sizeof(reset.uuid), "GPU-fake-1");
	assert_int_equal(ask(ANOTHER, reset).rc, 0);
	assert_true(locked(0));
	assert_false(locked(1));
	kit.machine.boards[2].locked = true; /* somebody else's */
	reset.uuid[0] = '\0';
	assert_int_equal(ask(ANOTHER, reset).rc, 0);
	assert_false(locked(0) || locked(2));
	assert_int_equal(status(0).lease_id, 0);
	assert_int_equal(ask_set(ANOTHER, 70, "GPU-fake-0").rc, 0);
}

static void a_refused_reset_of_an_unchanged_gpu_is_said_and_over(void **state)
{
	struct takt_actuate_request reset = request_of(TAKT_ACTUATE_RESET, 0);

	kit.machine.boards[1].reset_rc = -EPERM;
	takt_strcpy(reset.uuid, sizeof(reset.uuid), "GPU-fake-1");
	assert_int_equal(ask(ME, reset).rc, -EPERM);
	kit_run(&kit, 5000);
	assert_int_equal(kit.machine.boards[1].resets, 1);
	assert_int_equal(status(1).gpu_state, TAKT_ACTUATE_CLEAN);
}

static void a_reset_of_all_reports_the_gpu_that_refused(void **state)
{
	struct takt_actuate_reply reply;

	ask_set(ME, 50, "GPU-fake-1");
	kit.machine.boards[1].reset_rc = -EPERM;
	reply = ask(ME, request_of(TAKT_ACTUATE_RESET, 0));
	assert_int_equal(reply.rc, -EPERM);
	assert_string_equal(reply.uuid, "GPU-fake-1");
	assert_int_equal(reply.gpu_state, TAKT_ACTUATE_CHANGED);
}

static void advice_is_kept_as_a_lease(void **state)
{
	struct takt_actuate_reply reply;

	kit.machine.boards[0].set_rc = -EPERM;
	reply = ask_set(ME, 50, "GPU-fake-0");
	assert_int_equal(reply.rc, -EPERM);
	assert_int_equal(reply.gpu_state, TAKT_ACTUATE_ADVISE);
	assert_non_null(strstr(reply.message, "nvidia-smi -i GPU-fake-0 -lgc 210,900"));
	assert_int_equal(status(0).lease_id, 50);
	assert_int_equal(ask(ME, request_of(TAKT_ACTUATE_END, 50)).rc, 0);
	assert_int_equal(status(0).gpu_state, TAKT_ACTUATE_CLEAN);
	assert_string_equal(status(0).message, ""); /* nobody needs the advice any more */
}

static void what_the_driver_cannot_do_leaves_no_lease(void **state)
{
	kit.machine.boards[0].set_rc = -TAKT_E_UNSUPPORTED;
	assert_int_equal(ask_set(ME, 50, "GPU-fake-0").rc, -TAKT_E_UNSUPPORTED);
	assert_int_equal(status(0).lease_id, 0);
}

static void a_hanging_gpu_is_answered_in_time_and_others_at_once(void **state)
{
	struct takt_actuate_request slow = set_request(50, "GPU-fake-0");
	struct takt_actuate_reply reply;
	uint64_t whose;

	slow.ttl_ns = 10 * TAKT_NS_PER_S;
	kit.machine.boards[0].hangs = true;
	assert_false(takt_actuator_request(kit.actuator, ME, &slow, kit_now(&kit), &reply));
	assert_int_equal(ask_set(ANOTHER, 60, "GPU-fake-1").rc, 0);
	kit_run(&kit, 2100);
	assert_true(takt_actuator_reply(kit.actuator, &whose, &reply));
	assert_int_equal(whose, ME);
	assert_int_equal(reply.rc, -ETIMEDOUT);
	assert_int_equal(reply.gpu_state, TAKT_ACTUATE_UNKNOWN);
}

static void a_lease_that_ends_before_it_was_applied_is_cancelled(void **state)
{
	struct takt_actuate_request slow = set_request(50, "GPU-fake-0");
	struct takt_actuate_request end = request_of(TAKT_ACTUATE_END, 50);
	struct takt_actuate_reply reply;
	uint64_t whose;

	kit.machine.boards[0].hangs = true;
	assert_false(takt_actuator_request(kit.actuator, ME, &slow, kit_now(&kit), &reply));
	kit_run(&kit, 10);
	assert_false(takt_actuator_request(kit.actuator, ANOTHER, &end, kit_now(&kit), &reply));
	assert_true(takt_actuator_reply(kit.actuator, &whose, &reply));
	assert_int_equal(reply.seq, slow.seq);
	assert_int_equal(reply.rc, -ECANCELED);
	fake_boards_unhang(&kit.machine, 0);
	kit_run(&kit, 20);
	assert_true(takt_actuator_reply(kit.actuator, &whose, &reply));
	assert_int_equal(reply.seq, end.seq);
	assert_int_equal(reply.rc, 0);
	assert_false(locked(0));
}

static void a_client_that_left_gets_no_reply_and_its_lease_its_time(void **state)
{
	struct takt_actuate_request slow = set_request(50, "GPU-fake-0");
	struct takt_actuate_reply reply;
	uint64_t whose;

	assert_false(takt_actuator_request(kit.actuator, ME, &slow, kit_now(&kit), &reply));
	takt_actuator_forget(kit.actuator, ME);
	kit_run(&kit, 50);
	assert_false(takt_actuator_reply(kit.actuator, &whose, &reply));
	assert_true(locked(0));
	kit_run(&kit, TTL_MS);
	assert_false(locked(0));
}

static void requests_under_way_have_a_limit(void **state)
{
	struct takt_actuate_request slow = set_request(50, "GPU-fake-0");
	struct takt_actuate_reply reply;

	kit.machine.boards[0].hangs = true;
	for (int i = 0; i < TAKT_ACTUATOR_WAITING; i++)
		assert_false(takt_actuator_request(kit.actuator, ME, &slow, kit_now(&kit), &reply));
	assert_true(takt_actuator_request(kit.actuator, ME, &slow, kit_now(&kit), &reply));
	assert_int_equal(reply.rc, -TAKT_E_LIMIT);
}

static void bad_requests_are_answered_and_change_nothing(void **state)
{
	struct takt_actuate_request request = set_request(50, "GPU-fake-0");
	static const struct {
		int rc;
		uint32_t version, op, min_mhz, max_mhz;
		uint64_t lease, ttl_ms;
	} rows[] = {
		{-TAKT_E_VERSION, TAKT_ACTUATE_VERSION + 1, TAKT_ACTUATE_SET, 0, 900, 50, 1000},
		{-EINVAL, TAKT_ACTUATE_VERSION, 0, 0, 900, 50, 1000},
		{-EINVAL, TAKT_ACTUATE_VERSION, 99, 0, 900, 50, 1000},
		{-EINVAL, TAKT_ACTUATE_VERSION, TAKT_ACTUATE_SET, 950, 900, 50, 1000},
		{-EINVAL, TAKT_ACTUATE_VERSION, TAKT_ACTUATE_SET, 0, 900, 0, 1000},
		{-EINVAL, TAKT_ACTUATE_VERSION, TAKT_ACTUATE_SET, 0, 900, 50, 0},
		{-EINVAL, TAKT_ACTUATE_VERSION, TAKT_ACTUATE_SET, 0, 900, 50, 86400001},
		{-EINVAL, TAKT_ACTUATE_VERSION, TAKT_ACTUATE_RENEW, 0, 900, 50, 1},
	};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(rows); i++) {
		request.version = rows[i].version;
		request.op = rows[i].op;
		request.min_mhz = rows[i].min_mhz;
		request.max_mhz = rows[i].max_mhz;
		request.lease_id = rows[i].lease;
		request.ttl_ns = rows[i].ttl_ms * TAKT_NS_PER_MS;
		assert_int_equal(ask(ME, request).rc, rows[i].rc);
	}
	request = set_request(50, "GPU-other");
	assert_int_equal(ask(ME, request).rc, -TAKT_E_NOT_FOUND);
	memset(request.uuid, 'x', sizeof(request.uuid));
	assert_int_equal(ask(ME, request).rc, -EINVAL);
	request = request_of(TAKT_ACTUATE_STATUS, 0);
	request.gpu_index = 3;
	assert_int_equal(ask(ME, request).rc, -TAKT_E_NOT_FOUND);
	assert_int_equal(kit.machine.boards[0].sets, 0);
	assert_int_equal(status(0).lease_id, 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(hello_tells_epoch_and_gpus),
		CASE(a_lease_is_set_shown_and_ended),
		CASE(a_lease_runs_out_unless_it_is_renewed),
		CASE(time_asleep_counts),
		CASE(one_renewal_renews_all_of_a_connection_and_no_others),
		CASE(the_same_request_again_changes_nothing),
		CASE(a_job_has_one_lease_a_gpu),
		CASE(of_jobs_that_share_a_gpu_the_most_demanding_wins),
		CASE(a_job_that_wants_no_limit_lifts_the_others),
		CASE(a_benchmark_outranks_jobs_and_jobs_a_standing_wish),
		CASE(a_job_never_raises_a_standing_power_limit),
		CASE(a_refused_wish_leaves_the_lease_as_it_was),
		CASE(a_cap_holds_without_any_lease),
		CASE(one_that_sets_nothing_refuses_all_but_what_puts_back),
		CASE(a_cap_that_one_gpu_cannot_take_is_set_on_none),
		CASE(a_cap_comes_where_the_clock_is_left_alone),
		CASE(a_cap_overwrites_no_limit_of_others),
		CASE(an_administrator_clears_one_or_all),
		CASE(a_refused_reset_of_an_unchanged_gpu_is_said_and_over),
		CASE(a_reset_of_all_reports_the_gpu_that_refused),
		CASE(advice_is_kept_as_a_lease),
		CASE(what_the_driver_cannot_do_leaves_no_lease),
		CASE(a_hanging_gpu_is_answered_in_time_and_others_at_once),
		CASE(a_lease_that_ends_before_it_was_applied_is_cancelled),
		CASE(a_client_that_left_gets_no_reply_and_its_lease_its_time),
		CASE(requests_under_way_have_a_limit),
		CASE(bad_requests_are_answered_and_change_nothing),
	};

	return cmocka_run_group_tests_name("actuator", tests, NULL, NULL);
}
