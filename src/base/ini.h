/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of lines "key = value" under "[section]" lines. Empty lines and lines that begin with '#'
 * are comments; values are not quoted and go to the end of the line.
 */
#ifndef TAKT_BASE_INI_H
#define TAKT_BASE_INI_H

#include <stddef.h>

#include "base/err.h"

/* All borrowed for the call. */
struct takt_ini_line {
	const char *section; /* what stands in the brackets above it; "" before the first */
	const char *key;     /* NULL: the section begins here */
	const char *value;   /* blanks around it cut off; NULL with key */
	const char *where;   /* "NAME:3", for messages */
};

/* Hands over line after line; a negative return of `each` ends that and is returned. `name` is the
 * file's. -TAKT_E_USAGE for a line that is neither, or text with a NUL; -ENOMEM. */
int takt_ini_each(const char *text, size_t len, const char *name,
		  int (*each)(void *ctx, const struct takt_ini_line *line, struct takt_err *err),
		  void *ctx, struct takt_err *err);

#endif
