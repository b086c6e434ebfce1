/* SPDX-License-Identifier: Apache-2.0 */
/* Files of an attempt: read with suspicion, replaced whole. */
#include "launch/attempt_files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/mem.h"

void takt_attempt_name(uint64_t job_id, uint32_t attempt, char ret[TAKT_ATTEMPT_NAME])
{
	snprintf(ret, TAKT_ATTEMPT_NAME, "%" PRIu64 ".%" PRIu32, job_id, attempt);
}

/* All of an open file of at most max bytes; *ret_text is the caller's. */
static int read_whole(const struct takt_sys *sys, int fd, size_t max, char **ret_text,
		      size_t *ret_len)
{
	struct stat st;
	size_t size, done = 0;
	ssize_t got = 0;
	char *text;
	int rc = sys->fstat(sys, fd, &st);

	if (rc < 0)
		return rc;
	if (!S_ISREG(st.st_mode) || st.st_size < 0 || (uint64_t)st.st_size > max)
		return -TAKT_E_CORRUPT;
	size = (size_t)st.st_size;
	text = takt_alloc(size + 1);
	if (!text)
		return -ENOMEM;
	while (done < size) {
		got = sys->pread(sys, fd, text + done, size - done, (off_t)done);
		if (got <= 0)
			break;
		done += (size_t)got;
	}
	if (got < 0) {
		takt_free(text);
		return (int)got;
	}
	text[done] = '\0';
	*ret_text = text;
	*ret_len = done;
	return 0;
}

int takt_attempt_read_text(const struct takt_sys *sys, int dirfd, const char *name, size_t max,
			   char **ret_text, size_t *ret_len, struct takt_err *err)
{
	int fd, rc;

	fd = sys->openat(sys, dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
	if (fd == -ELOOP)
		return takt_err_set(err, -TAKT_E_CORRUPT, "'%s' is a link", name);
	if (fd < 0)
		return takt_err_set(err, fd, "open '%s'", name);
	rc = read_whole(sys, fd, max, ret_text, ret_len);
	(void)sys->close(sys, fd);
	return rc < 0 ? takt_err_set(err, rc, "read '%s'", name) : 0;
}

static int write_aside(const struct takt_sys *sys, int dirfd, const char *tmp,
		       const struct takt_str *text)
{
	ssize_t put = 0;
	int fd, closed;

	(void)sys->unlinkat(sys, dirfd, tmp, 0);
	fd = sys->openat(sys, dirfd, tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
			 TAKT_ATTEMPT_MODE);
	if (fd < 0)
		return fd;
	for (size_t done = 0; done < text->len; done += (size_t)put) {
		put = sys->pwrite(sys, fd, text->s + done, text->len - done, (off_t)done);
		if (put <= 0)
			break;
	}
	closed = sys->close(sys, fd);
	if (put <= 0)
		return put < 0 ? (int)put : -EIO;
	return closed;
}

int takt_attempt_write_text(const struct takt_sys *sys, int dirfd, const char *name,
			    const struct takt_str *text, struct takt_err *err)
{
	char tmp[32];
	int rc;

	snprintf(tmp, sizeof(tmp), "%s.new", name);
	rc = write_aside(sys, dirfd, tmp, text);
	if (rc == 0)
		rc = sys->renameat(sys, dirfd, tmp, name);
	if (rc == 0)
		return 0;
	(void)sys->unlinkat(sys, dirfd, tmp, 0);
	return takt_err_set(err, rc, "write '%s'", name);
}
