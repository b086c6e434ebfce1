/* SPDX-License-Identifier: Apache-2.0 */
/* Whom takt-launch and takt-actuate serve, besides root: the flag --client-uid of both. */
#ifndef TAKT_DAEMON_CLIENT_USER_H
#define TAKT_DAEMON_CLIENT_USER_H

#include <sys/types.h>

#include "base/err.h"

/* A number, or the name of an account: units know no number. -TAKT_E_USAGE when it is neither. */
int takt_client_user(const char *text, uid_t *ret, struct takt_err *err);

#endif
