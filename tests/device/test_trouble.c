/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drivers that hang, boards that fall off the bus, calls that fail at the worst moment. One GPU in
 * trouble is one GPU; nothing is made up; nobody waits for ever.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "device/driver_look.h"
#include "fake_machine.h"

enum {
	MAX_CALLS = 2000,
};

static uint64_t elapsed_ms(struct takt_mono since)
{
	return takt_mono_elapsed_ns(takt_mono_now(takt_sys_real()), since) / TAKT_NS_PER_MS;
}

static void a_hanging_gpu_turns_stale_and_the_others_do_not(void **state)
{
	struct takt_machine_config config = fake_config();
	struct takt_machine *machine;
	struct takt_gpu_reading r = {0};
	struct takt_mono begin;
	uint64_t seq;

	config.call_deadline_ns = 500 * TAKT_NS_PER_MS;
	machine = open_with(config);
	seq = sample_of(machine, 0).seq;
	fake_hang("nvmlDeviceGetPowerUsage", 1); /* the machine's GPU 0 */
	takt_machine_sample(machine, UINT32_MAX);
	for (uint32_t g = 1; g < FAKE_GPUS; g++)
		assert_int_equal(takt_machine_wait(machine, g, 0, in_ms(120000)), 0);
	for (int i = 0; i < 200 && r.last_rc != -ETIMEDOUT; i++) {
		assert_int_equal(takt_machine_wait(machine, 0, seq, in_ms(600)), -ETIMEDOUT);
		assert_int_equal(takt_machine_reading(machine, 0, &r), 0);
	}
	assert_true(r.stale);
	assert_false(r.lost);
	assert_int_equal(r.last_rc, -ETIMEDOUT);
	assert_int_equal(r.seq, seq);
	r = sample_of(machine, 1);
	assert_false(r.stale);

	begin = takt_mono_now(takt_sys_real());
	takt_machine_close(machine);
	assert_true(elapsed_ms(begin) < 60000);
	fake_wake();
}

static uint64_t seq_of(struct takt_machine *machine, uint32_t gpu)
{
	struct takt_gpu_reading r;

	assert_int_equal(takt_machine_reading(machine, gpu, &r), 0);
	return r.seq;
}

/* A tick passes by a GPU whose sample before is known already, but whose thread has not left the
 * driver yet: then another tick is needed, as it comes in life. */
static void wait_for_tick(struct takt_machine *machine, uint32_t gpu, uint64_t before)
{
	int ticks = 120;

	while (takt_machine_wait(machine, gpu, before, in_ms(1000)) != 0) {
		assert_true(ticks-- > 0);
		takt_machine_tick(machine, UINT32_MAX);
	}
}

static void tick_and_wait(struct takt_machine *machine, uint32_t first, uint32_t end)
{
	uint64_t before[FAKE_GPUS];

	for (uint32_t g = first; g < end; g++)
		before[g] = seq_of(machine, g);
	takt_machine_tick(machine, UINT32_MAX);
	for (uint32_t g = first; g < end; g++)
		wait_for_tick(machine, g, before[g]);
}

/* Ticks until the driver does hang: one passes by a GPU as above, and one whose sample before took
 * long is left to its worker, which may not have begun when a later wish comes, and does both in
 * one. */
static void tick_until_it_hangs(struct takt_machine *machine)
{
	struct takt_mono begin = takt_mono_now(takt_sys_real());

	takt_machine_tick(machine, UINT32_MAX);
	for (int ms = 1; !fake_hangs(); ms++) {
		assert_true(elapsed_ms(begin) < 120000);
		usleep(1000);
		if (ms % 1000 == 0)
			takt_machine_tick(machine, UINT32_MAX);
	}
}

static void a_gpu_that_hangs_in_a_round_holds_the_others_up_until_the_next_tick(void **state)
{
	struct takt_machine *machine = open_fake();
	uint64_t seq;

	for (uint32_t g = 0; g < FAKE_GPUS; g++)
		(void)sample_of(machine, g);
	seq = seq_of(machine, 0);
	fake_hang("nvmlDeviceGetPowerUsage", 1); /* the machine's GPU 0: a round begins with it */
	tick_until_it_hangs(machine);
	for (int tick = 0; tick < 3; tick++)
		tick_and_wait(machine, 1, FAKE_GPUS);
	/* A wish for the hanging GPU is fulfilled as soon as the driver is back. */
	takt_machine_sample(machine, 0);
	fake_wake();
	assert_int_equal(takt_machine_wait(machine, 0, seq + 1, in_ms(120000)), 0);
	tick_and_wait(machine, 0, FAKE_GPUS);
	takt_machine_close(machine);
}

static void a_gpu_that_hangs_while_facts_are_read_keeps_those_before(void **state)
{
	struct takt_machine_config config = fake_config();
	struct takt_machine *machine;

	config.facts_deadline_ns = TAKT_NS_PER_S;
	fake_hang("nvmlDeviceGetSerial", 2);
	machine = open_with(config);
	assert_int_equal(takt_machine_facts(machine, 1)->has,
			 TAKT_FACT_PCI | TAKT_FACT_NAME | TAKT_FACT_UUID);
	assert_true(takt_machine_facts(machine, 0)->has & TAKT_FACT_SM_CLOCKS);
	assert_true(takt_machine_facts(machine, 3)->has & TAKT_FACT_SM_CLOCKS);
	/* The time that this one used up is not missing for the others' links. */
	assert_int_not_equal(takt_machine_link(machine, 0, 2).pcie, 0);
	assert_int_not_equal(takt_machine_link(machine, 2, 3).pcie, 0);
	/* Once the driver comes back the board is sampled as any other. */
	fake_wake();
	(void)sample_of(machine, 1);
	takt_machine_close(machine);
}

static struct takt_machine *open_view(void)
{
	struct takt_machine_config config = fake_config();

	config.no_links = true;
	config.for_view = true;
	config.facts_deadline_ns = 3 * TAKT_NS_PER_S;
	return open_with(config);
}

static void tick_first(struct takt_machine *machine, uint32_t but)
{
	takt_machine_tick(machine, UINT32_MAX);
	for (uint32_t g = 0; g < FAKE_GPUS; g++)
		if (g != but)
			wait_for_tick(machine, g, 0);
}

static void a_view_is_read_by_one_thread_that_lets_the_driver_go(void **state)
{
	struct takt_machine *machine;

	(void)fake_calls_of("nvmlShutdown");
	machine = open_view();
	for (uint32_t g = 0; g < FAKE_GPUS; g++)
		assert_true(takt_machine_facts(machine, g)->has & TAKT_FACT_MEMORY);
	tick_first(machine, FAKE_GPUS);
	tick_and_wait(machine, 0, FAKE_GPUS);
	takt_machine_close(machine);
	assert_int_equal(fake_calls_of("nvmlShutdown"), 1);
}

static void a_gpu_of_a_view_that_hangs_while_facts_are_read_is_one_gpu(void **state)
{
	struct takt_machine *machine;

	fake_hang("nvmlDeviceGetSerial", 2);
	machine = open_view();
	assert_int_equal(takt_machine_facts(machine, 1)->has,
			 TAKT_FACT_PCI | TAKT_FACT_NAME | TAKT_FACT_UUID);
	for (uint32_t g = 0; g < FAKE_GPUS; g++)
		assert_int_equal(!(takt_machine_facts(machine, g)->has & TAKT_FACT_MEMORY), g == 1);
	tick_first(machine, 1);
	fake_wake();
	(void)sample_of(machine, 1);
	tick_and_wait(machine, 0, FAKE_GPUS);
	takt_machine_close(machine);
}

static void a_gpu_of_a_view_that_hangs_in_a_round_is_one_gpu(void **state)
{
	struct takt_machine *machine = open_view();
	struct takt_mono begin;

	tick_first(machine, FAKE_GPUS);
	fake_hang("nvmlDeviceGetPowerUsage", 1); /* the machine's GPU 0: a round begins with it */
	tick_until_it_hangs(machine);
	for (int tick = 0; tick < 3; tick++)
		tick_and_wait(machine, 1, FAKE_GPUS);
	begin = takt_mono_now(takt_sys_real());
	takt_machine_close(machine);
	assert_true(elapsed_ms(begin) < 60000);
	fake_wake();
}

static void links_beside_a_hanging_gpu_are_known(void **state)
{
	struct takt_machine_config config = fake_config();
	struct takt_machine *machine;

	config.facts_deadline_ns = 5 * TAKT_NS_PER_S;
	fake_hang("nvmlDeviceGetTopologyCommonAncestor", 1);
	machine = open_with(config);
	assert_int_not_equal(takt_machine_link(machine, 1, 2).pcie, 0);
	/* The other side told this one. */
	assert_int_not_equal(takt_machine_link(machine, 0, 2).pcie, 0);
	fake_wake();
	takt_machine_close(machine);
}

static void a_driver_that_hangs_at_its_start_is_an_error(void **state)
{
	struct takt_machine_config config = fake_config();
	struct takt_machine *machine = NULL;
	struct takt_err err = {0};
	struct takt_mono begin = takt_mono_now(takt_sys_real());

	config.init_deadline_ns = 100 * TAKT_NS_PER_MS;
	fake_hang("nvmlInit_v2", -1);
	assert_int_equal(takt_machine_open(&config, &machine, &err), -ETIMEDOUT);
	assert_non_null(strstr(err.msg, "hangs"));
	assert_true(elapsed_ms(begin) < 60000);

	config.source = TAKT_SOURCE_AUTO;
	machine = open_with(config);
	assert_string_equal(takt_machine_info(machine)->source, "none");
	takt_machine_close(machine);

	/* The two helpers that were left behind shut down what they started in the end. */
	(void)fake_calls_of("nvmlShutdown");
	fake_wake();
	for (int i = 0; i < 20000 && fake_calls_of("nvmlShutdown") < 2; i++)
		usleep(1000);
	assert_int_equal(fake_calls_of("nvmlShutdown"), 2);
}

/* One GPU of a laptop, by a copy of sysfs. */
static void put_sysfs(const char *root, const char *status)
{
	char text[1024];

	snprintf(text, sizeof(text),
		 "cd '%s' && mkdir -p bus/pci/drivers/nvidia && "
		 "d=bus/pci/devices/0000:01:00.0 && mkdir -p $d/power && "
		 "ln -sfn ../../drivers/nvidia $d/driver && echo 0x10de >$d/vendor && "
		 "echo 0x030000 >$d/class && echo %s >$d/power/runtime_status && "
		 "touch bus/pci/drivers/nvidia/0000:01:00.0",
		 root, status);
	assert_int_equal(system(text), 0);
}

static void a_suspended_gpu_is_not_woken(void **state)
{
	char root[] = "/tmp/takt-asleep-XXXXXX", text[64];
	struct takt_machine_config config = fake_config();
	struct takt_machine *machine = NULL;
	struct takt_err err = {0};

	assert_non_null(mkdtemp(root));
	put_sysfs(root, "suspended");
	config.sysfs_root = root;
	config.leaves_asleep = true;
	(void)fake_calls_of("nvmlInit_v2");
	assert_int_equal(takt_machine_open(&config, &machine, &err), -TAKT_E_UNAVAILABLE);
	assert_non_null(strstr(err.msg, "suspended"));
	config.source = TAKT_SOURCE_AUTO;
	machine = open_with(config);
	assert_string_equal(takt_machine_info(machine)->source, "none");
	assert_non_null(strstr(takt_machine_info(machine)->why_none, "suspended"));
	takt_machine_close(machine);
	assert_int_equal(fake_calls_of("nvmlInit_v2"), 0);

	/* Who wants it does, and once it is awake anybody may. */
	config.leaves_asleep = false;
	takt_machine_close(open_with(config));
	assert_int_equal(fake_calls_of("nvmlInit_v2"), 1);
	config.leaves_asleep = true;
	put_sysfs(root, "active");
	machine = open_with(config);
	assert_int_equal(takt_machine_info(machine)->gpu_count, FAKE_GPUS);
	takt_machine_close(machine);
	snprintf(text, sizeof(text), "rm -rf '%s'", root);
	assert_int_equal(system(text), 0);
}

/* Looks at the pace that there is, but by a clock that runs ahead. */
static bool is_seen_within(struct takt_driver_look *look, unsigned steps)
{
	struct takt_boot now = takt_boot_now(takt_sys_real()), next;

	for (unsigned i = 0; i < steps; i++) {
		if (takt_driver_look_step(look, now, &next))
			return true;
		if (look->pid)
			usleep(2000);
		else
			now = next;
	}
	return false;
}

/* This program again is a look, see main(). */
static void a_driver_that_comes_later_is_seen(void **state)
{
	struct takt_machine_config config = fake_config();
	struct takt_driver_look look;
	struct takt_mono begin = takt_mono_now(takt_sys_real());

	assert_int_equal(setenv("FAKE_DRIVER", "missing", 1), 0);
	takt_driver_look_init(&look, &config, (struct takt_boot){0});
	while (look.looks < 2 && elapsed_ms(begin) < 120000)
		assert_false(is_seen_within(&look, 10));
	assert_false(look.hangs);
	assert_int_equal(unsetenv("FAKE_DRIVER"), 0);
	while (!is_seen_within(&look, 10))
		assert_true(elapsed_ms(begin) < 240000);
	takt_driver_look_fini(&look);
}

/* Each look costs a process: there are few of them, however often somebody comes to step. */
static void a_driver_that_stays_away_is_looked_for_at_a_pace(void **state)
{
	struct takt_machine_config config = fake_config();
	struct takt_driver_look look;
	struct takt_boot now = takt_boot_now(takt_sys_real()), end, next;

	assert_int_equal(setenv("FAKE_DRIVER", "missing", 1), 0);
	end = takt_boot_add(now, 600 * TAKT_NS_PER_S);
	takt_driver_look_init(&look, &config, now);
	while (now.ns < end.ns) {
		assert_false(takt_driver_look_step(&look, now, &next));
		assert_true(next.ns > now.ns);
		if (look.pid)
			usleep(1000); /* by the clock of this test none takes any time */
		else
			now = next;
	}
	assert_true(look.looks > 50 && look.looks < 70);
	assert_int_equal(unsetenv("FAKE_DRIVER"), 0);
	takt_driver_look_fini(&look);
}

static void a_driver_that_hangs_is_not_looked_for_again(void **state)
{
	struct takt_machine_config config = fake_config();
	struct takt_boot now = takt_boot_now(takt_sys_real()), next;
	struct takt_driver_look look;

	assert_int_equal(setenv("FAKE_DRIVER", "hangs", 1), 0);
	takt_driver_look_init(&look, &config, now);
	assert_false(takt_driver_look_step(&look, now, &next));
	assert_true(look.pid > 0);
	assert_false(takt_driver_look_step(&look, takt_boot_add(now, 3600 * TAKT_NS_PER_S), &next));
	assert_true(look.hangs);
	assert_int_equal(next.ns, UINT64_MAX);
	assert_int_equal(unsetenv("FAKE_DRIVER"), 0);
	takt_driver_look_fini(&look);
}

/* Until then it answers, for all that is known. */
static bool is_gone_within(struct takt_machine *machine, uint64_t ms)
{
	struct takt_mono begin = takt_mono_now(takt_sys_real());

	do {
		for (uint32_t g = 0; g < FAKE_GPUS; g++)
			(void)sample_of(machine, g);
		if (takt_machine_driver_is_gone(machine))
			return true;
	} while (elapsed_ms(begin) < ms);
	return false;
}

static void a_driver_that_was_loaded_anew_is_missed(void **state)
{
	struct takt_machine_config config = fake_config();
	struct takt_machine *machine;
	struct takt_gpu_reading r;
	struct takt_mono at;

	config.call_deadline_ns = 100 * TAKT_NS_PER_MS;
	machine = open_with(config);
	assert_false(is_gone_within(machine, 0));
	at = sample_of(machine, 0).at;
	fake_take_away(true);
	r = sample_of(machine, 0);
	assert_int_equal(r.has, 0);
	assert_false(r.lost);
	assert_true(is_gone_within(machine, 20000));
	r = sample_of(machine, 0);
	assert_true(r.stale);
	assert_true(takt_mono_elapsed_ns(takt_mono_now(takt_sys_real()), r.at) >
		    100 * TAKT_NS_PER_MS);
	assert_true(r.at.ns >= at.ns);
	fake_take_away(false);
	r = sample_of(machine, 0);
	assert_false(r.stale);
	assert_true(r.has & TAKT_HAS_POWER);
	assert_false(is_gone_within(machine, 0));
	takt_machine_close(machine);
}

/* Nor is one that answers for a single GPU, though by saying that it is lost. */
static void a_driver_whose_gpus_are_lost_is_there(void **state)
{
	struct takt_machine_config config = fake_config();
	struct takt_machine *machine;

	config.call_deadline_ns = 10 * TAKT_NS_PER_MS;
	machine = open_with(config);
	for (uint32_t g = 0; g < FAKE_GPUS; g++) {
		(void)sample_of(machine, g);
		fake_lose(g, true);
	}
	assert_false(is_gone_within(machine, 100));
	takt_machine_close(machine);
}

static void a_lost_gpu_is_one_gpu(void **state)
{
	struct takt_machine *machine = open_fake();
	struct takt_gpu_reading r;

	(void)sample_of(machine, 0);
	fake_lose(1, true);
	/* A tick that finds it lost does not keep the slow part of better days. */
	do {
		takt_machine_tick(machine, 0);
	} while (takt_machine_wait(machine, 0, 1, in_ms(100)) < 0);
	assert_int_equal(takt_machine_reading(machine, 0, &r), 0);
	assert_true(r.lost);
	assert_int_equal(r.has, 0);
	r = sample_of(machine, 0);
	assert_true(r.lost && r.stale);
	assert_int_equal(r.last_rc, -ENODEV);
	assert_int_equal(r.has, 0);
	assert_int_equal(r.proc_count, 0);
	assert_false(sample_of(machine, 1).lost);

	fake_lose(1, false);
	r = sample_of(machine, 0);
	assert_false(r.lost || r.stale);
	assert_int_equal(r.sm_mhz, FAKE_SM_MHZ + 1);
	takt_machine_close(machine);
}

static void a_gpu_that_is_lost_from_the_start_is_sampled_when_it_comes_back(void **state)
{
	struct takt_machine *machine;

	fake_lose(1, true);
	machine = open_fake();
	assert_true(sample_of(machine, 1).lost);
	fake_lose(1, false);
	assert_int_equal(sample_of(machine, 1).sm_mhz, FAKE_SM_MHZ + 1);
	takt_machine_close(machine);
}

/* A value with its bit set is the driver's, whatever failed before it. */
static void check_honest(const struct takt_gpu_reading *r, uint32_t driver_gpu)
{
	if (r->has & TAKT_HAS_SM_CLOCK)
		assert_int_equal(r->sm_mhz, FAKE_SM_MHZ + driver_gpu);
	if (r->has & TAKT_HAS_POWER)
		assert_int_equal(r->power_mw, FAKE_POWER_MW + driver_gpu);
	if (r->has & TAKT_HAS_TEMP)
		assert_int_equal(r->temp_c, FAKE_TEMP_C + driver_gpu);
	if (r->has & TAKT_HAS_ENERGY)
		assert_true(r->energy_mj == FAKE_ENERGY_MJ + driver_gpu);
	if (r->has & TAKT_HAS_MEMORY)
		assert_true(r->mem_used_bytes == FAKE_USED_BYTES ||
			    r->mem_used_bytes == FAKE_USED_BYTES + FAKE_RESERVED_BYTES);
	if (r->has & TAKT_HAS_RESERVED)
		assert_true(r->mem_reserved_bytes == FAKE_RESERVED_BYTES);
	if (r->has & TAKT_HAS_PROCS)
		assert_int_equal(r->proc_count, driver_gpu == 1 ? 3 : 0);
}

static uint32_t driver_number(const struct takt_machine *machine, uint32_t gpu)
{
	const struct takt_gpu_facts *facts = takt_machine_facts(machine, gpu);

	return facts->has & TAKT_FACT_MINOR ? facts->minor : UINT32_MAX;
}

/* False once the run ended before the nth call. */
static bool survive(unsigned nth, int code)
{
	struct takt_machine_config config = fake_config();
	struct takt_machine *machine = NULL;
	struct takt_err err = {0};
	unsigned calls;

	fake_reset();
	fake_procs(1, 2);
	fake_fail_nth(nth, code);
	if (takt_machine_open(&config, &machine, &err) < 0) {
		assert_true(err.msg[0] != '\0');
		return true;
	}
	for (uint32_t g = 0; g < takt_machine_info(machine)->gpu_count; g++) {
		struct takt_gpu_reading r = sample_of(machine, g);
		uint32_t number = driver_number(machine, g);

		if (number != UINT32_MAX)
			check_honest(&r, number);
	}
	takt_machine_close(machine);
	calls = fake_calls();
	return nth <= calls;
}

static void every_single_call_may_fail(void **state)
{
	static const int codes[] = {NVML_ERROR_UNKNOWN, NVML_ERROR_GPU_IS_LOST,
				    NVML_ERROR_INSUFFICIENT_SIZE, NVML_ERROR_NO_PERMISSION};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(codes); i++) {
		unsigned nth = 1;

		while (survive(nth, codes[i]))
			nth++;
		assert_true(nth > 100 && nth < MAX_CALLS);
	}
}

static void open_with_each_allocation_failing(struct takt_machine_config config)
{
	int rc = -ENOMEM;
	unsigned long nth;

	for (nth = 1; rc < 0; nth++) {
		struct takt_machine *machine = NULL;
		struct takt_err err = {0};

		fake_reset();
		takt_alloc_fail_nth(nth, 0);
		rc = takt_machine_open(&config, &machine, &err);
		takt_alloc_fail_nth(0, 0);
		if (rc < 0)
			assert_int_equal(rc, -ENOMEM);
		takt_machine_close(machine);
	}
	assert_true(nth > 5);
}

static void every_single_allocation_may_fail(void **state)
{
	struct takt_machine_config config = fake_config();

	open_with_each_allocation_failing(config);
	config.for_view = config.no_links = true;
	open_with_each_allocation_failing(config);
}

/* As a look this program has the driver that its environment says. */
static bool is_look(int argc, char **argv, int *ret_status)
{
	const char *driver = getenv("FAKE_DRIVER");

	if (argc > 1 && driver) {
		fake_reset();
		if (strcmp(driver, "missing") == 0)
			fake_library_missing();
		else
			fake_hang("nvmlInit_v2", -1);
	}
	return takt_driver_look_main(argc, argv, ret_status);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_hanging_gpu_turns_stale_and_the_others_do_not, reset_fake),
		cmocka_unit_test_setup(
			a_gpu_that_hangs_in_a_round_holds_the_others_up_until_the_next_tick,
			reset_fake),
		cmocka_unit_test_setup(a_gpu_that_hangs_while_facts_are_read_keeps_those_before,
				       reset_fake),
		cmocka_unit_test_setup(a_view_is_read_by_one_thread_that_lets_the_driver_go,
				       reset_fake),
		cmocka_unit_test_setup(a_gpu_of_a_view_that_hangs_while_facts_are_read_is_one_gpu,
				       reset_fake),
		cmocka_unit_test_setup(a_gpu_of_a_view_that_hangs_in_a_round_is_one_gpu,
				       reset_fake),
		cmocka_unit_test_setup(links_beside_a_hanging_gpu_are_known, reset_fake),
		cmocka_unit_test_setup(a_driver_that_hangs_at_its_start_is_an_error, reset_fake),
		cmocka_unit_test_setup(a_suspended_gpu_is_not_woken, reset_fake),
		cmocka_unit_test_setup(a_driver_that_comes_later_is_seen, reset_fake),
		cmocka_unit_test_setup(a_driver_that_stays_away_is_looked_for_at_a_pace,
				       reset_fake),
		cmocka_unit_test_setup(a_driver_that_hangs_is_not_looked_for_again, reset_fake),
		cmocka_unit_test_setup(a_driver_that_was_loaded_anew_is_missed, reset_fake),
		cmocka_unit_test_setup(a_driver_whose_gpus_are_lost_is_there, reset_fake),
		cmocka_unit_test_setup(a_lost_gpu_is_one_gpu, reset_fake),
		cmocka_unit_test_setup(
			a_gpu_that_is_lost_from_the_start_is_sampled_when_it_comes_back,
			reset_fake),
		cmocka_unit_test_setup(every_single_call_may_fail, reset_fake),
		cmocka_unit_test_setup(every_single_allocation_may_fail, reset_fake),
	};
	int status;

	if (is_look(argc, argv, &status))
		return status;

	return cmocka_run_group_tests(tests, NULL, NULL);
}
