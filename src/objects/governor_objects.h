/* SPDX-License-Identifier: Apache-2.0 */
/* The governors that an administrator has added to takt's own: shared objects of trusted files. */
#ifndef TAKT_OBJECTS_GOVERNOR_OBJECTS_H
#define TAKT_OBJECTS_GOVERNOR_OBJECTS_H

#include "base/err.h"
#include "clock/governor_choice.h"

enum {
	TAKT_GOVERNOR_OBJECTS = 16
};

struct takt_governor_objects;

/*
 * Opens "/path/a.so, /path/b.so" ("" = none), each checked as trusted_file.h has it. All of them or
 * nothing: the error names the file that cannot be read, is not trusted, is no governor, or is
 * named as one of takt's own or one before it.
 */
int takt_governor_objects_open(const char *paths, struct takt_governor_objects **ret,
			       struct takt_err *err);
/* After every state of its governors is gone; NULL is fine. */
void takt_governor_objects_close(struct takt_governor_objects *objects);

/* With takt's own; borrowed until close. Of NULL: takt's own alone. */
const struct takt_governors *takt_governor_objects_all(const struct takt_governor_objects *objects);

#endif
