/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MIG as clients use it. What is expected was read on a cut H100 (instance ids 2, 3, 9 and 10 for a
 * 3g, a 2g and two 1g, their SMs and memory) or in NVIDIA's public list of profiles and placements.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/compiler.h"
#include "twin_fixture.h"
#include "twin_physics.h"

enum { /* ids of profiles */
	P_1G = 19,
	P_1G_DOUBLE_MEMORY = 15,
	P_2G = 14,
	P_3G = 9,
	P_4G = 5,
	P_7G = 0
};

static struct nvml_device *gpu0(bool mig)
{
	int activation = -1;

	assert_int_equal(NVML(nvmlInit_v2)(), NVML_SUCCESS);
	if (mig) {
		assert_int_equal(NVML(nvmlDeviceSetMigMode)(twin_gpu_handle(0), 1, &activation),
				 NVML_SUCCESS);
		assert_int_equal(activation, NVML_SUCCESS);
	}
	return twin_gpu_handle(0);
}

static struct nvml_gpu_instance *cut(struct nvml_device *gpu, uint32_t profile)
{
	struct nvml_gpu_instance *instance = NULL;

	assert_int_equal(NVML(nvmlDeviceCreateGpuInstance)(gpu, profile, &instance), NVML_SUCCESS);
	return instance;
}

static uint32_t id_of(struct nvml_gpu_instance *instance)
{
	struct nvml_gpu_instance_info info;

	assert_int_equal(NVML(nvmlGpuInstanceGetInfo)(instance, &info), NVML_SUCCESS);
	return info.id;
}

/* A compute instance over all of a new instance, as a device. */
static struct nvml_device *mig_device(struct nvml_device *gpu, uint32_t profile, uint32_t compute)
{
	struct nvml_gpu_instance *instance = cut(gpu, profile);
	struct nvml_compute_instance *part = NULL;
	struct nvml_device *device = NULL;

	assert_int_equal(NVML(nvmlGpuInstanceCreateComputeInstance)(instance, compute, &part),
			 NVML_SUCCESS);
	assert_int_equal(NVML(nvmlDeviceGetMigDeviceHandleByIndex)(gpu, 0, &device), NVML_SUCCESS);
	return device;
}

static void a_gpu_is_whole_at_first(void **state)
{
	struct nvml_gpu_instance *instance;
	struct nvml_device *gpu = gpu0(false), *device;
	uint32_t current = 9, pending = 9, count = 9;

	assert_int_equal(NVML(nvmlDeviceGetMigMode)(gpu, &current, &pending), NVML_SUCCESS);
	assert_int_equal(current + pending, 0);
	assert_int_equal(NVML(nvmlDeviceGetMaxMigDeviceCount)(gpu, &count), NVML_SUCCESS);
	assert_int_equal(count, 0);
	assert_int_equal(NVML(nvmlDeviceCreateGpuInstance)(gpu, P_1G, &instance),
			 NVML_ERROR_NOT_SUPPORTED);
	assert_int_equal(NVML(nvmlDeviceGetMigDeviceHandleByIndex)(gpu, 0, &device),
			 NVML_ERROR_NOT_FOUND);
}

static void boards_without_mig_say_so(void **state)
{
	struct nvml_gpu_instance_profile info;
	struct nvml_device *gpu = gpu0(false);
	int activation;
	uint32_t current, pending;

	assert_int_equal(NVML(nvmlDeviceGetMigMode)(gpu, &current, &pending),
			 NVML_ERROR_NOT_SUPPORTED);
	assert_int_equal(NVML(nvmlDeviceSetMigMode)(gpu, 1, &activation), NVML_ERROR_NOT_SUPPORTED);
	assert_int_equal(NVML(nvmlDeviceGetGpuInstanceProfileInfo)(gpu, 0, &info),
			 NVML_ERROR_NOT_SUPPORTED);
}

static void profiles_have_two_layouts_of_one_size(void **state)
{
	struct nvml_gpu_instance_profile_v2 v2 = {.version = NVML_GPU_INSTANCE_PROFILE_V2_WORD};
	struct nvml_gpu_instance_profile_v3 v3 = {.version = NVML_GPU_INSTANCE_PROFILE_V3_WORD};
	struct nvml_gpu_instance_profile_v2 none = {.version = 2};
	struct nvml_gpu_instance_profile v1;
	struct nvml_device *gpu = gpu0(false);

	assert_int_equal(NVML(nvmlDeviceGetGpuInstanceProfileInfo)(gpu, 2, &v1), NVML_SUCCESS);
	assert_int_equal(v1.id, P_3G);
	assert_int_equal(v1.multiprocessor_count, 60);
	assert_int_equal(NVML(nvmlDeviceGetGpuInstanceProfileInfoV)(gpu, 2, &v2), NVML_SUCCESS);
	assert_int_equal(v2.p2p_supported, 0);
	assert_int_equal(v2.slice_count, 3);
	assert_int_equal(v2.memory_mib, 40448);
	assert_string_equal(v2.name, "MIG 3g.40gb");
	assert_int_equal(NVML(nvmlDeviceGetGpuInstanceProfileInfoV)(gpu, 2, &v3), NVML_SUCCESS);
	assert_int_equal(v3.slice_count, 3);
	assert_int_equal(v3.memory_mib, 40448);
	assert_string_equal(v3.name, "MIG 3g.40gb");
	assert_int_equal(NVML(nvmlDeviceGetGpuInstanceProfileInfoV)(gpu, 2, &none),
			 NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
	assert_int_equal(NVML(nvmlDeviceGetGpuInstanceProfileInfo)(gpu, 5, &v1),
			 NVML_ERROR_NOT_SUPPORTED);
	assert_int_equal(NVML(nvmlDeviceGetGpuInstanceProfileInfo)(gpu, 99, &v1),
			 NVML_ERROR_INVALID_ARGUMENT);
}

typedef int numbered_fn(void *, uint32_t, void *);
typedef int part_fn(void *, uint32_t, uint32_t, void *);
typedef int output_fn(void *, void *);

static void no_byte_behind(const unsigned char *buffer, size_t size, const char *name)
{
	for (size_t at = size; at < 512; at++) {
		if (buffer[at] != 0xAA)
			fail_msg("%s writes byte %zu of %zu", name, at, size);
	}
}

/* Each output, in each version that there is, ends where its layout ends. */
static void outputs_end_where_their_layouts_end(void **state)
{
	static const struct {
		const char *name;
		size_t size;
		uint32_t version;
	} table[] =
		{
			{"nvmlDeviceGetGpuInstanceProfileInfo", 48, 0},
			{"nvmlDeviceGetGpuInstanceProfileInfoV", 152,
			 NVML_GPU_INSTANCE_PROFILE_V2_WORD},
			{"nvmlDeviceGetGpuInstanceProfileInfoV", 152,
			 NVML_GPU_INSTANCE_PROFILE_V3_WORD},
		},
	  parts[] =
		  {
			  {"nvmlGpuInstanceGetComputeInstanceProfileInfo", 36, 0},
			  {"nvmlGpuInstanceGetComputeInstanceProfileInfoV", 136,
			   NVML_COMPUTE_INSTANCE_PROFILE_V2_WORD},
			  {"nvmlGpuInstanceGetComputeInstanceProfileInfoV", 140,
			   NVML_COMPUTE_INSTANCE_PROFILE_V3_WORD},
		  },
	  of_devices[] =
		  {
			  {"nvmlDeviceGetAttributes", 32, 0},
			  {"nvmlDeviceGetAttributes_v2", 40, 0},
			  {"nvmlDeviceGetMemoryInfo", 24, 0},
			  {"nvmlDeviceGetMemoryInfo_v2", 40, NVML_MEMORY_V2_WORD},
			  {"nvmlDeviceGetGpuInstanceId", 4, 0},
			  {"nvmlDeviceGetIndex", 4, 0},
		  },
	  of_computes[] = {
		  {"nvmlComputeInstanceGetInfo", 24, 0},
		  {"nvmlComputeInstanceGetInfo_v2", 32, 0},
	  };
	struct nvml_device *gpu = gpu0(true), *device = mig_device(gpu, P_3G, 2);
	struct nvml_gpu_instance *instance = NULL;
	unsigned char buffer[512];
	uint32_t count;

	NVML(nvmlDeviceGetGpuInstances)(gpu, P_3G, &instance, &count);
	for (size_t i = 0; i < TAKT_ARRAY_LEN(table); i++) {
		memset(buffer, 0xAA, sizeof(buffer));
		memcpy(buffer, &table[i].version, sizeof(table[i].version));
		assert_int_equal(((numbered_fn *)twin_symbol(table[i].name))(gpu, 2, buffer), 0);
		no_byte_behind(buffer, table[i].size, table[i].name);
	}
	for (size_t i = 0; i < TAKT_ARRAY_LEN(parts); i++) {
		memset(buffer, 0xAA, sizeof(buffer));
		memcpy(buffer, &parts[i].version, sizeof(parts[i].version));
		assert_int_equal(((part_fn *)twin_symbol(parts[i].name))(instance, 2, 0, buffer),
				 0);
		no_byte_behind(buffer, parts[i].size, parts[i].name);
	}
	for (size_t i = 0; i < TAKT_ARRAY_LEN(of_devices); i++) {
		memset(buffer, 0xAA, sizeof(buffer));
		memcpy(buffer, &of_devices[i].version, sizeof(of_devices[i].version));
		assert_int_equal(((output_fn *)twin_symbol(of_devices[i].name))(device, buffer), 0);
		no_byte_behind(buffer, of_devices[i].size, of_devices[i].name);
	}
	for (size_t i = 0; i < TAKT_ARRAY_LEN(of_computes); i++) {
		memset(buffer, 0xAA, sizeof(buffer));
		assert_int_equal(((output_fn *)twin_symbol(of_computes[i].name))(device, buffer),
				 0);
		no_byte_behind(buffer, of_computes[i].size, of_computes[i].name);
	}
}

static void instances_start_where_real_boards_let_them(void **state)
{
	static const struct {
		uint32_t profile, size, count, starts[7];
	} table[] = {
		{P_1G, 1, 7, {0, 1, 2, 3, 4, 5, 6}},
		{P_1G_DOUBLE_MEMORY, 2, 4, {0, 2, 4, 6}},
		{P_2G, 2, 3, {0, 2, 4}},
		{P_3G, 4, 2, {0, 4}},
		{P_4G, 4, 1, {0}},
		{P_7G, 8, 1, {0}},
	};
	struct nvml_gpu_instance_placement places[8];
	struct nvml_device *gpu = gpu0(true);

	for (size_t i = 0; i < TAKT_ARRAY_LEN(table); i++) {
		uint32_t count = 0;
		assert_int_equal(NVML(nvmlDeviceGetGpuInstancePossiblePlacements_v2)(
					 gpu, table[i].profile, NULL, &count),
				 NVML_SUCCESS);
		assert_int_equal(count, table[i].count);
		memset(places, 0xAA, sizeof(places));
		assert_int_equal(NVML(nvmlDeviceGetGpuInstancePossiblePlacements_v2)(
					 gpu, table[i].profile, places, &count),
				 NVML_SUCCESS);
		for (uint32_t k = 0; k < count; k++) {
			assert_int_equal(places[k].start, table[i].starts[k]);
			assert_int_equal(places[k].size, table[i].size);
		}
		assert_int_equal(places[count].start, 0xAAAAAAAA);
	}
}

static void instances_get_the_ids_of_real_boards(void **state)
{
	static const uint32_t small[7] = {13, 11, 12, 7, 8, 9, 10};
	struct nvml_gpu_instance *instances[7], *one_more;
	struct nvml_device *gpu = gpu0(true);
	uint32_t left;

	assert_int_equal(id_of(cut(gpu, P_3G)), 2);
	assert_int_equal(id_of(cut(gpu, P_2G)), 3);
	assert_int_equal(id_of(cut(gpu, P_1G)), 9);
	assert_int_equal(id_of(cut(gpu, P_1G)), 10);
	assert_int_equal(NVML(nvmlDeviceCreateGpuInstance)(gpu, P_1G, &one_more),
			 NVML_ERROR_INSUFFICIENT_RESOURCES);
	gpu = twin_gpu_handle(1);
	assert_int_equal(NVML(nvmlDeviceSetMigMode)(gpu, 1, &(int){0}), NVML_SUCCESS);
	for (unsigned i = 0; i < 7; i++) {
		assert_int_equal(NVML(nvmlDeviceGetGpuInstanceRemainingCapacity)(gpu, P_1G, &left),
				 NVML_SUCCESS);
		assert_int_equal(left, 7 - i);
		instances[i] = cut(gpu, P_1G);
		assert_int_equal(id_of(instances[i]), small[i]);
	}
	assert_int_equal(NVML(nvmlDeviceCreateGpuInstance)(gpu, P_1G, &one_more),
			 NVML_ERROR_INSUFFICIENT_RESOURCES);
	assert_int_equal(NVML(nvmlGpuInstanceDestroy)(instances[1]), NVML_SUCCESS);
	assert_int_equal(NVML(nvmlGpuInstanceDestroy)(instances[1]), NVML_ERROR_NOT_FOUND);
	assert_int_equal(id_of(cut(gpu, P_1G)), 11);
}

static void a_place_can_be_asked_for(void **state)
{
	struct nvml_gpu_instance_placement at0 = {.start = 0, .size = 4}, at2 = {2, 4};
	struct nvml_gpu_instance *instance, *found;
	struct nvml_device *gpu = gpu0(true);

	assert_int_equal(NVML(nvmlDeviceCreateGpuInstanceWithPlacement)(gpu, P_3G, &at2, &instance),
			 NVML_ERROR_INVALID_ARGUMENT);
	assert_int_equal(NVML(nvmlDeviceCreateGpuInstanceWithPlacement)(gpu, P_3G, &at0, &instance),
			 NVML_SUCCESS);
	assert_int_equal(id_of(instance), 1);
	assert_int_equal(NVML(nvmlDeviceCreateGpuInstanceWithPlacement)(gpu, P_4G, &at0, &instance),
			 NVML_ERROR_INSUFFICIENT_RESOURCES);
	assert_int_equal(NVML(nvmlDeviceGetGpuInstanceById)(gpu, 1, &found), NVML_SUCCESS);
	assert_ptr_equal(found, instance);
	assert_int_equal(NVML(nvmlDeviceGetGpuInstanceById)(gpu, 2, &found), NVML_ERROR_NOT_FOUND);
}

static void an_instance_is_divided_into_compute_instances(void **state)
{
	struct nvml_compute_instance_profile_v2 v2 = {
		.version = NVML_COMPUTE_INSTANCE_PROFILE_V2_WORD};
	struct nvml_compute_instance *parts[4], *list[4];
	struct nvml_compute_instance_info info;
	struct nvml_gpu_instance *instance;
	struct nvml_device *gpu = gpu0(true), *device;
	char name[96];
	uint32_t count = 9;

	instance = cut(gpu, P_3G);
	assert_int_equal(NVML(nvmlGpuInstanceGetComputeInstanceProfileInfoV)(instance, 0, 0, &v2),
			 NVML_SUCCESS);
	assert_string_equal(v2.name, "MIG 1c.3g.40gb");
	assert_int_equal(v2.instance_count, 3);
	assert_int_equal(v2.multiprocessor_count, 16);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(NVML(nvmlGpuInstanceCreateComputeInstance)(instance, 0, &parts[i]),
				 NVML_SUCCESS);
	assert_int_equal(NVML(nvmlGpuInstanceCreateComputeInstance)(instance, 0, &parts[3]),
			 NVML_ERROR_INSUFFICIENT_RESOURCES);
	assert_int_equal(NVML(nvmlGpuInstanceCreateComputeInstance)(instance, 3, &parts[3]),
			 NVML_ERROR_NOT_SUPPORTED);
	assert_int_equal(NVML(nvmlComputeInstanceGetInfo_v2)(parts[2], &info), NVML_SUCCESS);
	assert_int_equal(info.id, 2);
	assert_int_equal(info.placement.start, 2);
	assert_ptr_equal(info.gpu_instance, instance);
	assert_int_equal(NVML(nvmlGpuInstanceGetComputeInstances)(instance, 0, list, &count),
			 NVML_SUCCESS);
	assert_int_equal(count, 3);
	assert_int_equal(NVML(nvmlDeviceGetMigDeviceHandleByIndex)(gpu, 1, &device), NVML_SUCCESS);
	assert_int_equal(NVML(nvmlDeviceGetName)(device, name, sizeof(name)), NVML_SUCCESS);
	assert_string_equal(name, "NVIDIA H100 80GB HBM3 MIG 1c.3g.40gb");
	assert_int_equal(NVML(nvmlGpuInstanceDestroy)(instance), NVML_ERROR_IN_USE);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(NVML(nvmlComputeInstanceDestroy)(parts[i]), NVML_SUCCESS);
	assert_int_equal(NVML(nvmlGpuInstanceDestroy)(instance), NVML_SUCCESS);
	/* a handle of what is gone is none */
	assert_int_equal(NVML(nvmlDeviceGetName)(device, name, sizeof(name)),
			 NVML_ERROR_INVALID_ARGUMENT);
}

static void compute_instances_start_where_real_boards_let_them(void **state)
{
	static const struct {
		uint32_t profile, compute, count, starts[7];
	} table[] = {
		{P_7G, 0, 7, {0, 1, 2, 3, 4, 5, 6}},
		{P_7G, 1, 3, {0, 2, 4}},
		{P_7G, 2, 2, {0, 4}},
		{P_7G, 3, 1, {0}},
		{P_7G, 4, 1, {0}},
		{P_4G, 1, 2, {0, 2}},
		{P_3G, 1, 1, {0}},
	};
	struct nvml_gpu_instance_placement places[8];
	struct nvml_gpu_instance *instance = NULL;
	struct nvml_device *gpu = gpu0(true);
	uint32_t profile = UINT32_MAX, count;

	for (size_t i = 0; i < TAKT_ARRAY_LEN(table); i++) {
		if (instance && table[i].profile != profile) {
			assert_int_equal(NVML(nvmlGpuInstanceDestroy)(instance), NVML_SUCCESS);
			instance = NULL;
		}
		profile = table[i].profile;
		if (!instance)
			instance = cut(gpu, profile);
		assert_int_equal(NVML(nvmlGpuInstanceGetComputeInstancePossiblePlacements)(
					 instance, table[i].compute, places, &count),
				 NVML_SUCCESS);
		assert_int_equal(count, table[i].count);
		for (uint32_t k = 0; k < count; k++)
			assert_int_equal(places[k].start, table[i].starts[k]);
	}
}

static void mig_devices_are_devices(void **state)
{
	struct nvml_device_attributes attributes;
	struct nvml_memory memory;
	struct nvml_device *gpu = gpu0(true), *device, *found;
	char uuid[96];
	uint32_t is_mig, id;

	device = mig_device(gpu, P_2G, 1);
	assert_int_equal(NVML(nvmlDeviceIsMigDeviceHandle)(device, &is_mig), NVML_SUCCESS);
	assert_int_equal(is_mig, 1);
	assert_int_equal(NVML(nvmlDeviceIsMigDeviceHandle)(gpu, &is_mig), NVML_SUCCESS);
	assert_int_equal(is_mig, 0);
	assert_int_equal(NVML(nvmlDeviceGetUUID)(device, uuid, sizeof(uuid)), NVML_SUCCESS);
	assert_memory_equal(uuid, "MIG-", 4);
	assert_int_equal(NVML(nvmlDeviceGetHandleByUUID)(uuid, &found), NVML_SUCCESS);
	assert_ptr_equal(found, device);
	assert_int_equal(NVML(nvmlDeviceGetDeviceHandleFromMigDeviceHandle)(device, &found),
			 NVML_SUCCESS);
	assert_ptr_equal(found, gpu);
	assert_int_equal(NVML(nvmlDeviceGetGpuInstanceId)(device, &id), NVML_SUCCESS);
	assert_int_equal(id, 5);
	assert_int_equal(NVML(nvmlDeviceGetAttributes_v2)(device, &attributes), NVML_SUCCESS);
	assert_int_equal(attributes.multiprocessor_count, 32);
	assert_int_equal(attributes.memory_mib, 20096);
	assert_int_equal(NVML(nvmlDeviceGetMemoryInfo)(device, &memory), NVML_SUCCESS);
	assert_int_equal(memory.total, 20096ull << 20);
	assert_int_equal(NVML(nvmlDeviceGetGpuInstanceId)(gpu, &id), NVML_ERROR_INVALID_ARGUMENT);
}

static void what_only_gpus_have_is_refused_to_mig_devices(void **state)
{
	struct nvml_utilization utilization;
	struct nvml_device *gpu = gpu0(true), *device = mig_device(gpu, P_1G, 0);
	struct nvml_pci_info pci;
	uint32_t value;

	assert_int_equal(NVML(nvmlDeviceGetUtilizationRates)(gpu, &utilization),
			 NVML_ERROR_NOT_SUPPORTED);
	assert_int_equal(NVML(nvmlDeviceGetUtilizationRates)(device, &utilization),
			 NVML_ERROR_NOT_SUPPORTED);
	assert_int_equal(NVML(nvmlDeviceGetPowerUsage)(device, &value), NVML_ERROR_NOT_SUPPORTED);
	assert_int_equal(NVML(nvmlDeviceGetPowerUsage)(gpu, &value), NVML_SUCCESS);
	assert_int_equal(NVML(nvmlDeviceGetPciInfo_v3)(device, &pci), NVML_ERROR_INVALID_ARGUMENT);
	assert_int_equal(NVML(nvmlDeviceSetGpuLockedClocks)(device, 345, 990),
			 NVML_ERROR_INVALID_ARGUMENT);
}

/* Milliseconds of work that a load has done in a second or so, for each millisecond of time. */
static double pace(uint32_t gpu, pid_t pid)
{
	struct timespec nap = {.tv_nsec = 300000000};
	struct twin_gpu before, after;

	twin_read(twin_fixture_map(), gpu, &before);
	nanosleep(&nap, NULL);
	twin_read(twin_fixture_map(), gpu, &after);
	assert_int_equal(after.loads[0].pid, pid);
	return (double)(after.loads[0].work_ns - before.loads[0].work_ns) /
	       (double)(after.at_ns - before.at_ns);
}

static void a_process_runs_in_its_instance(void **state)
{
	struct nvml_device *gpu = gpu0(true), *device;
	struct nvml_process_info infos[2] = {0};
	struct nvml_compute_instance *compute;
	struct nvml_memory memory;
	char uuid[96], arguments[160];
	uint32_t count = 2;
	double speed;
	pid_t pid;

	assert_int_equal(twin_run("load --steps 1 --gpus 0"), 69);
	device = mig_device(gpu, P_3G, 2);
	NVML(nvmlDeviceGetUUID)(device, uuid, sizeof(uuid));
	snprintf(arguments, sizeof(arguments), "load --steps 1 --mem 40449 --gpus %s", uuid);
	assert_int_equal(twin_run(arguments), 1);
	snprintf(arguments, sizeof(arguments), "--mem 1000 --gpus %s", uuid);
	pid = twin_start_load(arguments, 0);
	speed = pace(0, pid);
	assert_true(speed > 0.40 && speed < 0.44);
	assert_int_equal(NVML(nvmlDeviceGetComputeRunningProcesses_v3)(gpu, &count, infos),
			 NVML_SUCCESS);
	assert_int_equal(count, 1);
	assert_int_equal(infos[0].gpu_instance_id, 2);
	assert_int_equal(infos[0].compute_instance_id, 0);
	count = 2;
	assert_int_equal(NVML(nvmlDeviceGetComputeRunningProcesses_v3)(device, &count, infos),
			 NVML_SUCCESS);
	assert_int_equal(count, 1);
	NVML(nvmlDeviceGetMemoryInfo)(device, &memory);
	assert_int_equal(memory.used, 1000ull << 20);
	compute = (struct nvml_compute_instance *)(void *)device;
	assert_int_equal(NVML(nvmlComputeInstanceDestroy)(compute), NVML_ERROR_IN_USE);
	assert_int_equal(NVML(nvmlDeviceSetMigMode)(gpu, 0, &(int){0}), NVML_ERROR_IN_USE);
	twin_end(pid);
}

static void a_busy_gpu_keeps_its_mode_for_now(void **state)
{
	pid_t pid = twin_start_load("--gpus 0", 0);
	struct nvml_device *gpu = gpu0(false);
	uint32_t current, pending;
	int activation = -1;

	assert_int_equal(NVML(nvmlDeviceSetMigMode)(gpu, 1, &activation), NVML_SUCCESS);
	assert_int_equal(activation, NVML_ERROR_IN_USE);
	assert_int_equal(NVML(nvmlDeviceGetMigMode)(gpu, &current, &pending), NVML_SUCCESS);
	assert_int_equal(current, 0);
	assert_int_equal(pending, 1);
	twin_end(pid);
}

/* An error that a program makes is its instance's; one of the whole GPU is nobody's. */
static void an_xid_names_the_instance_it_comes_from(void **state)
{
	struct nvml_device *gpu = gpu0(true);
	struct nvml_event_data data;
	struct nvml_event_set *set;
	char arguments[160], uuid[96];
	struct nvml_device *device = mig_device(gpu, P_3G, 2);
	pid_t pid;

	NVML(nvmlDeviceGetUUID)(device, uuid, sizeof(uuid));
	snprintf(arguments, sizeof(arguments), "--mem 1000 --gpus %s", uuid);
	pid = twin_start_load(arguments, 0);
	assert_int_equal(NVML(nvmlEventSetCreate)(&set), NVML_SUCCESS);
	assert_int_equal(NVML(nvmlDeviceRegisterEvents)(device, NVML_EVENT_XID_CRITICAL, set),
			 NVML_ERROR_NOT_SUPPORTED);
	assert_int_equal(NVML(nvmlDeviceRegisterEvents)(gpu, NVML_EVENT_XID_CRITICAL, set),
			 NVML_SUCCESS);
	assert_int_equal(twin_run("fault 0 xid=31"), 0);
	assert_int_equal(twin_run("fault 0 xid=48"), 0);
	assert_int_equal(NVML(nvmlEventSetWait_v2)(set, &data, 5000), NVML_SUCCESS);
	assert_ptr_equal(data.device, gpu);
	assert_int_equal(data.event_data, 31);
	assert_int_equal(data.gpu_instance_id, 2);
	assert_int_equal(data.compute_instance_id, 0);
	assert_int_equal(NVML(nvmlEventSetWait_v2)(set, &data, 5000), NVML_SUCCESS);
	assert_int_equal(data.event_data, 48);
	assert_int_equal(data.gpu_instance_id, NVML_NO_VALUE_U32);
	assert_int_equal(data.compute_instance_id, NVML_NO_VALUE_U32);
	NVML(nvmlEventSetFree)(set);
	twin_end(pid);
}

static uint32_t link_is_up(struct nvml_device *gpu)
{
	uint32_t up = 9;

	assert_int_equal(NVML(nvmlDeviceGetNvLinkState)(gpu, 3, &up), NVML_SUCCESS);
	return up;
}

static void lock_and_count(struct nvml_device *gpu)
{
	assert_int_equal(NVML(nvmlDeviceSetGpuLockedClocks)(gpu, 1005, 1005), NVML_SUCCESS);
	assert_int_equal(NVML(nvmlDeviceSetPowerManagementLimit)(gpu, 300000), NVML_SUCCESS);
	assert_int_equal(twin_run("fault 0 ecc-corrected=5"), 0);
}

/* An A100 is reset when its mode changes, and its links go down; its energy goes on. */
static void a_new_mode_resets_an_a100(void **state)
{
	struct nvml_device *gpu = gpu0(false);
	struct twin_gpu before, after;
	uint32_t status;

	lock_and_count(gpu);
	assert_int_equal(link_is_up(gpu), 1);
	NVML(nvmlDeviceGetP2PStatus)(gpu, twin_gpu_handle(1), NVML_P2P_CAP_NVLINK, &status);
	assert_int_equal(status, NVML_P2P_STATUS_OK);
	twin_read(twin_fixture_map(), 0, &before);
	gpu0(true);
	twin_read(twin_fixture_map(), 0, &after);
	assert_int_equal(after.lock_max_mhz, 0);
	assert_int_equal(after.limit_mw, 400000);
	assert_int_equal(after.ecc_cor_volatile, 0);
	assert_int_equal(after.ecc_cor_aggregate, 5);
	assert_true(after.counter_nj >= before.counter_nj);
	assert_int_equal(link_is_up(gpu), 0);
	NVML(nvmlDeviceGetP2PStatus)(twin_gpu_handle(1), gpu, NVML_P2P_CAP_NVLINK, &status);
	assert_int_equal(status, NVML_P2P_STATUS_NOT_SUPPORTED);
	assert_int_equal(link_is_up(twin_gpu_handle(1)), 1);
}

static void a_new_mode_leaves_an_h100_as_it_was(void **state)
{
	struct nvml_device *gpu = gpu0(false);
	struct twin_gpu after;

	lock_and_count(gpu);
	gpu0(true);
	twin_read(twin_fixture_map(), 0, &after);
	assert_int_equal(after.lock_max_mhz, 1005);
	assert_int_equal(after.limit_mw, 300000);
	assert_int_equal(after.ecc_cor_volatile, 5);
	assert_int_equal(link_is_up(gpu), 1);
}

#define ON_A100(test) cmocka_unit_test_setup_teardown(test, twin_fixture_a100, twin_fixture_end)
#define ON_H100(test) cmocka_unit_test_setup_teardown(test, twin_fixture_h100, twin_fixture_end)
#define ON_V100(test) cmocka_unit_test_setup_teardown(test, twin_fixture_v100, twin_fixture_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_H100(a_gpu_is_whole_at_first),
		ON_V100(boards_without_mig_say_so),
		ON_H100(profiles_have_two_layouts_of_one_size),
		ON_H100(outputs_end_where_their_layouts_end),
		ON_H100(instances_start_where_real_boards_let_them),
		ON_H100(instances_get_the_ids_of_real_boards),
		ON_H100(a_place_can_be_asked_for),
		ON_H100(an_instance_is_divided_into_compute_instances),
		ON_H100(compute_instances_start_where_real_boards_let_them),
		ON_H100(mig_devices_are_devices),
		ON_H100(what_only_gpus_have_is_refused_to_mig_devices),
		ON_H100(a_process_runs_in_its_instance),
		ON_H100(a_busy_gpu_keeps_its_mode_for_now),
		ON_H100(an_xid_names_the_instance_it_comes_from),
		ON_A100(a_new_mode_resets_an_a100),
		ON_H100(a_new_mode_leaves_an_h100_as_it_was),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
