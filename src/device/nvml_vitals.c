/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Vitals from the driver: most of them are field values, asked for in one call. What a board does
 * not have is asked again only now and then, since each refusal costs the driver as much as an
 * answer.
 */
#include <errno.h>

#include "base/sys.h"
#include "device/nvml_api.h"

enum {
	KIB = 1024,
	ASK_AGAIN = 60, /* slow parts after which what was refused is tried again */
	SELDOM = 5,	/* slow parts after which what is dear is */
	ALL_LINKS = -1,
};

/* After a sleep, or once it is found again, what was kept is of another time. */
static const uint64_t kept_ns = 2 * SELDOM * TAKT_NS_PER_S;

enum kind {
	KIND_U32,
	KIND_U64,
	KIND_BOOL,
	KIND_KIB, /* kept in bytes */
};

struct row {
	uint32_t vital; /* rows of one bit: all or none */
	uint32_t field_id, scope_id;
	enum kind kind;
	size_t at;
};

#define AT(member) offsetof(struct takt_gpu_vitals, member)

static const struct row rows[] = {
	{TAKT_VITAL_MEM_TEMP, NVML_FI_MEMORY_TEMP, 0, KIND_U32, AT(mem_temp_c)},
	{TAKT_VITAL_POWER_AVERAGE, NVML_FI_POWER_AVERAGE, 0, KIND_U32, AT(power_average_mw)},
	{TAKT_VITAL_ECC, NVML_FI_ECC_SBE_VOL_TOTAL, 0, KIND_U64, AT(ecc_corrected)},
	{TAKT_VITAL_ECC, NVML_FI_ECC_DBE_VOL_TOTAL, 0, KIND_U64, AT(ecc_uncorrected)},
	{TAKT_VITAL_ECC_EVER, NVML_FI_ECC_SBE_AGG_TOTAL, 0, KIND_U64, AT(ecc_ever_corrected)},
	{TAKT_VITAL_ECC_EVER, NVML_FI_ECC_DBE_AGG_TOTAL, 0, KIND_U64, AT(ecc_ever_uncorrected)},
	{TAKT_VITAL_ROWS, NVML_FI_REMAPPED_COR, 0, KIND_U32, AT(rows_corrected)},
	{TAKT_VITAL_ROWS, NVML_FI_REMAPPED_UNC, 0, KIND_U32, AT(rows_uncorrected)},
	{TAKT_VITAL_ROWS, NVML_FI_REMAPPED_PENDING, 0, KIND_BOOL, AT(row_pending)},
	{TAKT_VITAL_ROWS, NVML_FI_REMAPPED_FAILURE, 0, KIND_BOOL, AT(row_failed)},
	{TAKT_VITAL_PAGES, NVML_FI_RETIRED_SBE, 0, KIND_U32, AT(pages_single)},
	{TAKT_VITAL_PAGES, NVML_FI_RETIRED_DBE, 0, KIND_U32, AT(pages_double)},
	{TAKT_VITAL_PAGES, NVML_FI_RETIRED_PENDING, 0, KIND_BOOL, AT(page_pending)},
	{TAKT_VITAL_RECOVERY, NVML_FI_GPU_RECOVERY_ACTION, 0, KIND_U32, AT(recovery)},
	{TAKT_VITAL_NVLINK_CRC, NVML_FI_NVLINK_CRC_FLIT_TOTAL, 0, KIND_U64, AT(nvlink_crc_flits)},
	{TAKT_VITAL_NVLINK_CRC, NVML_FI_NVLINK_CRC_DATA_TOTAL, 0, KIND_U64, AT(nvlink_crc_data)},
	{TAKT_VITAL_NVLINK_ERRORS, NVML_FI_NVLINK_REPLAY_TOTAL, 0, KIND_U64, AT(nvlink_replays)},
	{TAKT_VITAL_NVLINK_ERRORS, NVML_FI_NVLINK_RECOVERY_TOTAL, 0, KIND_U64,
	 AT(nvlink_recoveries)},
	{TAKT_VITAL_NVLINK_BYTES, NVML_FI_NVLINK_DATA_TX, (uint32_t)ALL_LINKS, KIND_KIB,
	 AT(nvlink_sent_bytes)},
	{TAKT_VITAL_NVLINK_BYTES, NVML_FI_NVLINK_DATA_RX, (uint32_t)ALL_LINKS, KIND_KIB,
	 AT(nvlink_received_bytes)},
	{TAKT_VITAL_HELD_POLICIES, NVML_FI_PERF_POLICY_POWER, 0, KIND_U64,
	 AT(held_ns[TAKT_HELD_POWER])},
	{TAKT_VITAL_HELD_POLICIES, NVML_FI_PERF_POLICY_THERMAL, 0, KIND_U64,
	 AT(held_ns[TAKT_HELD_THERMAL])},
	{TAKT_VITAL_HELD_POLICIES, NVML_FI_PERF_POLICY_SYNC_BOOST, 0, KIND_U64,
	 AT(held_ns[TAKT_HELD_SYNC_BOOST])},
	{TAKT_VITAL_HELD_POLICIES, NVML_FI_PERF_POLICY_BOARD_LIMIT, 0, KIND_U64,
	 AT(held_ns[TAKT_HELD_BOARD_LIMIT])},
	{TAKT_VITAL_HELD_POLICIES, NVML_FI_PERF_POLICY_LOW_UTIL, 0, KIND_U64,
	 AT(held_ns[TAKT_HELD_LOW_UTIL])},
	{TAKT_VITAL_HELD_POLICIES, NVML_FI_PERF_POLICY_RELIABILITY, 0, KIND_U64,
	 AT(held_ns[TAKT_HELD_RELIABILITY])},
	{TAKT_VITAL_HELD_REASONS, NVML_FI_REASON_SW_THERMAL_NS, 0, KIND_U64,
	 AT(held_ns[TAKT_HELD_SW_THERMAL])},
	{TAKT_VITAL_HELD_REASONS, NVML_FI_REASON_HW_THERMAL_NS, 0, KIND_U64,
	 AT(held_ns[TAKT_HELD_HW_THERMAL])},
	{TAKT_VITAL_HELD_REASONS, NVML_FI_REASON_HW_POWER_BRAKE_NS, 0, KIND_U64,
	 AT(held_ns[TAKT_HELD_POWER_BRAKE])},
};

static void keep(const struct row *row, uint64_t value, struct takt_gpu_vitals *vitals)
{
	void *at = (char *)vitals + row->at;

	switch (row->kind) {
	case KIND_U32:
		*(uint32_t *)at = (uint32_t)value;
		break;
	case KIND_U64:
		*(uint64_t *)at = value;
		break;
	case KIND_BOOL:
		*(bool *)at = value != 0;
		break;
	case KIND_KIB:
		*(uint64_t *)at = value * KIB;
		break;
	}
}

/* Which rows are asked for, in the order of the table; how many. */
static int pick(uint32_t absent, struct nvml_field_value *values, const struct row **asked)
{
	int n = 0;

	for (size_t i = 0; i < TAKT_ARRAY_LEN(rows); i++) {
		if (rows[i].vital & absent)
			continue;
		asked[n] = &rows[i];
		values[n++] = (struct nvml_field_value){.field_id = rows[i].field_id,
							.scope_id = rows[i].scope_id};
	}
	return n;
}

static int read_fields(const struct takt_nvml_api *api, struct takt_nvml_gpu *gpu,
		       struct takt_gpu_vitals *vitals)
{
	struct nvml_field_value values[TAKT_ARRAY_LEN(rows)];
	const struct row *asked[TAKT_ARRAY_LEN(rows)];
	uint32_t told = 0, failed = 0;
	int n = pick(gpu->absent, values, asked), code;

	if (!api->fields || n == 0)
		return NVML_SUCCESS;
	code = api->fields(gpu->device, n, values);
	if (code != NVML_SUCCESS)
		return code;
	for (int i = 0; i < n; i++) {
		uint64_t value;
		int rc = takt_nvml_field(&values[i], &value);

		if (rc == NVML_SUCCESS)
			keep(asked[i], value, vitals);
		else if (takt_nvml_rc(rc) == -TAKT_E_UNSUPPORTED)
			gpu->absent |= asked[i]->vital;
		*(rc == NVML_SUCCESS ? &told : &failed) |= asked[i]->vital;
	}
	vitals->has |= told & ~failed;
	return NVML_SUCCESS;
}

static int read_margin(const struct takt_nvml_api *api, struct takt_nvml_gpu *gpu,
		       struct takt_gpu_vitals *vitals)
{
	struct nvml_margin_temperature margin = {.version = NVML_MARGIN_TEMPERATURE_WORD};
	int code = api->margin ? api->margin(gpu->device, &margin) : NVML_ERROR_NOT_SUPPORTED;

	if (code == NVML_SUCCESS)
		vitals->margin_c = margin.celsius;
	return code;
}

static int read_sram(const struct takt_nvml_api *api, struct takt_nvml_gpu *gpu,
		     struct takt_gpu_vitals *vitals)
{
	struct nvml_ecc_sram_status status = {.version = NVML_ECC_SRAM_STATUS_WORD};
	int code = api->sram ? api->sram(gpu->device, &status) : NVML_ERROR_NOT_SUPPORTED;

	if (code == NVML_SUCCESS)
		vitals->sram_threshold = status.threshold_exceeded != 0;
	return code;
}

/* Links end where the driver knows of no further one. */
static int read_links(const struct takt_nvml_api *api, struct takt_nvml_gpu *gpu,
		      struct takt_gpu_vitals *vitals)
{
	uint32_t up = 0, link;

	if (!api->nvlink_state)
		return NVML_ERROR_NOT_SUPPORTED;
	for (link = 0; link < TAKT_NVML_MAX_PORTS; link++) {
		uint32_t active;
		int code = api->nvlink_state(gpu->device, link, &active);

		if (code != NVML_SUCCESS && takt_nvml_rc(code) == -ENODEV)
			return code;
		if (code != NVML_SUCCESS)
			break;
		up += active == NVML_FEATURE_ENABLED;
	}
	vitals->nvlinks = link;
	vitals->nvlinks_up = up;
	return link > 0 ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

static const struct {
	uint32_t vital;
	int (*read)(const struct takt_nvml_api *api, struct takt_nvml_gpu *gpu,
		    struct takt_gpu_vitals *vitals);
} calls[] = {
	{TAKT_VITAL_MARGIN, read_margin},
	{TAKT_VITAL_SRAM, read_sram},
	{TAKT_VITAL_NVLINKS, read_links},
};

int takt_nvml_read_conditions(const struct takt_nvml_api *api, struct takt_nvml_gpu *gpu,
			      struct takt_gpu_vitals *vitals)
{
	int code = read_fields(api, gpu, vitals);

	for (size_t i = 0; i < TAKT_ARRAY_LEN(calls) && takt_nvml_rc(code) != -ENODEV; i++) {
		if (gpu->absent & calls[i].vital)
			continue;
		code = calls[i].read(api, gpu, vitals);
		if (code == NVML_SUCCESS)
			vitals->has |= calls[i].vital;
		else if (takt_nvml_rc(code) == -TAKT_E_UNSUPPORTED)
			gpu->absent |= calls[i].vital;
	}
	return takt_nvml_rc(code) == -ENODEV ? code : NVML_SUCCESS;
}

static const uint32_t view_vitals = TAKT_VITAL_MEM_TEMP | TAKT_VITAL_MARGIN | TAKT_VITAL_NVLINKS;

static void keep_seldom(struct takt_nvml_gpu *gpu, bool read, uint32_t seldom,
			struct takt_gpu_vitals *vitals)
{
	struct takt_gpu_vitals *kept = &gpu->seldom;

	if (read) {
		*kept = *vitals;
		return;
	}
	vitals->has |= kept->has & seldom;
	if (seldom & TAKT_VITAL_MARGIN)
		vitals->margin_c = kept->margin_c;
	if (seldom & TAKT_VITAL_NVLINKS) {
		vitals->nvlinks = kept->nvlinks;
		vitals->nvlinks_up = kept->nvlinks_up;
	}
}

/* `seldom` are read at every fifth slow part and kept meanwhile; `never` are not asked for. */
static int read_vitals(const struct takt_nvml_api *api, struct takt_nvml_gpu *gpu, uint32_t seldom,
		       uint32_t never, struct takt_gpu_vitals *vitals)
{
	struct takt_mono now = takt_mono_now(takt_sys_real());
	uint32_t at = gpu->vitals_read++, refused;
	bool reads = at % SELDOM == 0 || takt_mono_elapsed_ns(now, gpu->seldom_at) > kept_ns;
	int code;

	if (at % ASK_AGAIN == 0)
		gpu->absent = never;
	refused = gpu->absent & seldom;
	gpu->absent |= reads ? 0 : seldom;
	code = takt_nvml_read_conditions(api, gpu, vitals);
	if (!reads)
		gpu->absent = (gpu->absent & ~seldom) | refused;
	keep_seldom(gpu, reads, seldom, vitals);
	gpu->seldom_at = reads ? now : gpu->seldom_at;
	if (code == NVML_SUCCESS)
		takt_nvml_read_activity(api, gpu, vitals);
	return code;
}

/* Of the NVLinks each is a call. */
int takt_nvml_read_view(const struct takt_nvml_api *api, struct takt_nvml_gpu *gpu,
			struct takt_gpu_vitals *vitals)
{
	return read_vitals(api, gpu, TAKT_VITAL_MARGIN | TAKT_VITAL_NVLINKS, ~view_vitals, vitals);
}

/* The margin alone takes as long as all else (0.9 ms on an H200). */
int takt_nvml_read_vitals(const struct takt_nvml_api *api, struct takt_nvml_gpu *gpu,
			  struct takt_gpu_vitals *vitals)
{
	return read_vitals(api, gpu, TAKT_VITAL_MARGIN, 0, vitals);
}
