/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cuts a GPU into MIG instances, as its administrator would: with the driver's own calls. Each
 * profile's number is that of a GPU instance, with one compute instance over all of it. Says which
 * device is in which GPU instance: "UUID NUMBER" lines.
 *
 *   mig_cut LIBRARY GPU PROFILE...
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "abi/nvml.h"

static void *library;

typedef void any_fn(void);

static any_fn *find(const char *name)
{
	any_fn *found;

	*(void **)&found = dlsym(library, name);
	if (found)
		return found;
	fprintf(stderr, "mig_cut: %s\n", name);
	exit(1);
}

/* A function of the driver's, by its name. */
#define CALL(name) ((name##_fn *)find(#name))

static void must(const char *what, int code)
{
	if (code == NVML_SUCCESS)
		return;
	fprintf(stderr, "mig_cut: %s: %d\n", what, code);
	exit(1);
}

/* Numbers of compute profiles are those of the slices of the GPU instance. */
static void add_instance(struct nvml_device *gpu, uint32_t profile)
{
	nvmlDeviceCreateGpuInstance_fn *create = CALL(nvmlDeviceCreateGpuInstance);
	nvmlGpuInstanceCreateComputeInstance_fn *compute =
		CALL(nvmlGpuInstanceCreateComputeInstance);
	struct nvml_gpu_instance *part;
	struct nvml_compute_instance *made;

	must("GPU instance", create(gpu, profile, &part));
	must("compute instance", compute(part, profile == 9 ? 2 : 0, &made));
}

static void list(struct nvml_device *gpu, uint32_t count)
{
	nvmlDeviceGetMigDeviceHandleByIndex_fn *by_index =
		CALL(nvmlDeviceGetMigDeviceHandleByIndex);
	nvmlDeviceGetUUID_fn *uuid_of = CALL(nvmlDeviceGetUUID);
	nvmlDeviceGetGpuInstanceId_fn *number_of = CALL(nvmlDeviceGetGpuInstanceId);

	for (uint32_t i = 0; i < count; i++) {
		struct nvml_device *device;
		char uuid[NVML_BUFFER_UUID];
		uint32_t number;

		must("device", by_index(gpu, i, &device));
		must("UUID", uuid_of(device, uuid, sizeof(uuid)));
		must("number", number_of(device, &number));
		printf("%s %u\n", uuid, number);
	}
}

int main(int argc, char **argv)
{
	struct nvml_device *gpu;
	int status;

	library = argc > 3 ? dlopen(argv[1], RTLD_NOW) : NULL;
	if (!library)
		return 1;
	must("start", CALL(nvmlInit_v2)());
	must("GPU", CALL(nvmlDeviceGetHandleByIndex_v2)((uint32_t)atoi(argv[2]), &gpu));
	must("MIG mode", CALL(nvmlDeviceSetMigMode)(gpu, 1, &status));
	for (int i = 3; i < argc; i++)
		add_instance(gpu, (uint32_t)atoi(argv[i]));
	list(gpu, (uint32_t)(argc - 3));
	return 0;
}
