/* SPDX-License-Identifier: Apache-2.0 */
/* Shared objects that a user names where a policy or a governor is expected. */
#ifndef TAKT_OBJECTS_OBJECT_FILE_H
#define TAKT_OBJECTS_OBJECT_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* What each kind of object begins with. */
struct takt_object_file {
	void *handle; /* for dlsym */
};

/* "./mine.so": whether a name of a list means a file. */
bool takt_object_file_is(const char *name);

/*
 * Opens a file as an object of `size` bytes, zero but for the handle, that `adopt` takes for what
 * it is or refuses. *ret is for takt_object_file_close; left alone on failure:
 * -TAKT_E_UNSUPPORTED with the linker's own reason, or what `adopt` said.
 */
int takt_object_file_open(const char *path, size_t size,
			  int (*adopt)(const char *path, void *object, struct takt_err *err),
			  void *ret, struct takt_err *err);

/* After everything that was made of it is gone; NULL is fine. */
void takt_object_file_close(void *object);

#endif
