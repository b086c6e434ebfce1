/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A copy of the database once a day, so that one that is damaged or removed is not the end of what
 * was handed in: takt admin restore puts the newest good one in its place. Made by a thread (a
 * large database takes seconds), checked, and named only when it is whole; not where the disk has
 * little left. The first is made an hour after the first start.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/pace.h"
#include "base/str.h"
#include "daemon/backups.h"
#include "daemon/daemon.h"
#include "daemon/log.h"
#include "store/store_admin.h"

enum {
	NOTE = 7,
	DAY_S = 24 * 3600,
	FIRST_S = 3600,
	COPIES =
		3, /* of the database there has to be room for: one, the other while it is packed */
};

static const uint64_t look_ns = 10 * TAKT_NS_PER_S;
static const uint64_t spare_bytes = 64 << 20; /* is left free beside that */
/* One that could not be made. */
static const struct takt_pace retries = {60 * TAKT_NS_PER_S, 3600 * TAKT_NS_PER_S};

struct takt_daily_backup {
	char db[PATH_MAX], folder[PATH_MAX], made[PATH_MAX];
	const struct takt_sys *sys;
	pthread_t thread;
	bool runs;
	atomic_bool over, stop;
	int rc; /* the thread's, once over */
	struct takt_err err;
	struct takt_boot looked, retry_at;
	uint32_t failures;
};

int takt_daily_backup_new(struct takt_daemon *daemon, struct takt_err *err)
{
	const char *dir = daemon->config.state_dir;
	struct takt_daily_backup *backup = takt_zalloc(sizeof(*backup));

	if (!backup)
		return takt_err_set(err, -ENOMEM, "start");
	backup->sys = daemon->sys;
	daemon->daily_backup = backup;
	if (snprintf(backup->db, PATH_MAX, "%s/takt.db", dir) >= PATH_MAX ||
	    snprintf(backup->folder, PATH_MAX, "%s/backups", dir) >= PATH_MAX ||
	    snprintf(backup->made, PATH_MAX, "%s/backups/making", dir) >= PATH_MAX)
		return takt_err_set(err, -ENAMETOOLONG, "state_dir '%.80s...'", dir);
	return 0;
}

void takt_daily_backup_free(struct takt_daily_backup *backup)
{
	if (!backup)
		return;
	backup->stop = true;
	if (backup->runs)
		(void)pthread_join(backup->thread, NULL);
	takt_free(backup);
}

static int put_in_folder(struct takt_daily_backup *backup, struct takt_err *err)
{
	char name[TAKT_BACKUP_NAME];
	int dirfd = open(backup->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc;

	if (dirfd < 0)
		return takt_err_set(err, -errno, "open '%s'", backup->folder);
	takt_backup_name(takt_wall_now(backup->sys).ns / (int64_t)TAKT_NS_PER_S, name);
	rc = backup->sys->renameat(backup->sys, dirfd, "making", name);
	if (rc == 0)
		rc = backup->sys->fsync(backup->sys, dirfd);
	close(dirfd);
	return rc < 0 ? takt_err_set(err, rc, "name a backup in '%s'", backup->folder) : 0;
}

static void *make(void *arg)
{
	struct takt_daily_backup *backup = arg;
	const struct takt_store_file_look nothing = {.ctx = NULL};
	int64_t schema;
	uint64_t jobs;

	(void)unlink(backup->made); /* of one that was broken off */
	backup->rc =
		takt_store_file_backup_until(backup->db, backup->made, &backup->stop, &backup->err);
	if (backup->rc == 0)
		backup->rc =
			takt_store_file_check(backup->made, &schema, &jobs, &nothing, &backup->err);
	if (backup->rc == 0)
		backup->rc = put_in_folder(backup, &backup->err);
	if (backup->rc < 0)
		(void)unlink(backup->made);
	backup->over = true;
	return NULL;
}

static int check_room(const struct takt_daily_backup *backup, struct takt_err *err)
{
	struct statvfs fs;
	struct stat st;

	if (stat(backup->db, &st) < 0 || statvfs(backup->folder, &fs) < 0)
		return takt_err_set(err, -errno, "look at '%s'", backup->folder);
	if ((uint64_t)fs.f_bavail * fs.f_frsize < COPIES * (uint64_t)st.st_size + spare_bytes)
		return takt_err_set(err, -ENOSPC, "the disk of '%.100s' has little left",
				    backup->folder);
	return 0;
}

/* All signals blocked: they are the main thread's business. */
static int start(struct takt_daily_backup *backup, struct takt_err *err)
{
	sigset_t all, before;
	int rc = check_room(backup, err);

	if (rc < 0)
		return rc;
	backup->over = false;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&backup->thread, NULL, make, backup);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	backup->runs = rc == 0;
	return rc ? takt_err_set(err, -rc, "start a thread for the backup") : 0;
}

static void drop_old(const struct takt_daily_backup *backup, const struct takt_backups *backups,
		     uint32_t keep)
{
	char path[PATH_MAX];

	for (size_t i = keep; i < backups->list.len; i++)
		if (snprintf(path, sizeof(path), "%s/%s", backup->folder,
			     backups->list.at[i].name) < PATH_MAX)
			(void)unlink(path);
}

/* Tried again after a while; said once. */
static void failed(struct takt_daemon *daemon, const struct takt_err *err)
{
	struct takt_daily_backup *backup = daemon->daily_backup;
	char text[sizeof(daemon->notes[0])], why[200];

	snprintf(text, sizeof(text), "no backup of the database could be made: %s",
		 takt_err_text(err, why, sizeof(why)));
	if (strcmp(text, daemon->notes[NOTE]) != 0)
		takt_log(TAKT_LOG_WARNING, "%s", text);
	takt_strcpy(daemon->notes[NOTE], sizeof(daemon->notes[NOTE]), text);
	backup->retry_at = takt_boot_add(takt_boot_now(daemon->sys),
					 takt_pace_ns(&retries, backup->failures++));
}

static void take_result(struct takt_daemon *daemon)
{
	struct takt_daily_backup *backup = daemon->daily_backup;

	(void)pthread_join(backup->thread, NULL);
	backup->runs = false;
	if (backup->rc < 0) {
		failed(daemon, &backup->err);
		return;
	}
	backup->failures = 0;
	daemon->notes[NOTE][0] = '\0';
	takt_log(TAKT_LOG_INFO, "a backup of the database was made in '%s'", backup->folder);
}

/* By the newest one's name; before the first by when its folder was made. */
static bool is_due(const struct takt_daily_backup *backup, const struct takt_backups *backups,
		   int64_t now_s)
{
	struct stat st;

	if (backups->list.len > 0)
		return now_s - backups->list.at[0].at_s >= DAY_S;
	return stat(backup->folder, &st) == 0 && now_s - st.st_mtim.tv_sec >= FIRST_S;
}

static void look(struct takt_daemon *daemon, struct takt_boot now)
{
	struct takt_daily_backup *backup = daemon->daily_backup;
	struct takt_backups backups = {.list = TAKT_VEC_INIT(1)};
	struct takt_err err = {0};
	int rc = takt_mkdirs_durable(daemon->sys, backup->folder, 0700, &err);

	if (rc == 0)
		rc = takt_backups_read(daemon->config.state_dir, &backups, &err);
	if (rc == 0)
		drop_old(backup, &backups, daemon->config.backup_keep);
	/* Of a file that is not the open one there is nothing to keep; own_files.c says so. */
	if (rc == 0 && takt_store_look(daemon->store, NULL) == 0 && now.ns >= backup->retry_at.ns &&
	    is_due(backup, &backups, takt_wall_now(daemon->sys).ns / (int64_t)TAKT_NS_PER_S))
		rc = start(backup, &err);
	if (rc < 0)
		failed(daemon, &err);
	takt_backups_fini(&backups);
}

void takt_daily_backup_tick(struct takt_daemon *daemon)
{
	struct takt_daily_backup *backup = daemon->daily_backup;
	struct takt_boot now = takt_boot_now(daemon->sys);

	if (backup->looked.ns && now.ns - backup->looked.ns < look_ns)
		return;
	backup->looked = now;
	if (backup->runs && backup->over)
		take_result(daemon);
	if (!backup->runs && daemon->config.backup_keep > 0)
		look(daemon, now);
}
