/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a user would have by logging in: his groups by the system's data base, his limits by PAM
 * (service "takt"), if he may come in at all. Private to this room.
 *
 * The data base may be a server of the network, and modules of PAM are other people's programs that
 * run as root: all of that happens in a process of its own, with nothing of the user's in its
 * environment, which is ended when it has not answered in time. The session is opened and closed
 * again there. A job is in none: what a module leaves behind (a home directory) stays, what it
 * keeps for as long as the session lasts does not, and none can move a job out of its cgroup.
 */
#ifndef TAKT_LAUNCH_USER_SESSION_H
#define TAKT_LAUNCH_USER_SESSION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "launch/user_limits.h"

enum {
	TAKT_USER_GROUPS = 4096, /* of one user, at most; the kernel takes 65536 */
	TAKT_USER_SESSION_S = 10,
};

struct takt_user_session {
	gid_t gid; /* his main group, or the one that he asked with if it is his */
	uint32_t group_count;
	gid_t groups[TAKT_USER_GROUPS];
	struct takt_user_limits limits;
};

struct takt_user_wish {
	uid_t uid;
	gid_t gid;     /* that he asks with: the one of a set-group-ID program is not his */
	gid_t min_gid; /* of a user whom the data base does not know; below are the system's */
	bool comes_in; /* whether he may start anything is asked, too; else it is settled */
};

/*
 * As root. Where PAM has no service "takt" the limits are takt_user_limits_default(), and nobody is
 * kept out. -EPERM: he may not come in, with PAM's own words; -ETIMEDOUT: no answer within
 * TAKT_USER_SESSION_S seconds; what the data base failed with.
 */
int takt_user_session_ask(const struct takt_user_wish *wish, struct takt_user_session *ret,
			  struct takt_err *err);

/*
 * Loads the modules of the system's data base into the launcher, so that not each process that asks
 * has to: that is a part of each start of a job. Asks nothing. What cannot be loaded is left to who
 * asks.
 */
void takt_user_session_prepare(void);

#endif
