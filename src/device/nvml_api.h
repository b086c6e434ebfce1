/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's library as takt uses it: opened at run time, function by function. Internal to
 * device; the layouts and types come from abi/nvml.h.
 */
#ifndef TAKT_DEVICE_NVML_API_H
#define TAKT_DEVICE_NVML_API_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/nvml.h"
#include "base/err.h"
#include "base/vec.h"
#include "device/device_impl.h"

/* A member is NULL where this library has no such function. Those without comment have one
 * spelling; where several names share one ABI the newest that exists was taken (nvml_load.c). */
struct takt_nvml_api {
	nvmlInit_v2_fn *init;
	nvmlShutdown_fn *shutdown;
	nvmlSystemGetDriverVersion_fn *driver_version;
	nvmlSystemGetNVMLVersion_fn *nvml_version;
	nvmlSystemGetCudaDriverVersion_fn *cuda_version;
	nvmlDeviceGetCount_v2_fn *count;
	nvmlDeviceGetHandleByIndex_v2_fn *handle_by_index;

	nvmlDeviceGetName_fn *name;
	nvmlDeviceGetUUID_fn *uuid;
	nvmlDeviceGetPciInfo_v3_fn *pci;
	nvmlDeviceGetPciInfo_v2_fn *pci_old; /* a shorter struct with a 16-byte id */
	nvmlDeviceGetSerial_fn *serial;
	nvmlDeviceGetVbiosVersion_fn *vbios;
	nvmlDeviceGetMinorNumber_fn *minor;
	nvmlDeviceGetCudaComputeCapability_fn *compute_cap;
	nvmlDeviceGetCpuAffinity_fn *cpu_affinity;
	nvmlDeviceGetMemoryAffinity_fn *memory_affinity;
	nvmlDeviceGetPowerManagementLimitConstraints_fn *power_range;
	nvmlDeviceGetPowerManagementDefaultLimit_fn *power_default;
	nvmlDeviceGetSupportedMemoryClocks_fn *memory_clocks;
	nvmlDeviceGetSupportedGraphicsClocks_fn *graphics_clocks;
	nvmlDeviceGetMaxClockInfo_fn *max_clock;
	nvmlDeviceGetTemperatureThreshold_fn *temperature_threshold;
	nvmlDeviceGetMigMode_fn *mig_mode;
	nvmlDeviceGetMaxMigDeviceCount_fn *mig_max;
	nvmlDeviceGetMigDeviceHandleByIndex_fn *mig_device;
	nvmlDeviceGetAttributes_v2_fn *mig_attributes;

	nvmlDeviceGetTopologyCommonAncestor_fn *common_ancestor;
	nvmlDeviceGetNvLinkState_fn *nvlink_state;
	nvmlDeviceGetNvLinkRemoteDeviceType_fn *nvlink_remote_type;
	nvmlDeviceGetNvLinkRemotePciInfo_v2_fn *nvlink_remote_pci;

	nvmlDeviceGetClockInfo_fn *clock;
	nvmlDeviceGetPowerUsage_fn *power;
	nvmlDeviceGetPowerManagementLimit_fn *power_limit;
	nvmlDeviceGetEnforcedPowerLimit_fn *power_enforced;
	nvmlDeviceGetTemperature_fn *temperature;
	nvmlDeviceGetUtilizationRates_fn *utilization;
	nvmlDeviceGetMemoryInfo_fn *memory;
	nvmlDeviceGetMemoryInfo_v2_fn *memory_v2;
	nvmlDeviceGetTotalEnergyConsumption_fn *energy;
	nvmlDeviceGetCurrentClocksEventReasons_fn *throttle;
	nvmlDeviceGetFanSpeed_fn *fan;
	nvmlDeviceGetPerformanceState_fn *pstate;
	nvmlDeviceGetCurrPcieLinkGeneration_fn *pcie_gen;
	nvmlDeviceGetCurrPcieLinkWidth_fn *pcie_width;
	nvmlDeviceGetPcieReplayCounter_fn *pcie_replay;
	nvmlDeviceGetEncoderUtilization_fn *encoder;
	nvmlDeviceGetDecoderUtilization_fn *decoder;
	nvmlDeviceGetFieldValues_fn *fields;

	/* Process lists: entries of 24 bytes (some drivers wrote 32), and the old ones of 16. */
	nvmlDeviceGetComputeRunningProcesses_v3_fn *compute_procs;
	nvmlDeviceGetGraphicsRunningProcesses_v3_fn *graphics_procs;
	nvmlDeviceGetMPSComputeRunningProcesses_v3_fn *mps_procs;
	nvmlDeviceGetComputeRunningProcesses_fn *compute_procs_v1;
	nvmlDeviceGetGraphicsRunningProcesses_fn *graphics_procs_v1;
	nvmlDeviceGetMPSComputeRunningProcesses_fn *mps_procs_v1;

	nvmlDeviceSetGpuLockedClocks_fn *lock_sm;
	nvmlDeviceResetGpuLockedClocks_fn *unlock_sm;
	nvmlDeviceSetPowerManagementLimit_fn *set_power_limit;
};

/* Opens the library (NULL: libnvidia-ml.so.1 by the loader's search path) and looks everything up.
 * It stays mapped for the life of the process: unmapping code that a stuck thread is in kills. */
int takt_nvml_load(const char *path, struct takt_nvml_api *ret, struct takt_err *err);

/* Our code for the driver's: 0, -TAKT_E_UNSUPPORTED, -EPERM, -ENODEV (lost, needs a reset),
 * -ETIMEDOUT, -EINVAL, -EIO. */
int takt_nvml_rc(int code);
/* What people are told: the code's own words, or better ones where there are. */
const char *takt_nvml_text(int code);

enum {
	TAKT_NVML_MAX_PORTS = NVML_NVLINK_MAX_LINKS,
};

/* What a GPU's NVLinks lead to. */
struct takt_nvml_ports {
	uint32_t to_switch; /* active links into an NVSwitch */
	uint32_t count;	    /* of remotes */
	struct {
		char pci_bus_id[32];
		uint32_t links;
	} remote[TAKT_NVML_MAX_PORTS];
};

struct takt_nvml_gpu {
	/* Written by the GPU's worker before `attached`, constant afterwards. */
	struct nvml_device *device;
	char pci_bus_id[32]; /* "" = unknown */
	atomic_bool attached;

	struct takt_nvml_ports ports; /* written by the worker before ports_known */
	atomic_bool ports_known;

	/* The worker's own. */
	bool simulated;	     /* the board says TWIN: this machine's sysfs is not about it */
	bool memory_v1_only; /* the driver refused the newer struct */
	void *procs;	     /* buffer of the process lists, owned */
	uint32_t procs_room; /* entries of the largest size */
	TAKT_VEC(struct takt_gpu_proc) found; /* of all lists, ascending pid */
};

struct takt_nvml {
	struct takt_source base;
	struct takt_nvml_api api;
	char *sysfs_root; /* owned */
	struct takt_nvml_gpu gpus[TAKT_DEVICE_MAX_GPUS];
};

/* Handle of the GPU; tries to get it where that failed before. NVML code. */
int takt_nvml_attach(struct takt_nvml *nvml, uint32_t gpu);

/* As the operations of the same name in device_impl.h. */
bool takt_nvml_facts(struct takt_source *source, uint32_t gpu, uint32_t step,
		     struct takt_gpu_facts *facts);
struct takt_gpu_link takt_nvml_link(struct takt_source *source, uint32_t gpu, uint32_t other);
void takt_nvml_sample(struct takt_source *source, uint32_t gpu, uint32_t parts,
		      struct takt_gpu_reading *reading);
int takt_nvml_lock_sm(struct takt_source *source, uint32_t gpu, uint32_t min_mhz, uint32_t max_mhz,
		      struct takt_err *err);
int takt_nvml_unlock_sm(struct takt_source *source, uint32_t gpu, struct takt_err *err);
int takt_nvml_set_power_limit(struct takt_source *source, uint32_t gpu, uint32_t limit_mw,
			      struct takt_err *err);

/* Parts of the above with a file of their own. All return the driver's code, or NOT_SUPPORTED where
 * the library lacks the function; outputs are touched on SUCCESS only. */
void takt_nvml_read_ports(struct takt_nvml *nvml, uint32_t gpu);
int takt_nvml_read_procs(const struct takt_nvml_api *api, struct takt_nvml_gpu *gpu,
			 struct takt_gpu_reading *reading);

#endif
