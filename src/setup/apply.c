/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All of a plan or nothing of it. What stands in an item's place is kept under another name of the
 * same folder, which needs no room on the disk, until the whole is kept or undone.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sys.h"
#include "setup/setup_impl.h"

enum {
	SPARE_BYTES = 256 * 1024, /* for names and folders */
	SPARE_FILES = 16,
};

/* Paths of a plan leave room for it. */
static void old_name(const char *path, char ret[TAKT_SETUP_PATH])
{
	snprintf(ret, TAKT_SETUP_PATH, "%.480s.takt-init-old", path);
}

const char *const takt_setup_fates[] = {"make", "same", "renew", "replace", "drop", "leave"};

/* The folder itself, or the nearest above it that is there. */
static int open_nearest(const char *root, const char *path, struct takt_setup_spot *ret,
			char at[TAKT_SETUP_PATH])
{
	int rc;

	takt_strcpy(at, TAKT_SETUP_PATH, path);
	while ((rc = takt_setup_open(root, at, ret)) == -ENOENT && strrchr(at, '/') != at)
		*strrchr(at, '/') = '\0';
	if (strrchr(at, '/') != at)
		*strrchr(at, '/') = '\0';
	else
		at[1] = '\0';
	return rc;
}

static int check_room(int dirfd, const char *folder, uint64_t bytes, size_t files,
		      struct takt_err *err)
{
	struct statvfs fs;

	if (fstatvfs(dirfd, &fs) < 0)
		return takt_err_set(err, -errno, "look at '%s'", folder);
	if (fs.f_flag & ST_RDONLY)
		return takt_err_set(err, -EROFS, "write in '%s'", folder);
	if (fs.f_bavail * fs.f_frsize < bytes + SPARE_BYTES)
		return takt_err_set(err, -ENOSPC, "'%s' has too little room: %llu KiB are needed",
				    folder, (unsigned long long)(bytes + SPARE_BYTES) / 1024);
	if (fs.f_files && fs.f_favail < files + SPARE_FILES)
		return takt_err_set(err, -ENOSPC, "'%s' has no room for more files", folder);
	return 0;
}

static int check_item(const struct takt_setup_plan *plan, const struct takt_setup_item *item,
		      uint64_t bytes, struct takt_err *err)
{
	struct takt_setup_spot spot;
	char folder[TAKT_SETUP_PATH];
	struct stat st;
	int rc = open_nearest(plan->root, item->path, &spot, folder);

	if (rc < 0)
		return takt_err_set(err, rc, "a folder of '%s'", item->path);
	if (faccessat(spot.dirfd, ".", W_OK | X_OK, AT_EACCESS) < 0)
		rc = takt_err_set(err, -errno, "write in '%s'", folder);
	if (rc == 0)
		rc = check_room(spot.dirfd, folder, bytes, plan->items.len, err);
	if (rc == 0 && item->kind != TAKT_SETUP_FOLDER && item->fate != TAKT_SETUP_MAKE &&
	    fstatat(spot.dirfd, spot.name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))
		rc = takt_err_set(err, -EISDIR, "'%s'", item->path);
	close(spot.dirfd);
	return rc;
}

static bool is_work(const struct takt_setup_item *item)
{
	return item->fate != TAKT_SETUP_SAME && item->fate != TAKT_SETUP_LEAVE;
}

int takt_setup_check(struct takt_setup_plan *plan, struct takt_err *err)
{
	uint64_t bytes = 0;
	int rc = 0;

	plan->changes = plan->killed; /* its record says that it is under way */
	TAKT_VEC_EACH (item, &plan->items) {
		bytes += item->text ? strlen(item->text) : 0;
		plan->changes = plan->changes || is_work(item);
	}
	TAKT_VEC_EACH (item, &plan->items)
		if (rc == 0 && is_work(item))
			rc = check_item(plan, item, bytes, err);
	return rc;
}

bool takt_setup_touches(const struct takt_setup_plan *plan, const char *path)
{
	TAKT_VEC_EACH (item, &plan->items)
		if (strcmp(item->path, path) == 0 && is_work(item))
			return true;
	return false;
}

/* What is there gets a second name; the first then takes what is new, in one step. */
static int keep_aside(const struct takt_setup_spot *spot, const char *aside, bool ours)
{
	const char *name = strrchr(aside, '/') + 1;

	if (ours)
		(void)unlinkat(spot->dirfd, name, 0); /* of one that was killed */
	return linkat(spot->dirfd, spot->name, spot->dirfd, name, 0) < 0 ? -errno : 0;
}

static int put(const struct takt_setup_spot *spot, const struct takt_setup_item *item,
	       struct takt_err *err)
{
	if (item->kind == TAKT_SETUP_FILE)
		return takt_file_write_durable(takt_sys_real(), spot->dirfd, spot->name, item->text,
					       strlen(item->text), 0644, err);
	if (item->kind == TAKT_SETUP_FOLDER ? mkdirat(spot->dirfd, spot->name, 0755) < 0
					    : symlinkat(item->text, spot->dirfd, spot->name) < 0)
		return takt_err_set(err, -errno, "make '%s'", item->path);
	if (fsync(spot->dirfd) < 0)
		return takt_err_set(err, -errno, "sync the folder of '%s'", item->path);
	return 0;
}

static int make(const struct takt_setup_plan *plan, struct takt_setup_item *item,
		struct takt_err *err)
{
	bool ours = item->fate == TAKT_SETUP_RENEW || item->half;
	struct takt_setup_spot spot;
	int rc = takt_setup_open(plan->root, item->path, &spot);

	if (rc < 0)
		return takt_err_set(err, rc, "the folder of '%s'", item->path);
	if (item->fate == TAKT_SETUP_RENEW)
		old_name(item->path, item->aside);
	else if (item->fate == TAKT_SETUP_REPLACE)
		takt_strcpy(item->aside, sizeof(item->aside), item->copy);
	if (item->aside[0]) {
		rc = keep_aside(&spot, item->aside, ours);
		if (rc < 0)
			takt_err_set(err, rc, "keep '%s' as '%s'", item->path, item->aside);
	}
	item->done = rc == 0;
	if (rc == 0)
		rc = put(&spot, item, err);
	close(spot.dirfd);
	return rc;
}

/* Its place is what it was before; the folder of it may be full. */
static int drop(const struct takt_setup_plan *plan, struct takt_setup_item *item,
		struct takt_err *err)
{
	int rc;

	if (item->kind == TAKT_SETUP_FOLDER)
		return 0; /* when all of it is kept */
	old_name(item->path, item->aside);
	rc = takt_setup_rename(plan->root, item->path, item->aside);
	item->done = rc == 0;
	if (rc == 0 && item->copy[0]) {
		rc = takt_setup_rename(plan->root, item->copy, item->path);
		if (rc == -ENOENT)
			rc = 0; /* somebody has thrown it away */
	}
	return rc < 0 ? takt_err_set(err, rc, "take '%s' away", item->path) : 0;
}

static int apply(const struct takt_setup_plan *plan, struct takt_setup_item *item,
		 struct takt_err *err)
{
	if (!is_work(item) || item->done)
		return 0;
	return item->fate == TAKT_SETUP_DROP ? drop(plan, item, err) : make(plan, item, err);
}

/* Of the record: the folders down to it are the first items of a plan. */
static int lock(struct takt_setup_plan *plan, struct takt_err *err)
{
	struct takt_setup_spot spot;
	int rc = takt_setup_open(plan->root, plan->record, &spot);

	if (rc < 0)
		return takt_err_set(err, rc, "the folder of '%s'", plan->record);
	plan->lock_fd = spot.dirfd;
	if (flock(spot.dirfd, LOCK_EX | LOCK_NB) < 0)
		return takt_err_set(err, -TAKT_E_BUSY, "another takt init is at work");
	return 0;
}

static int write_record(const struct takt_setup_plan *plan, bool begun, struct takt_err *err)
{
	struct takt_str text = TAKT_STR(TAKT_SETUP_MAX_TEXT);
	int rc = takt_setup_record_text(plan, begun, &text);

	rc = rc < 0 ? takt_err_set(err, rc, "no memory for the record")
		    : takt_setup_record_write(plan, &text, err);
	takt_str_fini(&text);
	return rc;
}

/* What will be made is on record before it is. */
static int begin_record(struct takt_setup_plan *plan, struct takt_err *err)
{
	char aside[TAKT_SETUP_PATH];
	struct takt_setup_spot spot;
	int rc = 0;

	old_name(plan->record, aside);
	if (plan->again) {
		rc = takt_setup_open(plan->root, plan->record, &spot);
		if (rc == 0) {
			rc = keep_aside(&spot, aside, true);
			close(spot.dirfd);
		}
	}
	if (rc < 0)
		return takt_err_set(err, rc, "keep '%s'", plan->record);
	plan->recorded = true;
	return write_record(plan, true, err);
}

/* Whether it is one of those that the record lies in. */
static bool holds_record(const struct takt_setup_plan *plan, const struct takt_setup_item *item)
{
	size_t len = strlen(item->path);

	return item->kind == TAKT_SETUP_FOLDER && strncmp(plan->record, item->path, len) == 0 &&
	       plan->record[len] == '/';
}

/* The folders of the record come before it, everything else behind it. */
static int begin(struct takt_setup_plan *plan, struct takt_err *err)
{
	int rc = 0;

	TAKT_VEC_EACH (item, &plan->items)
		if (rc == 0 && item->fate == TAKT_SETUP_MAKE && holds_record(plan, item))
			rc = apply(plan, item, err);
	if (rc == 0)
		rc = lock(plan, err);
	if (rc == 0)
		rc = begin_record(plan, err);
	TAKT_VEC_EACH (item, &plan->items)
		if (rc == 0)
			rc = apply(plan, item, err);
	return rc;
}

int takt_setup_begin(struct takt_setup_plan *plan, struct takt_err *err)
{
	struct takt_err more;
	int rc = begin(plan, err);

	if (rc < 0 && takt_setup_undo(plan, &more) < 0)
		takt_err_set(err, rc, "%.100s; and it could not be undone: %.100s", err->msg,
			     more.msg);
	return rc;
}

static bool is_gone(int rc)
{
	return rc == 0 || rc == -ENOENT;
}

static void drop_beside(const struct takt_setup_plan *plan, const char *path)
{
	char beside[TAKT_SETUP_PATH];

	old_name(path, beside);
	(void)takt_setup_unlink(plan->root, beside, false);
	snprintf(beside, sizeof(beside), "%.480s.tmp", path); /* of takt_file_write_durable */
	(void)takt_setup_unlink(plan->root, beside, false);
}

/* What was kept until here, also by one who was killed. */
static void drop_asides(const struct takt_setup_plan *plan)
{
	drop_beside(plan, plan->record);
	TAKT_VEC_EACH (item, &plan->items) {
		if (item->kind != TAKT_SETUP_FOLDER)
			drop_beside(plan, item->path);
		if (item->half && item->fate != TAKT_SETUP_REPLACE)
			(void)takt_setup_unlink(plan->root, item->copy, false);
	}
}

void takt_setup_drop_folders(struct takt_setup_plan *plan)
{
	TAKT_VEC_EACH (item, &plan->items) {
		if (item->kind != TAKT_SETUP_FOLDER ||
		    (item->fate != TAKT_SETUP_DROP && item->fate != TAKT_SETUP_LEAVE))
			continue;
		item->fate = is_gone(takt_setup_unlink(plan->root, item->path, true))
				     ? TAKT_SETUP_DROP
				     : TAKT_SETUP_LEAVE;
	}
}

int takt_setup_keep(struct takt_setup_plan *plan, struct takt_err *err)
{
	int rc = plan->removal ? takt_setup_unlink(plan->root, plan->record, false)
			       : write_record(plan, false, err);

	if (plan->removal && !is_gone(rc))
		takt_err_set(err, rc, "remove '%s'", plan->record);
	if (!is_gone(rc))
		return rc;
	drop_asides(plan);
	takt_setup_drop_folders(plan);
	return 0;
}

static int take_back(const struct takt_setup_plan *plan, const struct takt_setup_item *item)
{
	int rc;

	if (!item->done)
		return 0;
	if (!item->aside[0])
		return takt_setup_unlink(plan->root, item->path, item->kind == TAKT_SETUP_FOLDER);
	if (item->fate == TAKT_SETUP_DROP && item->copy[0])
		(void)takt_setup_rename(plan->root, item->path, item->copy);
	rc = takt_setup_rename(plan->root, item->aside, item->path);
	/* Where nothing took its place both are names of one file, of which a rename removes none.
	 */
	(void)takt_setup_unlink(plan->root, item->aside, false);
	return rc;
}

static int put_record_back(struct takt_setup_plan *plan, struct takt_err *err)
{
	char aside[TAKT_SETUP_PATH];
	int rc;

	if (!plan->recorded)
		return 0;
	plan->recorded = false;
	old_name(plan->record, aside);
	rc = plan->again ? takt_setup_rename(plan->root, aside, plan->record)
			 : takt_setup_unlink(plan->root, plan->record, false);
	if (plan->again)
		(void)takt_setup_unlink(plan->root, aside, false);
	return is_gone(rc) ? 0 : takt_err_set(err, rc, "the record '%s'", plan->record);
}

/* The record goes when nothing is left that it lists but the folders that it lies in. */
int takt_setup_undo(struct takt_setup_plan *plan, struct takt_err *err)
{
	int rc = 0, one;

	for (int record = 0; record < 2; record++) {
		for (size_t i = plan->items.len; i-- > 0;) {
			struct takt_setup_item *item = &plan->items.at[i];

			if (holds_record(plan, item) != record)
				continue;
			one = take_back(plan, item);
			if (!is_gone(one) && rc == 0)
				rc = takt_err_set(err, one, "'%s'", item->path);
			item->done = false;
		}
		if (rc == 0 && !record)
			rc = put_record_back(plan, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}
