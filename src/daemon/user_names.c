/* SPDX-License-Identifier: Apache-2.0 */
/* Names of users, as far as they are known by now (base/known_users.h); else their numbers. */
#include <stdio.h>

#include "base/known_users.h"
#include "base/str.h"
#include "daemon/daemon.h"

const char *takt_user_name(uid_t uid, char *buf, size_t size)
{
	struct takt_known_user account;

	if (takt_known_user_of(uid, &account) == 0 && account.found)
		takt_strcpy(buf, size, account.name);
	else
		snprintf(buf, size, "%u", (unsigned)uid);
	return buf;
}
