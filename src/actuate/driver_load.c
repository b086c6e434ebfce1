/* SPDX-License-Identifier: Apache-2.0 */
/* Identity of a driver load from what the kernel shows of its module. */
#include "actuate/driver_load.h"

#include <fcntl.h>
#include <stdio.h>

#define MODULE_DIR "/sys/module/nvidia"

void takt_driver_load(const struct takt_sys *sys, const struct takt_machine_info *info,
		      char ret[TAKT_DRIVER_LOAD])
{
	const char *version = info->driver_version[0] ? info->driver_version : "version not known";
	struct stat st;

	if (!info->simulated && sys->fstatat(sys, AT_FDCWD, MODULE_DIR, &st) == 0)
		(void)snprintf(ret, TAKT_DRIVER_LOAD, "%.79s module %llu", version,
			       (unsigned long long)st.st_ino);
	else
		(void)snprintf(ret, TAKT_DRIVER_LOAD, "%.79s%s", version,
			       info->simulated ? " simulated" : "");
}
