/* SPDX-License-Identifier: Apache-2.0 */
/* Governors from shared objects (include/takt/clock_governor.h). */
#ifndef TAKT_OBJECTS_GOVERNOR_OBJECT_H
#define TAKT_OBJECTS_GOVERNOR_OBJECT_H

#include "base/err.h"
#include "clock/governor.h"

struct takt_governor_object;

/* Opens it. -TAKT_E_UNSUPPORTED with the reason when it is no governor, or is named as one of
 * takt's own. */
int takt_governor_object_open(const char *path, struct takt_governor_object **ret,
			      struct takt_err *err);
/* After every state of its governor is gone; NULL is fine. */
void takt_governor_object_close(struct takt_governor_object *object);

/* Borrowed until close. */
const struct takt_governor *
takt_governor_object_governor(const struct takt_governor_object *object);

#endif
