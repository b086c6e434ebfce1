/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of functions that takt asks of the driver's library: one row each, newest name first,
 * older names of the same ABI behind it. Names whose ABI differs are rows of their own. Nothing but
 * the first rows is required: a function that a driver lacks is a reading that its GPUs lack.
 */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>

#include "device/nvml_api.h"
#include "device/nvml_find.h"

struct symbol {
	size_t at;
	bool required;
	const char *names[3];
};

#define ROW(member, ...)                                       \
	{                                                      \
		offsetof(struct takt_nvml_api, member), false, \
		{                                              \
			__VA_ARGS__                            \
		}                                              \
	}
#define REQUIRED(member, ...)                                 \
	{                                                     \
		offsetof(struct takt_nvml_api, member), true, \
		{                                             \
			__VA_ARGS__                           \
		}                                             \
	}

static const struct symbol symbols[] = {
	REQUIRED(init, "nvmlInit_v2", "nvmlInit"),
	REQUIRED(shutdown, "nvmlShutdown"),
	REQUIRED(count, "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"),
	REQUIRED(handle_by_index, "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"),
	ROW(driver_version, "nvmlSystemGetDriverVersion"),
	ROW(nvml_version, "nvmlSystemGetNVMLVersion"),
	ROW(cuda_version, "nvmlSystemGetCudaDriverVersion_v2", "nvmlSystemGetCudaDriverVersion"),

	ROW(name, "nvmlDeviceGetName"),
	ROW(uuid, "nvmlDeviceGetUUID"),
	ROW(pci, "nvmlDeviceGetPciInfo_v3"),
	ROW(pci_old, "nvmlDeviceGetPciInfo_v2", "nvmlDeviceGetPciInfo"),
	ROW(serial, "nvmlDeviceGetSerial"),
	ROW(vbios, "nvmlDeviceGetVbiosVersion"),
	ROW(minor, "nvmlDeviceGetMinorNumber"),
	ROW(compute_cap, "nvmlDeviceGetCudaComputeCapability"),
	ROW(cpu_affinity, "nvmlDeviceGetCpuAffinity"),
	ROW(memory_affinity, "nvmlDeviceGetMemoryAffinity"),
	ROW(power_range, "nvmlDeviceGetPowerManagementLimitConstraints"),
	ROW(power_default, "nvmlDeviceGetPowerManagementDefaultLimit"),
	ROW(memory_clocks, "nvmlDeviceGetSupportedMemoryClocks"),
	ROW(graphics_clocks, "nvmlDeviceGetSupportedGraphicsClocks"),
	ROW(max_clock, "nvmlDeviceGetMaxClockInfo"),
	ROW(temperature_threshold, "nvmlDeviceGetTemperatureThreshold"),
	ROW(mig_mode, "nvmlDeviceGetMigMode"),
	ROW(mig_max, "nvmlDeviceGetMaxMigDeviceCount"),
	ROW(mig_device, "nvmlDeviceGetMigDeviceHandleByIndex"),
	ROW(mig_attributes, "nvmlDeviceGetAttributes_v2"),
	ROW(mig_gi, "nvmlDeviceGetGpuInstanceId"),
	ROW(mig_ci, "nvmlDeviceGetComputeInstanceId"),

	ROW(gi_profile, "nvmlDeviceGetGpuInstanceProfileInfo"),
	ROW(gi_profile_named, "nvmlDeviceGetGpuInstanceProfileInfoV"),
	ROW(gi_places, "nvmlDeviceGetGpuInstancePossiblePlacements_v2"),
	ROW(gi_list, "nvmlDeviceGetGpuInstances"),
	ROW(gi_info, "nvmlGpuInstanceGetInfo"),
	ROW(ci_profile, "nvmlGpuInstanceGetComputeInstanceProfileInfo"),
	ROW(ci_list, "nvmlGpuInstanceGetComputeInstances"),
	ROW(ci_info, "nvmlComputeInstanceGetInfo_v2"),
	ROW(gi_create, "nvmlDeviceCreateGpuInstance"),
	ROW(gi_create_at, "nvmlDeviceCreateGpuInstanceWithPlacement"),
	ROW(gi_destroy, "nvmlGpuInstanceDestroy"),
	ROW(ci_create, "nvmlGpuInstanceCreateComputeInstance"),
	ROW(ci_destroy, "nvmlComputeInstanceDestroy"),

	ROW(common_ancestor, "nvmlDeviceGetTopologyCommonAncestor"),
	ROW(nvlink_state, "nvmlDeviceGetNvLinkState"),
	ROW(nvlink_remote_type, "nvmlDeviceGetNvLinkRemoteDeviceType"),
	ROW(nvlink_remote_pci, "nvmlDeviceGetNvLinkRemotePciInfo_v2"),

	ROW(clock, "nvmlDeviceGetClockInfo"),
	ROW(power, "nvmlDeviceGetPowerUsage"),
	ROW(power_limit, "nvmlDeviceGetPowerManagementLimit"),
	ROW(power_enforced, "nvmlDeviceGetEnforcedPowerLimit"),
	ROW(temperature, "nvmlDeviceGetTemperature"),
	ROW(utilization, "nvmlDeviceGetUtilizationRates"),
	ROW(memory, "nvmlDeviceGetMemoryInfo"),
	ROW(memory_v2, "nvmlDeviceGetMemoryInfo_v2"),
	ROW(energy, "nvmlDeviceGetTotalEnergyConsumption"),
	ROW(throttle, "nvmlDeviceGetCurrentClocksEventReasons",
	    "nvmlDeviceGetCurrentClocksThrottleReasons"),
	ROW(fan, "nvmlDeviceGetFanSpeed"),
	ROW(pstate, "nvmlDeviceGetPerformanceState", "nvmlDeviceGetPowerState"),
	ROW(pcie_gen, "nvmlDeviceGetCurrPcieLinkGeneration"),
	ROW(pcie_width, "nvmlDeviceGetCurrPcieLinkWidth"),
	ROW(pcie_replay, "nvmlDeviceGetPcieReplayCounter"),
	ROW(encoder, "nvmlDeviceGetEncoderUtilization"),
	ROW(decoder, "nvmlDeviceGetDecoderUtilization"),
	ROW(fields, "nvmlDeviceGetFieldValues"),
	ROW(persistence, "nvmlDeviceGetPersistenceMode"),
	ROW(ecc_errors, "nvmlDeviceGetTotalEccErrors"),
	ROW(margin, "nvmlDeviceGetMarginTemperature"),
	ROW(sram, "nvmlDeviceGetSramEccErrorStatus"),
	ROW(pcie_gen_max, "nvmlDeviceGetMaxPcieLinkGeneration"),
	ROW(pcie_width_max, "nvmlDeviceGetMaxPcieLinkWidth"),
	ROW(gpm_support, "nvmlGpmQueryDeviceSupport"),
	ROW(gpm_alloc, "nvmlGpmSampleAlloc"),
	ROW(gpm_free, "nvmlGpmSampleFree"),
	ROW(gpm_sample, "nvmlGpmSampleGet"),
	ROW(gpm_metrics, "nvmlGpmMetricsGet"),

	ROW(compute_procs, "nvmlDeviceGetComputeRunningProcesses_v3",
	    "nvmlDeviceGetComputeRunningProcesses_v2"),
	ROW(graphics_procs, "nvmlDeviceGetGraphicsRunningProcesses_v3",
	    "nvmlDeviceGetGraphicsRunningProcesses_v2"),
	ROW(mps_procs, "nvmlDeviceGetMPSComputeRunningProcesses_v3",
	    "nvmlDeviceGetMPSComputeRunningProcesses_v2"),
	ROW(compute_procs_v1, "nvmlDeviceGetComputeRunningProcesses"),
	ROW(graphics_procs_v1, "nvmlDeviceGetGraphicsRunningProcesses"),
	ROW(mps_procs_v1, "nvmlDeviceGetMPSComputeRunningProcesses"),

	ROW(process_utilization, "nvmlDeviceGetProcessUtilization"),

	ROW(event_set_new, "nvmlEventSetCreate"),
	ROW(event_set_free, "nvmlEventSetFree"),
	ROW(event_types, "nvmlDeviceGetSupportedEventTypes"),
	ROW(register_events, "nvmlDeviceRegisterEvents"),
	ROW(event_wait, "nvmlEventSetWait_v2", "nvmlEventSetWait"),

	ROW(ecc_mode, "nvmlDeviceGetEccMode"),
	ROW(compute_mode, "nvmlDeviceGetComputeMode"),
	ROW(fabric_info, "nvmlDeviceGetGpuFabricInfo"),
	ROW(peer_status, "nvmlDeviceGetP2PStatus"),
	ROW(power_source, "nvmlDeviceGetPowerSource"),
	ROW(app_clock, "nvmlDeviceGetApplicationsClock"),
	ROW(app_default, "nvmlDeviceGetDefaultApplicationsClock"),

	ROW(lock_sm, "nvmlDeviceSetGpuLockedClocks"),
	ROW(unlock_sm, "nvmlDeviceResetGpuLockedClocks"),
	ROW(set_power_limit, "nvmlDeviceSetPowerManagementLimit"),
	ROW(lock_mem, "nvmlDeviceSetMemoryLockedClocks"),
	ROW(unlock_mem, "nvmlDeviceResetMemoryLockedClocks"),
};

static int look_up(void *library, const struct symbol *symbol, struct takt_nvml_api *api,
		   struct takt_err *err)
{
	void *found = NULL;

	for (size_t i = 0; i < TAKT_ARRAY_LEN(symbol->names) && symbol->names[i] && !found; i++)
		found = dlsym(library, symbol->names[i]);
	if (!found && symbol->required)
		return takt_err_set(err, -TAKT_E_UNAVAILABLE,
				    "the NVIDIA driver library has no function '%s'",
				    symbol->names[0]);
	memcpy((char *)api + symbol->at, &found, sizeof(found));
	return 0;
}

/* It may lie where the loader of this process does not look: then people are told what to set. */
static int no_library(const char *path, struct takt_err *err)
{
	const char *why = dlerror();
	char found[PATH_MAX];

	if (!path && takt_nvml_find(TAKT_NVML_FOLDERS, found, sizeof(found)))
		return takt_err_set(err, -TAKT_E_UNAVAILABLE,
				    "the loader does not look where the NVIDIA driver library "
				    "lies; name it with nvml_path = %s",
				    found);
	return takt_err_set(err, -TAKT_E_UNAVAILABLE, "no NVIDIA driver library%s: %s",
			    path ? " as nvml_path names it" : " (nvml_path names one)",
			    why ? why : "cannot be opened");
}

int takt_nvml_load(const char *path, struct takt_nvml_api *ret, struct takt_err *err)
{
	struct takt_nvml_api api = {0};
	void *library = dlopen(path ? path : TAKT_NVML_LIBRARY, RTLD_NOW | RTLD_LOCAL);

	if (!library)
		return no_library(path, err);
	for (size_t i = 0; i < TAKT_ARRAY_LEN(symbols); i++) {
		int rc = look_up(library, &symbols[i], &api, err);

		if (rc < 0)
			return rc;
	}
	*ret = api;
	return 0;
}

int takt_nvml_rc(int code)
{
	switch (code) {
	case NVML_SUCCESS:
		return 0;
	case NVML_ERROR_NOT_SUPPORTED:
	case NVML_ERROR_FUNCTION_NOT_FOUND:
	case NVML_ERROR_ARGUMENT_VERSION_MISMATCH:
	case NVML_ERROR_DEPRECATED:
		return -TAKT_E_UNSUPPORTED;
	case NVML_ERROR_NO_PERMISSION:
	case NVML_ERROR_OPERATING_SYSTEM:
		return -EPERM;
	case NVML_ERROR_GPU_IS_LOST:
	case NVML_ERROR_RESET_REQUIRED:
		return -ENODEV;
	case NVML_ERROR_TIMEOUT:
		return -ETIMEDOUT;
	case NVML_ERROR_INVALID_ARGUMENT:
	case NVML_ERROR_FREQ_NOT_SUPPORTED:
		return -EINVAL;
	case NVML_ERROR_IN_USE:
		return -TAKT_E_BUSY;
	default:
		return -EIO;
	}
}

const char *takt_nvml_text(int code)
{
	switch (code) {
	case NVML_ERROR_DRIVER_NOT_LOADED:
		return "the NVIDIA kernel module is not loaded";
	case NVML_ERROR_LIB_RM_VERSION_MISMATCH:
		return "the NVIDIA driver library and kernel module are of different versions; "
		       "reload the module or restart the machine";
	case NVML_ERROR_NO_PERMISSION:
		return "the NVIDIA driver refuses this user";
	case NVML_ERROR_OPERATING_SYSTEM:
		return "the operating system blocks access to the GPU's device files";
	default:
		break;
	}
	switch (code) {
#define X(name, number, text) \
	case number:          \
		return text;
		NVML_CODES(X)
#undef X
	default:
		return "unknown code";
	}
}
