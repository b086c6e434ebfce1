/* SPDX-License-Identifier: Apache-2.0 */
/* See twin_guard.h. */
#include "twin_guard.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool twin_guard_real_driver(void)
{
	char text[512];
	ssize_t n;
	int fd = open("/proc/driver/nvidia/version", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	return !strstr(text, "TWIN");
}

/* Is `dir` (of length n) one of the colon-separated entries of `list`? */
static bool lists(const char *list, const char *dir, size_t n)
{
	while (list && *list) {
		size_t entry = strcspn(list, ":");
		if (entry == n && strncmp(list, dir, n) == 0)
			return true;
		list += entry + (list[entry] == ':');
	}
	return false;
}

bool twin_guard_forced(const char *library_path)
{
	const char *force = secure_getenv("TAKT_TWIN_FORCE");
	const char *name = library_path ? strrchr(library_path, '/') : NULL;

	if (!force || strcmp(force, "1") != 0 || !name || library_path[0] != '/')
		return false;
	return !lists(secure_getenv("LD_LIBRARY_PATH"), library_path,
		      (size_t)(name - library_path));
}
