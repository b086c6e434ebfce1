/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel's sensors (hwmon) say is wrong with fans and power supplies. Boards leave inputs
 * unconnected, whose limits are then passed for ever: only a fan that is said to be broken counts,
 * and of chips that are power supplies any alarm. Most servers' supplies are seen by their BMC
 * alone.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "health/gather.h"
#include "health/rooted.h"

struct sensors {
	const char *root;
	struct takt_doctor_facts *facts;
	struct takt_doctor_alarm chip; /* that is looked at */
};

/* Chips of power supplies, by the beginning of their drivers' names:
 * https://docs.kernel.org/hwmon/pmbus.html and the pages beside it. */
static bool is_supply(const char *chip)
{
	static const char *const names[] = {"pmbus", "pfe",    "cffps",	 "dps920",
					    "ipsps", "ym2151", "yh5151", "crps185"};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(names); i++)
		if (strncmp(chip, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

static void look_at_sensor(void *ctx, const char *path)
{
	struct sensors *sensors = ctx;
	struct takt_doctor_facts *facts = sensors->facts;
	char value[8];

	if (facts->alarm_count == TAKT_DOCTOR_MAX_ALARMS ||
	    !takt_rooted_line(sensors->root, path, value, sizeof(value)) || strcmp(value, "1") != 0)
		return;
	takt_strcpy(sensors->chip.sensor, sizeof(sensors->chip.sensor), takt_path_name(path));
	facts->alarm[facts->alarm_count++] = sensors->chip;
}

static void count_fan(void *ctx, const char *path)
{
	struct sensors *sensors = ctx;

	(void)path;
	sensors->facts->fans++;
}

static void look_at_chip(void *ctx, const char *path)
{
	struct sensors *sensors = ctx;
	char pattern[PATH_MAX];
	int folder = (int)(takt_path_name(path) - path);

	sensors->chip = (struct takt_doctor_alarm){0};
	if (!takt_rooted_line(sensors->root, path, sensors->chip.chip, sizeof(sensors->chip.chip)))
		return;
	sensors->chip.supply = is_supply(sensors->chip.chip);
	sensors->facts->supplies += sensors->chip.supply;
	snprintf(pattern, sizeof(pattern), "%.*sfan*_input", folder, path);
	takt_rooted_glob(sensors->root, pattern, count_fan, sensors);
	snprintf(pattern, sizeof(pattern), "%.*sfan*_fault", folder, path);
	takt_rooted_glob(sensors->root, pattern, look_at_sensor, sensors);
	snprintf(pattern, sizeof(pattern), "%.*s*_alarm", folder, path);
	if (sensors->chip.supply)
		takt_rooted_glob(sensors->root, pattern, look_at_sensor, sensors);
}

void takt_gather_sensors(const char *root, struct takt_doctor_facts *facts)
{
	struct sensors sensors = {.root = root, .facts = facts};

	takt_rooted_glob(root, "/sys/class/hwmon/hwmon*/name", look_at_chip, &sensors);
}
