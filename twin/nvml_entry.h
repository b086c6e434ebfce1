/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every NVML function of the simulated driver begins and ends with.
 *
 * Order of answers, as the real library gives them: not initialised (1) before anything else, then
 * bad arguments (2), then the state of the GPU (15, or a call that hangs), then what the board
 * cannot do (3). nvml_files are grouped by subject; functions are exported by their declarations
 * here and have no effect but on the machine file.
 */
#ifndef TAKT_TWIN_NVML_ENTRY_H
#define TAKT_TWIN_NVML_ENTRY_H

#include <stdbool.h>
#include <stddef.h>

#include "abi/nvml.h"
#include "base/compiler.h"
#include "twin_mig.h"
#include "twin_physics.h"
#include "twin_shared.h"

#define TWIN_EXPORT(name) extern TAKT_API name##_fn name;
NVML_FUNCTIONS(TWIN_EXPORT)
#undef TWIN_EXPORT

/* One call on one GPU. */
struct twin_call {
	struct twin_map *map;
	const struct twin_machine *machine;
	const struct twin_board *board;
	const struct twin_gpu_desc *desc;
	uint32_t index;
	/* with twin_enter_any alone: a compute instance instead of a GPU */
	bool is_mig;
	struct twin_mig_device mig;
};

/* Of the driver branch whose symbols this library exports; generated. */
extern const char twin_library_branch[], twin_library_version[];

/* The machine, or NULL when the library is not initialised. */
struct twin_map *twin_machine_map(void);

/* NVML_SUCCESS while the driver is still the one that was there at initialisation. */
int twin_driver_here(struct twin_map *map);

/* NVML_SUCCESS and *ret, or the code to return at once. May wait, when the GPU hangs. */
int twin_enter(const struct nvml_device *device, struct twin_call *ret);

/* As twin_enter, for functions with an output that must not be NULL. */
int twin_enter_out(const struct nvml_device *device, const void *out, struct twin_call *ret);

/* As twin_enter, with the GPU's state at this moment as its sensors show it (twin_noise.h). */
int twin_enter_read(const struct nvml_device *device, const void *out, struct twin_call *ret,
		    struct twin_gpu *ret_gpu);

/* As twin_enter_read, of a GPU whose utilisation can be told: in MIG mode none is. */
int twin_enter_uncut(const struct nvml_device *device, const void *out, struct twin_call *ret,
		     struct twin_gpu *ret_gpu);

/* As twin_enter_read, for the functions that take MIG devices as well as GPUs. The others refuse
 * them: identity and settings as no valid device, readings as not supported (GUESS which is which).
 */
int twin_enter_any(const struct nvml_device *device, const void *out, struct twin_call *ret,
		   struct twin_gpu *ret_gpu);

/* The GPU and the start of a GPU instance, and of a compute instance, behind their handles. Whether
 * one is there now is for the caller to look. */
int twin_enter_instance(const struct nvml_gpu_instance *instance, const void *out,
			struct twin_call *ret, struct twin_gpu *ret_gpu, uint32_t *ret_start);
int twin_enter_compute(const struct nvml_compute_instance *compute, const void *out,
		       struct twin_call *ret, struct twin_gpu *ret_gpu, uint32_t *ret_start,
		       uint32_t *ret_compute_start);

/* Handles of the places where instances are kept; of MIG devices, too. */
struct nvml_gpu_instance *twin_instance_handle(const struct twin_call *call, uint32_t start);
struct nvml_compute_instance *twin_compute_handle(const struct twin_call *call, uint32_t start,
						  uint32_t compute_start);
struct nvml_device *twin_mig_handle(const struct twin_call *call, uint32_t start,
				    uint32_t compute_start);

/* Change settings of a GPU: permission, bookkeeping and the twin's own errors as NVML codes. The
 * change returns NVML_SUCCESS or a code; codes leave the GPU as it was. `restores`: this call puts
 * a default back, which a fault may refuse. */
int twin_set_as(const char *function, const struct nvml_device *device, twin_change_fn *change,
		void *arg, bool restores);
/* By the function that it stands in, whose name the machine may have a rule for. */
#define twin_set(device, change, arg, restores) twin_set_as(__func__, device, change, arg, restores)

/* What is answered to a call on a GPU or a MIG device that is refused on purpose. */
int twin_refuse(const struct nvml_device *device, int code);

/* As twin_set, for a restricted API (NVML_RESTRICTED_API_...), which may be open to everyone. */
int twin_set_restricted_as(const char *function, const struct nvml_device *device, uint32_t api,
			   twin_change_fn *change, void *arg, bool restores);
#define twin_set_restricted(device, api, change, arg, restores) \
	twin_set_restricted_as(__func__, device, api, change, arg, restores)

bool twin_has(const struct twin_call *call, enum twin_feature feature);

/* A moment of the machine that is past as clients are told of it: microseconds since 1970. Of the
 * world's time, however fast the machine's passes. */
uint64_t twin_stamp_us(const struct twin_map *map, uint64_t at_ns);

/* Traffic of the bus while kernels run in so much of the time. */
uint32_t twin_pcie_kib_per_s(bool sent, uint32_t busy_permille);

/* NVLinks that are down, as a bit mask: by a fault, or because of the GPU's mode. */
uint32_t twin_links_down(const struct twin_call *call, const struct twin_gpu *gpu);

/* A place on the bus, in words and numbers; the rest of ret is zero. And the same in the older
 * form, which has the short words alone. */
void twin_put_pci(struct nvml_pci_info *ret, const struct twin_pci *pci);
void twin_put_pci_v2(struct nvml_pci_info_v2 *ret, const struct nvml_pci_info *pci);

/* Copies text with its end, or INSUFFICIENT_SIZE. */
int twin_put_text(char *out, uint32_t length, const char *text);

/* The length protocol of lists: *count comes in as the room and goes out as what there is. True
 * when the caller may be given the entries; *ret_code is what to return in either case. */
bool twin_room_for(uint32_t *count, uint32_t available, const void *entries, int *ret_code);

/* Handle of GPU `index`, and whether a handle is one. */
struct nvml_device *twin_handle(const struct twin_map *map, uint32_t index);

#endif
