/* SPDX-License-Identifier: Apache-2.0 */
/* takt-shim from beginning to end: what it must have before it may run anything, and what it leaves
 * behind. */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/pace.h"
#include "base/str.h"
#include "confine/confine.h"
#include "launch/attempt_files.h"
#include "launch/cleanup.h"
#include "launch/launch.h"
#include "launch/shim_job.h"

enum {
	LOCK_TRIES = 44, /* two seconds */
	CLEANUP_TRIES_MS = 60 * 1000,
};

static const struct takt_pace locking = {TAKT_NS_PER_MS, 50 * TAKT_NS_PER_MS};
static const struct takt_pace recording = {TAKT_NS_PER_S / 4, 5 * TAKT_NS_PER_S};
static const struct takt_pace cleaning = {TAKT_NS_PER_S, 10 * TAKT_NS_PER_S};

/* After a failure that so many came before. */
static void pause_after(const struct takt_pace *pace, uint32_t failures)
{
	uint64_t ns = takt_pace_ns(pace, failures);
	struct timespec t = {(time_t)(ns / TAKT_NS_PER_S), (long)(ns % TAKT_NS_PER_S)};

	(void)nanosleep(&t, NULL);
}

void takt_shim_note(const struct takt_shim *shim, const char *fmt, ...)
{
	char line[400] = "takt-shim: ";
	size_t at = strlen(line);
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(line + at, sizeof(line) - at - 1, fmt, ap);
	va_end(ap);
	if (n < 0 || shim->logfd < 0)
		return;
	at = strlen(line);
	line[at++] = '\n';
	if (write(shim->logfd, line, at) < 0)
		return; /* the log is the job's; ours is best effort */
}

/* Whoever looks at the attempt holds the lock for a moment; another shim holds it for good. */
static int lock(struct takt_shim *shim, struct takt_err *err)
{
	int rc = takt_attempt_lock(shim->sys, shim->dirfd, err);

	for (uint32_t i = 1; rc == -TAKT_E_BUSY && i < LOCK_TRIES; i++) {
		pause_after(&locking, i - 1);
		rc = takt_attempt_lock(shim->sys, shim->dirfd, err);
	}
	if (rc < 0)
		return rc;
	shim->lockfd = rc;
	takt_crash_point("shim.after_lock");
	return takt_attempt_unused(shim->sys, shim->dirfd, err);
}

static int introduce(struct takt_shim *shim, struct takt_err *err)
{
	struct takt_proc_id self;
	int rc = takt_proc_identify(getpid(), &self, err);

	if (rc == 0)
		rc = takt_attempt_record_shim(shim->sys, shim->dirfd, &self, err);
	if (rc == 0)
		rc = takt_attempt_record_isolation(shim->sys, shim->dirfd, shim->place->why, err);
	takt_crash_point("shim.after_shim_record");
	return rc;
}

static int open_log(struct takt_shim *shim, struct takt_err *err)
{
	int fd = takt_job_user_open(shim->user, shim->sys, shim->dirfd, "log",
				    O_WRONLY | O_CREAT | O_APPEND);

	if (fd < 0)
		return takt_err_set(err, fd, "open the log of the job");
	shim->logfd = fd;
	return 0;
}

static void prepare_process(void)
{
	struct sigaction act = {.sa_handler = SIG_DFL};
	sigset_t all;

	sigfillset(&all);
	sigdelset(&all, SIGSYS); /* of a call that is refused: confine/confine.h */
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	(void)sigaction(SIGCHLD, &act, NULL); /* ignored, children would vanish unseen */
	(void)setsid();			      /* fails where we lead a group already: no harm */
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	umask(0);
}

/* A spec that cannot be used ends the attempt: starting it again would not help. */
static int read_spec(struct takt_shim *shim, struct takt_err *err)
{
	struct takt_err why;
	int rc = takt_attempt_read_spec(shim->sys, shim->dirfd, &shim->spec, &why);

	if (rc != -TAKT_E_CORRUPT && rc != -TAKT_E_VERSION)
		return rc < 0 ? takt_err_set(err, rc, "%s", why.msg) : 0;
	shim->end.exit_kind = TAKT_EXIT_EXEC_FAILED;
	shim->end.exit_code = EBADMSG;
	shim->end.ended_at = takt_wall_now(shim->sys);
	takt_strcpy(shim->end.message, sizeof(shim->end.message), why.msg);
	return 0;
}

/* The environment may be large and the job runs long; only a clean-up needs it once more. */
static void shed(struct takt_shim *shim)
{
	struct takt_attempt_spec *spec = &shim->spec;
	struct takt_attempt_spec gone = {.argv = spec->argv, .cwd = spec->cwd};

	spec->argv = NULL;
	spec->cwd = NULL;
	if (!spec->cleanup) {
		gone.env = spec->env;
		spec->env = NULL;
	}
	takt_attempt_spec_fini(&gone);
	malloc_trim(0);
}

/* Milliseconds until then, at most `most`; 0 = it has come. */
static uint32_t left_ms(const struct takt_shim *shim, struct takt_boot until, uint32_t most)
{
	uint64_t now = takt_boot_now(shim->sys).ns;
	uint64_t left = until.ns > now ? (until.ns - now) / TAKT_NS_PER_MS : 0;

	return left < most ? (uint32_t)left : most;
}

/* A job is over when its container is gone; one that cannot be removed for a minute, or within the
 * time of one try, is left to those who watch its GPUs. */
static void clean_up(struct takt_shim *shim)
{
	struct takt_boot until =
		takt_boot_add(takt_boot_now(shim->sys), CLEANUP_TRIES_MS * TAKT_NS_PER_MS);
	struct takt_cleanup cleanup = {.spec = &shim->spec,
				       .user = shim->user,
				       .leaf = shim->place->job,
				       .logfd = shim->logfd,
				       .limit_ms = TAKT_CLEANUP_LIMIT_MS};
	struct takt_err err;
	int rc = takt_cleanup_run(&cleanup, &err);

	for (uint32_t i = 0; rc < 0 && rc != -ETIMEDOUT; i++) {
		pause_after(&cleaning, i);
		cleanup.limit_ms = left_ms(shim, until, TAKT_CLEANUP_LIMIT_MS);
		if (cleanup.limit_ms == 0)
			break;
		rc = takt_cleanup_run(&cleanup, &err);
	}
	if (rc < 0)
		takt_shim_note(shim, "%s; its container may still be there", err.msg);
}

/* A full disk or a read-only one is waited out: the end of a job is not to be lost. */
static void record_end(struct takt_shim *shim)
{
	uint32_t failures = 0;
	struct takt_err err;

	takt_shim_take_back(shim);
	takt_crash_point("shim.before_exit_record");
	while (takt_attempt_record_exit(shim->sys, shim->dirfd, &shim->end, &err) < 0)
		pause_after(&recording, failures++);
	takt_shim_take_back(shim); /* what a hook has lent him meanwhile */
	takt_crash_point("shim.after_exit_record");
}

/* One that was staged and called off. Where its end cannot be written nothing is recorded, and
 * whoever looks will void it. */
static int record_void(struct takt_shim *shim, struct takt_err *err)
{
	shim->end.exit_kind = TAKT_EXIT_VOID;
	shim->end.ended_at = takt_wall_now(shim->sys);
	takt_shim_take_back(shim);
	takt_crash_point("shim.before_void");
	return takt_attempt_record_exit(shim->sys, shim->dirfd, &shim->end, err);
}

/* It starts nothing any more, unless there is a clean-up to come: that would be held to our list,
 * too. */
static void confine(const struct takt_shim *shim)
{
	struct takt_err err;

	if (shim->spec.cleanup)
		return;
	takt_confine_tell(shim->logfd, "takt-shim", "");
	if (takt_confine_calls(TAKT_CONFINED_SHIM, &err) < 0)
		takt_shim_note(shim, "%s: %s", err.msg, takt_err_sentence(err.rc));
}

static int run_job(struct takt_shim *shim, struct takt_err *err)
{
	int rc = takt_shim_begin(shim, err);

	if (rc == 0) {
		confine(shim);
		shed(shim);
		takt_shim_see_through(shim);
		takt_shim_explain_end(shim);
		clean_up(shim);
	}
	return rc;
}

/* What the launcher has taken over, and nothing that somebody has put in its place since. */
static int check_directory(const struct takt_shim *shim, struct takt_err *err)
{
	struct stat st;
	int rc = shim->sys->fstat(shim->sys, shim->dirfd, &st);

	if (rc < 0)
		return takt_err_set(err, rc, "look at the attempt's directory");
	if (shim->user->other && (st.st_uid != 0 || (st.st_mode & 07770) != (S_ISGID | 0770)))
		return takt_err_set(err, -EPERM, "the attempt's directory is not root's");
	return 0;
}

static int run(struct takt_shim *shim, struct takt_err *err)
{
	int rc = takt_job_user_shed_rights(shim->user, err);

	if (rc == 0)
		rc = check_directory(shim, err);
	if (rc == 0)
		rc = lock(shim, err);
	if (rc == 0)
		takt_job_user_shut_out(shim->user, shim->dirfd);
	if (rc == 0)
		rc = introduce(shim, err);
	if (rc == 0)
		rc = open_log(shim, err);
	if (rc == 0)
		rc = read_spec(shim, err);
	if (rc < 0)
		return rc;
	if (shim->spec.hook_event[0])
		takt_shim_hook_log(shim);
	if (shim->spec.argv)
		rc = run_job(shim, err);
	if (rc == -ECANCELED)
		return record_void(shim, err);
	if (rc == 0 && shim->interrupted)
		takt_shim_note(shim, "interrupted: the machine goes down");
	else if (rc == 0)
		record_end(shim);
	return rc;
}

int takt_shim_run(const struct takt_sys *sys, int attempt_dirfd, const struct takt_job_place *place,
		  const struct takt_job_user *user, struct takt_err *err)
{
	struct takt_shim shim = {.sys = sys,
				 .dirfd = attempt_dirfd,
				 .place = place,
				 .user = user,
				 .self = getpid(),
				 .lockfd = -1,
				 .logfd = -1,
				 .logdirfd = attempt_dirfd,
				 .progressfd = -1,
				 .report = -1};
	struct takt_err why;
	int rc;

	prepare_process();
	rc = run(&shim, &why);
	if (rc < 0) {
		takt_shim_note(&shim, "nothing was run: %s: %s", why.msg, takt_err_sentence(rc));
		takt_err_set(err, rc, "%s", why.msg);
	}
	takt_shim_io_finish(&shim);
	takt_attempt_spec_fini(&shim.spec);
	takt_free(shim.ranks);
	if (shim.report >= 0)
		(void)close(shim.report);
	if (shim.logfd >= 0)
		(void)sys->close(sys, shim.logfd);
	if (shim.progressfd >= 0)
		(void)sys->close(sys, shim.progressfd);
	if (shim.logdirfd != attempt_dirfd)
		(void)sys->close(sys, shim.logdirfd);
	if (shim.lockfd >= 0)
		(void)sys->close(sys, shim.lockfd);
	return rc;
}
