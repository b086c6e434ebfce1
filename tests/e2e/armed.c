/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stands in for one of takt's helper programs and becomes it at once: named DIRECTORY/takt-shim it
 * executes DIRECTORY/real/takt-shim with the same arguments. When the file DIRECTORY/arm.takt-shim
 * exists, exactly one process takes it away and goes on with TAKT_CRASH_AT set to what it holds. So
 * a test kills one process of a kind at a named place while the others live.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	MAX_POINT = 96
};

/* Who renames it has it: the kernel lets only one. */
static void take_arms(const char *dir, const char *name)
{
	char from[PATH_MAX], to[PATH_MAX], point[MAX_POINT] = "";
	ssize_t n;
	int fd;

	snprintf(from, sizeof(from), "%s/arm.%s", dir, name);
	snprintf(to, sizeof(to), "%s/taken.%s", dir, name);
	if (rename(from, to) < 0)
		return;
	fd = open(to, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, point, sizeof(point) - 1);
	if (fd >= 0)
		close(fd);
	if (n > 0)
		setenv("TAKT_CRASH_AT", point, 1);
}

int main(int argc, char **argv)
{
	char self[PATH_MAX / 2] = "", real[PATH_MAX], *name;
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	name = n > 0 ? strrchr(self, '/') : NULL;
	if (!name)
		return 127;
	*name++ = '\0';
	unsetenv("TAKT_CRASH_AT");
	take_arms(self, name);
	snprintf(real, sizeof(real), "%s/real/%s", self, name);
	execv(real, argv);
	fprintf(stderr, "armed: %s: %s\n", real, strerror(errno));
	return 127;
}
