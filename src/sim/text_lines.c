/* SPDX-License-Identifier: Apache-2.0 */
/* Lines, see the header. zlib reads plain files as they are. */
#include "sim/text_lines.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/mem.h"
#include "base/str.h"

enum {
	CHUNK = 64 * 1024
};

struct takt_lines {
	char *name;	      /* owned */
	gzFile file;	      /* owned; NULL: in memory */
	const char *at, *end; /* not yet handed out: in chunk, or the caller's bytes */
	bool ended;
	uint64_t number;
	struct takt_str line;
	struct takt_sha256 sha;
	char hash[TAKT_SHA256_TEXT];
	char chunk[CHUNK];
};

static struct takt_lines *lines_new(const char *name)
{
	struct takt_lines *lines = takt_zalloc(sizeof(*lines));

	if (!lines)
		return NULL;
	lines->line = TAKT_STR(TAKT_LINES_MAX);
	lines->name = takt_strdup(name);
	takt_sha256_init(&lines->sha);
	if (lines->name)
		return lines;
	takt_free(lines);
	return NULL;
}

static int open_gz(const char *path, gzFile *ret, struct takt_err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	gzFile file;

	if (fd < 0)
		return takt_err_set(err, -errno, "open '%s'", path);
	if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
		close(fd);
		return takt_err_set(err, -EISDIR, "open '%s'", path);
	}
	file = gzdopen(fd, "rb");
	if (!file) {
		close(fd);
		return takt_err_set(err, -ENOMEM, "open '%s'", path);
	}
	*ret = file;
	return 0;
}

int takt_lines_open(const char *path, struct takt_lines **ret, struct takt_err *err)
{
	struct takt_lines *lines = lines_new(path);
	int rc = lines ? open_gz(path, &lines->file, err)
		       : takt_err_set(err, -ENOMEM, "no memory to read '%s'", path);

	if (rc < 0) {
		takt_lines_free(lines);
		return rc;
	}
	*ret = lines;
	return 0;
}

int takt_lines_open_memory(const char *name, const void *bytes, size_t len, struct takt_lines **ret,
			   struct takt_err *err)
{
	struct takt_lines *lines = lines_new(name);

	if (!lines)
		return takt_err_set(err, -ENOMEM, "no memory to read '%s'", name);
	lines->at = bytes;
	lines->end = lines->at + len;
	takt_sha256_add(&lines->sha, bytes, len);
	*ret = lines;
	return 0;
}

void takt_lines_free(struct takt_lines *lines)
{
	if (!lines)
		return;
	if (lines->file)
		gzclose(lines->file);
	takt_str_fini(&lines->line);
	takt_free(lines->name);
	takt_free(lines);
}

/* 1: there is something at `at`; 0: the end. */
static int fill(struct takt_lines *lines, struct takt_err *err)
{
	const char *why;
	int n, code;

	if (lines->at != lines->end)
		return 1;
	if (!lines->file)
		return 0;
	n = gzread(lines->file, lines->chunk, CHUNK);
	why = gzerror(lines->file, &code);
	if (n < 0 || code == Z_BUF_ERROR)
		return code == Z_ERRNO
			       ? takt_err_set(err, -EIO, "read '%s'", lines->name)
			       : takt_err_set(err, -TAKT_E_CORRUPT,
					      "'%s' is damaged or cut off after line %llu (%s)",
					      lines->name, (unsigned long long)lines->number, why);
	takt_sha256_add(&lines->sha, lines->chunk, (size_t)n);
	lines->at = lines->chunk;
	lines->end = lines->chunk + n;
	return n > 0;
}

/* Appends up to the newline; true when it was there. */
static bool take_part(struct takt_lines *lines)
{
	size_t left = (size_t)(lines->end - lines->at);
	const char *newline = memchr(lines->at, '\n', left);
	size_t n = newline ? (size_t)(newline - lines->at) : left;

	takt_str_addn(&lines->line, lines->at, n);
	lines->at += newline ? n + 1 : n;
	return newline != NULL;
}

static int check_line(const struct takt_lines *lines, struct takt_err *err)
{
	unsigned long long number = lines->number;

	if (lines->line.rc == -TAKT_E_LIMIT)
		return takt_err_set(err, -TAKT_E_LIMIT, "%s:%llu: longer than %d bytes",
				    lines->name, number, TAKT_LINES_MAX);
	if (lines->line.rc < 0)
		return takt_err_set(err, lines->line.rc, "%s:%llu: no memory for the line",
				    lines->name, number);
	if (lines->line.len && memchr(lines->line.s, '\0', lines->line.len))
		return takt_err_set(err, -TAKT_E_CORRUPT, "%s:%llu: holds a NUL byte: no text",
				    lines->name, number);
	return 0;
}

int takt_lines_next(struct takt_lines *lines, char **ret, struct takt_err *err)
{
	struct takt_str *line = &lines->line;
	int rc = fill(lines, err);

	if (rc <= 0) {
		lines->ended = rc == 0;
		return rc;
	}
	lines->number++;
	takt_str_reset(line);
	takt_str_add(line, "");
	while (rc > 0 && !take_part(lines) && line->rc == 0)
		rc = fill(lines, err);
	if (rc >= 0)
		rc = check_line(lines, err);
	if (rc < 0)
		return rc;
	if (line->len && line->s[line->len - 1] == '\r')
		line->s[--line->len] = '\0';
	*ret = line->s;
	return 1;
}

const char *takt_lines_name(const struct takt_lines *lines)
{
	return lines->name;
}

uint64_t takt_lines_number(const struct takt_lines *lines)
{
	return lines->number;
}

const char *takt_lines_hash(struct takt_lines *lines)
{
	if (lines->ended && !lines->hash[0])
		takt_sha256_text(&lines->sha, lines->hash);
	return lines->hash;
}
