/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of users, as distributions and systemd deal them out. */
#include "launch/system_users.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/sys.h"

enum {
	USUAL_FIRST = 1000,
	PASSING_FIRST = 61184,
	PASSING_LAST = 65535,
	MAX_TEXT = 1 << 20,
};

uid_t takt_system_users_below(const char *root)
{
	char path[PATH_MAX];
	TAKT_CLEANUP(freep) char *text = NULL;
	char *rest = NULL;
	unsigned int first;
	size_t len;

	if (snprintf(path, sizeof(path), "%s/etc/login.defs", root) >= (int)sizeof(path) ||
	    takt_file_read(takt_sys_real(), AT_FDCWD, path, MAX_TEXT, &text, &len, NULL) < 0)
		return USUAL_FIRST;
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		if (sscanf(line, " UID_MIN %9u", &first) == 1)
			return first;
	return USUAL_FIRST;
}

int takt_system_users_check(uid_t uid, uid_t first, struct takt_err *err)
{
	if (uid >= first && (uid < PASSING_FIRST || uid > PASSING_LAST))
		return 0;
	return takt_err_set(err, -EPERM,
			    "no jobs of system users: user ids from %u may run some, but %d to %d; "
			    "this one is %u (allow_system_users)",
			    first, PASSING_FIRST, PASSING_LAST, uid);
}
