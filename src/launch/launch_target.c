/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whom the launcher may signal: shims of the attempt that the request names, which root started;
 * and processes of the user that it names, who must be one that may run jobs. That is no more than
 * the daemon could do by starting a job as that user.
 */
#include "launch/launch_target.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "launch/attempt.h"
#include "launch/below.h"
#include "launch/job_cgroup.h"
#include "launch/job_user.h"
#include "launch/proc_tree.h"

enum {
	MAX_AT_ONCE = 256
};

/* The pidfd of exactly that process if it is the user's; the kernel asks the same of a launcher
 * that is not root. */
static int open_owned(const struct takt_proc_id *target, uid_t uid)
{
	int pidfd = takt_proc_open(target);
	uid_t owner;
	int rc;

	if (pidfd < 0)
		return pidfd;
	rc = takt_process_uid(target->pid, &owner);
	if (rc == 0 && owner != uid)
		rc = -EPERM;
	if (rc == 0)
		return pidfd;
	close(pidfd);
	return rc;
}

/* The pidfd of exactly that shim. Root's is known by its words: nobody else can be root with them.
 * One that an older launcher started is the user's. */
static int open_shim(const struct takt_spawn *spawn, const struct takt_launch_request *request)
{
	int pidfd = open_owned(&request->target, 0);
	uint64_t job_id;
	uint32_t attempt;

	if (pidfd < 0 || request->uid == 0)
		return pidfd == -EPERM ? open_owned(&request->target, request->uid) : pidfd;
	if (takt_shim_words(request->target.pid, spawn->config->jobs_dir, &job_id, &attempt) == 0 &&
	    job_id == request->job_id && attempt == request->attempt)
		return pidfd;
	close(pidfd);
	return -EPERM;
}

/* Send a real-time signal with a number as value, or a plain one. */
static int send(int pidfd, int sig, int value)
{
	siginfo_t info = {0};
	bool queued = sig == TAKT_SHIM_FORWARD_SIGNAL;

	info.si_signo = sig;
	info.si_code = SI_QUEUE;
	info.si_pid = getpid();
	info.si_uid = getuid();
	info.si_value.sival_int = value;
	return pidfd_send_signal(pidfd, sig, queued ? &info : NULL, 0) < 0 ? -errno : 0;
}

/* What has outlived its grace. The shim, a child subreaper, stays: it is told of the ends. */
static void kill_job(const struct takt_spawn *spawn, const struct takt_launch_request *request)
{
	char cgroup[TAKT_CGROUP_PATH];

	takt_job_cgroup_leaf(&spawn->cgroups, request->job_id, request->attempt, cgroup);
	(void)takt_below_kill(request->target.pid, cgroup);
}

int takt_target_signal(const struct takt_spawn *spawn, const struct takt_launch_request *request,
		       struct takt_err *err)
{
	int sig = request->op == TAKT_LAUNCH_STOP   ? SIGTERM
		  : request->op == TAKT_LAUNCH_LOOK ? TAKT_SHIM_LOOK_SIGNAL
						    : TAKT_SHIM_FORWARD_SIGNAL;
	int pidfd, rc;

	if (request->op == TAKT_LAUNCH_SIGNAL &&
	    (request->signal < 1 ||
	     (request->signal > SIGRTMAX && request->signal < TAKT_SHIM_NOTICE_IDLE)))
		return takt_err_set(err, -EINVAL, "signal %d: 1 to %d are accepted",
				    request->signal, SIGRTMAX);
	rc = takt_spawn_allowed(spawn->config, request->uid, err);
	if (rc == 0 && request->op == TAKT_LAUNCH_LOOK && !request->limits.staged)
		rc = takt_job_cgroup_admit(&spawn->cgroups, request->job_id, request->attempt,
					   &request->limits, err);
	if (rc < 0)
		return rc;
	pidfd = open_shim(spawn, request);
	if (pidfd < 0)
		return takt_err_set(err, pidfd, "shim %d of attempt %" PRIu64 ".%" PRIu32,
				    request->target.pid, request->job_id, request->attempt);
	if (request->op == TAKT_LAUNCH_STOP && request->signal == SIGKILL)
		kill_job(spawn, request);
	rc = send(pidfd, sig, request->signal);
	close(pidfd);
	return rc < 0 ? takt_err_set(err, rc, "signal shim %d", request->target.pid) : 0;
}

int takt_target_whose(const struct takt_spawn *spawn, const struct takt_launch_request *request,
		      char ret[TAKT_ATTEMPT_ID_MAX], struct takt_err *err)
{
	char said[TAKT_ATTEMPT_ID_MAX] = "";
	int pidfd, rc = takt_spawn_allowed(spawn->config, request->uid, err);

	if (rc < 0)
		return rc;
	pidfd = open_owned(&request->target, request->uid);
	if (pidfd < 0)
		return takt_err_set(err, pidfd, "process %d", request->target.pid);
	rc = takt_process_attempt(request->target.pid, said);
	if (rc == 0 && pidfd_send_signal(pidfd, 0, NULL, 0) < 0)
		rc = -errno; /* what was read may be another's who has its number */
	close(pidfd);
	if (rc < 0)
		return takt_err_set(err, rc, "process %d", request->target.pid);
	takt_strcpy(ret, TAKT_ATTEMPT_ID_MAX, said);
	return 0;
}

/* How many were found. Whoever is in the cgroup got SIGKILL before, and the user's get it here. */
static int kill_survivors(const struct takt_attempt_spec *spec, const char *cgroup, uid_t uid,
			  struct takt_err *err)
{
	struct takt_proc_id *found = takt_calloc(MAX_AT_ONCE, sizeof(*found));
	int n, pidfd;

	if (!found)
		return takt_err_set(err, -ENOMEM, "look for survivors");
	n = takt_attempt_survivors(spec->id, uid, cgroup, found, MAX_AT_ONCE, err);
	for (int i = 0; i < n && i < MAX_AT_ONCE; i++) {
		pidfd = open_owned(&found[i], uid);
		if (pidfd < 0)
			continue;
		(void)pidfd_send_signal(pidfd, SIGKILL, NULL, 0);
		close(pidfd);
	}
	takt_free(found);
	return n;
}

static int reap_attempt(const struct takt_spawn *spawn, const struct takt_launch_request *request,
			int dirfd, int *ret_report, struct takt_err *err)
{
	struct takt_attempt_spec spec;
	char cgroup[TAKT_CGROUP_PATH];
	int lock = takt_attempt_lock(spawn->sys, dirfd, err);
	int rc;

	if (lock < 0)
		return lock == -TAKT_E_BUSY
			       ? takt_err_set(err, -TAKT_E_CONFLICT, "the attempt is alive")
			       : lock;
	rc = takt_attempt_read_spec(spawn->sys, dirfd, &spec, err);
	if (rc == 0) {
		takt_job_cgroup_leaf(&spawn->cgroups, request->job_id, request->attempt, cgroup);
		if (cgroup[0])
			(void)takt_cgroup_kill(cgroup);
		rc = kill_survivors(&spec, cgroup, request->uid, err);
		if (rc == 0 && !spec.cleanup)
			takt_job_user_take_back_all(spawn->sys, dirfd, request->uid);
		else if (rc == 0)
			rc = takt_spawn_cleanup(spawn, request, &spec, dirfd, ret_report, err);
		takt_attempt_spec_fini(&spec);
	}
	(void)spawn->sys->close(spawn->sys, lock);
	return rc;
}

int takt_target_reap(const struct takt_spawn *spawn, const struct takt_launch_request *request,
		     int *ret_report, struct takt_err *err)
{
	int dirfd, rc = takt_spawn_allowed(spawn->config, request->uid, err);

	*ret_report = -1;
	if (rc < 0)
		return rc;
	dirfd = takt_attempt_open(spawn->sys, spawn->jobs_dirfd, request->job_id, request->attempt,
				  err);
	if (dirfd < 0)
		return dirfd;
	rc = reap_attempt(spawn, request, dirfd, ret_report, err);
	(void)spawn->sys->close(spawn->sys, dirfd);
	return rc;
}
