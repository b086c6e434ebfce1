/* SPDX-License-Identifier: Apache-2.0 */
/* GPUs that the kernel has suspended beside others that it has not: whoever leaves them asleep
 * knows who they are, and makes no driver call about them from then on. */
#include "fake_machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The fake driver's boards in the order of the bus, as the kernel writes them. */
static const char *const on_bus[FAKE_GPUS] = {"0000:07:00.0", "0000:0a:00.0", "0000:b1:00.0",
					      "0001:03:00.0"};
static char root[] = "/tmp/takt-asleep-XXXXXX";

static void run(const char *command)
{
	assert_int_equal(system(command), 0);
}

static void put_board(uint32_t gpu, const char *status)
{
	char text[1024];

	snprintf(text, sizeof(text),
		 "d='%s/bus/pci/devices/%s'; mkdir -p $d/power && "
		 "ln -sfn ../../drivers/nvidia $d/driver && echo 0x10de >$d/vendor && "
		 "echo 0x030000 >$d/class && echo %s >$d/power/runtime_status",
		 root, on_bus[gpu], status);
	run(text);
}

static int plant(void **state)
{
	fake_reset();
	memcpy(strstr(root, "asleep-") + 7, "XXXXXX", 6);
	if (!mkdtemp(root))
		return -1;
	for (uint32_t gpu = 0; gpu < FAKE_GPUS; gpu++)
		put_board(gpu, "active");
	return 0;
}

static int uproot(void **state)
{
	char text[64];

	snprintf(text, sizeof(text), "rm -rf '%s'", root);
	return system(text);
}

static struct takt_machine_config leaving_asleep(void)
{
	struct takt_machine_config config = fake_config();

	config.sysfs_root = root;
	config.call_deadline_ns = 60 * TAKT_NS_PER_S; /* nothing is stale */
	config.leaves_asleep = true;
	return config;
}

static unsigned calls_about(uint32_t gpu)
{
	return fake_calls_about(fake_at_driver[gpu]);
}

static void assert_asleep(const struct takt_gpu_reading *reading)
{
	assert_true(reading->asleep);
	assert_false(reading->lost);
	assert_false(reading->stale);
	assert_int_equal(reading->last_rc, 0);
	assert_int_equal(reading->has, 0);
	assert_int_equal(reading->vitals.has, 0);
	assert_int_equal(reading->proc_count, 0);
}

static void assert_awake(const struct takt_gpu_reading *reading, uint32_t gpu)
{
	assert_false(reading->asleep || reading->lost || reading->stale);
	assert_true(reading->has & TAKT_HAS_POWER && reading->has & TAKT_HAS_PROCS);
	assert_int_equal(reading->power_mw, FAKE_POWER_MW + fake_at_driver[gpu]);
}

/* A tick is dropped while the one before is being finished. */
static void tick(struct takt_machine *machine, uint32_t gpu)
{
	struct takt_gpu_reading reading;
	uint64_t before;
	int rc = -ETIMEDOUT;

	assert_int_equal(takt_machine_reading(machine, gpu, &reading), 0);
	before = reading.seq;
	for (int i = 0; i < 400 && rc < 0; i++) {
		takt_machine_tick(machine, UINT32_MAX);
		rc = takt_machine_wait(machine, gpu, before, in_ms(50));
	}
	assert_int_equal(rc, 0);
}

static void look_often(struct takt_machine *machine)
{
	for (int i = 0; i < 30; i++) {
		tick(machine, 1);
		for (uint32_t gpu = 0; gpu < FAKE_GPUS; gpu++)
			(void)sample_of(machine, gpu);
	}
}

static void one_that_sleeps_is_known_and_not_asked(void **state)
{
	struct takt_gpu_reading reading;
	struct takt_machine *machine;
	unsigned calls, others;

	put_board(1, "suspended");
	machine = open_with(leaving_asleep());
	assert_true(takt_machine_facts(machine, 1)->has & TAKT_FACT_UUID);
	assert_true(takt_machine_facts(machine, 1)->has & TAKT_FACT_MEMORY);
	assert_int_not_equal(takt_machine_link(machine, 0, 1).pcie, 0);
	assert_false(takt_machine_knows_more(machine));
	reading = sample_of(machine, 1);
	assert_asleep(&reading);
	assert_int_equal(reading.awake_at.ns, 0);

	calls = calls_about(1);
	others = calls_about(0);
	look_often(machine);
	assert_int_equal(calls_about(1), calls);
	assert_true(calls_about(0) > others);
	for (uint32_t gpu = 0; gpu < FAKE_GPUS; gpu++) {
		reading = sample_of(machine, gpu);
		if (gpu == 1)
			assert_asleep(&reading);
		else
			assert_awake(&reading, gpu);
	}
	takt_machine_close(machine);
}

static void one_that_falls_asleep_has_no_reading_until_it_wakes(void **state)
{
	struct takt_machine *machine = open_with(leaving_asleep());
	struct takt_gpu_reading awake = sample_of(machine, 0), reading;
	unsigned calls;

	assert_awake(&awake, 0);
	put_board(0, "suspending");
	calls = calls_about(0);
	reading = sample_of(machine, 0);
	assert_asleep(&reading);
	assert_true(reading.awake_at.ns == awake.at.ns);
	put_board(0, "suspended");
	reading = sample_of(machine, 0);
	assert_asleep(&reading);
	assert_true(reading.awake_at.ns == awake.at.ns);
	assert_int_equal(calls_about(0), calls);

	/* Awake it is read whole, by a tick as well. */
	put_board(0, "active");
	tick(machine, 0);
	assert_int_equal(takt_machine_reading(machine, 0, &reading), 0);
	assert_awake(&reading, 0);
	takt_machine_close(machine);
}

/* Returns once the driver is being asked, and does not answer. */
static void hang_waking(struct takt_machine *machine)
{
	fake_hang("nvmlDeviceGetPowerUsage", (int)fake_at_driver[0]);
	put_board(0, "active");
	takt_machine_sample(machine, 0);
	for (int i = 0; i < 60000 && !fake_hangs(); i++)
		usleep(1000);
	assert_true(fake_hangs());
}

static struct takt_gpu_reading await_silent(struct takt_machine *machine)
{
	struct takt_gpu_reading reading = {0};

	for (int i = 0; i < 60000 && reading.last_rc != -ETIMEDOUT; i++) {
		usleep(1000);
		assert_int_equal(takt_machine_reading(machine, 0, &reading), 0);
	}
	assert_int_equal(reading.last_rc, -ETIMEDOUT);
	return reading;
}

static void one_that_hangs_when_it_wakes_turns_stale(void **state)
{
	struct takt_machine_config config = leaving_asleep();
	struct takt_machine *machine;
	struct takt_gpu_reading reading;

	put_board(0, "suspended");
	config.call_deadline_ns = config.wake_deadline_ns = 20 * TAKT_NS_PER_MS;
	machine = open_with(config);
	(void)sample_of(machine, 0);
	hang_waking(machine);
	reading = await_silent(machine);
	assert_true(reading.stale);
	assert_false(reading.asleep);
	fake_wake();
	takt_machine_close(machine);
}

/* Each look takes longer than the driver may take for a GPU that is awake. */
static void one_that_wakes_slowly_is_asleep_until_it_answers(void **state)
{
	struct takt_machine_config config = leaving_asleep();
	struct takt_machine *machine;
	struct takt_gpu_reading reading;
	uint64_t seq;

	put_board(0, "suspended");
	config.call_deadline_ns = 20 * TAKT_NS_PER_MS;
	config.wake_deadline_ns = 600 * TAKT_NS_PER_S;
	machine = open_with(config);
	seq = sample_of(machine, 0).seq;
	hang_waking(machine);
	for (int look = 0; look < 3; look++) {
		usleep(40000);
		assert_int_equal(takt_machine_reading(machine, 0, &reading), 0);
		assert_asleep(&reading);
	}
	fake_wake();
	assert_int_equal(takt_machine_wait(machine, 0, seq, in_ms(60000)), 0);
	assert_int_equal(takt_machine_reading(machine, 0, &reading), 0);
	assert_false(reading.asleep || reading.lost);
	assert_true(reading.has & TAKT_HAS_POWER);

	/* From then on it is as any other. */
	hang_waking(machine);
	reading = await_silent(machine);
	assert_true(reading.stale);
	fake_wake();
	takt_machine_close(machine);
}

static void one_that_does_not_get_to_sleep_is_looked_at(void **state)
{
	struct takt_machine_config config = leaving_asleep();
	struct takt_gpu_reading reading;
	struct takt_machine *machine;
	unsigned calls;

	config.call_deadline_ns = config.wake_deadline_ns = 20 * TAKT_NS_PER_MS;
	machine = open_with(config);
	for (int time = 0; time < 2; time++) { /* it begins anew once it was awake */
		put_board(0, "active");
		reading = sample_of(machine, 0);
		assert_true(reading.has & TAKT_HAS_POWER);
		put_board(0, "suspending");
		calls = calls_about(0);
		reading = sample_of(machine, 0);
		assert_int_equal(reading.has, 0);
		assert_int_equal(calls_about(0), calls);
		for (int i = 0; i < 60000 && reading.has == 0; i++, usleep(1000))
			reading = sample_of(machine, 0);
		assert_true(reading.has & TAKT_HAS_POWER);
	}
	put_board(0, "suspended");
	calls = calls_about(0);
	reading = sample_of(machine, 0);
	assert_int_equal(reading.has, 0);
	assert_int_equal(calls_about(0), calls);
	takt_machine_close(machine);
}

/* While somebody has it read anyway, nobody looks whether it sleeps. */
static void one_that_was_read_anyway_has_its_time_to_fall_asleep(void **state)
{
	struct takt_machine_config config = leaving_asleep();
	struct takt_gpu_reading reading;
	struct takt_machine *machine;

	config.call_deadline_ns = config.wake_deadline_ns = 20 * TAKT_NS_PER_MS;
	machine = open_with(config);
	put_board(0, "suspending");
	reading = sample_of(machine, 0);
	assert_int_equal(reading.has, 0);
	takt_machine_read_always(machine, 0, true);
	reading = sample_of(machine, 0);
	assert_true(reading.has & TAKT_HAS_POWER);
	usleep(40000); /* longer than it may take */
	takt_machine_read_always(machine, 0, false);
	reading = sample_of(machine, 0);
	assert_int_equal(reading.has, 0);
	takt_machine_close(machine);
}

static void who_needs_to_know_reads_one_that_sleeps(void **state)
{
	struct takt_gpu_reading reading;
	struct takt_machine *machine;

	put_board(2, "suspended");
	machine = open_with(leaving_asleep());
	takt_machine_read_always(machine, 2, true);
	reading = sample_of(machine, 2);
	assert_awake(&reading, 2);
	takt_machine_read_always(machine, 2, false);
	reading = sample_of(machine, 2);
	assert_asleep(&reading);
	takt_machine_read_always(machine, FAKE_GPUS, true); /* none of them */
	takt_machine_close(machine);
}

static void one_that_is_lost_is_not_called_asleep(void **state)
{
	struct takt_machine *machine = open_with(leaving_asleep());
	struct takt_gpu_reading reading;

	fake_lose(fake_at_driver[1], true);
	reading = sample_of(machine, 1);
	assert_true(reading.lost);
	put_board(1, "suspended");
	reading = sample_of(machine, 1);
	assert_true(reading.lost);
	assert_false(reading.asleep);
	fake_lose(fake_at_driver[1], false);
	reading = sample_of(machine, 1);
	assert_awake(&reading, 1);
	takt_machine_close(machine);
}

static void where_the_kernel_says_nothing_all_are_read(void **state)
{
	struct takt_machine *machine;
	struct takt_gpu_reading reading;
	char text[256];

	snprintf(text, sizeof(text), "rm -r '%s/bus/pci/devices/%s'", root, on_bus[0]);
	run(text);
	put_board(1, "unsupported");
	put_board(2, "error");
	machine = open_with(leaving_asleep());
	for (uint32_t gpu = 0; gpu < FAKE_GPUS; gpu++) {
		reading = sample_of(machine, gpu);
		assert_awake(&reading, gpu);
	}
	takt_machine_close(machine);
}

static void who_does_not_leave_them_asleep_reads_them(void **state)
{
	struct takt_machine_config config = leaving_asleep();
	struct takt_gpu_reading reading;
	struct takt_machine *machine;

	put_board(1, "suspended");
	config.leaves_asleep = false;
	machine = open_with(config);
	reading = sample_of(machine, 1);
	assert_awake(&reading, 1);
	takt_machine_close(machine);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, plant, uproot)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(one_that_sleeps_is_known_and_not_asked),
		CASE(one_that_falls_asleep_has_no_reading_until_it_wakes),
		CASE(one_that_hangs_when_it_wakes_turns_stale),
		CASE(one_that_wakes_slowly_is_asleep_until_it_answers),
		CASE(one_that_does_not_get_to_sleep_is_looked_at),
		CASE(one_that_was_read_anyway_has_its_time_to_fall_asleep),
		CASE(who_needs_to_know_reads_one_that_sleeps),
		CASE(one_that_is_lost_is_not_called_asleep),
		CASE(where_the_kernel_says_nothing_all_are_read),
		CASE(who_does_not_leave_them_asleep_reads_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
