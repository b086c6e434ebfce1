/* SPDX-License-Identifier: Apache-2.0 */
/* The clock view. */
#include <errno.h>

#include "base/mem.h"
#include "codec/view_tables.h"
#include "codec/views.h"

#define GPU struct takt_clock_gpu
static const struct takt_field gpu_fields[] = {
	U32(GPU, index, MUST),
	TEXT(GPU, uuid),
	TEXT(GPU, name),
	TEXT(GPU, clock_state),
	TEXT(GPU, severity),
	TEXT(GPU, note),
	U32(GPU, sm_mhz, .flag_offset = offsetof(GPU, has_sm)),
	U32(GPU, list_min_mhz, NONE(0)),
	U32(GPU, list_max_mhz, NONE(0)),
	U32(GPU, lease_min_mhz, NONE(0)),
	U32(GPU, lease_max_mhz, NONE(0)),
	U32(GPU, mem_mhz, .flag_offset = offsetof(GPU, has_mem)),
	U32(GPU, lease_mem_min_mhz, NONE(0)),
	U32(GPU, lease_mem_max_mhz, NONE(0)),
	BOOL(GPU, persistence_off),
	U64(GPU, lease_job, NONE(0)),
	U32(GPU, power_limit_mw, NONE(0)),
	U32(GPU, power_min_mw, NONE(0)),
	U32(GPU, power_max_mw, NONE(0)),
	U32(GPU, lease_power_mw, NONE(0)),
	U32(GPU, cap_power_mw, NONE(0)),
	TEXT(GPU, cap_why),
	U32(GPU, base_min_mhz, NONE(0)),
	U32(GPU, base_max_mhz, NONE(0)),
	U32(GPU, base_power_mw, NONE(0)),
	TEXT(GPU, base_mig),
	U32(GPU, draw_mw, .flag_offset = offsetof(GPU, has_draw)),
	U32(GPU, budget_mw, NONE(0)),
	TEXT(GPU, budget_for),
};
static const struct takt_shape gpu_shape = TAKT_SHAPE(GPU, "a GPU's clocks", gpu_fields);

#define CPU struct takt_cpu_clock
static const struct takt_field cpu_fields[] = {
	U32(CPU, max_mhz, NONE(0)),
	BOOL(CPU, changed),
	TEXT(CPU, note),
};
static const struct takt_shape cpu_shape = TAKT_SHAPE(CPU, "the CPUs' clocks", cpu_fields);

#define BUDGET struct takt_budget_view
static const struct takt_field budget_fields[] = {
	U32(BUDGET, watts, NONE(0)),
	U32(BUDGET, drawn_mw, .flag_offset = offsetof(BUDGET, has_drawn)),
	TEXT(BUDGET, note),
};
static const struct takt_shape budget_shape = TAKT_SHAPE(BUDGET, "a power budget", budget_fields);

#define CLOCKS struct takt_clock_view
static const struct takt_field fields[] = {
	MUST_BOOL(CLOCKS, simulated),
	{.name = "cpu",
	 .kind = TAKT_FIELD_OBJECT,
	 .offset = offsetof(CLOCKS, cpu),
	 .size = sizeof(CPU),
	 .shape = &cpu_shape},
	{.name = "budget",
	 .kind = TAKT_FIELD_OBJECT,
	 .offset = offsetof(CLOCKS, budget),
	 .size = sizeof(BUDGET),
	 .shape = &budget_shape},
	{.name = "gpus",
	 .kind = TAKT_FIELD_OBJECT,
	 .offset = offsetof(CLOCKS, gpu),
	 .many = TAKT_MANY_ARRAY,
	 .required = true,
	 .counts = true,
	 .size = sizeof(GPU),
	 COUNT(CLOCKS, gpu_count),
	 .room = TAKT_VIEW_MAX_GPUS,
	 .shape = &gpu_shape},
};
static const struct takt_shape shape = TAKT_SHAPE(CLOCKS, "a list of clocks", fields);

int takt_clock_view_to_json(const struct takt_clock_view *view, struct takt_str *out)
{
	return takt_shape_encode(&shape, view, out);
}

int takt_clock_view_from_json(const char *text, size_t len, struct takt_clock_view *ret,
			      struct takt_err *err)
{
	TAKT_CLEANUP(freep) struct takt_clock_view *view = takt_zalloc(sizeof(*view));
	int rc;

	if (!view)
		return takt_err_set(err, -ENOMEM, "no memory for a list of clocks");
	rc = takt_shape_decode(&shape, text, len, TAKT_VIEW_MAX_BYTES, TAKT_SHAPE_TOLERANT, view,
			       err);
	if (rc == 0)
		*ret = *view;
	return rc;
}
