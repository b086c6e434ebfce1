/* SPDX-License-Identifier: Apache-2.0 */
/* See the header. */
#include "objects/trusted_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"

/* In a sticky folder others may add, and change nothing that is not theirs. */
static bool open_to_others(const struct stat *st)
{
	return (st->st_mode & (S_IWGRP | S_IWOTH)) &&
	       !(S_ISDIR(st->st_mode) && (st->st_mode & S_ISVTX));
}

static int check(const char *path, const struct stat *st, struct takt_err *err)
{
	const char *what = S_ISDIR(st->st_mode) ? "folder " : "";

	if (st->st_uid != 0 && st->st_uid != geteuid())
		return takt_err_set(err, -EPERM,
				    "%s'%s' belongs to another user (uid %u); it must be root's or "
				    "that of uid %u, who runs takt",
				    what, path, (unsigned)st->st_uid, (unsigned)geteuid());
	if (open_to_others(st))
		return takt_err_set(err, -EPERM, "%s'%s' may be written by others; chmod go-w it",
				    what, path);
	return 0;
}

static int check_folders(const char *path, struct takt_err *err)
{
	char folder[PATH_MAX];
	struct stat st;
	int rc = 0;

	takt_strcpy(folder, sizeof(folder), path);
	while (rc == 0 && folder[1]) {
		char *slash = strrchr(folder, '/');

		slash[slash == folder] = '\0';
		rc = stat(folder, &st) < 0 ? takt_err_set(err, -errno, "folder '%s'", folder)
					   : check(folder, &st, err);
	}
	return rc;
}

int takt_trusted_file(const char *path, char ret[PATH_MAX], struct takt_err *err)
{
	char real[PATH_MAX];
	struct stat st;
	int rc;

	if (path[0] != '/')
		return takt_err_set(err, -TAKT_E_USAGE, "'%s' is not an absolute path", path);
	if (!realpath(path, real) || stat(real, &st) < 0)
		return takt_err_set(err, errno == ENOENT ? -TAKT_E_NOT_FOUND : -errno,
				    "there is no file '%s' that could be read", path);
	if (!S_ISREG(st.st_mode))
		return takt_err_set(err, -EPERM, "'%s' is not a file", path);
	rc = check(real, &st, err);
	if (rc == 0)
		rc = check_folders(real, err);
	if (rc == 0)
		takt_strcpy(ret, PATH_MAX, real);
	return rc;
}
