/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process of takt may ask of the kernel, whatever goes wrong in it: which calls, and with
 * which of root's rights. One list a process, in tools/call_lists.c and rights.c; why each is as
 * long as it is says docs/threat-model.md.
 */
#ifndef TAKT_CONFINE_CONFINE_H
#define TAKT_CONFINE_CONFINE_H

#include "base/err.h"

enum takt_confined {
	/* All that takt-launch starts is held to its lists, too: every shim, every job. So they
	 * have only what no job may do to the machine. */
	TAKT_CONFINED_LAUNCH,
	TAKT_CONFINED_SHIM, /* one that starts nothing any more */
	TAKT_CONFINED_ACTUATE,
	TAKT_CONFINED_GUARD,
	TAKT_CONFINED_COUNT
};

/*
 * From here on a line in `log_fd` tells of each call that the kernel refuses this process, once: it
 * begins with `program` and ends with `advice` (both borrowed for good). That list may be one that
 * we were started with. Before there are threads; who blocks signals later must leave SIGSYS alone,
 * or a refusal ends the process.
 */
void takt_confine_tell(int log_fd, const char *program, const char *advice);

/*
 * From here on the kernel refuses this process, and all that it starts, every call that is not the
 * list's: with EPERM, or ENOSYS where the call is newer than this build. takt_confine_tell comes
 * first, but for the launcher: what its jobs are refused is in the kernel's log, and it needs the
 * right to administer the machine for this. For all others there are no new rights by exec any
 * more, either (no_new_privs).
 */
int takt_confine_calls(enum takt_confined who, struct takt_err *err);

/*
 * Gives up, of root's rights (capabilities(7)), what is not the list's; and what programs started
 * from here could get back by being root's. Nothing to do where we are not root. Not for shims,
 * which give up more (launch/job_user.h).
 */
int takt_confine_rights(enum takt_confined who, struct takt_err *err);

#endif
