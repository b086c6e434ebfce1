/* SPDX-License-Identifier: Apache-2.0 */
/* The status view and what it shows of each GPU. */
#include <string.h>

#include "base/mem.h"
#include "codec/view_tables.h"
#include "codec/views.h"

static const struct takt_field proc_fields[] = {
	I32(struct takt_proc_view, pid, MUST),
	U32(struct takt_proc_view, uid, NONE(UINT32_MAX)),
	TEXT(struct takt_proc_view, user),
	TEXT(struct takt_proc_view, command),
	U64(struct takt_proc_view, job_id, NONE(0)),
	U64(struct takt_proc_view, memory_bytes,
	    .flag_offset = offsetof(struct takt_proc_view, memory_known)),
	U32(struct takt_proc_view, sm_util_pct,
	    .flag_offset = offsetof(struct takt_proc_view, util_known)),
	U32(struct takt_proc_view, mem_util_pct,
	    .flag_offset = offsetof(struct takt_proc_view, util_known)),
};
static const struct takt_shape proc_shape =
	TAKT_SHAPE(struct takt_proc_view, "a process", proc_fields);

#define SHARE struct takt_gpu_share_view
static const struct takt_field share_fields[] = {
	U64(SHARE, job_id, MUST),
	TEXT(SHARE, name),
	TEXT(SHARE, user),
	U32(SHARE, milli, NONE(0)),
	U32(SHARE, mem_mib, NONE(0)),
	TEXT(SHARE, mig_uuid),
	BOOL(SHARE, left),
};
static const struct takt_shape share_shape = TAKT_SHAPE(SHARE, "a share", share_fields);

#define GPU struct takt_gpu_view
static const struct takt_field gpu_fields[] = {
	U32(GPU, index, MUST),
	TEXT(GPU, uuid),
	TEXT(GPU, name),
	TEXT(GPU, pci_bus_id),
	TEXT(GPU, state),
	TEXT(GPU, note),
	TEXT(GPU, clock_state),
	TEXT(GPU, clock_note),
	TEXT(GPU, health),
	TEXT(GPU, health_note),
	TEXT(GPU, severity),
	BOOL(GPU, stale),
	BOOL(GPU, lost),
	BOOL(GPU, asleep),
	U64(GPU, age_ms),
	U32(GPU, sm_mhz, HAS(TAKT_VIEW_SM)),
	U32(GPU, mem_mhz, HAS(TAKT_VIEW_MEM_CLOCK)),
	U32(GPU, sm_max_mhz, HAS(TAKT_VIEW_SM_MAX)),
	U32(GPU, lease_min_mhz, NONE(0)),
	U32(GPU, lease_max_mhz, NONE(0)),
	U32(GPU, power_mw, HAS(TAKT_VIEW_POWER)),
	U32(GPU, power_limit_mw, HAS(TAKT_VIEW_POWER_LIMIT)),
	U32(GPU, power_cap_mw, NONE(0)),
	I32(GPU, temp_c, HAS(TAKT_VIEW_TEMP)),
	I32(GPU, margin_c, HAS(TAKT_VIEW_MARGIN)),
	I32(GPU, mem_temp_c, HAS(TAKT_VIEW_MEM_TEMP)),
	U32(GPU, nvlinks, HAS(TAKT_VIEW_NVLINKS)),
	U32(GPU, nvlinks_up, HAS(TAKT_VIEW_NVLINKS)),
	U32(GPU, pcie_gen, HAS(TAKT_VIEW_PCIE)),
	U32(GPU, pcie_width, HAS(TAKT_VIEW_PCIE)),
	U64(GPU, pcie_sent_bytes_per_s, HAS(TAKT_VIEW_PCIE_RATES)),
	U64(GPU, pcie_received_bytes_per_s, HAS(TAKT_VIEW_PCIE_RATES)),
	U64(GPU, nvlink_sent_bytes_per_s, HAS(TAKT_VIEW_NVLINK_RATES)),
	U64(GPU, nvlink_received_bytes_per_s, HAS(TAKT_VIEW_NVLINK_RATES)),
	I32(GPU, numa_node, HAS(TAKT_VIEW_NUMA)),
	U32(GPU, gpu_util_pct, HAS(TAKT_VIEW_GPU_UTIL)),
	U32(GPU, mem_util_pct, HAS(TAKT_VIEW_MEM_UTIL)),
	U32(GPU, fan_pct, HAS(TAKT_VIEW_FAN)),
	U32(GPU, pstate, HAS(TAKT_VIEW_PSTATE)),
	U64(GPU, mem_used_bytes, HAS(TAKT_VIEW_MEMORY)),
	U64(GPU, mem_total_bytes, HAS(TAKT_VIEW_MEMORY)),
	U64(GPU, energy_mj, HAS(TAKT_VIEW_ENERGY)),
	U64(GPU, throttle, HAS(TAKT_VIEW_THROTTLE)),
	TEXT(GPU, throttle_text),
	U64(GPU, job_id, NONE(0)),
	U64(GPU, kept_for_job, NONE(0)),
	TEXT(GPU, job_name),
	TEXT(GPU, job_user),
	U64(GPU, gap_job_id, HAS(TAKT_VIEW_HANDOVER)),
	U64(GPU, gap_driver_us, HAS(TAKT_VIEW_HANDOVER)),
	U64(GPU, gap_scheduler_us, HAS(TAKT_VIEW_HANDOVER)),
	U64(GPU, gap_start_us, HAS(TAKT_VIEW_HANDOVER)),
	U32(GPU, proc_count, HAS(TAKT_VIEW_PROCS)),
	{TAKT_FIELD_AT(GPU, procs, TAKT_FIELD_OBJECT), .many = TAKT_MANY_ARRAY,
	 HAS(TAKT_VIEW_PROCS), .size = sizeof(struct takt_proc_view), COUNT(GPU, proc_count),
	 .room = TAKT_ARRAY_LEN(((GPU *)0)->procs), .shape = &proc_shape},
	U32(GPU, share_count, HAS(TAKT_VIEW_SHARES)),
	{TAKT_FIELD_AT(GPU, shares, TAKT_FIELD_OBJECT), .many = TAKT_MANY_ARRAY,
	 HAS(TAKT_VIEW_SHARES), .size = sizeof(SHARE), COUNT(GPU, share_count),
	 .room = TAKT_ARRAY_LEN(((GPU *)0)->shares), .shape = &share_shape},
};
static const struct takt_shape gpu_shape = {
	.what = "a GPU",
	.fields = gpu_fields,
	.count = TAKT_ARRAY_LEN(gpu_fields),
	.size = sizeof(GPU),
	.has_offset = offsetof(GPU, has),
};

#define STATUS struct takt_status_view
static const struct takt_field status_fields[] = {
	TEXT(STATUS, hostname),
	TEXT(STATUS, driver_version),
	TEXT(STATUS, cuda_version),
	TEXT(STATUS, source),
	TEXT(STATUS, takt_version),
	MUST_BOOL(STATUS, simulated),
	MUST_BOOL(STATUS, manages),
	TEXT(STATUS, observe_why),
	I32(STATUS, pid, NONE(0)),
	U64(STATUS, uptime_ms),
	U32(STATUS, waiting),
	U32(STATUS, running),
	TEXT(STATUS, state_dir),
	{TAKT_FIELD_AT(STATUS, notes, TAKT_FIELD_TEXT), .many = TAKT_MANY_FIXED,
	 .size = sizeof(((STATUS *)0)->notes[0]), .room = TAKT_ARRAY_LEN(((STATUS *)0)->notes)},
	{TAKT_FIELD_AT(STATUS, note_severity, TAKT_FIELD_TEXT), .many = TAKT_MANY_FIXED,
	 .size = sizeof(((STATUS *)0)->note_severity[0]),
	 .room = TAKT_ARRAY_LEN(((STATUS *)0)->note_severity)},
	{TAKT_FIELD_AT(STATUS, gpus, TAKT_FIELD_OBJECT), .many = TAKT_MANY_OWNED, .required = true,
	 .counts = true, .size = sizeof(GPU), COUNT(STATUS, gpu_count), .room = TAKT_VIEW_MAX_GPUS,
	 .shape = &gpu_shape},
};
static const struct takt_shape status_shape = TAKT_SHAPE(STATUS, "a status", status_fields);

void takt_status_view_fini(struct takt_status_view *view)
{
	takt_shape_release(&status_shape, view);
	view->gpu_count = 0;
}

int takt_status_view_to_json(const struct takt_status_view *view, struct takt_str *out)
{
	return takt_shape_encode(&status_shape, view, out);
}

int takt_status_view_from_json(const char *text, size_t len, struct takt_status_view *ret,
			       struct takt_err *err)
{
	struct takt_status_view view;
	int rc;

	memset(&view, 0, sizeof(view));
	rc = takt_shape_decode(&status_shape, text, len, TAKT_VIEW_MAX_BYTES, TAKT_SHAPE_TOLERANT,
			       &view, err);
	if (rc < 0)
		takt_status_view_fini(&view);
	else
		*ret = view;
	return rc;
}
