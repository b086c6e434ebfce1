/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hook: a command of the owner's that is run at an event of his job, as an attempt of its own
 * beside the job's. What it says goes to the job's log, and so does how it ended if not well: it
 * has no other effect.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "launch/attempt_files.h"
#include "launch/shim_job.h"

void takt_shim_hook_log(struct takt_shim *shim)
{
	const struct takt_sys *sys = shim->sys;
	char name[TAKT_ATTEMPT_NAME], path[TAKT_ATTEMPT_NAME + 8];
	int dirfd, fd;

	if (!shim->spec.hook_log)
		return;
	takt_attempt_name(shim->spec.job_id, shim->spec.hook_log, name);
	snprintf(path, sizeof(path), "../%s", name);
	dirfd = sys->openat(sys, shim->dirfd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
			    0);
	if (dirfd < 0)
		return;
	fd = takt_job_user_open(shim->user, sys, dirfd, "log", O_WRONLY | O_APPEND | O_NONBLOCK);
	if (fd < 0) {
		(void)sys->close(sys, dirfd);
		return;
	}
	(void)sys->close(sys, shim->logfd);
	shim->logfd = fd;
	shim->logdirfd = dirfd;
}

/* Of a job that is over the log was lent to its user for the hook alone. */
static void give_back(const struct takt_shim *shim)
{
	if (shim->logdirfd != shim->dirfd && faccessat(shim->logdirfd, "exit", F_OK, 0) == 0)
		(void)takt_job_user_take_back(shim->user, shim->logfd);
}

void takt_shim_hook_note(const struct takt_shim *shim, bool late)
{
	const struct takt_attempt_status *end = &shim->end;
	const char *event = shim->spec.hook_event;

	if (late)
		takt_shim_note(shim, "hook at '%s': ended, it took longer than %u ms", event,
			       shim->spec.hook_limit_ms);
	else if (end->exit_kind == TAKT_EXIT_SIGNALED)
		takt_shim_note(shim, "hook at '%s': ended by signal %d", event, end->exit_code);
	else if (end->exit_kind == TAKT_EXIT_EXITED && end->exit_code != 0)
		takt_shim_note(shim, "hook at '%s': exit status %d", event, end->exit_code);
	give_back(shim);
}
