/* SPDX-License-Identifier: Apache-2.0 */
/* Who may change what, as a machine's file says: asked by root, by the owner and by a stranger. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <sys/wait.h>
#include <unistd.h>

#include "twin_fixture.h"

#define MACHINE                  \
	"board = \"h100-sxm\"\n" \
	"bus = [1]\n"            \
	"numa = [0]\n"           \
	"cpus = [\"0-7\"]\n"     \
	"near = \"NODE\"\n"      \
	"[permission]\n"

static int locked_down(void **state)
{
	return twin_fixture_text(MACHINE "setters = \"root\"\n"
					 "anyone = [\"nvmlDeviceSetGpuLockedClocks\"]\n"
					 "nobody = [\"nvmlDeviceSetPowerManagementLimit\",\n"
					 "  \"nvmlDeviceCreateGpuInstance\"]\n");
}

static int open_clocks(void **state)
{
	return twin_fixture_text(MACHINE "application_clocks = \"open\"\n");
}

static struct nvml_device *gpu(void)
{
	return twin_gpu_handle(0);
}

static int lock(void)
{
	return NVML(nvmlDeviceSetGpuLockedClocks)(gpu(), 345, 990);
}

static int unlock(void)
{
	return NVML(nvmlDeviceResetGpuLockedClocks)(gpu());
}

static int set_limit(void)
{
	return NVML(nvmlDeviceSetPowerManagementLimit)(gpu(), 500000);
}

static int set_application(void)
{
	return NVML(nvmlDeviceSetApplicationsClocks)(gpu(), 2619, 1500);
}

static int restrict_application(void)
{
	return NVML(nvmlDeviceSetAPIRestriction)(gpu(), NVML_RESTRICTED_API_APPLICATION_CLOCKS, 1);
}

static int cut(void)
{
	struct nvml_gpu_instance *instance;
	int activation;
	int rc = NVML(nvmlDeviceSetMigMode)(gpu(), 1, &activation);

	return rc ? rc : NVML(nvmlDeviceCreateGpuInstance)(gpu(), 19, &instance);
}

/* What somebody else is answered; -1 where nobody can be somebody else. */
static int as_stranger(int (*call)(void))
{
	int status;
	pid_t pid;

	if (geteuid() != 0)
		return -1;
	assert_int_equal(twin_let_others_in(), 0);
	pid = fork();
	if (pid == 0)
		_exit(setuid(65534) == 0 && NVML(nvmlInit_v2)() == NVML_SUCCESS ? call() : 99);
	waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}

static void assert_stranger(int (*call)(void), int expected)
{
	int code = as_stranger(call);

	if (code >= 0)
		assert_int_equal(code, expected);
}

static void a_call_is_for_whom_the_machine_says(void **state)
{
	int for_root = geteuid() == 0 ? NVML_SUCCESS : NVML_ERROR_NO_PERMISSION;

	assert_int_equal(NVML(nvmlInit_v2)(), NVML_SUCCESS);
	assert_int_equal(lock(), NVML_SUCCESS);
	assert_stranger(lock, NVML_SUCCESS);
	assert_int_equal(unlock(), for_root);
	assert_stranger(unlock, NVML_ERROR_NO_PERMISSION);
	/* as in a container that may not: not even root */
	assert_int_equal(set_limit(), NVML_ERROR_NO_PERMISSION);
	assert_int_equal(cut(), NVML_ERROR_NO_PERMISSION);
}

static void application_clocks_may_be_open_to_everyone(void **state)
{
	uint32_t restricted = 9;

	assert_int_equal(NVML(nvmlInit_v2)(), NVML_SUCCESS);
	assert_int_equal(NVML(nvmlDeviceGetAPIRestriction)(
				 gpu(), NVML_RESTRICTED_API_APPLICATION_CLOCKS, &restricted),
			 NVML_SUCCESS);
	assert_int_equal(restricted, NVML_FEATURE_DISABLED);
	assert_stranger(set_application, NVML_SUCCESS);
	assert_stranger(lock, NVML_ERROR_NO_PERMISSION);
	assert_stranger(restrict_application, NVML_ERROR_NO_PERMISSION);
	assert_int_equal(restrict_application(), NVML_SUCCESS);
	assert_stranger(set_application, NVML_ERROR_NO_PERMISSION);
	/* as one without privilege is everybody with this fault */
	assert_int_equal(twin_run("fault all permission"), 0);
	assert_int_equal(set_application(), NVML_ERROR_NO_PERMISSION);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_call_is_for_whom_the_machine_says, locked_down,
						twin_fixture_end),
		cmocka_unit_test_setup_teardown(application_clocks_may_be_open_to_everyone,
						open_clocks, twin_fixture_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
