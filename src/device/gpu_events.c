/* SPDX-License-Identifier: Apache-2.0 */
/* NVML's event sets, see the header. */
#include "device/gpu_events.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "device/device.h"
#include "device/nvml_api.h"

static const uint64_t wanted =
	NVML_EVENT_XID_CRITICAL | NVML_EVENT_SINGLE_BIT_ECC | NVML_EVENT_DOUBLE_BIT_ECC;

struct takt_gpu_events {
	struct takt_nvml_api api;
	struct nvml_event_set *set;
	struct nvml_device *devices[TAKT_DEVICE_MAX_GPUS]; /* by position; NULL = deaf */
	bool started;					   /* the library is */
};

static int refused(int code, const char *what, struct takt_err *err)
{
	int rc = takt_err_set(err, takt_nvml_rc(code), "%s: %s", what, takt_nvml_text(code));

	if (err)
		err->vendor = code;
	return rc;
}

static int find_device(const struct takt_nvml_api *api, const char *uuid, struct nvml_device **ret,
		       struct takt_err *err)
{
	uint32_t count = 0;
	int code = api->count(&count);

	if (code != NVML_SUCCESS)
		return refused(code, "count the GPUs", err);
	for (uint32_t i = 0; i < count; i++) {
		char found[NVML_BUFFER_UUID] = "";

		if (api->handle_by_index(i, ret) == NVML_SUCCESS &&
		    api->uuid(*ret, found, sizeof(found)) == NVML_SUCCESS &&
		    strcmp(found, uuid) == 0)
			return 0;
	}
	return takt_err_set(err, -TAKT_E_NOT_FOUND, "the driver shows no GPU '%.100s'", uuid);
}

static int listen_to(struct takt_gpu_events *events, const char *uuid, struct nvml_device **ret,
		     struct takt_err *err)
{
	struct nvml_device *device = NULL;
	uint64_t types = 0;
	int code, rc = find_device(&events->api, uuid, &device, err);

	if (rc < 0)
		return rc;
	code = events->api.event_types(device, &types);
	if (code == NVML_SUCCESS && !(types & wanted))
		code = NVML_ERROR_NOT_SUPPORTED;
	if (code == NVML_SUCCESS)
		code = events->api.register_events(device, types & wanted, events->set);
	if (code != NVML_SUCCESS)
		return refused(code, "listen to XIDs and ECC errors", err);
	*ret = device;
	return 0;
}

static int start(struct takt_gpu_events *events, struct takt_err *err)
{
	const struct takt_nvml_api *api = &events->api;
	int code;

	if (!api->event_set_new || !api->event_set_free || !api->event_types ||
	    !api->register_events || !api->event_wait || !api->uuid)
		return takt_err_set(err, -TAKT_E_UNSUPPORTED, "this driver tells no events");
	code = api->init();
	if (code != NVML_SUCCESS)
		return refused(code, "start the driver's library", err);
	events->started = true;
	code = api->event_set_new(&events->set);
	return code == NVML_SUCCESS ? 0 : refused(code, "listen to events", err);
}

int takt_gpu_events_open(const char *nvml_path, const char *const *uuids, size_t count,
			 struct takt_gpu_events **ret, uint64_t *ret_deaf, struct takt_err *err)
{
	uint64_t deaf = 0;
	struct takt_gpu_events *events = takt_zalloc(sizeof(*events));
	int rc = events ? takt_nvml_load(nvml_path, &events->api, err)
			: takt_err_set(err, -ENOMEM, "events of GPUs");

	if (rc == 0)
		rc = start(events, err);
	for (size_t i = 0; rc == 0 && i < count; i++) {
		rc = listen_to(events, uuids[i], &events->devices[i], err);
		if (rc < 0 && ret_deaf) {
			deaf |= UINT64_C(1) << i;
			rc = 0;
		}
	}
	if (rc < 0) {
		takt_gpu_events_close(events);
		return rc;
	}
	if (ret_deaf)
		*ret_deaf = deaf;
	*ret = events;
	return 0;
}

static uint32_t position_of(const struct takt_gpu_events *events, const struct nvml_device *device)
{
	uint32_t at = 0;

	while (at < TAKT_DEVICE_MAX_GPUS && events->devices[at] != device)
		at++;
	return at;
}

int takt_gpu_events_next(struct takt_gpu_events *events, struct takt_gpu_event *ret)
{
	struct nvml_event_data data = {0};
	int code = events->api.event_wait(events->set, &data, 0);

	if (code == NVML_ERROR_TIMEOUT || code == NVML_ERROR_GPU_IS_LOST)
		return 0;
	if (code != NVML_SUCCESS)
		return takt_nvml_rc(code);
	ret->gpu = position_of(events, data.device);
	ret->number = data.event_data;
	ret->kind = data.event_type & NVML_EVENT_XID_CRITICAL	  ? TAKT_EVENT_XID
		    : data.event_type & NVML_EVENT_DOUBLE_BIT_ECC ? TAKT_EVENT_ECC_UNCORRECTED
								  : TAKT_EVENT_ECC_CORRECTED;
	return 1;
}

void takt_gpu_events_close(struct takt_gpu_events *events)
{
	if (!events)
		return;
	if (events->set)
		(void)events->api.event_set_free(events->set);
	if (events->started)
		(void)events->api.shutdown();
	takt_free(events);
}

void takt_gpu_event_text(const struct takt_gpu_event *event, char *buf, size_t size)
{
	if (event->kind == TAKT_EVENT_XID)
		snprintf(buf, size, "XID %llu", (unsigned long long)event->number);
	else
		snprintf(buf, size, "%s ECC error",
			 event->kind == TAKT_EVENT_ECC_CORRECTED ? "a corrected"
								 : "an uncorrected");
}
