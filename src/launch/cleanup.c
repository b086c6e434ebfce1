/* SPDX-License-Identifier: Apache-2.0 */
/* Cleaning up after an attempt. */
#include "launch/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sys.h"
#include "launch/below.h"
#include "launch/cgroup.h"

enum {
	MS_PER_S = 1000
};

static int redirect(int logfd)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int out = logfd >= 0 ? logfd : null;

	if (null < 0)
		return -errno;
	return dup2(null, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 ||
			       dup2(out, STDERR_FILENO) < 0
		       ? -errno
		       : 0;
}

/* Where it cannot enter the leaf it stays in ours, where limits and filter are the same. */
static void enter_leaf(const char *leaf)
{
	if (leaf[0] && takt_cgroup_make(leaf, NULL) == 0)
		(void)takt_cgroup_enter(leaf, 0, NULL);
}

static _Noreturn void become(const struct takt_cleanup *cleanup, pid_t parent)
{
	const struct takt_attempt_spec *spec = cleanup->spec;
	struct sigaction act = {.sa_handler = SIG_DFL};
	sigset_t none;

	(void)setsid();
	enter_leaf(cleanup->leaf);
	for (int sig = 1; sig <= SIGRTMAX; sig++)
		(void)sigaction(sig, &act, NULL);
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	if (takt_job_user_become(cleanup->user, parent, NULL) == 0 && redirect(cleanup->logfd) == 0)
		execve(spec->cleanup[0], spec->cleanup, spec->env);
	_exit(EXIT_FAILURE);
}

/* 0 and how it ended; -ETIMEDOUT: it has not. */
static int wait_for(pid_t pid, uint32_t limit_ms, int *ret_status)
{
	struct takt_boot now = takt_boot_now(takt_sys_real());
	struct takt_boot until = takt_boot_add(now, limit_ms * TAKT_NS_PER_MS);
	struct pollfd fd = {.fd = pidfd_open(pid, 0), .events = POLLIN};
	int rc = fd.fd < 0 ? -errno : 0;

	while (rc == 0 && now.ns < until.ns) {
		if (poll(&fd, 1, (int)((until.ns - now.ns) / TAKT_NS_PER_MS) + 1) > 0)
			break;
		now = takt_boot_now(takt_sys_real());
	}
	if (fd.fd >= 0)
		close(fd.fd);
	if (rc == 0 && waitpid(pid, ret_status, WNOHANG) != pid)
		rc = -ETIMEDOUT;
	return rc;
}

int takt_cleanup_run(const struct takt_cleanup *cleanup, struct takt_err *err)
{
	const char *program = cleanup->spec->cleanup ? cleanup->spec->cleanup[0] : NULL;
	pid_t parent = getpid(), pid;
	int status = 0, rc, ended;

	if (!program)
		return 0;
	pid = fork();
	if (pid == 0)
		become(cleanup, parent);
	if (pid < 0)
		return takt_err_set(err, -errno, "clean up with '%s'", program);
	rc = wait_for(pid, cleanup->limit_ms, &status);
	ended = takt_below_end(cleanup->leaf, cleanup->kill_limit_ms);
	if (ended < 0)
		return takt_err_set(err, -EAGAIN, "a process of the clean-up does not end");
	if (rc == -ETIMEDOUT)
		return takt_err_set(err, rc, "the clean-up after the job was ended after %u s",
				    cleanup->limit_ms / MS_PER_S);
	if (rc < 0)
		return takt_err_set(err, rc, "wait for the clean-up");
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	return takt_err_set(err, -EAGAIN, "the clean-up after the job failed");
}
