/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files for users, whole or not at all: they are written beside their place and then take it, so
 * that a full disk or an end in between leaves what was there before. What is no plain file of the
 * user's own (a pipe, /dev/stdout, somebody else's, one with several names) is written where it is.
 * What other users can have planted (a link of theirs; in folders that they may write, a pipe, file
 * or one more name of one) is refused, -EPERM with what to do.
 */
#ifndef TAKT_CLI_WHOLE_FILE_H
#define TAKT_CLI_WHOLE_FILE_H

#include <limits.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"
#include "base/way.h"

struct takt_whole_file {
	int fd;		  /* to be written to */
	const char *path; /* borrowed; for messages */
	struct takt_way way;
	char part[NAME_MAX + 1]; /* "" = written in its place */
};

int takt_whole_file_open(const char *path, struct takt_whole_file *ret, struct takt_err *err);
/* rc: what came of writing; below 0 nothing takes the place. Returns it, or what came of closing;
 * *err is set by the latter alone. */
int takt_whole_file_close(struct takt_whole_file *file, int rc, struct takt_err *err);

/* Whether it can be written, as far as that is known before: nothing is changed. */
int takt_whole_file_check(const char *path, struct takt_err *err);

/* All of it; -errno. */
int takt_write_all(int fd, const void *bytes, size_t len);
/* A file with this text. */
int takt_whole_file_write(const char *path, const struct takt_str *text, struct takt_err *err);

#endif
