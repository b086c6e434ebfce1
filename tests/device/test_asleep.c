/* SPDX-License-Identifier: Apache-2.0 */
/* GPUs that the kernel has suspended beside others that it has not: whoever leaves them asleep
 * makes no driver call about them. */
#include "fake_machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "device/driver_wait.h"

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

static void wait_for(bool (*is)(struct takt_machine *machine), struct takt_machine *machine)
{
	for (int i = 0; i < 20000 && !is(machine); i++)
		usleep(1000);
	assert_true(is(machine));
}

static void one_that_sleeps_is_not_asked(void **state)
{
	struct takt_gpu_reading reading;
	struct takt_machine *machine;

	put_board(1, "suspended");
	machine = open_with(leaving_asleep());
	assert_int_equal(takt_machine_facts(machine, 1)->has, TAKT_FACT_PCI);
	assert_string_equal(takt_machine_facts(machine, 1)->pci_bus_id, "00000000:0A:00.0");
	reading = sample_of(machine, 1);
	assert_asleep(&reading);
	assert_int_equal(reading.awake_at.ns, 0);
	takt_machine_tick(machine, UINT32_MAX);
	assert_int_equal(takt_machine_wait(machine, 1, reading.seq, in_ms(20000)), 0);
	assert_false(takt_machine_knows_more(machine));
	assert_int_equal(calls_about(1), 0);

	/* The others are none the worse, whatever the driver's numbering is. */
	for (uint32_t gpu = 0; gpu < FAKE_GPUS; gpu += gpu == 0 ? 2 : 1) {
		reading = sample_of(machine, gpu);
		assert_false(reading.asleep);
		assert_int_equal(reading.power_mw, FAKE_POWER_MW + fake_at_driver[gpu]);
	}
	assert_int_not_equal(takt_machine_link(machine, 0, 2).pcie, 0);
	assert_int_equal(takt_machine_link(machine, 0, 1).pcie, 0);
	takt_machine_close(machine);
	assert_int_equal(calls_about(1), 0);
}

static void one_that_wakes_is_read_and_known(void **state)
{
	struct takt_machine *machine;
	struct takt_gpu_reading reading;

	put_board(3, "suspended");
	machine = open_with(leaving_asleep());
	reading = sample_of(machine, 3);
	assert_asleep(&reading);
	assert_false(takt_machine_woke(machine));
	put_board(3, "active");
	wait_for(takt_machine_knows_more, machine);
	reading = sample_of(machine, 3);
	assert_false(reading.asleep);
	assert_int_equal(reading.power_mw, FAKE_POWER_MW + fake_at_driver[3]);
	assert_true(takt_machine_woke(machine));
	takt_machine_close(machine);
}

static void one_that_falls_asleep_keeps_its_facts_and_no_reading(void **state)
{
	struct takt_machine *machine = open_with(leaving_asleep());
	struct takt_gpu_reading awake = sample_of(machine, 0), reading;
	unsigned calls;

	put_board(0, "suspended");
	calls = calls_about(0);
	reading = sample_of(machine, 0);
	assert_asleep(&reading);
	assert_true(reading.awake_at.ns == awake.at.ns);
	reading = sample_of(machine, 0);
	assert_true(reading.awake_at.ns == awake.at.ns);
	assert_int_equal(calls_about(0), calls);
	assert_true(takt_machine_facts(machine, 0)->has & TAKT_FACT_UUID);
	assert_false(takt_machine_knows_more(machine));

	/* Awake it is read whole, by a tick as well. */
	put_board(0, "active");
	takt_machine_tick(machine, 0);
	assert_int_equal(takt_machine_wait(machine, 0, reading.seq, in_ms(20000)), 0);
	assert_int_equal(takt_machine_reading(machine, 0, &reading), 0);
	assert_false(reading.asleep);
	assert_true(reading.has & TAKT_HAS_PROCS && reading.has & TAKT_HAS_POWER);
	takt_machine_close(machine);
}

static void who_wants_it_awake_wakes_it(void **state)
{
	struct takt_gpu_reading reading;
	struct takt_machine *machine;

	put_board(2, "suspended");
	machine = open_with(leaving_asleep());
	reading = sample_of(machine, 2);
	takt_machine_wake(machine, 2);
	assert_int_equal(takt_machine_wait(machine, 2, reading.seq, in_ms(20000)), 0);
	assert_int_equal(takt_machine_reading(machine, 2, &reading), 0);
	assert_false(reading.asleep);
	assert_int_equal(reading.power_mw, FAKE_POWER_MW + fake_at_driver[2]);
	assert_true(takt_machine_woke(machine));
	/* The kernel's word counts again from then on. */
	reading = sample_of(machine, 2);
	assert_asleep(&reading);
	assert_true(takt_machine_knows_more(machine));
	assert_false(takt_machine_woke(machine));
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
	assert_false(reading.lost);
	takt_machine_close(machine);
}

static void where_the_kernel_shows_other_gpus_the_driver_says_which_is_which(void **state)
{
	char text[256];
	struct takt_machine *machine;
	struct takt_gpu_reading reading;

	put_board(1, "suspended");
	snprintf(text, sizeof(text), "rm -r '%s/bus/pci/devices/%s'", root, on_bus[0]);
	run(text);
	machine = open_with(leaving_asleep());
	for (uint32_t gpu = 0; gpu < FAKE_GPUS; gpu++)
		assert_true(takt_machine_facts(machine, gpu)->has & TAKT_FACT_UUID);
	reading = sample_of(machine, 1);
	assert_asleep(&reading);
	reading = sample_of(machine, 0);
	assert_false(reading.asleep);
	takt_machine_close(machine);
}

static void who_does_not_leave_them_asleep_asks(void **state)
{
	struct takt_machine_config config = leaving_asleep();
	struct takt_gpu_reading reading;
	struct takt_machine *machine;

	put_board(1, "suspended");
	config.leaves_asleep = false;
	machine = open_with(config);
	reading = sample_of(machine, 1);
	assert_int_equal(reading.power_mw, FAKE_POWER_MW + fake_at_driver[1]);
	takt_machine_close(machine);
}

static bool is_asked(struct takt_driver_wait *wait)
{
	return calls_about(0) > 0;
}

static void wait_until(bool (*is)(struct takt_driver_wait *wait), struct takt_driver_wait *wait)
{
	for (int i = 0; i < 20000 && !is(wait); i++)
		usleep(1000);
	assert_true(is(wait));
}

static void where_all_sleep_who_wants_one_wakes_them(void **state)
{
	struct takt_machine_config config = leaving_asleep();
	struct takt_driver_wait *wait = NULL;

	for (uint32_t gpu = 0; gpu < FAKE_GPUS; gpu++)
		put_board(gpu, "suspended");
	assert_int_equal(takt_driver_wait_new(&config, TAKT_NS_PER_MS, &wait, NULL), 0);
	usleep(5000);
	assert_int_equal(fake_calls(), 0);
	takt_driver_wait_wake(wait);
	wait_until(is_asked, wait);
	/* It is over when the kernel has them awake, and not before. */
	assert_false(takt_driver_wait_is_over(wait));
	put_board(0, "active");
	wait_until(takt_driver_wait_is_over, wait);
	takt_driver_wait_free(wait);
	takt_driver_wait_wake(NULL);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, plant, uproot)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(one_that_sleeps_is_not_asked),
		CASE(one_that_wakes_is_read_and_known),
		CASE(one_that_falls_asleep_keeps_its_facts_and_no_reading),
		CASE(who_wants_it_awake_wakes_it),
		CASE(one_that_is_lost_is_not_called_asleep),
		CASE(where_the_kernel_shows_other_gpus_the_driver_says_which_is_which),
		CASE(who_does_not_leave_them_asleep_asks),
		CASE(where_all_sleep_who_wants_one_wakes_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
