/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is kept of the output of an attempt that is over. Its user may have kept its log or its
 * progress file open, by a process outside of the job, and go on writing; and logs have to go where
 * those of all jobs come to too much. Nothing is done in a directory that is somebody else's: what
 * has the name of a log there may be any file.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launch/attempt.h"
#include "launch/log_bound.h"

/* -EPERM: not ours to write to. */
static int open_kept(const struct takt_sys *sys, int dirfd, const char *name)
{
	int fd = sys->openat(sys, dirfd, name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
	struct stat st;
	int rc;

	if (fd < 0)
		return fd;
	rc = sys->fstat(sys, fd, &st);
	if (rc == 0 && (!S_ISREG(st.st_mode) || st.st_nlink != 1))
		rc = -EPERM;
	if (rc == 0)
		return fd;
	(void)sys->close(sys, fd);
	return rc;
}

static int open_directory(const struct takt_sys *sys, int jobs_dirfd, uint64_t job_id,
			  uint32_t attempt)
{
	int dirfd = takt_attempt_open(sys, jobs_dirfd, job_id, attempt, NULL);
	struct stat st;
	int rc;

	if (dirfd < 0)
		return dirfd;
	rc = sys->fstat(sys, dirfd, &st);
	if (rc == 0 && st.st_uid != 0 && st.st_uid != geteuid())
		rc = -EPERM;
	if (rc == 0)
		return dirfd;
	(void)sys->close(sys, dirfd);
	return rc;
}

static int bound_log(const struct takt_sys *sys, int dirfd, uint64_t limit)
{
	struct takt_output_cut cut = {0};
	int fd = open_kept(sys, dirfd, "log"), rc;

	if (fd < 0)
		return fd;
	rc = takt_log_bound(sys, fd, limit, &cut);
	(void)sys->close(sys, fd);
	return rc > 0 ? takt_attempt_record_cut(sys, dirfd, &cut, NULL) : rc;
}

int takt_attempt_bound_output(const struct takt_sys *sys, int jobs_dirfd, uint64_t job_id,
			      uint32_t attempt, uint64_t limit)
{
	int dirfd = open_directory(sys, jobs_dirfd, job_id, attempt), fd, rc;

	if (dirfd < 0)
		return dirfd;
	fd = open_kept(sys, dirfd, "progress");
	rc = fd < 0 ? fd : takt_progress_bound(sys, fd);
	if (fd >= 0)
		(void)sys->close(sys, fd);
	if (rc == -ENOENT)
		rc = 0;
	if (limit && rc == 0)
		rc = bound_log(sys, dirfd, limit);
	(void)sys->close(sys, dirfd);
	return rc;
}

/* All of it, and what lies behind its end; its size stays where files can have holes. */
static int give_back(const struct takt_sys *sys, int fd, off_t size)
{
	int holes = size > 0 ? sys->punch(sys, fd, 0, size) : 0;
	int rc = sys->ftruncate(sys, fd, 0);

	return rc == 0 && holes == 0 ? sys->ftruncate(sys, fd, size) : rc;
}

/* Before anything goes it is on record that it does. */
static int drop_log(const struct takt_sys *sys, int dirfd)
{
	struct takt_output_cut cut = {.limit = 1};
	int fd = open_kept(sys, dirfd, "log"), rc;
	struct stat st;

	if (fd < 0)
		return fd;
	rc = sys->fstat(sys, fd, &st);
	cut.to = rc == 0 && st.st_size > 0 ? (uint64_t)st.st_size : 0;
	if (rc == 0)
		rc = takt_attempt_record_cut(sys, dirfd, &cut, NULL);
	if (rc == 0)
		rc = give_back(sys, fd, st.st_size);
	(void)sys->close(sys, fd);
	return rc;
}

int takt_attempt_drop_output(const struct takt_sys *sys, int jobs_dirfd, uint64_t job_id,
			     uint32_t attempt)
{
	int dirfd = open_directory(sys, jobs_dirfd, job_id, attempt), rc;

	if (dirfd < 0)
		return dirfd;
	rc = drop_log(sys, dirfd);
	(void)sys->close(sys, dirfd);
	return rc;
}
