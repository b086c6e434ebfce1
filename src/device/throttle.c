/* SPDX-License-Identifier: Apache-2.0 */
/* Names of throttle reasons, as the driver's tools call them. */
#include <stddef.h>

#include "base/compiler.h"
#include "device/device.h"

static const struct {
	uint64_t bit;
	const char *name;
} names[] = {
	{TAKT_THROTTLE_IDLE, "gpu_idle"},
	{TAKT_THROTTLE_APP_CLOCKS, "applications_clocks_setting"},
	{TAKT_THROTTLE_SW_POWER, "sw_power_cap"},
	{TAKT_THROTTLE_HW_SLOWDOWN, "hw_slowdown"},
	{TAKT_THROTTLE_SYNC_BOOST, "sync_boost"},
	{TAKT_THROTTLE_SW_THERMAL, "sw_thermal_slowdown"},
	{TAKT_THROTTLE_HW_THERMAL, "hw_thermal_slowdown"},
	{TAKT_THROTTLE_POWER_BRAKE, "hw_power_brake_slowdown"},
	{TAKT_THROTTLE_DISPLAY, "display_clock_setting"},
};

const char *takt_throttle_name(uint64_t bit)
{
	for (size_t i = 0; i < TAKT_ARRAY_LEN(names); i++)
		if (names[i].bit == bit)
			return names[i].name;
	return NULL;
}
