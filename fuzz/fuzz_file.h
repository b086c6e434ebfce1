/* SPDX-License-Identifier: Apache-2.0 */
/* One file in memory for parsers that read files: whatever name is opened is it, or its folder. */
#ifndef TAKT_FUZZ_FILE_H
#define TAKT_FUZZ_FILE_H

#include <errno.h>
#include <fcntl.h>

#include "base/sys.h"
#include "fuzz_input.h"

enum {
	FUZZ_FILE_ROOM = 2 << 20,
	FUZZ_FILE_FD = 1000,
	FUZZ_FOLDER_FD,
};

static struct {
	uint8_t bytes[FUZZ_FILE_ROOM];
	size_t size;
	bool read_only; /* whoever writes breaks a promise */
	int open;
} fuzz_file;

static int file_openat(const struct takt_sys *self, int dirfd, const char *path, int flags,
		       mode_t mode)
{
	(void)self, (void)dirfd, (void)path, (void)mode;
	if (flags & O_DIRECTORY)
		return FUZZ_FOLDER_FD;
	fuzz_file.open++;
	return FUZZ_FILE_FD;
}

static int file_close(const struct takt_sys *self, int fd)
{
	(void)self;
	fuzz_file.open -= fd == FUZZ_FILE_FD;
	return 0;
}

static ssize_t file_pread(const struct takt_sys *self, int fd, void *buf, size_t n, off_t at)
{
	size_t from = (size_t)at < fuzz_file.size ? (size_t)at : fuzz_file.size;

	(void)self;
	fuzz_expect(fd == FUZZ_FILE_FD && at >= 0);
	n = n < fuzz_file.size - from ? n : fuzz_file.size - from;
	memcpy(buf, fuzz_file.bytes + from, n);
	return (ssize_t)n;
}

static int file_resize(const struct takt_sys *self, int fd, off_t size)
{
	(void)self;
	fuzz_expect(fd == FUZZ_FILE_FD && size >= 0 && size <= FUZZ_FILE_ROOM);
	fuzz_expect(!fuzz_file.read_only);
	if ((size_t)size > fuzz_file.size)
		memset(fuzz_file.bytes + fuzz_file.size, 0, (size_t)size - fuzz_file.size);
	fuzz_file.size = (size_t)size;
	return 0;
}

static int file_fallocate(const struct takt_sys *self, int fd, off_t size)
{
	return (size_t)size > fuzz_file.size ? file_resize(self, fd, size) : 0;
}

static ssize_t file_pwrite(const struct takt_sys *self, int fd, const void *buf, size_t n, off_t at)
{
	fuzz_expect(!fuzz_file.read_only);
	(void)file_fallocate(self, fd, at + (off_t)n);
	memcpy(fuzz_file.bytes + at, buf, n);
	return (ssize_t)n;
}

static int file_sync(const struct takt_sys *self, int fd)
{
	(void)self, (void)fd;
	return 0;
}

static int file_fstat(const struct takt_sys *self, int fd, struct stat *ret)
{
	(void)self, (void)fd;
	*ret = (struct stat){.st_mode = S_IFREG | 0600, .st_size = (off_t)fuzz_file.size};
	return 0;
}

/* Moved aside: there is an empty one of its name then. */
static int file_renameat(const struct takt_sys *self, int dirfd, const char *from, const char *to)
{
	(void)self, (void)dirfd, (void)from, (void)to;
	fuzz_file.size = 0;
	return 0;
}

static const struct takt_sys fuzz_sys = {
	.openat = file_openat,
	.close = file_close,
	.pread = file_pread,
	.pwrite = file_pwrite,
	.ftruncate = file_resize,
	.fallocate = file_fallocate,
	.fsync = file_sync,
	.fdatasync = file_sync,
	.fstat = file_fstat,
	.renameat = file_renameat,
};

static inline void fuzz_file_fill(const uint8_t *data, size_t size)
{
	fuzz_file.size = size < FUZZ_FILE_ROOM ? size : FUZZ_FILE_ROOM;
	if (fuzz_file.size)
		memcpy(fuzz_file.bytes, data, fuzz_file.size);
	fuzz_file.open = 0;
	fuzz_file.read_only = false;
}

#endif
