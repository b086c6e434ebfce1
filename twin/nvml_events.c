/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Event sets. Each GPU keeps its last few events in the machine file; a set remembers how far it
 * has got with each GPU. Who waits looks now and then: no threads, no descriptors, and a set
 * outlives a fork as any memory does.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "nvml_entry.h"

/* Atomic, because one thread may register while another waits. */
struct nvml_event_set {
	_Atomic uint64_t types[TWIN_MAX_GPUS]; /* registered */
	_Atomic uint64_t seen[TWIN_MAX_GPUS];  /* events of the GPU that are behind us */
};

enum {
	SUPPORTED_EVENTS = NVML_EVENT_SINGLE_BIT_ECC | NVML_EVENT_DOUBLE_BIT_ECC |
			   NVML_EVENT_XID_CRITICAL | NVML_EVENT_CLOCK |
			   NVML_EVENT_MIG_CONFIG_CHANGE,
	LOOK_EVERY_NS = 5000000
};

int nvmlDeviceGetSupportedEventTypes(struct nvml_device *device, uint64_t *types)
{
	struct twin_call call;
	int rc = twin_enter_out(device, types, &call);

	if (rc == NVML_SUCCESS)
		*types = SUPPORTED_EVENTS;
	return rc;
}

/* What happened before is not told. */
int nvmlDeviceRegisterEvents(struct nvml_device *device, uint64_t types, struct nvml_event_set *set)
{
	struct twin_call call;
	struct twin_gpu gpu;
	int rc = twin_enter_read(device, set, &call, &gpu);

	if (rc != NVML_SUCCESS)
		return rc;
	if (types & ~(uint64_t)SUPPORTED_EVENTS)
		return NVML_ERROR_NOT_SUPPORTED;
	if (!set->types[call.index])
		set->seen[call.index] = gpu.event_count;
	set->types[call.index] |= types;
	return NVML_SUCCESS;
}

int nvmlEventSetCreate(struct nvml_event_set **set)
{
	struct nvml_event_set *made;

	if (!twin_machine_map())
		return NVML_ERROR_UNINITIALIZED;
	if (!set)
		return NVML_ERROR_INVALID_ARGUMENT;
	made = takt_zalloc(sizeof(*made));
	if (!made)
		return NVML_ERROR_MEMORY;
	*set = made;
	return NVML_SUCCESS;
}

int nvmlEventSetFree(struct nvml_event_set *set)
{
	if (!twin_machine_map())
		return NVML_ERROR_UNINITIALIZED;
	if (!set)
		return NVML_ERROR_INVALID_ARGUMENT;
	takt_free(set);
	return NVML_SUCCESS;
}

/* The oldest event of a GPU that is registered and not seen; what is of no interest is passed over.
 */
static const struct twin_event *oldest_of(struct nvml_event_set *set, uint32_t index,
					  const struct twin_gpu *gpu)
{
	uint64_t at = set->seen[index];

	if (at > gpu->event_count) /* the driver was loaded anew */
		at = 0;
	if (gpu->event_count - at > TWIN_EVENTS)
		at = gpu->event_count - TWIN_EVENTS;
	while (at < gpu->event_count && !(gpu->events[at % TWIN_EVENTS].type & set->types[index]))
		at++;
	set->seen[index] = at;
	return at < gpu->event_count ? &gpu->events[at % TWIN_EVENTS] : NULL;
}

/* The oldest of all GPUs. */
static bool take(struct twin_map *map, struct nvml_event_set *set, struct nvml_event_data *ret)
{
	uint64_t first_ns = UINT64_MAX;
	uint32_t from = 0;

	for (uint32_t i = 0; i < twin_map_file(map)->machine.gpu_count; i++) {
		const struct twin_event *event;
		struct twin_gpu gpu;
		if (!set->types[i])
			continue;
		twin_read(map, i, &gpu);
		event = oldest_of(set, i, &gpu);
		if (!event || event->at_ns >= first_ns)
			continue;
		first_ns = event->at_ns;
		from = i;
		*ret = (struct nvml_event_data){
			.device = twin_handle(map, i),
			.event_type = event->type,
			.event_data = event->data,
			.gpu_instance_id = event->gpu_instance,
			.compute_instance_id = event->compute_instance,
		};
	}
	if (first_ns == UINT64_MAX)
		return false;
	set->seen[from]++;
	return true;
}

/* Is a GPU off the bus that the set was registered for? */
static bool any_lost(struct twin_map *map, const struct nvml_event_set *set)
{
	for (uint32_t i = 0; i < twin_map_file(map)->machine.gpu_count; i++) {
		if (set->types[i] && twin_ailment(map, i).faults & TWIN_FAULT_LOST)
			return true;
	}
	return false;
}

/* What happened before a GPU was lost is told first; after that there is no waiting for anybody. */
int nvmlEventSetWait_v2(struct nvml_event_set *set, struct nvml_event_data *data,
			uint32_t timeout_ms)
{
	struct twin_map *map = twin_machine_map();
	uint64_t until_ns = twin_now_ns() + timeout_ms * 1000000ull;
	struct timespec nap = {.tv_nsec = LOOK_EVERY_NS};

	if (!map)
		return NVML_ERROR_UNINITIALIZED;
	if (!set || !data)
		return NVML_ERROR_INVALID_ARGUMENT;
	for (;;) {
		uint64_t now_ns = twin_now_ns();
		bool lost = any_lost(map, set); /* before it is looked for what came with it */
		if (twin_driver_here(map) != NVML_SUCCESS)
			return NVML_ERROR_UNKNOWN;
		if (take(map, set, data))
			return NVML_SUCCESS;
		if (lost)
			return NVML_ERROR_GPU_IS_LOST;
		if (now_ns >= until_ns)
			return NVML_ERROR_TIMEOUT;
		if (until_ns - now_ns < LOOK_EVERY_NS)
			nap.tv_nsec = (long)(until_ns - now_ns);
		nanosleep(&nap, NULL);
	}
}

/* The first form has no instances. */
int nvmlEventSetWait(struct nvml_event_set *set, struct nvml_event_data_v1 *data,
		     uint32_t timeout_ms)
{
	struct nvml_event_data now;
	int rc = nvmlEventSetWait_v2(set, data ? &now : NULL, timeout_ms);

	if (rc != NVML_SUCCESS)
		return rc;
	*data = (struct nvml_event_data_v1){
		.device = now.device,
		.event_type = now.event_type,
		.event_data = now.event_data,
	};
	return NVML_SUCCESS;
}
