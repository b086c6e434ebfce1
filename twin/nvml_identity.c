/* SPDX-License-Identifier: Apache-2.0 */
/* Which GPUs there are: handles, names, numbers, place on the PCI bus. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nvml_entry.h"

/* A getter of a constant of the board or the machine. */
#define CONSTANT(function, type, expression)                 \
	int function(struct nvml_device *device, type *out)  \
	{                                                    \
		struct twin_call call;                       \
		int rc = twin_enter_out(device, out, &call); \
		if (rc == NVML_SUCCESS)                      \
			*out = (expression);                 \
		return rc;                                   \
	}

#define TEXT(function, expression)                                                         \
	int function(struct nvml_device *device, char *out, uint32_t length)               \
	{                                                                                  \
		struct twin_call call;                                                     \
		int rc = twin_enter_out(device, out, &call);                               \
		return rc == NVML_SUCCESS ? twin_put_text(out, length, (expression)) : rc; \
	}

CONSTANT(nvmlDeviceGetMinorNumber, uint32_t, call.index)
CONSTANT(nvmlDeviceGetModuleId, uint32_t, call.desc->module)
CONSTANT(nvmlDeviceGetBoardId, uint32_t,
	 call.desc->pci.domain << 16 | call.desc->pci.bus << 8 | call.desc->pci.slot)
CONSTANT(nvmlDeviceGetMultiGpuBoard, uint32_t, 0)
CONSTANT(nvmlDeviceGetBrand, uint32_t, call.board->brand)
CONSTANT(nvmlDeviceGetArchitecture, uint32_t, call.board->arch)
CONSTANT(nvmlDeviceGetNumGpuCores, uint32_t, call.board->cores)
CONSTANT(nvmlDeviceGetMemoryBusWidth, uint32_t, call.board->bus_width)
CONSTANT(nvmlDeviceGetBusType, uint32_t, 2) /* PCI Express */
CONSTANT(nvmlDeviceGetMaxPcieLinkGeneration, uint32_t, call.board->pcie_gen)
CONSTANT(nvmlDeviceGetGpuMaxPcieLinkGeneration, uint32_t, call.board->pcie_gen)
CONSTANT(nvmlDeviceGetMaxPcieLinkWidth, uint32_t, call.board->pcie_width)
CONSTANT(nvmlDeviceGetPcieReplayCounter, uint32_t, 0)

TEXT(nvmlDeviceGetBoardPartNumber, call.board->part)
TEXT(nvmlDeviceGetVbiosVersion, call.board->vbios)
TEXT(nvmlDeviceGetInforomImageVersion, call.board->inforom)

int nvmlDeviceGetName(struct nvml_device *device, char *out, uint32_t length)
{
	char name[NVML_BUFFER_NAME], profile[32];
	struct twin_call call;
	struct twin_gpu gpu;
	int rc = twin_enter_any(device, out, &call, &gpu);

	if (rc != NVML_SUCCESS)
		return rc;
	if (!call.is_mig)
		return twin_put_text(out, length, call.board->name);
	twin_mig_name(call.board, call.mig.profile, call.mig.slices, profile, sizeof(profile));
	snprintf(name, sizeof(name), "%.56s MIG %s", call.board->name, profile);
	return twin_put_text(out, length, name);
}

int nvmlDeviceGetUUID(struct nvml_device *device, char *out, uint32_t length)
{
	char uuid[TWIN_MIG_UUID];
	struct twin_call call;
	struct twin_gpu gpu;
	int rc = twin_enter_any(device, out, &call, &gpu);

	if (rc != NVML_SUCCESS)
		return rc;
	if (!call.is_mig)
		return twin_put_text(out, length, call.desc->uuid);
	twin_mig_uuid(call.desc, call.mig.id, call.mig.compute_id, uuid);
	return twin_put_text(out, length, uuid);
}

/* Of a MIG device: its index on its GPU. */
int nvmlDeviceGetIndex(struct nvml_device *device, uint32_t *index)
{
	struct twin_mig_device other;
	struct twin_call call;
	struct twin_gpu gpu;
	uint32_t at = 0;
	int rc = twin_enter_any(device, index, &call, &gpu);

	if (rc != NVML_SUCCESS)
		return rc;
	*index = call.is_mig ? 0 : call.index;
	while (call.is_mig && twin_mig_next(&gpu, call.board, &at, &other) &&
	       (other.start != call.mig.start || other.compute_start != call.mig.compute_start))
		++*index;
	return NVML_SUCCESS;
}

int nvmlDeviceGetSerial(struct nvml_device *device, char *serial, uint32_t length)
{
	struct twin_call call;
	int rc = twin_enter_out(device, serial, &call);

	if (rc != NVML_SUCCESS)
		return rc;
	return twin_has(&call, TWIN_HAS_SERIAL) ? twin_put_text(serial, length, call.desc->serial)
						: NVML_ERROR_NOT_SUPPORTED;
}

int nvmlDeviceGetInforomVersion(struct nvml_device *device, uint32_t object, char *version,
				uint32_t length)
{
	struct twin_call call;
	int rc = twin_enter_out(device, version, &call);

	if (rc != NVML_SUCCESS)
		return rc;
	if (object > 3)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (object > 1) /* OEM, ECC; none for power */
		return NVML_ERROR_NOT_SUPPORTED;
	return twin_put_text(version, length, object == 0 ? call.board->oem : call.board->ecc);
}

int nvmlDeviceGetCudaComputeCapability(struct nvml_device *device, int *major, int *minor)
{
	struct twin_call call;
	int rc = twin_enter_out(device, major && minor ? major : NULL, &call);

	if (rc != NVML_SUCCESS)
		return rc;
	*major = (int)call.board->compute_major;
	*minor = (int)call.board->compute_minor;
	return NVML_SUCCESS;
}

int nvmlDeviceGetCount_v2(uint32_t *count)
{
	const struct twin_map *map = twin_machine_map();

	if (!map)
		return NVML_ERROR_UNINITIALIZED;
	if (!count)
		return NVML_ERROR_INVALID_ARGUMENT;
	*count = twin_map_file(map)->machine.gpu_count;
	return NVML_SUCCESS;
}

int nvmlDeviceGetCount(uint32_t *count)
{
	return nvmlDeviceGetCount_v2(count);
}

int nvmlDeviceGetHandleByIndex_v2(uint32_t index, struct nvml_device **device)
{
	const struct twin_map *map = twin_machine_map();

	if (!map)
		return NVML_ERROR_UNINITIALIZED;
	if (!device || index >= twin_map_file(map)->machine.gpu_count)
		return NVML_ERROR_INVALID_ARGUMENT;
	*device = twin_handle(map, index);
	return NVML_SUCCESS;
}

int nvmlDeviceGetHandleByIndex(uint32_t index, struct nvml_device **device)
{
	return nvmlDeviceGetHandleByIndex_v2(index, device);
}

/* Finds the GPU that `matches` says is `key`. */
static int find(const void *key, struct nvml_device **device,
		bool (*matches)(const struct twin_gpu_desc *, const void *))
{
	const struct twin_map *map = twin_machine_map();
	const struct twin_machine *machine;

	if (!map)
		return NVML_ERROR_UNINITIALIZED;
	if (!key || !device)
		return NVML_ERROR_INVALID_ARGUMENT;
	machine = &twin_map_file(map)->machine;
	for (uint32_t i = 0; i < machine->gpu_count; i++) {
		if (!matches(&machine->gpus[i], key))
			continue;
		*device = twin_handle(map, i);
		return NVML_SUCCESS;
	}
	return NVML_ERROR_NOT_FOUND;
}

static bool has_uuid(const struct twin_gpu_desc *desc, const void *uuid)
{
	return strcmp(desc->uuid, uuid) == 0;
}

static bool has_serial(const struct twin_gpu_desc *desc, const void *serial)
{
	return strcmp(desc->serial, serial) == 0;
}

static bool is_at(const struct twin_gpu_desc *desc, const void *pci)
{
	return memcmp(&desc->pci, pci, sizeof(desc->pci)) == 0;
}

static int find_mig(struct twin_call *call, const char *uuid, struct nvml_device **device)
{
	struct twin_mig_device mig;
	struct twin_gpu gpu;
	uint32_t at = 0;

	twin_read(call->map, call->index, &gpu);
	while (twin_mig_next(&gpu, &call->machine->board, &at, &mig)) {
		char own[TWIN_MIG_UUID];
		twin_mig_uuid(&call->machine->gpus[call->index], mig.id, mig.compute_id, own);
		if (strcmp(own, uuid) != 0)
			continue;
		*device = twin_mig_handle(call, mig.start, mig.compute_start);
		return NVML_SUCCESS;
	}
	return NVML_ERROR_NOT_FOUND;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, struct nvml_device **device)
{
	struct twin_call call = {.map = twin_machine_map()};
	int rc = find(uuid, device, has_uuid);

	if (rc != NVML_ERROR_NOT_FOUND || strncmp(uuid, "MIG-", 4) != 0)
		return rc;
	call.machine = &twin_map_file(call.map)->machine;
	for (; call.index < call.machine->gpu_count && rc == NVML_ERROR_NOT_FOUND; call.index++)
		rc = find_mig(&call, uuid, device);
	return rc;
}

enum {
	UUID_ASCII = 1
};

/* The binary form is not understood. */
int nvmlDeviceGetHandleByUUIDV(const struct nvml_uuid *uuid, struct nvml_device **device)
{
	char text[sizeof(uuid->text) + 1] = "";

	if (!twin_machine_map())
		return NVML_ERROR_UNINITIALIZED;
	if (!uuid || !device)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (uuid->version != NVML_UUID_WORD)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	if (uuid->type != UUID_ASCII)
		return NVML_ERROR_NOT_SUPPORTED;
	memcpy(text, uuid->text, sizeof(uuid->text));
	return nvmlDeviceGetHandleByUUID(text, device);
}

int nvmlDeviceGetHandleBySerial(const char *serial, struct nvml_device **device)
{
	return find(serial, device, has_serial);
}

/* Both forms are in use: "0000:07:00.0" and "00000000:07:00.0". */
static bool parse_bus_id(const char *text, struct twin_pci *ret)
{
	unsigned domain, bus, slot, function = 0;
	int used = 0;

	if (sscanf(text, "%8x:%2x:%2x%n.%1x%n", &domain, &bus, &slot, &used, &function, &used) < 3)
		return false;
	*ret = (struct twin_pci){domain, bus, slot};
	return text[used] == '\0' && function == 0;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, struct nvml_device **device)
{
	struct twin_pci pci;

	if (!twin_machine_map())
		return NVML_ERROR_UNINITIALIZED;
	if (!bus_id || !device)
		return NVML_ERROR_INVALID_ARGUMENT;
	return parse_bus_id(bus_id, &pci) ? find(&pci, device, is_at) : NVML_ERROR_NOT_FOUND;
}

int nvmlDeviceGetHandleByPciBusId(const char *bus_id, struct nvml_device **device)
{
	return nvmlDeviceGetHandleByPciBusId_v2(bus_id, device);
}

int nvmlDeviceGetPciInfo_v3(struct nvml_device *device, struct nvml_pci_info *pci)
{
	struct twin_call call;
	int rc = twin_enter_out(device, pci, &call);

	if (rc != NVML_SUCCESS)
		return rc;
	twin_put_pci(pci, &call.desc->pci);
	pci->pci_device_id = call.board->pci_device;
	pci->pci_subsystem_id = call.board->pci_subsystem;
	return NVML_SUCCESS;
}

/* The first two forms end after four reserved words and have the short bus id only. */
int nvmlDeviceGetPciInfo_v2(struct nvml_device *device, struct nvml_pci_info_v2 *pci)
{
	struct nvml_pci_info full;
	int rc = nvmlDeviceGetPciInfo_v3(device, pci ? &full : NULL);

	if (rc == NVML_SUCCESS)
		twin_put_pci_v2(pci, &full);
	return rc;
}

int nvmlDeviceGetPciInfo(struct nvml_device *device, struct nvml_pci_info_v2 *pci)
{
	return nvmlDeviceGetPciInfo_v2(device, pci);
}

int nvmlDeviceGetPciInfoExt(struct nvml_device *device, struct nvml_pci_info_ext *pci)
{
	struct nvml_pci_info full;
	int rc = nvmlDeviceGetPciInfo_v3(device, pci ? &full : NULL);

	if (rc != NVML_SUCCESS)
		return rc;
	if (pci->version != NVML_PCI_INFO_EXT_WORD)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	pci->domain = full.domain;
	pci->bus = full.bus;
	pci->device = full.device;
	pci->pci_device_id = full.pci_device_id;
	pci->pci_subsystem_id = full.pci_subsystem_id;
	pci->base_class = 3; /* display controller, 3D */
	pci->sub_class = 2;
	memcpy(pci->bus_id, full.bus_id, sizeof(pci->bus_id));
	return NVML_SUCCESS;
}

int nvmlDeviceGetCurrPcieLinkGeneration(struct nvml_device *device, uint32_t *gen)
{
	struct twin_call call;
	struct twin_gpu gpu;
	int rc = twin_enter_read(device, gen, &call, &gpu);

	if (rc != NVML_SUCCESS)
		return rc;
	*gen = gpu.pcie_gen ? gpu.pcie_gen : call.board->pcie_gen;
	if (twin_has(&call, TWIN_HAS_PCIE_REST) && gpu.now_pstate != call.board->busy_pstate)
		*gen = 1;
	return NVML_SUCCESS;
}

int nvmlDeviceGetCurrPcieLinkWidth(struct nvml_device *device, uint32_t *width)
{
	struct twin_call call;
	struct twin_gpu gpu;
	int rc = twin_enter_read(device, width, &call, &gpu);

	if (rc == NVML_SUCCESS)
		*width = gpu.pcie_width ? gpu.pcie_width : call.board->pcie_width;
	return rc;
}
