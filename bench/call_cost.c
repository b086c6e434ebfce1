/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one NVML call costs, in nanoseconds of processor time (system calls included), of any
 *library that has NVML's names: the simulated driver's, a mock's, a driver's. Settings are changed
 *only with --set, and put back.
 *
 *	call_cost [--set] LIBRARY    prints one line of JSON a call
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "abi/nvml.h"
#include "base/compiler.h"

enum {
	BATCHES = 15,
	BATCH_NS = 4000000,
	MAX_GPUS = 64,
};

static void *library;
static struct nvml_device *gpus[MAX_GPUS];
static uint32_t gpu_count;
static nvmlInit_v2_fn *init;
static nvmlShutdown_fn *shut_down;

static uintptr_t find(const char *name)
{
	return (uintptr_t)dlsym(library, name);
}

/* Calls by name, so that what a library lacks is found missing and not a failure to start. */
#define FN(name) ((name##_fn *)functions[at_##name])
#define CALLS(X)                                     \
	X(nvmlDeviceGetHandleByIndex_v2)             \
	X(nvmlDeviceGetName)                         \
	X(nvmlDeviceGetClockInfo)                    \
	X(nvmlDeviceGetPowerUsage)                   \
	X(nvmlDeviceGetTotalEnergyConsumption)       \
	X(nvmlDeviceGetTemperature)                  \
	X(nvmlDeviceGetUtilizationRates)             \
	X(nvmlDeviceGetMemoryInfo)                   \
	X(nvmlDeviceGetMemoryInfo_v2)                \
	X(nvmlDeviceGetCurrentClocksThrottleReasons) \
	X(nvmlDeviceGetFieldValues)                  \
	X(nvmlDeviceGetSamples)                      \
	X(nvmlDeviceGetComputeRunningProcesses_v3)   \
	X(nvmlDeviceGetPowerManagementLimit)         \
	X(nvmlDeviceSetGpuLockedClocks)              \
	X(nvmlDeviceResetGpuLockedClocks)            \
	X(nvmlDeviceSetPowerManagementLimit)

enum {
#define X(name) at_##name,
	CALLS(X)
#undef X
	CALL_COUNT
};

static uintptr_t functions[CALL_COUNT];

static int handle(struct nvml_device *gpu)
{
	return FN(nvmlDeviceGetHandleByIndex_v2)(0, &gpu);
}

static int name(struct nvml_device *gpu)
{
	char text[NVML_BUFFER_NAME];

	return FN(nvmlDeviceGetName)(gpu, text, sizeof(text));
}

static int clock_info(struct nvml_device *gpu)
{
	uint32_t mhz;

	return FN(nvmlDeviceGetClockInfo)(gpu, NVML_CLOCK_SM, &mhz);
}

static int power(struct nvml_device *gpu)
{
	uint32_t mw;

	return FN(nvmlDeviceGetPowerUsage)(gpu, &mw);
}

static int energy(struct nvml_device *gpu)
{
	uint64_t mj;

	return FN(nvmlDeviceGetTotalEnergyConsumption)(gpu, &mj);
}

static int temperature(struct nvml_device *gpu)
{
	uint32_t celsius;

	return FN(nvmlDeviceGetTemperature)(gpu, NVML_TEMPERATURE_GPU, &celsius);
}

static int utilization(struct nvml_device *gpu)
{
	struct nvml_utilization rates;

	return FN(nvmlDeviceGetUtilizationRates)(gpu, &rates);
}

static int memory(struct nvml_device *gpu)
{
	struct nvml_memory info;

	return FN(nvmlDeviceGetMemoryInfo)(gpu, &info);
}

static int memory_v2(struct nvml_device *gpu)
{
	struct nvml_memory_v2 info = {.version = NVML_MEMORY_V2_WORD};

	return FN(nvmlDeviceGetMemoryInfo_v2)(gpu, &info);
}

static int reasons(struct nvml_device *gpu)
{
	uint64_t bits;

	return FN(nvmlDeviceGetCurrentClocksThrottleReasons)(gpu, &bits);
}

static int fields(struct nvml_device *gpu)
{
	struct nvml_field_value values[] = {{.field_id = NVML_FI_TOTAL_ENERGY},
					    {.field_id = NVML_FI_POWER_INSTANT},
					    {.field_id = NVML_FI_MEMORY_TEMP}};

	return FN(nvmlDeviceGetFieldValues)(gpu, 3, values);
}

/* All that the driver keeps of the power: a second or two of it. */
static int samples(struct nvml_device *gpu)
{
	struct nvml_sample kept[256];
	uint32_t type, count = TAKT_ARRAY_LEN(kept);

	return FN(nvmlDeviceGetSamples)(gpu, NVML_SAMPLES_TOTAL_POWER, 0, &type, &count, kept);
}

static int processes(struct nvml_device *gpu)
{
	struct nvml_process_info infos[32];
	uint32_t count = TAKT_ARRAY_LEN(infos);

	return FN(nvmlDeviceGetComputeRunningProcesses_v3)(gpu, &count, infos);
}

static int limit(struct nvml_device *gpu)
{
	uint32_t mw;

	return FN(nvmlDeviceGetPowerManagementLimit)(gpu, &mw);
}

static int lock(struct nvml_device *gpu)
{
	return FN(nvmlDeviceSetGpuLockedClocks)(gpu, 345, 990);
}

static int unlock(struct nvml_device *gpu)
{
	return FN(nvmlDeviceResetGpuLockedClocks)(gpu);
}

static int set_limit(struct nvml_device *gpu)
{
	static uint32_t found_mw;

	if (found_mw == 0)
		FN(nvmlDeviceGetPowerManagementLimit)(gpu, &found_mw);
	return FN(nvmlDeviceSetPowerManagementLimit)(gpu, found_mw);
}

static int init_again(struct nvml_device *gpu)
{
	int rc = init();

	return rc == NVML_SUCCESS ? shut_down() : rc;
}

/* What takt asks for ten times a second, of every GPU (src/device/nvml_read.c). */
static int tick(struct nvml_device *gpu)
{
	int rc = NVML_SUCCESS;

	for (uint32_t i = 0; i < gpu_count; i++) {
		rc |= clock_info(gpus[i]) | power(gpus[i]) | energy(gpus[i]) |
		      temperature(gpus[i]) | utilization(gpus[i]) | memory_v2(gpus[i]) |
		      reasons(gpus[i]);
	}
	return rc;
}

static const struct subject {
	const char *name;
	int needs; /* index of a function, or -1 */
	int (*call)(struct nvml_device *gpu);
	bool sets;
} subjects[] = {
	{"Init_v2 and Shutdown when initialised", -1, init_again},
	{"DeviceGetHandleByIndex_v2", at_nvmlDeviceGetHandleByIndex_v2, handle},
	{"DeviceGetName", at_nvmlDeviceGetName, name},
	{"DeviceGetClockInfo", at_nvmlDeviceGetClockInfo, clock_info},
	{"DeviceGetPowerUsage", at_nvmlDeviceGetPowerUsage, power},
	{"DeviceGetTotalEnergyConsumption", at_nvmlDeviceGetTotalEnergyConsumption, energy},
	{"DeviceGetTemperature", at_nvmlDeviceGetTemperature, temperature},
	{"DeviceGetUtilizationRates", at_nvmlDeviceGetUtilizationRates, utilization},
	{"DeviceGetMemoryInfo", at_nvmlDeviceGetMemoryInfo, memory},
	{"DeviceGetMemoryInfo_v2", at_nvmlDeviceGetMemoryInfo_v2, memory_v2},
	{"DeviceGetCurrentClocksThrottleReasons", at_nvmlDeviceGetCurrentClocksThrottleReasons,
	 reasons},
	{"DeviceGetFieldValues of 3", at_nvmlDeviceGetFieldValues, fields},
	{"DeviceGetSamples of power", at_nvmlDeviceGetSamples, samples},
	{"DeviceGetComputeRunningProcesses_v3", at_nvmlDeviceGetComputeRunningProcesses_v3,
	 processes},
	{"DeviceGetPowerManagementLimit", at_nvmlDeviceGetPowerManagementLimit, limit},
	{"DeviceSetGpuLockedClocks", at_nvmlDeviceSetGpuLockedClocks, lock, true},
	{"DeviceResetGpuLockedClocks", at_nvmlDeviceResetGpuLockedClocks, unlock, true},
	{"DeviceSetPowerManagementLimit", at_nvmlDeviceSetPowerManagementLimit, set_limit, true},
	{"a tick of takt", at_nvmlDeviceGetMemoryInfo_v2, tick},
};

static uint64_t cpu_ns(void)
{
	struct timespec used;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	return (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
}

/* Nanoseconds a call of one batch, which takes at least BATCH_NS. */
static double batch(const struct subject *subject)
{
	uint64_t begin = cpu_ns(), n = 0, used;

	do {
		for (unsigned i = 0; i < 16; i++)
			subject->call(gpus[0]);
		n += 16;
		used = cpu_ns() - begin;
	} while (used < BATCH_NS);
	return (double)used / (double)n;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void measure(const struct subject *subject)
{
	double ns[BATCHES];
	int rc;

	if (subject->needs >= 0 && !functions[subject->needs])
		return;
	rc = subject->call(gpus[0]);
	for (unsigned i = 0; i < BATCHES; i++)
		ns[i] = batch(subject);
	qsort(ns, BATCHES, sizeof(ns[0]), compare);
	printf("{\"call\": \"%s\", \"code\": %d, \"ns\": %.1f, \"least_ns\": %.1f, \"gpus\": %u}\n",
	       subject->name, rc, ns[BATCHES / 2], ns[0], gpu_count);
}

static bool open_library(const char *path)
{
	nvmlDeviceGetCount_v2_fn *count;

	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		fprintf(stderr, "call_cost: %s\n", dlerror());
		return false;
	}
#define X(name) functions[at_##name] = find(#name);
	CALLS(X)
#undef X
	init = (nvmlInit_v2_fn *)find("nvmlInit_v2");
	shut_down = (nvmlShutdown_fn *)find("nvmlShutdown");
	count = (nvmlDeviceGetCount_v2_fn *)find("nvmlDeviceGetCount_v2");
	if (!init || !shut_down || !count || !functions[at_nvmlDeviceGetHandleByIndex_v2] ||
	    init() != NVML_SUCCESS || count(&gpu_count) != NVML_SUCCESS) {
		fprintf(stderr, "call_cost: '%s' does not initialise\n", path);
		return false;
	}
	gpu_count = gpu_count < MAX_GPUS ? gpu_count : MAX_GPUS;
	for (uint32_t i = 0; i < gpu_count; i++)
		FN(nvmlDeviceGetHandleByIndex_v2)(i, &gpus[i]);
	return gpu_count > 0;
}

int main(int argc, char **argv)
{
	bool sets = argc > 1 && strcmp(argv[1], "--set") == 0;

	if (argc != 2 + sets) {
		fprintf(stderr, "usage: call_cost [--set] LIBRARY\n");
		return 64;
	}
	if (!open_library(argv[1 + sets]))
		return 69;
	for (size_t i = 0; i < TAKT_ARRAY_LEN(subjects); i++) {
		if (sets || !subjects[i].sets)
			measure(&subjects[i]);
	}
	return 0;
}
