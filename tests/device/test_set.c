/* SPDX-License-Identifier: Apache-2.0 */
/* Setters: posted, gated, finished once, refused with the driver's code; they change that GPU and
 * no other. */
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "device/device_set.h"
#include "fake_machine.h"

static struct takt_err finish(struct takt_machine *machine, uint32_t gpu)
{
	struct takt_err result = {.rc = 1};

	for (int i = 0; i < 120000; i++) {
		if (takt_machine_set_finished(machine, gpu, &result))
			return result;
		usleep(1000);
	}
	fail_msg("the setter of GPU %u did not finish", gpu);
	return result;
}

static struct takt_err set(struct takt_machine *machine, uint32_t gpu, struct takt_set_call call)
{
	struct takt_err err = {0};
	int rc = takt_machine_set_post(machine, gpu, &call, &err);

	if (rc < 0)
		return err;
	return finish(machine, gpu);
}

static const struct takt_set_call lock_call = {
	.op = TAKT_SET_LOCK_SM, .min_mhz = 210, .max_mhz = 1410};

static void setters_reach_their_gpu(void **state)
{
	struct takt_machine *machine = open_fake();
	struct takt_set_call limit = {.op = TAKT_SET_POWER_LIMIT, .limit_mw = 400000};
	struct takt_set_call unlock = {.op = TAKT_SET_UNLOCK_SM};
	struct takt_set_call lock_memory = {
		.op = TAKT_SET_LOCK_MEM, .min_mhz = 2619, .max_mhz = 2619};
	struct takt_set_call unlock_memory = {.op = TAKT_SET_UNLOCK_MEM};
	struct takt_err none;

	assert_int_equal(set(machine, 0, lock_call).rc, 0);
	assert_int_equal(fake_locked_min(1), 210);
	assert_int_equal(fake_locked_min(0), 0);
	assert_false(takt_machine_set_finished(machine, 0, &none));
	assert_int_equal(set(machine, 0, limit).rc, 0);
	assert_int_equal(sample_of(machine, 0).power_limit_mw, 400000);
	assert_int_equal(set(machine, 0, unlock).rc, 0);
	assert_int_equal(fake_locked_min(1), 0);
	assert_int_equal(set(machine, 0, lock_memory).rc, 0);
	assert_int_equal(fake_mem_locked_max(1), 2619);
	assert_int_equal(fake_mem_locked_max(0) + fake_locked_min(1), 0);
	assert_int_equal(set(machine, 0, unlock_memory).rc, 0);
	assert_int_equal(fake_mem_locked_max(1), 0);
	takt_machine_close(machine);
}

static void refusals_keep_the_drivers_code(void **state)
{
	static const struct {
		int code, rc;
	} cases[] = {
		{NVML_ERROR_NO_PERMISSION, -EPERM}, {NVML_ERROR_NOT_SUPPORTED, -TAKT_E_UNSUPPORTED},
		{NVML_ERROR_GPU_IS_LOST, -ENODEV},  {NVML_ERROR_INVALID_ARGUMENT, -EINVAL},
		{NVML_ERROR_TIMEOUT, -ETIMEDOUT},   {NVML_ERROR_UNKNOWN, -EIO},
	};
	struct takt_machine *machine = open_fake();

	for (size_t i = 0; i < TAKT_ARRAY_LEN(cases); i++) {
		struct takt_err result;

		fake_answer("nvmlDeviceSetGpuLockedClocks", cases[i].code);
		result = set(machine, 1, lock_call);
		assert_int_equal(result.rc, cases[i].rc);
		assert_int_equal(result.vendor, cases[i].code);
		assert_true(result.msg[0] != '\0');
	}
	takt_machine_close(machine);
}

static void a_driver_without_setters_says_unsupported(void **state)
{
	struct takt_machine *machine;

	fake_hide("nvmlDeviceSetGpuLockedClocks");
	machine = open_fake();
	assert_int_equal(set(machine, 0, lock_call).rc, -TAKT_E_UNSUPPORTED);
	takt_machine_close(machine);
}

static int closed_gate(void *ctx)
{
	(*(int *)ctx)++;
	return -TAKT_E_STALE;
}

static void a_closed_gate_keeps_the_driver_untouched(void **state)
{
	struct takt_machine *machine = open_fake();
	struct takt_set_call call = lock_call;
	struct takt_err result;
	int asked = 0;

	call.gate = closed_gate;
	call.gate_ctx = &asked;
	result = set(machine, 0, call);
	assert_int_equal(result.rc, -TAKT_E_STALE);
	assert_int_equal(asked, 1);
	assert_int_equal(fake_locked_min(1), 0);
	takt_machine_close(machine);
}

static void a_second_setter_waits_for_the_first_to_be_fetched(void **state)
{
	struct takt_machine *machine = open_fake();
	struct takt_err err, result;

	fake_hang("nvmlDeviceSetGpuLockedClocks", 1);
	assert_int_equal(takt_machine_set_post(machine, 0, &lock_call, &err), 0);
	assert_int_equal(takt_machine_set_post(machine, 0, &lock_call, &err), -EAGAIN);
	assert_false(takt_machine_set_finished(machine, 0, &result));
	/* The neighbour's are served meanwhile. */
	assert_int_equal(set(machine, 1, lock_call).rc, 0);
	fake_wake();
	assert_int_equal(finish(machine, 0).rc, 0);
	assert_int_equal(set(machine, 0, lock_call).rc, 0);
	takt_machine_close(machine);
}

static void the_caller_is_woken_when_a_setter_has_finished(void **state)
{
	struct takt_machine *machine = open_fake();
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
	struct takt_err result;

	takt_machine_notify(machine, fd);
	assert_int_equal(takt_machine_set_post(machine, 0, &lock_call, NULL), 0);
	assert_int_equal(poll(&poll_fd, 1, 20000), 1);
	assert_true(takt_machine_set_finished(machine, 0, &result));
	takt_machine_close(machine);
	close(fd);
}

static void nonsense_is_refused_before_the_driver_sees_it(void **state)
{
	struct takt_machine *machine = open_fake();
	struct takt_set_call call = {.op = TAKT_SET_LOCK_SM, .min_mhz = 1410, .max_mhz = 210};
	struct takt_err err = {0};

	assert_int_equal(takt_machine_set_post(machine, 0, &call, &err), -EINVAL);
	assert_int_equal(takt_machine_set_post(machine, FAKE_GPUS, &lock_call, &err), -EINVAL);
	takt_machine_close(machine);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(setters_reach_their_gpu, reset_fake),
		cmocka_unit_test_setup(refusals_keep_the_drivers_code, reset_fake),
		cmocka_unit_test_setup(a_driver_without_setters_says_unsupported, reset_fake),
		cmocka_unit_test_setup(a_closed_gate_keeps_the_driver_untouched, reset_fake),
		cmocka_unit_test_setup(a_second_setter_waits_for_the_first_to_be_fetched,
				       reset_fake),
		cmocka_unit_test_setup(the_caller_is_woken_when_a_setter_has_finished, reset_fake),
		cmocka_unit_test_setup(nonsense_is_refused_before_the_driver_sees_it, reset_fake),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
