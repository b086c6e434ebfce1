/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the store's files are still the ones on disk. A database that was moved or removed under
 * a running daemon takes every write and reports it durable, and the next start finds another one,
 * or none; a lock that is gone lets a second daemon in. SQLite's file handles do not notice.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>

#include "store/store_impl.h"

static const char *const suffixes[TAKT_STORE_FILES] = {"", "-wal", "-shm", ".lock"};

/* 0 also where there is no such file. */
static int mark_of(const struct takt_store *store, size_t file, struct takt_store_mark *ret)
{
	char path[PATH_MAX];
	struct stat st;
	int rc;

	*ret = (struct takt_store_mark){.inode = 0};
	if (snprintf(path, sizeof(path), "%s%s", store->path, suffixes[file]) >= PATH_MAX)
		return -ENAMETOOLONG;
	rc = store->sys->fstatat(store->sys, AT_FDCWD, path, &st);
	if (rc == 0)
		*ret = (struct takt_store_mark){st.st_dev, st.st_ino};
	return rc == -ENOENT || rc == -ENOTDIR ? 0 : rc;
}

int takt_store_mark_files(struct takt_store *store, struct takt_err *err)
{
	for (size_t i = 0; i < TAKT_STORE_FILES; i++) {
		int rc = mark_of(store, i, &store->marks[i]);

		if (rc < 0)
			return takt_err_set(err, rc, "look at '%s%s'", store->path, suffixes[i]);
	}
	return 0;
}

/* What is written goes to the files that are open: the database is whole where it was moved to, and
 * a log that lost its name is copied back when the daemon ends. */
static int moved(const struct takt_store *store, size_t file, struct takt_err *err)
{
	return takt_err_set(err, -TAKT_E_MOVED,
			    "'%.100s%s' is not the file that takt has open: put it back, or stop "
			    "takt and %s",
			    store->path, suffixes[file],
			    file == 0 ? "use 'takt admin restore'" : "start it again");
}

int takt_store_look(const struct takt_store *store, struct takt_err *err)
{
	for (size_t i = 0; i < TAKT_STORE_FILES; i++) {
		const struct takt_store_mark *was = &store->marks[i];
		struct takt_store_mark now;
		int rc = was->inode ? mark_of(store, i, &now) : 0;

		if (rc < 0)
			return takt_err_set(err, rc, "look at '%s%s'", store->path, suffixes[i]);
		if (was->inode && (now.device != was->device || now.inode != was->inode))
			return moved(store, i, err);
	}
	return 0;
}
