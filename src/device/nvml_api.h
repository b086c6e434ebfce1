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
	nvmlDeviceGetGpuInstanceId_fn *mig_gi;
	nvmlDeviceGetComputeInstanceId_fn *mig_ci;

	nvmlDeviceGetGpuInstanceProfileInfo_fn *gi_profile;
	nvmlDeviceGetGpuInstanceProfileInfoV_fn *gi_profile_named;
	nvmlDeviceGetGpuInstancePossiblePlacements_v2_fn *gi_places;
	nvmlDeviceGetGpuInstances_fn *gi_list;
	nvmlGpuInstanceGetInfo_fn *gi_info;
	nvmlGpuInstanceGetComputeInstanceProfileInfo_fn *ci_profile;
	nvmlGpuInstanceGetComputeInstances_fn *ci_list;
	nvmlComputeInstanceGetInfo_v2_fn *ci_info;
	nvmlDeviceCreateGpuInstance_fn *gi_create;
	nvmlDeviceCreateGpuInstanceWithPlacement_fn *gi_create_at;
	nvmlGpuInstanceDestroy_fn *gi_destroy;
	nvmlGpuInstanceCreateComputeInstance_fn *ci_create;
	nvmlComputeInstanceDestroy_fn *ci_destroy;

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
	nvmlDeviceGetPersistenceMode_fn *persistence;
	nvmlDeviceGetTotalEccErrors_fn *ecc_errors;
	nvmlDeviceGetMarginTemperature_fn *margin;
	nvmlDeviceGetSramEccErrorStatus_fn *sram;
	nvmlDeviceGetMaxPcieLinkGeneration_fn *pcie_gen_max;
	nvmlDeviceGetMaxPcieLinkWidth_fn *pcie_width_max;
	nvmlGpmQueryDeviceSupport_fn *gpm_support;
	nvmlGpmSampleAlloc_fn *gpm_alloc;
	nvmlGpmSampleFree_fn *gpm_free;
	nvmlGpmSampleGet_fn *gpm_sample;
	nvmlGpmMetricsGet_fn *gpm_metrics;

	/* Process lists: entries of 24 bytes (some drivers wrote 32), and the old ones of 16. */
	nvmlDeviceGetComputeRunningProcesses_v3_fn *compute_procs;
	nvmlDeviceGetGraphicsRunningProcesses_v3_fn *graphics_procs;
	nvmlDeviceGetMPSComputeRunningProcesses_v3_fn *mps_procs;
	nvmlDeviceGetComputeRunningProcesses_fn *compute_procs_v1;
	nvmlDeviceGetGraphicsRunningProcesses_fn *graphics_procs_v1;
	nvmlDeviceGetMPSComputeRunningProcesses_fn *mps_procs_v1;
	nvmlDeviceGetProcessUtilization_fn *process_utilization;

	nvmlEventSetCreate_fn *event_set_new;
	nvmlEventSetFree_fn *event_set_free;
	nvmlDeviceGetSupportedEventTypes_fn *event_types;
	nvmlDeviceRegisterEvents_fn *register_events;
	nvmlEventSetWait_v2_fn *event_wait; /* the older one fills the beginning of the struct */

	/* What gpu_board.h looks at once. */
	nvmlDeviceGetEccMode_fn *ecc_mode;
	nvmlDeviceGetComputeMode_fn *compute_mode;
	nvmlDeviceGetGpuFabricInfo_fn *fabric_info;
	nvmlDeviceGetP2PStatus_fn *peer_status;
	nvmlDeviceGetPowerSource_fn *power_source;
	nvmlDeviceGetApplicationsClock_fn *app_clock;
	nvmlDeviceGetDefaultApplicationsClock_fn *app_default;

	nvmlDeviceSetGpuLockedClocks_fn *lock_sm;
	nvmlDeviceResetGpuLockedClocks_fn *unlock_sm;
	nvmlDeviceSetPowerManagementLimit_fn *set_power_limit;
	nvmlDeviceSetMemoryLockedClocks_fn *lock_mem;
	nvmlDeviceResetMemoryLockedClocks_fn *unlock_mem;
};

/* Opens the library (NULL: libnvidia-ml.so.1 by the loader's search path) and looks everything up.
 * It stays mapped for the life of the process: unmapping code that a stuck thread is in kills. */
int takt_nvml_load(const char *path, struct takt_nvml_api *ret, struct takt_err *err);

/* Our code for the driver's: 0, -TAKT_E_UNSUPPORTED, -EPERM, -ENODEV (lost, needs a reset),
 * -ETIMEDOUT, -EINVAL, -TAKT_E_BUSY (in use), -EIO. */
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

/* What a process did of late, as the driver said last. */
struct takt_nvml_use {
	int32_t pid;
	uint32_t sm_pct, memory_pct;
	uint64_t stamp_us;   /* the driver's */
	struct takt_mono at; /* when it was heard */
};

enum takt_gpm {
	TAKT_GPM_UNKNOWN, /* not asked yet */
	TAKT_GPM_NONE,
	TAKT_GPM_EMPTY, /* no sample yet to compare with */
	TAKT_GPM_FULL,
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
	uint32_t absent;     /* enum takt_vital: what the board does not tell */
	uint32_t vitals_read;
	/* As read last, and when: those that are not read every time. */
	struct takt_gpu_vitals seldom;
	struct takt_mono seldom_at;
	enum takt_gpm gpm;
	struct nvml_gpm_sample *gpm_now, *gpm_before; /* owned, the driver's */
	void *procs;				      /* buffer of the process lists, owned */
	uint32_t procs_room;			      /* entries of the largest size */
	TAKT_VEC(struct takt_gpu_proc) found;	      /* of all lists, ascending pid */
	TAKT_VEC(struct nvml_process_utilization) use_samples; /* buffer of them */
	TAKT_VEC(struct takt_nvml_use) uses;		       /* a process once */
	uint64_t use_stamp_us;				       /* the newest that was heard */
};

struct takt_nvml {
	struct takt_source base;
	struct takt_nvml_api api;
	char *sysfs_root; /* owned */
	bool for_view;	  /* facts that no view shows are left out */
	bool leaves_asleep;
	struct takt_nvml_gpu gpus[TAKT_DEVICE_MAX_GPUS];
};

/* Handle of the GPU; tries to get it where that failed before. NVML code. */
int takt_nvml_attach(struct takt_nvml *nvml, uint32_t gpu);

/* As the operations of the same name in device_impl.h. */
bool takt_nvml_facts(struct takt_source *source, uint32_t gpu, uint32_t step,
		     struct takt_gpu_facts *facts);
void takt_nvml_mig_facts(struct takt_source *source, uint32_t gpu, struct takt_gpu_facts *facts);
struct takt_gpu_link takt_nvml_link(struct takt_source *source, uint32_t gpu, uint32_t other);
bool takt_nvml_sample(struct takt_source *source, uint32_t gpu, uint32_t parts,
		      struct takt_gpu_reading *reading);
int takt_nvml_set(struct takt_source *source, uint32_t gpu, const struct takt_set_call *call,
		  struct takt_err *err);

/* nvml_cut.c: which kinds of instances a GPU offers and how it is cut. Where the driver does not
 * say, nothing is listed and the layout is "". */
void takt_nvml_read_layout(struct takt_nvml *nvml, uint32_t gpu, struct takt_gpu_facts *facts);
/* Cuts the GPU as call->mig says unless it is cut so already; the gate is asked before each step.
 * Refused with the GPU as it was: -EPERM, -EINVAL (an unknown kind), -TAKT_E_UNSUPPORTED,
 * -TAKT_E_BUSY (a process is on it). What fails later, when something has been changed, is -EIO,
 * -TAKT_E_IMPOSSIBLE (no room), -ENODEV, -ETIMEDOUT or what the gate said. */
int takt_nvml_cut(struct takt_nvml *nvml, uint32_t gpu, const struct takt_set_call *call,
		  struct takt_err *err);

/* Parts of the above with a file of their own. All return the driver's code, or NOT_SUPPORTED where
 * the library lacks the function; outputs are touched on SUCCESS only. */
void takt_nvml_read_ports(struct takt_nvml *nvml, uint32_t gpu);
int takt_nvml_read_procs(const struct takt_nvml_api *api, struct takt_nvml_gpu *gpu,
			 struct takt_gpu_reading *reading);
/* Adds to the reading's processes what the driver tells of their use of the GPU; nothing where it
 * tells nothing. */
int takt_nvml_read_uses(const struct takt_nvml_api *api, struct takt_nvml_gpu *gpu,
			struct takt_gpu_reading *reading);
/* The code is of trouble only; what there is the vitals' bits say. They are clear on entry. */
int takt_nvml_read_conditions(const struct takt_nvml_api *api, struct takt_nvml_gpu *gpu,
			      struct takt_gpu_vitals *vitals);
/* Those and the activity of its parts. */
int takt_nvml_read_vitals(const struct takt_nvml_api *api, struct takt_nvml_gpu *gpu,
			  struct takt_gpu_vitals *vitals);
/* Of them what a view shows. */
int takt_nvml_read_view(const struct takt_nvml_api *api, struct takt_nvml_gpu *gpu,
			struct takt_gpu_vitals *vitals);
void takt_nvml_read_activity(const struct takt_nvml_api *api, struct takt_nvml_gpu *gpu,
			     struct takt_gpu_vitals *vitals);
void takt_nvml_end_activity(const struct takt_nvml_api *api, struct takt_nvml_gpu *gpu);
/* What a field value says; NVML code of its own. */
int takt_nvml_field(const struct nvml_field_value *value, uint64_t *ret);

#endif
