/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Beginning a job in the order that recovery relies on: fork, put it into its cgroup, record, only
 * then the word to go on.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "launch/attempt_files.h"
#include "launch/shim_job.h"

enum {
	EXIT_NOT_EXECUTABLE = 126,
	EXIT_NOT_FOUND = 127,
};

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

static int fork_rank(struct takt_shim *shim, struct pipes *pipes, struct takt_err *err)
{
	pid_t pid = fork();

	if (pid < 0)
		return takt_err_set(err, -errno, "fork");
	if (pid == 0) {
		close_end(&pipes->go[1]);
		close_end(&pipes->report[0]);
		takt_shim_become_job(shim, shim->rank_count, pipes->go[0], pipes->report[1]);
	}
	shim->ranks[shim->rank_count++].pid = pid;
	return 0;
}

/* All of them hear one word each from the same pipe. */
static int fork_ranks(struct takt_shim *shim, struct pipes *pipes, struct takt_err *err)
{
	uint32_t wanted = shim->spec.ranks ? shim->spec.ranks : 1;
	int rc = 0;

	shim->ranks = takt_calloc(wanted, sizeof(*shim->ranks));
	if (!shim->ranks)
		return takt_err_set(err, -ENOMEM, "no memory for ranks");
	while (rc == 0 && shim->rank_count < wanted)
		rc = fork_rank(shim, pipes, err);
	shim->ranks_left = shim->rank_count;
	close_end(&pipes->go[0]);
	close_end(&pipes->report[1]);
	takt_crash_point("shim.after_fork");
	return rc;
}

static int wait_for_turn(struct takt_shim *shim, struct takt_err *err)
{
	return shim->spec.stage_lease_ms ? takt_shim_wait_staged(shim, err) : 0;
}

/* Without the right to it the job stays in the shim's leaf, where limits and filter are the same.
 */
static int enter_cgroup(const struct takt_shim *shim, pid_t pid, struct takt_err *err)
{
	int rc = takt_cgroup_enter(shim->place->job, pid, err);

	if (rc == -ENOENT || rc == -ENODEV)
		return rc;
	if (rc < 0 && rc != -ESRCH)
		takt_shim_note(shim, "stays in the cgroup of its shim: %s: %s", err->msg,
			       takt_err_sentence(rc));
	return 0;
}

/* While the leaf is empty, systemd removes it when it stops the unit above. Nothing has run then,
 * and whoever asked for the job may ask again. */
static int enter_cgroups(const struct takt_shim *shim, struct takt_err *err)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && shim->place->job[0] && i < shim->rank_count; i++)
		rc = enter_cgroup(shim, shim->ranks[i].pid, err);
	return rc;
}

static int record(struct takt_shim *shim, struct takt_err *err)
{
	struct takt_proc_id job;
	int rc = takt_proc_identify(shim->ranks[0].pid, &job, err);

	if (rc < 0)
		return rc;
	takt_crash_point("shim.before_started");
	shim->began = takt_boot_now(shim->sys);
	rc = takt_attempt_record_started(shim->sys, shim->dirfd, &job, takt_wall_now(shim->sys),
					 err);
	takt_crash_point("shim.after_started");
	return rc;
}

/* The processes see their pipe closed without a word and end. */
static void call_off(struct takt_shim *shim, struct pipes *pipes)
{
	close_pipes(pipes);
	for (uint32_t i = 0; i < shim->rank_count; i++)
		while (waitpid(shim->ranks[i].pid, NULL, 0) < 0 && errno == EINTR)
			;
	shim->rank_count = shim->ranks_left = 0;
}

/* Where the job cannot make it, or has it mounted, it has to be there. Without it, it says nothing.
 * Another user's is kept open, to be bound. */
static void make_progress(struct takt_shim *shim)
{
	int fd = takt_job_user_open(shim->user, shim->sys, shim->dirfd, "progress",
				    O_WRONLY | O_CREAT);

	if (shim->user->other)
		shim->progressfd = fd < 0 ? -1 : fd;
	else if (fd >= 0)
		(void)shim->sys->close(shim->sys, fd);
}

/* All that is the user's in the directory is there. */
static int let_user_through(struct takt_shim *shim, struct takt_err *err)
{
	int rc;

	if (shim->spec.progress || (shim->user->other && !shim->spec.hook_event[0]))
		make_progress(shim);
	rc = takt_job_user_let_through(shim->user, shim->dirfd);
	return rc < 0 ? takt_err_set(err, rc, "let the user through to his log") : 0;
}

/* Processes that were killed meanwhile do not read: their end will tell. */
static void give_word(const struct takt_shim *shim, const struct pipes *pipes)
{
	for (uint32_t i = 0; i < shim->rank_count; i++)
		(void)!write(pipes->go[1], "", 1);
}

static bool read_report(struct takt_shim *shim, struct takt_err *ret)
{
	ssize_t got;

	do {
		got = read(shim->report, ret, sizeof(*ret));
	} while (got < 0 && errno == EINTR);
	return got == (ssize_t)sizeof(*ret);
}

bool takt_shim_hear_report(struct takt_shim *shim)
{
	struct takt_err failed;

	if (!read_report(shim, &failed))
		return false;
	shim->end.exit_kind = TAKT_EXIT_EXEC_FAILED;
	shim->end.exit_code = -failed.rc;
	snprintf(shim->end.message, sizeof(shim->end.message), "%.110s: %s", failed.msg,
		 takt_err_sentence(failed.rc));
	takt_shim_note(shim, "%s", shim->end.message);
	return true;
}

void takt_shim_settle_report(struct takt_shim *shim)
{
	struct takt_err failed;
	uint32_t heard = 1;

	if (shim->end.exit_kind != TAKT_EXIT_EXEC_FAILED)
		return;
	while (read_report(shim, &failed))
		heard++;
	if (heard == shim->rank_count)
		return;
	shim->end.exit_kind = TAKT_EXIT_EXITED;
	shim->end.exit_code = shim->end.exit_code == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
}

int takt_shim_begin(struct takt_shim *shim, struct takt_err *err)
{
	struct pipes pipes;
	int rc = open_pipes(&pipes, err);

	if (rc < 0)
		return rc;
	takt_job_user_files_begin(shim->user);
	rc = takt_shim_io_open(shim, err);
	takt_job_user_files_end(shim->user);
	if (rc == 0)
		rc = fork_ranks(shim, &pipes, err);
	if (rc == 0)
		rc = wait_for_turn(shim, err);
	if (rc == 0)
		rc = enter_cgroups(shim, err);
	if (rc == 0)
		rc = let_user_through(shim, err);
	if (rc == 0)
		rc = record(shim, err);
	if (rc < 0)
		call_off(shim, &pipes);
	if (rc == 0) {
		give_word(shim, &pipes);
		takt_crash_point("shim.after_go");
		shim->report = pipes.report[0];
		pipes.report[0] = -1;
	}
	close_pipes(&pipes);
	return rc;
}
