/* SPDX-License-Identifier: Apache-2.0 */
/* Reads lines, see the header. */
#include "daemon/kernel_log_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

enum {
	RECORD = 8192, /* longer than any record of the kernel's: it refuses to be read in part */
};

struct takt_kernel_log {
	int fd;
	size_t start, end; /* of what is in the buffer and was not handed out */
	char buffer[2 * RECORD];
};

int takt_kernel_log_open(const char *path, bool all, struct takt_kernel_log **ret,
			 struct takt_err *err)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	struct takt_kernel_log *log;

	if (fd < 0)
		return takt_err_set(err, -errno, "the kernel's log '%.100s' cannot be read", path);
	if (!all && lseek(fd, 0, SEEK_END) < 0 && errno != ESPIPE) {
		int rc = -errno;

		close(fd);
		return takt_err_set(err, rc, "the end of the kernel's log '%.100s'", path);
	}
	log = takt_zalloc(sizeof(*log));
	if (!log) {
		close(fd);
		return takt_err_set(err, -ENOMEM, "the kernel's log");
	}
	log->fd = fd;
	*ret = log;
	return 0;
}

void takt_kernel_log_close(struct takt_kernel_log *log)
{
	if (log)
		close(log->fd);
	takt_free(log);
}

/* More at the buffer's end; false when there is none. Records that the kernel has overwritten are
 * passed over. A line beyond all measure is cut. */
static bool fill(struct takt_kernel_log *log)
{
	ssize_t n;

	memmove(log->buffer, log->buffer + log->start, log->end - log->start);
	log->end -= log->start;
	log->start = 0;
	if (log->end > RECORD)
		log->end = 0;
	do
		n = read(log->fd, log->buffer + log->end, RECORD);
	while (n < 0 && (errno == EPIPE || errno == EINTR));
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
