/* SPDX-License-Identifier: Apache-2.0 */
/* The misbehaving driver of fake_nvml.h. */
#include "fake_nvml.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "abi/nvml.h"

enum {
	MAX_HIDDEN = 8,
};

/* The driver's numbering is not the PCI order: its GPU 0 is the last on the bus. */
static const char *const bus_ids[FAKE_GPUS] = {"00000000:B1:00.0", "00000000:07:00.0",
					       "00000000:0A:00.0", "00000001:03:00.0"};

struct nvml_device {
	uint32_t index;
};
static struct nvml_device devices[FAKE_GPUS];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t woken = PTHREAD_COND_INITIALIZER;
static struct {
	bool missing;
	const char *hidden[MAX_HIDDEN];
	const char *answer_name;
	int answer_code, field_code, memory_v2_code, fail_code;
	unsigned fail_nth, calls, gpu_calls[FAKE_GPUS];
	const char *slow_name;
	unsigned slow_us;
	const char *counted;
	unsigned counted_calls;
	bool lost[FAKE_GPUS], gone;
	const char *hang_name;
	int hang_gpu;
	bool hung;
	uint32_t procs[FAKE_GPUS];
	struct nvml_process_utilization uses[FAKE_GPUS][FAKE_MAX_USES];
	uint32_t use_count[FAKE_GPUS];
	uint64_t more_used[FAKE_GPUS];
	uint32_t entry_bytes;
	uint8_t links[FAKE_GPUS][FAKE_GPUS];
	uint32_t to_switch;
	bool twin;
	uint32_t locked_min[FAKE_GPUS], limit[FAKE_GPUS], mem_locked_max[FAKE_GPUS];
} fake;

/* What every driver call goes through; with the lock it may wait for fake_wake. */
static int enter(const char *name, const struct nvml_device *device)
{
	int gpu = device ? (int)device->index : -1;
	int code = NVML_SUCCESS;
	unsigned slow_us;

	pthread_mutex_lock(&lock);
	slow_us = fake.slow_name && strcmp(fake.slow_name, name) == 0 ? fake.slow_us : 0;
	fake.calls++;
	if (device)
		fake.gpu_calls[gpu]++;
	if (fake.counted && strcmp(fake.counted, name) == 0)
		fake.counted_calls++;
	while (fake.hang_name && strcmp(fake.hang_name, name) == 0 && fake.hang_gpu == gpu) {
		fake.hung = true;
		pthread_cond_wait(&woken, &lock);
	}
	if (fake.fail_nth > 0 && --fake.fail_nth == 0)
		code = fake.fail_code;
	else if (fake.answer_name && strcmp(fake.answer_name, name) == 0)
		code = fake.answer_code;
	else if (fake.gone)
		code = NVML_ERROR_UNKNOWN;
	else if (device && fake.lost[gpu])
		code = NVML_ERROR_GPU_IS_LOST;
	pthread_mutex_unlock(&lock);
	usleep(slow_us);
	return code;
}

#define ENTER(device)                                \
	do {                                         \
		int code_ = enter(__func__, device); \
		if (code_ != NVML_SUCCESS)           \
			return code_;                \
	} while (0)

static int nvmlInit_v2(void)
{
	ENTER(NULL);
	return NVML_SUCCESS;
}

static int nvmlShutdown(void)
{
	ENTER(NULL);
	return NVML_SUCCESS;
}

static int text(char *to, uint32_t size, const char *from)
{
	if (strlen(from) >= size)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	memcpy(to, from, strlen(from) + 1);
	return NVML_SUCCESS;
}

static int nvmlSystemGetDriverVersion(char *version, uint32_t length)
{
	ENTER(NULL);
	return text(version, length, "550.54.15");
}

static int nvmlSystemGetNVMLVersion(char *version, uint32_t length)
{
	ENTER(NULL);
	return text(version, length, "12.550.54.15");
}

static int nvmlSystemGetCudaDriverVersion_v2(int *version)
{
	ENTER(NULL);
	*version = 12040;
	return NVML_SUCCESS;
}

static int nvmlDeviceGetCount_v2(uint32_t *count)
{
	ENTER(NULL);
	*count = FAKE_GPUS;
	return NVML_SUCCESS;
}

static int nvmlDeviceGetHandleByIndex_v2(uint32_t index, struct nvml_device **device)
{
	if (index >= FAKE_GPUS)
		return NVML_ERROR_INVALID_ARGUMENT;
	ENTER(&devices[index]);
	*device = &devices[index];
	return NVML_SUCCESS;
}

static int nvmlDeviceGetName(struct nvml_device *device, char *name, uint32_t length)
{
	ENTER(device);
	return text(name, length, "Fake H100");
}

static int nvmlDeviceGetUUID(struct nvml_device *device, char *uuid, uint32_t length)
{
	char id[64];

	ENTER(device);
	snprintf(id, sizeof(id), "GPU-%08x-0000-0000-0000-000000000000", device->index);
	return text(uuid, length, id);
}

static int nvmlDeviceGetPciInfo_v3(struct nvml_device *device, struct nvml_pci_info *pci)
{
	ENTER(device);
	return text(pci->bus_id, sizeof(pci->bus_id), bus_ids[device->index]);
}

static int nvmlDeviceGetPciInfo_v2(struct nvml_device *device, struct nvml_pci_info_v2 *pci)
{
	ENTER(device);
	return text(pci->bus_id, sizeof(pci->bus_id), bus_ids[device->index] + 4);
}

static int nvmlDeviceGetSerial(struct nvml_device *device, char *serial, uint32_t length)
{
	ENTER(device);
	return text(serial, length, fake.twin ? "TWIN0001" : "1650000001");
}

static int nvmlDeviceGetVbiosVersion(struct nvml_device *device, char *version, uint32_t length)
{
	ENTER(device);
	return text(version, length, "96.00.5E.00.01");
}

#define NUMBER(name, value)                                        \
	static int name(struct nvml_device *device, uint32_t *ret) \
	{                                                          \
		ENTER(device);                                     \
		*ret = (value);                                    \
		return NVML_SUCCESS;                               \
	}

NUMBER(nvmlDeviceGetMinorNumber, device->index)
NUMBER(nvmlDeviceGetPowerUsage, FAKE_POWER_MW + device->index)
NUMBER(nvmlDeviceGetPowerManagementLimit, fake.limit[device->index])
NUMBER(nvmlDeviceGetEnforcedPowerLimit, FAKE_ENFORCED_MW)
NUMBER(nvmlDeviceGetPowerManagementDefaultLimit, FAKE_LIMIT_MW)
NUMBER(nvmlDeviceGetFanSpeed, FAKE_FAN)
NUMBER(nvmlDeviceGetPerformanceState, FAKE_PSTATE)
NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, 5)
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, 16)
NUMBER(nvmlDeviceGetPowerSource, device->index) /* 0: the mains, 1: a battery */
NUMBER(nvmlDeviceGetPcieReplayCounter, FAKE_REPLAYS)
NUMBER(nvmlDeviceGetPersistenceMode, NVML_FEATURE_ENABLED)

static int nvmlDeviceGetCudaComputeCapability(struct nvml_device *device, int *major, int *minor)
{
	ENTER(device);
	*major = 9;
	*minor = 0;
	return NVML_SUCCESS;
}

static int nvmlDeviceGetCpuAffinity(struct nvml_device *device, uint32_t words, unsigned long *set)
{
	ENTER(device);
	memset(set, 0, words * sizeof(*set));
	set[device->index / 2] = 0xffff0000ul;
	return NVML_SUCCESS;
}

static int nvmlDeviceGetMemoryAffinity(struct nvml_device *device, uint32_t words,
				       unsigned long *set, uint32_t scope)
{
	ENTER(device);
	memset(set, 0, words * sizeof(*set));
	set[0] = 1ul << device->index / 2;
	return scope == NVML_AFFINITY_SCOPE_NODE ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

static int nvmlDeviceGetPowerManagementLimitConstraints(struct nvml_device *device, uint32_t *min,
							uint32_t *max)
{
	ENTER(device);
	*min = 200000;
	*max = FAKE_LIMIT_MW;
	return NVML_SUCCESS;
}

static int list_clocks(const uint32_t *from, uint32_t n, uint32_t *count, uint32_t *mhz)
{
	if (*count < n) {
		*count = n;
		return NVML_ERROR_INSUFFICIENT_SIZE;
	}
	memcpy(mhz, from, n * sizeof(*from));
	*count = n;
	return NVML_SUCCESS;
}

static int nvmlDeviceGetSupportedMemoryClocks(struct nvml_device *device, uint32_t *count,
					      uint32_t *mhz)
{
	static const uint32_t clocks[] = {1593, 2619};

	ENTER(device);
	return list_clocks(clocks, 2, count, mhz);
}

/* Not ascending, one twice, as drivers answer. */
static int nvmlDeviceGetSupportedGraphicsClocks(struct nvml_device *device, uint32_t mem_mhz,
						uint32_t *count, uint32_t *mhz)
{
	static const uint32_t clocks[] = {1980, 1965, 1410, 1410, 210, 345};

	ENTER(device);
	return mem_mhz == 2619 ? list_clocks(clocks, 6, count, mhz) : NVML_ERROR_INVALID_ARGUMENT;
}

static int nvmlDeviceGetMaxClockInfo(struct nvml_device *device, uint32_t type, uint32_t *mhz)
{
	ENTER(device);
	*mhz = 1980;
	return NVML_SUCCESS;
}

static int nvmlDeviceGetTemperatureThreshold(struct nvml_device *device, uint32_t type,
					     uint32_t *celsius)
{
	ENTER(device);
	*celsius = 87;
	return NVML_SUCCESS;
}

static int nvmlDeviceGetMaxPcieLinkGeneration(struct nvml_device *device, uint32_t *gen)
{
	ENTER(device);
	*gen = 5;
	return NVML_SUCCESS;
}

static int nvmlDeviceGetMaxPcieLinkWidth(struct nvml_device *device, uint32_t *width)
{
	ENTER(device);
	*width = 16;
	return NVML_SUCCESS;
}

static int nvmlDeviceGetMigMode(struct nvml_device *device, uint32_t *current, uint32_t *pending)
{
	ENTER(device);
	*current = *pending = NVML_FEATURE_DISABLED;
	return NVML_SUCCESS;
}

static int nvmlDeviceGetTopologyCommonAncestor(struct nvml_device *device,
					       struct nvml_device *other, uint32_t *level)
{
	ENTER(device);
	*level = device->index / 2 == other->index / 2 ? NVML_TOPOLOGY_MULTIPLE
						       : NVML_TOPOLOGY_SYSTEM;
	return NVML_SUCCESS;
}

/* Links to the other GPUs in their order, then those into the switch. */
static int remote_of(uint32_t gpu, uint32_t link)
{
	for (int other = 0; other < FAKE_GPUS; other++) {
		if (link < fake.links[gpu][other])
			return other;
		link -= fake.links[gpu][other];
	}
	return link < fake.to_switch ? FAKE_GPUS : -1;
}

static int nvmlDeviceGetNvLinkState(struct nvml_device *device, uint32_t link, uint32_t *active)
{
	ENTER(device);
	*active = remote_of(device->index, link) >= 0;
	return NVML_SUCCESS;
}

static int nvmlDeviceGetNvLinkRemoteDeviceType(struct nvml_device *device, uint32_t link,
					       uint32_t *type)
{
	ENTER(device);
	*type = remote_of(device->index, link) == FAKE_GPUS ? NVML_NVLINK_REMOTE_SWITCH
							    : NVML_NVLINK_REMOTE_GPU;
	return NVML_SUCCESS;
}

static int nvmlDeviceGetNvLinkRemotePciInfo_v2(struct nvml_device *device, uint32_t link,
					       struct nvml_pci_info *pci)
{
	int remote;

	ENTER(device);
	remote = remote_of(device->index, link);
	if (remote < 0)
		return NVML_ERROR_NOT_SUPPORTED;
	return text(pci->bus_id, sizeof(pci->bus_id),
		    remote == FAKE_GPUS ? "00000000:D0:00.0" : bus_ids[remote]);
}

static int nvmlDeviceGetClockInfo(struct nvml_device *device, uint32_t type, uint32_t *mhz)
{
	ENTER(device);
	*mhz = type == NVML_CLOCK_MEM ? FAKE_MEM_MHZ : FAKE_SM_MHZ + device->index;
	return NVML_SUCCESS;
}

static int nvmlDeviceGetTemperature(struct nvml_device *device, uint32_t sensor, uint32_t *celsius)
{
	ENTER(device);
	*celsius = FAKE_TEMP_C + device->index;
	return NVML_SUCCESS;
}

static int nvmlDeviceGetUtilizationRates(struct nvml_device *device,
					 struct nvml_utilization *utilization)
{
	ENTER(device);
	utilization->gpu = FAKE_GPU_UTIL;
	utilization->memory = FAKE_MEM_UTIL;
	return NVML_SUCCESS;
}

static int nvmlDeviceGetMemoryInfo(struct nvml_device *device, struct nvml_memory *memory)
{
	ENTER(device);
	memory->total = FAKE_TOTAL_BYTES;
	memory->used = FAKE_USED_BYTES + FAKE_RESERVED_BYTES + fake.more_used[device->index];
	memory->free = memory->total - memory->used;
	return NVML_SUCCESS;
}

static int nvmlDeviceGetMemoryInfo_v2(struct nvml_device *device, struct nvml_memory_v2 *memory)
{
	ENTER(device);
	if (fake.memory_v2_code != NVML_SUCCESS)
		return fake.memory_v2_code;
	if (memory->version != NVML_MEMORY_V2_WORD)
		return NVML_ERROR_FUNCTION_NOT_FOUND;
	memory->total = FAKE_TOTAL_BYTES;
	memory->reserved = FAKE_RESERVED_BYTES;
	memory->used = FAKE_USED_BYTES + fake.more_used[device->index];
	memory->free = memory->total - memory->used - memory->reserved;
	return NVML_SUCCESS;
}

static int nvmlDeviceGetTotalEnergyConsumption(struct nvml_device *device, uint64_t *energy_mj)
{
	ENTER(device);
	*energy_mj = FAKE_ENERGY_MJ + device->index;
	return NVML_SUCCESS;
}

static int nvmlDeviceGetCurrentClocksEventReasons(struct nvml_device *device, uint64_t *reasons)
{
	ENTER(device);
	*reasons = NVML_REASON_SW_POWER_CAP;
	return NVML_SUCCESS;
}

static int nvmlDeviceGetEncoderUtilization(struct nvml_device *device, uint32_t *percent,
					   uint32_t *period_us)
{
	ENTER(device);
	*percent = 3;
	*period_us = 167000;
	return NVML_SUCCESS;
}

static int nvmlDeviceGetDecoderUtilization(struct nvml_device *device, uint32_t *percent,
					   uint32_t *period_us)
{
	ENTER(device);
	*percent = 4;
	*period_us = 167000;
	return NVML_SUCCESS;
}

/* As boards of the A100's kind: power scope 1 is not theirs. */
static int nvmlDeviceGetFieldValues(struct nvml_device *device, int count,
				    struct nvml_field_value *values)
{
	ENTER(device);
	for (int i = 0; i < count; i++) {
		struct nvml_field_value *value = &values[i];

		value->ret = (uint32_t)fake.field_code;
		if (value->field_id == NVML_FI_TOTAL_ENERGY) {
			value->value_type = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
			value->value.u64 = FAKE_ENERGY_MJ + device->index;
		} else if (value->field_id == NVML_FI_POWER_INSTANT && value->scope_id == 0) {
			value->value_type = NVML_VALUE_TYPE_UNSIGNED_INT;
			value->value.u32 = FAKE_POWER_MW + device->index;
		} else {
			value->ret = NVML_ERROR_NOT_SUPPORTED;
		}
	}
	return NVML_SUCCESS;
}

/* Entries of `size` bytes, highest pid first; nothing is written behind the last. */
static int list_procs(uint32_t gpu, uint32_t n, uint32_t first_pid, uint32_t *count, void *infos,
		      size_t size)
{
	char *at = infos;

	if (*count < n) {
		*count = n;
		return NVML_ERROR_INSUFFICIENT_SIZE;
	}
	*count = n;
	for (uint32_t i = 0; i < n; i++, at += size) {
		struct nvml_process_detail entry = {.pid = first_pid + n - 1 - i,
						    .used_memory = 1000ull + gpu};

		if (i == 0 && n > 1)
			entry.used_memory = NVML_NO_VALUE_U64;
		memcpy(at, &entry, size);
	}
	return NVML_SUCCESS;
}

static int nvmlDeviceGetComputeRunningProcesses_v3(struct nvml_device *device, uint32_t *count,
						   struct nvml_process_info *infos)
{
	ENTER(device);
	return list_procs(device->index, fake.procs[device->index], FAKE_FIRST_PID, count, infos,
			  fake.entry_bytes);
}

static int nvmlDeviceGetComputeRunningProcesses_v2(struct nvml_device *device, uint32_t *count,
						   struct nvml_process_info *infos)
{
	ENTER(device);
	return list_procs(device->index, fake.procs[device->index], FAKE_FIRST_PID, count, infos,
			  sizeof(*infos));
}

static int nvmlDeviceGetComputeRunningProcesses(struct nvml_device *device, uint32_t *count,
						struct nvml_process_info_v1 *infos)
{
	ENTER(device);
	return list_procs(device->index, fake.procs[device->index], FAKE_FIRST_PID, count, infos,
			  sizeof(*infos));
}

/* One graphics client that also computes and, on GPUs with any, one that does not. */
static int nvmlDeviceGetGraphicsRunningProcesses_v3(struct nvml_device *device, uint32_t *count,
						    struct nvml_process_info *infos)
{
	uint32_t n = fake.procs[device->index] > 0 ? 2 : 0;

	ENTER(device);
	return list_procs(device->index, n, FAKE_FIRST_PID - 1, count, infos, sizeof(*infos));
}

static int nvmlDeviceGetProcessUtilization(struct nvml_device *device,
					   struct nvml_process_utilization *samples,
					   uint32_t *count, uint64_t last_seen_us)
{
	uint32_t n = 0, room = *count;

	ENTER(device);
	for (uint32_t i = 0; i < fake.use_count[device->index]; i++) {
		const struct nvml_process_utilization *use = &fake.uses[device->index][i];

		if (use->timestamp_us > last_seen_us && n++ < room && samples)
			samples[n - 1] = *use;
	}
	*count = n;
	return n == 0		      ? NVML_ERROR_NOT_FOUND
	       : samples && n <= room ? NVML_SUCCESS
				      : NVML_ERROR_INSUFFICIENT_SIZE;
}

static int nvmlDeviceSetGpuLockedClocks(struct nvml_device *device, uint32_t min, uint32_t max)
{
	ENTER(device);
	fake.locked_min[device->index] = min;
	return NVML_SUCCESS;
}

static int nvmlDeviceResetGpuLockedClocks(struct nvml_device *device)
{
	ENTER(device);
	fake.locked_min[device->index] = 0;
	return NVML_SUCCESS;
}

static int nvmlDeviceSetMemoryLockedClocks(struct nvml_device *device, uint32_t min, uint32_t max)
{
	ENTER(device);
	fake.mem_locked_max[device->index] = max;
	return NVML_SUCCESS;
}

static int nvmlDeviceResetMemoryLockedClocks(struct nvml_device *device)
{
	ENTER(device);
	fake.mem_locked_max[device->index] = 0;
	return NVML_SUCCESS;
}

static int nvmlDeviceGetTotalEccErrors(struct nvml_device *device, uint32_t error, uint32_t counter,
				       uint64_t *count)
{
	ENTER(device);
	if (counter != NVML_ECC_COUNTER_VOLATILE)
		return NVML_ERROR_INVALID_ARGUMENT;
	*count = error == NVML_ECC_ERROR_CORRECTED ? FAKE_CORRECTED : FAKE_UNCORRECTED;
	return NVML_SUCCESS;
}

static int nvmlDeviceSetPowerManagementLimit(struct nvml_device *device, uint32_t limit_mw)
{
	ENTER(device);
	fake.limit[device->index] = limit_mw;
	return NVML_SUCCESS;
}

/* Both arms of the choice have one type only if the prototype is right. */
#define FUNCTION(name)                                             \
	{                                                          \
#name, (void (*)(void))(1 ? name : (name##_fn *)0) \
	}

static const struct {
	const char *name;
	void (*function)(void);
} functions[] = {
	FUNCTION(nvmlInit_v2),
	FUNCTION(nvmlShutdown),
	FUNCTION(nvmlDeviceGetCount_v2),
	FUNCTION(nvmlDeviceGetHandleByIndex_v2),
	FUNCTION(nvmlSystemGetDriverVersion),
	FUNCTION(nvmlSystemGetNVMLVersion),
	FUNCTION(nvmlSystemGetCudaDriverVersion_v2),
	FUNCTION(nvmlDeviceGetName),
	FUNCTION(nvmlDeviceGetUUID),
	FUNCTION(nvmlDeviceGetPciInfo_v3),
	FUNCTION(nvmlDeviceGetPciInfo_v2),
	FUNCTION(nvmlDeviceGetSerial),
	FUNCTION(nvmlDeviceGetVbiosVersion),
	FUNCTION(nvmlDeviceGetMinorNumber),
	FUNCTION(nvmlDeviceGetCudaComputeCapability),
	FUNCTION(nvmlDeviceGetCpuAffinity),
	FUNCTION(nvmlDeviceGetMemoryAffinity),
	FUNCTION(nvmlDeviceGetPowerManagementLimitConstraints),
	FUNCTION(nvmlDeviceGetPowerManagementDefaultLimit),
	FUNCTION(nvmlDeviceGetSupportedMemoryClocks),
	FUNCTION(nvmlDeviceGetSupportedGraphicsClocks),
	FUNCTION(nvmlDeviceGetMaxClockInfo),
	FUNCTION(nvmlDeviceGetTemperatureThreshold),
	FUNCTION(nvmlDeviceGetMaxPcieLinkGeneration),
	FUNCTION(nvmlDeviceGetMaxPcieLinkWidth),
	FUNCTION(nvmlDeviceGetMigMode),
	FUNCTION(nvmlDeviceGetTopologyCommonAncestor),
	FUNCTION(nvmlDeviceGetNvLinkState),
	FUNCTION(nvmlDeviceGetNvLinkRemoteDeviceType),
	FUNCTION(nvmlDeviceGetNvLinkRemotePciInfo_v2),
	FUNCTION(nvmlDeviceGetClockInfo),
	FUNCTION(nvmlDeviceGetPowerUsage),
	FUNCTION(nvmlDeviceGetPowerManagementLimit),
	FUNCTION(nvmlDeviceGetEnforcedPowerLimit),
	FUNCTION(nvmlDeviceGetTemperature),
	FUNCTION(nvmlDeviceGetUtilizationRates),
	FUNCTION(nvmlDeviceGetMemoryInfo),
	FUNCTION(nvmlDeviceGetMemoryInfo_v2),
	FUNCTION(nvmlDeviceGetTotalEnergyConsumption),
	FUNCTION(nvmlDeviceGetCurrentClocksEventReasons),
	FUNCTION(nvmlDeviceGetFanSpeed),
	FUNCTION(nvmlDeviceGetPerformanceState),
	FUNCTION(nvmlDeviceGetCurrPcieLinkGeneration),
	FUNCTION(nvmlDeviceGetCurrPcieLinkWidth),
	FUNCTION(nvmlDeviceGetPowerSource),
	FUNCTION(nvmlDeviceGetPcieReplayCounter),
	FUNCTION(nvmlDeviceGetEncoderUtilization),
	FUNCTION(nvmlDeviceGetDecoderUtilization),
	FUNCTION(nvmlDeviceGetFieldValues),
	FUNCTION(nvmlDeviceGetComputeRunningProcesses_v3),
	FUNCTION(nvmlDeviceGetComputeRunningProcesses_v2),
	FUNCTION(nvmlDeviceGetComputeRunningProcesses),
	FUNCTION(nvmlDeviceGetGraphicsRunningProcesses_v3),
	FUNCTION(nvmlDeviceGetProcessUtilization),
	FUNCTION(nvmlDeviceSetGpuLockedClocks),
	FUNCTION(nvmlDeviceResetGpuLockedClocks),
	FUNCTION(nvmlDeviceSetPowerManagementLimit),
	FUNCTION(nvmlDeviceSetMemoryLockedClocks),
	FUNCTION(nvmlDeviceResetMemoryLockedClocks),
	FUNCTION(nvmlDeviceGetPersistenceMode),
	FUNCTION(nvmlDeviceGetTotalEccErrors),
};

enum {
	FUNCTIONS = sizeof(functions) / sizeof(functions[0]),
};

const char *fake_function(unsigned i)
{
	return i < FUNCTIONS ? functions[i].name : NULL;
}

static bool is_hidden(const char *name)
{
	for (int i = 0; i < MAX_HIDDEN; i++)
		if (fake.hidden[i] && strcmp(fake.hidden[i], name) == 0)
			return true;
	return false;
}

/* A sanitizer's own run time asks too, before it is ready for instrumented functions: what is not
 * for the fake goes on to the real loader. */
#if defined(__has_attribute)
#if __has_attribute(disable_sanitizer_instrumentation)
#define BARE __attribute__((disable_sanitizer_instrumentation))
#endif
#endif
#ifndef BARE
#define BARE
#endif

static void *find(const char *name)
{
	void *found = NULL;

	for (int i = 0; i < FUNCTIONS; i++)
		if (strcmp(functions[i].name, name) == 0 && !is_hidden(name))
			memcpy(&found, &functions[i].function, sizeof(found));
	return found;
}

void *__wrap_dlopen(const char *path, int flags);
void *__wrap_dlsym(void *library, const char *name);
char *__wrap_dlerror(void);
void *__real_dlopen(const char *path, int flags);
void *__real_dlsym(void *library, const char *name);
char *__real_dlerror(void);

BARE void *__wrap_dlopen(const char *path, int flags)
{
	if (!path || strcmp(path, "libnvidia-ml.so.1") != 0)
		return __real_dlopen(path, flags);
	return fake.missing ? NULL : &fake;
}

BARE void *__wrap_dlsym(void *library, const char *name)
{
	return library == &fake ? find(name) : __real_dlsym(library, name);
}

char *__wrap_dlerror(void)
{
	static char missing[] = "libnvidia-ml.so.1: cannot open shared object file";

	return fake.missing ? missing : __real_dlerror();
}

void fake_reset(void)
{
	pthread_mutex_lock(&lock);
	memset(&fake, 0, sizeof(fake));
	fake.entry_bytes = sizeof(struct nvml_process_info);
	for (uint32_t g = 0; g < FAKE_GPUS; g++) {
		devices[g].index = g;
		fake.limit[g] = FAKE_LIMIT_MW;
	}
	pthread_cond_broadcast(&woken);
	pthread_mutex_unlock(&lock);
}

void fake_library_missing(void)
{
	fake.missing = true;
}

void fake_hide(const char *name)
{
	for (int i = 0; i < MAX_HIDDEN; i++) {
		if (!fake.hidden[i]) {
			fake.hidden[i] = name;
			return;
		}
	}
}

void fake_answer(const char *name, int code)
{
	pthread_mutex_lock(&lock);
	fake.answer_name = name;
	fake.answer_code = code;
	pthread_mutex_unlock(&lock);
}

void fake_field_answer(int code)
{
	fake.field_code = code;
}

void fake_fail_nth(unsigned nth, int code)
{
	pthread_mutex_lock(&lock);
	fake.fail_nth = nth;
	fake.fail_code = code;
	pthread_mutex_unlock(&lock);
}

void fake_use(uint32_t gpu, uint32_t pid, uint32_t sm_pct, uint32_t memory_pct, uint64_t stamp_us)
{
	pthread_mutex_lock(&lock);
	fake.uses[gpu][fake.use_count[gpu]++] = (struct nvml_process_utilization){
		.pid = pid, .sm = sm_pct, .memory = memory_pct, .timestamp_us = stamp_us};
	pthread_mutex_unlock(&lock);
}

unsigned fake_calls(void)
{
	unsigned calls;

	pthread_mutex_lock(&lock);
	calls = fake.calls;
	pthread_mutex_unlock(&lock);
	return calls;
}

unsigned fake_calls_of(const char *name)
{
	unsigned calls;

	pthread_mutex_lock(&lock);
	if (!fake.counted || strcmp(fake.counted, name) != 0)
		fake.counted_calls = 0;
	fake.counted = name;
	calls = fake.counted_calls;
	pthread_mutex_unlock(&lock);
	return calls;
}

unsigned fake_calls_about(uint32_t gpu)
{
	unsigned calls;

	pthread_mutex_lock(&lock);
	calls = fake.gpu_calls[gpu];
	pthread_mutex_unlock(&lock);
	return calls;
}

void fake_take_away(bool gone)
{
	pthread_mutex_lock(&lock);
	fake.gone = gone;
	pthread_mutex_unlock(&lock);
}

void fake_lose(uint32_t gpu, bool lost)
{
	pthread_mutex_lock(&lock);
	fake.lost[gpu] = lost;
	pthread_mutex_unlock(&lock);
}

void fake_slow(const char *name, unsigned us)
{
	pthread_mutex_lock(&lock);
	fake.slow_name = name;
	fake.slow_us = us;
	pthread_mutex_unlock(&lock);
}

void fake_hang(const char *name, int gpu)
{
	pthread_mutex_lock(&lock);
	fake.hang_name = name;
	fake.hang_gpu = gpu;
	fake.hung = false;
	pthread_mutex_unlock(&lock);
}

bool fake_hangs(void)
{
	bool hangs;

	pthread_mutex_lock(&lock);
	hangs = fake.hang_name && fake.hung;
	pthread_mutex_unlock(&lock);
	return hangs;
}

void fake_wake(void)
{
	pthread_mutex_lock(&lock);
	fake.hang_name = NULL;
	pthread_cond_broadcast(&woken);
	pthread_mutex_unlock(&lock);
}

void fake_procs(uint32_t gpu, uint32_t count)
{
	fake.procs[gpu] = count;
}

void fake_more_used(uint32_t gpu, uint64_t bytes)
{
	fake.more_used[gpu] = bytes;
}

void fake_entry_bytes(uint32_t bytes)
{
	fake.entry_bytes = bytes;
}

void fake_memory_v2_answer(int code)
{
	fake.memory_v2_code = code;
}

void fake_links(const uint8_t links[FAKE_GPUS][FAKE_GPUS], uint32_t to_switch)
{
	memcpy(fake.links, links, sizeof(fake.links));
	fake.to_switch = to_switch;
}

void fake_call_it_a_twin(void)
{
	fake.twin = true;
}

uint32_t fake_mem_locked_max(uint32_t gpu)
{
	return fake.mem_locked_max[gpu];
}

uint32_t fake_locked_min(uint32_t gpu)
{
	return fake.locked_min[gpu];
}

uint32_t fake_limit(uint32_t gpu)
{
	return fake.limit[gpu];
}
