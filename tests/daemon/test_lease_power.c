/* SPDX-License-Identifier: Apache-2.0 */
/* What a job's power limit comes to on each of its boards: it lowers theirs, also where one was
 * raised, takes no less than it may be, or the job sets its clock meanwhile. The actuator, the
 * boards and the queue are the test's: the linker sends what lease_keeper.c asks of them here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/lease_impl.h"

enum {
	GPUS = 2,
	DEFAULT_MW = 400000,
	RAISED_MW = 500000,
};

static struct {
	struct takt_gpu_facts facts[GPUS];
	struct takt_gpu_reading reading[GPUS];
	struct takt_actuate_request asked[GPUS]; /* the newest of each */
	struct takt_queue_job job;
	struct takt_daemon daemon;
	struct takt_lease_keeper *leases;
} world;

const struct takt_gpu_facts *__wrap_takt_machine_facts(const struct takt_machine *machine,
						       uint32_t gpu);
int __wrap_takt_telemetry_latest(struct takt_telemetry *telemetry, uint32_t gpu,
				 struct takt_mono now, const struct takt_gpu_reading **ret);
int __wrap_takt_actuate_send(struct takt_actuate_client *client,
			     struct takt_actuate_request request, struct takt_err *err);
void __wrap_takt_actuate_client_free(struct takt_actuate_client *client);
const struct takt_queue_job *__wrap_takt_queue_find(const struct takt_queue *queue,
						    uint64_t job_id);
void __wrap_takt_pending_set_cancel(struct takt_pending *pending, void (*hung_up)(void *ctx),
				    void *ctx);

const struct takt_gpu_facts *__wrap_takt_machine_facts(const struct takt_machine *machine,
						       uint32_t gpu)
{
	return &world.facts[gpu];
}

int __wrap_takt_telemetry_latest(struct takt_telemetry *telemetry, uint32_t gpu,
				 struct takt_mono now, const struct takt_gpu_reading **ret)
{
	*ret = &world.reading[gpu];
	return 0;
}

int __wrap_takt_actuate_send(struct takt_actuate_client *client,
			     struct takt_actuate_request request, struct takt_err *err)
{
	world.asked[request.uuid[0] - '0'] = request;
	return 0;
}

void __wrap_takt_actuate_client_free(struct takt_actuate_client *client)
{
}

const struct takt_queue_job *__wrap_takt_queue_find(const struct takt_queue *queue, uint64_t job_id)
{
	return job_id == world.job.row.id ? &world.job : NULL;
}

void __wrap_takt_pending_set_cancel(struct takt_pending *pending, void (*hung_up)(void *ctx),
				    void *ctx)
{
}

static int set_up(void **state)
{
	memset(&world, 0, sizeof(world));
	world.daemon.sys = takt_sys_real();
	world.daemon.gpu_count = GPUS;
	world.job.row =
		(struct takt_job){.id = 7, .gpu_mask = 3, .share_milli = TAKT_REQUEST_WHOLE};
	world.job.phase = TAKT_PHASE_RUNNING;
	assert_int_equal(takt_leases_new(&world.daemon, &world.leases, NULL), 0);
	world.leases->client = (struct takt_actuate_client *)&world;
	for (uint32_t gpu = 0; gpu < GPUS; gpu++) {
		world.facts[gpu] =
			(struct takt_gpu_facts){.has = TAKT_FACT_POWER_LIMITS | TAKT_FACT_SM_CLOCKS,
						.power_min_mw = 100000,
						.power_max_mw = 600000,
						.power_default_mw = DEFAULT_MW,
						.sm_clocks_mhz = {210, 1980},
						.sm_clock_count = 2,
						.uuid = {(char)('0' + gpu)}};
		world.reading[gpu] = (struct takt_gpu_reading){.has = TAKT_HAS_POWER_LIMIT,
							       .power_limit_mw = DEFAULT_MW};
		world.leases->gpu[gpu].known = true;
	}
	return 0;
}

static int tear_down(void **state)
{
	takt_leases_free(world.leases);
	return 0;
}

static void start(uint32_t limit_mw)
{
	world.job.spec.power_limit_mw = limit_mw;
	takt_leases_job_adopt(world.leases, &world.job);
}

static void the_limit_in_force_counts_and_not_the_default(void **state)
{
	world.reading[1].power_limit_mw = RAISED_MW;
	start(DEFAULT_MW);
	assert_int_equal(world.asked[0].power_limit_mw, 0);
	assert_int_equal(world.asked[1].power_limit_mw, DEFAULT_MW);
	start(300000);
	assert_int_equal(world.asked[0].power_limit_mw, 300000);
	assert_int_equal(world.asked[1].power_limit_mw, 300000);
}

/* What was read while takt's own limit or a cap was on says nothing of the board's own one. */
static void what_is_not_known_is_asked_for(void **state)
{
	struct gpu_state *gpu = world.leases->gpu;

	gpu[0].power_touched = true;
	world.reading[1].stale = true;
	start(DEFAULT_MW);
	assert_int_equal(world.asked[0].power_limit_mw, DEFAULT_MW);
	assert_int_equal(world.asked[1].power_limit_mw, DEFAULT_MW);
	gpu[0].power_touched = false;
	gpu[0].cap_power_mw = 350000;
	world.reading[0].power_limit_mw = 350000;
	gpu[1].known = world.reading[1].stale = false;
	start(DEFAULT_MW);
	assert_int_equal(world.asked[0].power_limit_mw, DEFAULT_MW);
	assert_int_equal(world.asked[1].power_limit_mw, DEFAULT_MW);
}

static void a_board_that_takes_no_less_gets_its_least(void **state)
{
	char note[200];

	world.facts[1].power_min_mw = 200000;
	world.job.spec.clock_ask = TAKT_CLOCK_ASK_CEILING;
	world.job.spec.clock_mhz = 1200;
	start(150000);
	assert_int_equal(world.asked[0].power_limit_mw, 150000);
	assert_int_equal(world.asked[1].power_limit_mw, 200000);
	assert_int_equal(world.asked[1].max_mhz, 1200);
	assert_int_equal(takt_lease_power(world.leases, 1, 150000), 200000);
	for (uint32_t gpu = 0; gpu < GPUS; gpu++) {
		takt_lease_find(world.leases, gpu, 7)->answered = true;
		world.leases->gpu[gpu].applied_power_mw = gpu ? 200000 : 150000;
	}
	takt_leases_job_note(world.leases, &world.job, note, sizeof(note));
	assert_string_equal(note, "power limit 150 W; GPU 1 takes no less than 200 W");
}

static void a_clock_that_a_job_sets_leaves_its_limit(void **state)
{
	struct takt_clock_order ask = {.max_mhz = 1200};
	struct takt_pending *pending = (struct takt_pending *)&world;

	start(300000);
	takt_leases_set(world.leases, 1, 7, &ask, pending);
	assert_int_equal(world.asked[0].max_mhz, 1200);
	assert_int_equal(world.asked[0].power_limit_mw, 300000);
	ask.power_limit_mw = 250000;
	takt_leases_set(world.leases, 1, 7, &ask, pending);
	assert_int_equal(world.asked[0].power_limit_mw, 250000);
	/* An administrator's is his own. */
	ask.power_limit_mw = 0;
	takt_leases_set(world.leases, 1, 0, &ask, pending);
	assert_int_equal(world.asked[0].power_limit_mw, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_limit_in_force_counts_and_not_the_default,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_not_known_is_asked_for, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_board_that_takes_no_less_gets_its_least, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_clock_that_a_job_sets_leaves_its_limit, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
