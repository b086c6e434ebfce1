/* SPDX-License-Identifier: Apache-2.0 */
/* See top_text.h. */
#include "top/top_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "device/device.h"

const char *takt_top_bytes(uint64_t bytes, char ret[TAKT_TOP_TEXT])
{
	static const char units[] = "KMGTPE";
	double value = (double)bytes / 1024;
	int unit = 0;

	if (bytes == 0) {
		takt_strcpy(ret, TAKT_TOP_TEXT, "0");
		return ret;
	}
	while (value >= 999.5 && unit < 5) {
		value /= 1024;
		unit++;
	}
	snprintf(ret, TAKT_TOP_TEXT, value < 99.95 && unit > 1 ? "%.1f%c" : "%.0f%c", value,
		 units[unit]);
	return ret;
}

const char *takt_top_span(uint64_t ms, char ret[TAKT_TOP_TEXT])
{
	uint64_t s = ms / 1000;

	if (s < 60)
		snprintf(ret, TAKT_TOP_TEXT, "%" PRIu64 "s", s);
	else if (s < 3600)
		snprintf(ret, TAKT_TOP_TEXT, "%" PRIu64 "m%02" PRIu64 "s", s / 60, s % 60);
	else if (s < 86400)
		snprintf(ret, TAKT_TOP_TEXT, "%" PRIu64 "h%02" PRIu64 "m", s / 3600, s / 60 % 60);
	else
		snprintf(ret, TAKT_TOP_TEXT, "%" PRIu64 "d%02" PRIu64 "h", s / 86400,
			 s / 3600 % 24);
	return ret;
}

const char *takt_top_gpus(uint64_t mask, char ret[TAKT_TOP_TEXT])
{
	size_t used = 0;

	takt_strcpy(ret, TAKT_TOP_TEXT, "-");
	for (int i = 0; i < 64 && used + 8 < TAKT_TOP_TEXT; i++) {
		int last = i;

		if (!(mask >> i & 1))
			continue;
		while (last < 63 && (mask >> (last + 1) & 1))
			last++;
		used += (size_t)snprintf(ret + used, TAKT_TOP_TEXT - used, "%s%d", used ? "," : "",
					 i);
		if (last > i)
			used += (size_t)snprintf(ret + used, TAKT_TOP_TEXT - used, "-%d", last);
		i = last;
	}
	return ret;
}

const char *takt_top_model_name(const char *name)
{
	static const char *const makers[] = {"TWIN ", "NVIDIA ", "Tesla ", "GeForce "};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(makers); i++)
		if (strncmp(name, makers[i], strlen(makers[i])) == 0)
			name += strlen(makers[i]);
	return name;
}

const char *takt_top_held_back(const struct takt_gpu_view *gpu)
{
	static const struct {
		uint64_t bit;
		const char *words;
	} reasons[] = {
		{TAKT_THROTTLE_HW_THERMAL, "too hot"},
		{TAKT_THROTTLE_POWER_BRAKE, "power brake"},
		{TAKT_THROTTLE_SW_THERMAL, "heat"},
		{TAKT_THROTTLE_HW_SLOWDOWN, "slowdown"},
		{TAKT_THROTTLE_SW_POWER, "power cap"},
		{TAKT_THROTTLE_SYNC_BOOST, "sync boost"},
		{TAKT_THROTTLE_APP_CLOCKS, "app clocks"},
		{TAKT_THROTTLE_DISPLAY, "display"},
		{TAKT_THROTTLE_IDLE, "idle"},
	};

	if (!(gpu->has & TAKT_VIEW_THROTTLE))
		return "";
	for (size_t i = 0; i < TAKT_ARRAY_LEN(reasons); i++)
		if (gpu->throttle & reasons[i].bit)
			return reasons[i].words;
	return "";
}

const char *takt_top_clock(const struct takt_gpu_view *gpu, char ret[TAKT_TOP_TEXT])
{
	const char *why = takt_top_held_back(gpu);
	size_t used;

	if (!(gpu->has & TAKT_VIEW_SM))
		return "";
	used = (size_t)snprintf(ret, TAKT_TOP_TEXT, "%u", gpu->sm_mhz);
	if (gpu->lease_max_mhz)
		used += (size_t)snprintf(ret + used, TAKT_TOP_TEXT - used, "\u2264%u",
					 gpu->lease_max_mhz);
	used += (size_t)snprintf(ret + used, TAKT_TOP_TEXT - used, " MHz");
	if (why[0])
		snprintf(ret + used, TAKT_TOP_TEXT - used, " %s", why);
	else if (gpu->lease_max_mhz)
		snprintf(ret + used, TAKT_TOP_TEXT - used, " takt");
	return ret;
}

uint64_t takt_top_job_gpus(const struct takt_job_view *job)
{
	uint64_t mask = 0;

	for (uint32_t i = 0; i < job->gpu_list_count; i++)
		mask |= (uint64_t)1 << (job->gpu_list[i] % 64);
	return mask;
}
