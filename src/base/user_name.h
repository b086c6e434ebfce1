/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Users by name, where the system knows one. Those of containers, or of a directory that does not
 * answer, have none: they are their number, in what is shown and in what is asked for.
 */
#ifndef TAKT_BASE_USER_NAME_H
#define TAKT_BASE_USER_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* "ada", or "54321" for one without a name; into buf, which is returned. May ask a server of the
 * network. */
const char *takt_user_text(uid_t uid, char *buf, size_t size);

/* The user that is called so, or else has this number; false when it is neither. */
bool takt_user_find(const char *text, uid_t *ret);

#endif
