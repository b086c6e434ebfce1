/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening and closing the library, and what can be asked of the system as a whole.
 *
 * Initialisation is counted. The machine is named by TAKT_TWIN; without it, or beside a real
 * driver, this library answers that no driver is loaded. A mapped machine stays mapped when the
 * count falls to zero, because another thread may still be inside a call; it is let go only for
 * another machine. No locks here, so that a fork at any moment leaves the child able to start.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nvml_entry.h"
#include "twin_guard.h"

static _Atomic(struct twin_map *) current;
static _Atomic uint32_t users;
static _Atomic uint64_t met_load; /* the load of the driver that was there at initialisation */

struct twin_map *twin_machine_map(void)
{
	return atomic_load_explicit(&users, memory_order_acquire)
		       ? atomic_load_explicit(&current, memory_order_acquire)
		       : NULL;
}

/* A driver that was taken away under us is not the one we opened: until the library is opened anew
 * nothing works. What real drivers say then was not recorded; 999 is what programs report whose
 * device nodes were revoked (GUESS). */
int twin_driver_here(struct twin_map *map)
{
	return twin_ailment(map, 0).reloads == atomic_load_explicit(&met_load, memory_order_relaxed)
		       ? NVML_SUCCESS
		       : NVML_ERROR_UNKNOWN;
}

/* The library's own path, as the loader found it. */
static bool may_run(void)
{
	Dl_info info;

	if (!twin_guard_real_driver())
		return true;
	return dladdr((void *)(uintptr_t)&twin_machine_map, &info) &&
	       twin_guard_forced(info.dli_fname);
}

/* As a library finds a driver: not there, of another version, or fit. */
static int meet(struct twin_map *map)
{
	struct twin_ailment driver = twin_ailment(map, 0);

	if (twin_map_now_ns(map) < driver.away_until_ns)
		return NVML_ERROR_DRIVER_NOT_LOADED;
	if (strcmp(twin_map_file(map)->machine.driver_branch, twin_library_branch) != 0)
		return NVML_ERROR_LIB_RM_VERSION_MISMATCH;
	atomic_store(&met_load, driver.reloads);
	return NVML_SUCCESS;
}

/* Makes the machine named by the environment the current one. Of several threads that try at once
 * one wins and the others take what it mapped. */
static int attach(void)
{
	const char *path = secure_getenv("TAKT_TWIN");
	struct twin_map *old = atomic_load(&current), *map;
	int rc;

	if (!path || !may_run())
		return NVML_ERROR_DRIVER_NOT_LOADED;
	if (old && twin_map_is(old, path) && !atomic_load(&twin_map_file(old)->destroyed))
		return meet(old);
	if (twin_map_open(path, &map, NULL) < 0)
		return NVML_ERROR_DRIVER_NOT_LOADED;
	rc = meet(map);
	if (rc != NVML_SUCCESS) {
		twin_map_close(map);
		return rc;
	}
	twin_map_follow(map, old);
	if (!atomic_compare_exchange_strong(&current, &old, map))
		twin_map_close(map);
	return NVML_SUCCESS;
}

int nvmlInitWithFlags(uint32_t flags)
{
	int rc = atomic_load(&users) ? NVML_SUCCESS : attach();

	if (rc == NVML_SUCCESS)
		atomic_fetch_add(&users, 1);
	return rc;
}

int nvmlInit_v2(void)
{
	return nvmlInitWithFlags(0);
}

int nvmlInit(void)
{
	return nvmlInitWithFlags(0);
}

/* Succeeds without a matching initialisation too, as the real one does. */
int nvmlShutdown(void)
{
	uint32_t count = atomic_load(&users);

	while (count && !atomic_compare_exchange_weak(&users, &count, count - 1))
		;
	return NVML_SUCCESS;
}

const char *nvmlErrorString(int code)
{
	switch (code) {
#define X(name, number, text) \
	case number:          \
		return text;
		NVML_CODES(X)
#undef X
	default:
		return "Unknown Error";
	}
}

/* The table of private functions that NVIDIA's own programs ask for: there is none. */
int nvmlInternalGetExportTable(const void **table, const void *id)
{
	if (!table || !id)
		return NVML_ERROR_INVALID_ARGUMENT;
	*table = NULL;
	return NVML_SUCCESS;
}

int nvmlSystemGetDriverVersion(char *version, uint32_t length)
{
	const struct twin_map *map = twin_machine_map();

	if (!map)
		return NVML_ERROR_UNINITIALIZED;
	return twin_put_text(version, length, twin_map_file(map)->machine.driver_version);
}

/* Works before initialisation too. */
int nvmlSystemGetNVMLVersion(char *version, uint32_t length)
{
	return twin_put_text(version, length, twin_library_version);
}

int nvmlSystemGetCudaDriverVersion_v2(int *version)
{
	const struct twin_map *map = twin_machine_map();

	if (!map)
		return NVML_ERROR_UNINITIALIZED;
	if (!version)
		return NVML_ERROR_INVALID_ARGUMENT;
	*version = (int)twin_map_file(map)->machine.cuda_version;
	return NVML_SUCCESS;
}

int nvmlSystemGetCudaDriverVersion(int *version)
{
	return nvmlSystemGetCudaDriverVersion_v2(version);
}

/* First word of the process's command line, cut to the buffer as the real one does. */
int nvmlSystemGetProcessName(uint32_t pid, char *name, uint32_t length)
{
	char path[40];
	ssize_t n;
	int fd;

	if (!twin_machine_map())
		return NVML_ERROR_UNINITIALIZED;
	if (!name || length == 0)
		return NVML_ERROR_INVALID_ARGUMENT;
	snprintf(path, sizeof(path), "/proc/%u/cmdline", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NVML_ERROR_NOT_FOUND;
	n = read(fd, name, length - 1);
	close(fd);
	name[n > 0 ? n : 0] = '\0';
	return NVML_SUCCESS;
}

/* GPUs that the driver was told to leave alone: none. */
int nvmlGetExcludedDeviceCount(uint32_t *count)
{
	return nvmlUnitGetCount(count);
}

int nvmlGetExcludedDeviceInfoByIndex(uint32_t index, struct nvml_excluded_device *info)
{
	return twin_machine_map() ? NVML_ERROR_INVALID_ARGUMENT : NVML_ERROR_UNINITIALIZED;
}

/* Their names until 450. */
int nvmlGetBlacklistDeviceCount(uint32_t *count)
{
	return nvmlUnitGetCount(count);
}

int nvmlGetBlacklistDeviceInfoByIndex(uint32_t index, struct nvml_excluded_device *info)
{
	return nvmlGetExcludedDeviceInfoByIndex(index, info);
}

int nvmlUnitGetCount(uint32_t *count)
{
	if (!twin_machine_map())
		return NVML_ERROR_UNINITIALIZED;
	if (!count)
		return NVML_ERROR_INVALID_ARGUMENT;
	*count = 0;
	return NVML_SUCCESS;
}
