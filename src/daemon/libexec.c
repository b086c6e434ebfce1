/* SPDX-License-Identifier: Apache-2.0 */
/* See libexec.h. */
#include "daemon/libexec.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "takt_build.h"

void takt_libexec_dir(char ret[PATH_MAX])
{
	char self[PATH_MAX] = "", probe[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash = n > 0 ? strrchr(self, '/') : NULL;

	takt_strcpy(ret, PATH_MAX, TAKT_LIBEXECDIR);
	if (!slash)
		return;
	*slash = '\0';
	if (snprintf(probe, sizeof(probe), "%s/takt-cli.so", self) < PATH_MAX &&
	    access(probe, R_OK) == 0)
		takt_strcpy(ret, PATH_MAX, self);
}
