/* SPDX-License-Identifier: Apache-2.0 */
/* Cleaning up after an attempt. */
#include "launch/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"

static char **env_without_attempt(char *const *env)
{
	static const char name[] = "TAKT_ATTEMPT=";
	size_t n = 0, kept = 0;
	char **ret;

	while (env[n])
		n++;
	ret = takt_calloc(n + 1, sizeof(*ret));
	for (size_t i = 0; ret && i < n; i++)
		if (strncmp(env[i], name, sizeof(name) - 1) != 0)
			ret[kept++] = env[i];
	return ret;
}

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

static _Noreturn void become(const struct takt_attempt_spec *spec, const struct takt_job_user *user,
			     char **env, int logfd, pid_t parent)
{
	struct sigaction act = {.sa_handler = SIG_DFL};
	sigset_t none;

	for (int sig = 1; sig <= SIGRTMAX; sig++)
		(void)sigaction(sig, &act, NULL);
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	if (takt_job_user_become(user, parent, NULL) == 0 && redirect(logfd) == 0)
		execve(spec->cleanup[0], spec->cleanup, env);
	_exit(EXIT_FAILURE);
}

int takt_cleanup_run(const struct takt_attempt_spec *spec, const struct takt_job_user *user,
		     int logfd, struct takt_err *err)
{
	pid_t parent = getpid(), pid;
	char **env;
	int status;

	if (!spec->cleanup)
		return 0;
	env = env_without_attempt(spec->env);
	if (!env)
		return takt_err_set(err, -ENOMEM, "clean up with '%s'", spec->cleanup[0]);
	pid = fork();
	if (pid == 0)
		become(spec, user, env, logfd, parent);
	takt_free(env);
	if (pid < 0)
		return takt_err_set(err, -errno, "clean up with '%s'", spec->cleanup[0]);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return takt_err_set(err, -errno, "wait for the clean-up");
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	return takt_err_set(err, -EAGAIN, "the clean-up after the job failed");
}
