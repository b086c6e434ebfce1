/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor_text.h"

#include "cli/units.h"
#include "codec/json.h"

void takt_doctor_gpus_text(struct takt_str *out, uint64_t gpus)
{
	takt_str_add(out, gpus & (gpus - 1) ? "GPUs " : "GPU ");
	takt_mask_text(gpus, out);
}

void takt_doctor_gpus_json(struct takt_str *out, uint64_t gpus)
{
	bool first = true;

	takt_json_add_name(out, "gpus", false);
	takt_str_add(out, "[");
	for (uint32_t i = 0; i < TAKT_VIEW_MAX_GPUS; i++) {
		if (!(gpus >> i & 1))
			continue;
		takt_str_addf(out, first ? "%u" : ",%u", i);
		first = false;
	}
	takt_str_add(out, "]");
}

void takt_doctor_text_json(struct takt_str *out, const char *name, const char *text, bool first)
{
	takt_json_add_name(out, name, first);
	takt_json_add_text(out, text);
}

bool takt_doctor_holds(const struct takt_clock_gpu *clocks)
{
	return clocks->lease_max_mhz || clocks->lease_mem_max_mhz || clocks->lease_power_mw ||
	       clocks->cap_power_mw || clocks->base_max_mhz || clocks->base_power_mw;
}
