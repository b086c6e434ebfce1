/* SPDX-License-Identifier: Apache-2.0 */
/* The beginning and end of every call: validity of handles, faults, permission, list lengths. */
#include "nvml_entry.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/pace.h"
#include "twin_noise.h"

struct nvml_device *twin_handle(const struct twin_map *map, uint32_t index)
{
	return (struct nvml_device *)(void *)&twin_map_file(map)->machine.gpus[index];
}

static bool find_handle(const struct twin_machine *machine, const struct nvml_device *device,
			uint32_t *ret_index)
{
	uintptr_t first = (uintptr_t)&machine->gpus[0], at = (uintptr_t)device;

	if (at < first || (at - first) % sizeof(machine->gpus[0]) != 0)
		return false;
	*ret_index = (uint32_t)((at - first) / sizeof(machine->gpus[0]));
	return (at - first) / sizeof(machine->gpus[0]) < machine->gpu_count;
}

/* Instances have no memory of their own: a handle is the address of the place where the first copy
 * keeps one, and is never looked into. */
static bool find_instance(const struct twin_file *file, uintptr_t at, uint32_t *ret_index,
			  uint32_t *ret_start, uint32_t *ret_rest)
{
	const struct twin_gpu_instance *first;
	uintptr_t slot = (at - (uintptr_t)&file->slots[0]) / sizeof(file->slots[0]);

	if (at < (uintptr_t)&file->slots[0] || slot >= file->machine.gpu_count)
		return false;
	first = file->slots[slot].copy[0].instances;
	if (at < (uintptr_t)first || at >= (uintptr_t)(first + TWIN_MIG_SLICES))
		return false;
	*ret_index = (uint32_t)slot;
	*ret_start = (uint32_t)((at - (uintptr_t)first) / sizeof(*first));
	*ret_rest = (uint32_t)((at - (uintptr_t)first) % sizeof(*first));
	return true;
}

static bool find_compute(const struct twin_file *file, uintptr_t at, uint32_t *ret_index,
			 uint32_t *ret_start, uint32_t *ret_compute_start)
{
	const size_t from = offsetof(struct twin_gpu_instance, compute);
	const size_t each = sizeof(struct twin_compute_instance);
	uint32_t rest;

	if (!find_instance(file, at, ret_index, ret_start, &rest) || rest < from ||
	    (rest - from) % each != 0)
		return false;
	*ret_compute_start = (uint32_t)((rest - from) / each);
	return *ret_compute_start < TWIN_MIG_SLICES - 1;
}

struct nvml_gpu_instance *twin_instance_handle(const struct twin_call *call, uint32_t start)
{
	const struct twin_slot *slot = &twin_map_file(call->map)->slots[call->index];

	return (struct nvml_gpu_instance *)(uintptr_t)&slot->copy[0].instances[start];
}

static uintptr_t compute_place(const struct twin_call *call, uint32_t start, uint32_t compute_start)
{
	const struct twin_slot *slot = &twin_map_file(call->map)->slots[call->index];

	return (uintptr_t)&slot->copy[0].instances[start].compute[compute_start];
}

struct nvml_compute_instance *twin_compute_handle(const struct twin_call *call, uint32_t start,
						  uint32_t compute_start)
{
	return (struct nvml_compute_instance *)compute_place(call, start, compute_start);
}

struct nvml_device *twin_mig_handle(const struct twin_call *call, uint32_t start,
				    uint32_t compute_start)
{
	return (struct nvml_device *)compute_place(call, start, compute_start);
}

static void nap(uint64_t ns)
{
	struct timespec ts = {.tv_sec = (time_t)(ns / 1000000000),
			      .tv_nsec = (long)(ns % 1000000000)};

	while (nanosleep(&ts, &ts) != 0 && errno == EINTR)
		;
}

/* A hanging GPU answers when the fault is taken away or its time is over. */
static int suffer(const struct twin_call *call)
{
	static const struct takt_pace looks = {2000000, 50000000};
	struct twin_ailment ailment = twin_ailment(call->map, call->index);
	uint32_t looked = 0;

	while (twin_ailment_hangs(call->map, &ailment)) {
		nap(takt_pace_ns(&looks, looked++));
		ailment = twin_ailment(call->map, call->index);
	}
	if (ailment.faults & TWIN_FAULT_SLOW)
		nap(ailment.slow_ms * 1000000ull);
	return ailment.faults & TWIN_FAULT_LOST ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
}

/* The machine alone, and whether there is an output. */
static int begin(const void *out, struct twin_call *ret)
{
	struct twin_map *map = twin_machine_map();

	if (!map)
		return NVML_ERROR_UNINITIALIZED;
	ret->map = map;
	ret->machine = &twin_map_file(map)->machine;
	ret->is_mig = false;
	return out ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

/* Once it is known which GPU is meant. */
static int go_on(struct twin_call *ret)
{
	ret->board = &ret->machine->board;
	ret->desc = &ret->machine->gpus[ret->index];
	if (twin_driver_here(ret->map) != NVML_SUCCESS)
		return NVML_ERROR_UNKNOWN;
	return suffer(ret);
}

int twin_enter_out(const struct nvml_device *device, const void *out, struct twin_call *ret)
{
	int rc = begin(out, ret);

	if (rc != NVML_SUCCESS)
		return rc;
	return find_handle(ret->machine, device, &ret->index) ? go_on(ret)
							      : NVML_ERROR_INVALID_ARGUMENT;
}

/* The MIG device whose compute instance is there, if there is one. */
static bool find_mig(struct twin_call *call, const struct twin_gpu *gpu, uint32_t start,
		     uint32_t compute_start)
{
	uint32_t at = 0;

	while (twin_mig_next(gpu, call->board, &at, &call->mig)) {
		if (call->mig.start == start && call->mig.compute_start == compute_start)
			return true;
	}
	return false;
}

int twin_enter_any(const struct nvml_device *device, const void *out, struct twin_call *ret,
		   struct twin_gpu *ret_gpu)
{
	uint32_t start, compute_start;
	int rc = begin(out, ret);

	if (rc != NVML_SUCCESS)
		return rc;
	ret->is_mig = find_compute(twin_map_file(ret->map), (uintptr_t)device, &ret->index, &start,
				   &compute_start);
	if (!ret->is_mig && !find_handle(ret->machine, device, &ret->index))
		return NVML_ERROR_INVALID_ARGUMENT;
	rc = go_on(ret);
	if (rc != NVML_SUCCESS)
		return rc;
	twin_read(ret->map, ret->index, ret_gpu);
	if (ret->is_mig && !find_mig(ret, ret_gpu, start, compute_start))
		return NVML_ERROR_INVALID_ARGUMENT;
	twin_noise_add(ret_gpu, ret->board);
	return NVML_SUCCESS;
}

int twin_enter_instance(const struct nvml_gpu_instance *instance, const void *out,
			struct twin_call *ret, struct twin_gpu *ret_gpu, uint32_t *ret_start)
{
	uint32_t rest;
	int rc = begin(out, ret);

	if (rc != NVML_SUCCESS)
		return rc;
	if (!find_instance(twin_map_file(ret->map), (uintptr_t)instance, &ret->index, ret_start,
			   &rest) ||
	    rest != 0)
		return NVML_ERROR_INVALID_ARGUMENT;
	rc = go_on(ret);
	if (rc != NVML_SUCCESS)
		return rc;
	twin_read(ret->map, ret->index, ret_gpu);
	return ret_gpu->instances[*ret_start].used ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

int twin_enter_compute(const struct nvml_compute_instance *compute, const void *out,
		       struct twin_call *ret, struct twin_gpu *ret_gpu, uint32_t *ret_start,
		       uint32_t *ret_compute_start)
{
	const struct twin_gpu_instance *instance;
	int rc = begin(out, ret);

	if (rc != NVML_SUCCESS)
		return rc;
	if (!find_compute(twin_map_file(ret->map), (uintptr_t)compute, &ret->index, ret_start,
			  ret_compute_start))
		return NVML_ERROR_INVALID_ARGUMENT;
	rc = go_on(ret);
	if (rc != NVML_SUCCESS)
		return rc;
	twin_read(ret->map, ret->index, ret_gpu);
	instance = &ret_gpu->instances[*ret_start];
	return instance->used && instance->compute[*ret_compute_start].slices
		       ? NVML_SUCCESS
		       : NVML_ERROR_NOT_FOUND;
}

int twin_enter(const struct nvml_device *device, struct twin_call *ret)
{
	return twin_enter_out(device, ret, ret);
}

int twin_enter_read(const struct nvml_device *device, const void *out, struct twin_call *ret,
		    struct twin_gpu *ret_gpu)
{
	int rc = twin_enter_any(device, out, ret, ret_gpu);

	return rc == NVML_SUCCESS && ret->is_mig ? NVML_ERROR_NOT_SUPPORTED : rc;
}

int twin_enter_uncut(const struct nvml_device *device, const void *out, struct twin_call *ret,
		     struct twin_gpu *ret_gpu)
{
	int rc = twin_enter_read(device, out, ret, ret_gpu);

	return rc == NVML_SUCCESS && ret_gpu->mig_mode ? NVML_ERROR_NOT_SUPPORTED : rc;
}

/* A setter's change, wrapped so that it is counted even when it refuses. */
struct setting {
	twin_change_fn *change;
	void *arg;
	bool forbidden;
	uint32_t open_bit; /* of a restricted API: allowed when it is open */
	int code;
};

static int apply_setting(struct twin_gpu *gpu, const struct twin_board *board, void *arg)
{
	struct setting *setting = arg;

	gpu->setter_calls++;
	setting->code = setting->forbidden && !(gpu->open_apis & setting->open_bit)
				? NVML_ERROR_NO_PERMISSION
				: setting->change(gpu, board, setting->arg);
	if (setting->code != NVML_SUCCESS)
		gpu->setter_refusals++;
	return 0;
}

static uint32_t permit_of(const struct twin_machine *machine, const char *function)
{
	for (uint32_t i = 0; i < machine->permission_count; i++) {
		if (strcmp(machine->permissions[i].function, function) == 0)
			return machine->permissions[i].permit;
	}
	return machine->permit;
}

/* As the machine's rules say. This simulates permission, it protects nothing. */
static bool is_permitted(const struct twin_call *call, uint32_t permit)
{
	uid_t user = geteuid();

	switch (permit) {
	case TWIN_PERMIT_ANYONE:
		return true;
	case TWIN_PERMIT_NOBODY:
		return false;
	case TWIN_PERMIT_ROOT:
		return user == 0;
	default:
		return user == 0 || user == twin_map_file(call->map)->owner_uid;
	}
}

static bool is_refused_by_fault(const struct twin_call *call, bool restores)
{
	uint32_t faults = twin_ailment(call->map, call->index).faults;

	return faults & TWIN_FAULT_PERMISSION || (restores && faults & TWIN_FAULT_RESTORE_REFUSED);
}

static int set(const char *function, const struct nvml_device *device, struct setting setting,
	       bool restores)
{
	struct twin_call call;
	uint32_t permit;
	int rc = twin_enter(device, &call);

	if (rc != NVML_SUCCESS)
		return rc;
	permit = permit_of(call.machine, function);
	/* an API that was opened is so to everyone, but a rule that lets nobody holds */
	if (permit == TWIN_PERMIT_NOBODY)
		setting.open_bit = 0;
	setting.forbidden = is_refused_by_fault(&call, restores) || !is_permitted(&call, permit);
	rc = twin_change(call.map, call.index, apply_setting, &setting);
	if (rc == -EACCES)
		return NVML_ERROR_NO_PERMISSION;
	if (rc == -ETIMEDOUT)
		return NVML_ERROR_TIMEOUT;
	return rc < 0 ? NVML_ERROR_UNKNOWN : setting.code;
}

int twin_set_as(const char *function, const struct nvml_device *device, twin_change_fn *change,
		void *arg, bool restores)
{
	return set(function, device, (struct setting){.change = change, .arg = arg}, restores);
}

int twin_set_restricted_as(const char *function, const struct nvml_device *device, uint32_t api,
			   twin_change_fn *change, void *arg, bool restores)
{
	struct setting setting = {.change = change, .arg = arg, .open_bit = 1u << api};

	return set(function, device, setting, restores);
}

int twin_refuse(const struct nvml_device *device, int code)
{
	struct twin_call call;
	struct twin_gpu gpu;
	int rc = twin_enter_any(device, &gpu, &call, &gpu);

	return rc == NVML_SUCCESS ? code : rc;
}

bool twin_has(const struct twin_call *call, enum twin_feature feature)
{
	return call->board->features & feature;
}

uint64_t twin_stamp_us(const struct twin_map *map, uint64_t at_ns)
{
	uint64_t now_ns = twin_now_ns(), wall_us;
	struct timespec wall;

	clock_gettime(CLOCK_REALTIME, &wall);
	wall_us = (uint64_t)wall.tv_sec * 1000000 + (uint64_t)wall.tv_nsec / 1000;
	at_ns = twin_clock_boot(&twin_map_file(map)->clock, at_ns, now_ns);
	return now_ns > at_ns ? wall_us - (now_ns - at_ns) / 1000 : wall_us;
}

void twin_put_pci(struct nvml_pci_info *ret, const struct twin_pci *pci)
{
	*ret = (struct nvml_pci_info){.domain = pci->domain, .bus = pci->bus, .device = pci->slot};
	snprintf(ret->bus_id_legacy, sizeof(ret->bus_id_legacy), "%04X:%02X:%02X.0",
		 pci->domain & 0xffff, pci->bus & 0xff, pci->slot & 0x1f);
	snprintf(ret->bus_id, sizeof(ret->bus_id), "%08X:%02X:%02X.0", pci->domain, pci->bus,
		 pci->slot);
}

void twin_put_pci_v2(struct nvml_pci_info_v2 *ret, const struct nvml_pci_info *pci)
{
	*ret = (struct nvml_pci_info_v2){
		.domain = pci->domain,
		.bus = pci->bus,
		.device = pci->device,
		.pci_device_id = pci->pci_device_id,
		.pci_subsystem_id = pci->pci_subsystem_id,
	};
	memcpy(ret->bus_id, pci->bus_id_legacy, sizeof(ret->bus_id));
}

int twin_put_text(char *out, uint32_t length, const char *text)
{
	size_t size = strlen(text) + 1;

	if (!out)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (size > length)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	memcpy(out, text, size);
	return NVML_SUCCESS;
}

bool twin_room_for(uint32_t *count, uint32_t available, const void *entries, int *ret_code)
{
	uint32_t room = *count;

	*count = available;
	*ret_code = NVML_SUCCESS;
	if (available == 0)
		return false;
	if (room >= available && !entries)
		*ret_code = NVML_ERROR_INVALID_ARGUMENT;
	else if (room < available)
		*ret_code = NVML_ERROR_INSUFFICIENT_SIZE;
	return *ret_code == NVML_SUCCESS;
}
