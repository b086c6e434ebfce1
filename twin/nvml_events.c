/* SPDX-License-Identifier: Apache-2.0 */
/* Event sets. The boards of this floor raise no events, so waiting always ends in a time-out. */
#include <errno.h>
#include <time.h>

#include "base/mem.h"
#include "nvml_entry.h"

struct nvml_event_set {
	uint64_t types; /* registered, of all GPUs */
};

enum {
	SUPPORTED_EVENTS = NVML_EVENT_SINGLE_BIT_ECC | NVML_EVENT_DOUBLE_BIT_ECC |
			   NVML_EVENT_XID_CRITICAL | NVML_EVENT_CLOCK | NVML_EVENT_MIG_CONFIG_CHANGE
};

int nvmlDeviceGetSupportedEventTypes(struct nvml_device *device, uint64_t *types)
{
	struct twin_call call;
	int rc = twin_enter_out(device, types, &call);

	if (rc == NVML_SUCCESS)
		*types = SUPPORTED_EVENTS;
	return rc;
}

int nvmlDeviceRegisterEvents(struct nvml_device *device, uint64_t types, struct nvml_event_set *set)
{
	struct twin_call call;
	int rc = twin_enter_out(device, set, &call);

	if (rc != NVML_SUCCESS)
		return rc;
	if (types & ~(uint64_t)SUPPORTED_EVENTS)
		return NVML_ERROR_NOT_SUPPORTED;
	set->types |= types;
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

int nvmlEventSetWait_v2(struct nvml_event_set *set, struct nvml_event_data *data,
			uint32_t timeout_ms)
{
	struct timespec ts = {.tv_sec = timeout_ms / 1000,
			      .tv_nsec = (long)(timeout_ms % 1000) * 1000000};

	if (!twin_machine_map())
		return NVML_ERROR_UNINITIALIZED;
	if (!set || !data)
		return NVML_ERROR_INVALID_ARGUMENT;
	while (nanosleep(&ts, &ts) != 0 && errno == EINTR)
		;
	return NVML_ERROR_TIMEOUT;
}

int nvmlEventSetWait(struct nvml_event_set *set, struct nvml_event_data *data, uint32_t timeout_ms)
{
	return nvmlEventSetWait_v2(set, data, timeout_ms);
}
