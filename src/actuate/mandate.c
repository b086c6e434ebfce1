/* SPDX-License-Identifier: Apache-2.0 */
/* Lock and epoch. */
#include "actuate/mandate.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/str.h"

int takt_mandate_init(struct takt_mandate *mandate, const struct takt_sys *sys,
		      const char *lock_path, struct takt_err *err)
{
	mandate->sys = sys;
	mandate->journal = NULL;
	mandate->lock_fd = -1;
	mandate->held = false;
	mandate->mine = (struct takt_journal_holder){0};
	if (!takt_strcpy(mandate->lock_path, sizeof(mandate->lock_path), lock_path))
		return takt_err_set(err, -ENAMETOOLONG, "lock file '%.64s...'", lock_path);
	pthread_mutex_init(&mandate->mutex, NULL);
	return 0;
}

/* Whether the path still leads to the file that is open as fd. */
static bool same_file(const struct takt_sys *sys, const char *path, int fd)
{
	struct stat named, open;

	return sys->fstatat(sys, AT_FDCWD, path, &named) == 0 && sys->fstat(sys, fd, &open) == 0 &&
	       named.st_dev == open.st_dev && named.st_ino == open.st_ino;
}

int takt_mandate_lock(struct takt_mandate *mandate, struct takt_err *err)
{
	const struct takt_sys *sys = mandate->sys;
	int fd, rc;

	fd = sys->openat(sys, AT_FDCWD, mandate->lock_path,
			 O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return takt_err_set(err, fd, "open lock file '%s'", mandate->lock_path);
	rc = sys->flock(sys, fd, LOCK_EX | LOCK_NB);
	if (rc == 0 && !same_file(sys, mandate->lock_path, fd))
		rc = -EWOULDBLOCK;
	if (rc == 0) {
		pthread_mutex_lock(&mandate->mutex);
		mandate->lock_fd = fd;
		pthread_mutex_unlock(&mandate->mutex);
		return 0;
	}
	(void)sys->close(sys, fd);
	if (rc == -EWOULDBLOCK)
		return takt_err_set(err, -TAKT_E_BUSY, "the right to set clocks (lock '%s')",
				    mandate->lock_path);
	return takt_err_set(err, rc, "lock '%s'", mandate->lock_path);
}

int takt_mandate_begin(struct takt_mandate *mandate, struct takt_journal *journal, const char *name,
		       struct takt_err *err)
{
	struct takt_journal_holder holder = {.pid = getpid()};
	int rc;

	takt_strcpy(holder.name, sizeof(holder.name), name);
	rc = takt_journal_raise_epoch(journal, holder, err);
	if (rc < 0) {
		takt_mandate_release(mandate);
		return rc;
	}
	pthread_mutex_lock(&mandate->mutex);
	mandate->journal = journal;
	mandate->mine = journal->holder;
	mandate->held = true;
	pthread_mutex_unlock(&mandate->mutex);
	return 0;
}

static bool still_mine(const struct takt_mandate *mandate)
{
	struct takt_journal_holder holder;

	return mandate->held && same_file(mandate->sys, mandate->lock_path, mandate->lock_fd) &&
	       takt_journal_read_holder(mandate->journal, &holder) == 0 &&
	       holder.epoch == mandate->mine.epoch && holder.pid == mandate->mine.pid;
}

int takt_mandate_check(void *opaque)
{
	struct takt_mandate *mandate = opaque;
	bool mine;

	pthread_mutex_lock(&mandate->mutex);
	mine = still_mine(mandate);
	pthread_mutex_unlock(&mandate->mutex);
	return mine ? 0 : -TAKT_E_STALE;
}

void takt_mandate_release(struct takt_mandate *mandate)
{
	pthread_mutex_lock(&mandate->mutex);
	mandate->held = false;
	if (mandate->lock_fd >= 0)
		(void)mandate->sys->close(mandate->sys, mandate->lock_fd);
	mandate->lock_fd = -1;
	pthread_mutex_unlock(&mandate->mutex);
}

void takt_mandate_fini(struct takt_mandate *mandate)
{
	takt_mandate_release(mandate);
	pthread_mutex_destroy(&mandate->mutex);
}
