/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Beginning a job in the order that recovery relies on: fork, record, only then the word to go on.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "launch/shim_job.h"

struct pipes {
	int go[2];     /* shim to job: one byte, go on */
	int report[2]; /* job to shim: struct takt_err, or closed by a successful exec */
};

static void close_end(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void close_pipes(struct pipes *pipes)
{
	for (int i = 0; i < 2; i++) {
		close_end(&pipes->go[i]);
		close_end(&pipes->report[i]);
	}
}

static int open_pipes(struct pipes *pipes, struct takt_err *err)
{
	int rc;

	*pipes = (struct pipes){{-1, -1}, {-1, -1}};
	if (pipe2(pipes->go, O_CLOEXEC) == 0 && pipe2(pipes->report, O_CLOEXEC | O_NONBLOCK) == 0)
		return 0;
	rc = -errno;
	close_pipes(pipes);
	return takt_err_set(err, rc, "make a pipe");
}

static int fork_job(struct takt_shim *shim, struct pipes *pipes, struct takt_err *err)
{
	pid_t parent = getpid();
	pid_t pid = fork();

	if (pid < 0)
		return takt_err_set(err, -errno, "fork");
	if (pid == 0) {
		close_end(&pipes->go[1]);
		close_end(&pipes->report[0]);
		takt_shim_become_job(shim, parent, pipes->go[0], pipes->report[1]);
	}
	close_end(&pipes->go[0]);
	close_end(&pipes->report[1]);
	shim->job = pid;
	takt_crash_point("shim.after_fork");
	return 0;
}

static int record(struct takt_shim *shim, struct takt_err *err)
{
	struct takt_proc_id job;
	int rc = takt_proc_identify(shim->job, &job, err);

	if (rc < 0)
		return rc;
	takt_crash_point("shim.before_started");
	shim->began = takt_boot_now(shim->sys);
	rc = takt_attempt_record_started(shim->sys, shim->dirfd, &job, takt_wall_now(shim->sys),
					 err);
	takt_crash_point("shim.after_started");
	return rc;
}

/* The process sees its pipe closed without a word and ends. */
static void call_off(struct takt_shim *shim, struct pipes *pipes)
{
	close_pipes(pipes);
	while (waitpid(shim->job, NULL, 0) < 0 && errno == EINTR)
		;
	shim->job = 0;
}

bool takt_shim_hear_report(struct takt_shim *shim)
{
	struct takt_err failed;
	ssize_t got;

	do {
		got = read(shim->report, &failed, sizeof(failed));
	} while (got < 0 && errno == EINTR);
	if (got != (ssize_t)sizeof(failed))
		return false;
	shim->end.exit_kind = TAKT_EXIT_EXEC_FAILED;
	shim->end.exit_code = -failed.rc;
	snprintf(shim->end.message, sizeof(shim->end.message), "%.110s: %s", failed.msg,
		 takt_err_sentence(failed.rc));
	takt_shim_note(shim, "%s", shim->end.message);
	return true;
}

int takt_shim_begin(struct takt_shim *shim, struct takt_err *err)
{
	struct pipes pipes;
	int rc = open_pipes(&pipes, err);

	if (rc < 0)
		return rc;
	rc = fork_job(shim, &pipes, err);
	if (rc == 0) {
		rc = record(shim, err);
		if (rc < 0)
			call_off(shim, &pipes);
	}
	if (rc == 0) {
		/* A process that was killed meanwhile does not read: its end will tell. */
		(void)!write(pipes.go[1], "", 1);
		takt_crash_point("shim.after_go");
		shim->report = pipes.report[0];
		pipes.report[0] = -1;
	}
	close_pipes(&pipes);
	return rc;
}
