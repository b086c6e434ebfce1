/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "twin_fixture.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "twin_physics.h"

static char directory[64], machine[96];
static void *library;
static struct twin_map *map;

static const char *program(void)
{
	const char *path = getenv("TAKT_TWIN_BIN");

	assert_non_null(path);
	return path;
}

int twin_run(const char *arguments)
{
	char line[1024];
	int status;

	snprintf(line, sizeof(line), "%s %s >/dev/null 2>&1", program(), arguments);
	status = system(line);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void make_directory(void)
{
	snprintf(directory, sizeof(directory), "/tmp/takt-twin-test.XXXXXX");
	assert_non_null(mkdtemp(directory));
}

static int setup(const char *name)
{
	const char *branch = getenv("TAKT_TWIN_BRANCH");
	char arguments[256];

	snprintf(machine, sizeof(machine), "%s/m.twin", directory);
	snprintf(arguments, sizeof(arguments), "create %s --path %s --seed 7 --driver %s", name,
		 machine, branch ? branch : "550");
	assert_int_equal(twin_run(arguments), 0);
	assert_int_equal(setenv("TAKT_TWIN", machine, 1), 0);
	library = dlopen(getenv("TAKT_TWIN_LIB"), RTLD_NOW | RTLD_LOCAL);
	assert_non_null(library);
	assert_int_equal(twin_map_open(machine, &map, NULL), 0);
	return 0;
}

int twin_fixture_h100(void **state)
{
	make_directory();
	return setup("hgx-h100");
}

int twin_fixture_v100(void **state)
{
	make_directory();
	return setup("dgx1-v100");
}

int twin_fixture_a100(void **state)
{
	make_directory();
	return setup("dgx-a100");
}

int twin_fixture_text(const char *text)
{
	char path[96];
	FILE *file;
	int rc;

	make_directory();
	snprintf(path, sizeof(path), "%s/own.toml", directory);
	file = fopen(path, "we");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	rc = setup(path);
	unlink(path);
	return rc;
}

int twin_fixture_4090(void **state)
{
	make_directory();
	return setup("workstation");
}

int twin_fixture_end(void **state)
{
	for (int i = 0; i < 8; i++)
		NVML(nvmlShutdown)();
	dlclose(library);
	twin_map_close(map);
	unlink(machine);
	rmdir(directory);
	return 0;
}

int twin_let_others_in(void)
{
	return chmod(directory, 0755);
}

uintptr_t twin_symbol(const char *name)
{
	void *symbol = dlsym(library, name);

	if (!symbol)
		fail_msg("%s is not exported", name);
	return (uintptr_t)symbol;
}

struct twin_map *twin_fixture_map(void)
{
	return map;
}

struct nvml_device *twin_gpu_handle(uint32_t index)
{
	struct nvml_device *device = NULL;

	assert_int_equal(NVML(nvmlDeviceGetHandleByIndex_v2)(index, &device), NVML_SUCCESS);
	return device;
}

static bool registered(pid_t pid, uint32_t gpu)
{
	struct twin_gpu state;

	twin_read(map, gpu, &state);
	for (uint64_t i = 0; i < state.load_count; i++) {
		if (state.loads[i].pid == pid && twin_load_alive(&state.loads[i]))
			return true;
	}
	return false;
}

pid_t twin_start_load(const char *arguments, uint32_t gpu)
{
	struct timespec nap = {.tv_nsec = 5000000};
	char line[1024];
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		snprintf(line, sizeof(line), "exec %s load %s >/dev/null 2>&1", program(),
			 arguments);
		execl("/bin/sh", "sh", "-c", line, (char *)NULL);
		_exit(127);
	}
	for (int i = 0; i < 4000 && !registered(pid, gpu); i++)
		nanosleep(&nap, NULL);
	assert_true(registered(pid, gpu));
	return pid;
}

void twin_end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}
