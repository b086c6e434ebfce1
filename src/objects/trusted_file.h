/* SPDX-License-Identifier: Apache-2.0 */
/* Files whose code becomes part of a process that may be root. */
#ifndef TAKT_OBJECTS_TRUSTED_FILE_H
#define TAKT_OBJECTS_TRUSTED_FILE_H

#include <limits.h>

#include "base/err.h"

/*
 * Whether nobody but root and the user of this process could have written the file or could put
 * another in its place: it and the folders above it are theirs and not open to others' writing
 * (sticky folders such as /tmp are fine). *ret is where it really is, without links, which is what
 * to open. -TAKT_E_USAGE for a path that is not absolute, -EPERM names what is not so,
 * -TAKT_E_NOT_FOUND.
 */
int takt_trusted_file(const char *path, char ret[PATH_MAX], struct takt_err *err);

#endif
