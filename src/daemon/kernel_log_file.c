/* SPDX-License-Identifier: Apache-2.0 */
/* Reads lines, see the header. */
#include "daemon/kernel_log_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/mem.h"

enum {
	RECORD = 8192, /* longer than any record of the kernel's: it refuses to be read in part */
	TAIL = 64,
	MEM_MAJOR = 1, /* /dev/kmsg, by the kernel's list of devices */
	KMSG_MINOR = 11,
};

struct takt_kernel_log {
	char *path;
	int fd;		/* -1 = it cannot be read now */
	struct stat is; /* of fd */
	bool given;	/* it is our standard input: what is at the path says nothing of it */
	bool absent;	/* there was no file: all that will be in it is new */
	/* Of a file: where we are, and what stands before that unless somebody has cut it. */
	off_t offset;
	size_t tail_len;
	char tail[TAIL];
	size_t start, end; /* of what is in the buffer and was not handed out */
	char buffer[2 * RECORD];
	struct takt_err err; /* why it cannot be read; rc 0 = it can */
};

bool takt_kernel_log_is_file(const struct takt_kernel_log *log)
{
	return log->fd >= 0 && !S_ISCHR(log->is.st_mode);
}

static void go_to(struct takt_kernel_log *log, off_t offset)
{
	size_t len = offset < TAIL ? (size_t)offset : TAIL;
	ssize_t n = pread(log->fd, log->tail, len, offset - (off_t)len);

	log->offset = offset;
	log->tail_len = n > 0 ? (size_t)n : 0;
	log->start = log->end = 0;
}

/* A service that may not open the kernel's device has been given it as its standard input. */
static bool is_given(const char *path)
{
	struct stat in;

	return strcmp(path, "/dev/kmsg") == 0 && fstat(STDIN_FILENO, &in) == 0 &&
	       S_ISCHR(in.st_mode) && in.st_rdev == makedev(MEM_MAJOR, KMSG_MINOR);
}

static int open_path(const char *path, bool given)
{
	if (!given)
		return open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	(void)fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK);
	return fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
}

/* Takes what is at the path; false where that cannot be read, and what was open stays. */
static bool take(struct takt_kernel_log *log, bool whole)
{
	bool given = is_given(log->path);
	int fd = open_path(log->path, given);
	struct stat is;

	if (fd < 0 || fstat(fd, &is) < 0) {
		log->absent = errno == ENOENT;
		takt_err_set(&log->err, -errno,
			     "'%.100s' cannot be read; kernel_log names another file", log->path);
		if (fd >= 0)
			close(fd);
		return false;
	}
	if (log->fd >= 0)
		close(log->fd);
	log->fd = fd;
	log->is = is;
	log->given = given;
	log->err.rc = 0;
	if (S_ISREG(is.st_mode))
		go_to(log, whole ? 0 : is.st_size);
	else
		(void)lseek(fd, 0, SEEK_END);
	return true;
}

int takt_kernel_log_open(const char *path, struct takt_kernel_log **ret, struct takt_err *err)
{
	struct takt_kernel_log *log = takt_zalloc(sizeof(*log));

	if (!log)
		return takt_err_set(err, -ENOMEM, "the kernel's log");
	log->fd = -1;
	log->path = takt_strdup(path);
	if (!log->path) {
		takt_free(log);
		return takt_err_set(err, -ENOMEM, "the kernel's log");
	}
	(void)take(log, false);
	*ret = log;
	return 0;
}

void takt_kernel_log_close(struct takt_kernel_log *log)
{
	if (!log)
		return;
	if (log->fd >= 0)
		close(log->fd);
	takt_free(log->path);
	takt_free(log);
}

const struct takt_err *takt_kernel_log_why(const struct takt_kernel_log *log)
{
	return log->err.rc < 0 ? &log->err : NULL;
}

/* Whether another file that has something in it is at the path now. */
static bool is_replaced(const struct takt_kernel_log *log)
{
	struct stat there;

	return !log->given && stat(log->path, &there) == 0 &&
	       (there.st_ino != log->is.st_ino || there.st_dev != log->is.st_dev) &&
	       (there.st_size > 0 || !S_ISREG(there.st_mode));
}

/* What we have read is not there any more: it was copied away and cut, and may have grown since. */
static bool is_cut(const struct takt_kernel_log *log)
{
	char tail[TAIL];
	off_t at = log->offset - (off_t)log->tail_len;

	return pread(log->fd, tail, log->tail_len, at) != (ssize_t)log->tail_len ||
	       memcmp(tail, log->tail, log->tail_len) != 0;
}

/* Records that the kernel has overwritten are passed over. */
static ssize_t read_device(struct takt_kernel_log *log)
{
	ssize_t n;

	do
		n = read(log->fd, log->buffer + log->end, RECORD);
	while (n < 0 && (errno == EPIPE || errno == EINTR));
	return n;
}

static ssize_t read_file(struct takt_kernel_log *log)
{
	ssize_t n;

	if (is_cut(log))
		go_to(log, 0);
	n = pread(log->fd, log->buffer + log->end, RECORD, log->offset);
	if (n <= 0)
		return n;
	log->offset += n;
	log->tail_len = n < TAIL ? (size_t)n : TAIL;
	memcpy(log->tail, log->buffer + log->end + (size_t)n - log->tail_len, log->tail_len);
	return n;
}

static ssize_t read_more(struct takt_kernel_log *log)
{
	return S_ISREG(log->is.st_mode) ? read_file(log) : read_device(log);
}

/* More at the buffer's end; false when there is none. A line beyond all measure is cut. */
static bool fill(struct takt_kernel_log *log)
{
	bool replaced;
	ssize_t n;

	if (log->fd < 0 && !take(log, log->absent))
		return false;
	memmove(log->buffer, log->buffer + log->start, log->end - log->start);
	log->end -= log->start;
	log->start = 0;
	if (log->end > RECORD)
		log->end = 0;
	replaced = is_replaced(log); /* asked first: what was written before that is read first */
	n = read_more(log);
	if (n <= 0 && replaced && take(log, true))
		n = read_more(log);
	if (n <= 0)
		return false;
	log->end += (size_t)n;
	return true;
}

bool takt_kernel_log_next(struct takt_kernel_log *log, const char **ret_line, size_t *ret_len)
{
	const char *line, *newline;

	do {
		line = log->buffer + log->start;
		newline = memchr(line, '\n', log->end - log->start);
	} while (!newline && fill(log));
	if (!newline)
		return false;
	*ret_line = line;
	*ret_len = (size_t)(newline - line);
	log->start += *ret_len + 1;
	return true;
}
