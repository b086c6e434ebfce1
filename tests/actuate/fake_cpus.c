/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "fake_cpus.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROOT "/sys/devices/system/cpu"

static uint32_t first_khz(uint32_t policy, const char *name)
{
	int max = strstr(name, "max") != NULL;

	return policy < 4 ? (max ? 3600000u : 800000u) : (max ? 2400000u : 400000u);
}

static int is_there(uint32_t policy)
{
	return policy < FAKE_CPUS && policy != 2;
}

static void add_file(struct fake_sys *world, uint32_t policy, const char *name)
{
	char path[128], text[32];
	int n = snprintf(text, sizeof(text), "%u\n", first_khz(policy, name));

	snprintf(path, sizeof(path), ROOT "/cpufreq/policy%u/%s", policy, name);
	fake_sys_add_file(world, path, text, (size_t)n);
}

void fake_cpus_add(struct fake_sys *world)
{
	static const char *const dirs[] = {"/sys", "/sys/devices", "/sys/devices/system", ROOT,
					   ROOT "/cpufreq"};
	char dir[64];

	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
		fake_sys_add_dir(world, dirs[i]);
	fake_sys_add_file(world, ROOT "/possible", "0-5\n", 4);
	for (uint32_t policy = 0; policy < FAKE_CPUS; policy++) {
		if (!is_there(policy))
			continue;
		snprintf(dir, sizeof(dir), ROOT "/cpufreq/policy%u", policy);
		fake_sys_add_dir(world, dir);
		add_file(world, policy, "cpuinfo_min_freq");
		add_file(world, policy, "scaling_min_freq");
		add_file(world, policy, "scaling_max_freq");
	}
}

uint32_t fake_cpus_khz(struct fake_sys *world, uint32_t policy, const char *name)
{
	char path[128];
	const char *text;

	snprintf(path, sizeof(path), ROOT "/cpufreq/policy%u/%s", policy, name);
	text = fake_sys_read_file(world, path, NULL);
	return text ? (uint32_t)strtoul(text, NULL, 10) : 0;
}

int fake_cpus_as_found(struct fake_sys *world)
{
	static const char *const names[] = {"scaling_min_freq", "scaling_max_freq"};

	for (uint32_t policy = 0; policy < FAKE_CPUS; policy++)
		for (int i = 0; i < 2; i++)
			if (is_there(policy) &&
			    fake_cpus_khz(world, policy, names[i]) != first_khz(policy, names[i]))
				return 0;
	return 1;
}
