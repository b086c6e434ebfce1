/* SPDX-License-Identifier: Apache-2.0 */
/* Identity of a driver load from what the kernel shows of its module. */
#include "actuate/driver_load.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define MODULE_DIR "/sys/module/nvidia"
#define MODULE	   " module "

void takt_driver_load(const struct takt_sys *sys, const struct takt_machine_info *info,
		      char ret[TAKT_DRIVER_LOAD])
{
	const char *version = info->driver_version[0] ? info->driver_version : "version not known";
	struct stat st;

	if (!info->simulated && sys->fstatat(sys, AT_FDCWD, MODULE_DIR, &st) == 0)
		(void)snprintf(ret, TAKT_DRIVER_LOAD, "%.79s" MODULE "%llu", version,
			       (unsigned long long)st.st_ino);
	else
		(void)snprintf(ret, TAKT_DRIVER_LOAD, "%.79s%s", version,
			       info->simulated ? " simulated" : "");
}

bool takt_driver_load_differs(const char *a, const char *b)
{
	const char *module_of_a = strstr(a, MODULE), *module_of_b = strstr(b, MODULE);
	size_t len_a = module_of_a ? (size_t)(module_of_a - a) : strlen(a);
	size_t len_b = module_of_b ? (size_t)(module_of_b - b) : strlen(b);

	if (len_a != len_b || memcmp(a, b, len_a) != 0)
		return true;
	return module_of_a && module_of_b && strcmp(module_of_a, module_of_b) != 0;
}
