/* SPDX-License-Identifier: Apache-2.0 */
/* The few files of cgroup v2 that jobs need. */
#include "launch/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/sys.h"

#define CGROUP_MOUNT "/sys/fs/cgroup"

enum {
	PATH_LEN = 512,
	PROCS_MAX = 16 * 1024 * 1024,
	CONTROL_MAX = 4096,
};

/* The part behind "0::" in /proc/self/cgroup, without its newline; NULL when there is none. */
static const char *own_path(char *text)
{
	char *line = strncmp(text, "0::", 3) == 0 ? text : strstr(text, "\n0::");

	if (!line)
		return NULL;
	line = strchr(line, ':') + 2;
	line[strcspn(line, "\n")] = '\0';
	return strcmp(line, "/") == 0 ? "" : line;
}

bool takt_cgroup_is_v2(void)
{
	struct statfs fs;

	return statfs(CGROUP_MOUNT, &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC;
}

int takt_cgroup_root(char *ret, size_t size, struct takt_err *err)
{
	TAKT_CLEANUP(freep) char *text = NULL;
	const char *path;
	char full[PATH_LEN];
	size_t len;
	int rc;

	if (!takt_cgroup_is_v2())
		return takt_err_set(err, -TAKT_E_UNSUPPORTED, "no cgroup v2 at '%s'", CGROUP_MOUNT);
	rc = takt_file_read(takt_sys_real(), AT_FDCWD, "/proc/self/cgroup", 65536, &text, &len,
			    err);
	if (rc < 0)
		return rc;
	path = own_path(text);
	if (!path || snprintf(full, sizeof(full), "%s%s", CGROUP_MOUNT, path) >= (int)sizeof(full))
		return takt_err_set(err, -TAKT_E_UNSUPPORTED, "own cgroup not found");
	if (access(full, W_OK) < 0)
		return takt_err_set(err, -TAKT_E_UNSUPPORTED, "cgroup '%s' is not delegated to us",
				    full);
	if (!takt_strcpy(ret, size, full))
		return takt_err_set(err, -ENAMETOOLONG, "cgroup '%s'", full);
	return 0;
}

int takt_cgroup_make(const char *path, struct takt_err *err)
{
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		return takt_err_set(err, -errno, "make cgroup '%s'", path);
	return 0;
}

int takt_cgroup_write(const char *path, const char *control, const char *text)
{
	char full[PATH_LEN];
	ssize_t put;
	int fd, rc;

	if (snprintf(full, sizeof(full), "%s/%s", path, control) >= (int)sizeof(full))
		return -ENAMETOOLONG;
	fd = open(full, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	put = write(fd, text, strlen(text));
	rc = put < 0 ? -errno : 0;
	close(fd);
	return rc;
}

int takt_cgroup_number(const char *path, const char *control, const char *key, uint64_t *ret)
{
	TAKT_CLEANUP(freep) char *text = NULL;
	unsigned long long number;
	size_t len, key_len = strlen(key);
	char full[PATH_LEN];
	char *save = NULL;
	int rc;

	if (snprintf(full, sizeof(full), "%s/%s", path, control) >= (int)sizeof(full))
		return -ENAMETOOLONG;
	rc = takt_file_read(takt_sys_real(), AT_FDCWD, full, CONTROL_MAX, &text, &len, NULL);
	if (rc < 0)
		return rc;
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (strncmp(line, key, key_len) != 0 || (key_len && line[key_len] != ' '))
			continue;
		if (takt_parse_u64(line + key_len + (key_len > 0), 0, UINT64_MAX, &number) < 0)
			return -ERANGE;
		*ret = number;
		return 0;
	}
	return -ENOENT;
}

int takt_cgroup_enter(const char *path, int32_t pid, struct takt_err *err)
{
	char text[16];
	int rc;

	snprintf(text, sizeof(text), "%" PRId32, pid);
	rc = takt_cgroup_write(path, "cgroup.procs", text);
	return rc < 0 ? takt_err_set(err, rc, "enter cgroup '%s'", path) : 0;
}

int takt_cgroup_kill(const char *path)
{
	return takt_cgroup_write(path, "cgroup.kill", "1");
}

int takt_cgroup_remove(const char *path)
{
	return rmdir(path) < 0 && errno != ENOENT ? -errno : 0;
}

int takt_cgroup_each(const char *path, int (*each)(void *ctx, int32_t pid), void *ctx)
{
	TAKT_CLEANUP(freep) char *text = NULL;
	char full[PATH_LEN];
	unsigned long long pid;
	char *save = NULL;
	size_t len;
	int rc;

	if (snprintf(full, sizeof(full), "%s/cgroup.procs", path) >= (int)sizeof(full))
		return -ENAMETOOLONG;
	rc = takt_file_read(takt_sys_real(), AT_FDCWD, full, PROCS_MAX, &text, &len, NULL);
	if (rc == -ENOENT || rc == -ENODEV)
		return 0;
	for (char *line = rc < 0 ? NULL : strtok_r(text, "\n", &save); rc == 0 && line;
	     line = strtok_r(NULL, "\n", &save))
		if (takt_parse_u64(line, 1, INT32_MAX, &pid) == 0)
			rc = each(ctx, (int32_t)pid);
	return rc;
}
