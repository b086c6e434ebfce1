/* SPDX-License-Identifier: Apache-2.0 */
/* Whose jobs do not run: users that are the system's, no person's. The daemon says so at once, the
 * launcher sees to it. */
#ifndef TAKT_LAUNCH_SYSTEM_USERS_H
#define TAKT_LAUNCH_SYSTEM_USERS_H

#include <sys/types.h>

#include "base/err.h"

/* The first user id of a person's: UID_MIN of /etc/login.defs below the root ("" = this machine's),
 * else 1000. */
uid_t takt_system_users_below(const char *root);

/* -EPERM, with who may instead: below `first`; or from 61184 to 65535, where nobody is, and users
 * that systemd makes for a service (DynamicUser=), whose numbers come back as another one's. */
int takt_system_users_check(uid_t uid, uid_t first, struct takt_err *err);

#endif
