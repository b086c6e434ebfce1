/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a GPU is part of: a fabric of switches, a host with its memory, an interrupt; confidential
 * computing, which is off; and what the system as a whole has or lacks.
 */
#include <stdio.h>
#include <string.h>

#include "nvml_entry.h"

#define KIB_PER_MIB 1024ull

enum {
	FABRIC_COMPLETED = 3
};

int nvmlDeviceGetGpuFabricInfo(struct nvml_device *device, struct nvml_fabric_info *info)
{
	struct twin_call call;
	int rc = twin_enter_out(device, info, &call);

	if (rc != NVML_SUCCESS)
		return rc;
	if (!twin_has(&call, TWIN_HAS_FABRIC))
		return NVML_ERROR_NOT_SUPPORTED;
	*info = (struct nvml_fabric_info){
		.clique_id = call.desc->clique, .status = NVML_SUCCESS, .state = FABRIC_COMPLETED};
	return NVML_SUCCESS;
}

/* The third form ends with a summary: 1 is healthy. */
int nvmlDeviceGetGpuFabricInfoV(struct nvml_device *device, void *info)
{
	struct nvml_fabric_info_v3 now = {.state = FABRIC_COMPLETED, .health_summary = 1};
	struct twin_call call;
	int rc = twin_enter_out(device, info, &call);

	if (rc != NVML_SUCCESS)
		return rc;
	memcpy(&now.version, info, sizeof(now.version));
	if (now.version != NVML_FABRIC_INFO_V2_WORD && now.version != NVML_FABRIC_INFO_V3_WORD)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	if (!twin_has(&call, TWIN_HAS_FABRIC))
		return NVML_ERROR_NOT_SUPPORTED;
	now.clique_id = call.desc->clique;
	memcpy(info, &now,
	       now.version == NVML_FABRIC_INFO_V2_WORD ? sizeof(struct nvml_fabric_info_v2)
						       : sizeof(now));
	return NVML_SUCCESS;
}

/* Links between CPU and GPU of one module: Hopper and newer can tell that they have none. */
int nvmlDeviceGetC2cModeInfoV(struct nvml_device *device, struct nvml_c2c_mode *mode)
{
	struct twin_call call;
	int rc = twin_enter_out(device, mode, &call);

	if (rc != NVML_SUCCESS)
		return rc;
	if (call.board->arch < NVML_ARCH_HOPPER)
		return NVML_ERROR_NOT_SUPPORTED;
	mode->enabled = call.board->c2c_links ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED;
	return NVML_SUCCESS;
}

int nvmlDeviceGetCapabilities(struct nvml_device *device, struct nvml_capabilities *capabilities)
{
	struct twin_call call;
	int rc = twin_enter_out(device, capabilities, &call);

	if (rc != NVML_SUCCESS)
		return rc;
	if (capabilities->version != NVML_CAPABILITIES_WORD)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	capabilities->mask = 0;
	return NVML_SUCCESS;
}

enum {
	ADDRESSING_NONE = 0,
	ADDRESSING_HMM = 1,
	ADDRESSING_ATS = 2
};

static uint32_t addressing_of(const struct twin_board *board)
{
	if (board->c2c_links)
		return ADDRESSING_ATS;
	return board->arch >= NVML_ARCH_TURING && board->arch < NVML_ARCH_BLACKWELL
		       ? ADDRESSING_HMM
		       : ADDRESSING_NONE;
}

/* Recorded: HMM on Turing to Hopper, none on B200, ATS on GB200. */
int nvmlDeviceGetAddressingMode(struct nvml_device *device, struct nvml_addressing_mode *mode)
{
	struct twin_call call;
	int rc = twin_enter_out(device, mode, &call);

	if (rc != NVML_SUCCESS)
		return rc;
	if (mode->version != NVML_ADDRESSING_MODE_WORD)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	mode->mode = addressing_of(call.board);
	return NVML_SUCCESS;
}

/* A number for a text (FNV-1a). */
static uint64_t number_of(const char *text)
{
	uint64_t hash = 0xcbf29ce484222325ull;

	while (*text)
		hash = (hash ^ (unsigned char)*text++) * 0x100000001b3ull;
	return hash;
}

int nvmlDeviceGetPdi(struct nvml_device *device, struct nvml_pdi *pdi)
{
	struct twin_call call;
	int rc = twin_enter_out(device, pdi, &call);

	if (rc != NVML_SUCCESS)
		return rc;
	if (pdi->version != NVML_PDI_WORD)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	pdi->value = number_of(call.desc->uuid);
	return NVML_SUCCESS;
}

static int enter_inforom(struct nvml_device *device, const void *out, struct twin_call *ret)
{
	int rc = twin_enter_out(device, out, ret);

	return rc == NVML_SUCCESS && !ret->board->inforom[0] ? NVML_ERROR_NOT_SUPPORTED : rc;
}

int nvmlDeviceGetInforomConfigurationChecksum(struct nvml_device *device, uint32_t *checksum)
{
	struct twin_call call;
	int rc = enter_inforom(device, checksum, &call);

	if (rc == NVML_SUCCESS)
		*checksum = (uint32_t)number_of(call.board->inforom);
	return rc;
}

int nvmlDeviceValidateInforom(struct nvml_device *device)
{
	struct twin_call call;

	return enter_inforom(device, device, &call);
}

enum {
	FIRST_IRQ = 64
};

int nvmlDeviceGetIrqNum(struct nvml_device *device, uint32_t *irq)
{
	struct twin_call call;
	int rc = twin_enter_out(device, irq, &call);

	if (rc == NVML_SUCCESS)
		*irq = FIRST_IRQ + call.index;
	return rc;
}

/* All memory is outside the protected part. */
int nvmlDeviceGetConfComputeMemSizeInfo(struct nvml_device *device, struct nvml_cc_memory *memory)
{
	struct twin_call call;
	int rc = twin_enter_out(device, memory, &call);

	if (rc != NVML_SUCCESS)
		return rc;
	if (!twin_has(&call, TWIN_HAS_CONF_COMPUTE))
		return NVML_ERROR_NOT_SUPPORTED;
	*memory = (struct nvml_cc_memory){
		.unprotected_kib = call.board->memory_mib * KIB_PER_MIB,
	};
	return NVML_SUCCESS;
}

int nvmlSystemGetConfComputeCapabilities(struct nvml_cc_capabilities *capabilities)
{
	const struct twin_map *map = twin_machine_map();

	if (!map)
		return NVML_ERROR_UNINITIALIZED;
	if (!capabilities)
		return NVML_ERROR_INVALID_ARGUMENT;
	*capabilities = (struct nvml_cc_capabilities){
		.gpus = (twin_map_board(map)->features & TWIN_HAS_CONF_COMPUTE) != 0,
	};
	return NVML_SUCCESS;
}

int nvmlSystemGetConfComputeState(struct nvml_cc_state *state)
{
	if (!twin_machine_map())
		return NVML_ERROR_UNINITIALIZED;
	if (!state)
		return NVML_ERROR_INVALID_ARGUMENT;
	*state = (struct nvml_cc_state){0};
	return NVML_SUCCESS;
}

int nvmlSystemGetConfComputeSettings(struct nvml_cc_settings *settings)
{
	if (!twin_machine_map())
		return NVML_ERROR_UNINITIALIZED;
	if (!settings)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (settings->version != NVML_CC_SETTINGS_WORD)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	*settings = (struct nvml_cc_settings){.version = NVML_CC_SETTINGS_WORD};
	return NVML_SUCCESS;
}

/* As in "r550_00" (GUESS for its end). */
int nvmlSystemGetDriverBranch(struct nvml_driver_branch *branch, uint32_t length)
{
	const struct twin_map *map = twin_machine_map();
	char text[16];

	if (!map)
		return NVML_ERROR_UNINITIALIZED;
	if (!branch)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (branch->version != NVML_DRIVER_BRANCH_WORD)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	snprintf(text, sizeof(text), "r%.3s_00", twin_map_file(map)->machine.driver_version);
	return twin_put_text(branch->branch,
			     length < sizeof(branch->branch) ? length : sizeof(branch->branch),
			     text);
}

/* No host interface cards, which went with S-class units. */
int nvmlSystemGetHicVersion(uint32_t *count, struct nvml_hwbc_entry *entries)
{
	return nvmlUnitGetCount(count);
}
