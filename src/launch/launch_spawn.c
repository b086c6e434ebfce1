/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a request to a running shim. Whatever may wait (a disk, a directory service asked for
 * groups) is done in the forked process, so that the launcher goes on serving.
 */
#include "launch/launch_spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launch/attempt.h"
#include "launch/attempt_files.h"
#include "launch/cleanup.h"
#include "launch/oom_score.h"
#include "launch/system_users.h"
#include "launch/user_session.h"

enum {
	REPORT_FD = 3
};

int takt_spawn_allowed(const struct takt_launch_server_config *config, uid_t uid,
		       struct takt_err *err)
{
	uid_t self = geteuid();

	if (uid == self && uid == config->client_uid)
		return 0;
	if (self != 0)
		return takt_err_set(err, -EPERM,
				    "user %u: a launcher that is not root runs jobs of "
				    "its own user %u only",
				    (unsigned int)uid, (unsigned int)self);
	if (config->allow_system && uid != 0)
		return 0;
	return takt_system_users_check(uid, config->min_uid, err);
}

/* Root's from now on, for a name that is still the daemon's (or root's, from an earlier try);
 * anything else was put there by somebody. Its group is the daemon's and stays. */
static int take_over(const struct takt_spawn *spawn, int fd, mode_t type, mode_t mode)
{
	struct stat st;
	int rc = spawn->sys->fstat(spawn->sys, fd, &st);

	if (rc < 0)
		return rc;
	if ((st.st_mode & S_IFMT) != type ||
	    (st.st_uid != spawn->config->client_uid && st.st_uid != 0))
		return -EPERM;
	if (type == S_IFREG && st.st_nlink != 1) /* another name of a file that is elsewhere */
		return -EPERM;
	if (st.st_uid == 0 && (st.st_mode & 07770) == mode) /* a shim may be at work there */
		return 0;
	return fchown(fd, 0, st.st_gid) < 0 || fchmod(fd, mode) < 0 ? -errno : 0;
}

static int take_over_file(const struct takt_spawn *spawn, int dirfd, const char *name)
{
	int fd = spawn->sys->openat(spawn->sys, dirfd, name,
				    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
	int rc;

	if (fd < 0)
		return fd;
	rc = take_over(spawn, fd, S_IFREG, TAKT_ATTEMPT_MODE);
	(void)spawn->sys->close(spawn->sys, fd);
	return rc;
}

/* From the daemon to root's shim; the daemon goes on reading its records through its group. */
static int take_over_attempt(const struct takt_spawn *spawn, int dirfd)
{
	int rc = take_over_file(spawn, dirfd, "lock");

	if (rc == 0)
		rc = take_over_file(spawn, dirfd, "spec");
	return rc == 0 ? take_over(spawn, dirfd, S_IFDIR, S_ISGID | 0770) : rc;
}

static bool is_other(const struct takt_launch_request *request)
{
	return geteuid() == 0 && request->uid != 0;
}

/* What he would have by logging in; this process takes his groups. */
static int learn_user(const struct takt_spawn *spawn, const struct takt_launch_request *request,
		      bool comes_in, struct takt_job_user *ret, struct takt_err *err)
{
	const struct takt_user_wish wish = {.uid = request->uid,
					    .gid = request->gid,
					    .min_gid = spawn->config->min_uid,
					    .comes_in = comes_in};
	static struct takt_user_session session;
	int rc;

	*ret = (struct takt_job_user){.other = is_other(request),
				      .uid = request->uid,
				      .oom_score = takt_oom_score_of_jobs()};
	if (!ret->other)
		return 0;
	rc = takt_user_session_ask(&wish, &session, err);
	if (rc < 0)
		return rc;
	takt_user_limits_make_room(&session.limits);
	if (setgroups(session.group_count, session.groups) < 0)
		return takt_err_set(err, -errno, "take the groups of user %u", request->uid);
	ret->gid = session.gid;
	ret->limits = session.limits;
	return 0;
}

/*
 * A shim of root's takes the attempt over. It has its user's group as the real one, which it may
 * take later. Meanwhile it is of the daemon's, so that it can read what that writes.
 */
static enum takt_refusal prepare_shim(const struct takt_spawn *spawn,
				      const struct takt_launch_request *request,
				      const struct takt_job_user *user, struct takt_err *err)
{
	struct stat st;
	int dirfd, rc;

	if (!user->other)
		return TAKT_REFUSAL_NONE;
	dirfd = takt_attempt_open(spawn->sys, spawn->jobs_dirfd, request->job_id, request->attempt,
				  err);
	if (dirfd < 0)
		return TAKT_REFUSAL_ATTEMPT;
	rc = take_over_attempt(spawn, dirfd);
	if (rc == 0)
		rc = spawn->sys->fstat(spawn->sys, dirfd, &st);
	(void)spawn->sys->close(spawn->sys, dirfd);
	if (rc < 0) {
		takt_err_set(err, rc, "take over the attempt");
		return TAKT_REFUSAL_ATTEMPT;
	}
	if (setresgid(user->gid, st.st_gid, user->gid) < 0) {
		takt_err_set(err, -errno, "take group %u", user->gid);
		return TAKT_REFUSAL_USER;
	}
	return TAKT_REFUSAL_NONE;
}

static void close_between(int low, int high)
{
	if (low <= high)
		(void)close_range((unsigned int)low, (unsigned int)high, 0);
}

/*
 * First of all: as long as we hold the launcher's sockets they look alive, and should it be killed
 * now, its successor could not listen.
 */
static void close_all_but(int a, int b)
{
	int low = a < b ? a : b;
	int high = a < b ? b : a;

	close_between(STDERR_FILENO + 1, low - 1);
	close_between(low + 1, high - 1);
	close_between(high + 1, INT_MAX);
}

/* Descriptors 0 to 2 are /dev/null, REPORT_FD the report, everything else closes on exec. */
static int clean_table(int *report, struct takt_err *err)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0)
		return takt_err_set(err, -errno, "open '/dev/null'");
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (dup2(null, fd) < 0)
			return takt_err_set(err, -errno, "standard descriptors");
	if (*report != REPORT_FD && dup3(*report, REPORT_FD, O_CLOEXEC) < 0)
		return takt_err_set(err, -errno, "descriptor of the report");
	*report = REPORT_FD;
	(void)close_range(REPORT_FD + 1, ~0u, 0);
	return 0;
}

static void reset_signals(void)
{
	struct sigaction act = {.sa_handler = SIG_DFL};
	sigset_t none;

	(void)sigaction(SIGCHLD, &act, NULL);
	(void)sigaction(SIGPIPE, &act, NULL);
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* An empty environment, but for the crash point of a test. The directory of attempts stands there
 * for whoever reads the process list: names of attempts are one daemon's own. */
static void exec_shim(const struct takt_launch_server_config *config, char *name,
		      struct takt_job_place *place, const struct takt_job_user *user)
{
	char whose[40] = "", limits[TAKT_USER_LIMITS_TEXT] = "";
	char crash_at[128];
	const char *armed = secure_getenv("TAKT_CRASH_AT");
	char *argv[] = {(char[]){"takt-shim"},
			name,
			(char *)config->jobs_dir,
			place->job,
			place->why,
			whose,
			limits,
			NULL};
	char *env[] = {NULL, NULL};

	if (armed &&
	    snprintf(crash_at, sizeof(crash_at), "TAKT_CRASH_AT=%s", armed) < (int)sizeof(crash_at))
		env[0] = crash_at;
	if (user->other)
		snprintf(whose, sizeof(whose), "%u:%u:%d", user->uid, user->gid, user->oom_score);
	takt_user_limits_format(&user->limits, limits);
	execve(config->shim_path, argv, env);
}

/* In the forked process. The shim finds the attempt by name in its working directory. Returns only
 * when it failed, with what failed. */
static enum takt_refusal become_shim(const struct takt_spawn *spawn,
				     const struct takt_launch_request *request, int *report,
				     struct takt_err *err)
{
	char name[TAKT_ATTEMPT_NAME];
	struct takt_job_place place;
	struct takt_job_user user;
	enum takt_refusal refusal;

	takt_attempt_name(request->job_id, request->attempt, name);
	(void)setsid();
	if (learn_user(spawn, request, true, &user, err) < 0)
		return TAKT_REFUSAL_USER;
	if (takt_attempt_sync(spawn->sys, spawn->jobs_dirfd, err) < 0)
		return TAKT_REFUSAL_ATTEMPT;
	if (takt_job_cgroup_make(&spawn->cgroups, request->job_id, request->attempt,
				 &request->limits, &place, err) < 0)
		return TAKT_REFUSAL_CGROUP;
	refusal = prepare_shim(spawn, request, &user, err);
	if (refusal)
		return refusal;
	if (fchdir(spawn->jobs_dirfd) < 0) {
		takt_err_set(err, -errno, "enter the directory of attempts");
	} else if (clean_table(report, err) == 0) {
		reset_signals();
		takt_oom_score_take(user.oom_score);
		if (user.other)
			takt_oom_score_spare();
		exec_shim(spawn->config, name, &place, &user);
		takt_err_set(err, -errno, "exec '%s'", spawn->config->shim_path);
	}
	return TAKT_REFUSAL_LAUNCHER;
}

static _Noreturn void run_child(const struct takt_spawn *spawn,
				const struct takt_launch_request *request, int report)
{
	struct takt_spawn_failed failed = {.refusal = TAKT_REFUSAL_NONE};

	close_all_but(spawn->jobs_dirfd, report);
	failed.refusal = become_shim(spawn, request, &report, &failed.err);
	while (write(report, &failed, sizeof(failed)) < 0 && errno == EINTR)
		;
	_exit(EXIT_FAILURE);
}

int takt_spawn_shim(const struct takt_spawn *spawn, const struct takt_launch_request *request,
		    struct takt_proc_id *ret_shim, int *ret_report, struct takt_err *err)
{
	int report[2];
	pid_t pid;
	int rc;

	if (pipe2(report, O_CLOEXEC | O_NONBLOCK) < 0)
		return takt_err_set(err, -errno, "make a pipe");
	takt_crash_point("launch.before_fork");
	pid = fork();
	if (pid == 0) {
		close(report[0]);
		run_child(spawn, request, report[1]);
	}
	rc = pid < 0 ? takt_err_set(err, -errno, "fork") : 0;
	close(report[1]);
	takt_crash_point("launch.after_fork");
	if (rc < 0) {
		close(report[0]);
		return rc;
	}
	/* One that failed already is gone and has no identity; its report says why. */
	if (takt_proc_identify(pid, ret_shim, NULL) < 0)
		*ret_shim = (struct takt_proc_id){.pid = pid};
	*ret_report = report[0];
	return 0;
}

/* As the user: the log is his. */
static int open_log(const struct takt_spawn *spawn, const struct takt_job_user *user,
		    int attempt_dirfd)
{
	int fd;

	takt_job_user_files_begin(user);
	fd = spawn->sys->openat(spawn->sys, attempt_dirfd, "log",
				O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
	takt_job_user_files_end(user);
	return fd;
}

/* One that takes too long is done with: it is left to those who watch the job's GPUs. */
static int run_cleanup(const struct takt_attempt_spec *spec, const struct takt_job_user *user,
		       const char *leaf, int logfd, struct takt_err *err)
{
	const struct takt_cleanup cleanup = {.spec = spec,
					     .user = user,
					     .leaf = leaf,
					     .logfd = logfd,
					     .limit_ms = TAKT_CLEANUP_LIMIT_MS,
					     .kill_limit_ms = TAKT_CLEANUP_KILL_LIMIT_MS};
	int rc = takt_cleanup_run(&cleanup, err);

	if (rc != -ETIMEDOUT)
		return rc;
	if (logfd >= 0)
		(void)dprintf(logfd, "takt-launch: %s; its container may still be there\n",
			      err->msg);
	return 0;
}

/* In the cgroup of the job, never in that of the launcher. */
static int clean_up(const struct takt_spawn *spawn, const struct takt_launch_request *request,
		    const struct takt_attempt_spec *spec, int attempt_dirfd, struct takt_err *err)
{
	struct takt_job_place place;
	struct takt_job_user user;
	int rc = learn_user(spawn, request, false, &user, err);
	int logfd = rc == 0 ? open_log(spawn, &user, attempt_dirfd) : -1;

	reset_signals();
	(void)setsid();
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (rc == 0 && chdir("/") < 0)
		rc = takt_err_set(err, -errno, "change to directory '/'");
	if (rc == 0)
		rc = takt_job_cgroup_reenter(&spawn->cgroups, request->job_id, request->attempt,
					     &place, err);
	return rc == 0 ? run_cleanup(spec, &user, place.job, logfd, err) : rc;
}

int takt_spawn_cleanup(const struct takt_spawn *spawn, const struct takt_launch_request *request,
		       const struct takt_attempt_spec *spec, int attempt_dirfd, int *ret_report,
		       struct takt_err *err)
{
	struct takt_spawn_failed failed = {.refusal = TAKT_REFUSAL_NONE};
	int report[2];
	pid_t pid;

	if (pipe2(report, O_CLOEXEC | O_NONBLOCK) < 0)
		return takt_err_set(err, -errno, "make a pipe");
	pid = fork();
	if (pid == 0) {
		close_all_but(attempt_dirfd, report[1]);
		if (clean_up(spawn, request, spec, attempt_dirfd, &failed.err) == 0) {
			takt_job_user_take_back_all(spawn->sys, attempt_dirfd, request->uid);
			_exit(EXIT_SUCCESS);
		}
		(void)sleep(1);
		while (write(report[1], &failed, sizeof(failed)) < 0 && errno == EINTR)
			;
		_exit(EXIT_FAILURE);
	}
	close(report[1]);
	*ret_report = report[0];
	if (pid > 0)
		return 0;
	close(report[0]);
	*ret_report = -1;
	return takt_err_set(err, -errno, "fork");
}
