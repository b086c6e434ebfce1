/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lines of a text, one after the other, from a file (plain or gzip, told by its content) or
 * from memory. Holds one line and one buffer, however long the file is.
 */
#ifndef TAKT_SIM_TEXT_LINES_H
#define TAKT_SIM_TEXT_LINES_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "sim/sha256.h"

enum {
	TAKT_LINES_MAX = 1024 * 1024, /* bytes of one line */
};

struct takt_lines;

int takt_lines_open(const char *path, struct takt_lines **ret, struct takt_err *err);
/* The bytes are borrowed until takt_lines_free; `name` stands for the file in messages. */
int takt_lines_open_memory(const char *name, const void *bytes, size_t len, struct takt_lines **ret,
			   struct takt_err *err);
void takt_lines_free(struct takt_lines *lines); /* NULL is fine */

/*
 * 1 and the next line, without its newline (and carriage return), NUL-terminated, to be written in
 * at will, valid until the next call; 0 at the end; or a negative code: read errors, damaged gzip,
 * a line beyond TAKT_LINES_MAX, a NUL byte.
 */
int takt_lines_next(struct takt_lines *lines, char **ret, struct takt_err *err);

const char *takt_lines_name(const struct takt_lines *lines); /* borrowed: the path */
uint64_t takt_lines_number(const struct takt_lines *lines);  /* of the last line; the first is 1 */

/* SHA-256 of the whole (uncompressed) text; only once takt_lines_next has returned 0. */
const char *takt_lines_hash(struct takt_lines *lines);

#endif
