/* SPDX-License-Identifier: Apache-2.0 */
#include "health/rooted.h"

#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool join(const char *root, const char *path, char ret[PATH_MAX])
{
	int n = snprintf(ret, PATH_MAX, "%s%s", root, path);

	return n > 0 && n < PATH_MAX;
}

size_t takt_rooted_bytes(const char *root, const char *path, void *ret, size_t size)
{
	char full[PATH_MAX];
	size_t len = 0;
	ssize_t n = 0;
	int fd = join(root, path, full) ? open(full, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;

	if (fd < 0)
		return 0;
	while (len < size && (n = read(fd, (char *)ret + len, size - len)) > 0)
		len += (size_t)n;
	close(fd);
	return len;
}

bool takt_rooted_text(const char *root, const char *path, char *ret, size_t size)
{
	size_t len = takt_rooted_bytes(root, path, ret, size - 1);

	ret[len] = '\0';
	return len > 0;
}

bool takt_rooted_line(const char *root, const char *path, char *ret, size_t size)
{
	bool found = takt_rooted_text(root, path, ret, size);

	ret[strcspn(ret, "\n")] = '\0';
	return found;
}

bool takt_rooted_exists(const char *root, const char *path)
{
	char full[PATH_MAX];
	struct stat st;

	return join(root, path, full) && lstat(full, &st) == 0;
}

bool takt_rooted_link(const char *root, const char *path, char *ret, size_t size)
{
	char full[PATH_MAX];
	ssize_t n = join(root, path, full) ? readlink(full, ret, size - 1) : -1;

	if (n < 0)
		return false;
	ret[n] = '\0';
	return true;
}

void takt_rooted_glob(const char *root, const char *pattern, takt_rooted_each *each, void *ctx)
{
	char full[PATH_MAX];
	glob_t found;

	if (!join(root, pattern, full) || glob(full, 0, NULL, &found) != 0)
		return;
	for (size_t i = 0; i < found.gl_pathc; i++)
		each(ctx, found.gl_pathv[i] + strlen(root));
	globfree(&found);
}

const char *takt_path_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}
