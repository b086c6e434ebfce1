/* SPDX-License-Identifier: Apache-2.0 */
/* Cleaning up after an attempt. */
#include "launch/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
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

static int redirect(posix_spawn_file_actions_t *actions, int logfd)
{
	int rc = posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);

	for (int fd = STDOUT_FILENO; rc == 0 && fd <= STDERR_FILENO; fd++)
		rc = logfd >= 0 ? posix_spawn_file_actions_adddup2(actions, logfd, fd)
				: posix_spawn_file_actions_addopen(actions, fd, "/dev/null",
								   O_WRONLY, 0);
	return -rc;
}

static int spawn(const struct takt_attempt_spec *spec, char **env, int logfd, pid_t *ret)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none, all;
	int rc;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &all);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	rc = redirect(&actions, logfd);
	if (rc == 0)
		rc = -posix_spawn(ret, spec->cleanup[0], &actions, &attr, spec->cleanup, env);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&actions);
	return rc;
}

int takt_cleanup_run(const struct takt_attempt_spec *spec, int logfd, struct takt_err *err)
{
	char **env;
	int status, rc;
	pid_t pid;

	if (!spec->cleanup)
		return 0;
	env = env_without_attempt(spec->env);
	rc = env ? spawn(spec, env, logfd, &pid) : -ENOMEM;
	takt_free(env);
	if (rc < 0)
		return takt_err_set(err, rc, "clean up with '%s'", spec->cleanup[0]);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return takt_err_set(err, -errno, "wait for the clean-up");
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	return takt_err_set(err, -EAGAIN, "the clean-up after the job failed");
}
