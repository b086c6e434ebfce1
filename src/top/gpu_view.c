/* SPDX-License-Identifier: Apache-2.0 */
/* See gpu_view.h. */
#include "top/gpu_view.h"

#include <stdio.h>

#include "base/compiler.h"
#include "base/str.h"

void takt_throttle_text(uint64_t bits, char *buf, size_t size)
{
	size_t used = 0;

	buf[0] = '\0';
	for (uint64_t bit = 1; bit && bit <= bits; bit <<= 1) {
		const char *name = bits & bit ? takt_throttle_name(bit) : NULL;
		int n = name ? snprintf(buf + used, size - used, "%s%s", used ? "," : "", name) : 0;

		if (n < 0 || used + (size_t)n >= size)
			return;
		used += (size_t)n;
	}
}

void takt_cuda_text(int32_t cuda_version, char *buf, size_t size)
{
	buf[0] = '\0';
	if (cuda_version > 0)
		snprintf(buf, size, "%d.%d", cuda_version / 1000, cuda_version % 1000 / 10);
}

void takt_gpu_view_facts(const struct takt_gpu_facts *facts, struct takt_gpu_view *view)
{
	if (facts->has & TAKT_FACT_NAME)
		takt_strcpy(view->name, sizeof(view->name), facts->name);
	if (facts->has & TAKT_FACT_UUID)
		takt_strcpy(view->uuid, sizeof(view->uuid), facts->uuid);
	if (facts->has & TAKT_FACT_PCI)
		takt_strcpy(view->pci_bus_id, sizeof(view->pci_bus_id), facts->pci_bus_id);
	if (facts->has & TAKT_FACT_NUMA)
		view->has |= TAKT_VIEW_NUMA;
	view->numa_node = facts->numa_node;
	if (facts->has & TAKT_FACT_SM_MAX)
		view->has |= TAKT_VIEW_SM_MAX;
	view->sm_max_mhz = facts->sm_max_mhz;
	view->mem_total_bytes = facts->memory_total_bytes;
}

static uint32_t view_bits(uint32_t has, bool total_known)
{
	static const struct {
		uint32_t reading, view;
	} same[] = {
		{TAKT_HAS_SM_CLOCK, TAKT_VIEW_SM},
		{TAKT_HAS_MEM_CLOCK, TAKT_VIEW_MEM_CLOCK},
		{TAKT_HAS_POWER, TAKT_VIEW_POWER},
		{TAKT_HAS_POWER_LIMIT, TAKT_VIEW_POWER_LIMIT},
		{TAKT_HAS_TEMP, TAKT_VIEW_TEMP},
		{TAKT_HAS_GPU_UTIL, TAKT_VIEW_GPU_UTIL},
		{TAKT_HAS_MEM_UTIL, TAKT_VIEW_MEM_UTIL},
		{TAKT_HAS_ENERGY, TAKT_VIEW_ENERGY},
		{TAKT_HAS_THROTTLE, TAKT_VIEW_THROTTLE},
		{TAKT_HAS_PROCS, TAKT_VIEW_PROCS},
		{TAKT_HAS_FAN, TAKT_VIEW_FAN},
		{TAKT_HAS_PSTATE, TAKT_VIEW_PSTATE},
		{TAKT_HAS_PCIE, TAKT_VIEW_PCIE},
	};
	uint32_t bits = 0;

	for (size_t i = 0; i < TAKT_ARRAY_LEN(same); i++)
		if (has & same[i].reading)
			bits |= same[i].view;
	if ((has & TAKT_HAS_MEMORY) && total_known)
		bits |= TAKT_VIEW_MEMORY;
	return bits;
}

static void add_vitals(const struct takt_gpu_facts *facts, const struct takt_gpu_reading *reading,
		       struct takt_gpu_view *view)
{
	const struct takt_gpu_vitals *vitals = &reading->vitals;

	if (vitals->has & TAKT_VITAL_MARGIN) {
		view->has |= TAKT_VIEW_MARGIN;
		view->margin_c = vitals->margin_c;
	} else if (facts->has & TAKT_FACT_TEMP_MAX && reading->has & TAKT_HAS_TEMP) {
		view->has |= TAKT_VIEW_MARGIN;
		view->margin_c = facts->temp_max_c - reading->temp_c;
	}
	if (vitals->has & TAKT_VITAL_MEM_TEMP)
		view->has |= TAKT_VIEW_MEM_TEMP;
	if (vitals->has & TAKT_VITAL_NVLINKS)
		view->has |= TAKT_VIEW_NVLINKS;
	if (vitals->has & TAKT_VITAL_PCIE_RATES)
		view->has |= TAKT_VIEW_PCIE_RATES;
	view->mem_temp_c = vitals->mem_temp_c;
	view->nvlinks = vitals->nvlinks;
	view->nvlinks_up = vitals->nvlinks_up;
	view->pcie_sent_bytes_per_s = vitals->pcie_sent_bytes_per_s;
	view->pcie_received_bytes_per_s = vitals->pcie_received_bytes_per_s;
}

static uint64_t age_ms(const struct takt_gpu_reading *reading, struct takt_mono now)
{
	struct takt_mono at = reading->asleep ? reading->awake_at : reading->at;

	return at.ns ? (now.ns - at.ns) / TAKT_NS_PER_MS : 0;
}

void takt_gpu_view_reading(const struct takt_gpu_facts *facts,
			   const struct takt_gpu_reading *reading, struct takt_mono now,
			   struct takt_gpu_view *view)
{
	view->has |= view_bits(reading->has, facts->has & TAKT_FACT_MEMORY);
	view->stale = reading->stale;
	view->lost = reading->lost;
	view->asleep = reading->asleep;
	view->age_ms = age_ms(reading, now);
	view->sm_mhz = reading->sm_mhz;
	view->mem_mhz = reading->mem_mhz;
	view->power_mw = reading->power_mw;
	view->power_limit_mw = reading->power_limit_mw;
	view->temp_c = reading->temp_c;
	view->gpu_util_pct = reading->gpu_util_pct;
	view->mem_util_pct = reading->mem_util_pct;
	view->fan_pct = reading->fan_pct;
	view->pstate = reading->pstate;
	view->pcie_gen = reading->pcie_gen;
	view->pcie_width = reading->pcie_width;
	view->mem_used_bytes = reading->mem_used_bytes;
	view->energy_mj = reading->energy_mj;
	view->throttle = reading->throttle;
	if (reading->has & TAKT_HAS_THROTTLE)
		takt_throttle_text(reading->throttle, view->throttle_text,
				   sizeof(view->throttle_text));
	add_vitals(facts, reading, view);
}
