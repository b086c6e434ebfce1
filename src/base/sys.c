/* SPDX-License-Identifier: Apache-2.0 */
/* The real world: each entry is one system call, EINTR retried, errno turned into a return value.
 */
#include "base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

/* Evaluates `call` until it is not interrupted; yields its value or -errno. */
#define RETRY(type, call)                             \
	do {                                          \
		type got_;                            \
		do {                                  \
			got_ = (call);                \
		} while (got_ < 0 && errno == EINTR); \
		return got_ < 0 ? -errno : got_;      \
	} while (0)

static int real_openat(const struct takt_sys *self, int dirfd, const char *path, int flags,
		       mode_t mode)
{
	RETRY(int, openat(dirfd, path, flags, mode));
}

/* Linux releases the descriptor even when close is interrupted: a second try could hit another's.
 */
static int real_close(const struct takt_sys *self, int fd)
{
	return close(fd) < 0 && errno != EINTR ? -errno : 0;
}

static ssize_t real_pread(const struct takt_sys *self, int fd, void *buf, size_t n, off_t at)
{
	RETRY(ssize_t, pread(fd, buf, n, at));
}

static ssize_t real_pwrite(const struct takt_sys *self, int fd, const void *buf, size_t n, off_t at)
{
	RETRY(ssize_t, pwrite(fd, buf, n, at));
}

static int real_ftruncate(const struct takt_sys *self, int fd, off_t size)
{
	RETRY(int, ftruncate(fd, size));
}

static int real_fallocate(const struct takt_sys *self, int fd, off_t size)
{
	int rc;

	do {
		rc = posix_fallocate(fd, 0, size);
	} while (rc == EINTR);
	return -rc;
}

static int real_punch(const struct takt_sys *self, int fd, off_t from, off_t size)
{
	RETRY(int, fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, from, size));
}

static int real_fsync(const struct takt_sys *self, int fd)
{
	RETRY(int, fsync(fd));
}

static int real_fdatasync(const struct takt_sys *self, int fd)
{
	RETRY(int, fdatasync(fd));
}

static int real_fstat(const struct takt_sys *self, int fd, struct stat *ret)
{
	RETRY(int, fstat(fd, ret));
}

static int real_fstatat(const struct takt_sys *self, int dirfd, const char *path, struct stat *ret)
{
	RETRY(int, fstatat(dirfd, path, ret, 0));
}

static int real_mkdirat(const struct takt_sys *self, int dirfd, const char *path, mode_t mode)
{
	RETRY(int, mkdirat(dirfd, path, mode));
}

static int real_renameat(const struct takt_sys *self, int dirfd, const char *from, const char *to)
{
	RETRY(int, renameat(dirfd, from, dirfd, to));
}

static int real_unlinkat(const struct takt_sys *self, int dirfd, const char *path, int flags)
{
	RETRY(int, unlinkat(dirfd, path, flags));
}

static int real_flock(const struct takt_sys *self, int fd, int operation)
{
	RETRY(int, flock(fd, operation));
}

/* These three clocks exist on every kernel that runs the rest of takt: no failure to report. */
static int64_t read_clock(clockid_t id)
{
	struct timespec ts = {0};

	clock_gettime(id, &ts);
	return (int64_t)ts.tv_sec * (int64_t)TAKT_NS_PER_S + ts.tv_nsec;
}

static uint64_t real_mono_ns(const struct takt_sys *self)
{
	return (uint64_t)read_clock(CLOCK_MONOTONIC);
}

static uint64_t real_boot_ns(const struct takt_sys *self)
{
	return (uint64_t)read_clock(CLOCK_BOOTTIME);
}

static int64_t real_wall_ns(const struct takt_sys *self)
{
	return read_clock(CLOCK_REALTIME);
}

static const struct takt_sys real = {
	.openat = real_openat,
	.close = real_close,
	.pread = real_pread,
	.pwrite = real_pwrite,
	.ftruncate = real_ftruncate,
	.fallocate = real_fallocate,
	.punch = real_punch,
	.fsync = real_fsync,
	.fdatasync = real_fdatasync,
	.fstat = real_fstat,
	.fstatat = real_fstatat,
	.mkdirat = real_mkdirat,
	.renameat = real_renameat,
	.unlinkat = real_unlinkat,
	.flock = real_flock,
	.mono_ns = real_mono_ns,
	.boot_ns = real_boot_ns,
	.wall_ns = real_wall_ns,
};

const struct takt_sys *takt_sys_real(void)
{
	return &real;
}
