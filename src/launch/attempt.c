/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory of an attempt. Everything that reads several files of it does so with the lock held
 * shared: no shim can begin meanwhile, so "no lock, not started" cannot turn into "started" between
 * two reads and be taken for an orphan.
 */
#include "launch/attempt.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/file.h>

#include "base/mem.h"
#include "base/terminal.h"
#include "launch/attempt_files.h"
#include "launch/attempt_record.h"
#include "launch/attempt_spec.h"
#include "launch/attempt_status.h"

int takt_attempt_open(const struct takt_sys *sys, int jobs_dirfd, uint64_t job_id, uint32_t attempt,
		      struct takt_err *err)
{
	char name[TAKT_ATTEMPT_NAME];
	int fd;

	takt_attempt_name(job_id, attempt, name);
	fd = sys->openat(sys, jobs_dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	return fd < 0 ? takt_err_set(err, fd, "attempt %s", name) : fd;
}

int takt_attempt_sync(const struct takt_sys *sys, int jobs_dirfd, struct takt_err *err)
{
	int rc = sys->fsync(sys, jobs_dirfd);

	return rc < 0 ? takt_err_set(err, rc, "sync the directory of attempts") : 0;
}

/* The descriptor that holds the lock; -TAKT_E_BUSY when somebody else holds it, -ENOENT. */
static int take_lock(const struct takt_sys *sys, int dirfd, int extra_flags, int operation)
{
	int fd, rc;

	fd = sys->openat(sys, dirfd, "lock",
			 O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | extra_flags,
			 TAKT_ATTEMPT_MODE);
	if (fd < 0)
		return fd;
	rc = sys->flock(sys, fd, operation | LOCK_NB);
	if (rc == 0)
		return fd;
	(void)sys->close(sys, fd);
	return rc == -EWOULDBLOCK ? -TAKT_E_BUSY : rc;
}

int takt_attempt_lock(const struct takt_sys *sys, int attempt_dirfd, struct takt_err *err)
{
	int fd = take_lock(sys, attempt_dirfd, 0, LOCK_EX);

	return fd < 0 ? takt_err_set(err, fd, "lock the attempt") : fd;
}

/* The text of a record of the attempt, and of no other (-TAKT_E_CONFLICT). */
static int read_own(const struct takt_sys *sys, int dirfd, const char *name,
		    const struct takt_attempt_mark *mark, char **ret_text, size_t *ret_len)
{
	int rc = takt_attempt_read_text(sys, dirfd, name, TAKT_ATTEMPT_MAX_RECORD, ret_text,
					ret_len, NULL);

	return rc < 0 ? rc : takt_record_mark_take(*ret_text, ret_len, mark->of, mark->all);
}

/* Makes a finished record one of the attempt. */
static int mark_record(const struct takt_sys *sys, int dirfd, struct takt_str *text)
{
	struct takt_attempt_mark mark = {0};
	int rc = takt_attempt_read_mark(sys, dirfd, &mark);

	return rc < 0 ? rc : takt_record_mark_put(text, mark.of);
}

/* 1 present and sound, 0 absent, -TAKT_E_CORRUPT damaged, -TAKT_E_CONFLICT another attempt's, or
 * why it could not be read. */
static int read_record(const struct takt_sys *sys, int dirfd, const char *name,
		       const struct takt_attempt_mark *mark,
		       int (*parse)(const char *, size_t, struct takt_attempt_status *),
		       struct takt_attempt_status *ret)
{
	TAKT_CLEANUP(freep) char *text = NULL;
	size_t len;
	int rc;

	rc = read_own(sys, dirfd, name, mark, &text, &len);
	if (rc == -ENOENT)
		return 0;
	if (rc == 0)
		rc = parse(text, len, ret);
	if (rc == -TAKT_E_VERSION)
		rc = -TAKT_E_CORRUPT;
	return rc < 0 ? rc : 1;
}

static bool has_file(const struct takt_sys *sys, int dirfd, const char *name)
{
	int fd = sys->openat(sys, dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);

	if (fd >= 0)
		(void)sys->close(sys, fd);
	return fd >= 0;
}

static int read_stage(const struct takt_sys *sys, int dirfd, const struct takt_attempt_mark *mark,
		      struct takt_attempt_status *ret)
{
	int rc = read_record(sys, dirfd, "staged", mark, takt_attempt_staged_parse, ret);

	if (rc == -TAKT_E_CORRUPT)
		ret->staged = TAKT_STAGED_UNKNOWN;
	else if (rc < 0 && rc != -TAKT_E_CONFLICT)
		return rc;
	ret->handed_over = ret->staged && has_file(sys, dirfd, "go");
	return 0;
}

/* Fills what `shim` and `started` say; see the header for what damage counts as. */
static int read_start(const struct takt_sys *sys, int dirfd, const struct takt_attempt_mark *mark,
		      struct takt_attempt_status *ret)
{
	int rc = read_record(sys, dirfd, "shim", mark, takt_attempt_shim_parse, ret);

	if (rc < 0 && rc != -TAKT_E_CORRUPT && rc != -TAKT_E_CONFLICT)
		return rc;
	rc = read_record(sys, dirfd, "started", mark, takt_attempt_started_parse, ret);
	if (rc < 0 && rc != -TAKT_E_CORRUPT && rc != -TAKT_E_CONFLICT)
		return rc;
	ret->started = rc != 0;
	return ret->started ? 0 : read_stage(sys, dirfd, mark, ret);
}

static int read_exit(const struct takt_sys *sys, int dirfd, const struct takt_attempt_mark *mark,
		     struct takt_attempt_status *ret)
{
	int rc = read_record(sys, dirfd, "exit", mark, takt_attempt_exit_parse, ret);

	ret->foreign_exit = rc == -TAKT_E_CONFLICT;
	return rc == -TAKT_E_CORRUPT || rc == -TAKT_E_CONFLICT ? 0 : rc;
}

/* 1 when there is a sound spec. */
static int has_spec(const struct takt_sys *sys, int dirfd)
{
	struct takt_attempt_spec spec;
	int rc = takt_attempt_read_spec(sys, dirfd, &spec, NULL);

	if (rc == 0)
		takt_attempt_spec_fini(&spec);
	if (rc == -ENOENT || rc == -TAKT_E_CORRUPT || rc == -TAKT_E_VERSION)
		return 0;
	return rc < 0 ? rc : 1;
}

/* The state of an attempt whose lock is not held by a shim; we hold it shared, if there is one. */
static int read_idle(const struct takt_sys *sys, int dirfd, const struct takt_attempt_mark *mark,
		     struct takt_attempt_status *ret)
{
	int rc = read_exit(sys, dirfd, mark, ret);

	if (rc < 0)
		return rc;
	if (rc > 0) {
		ret->state = TAKT_ATTEMPT_EXITED;
		return 0;
	}
	if (ret->started) {
		ret->state = TAKT_ATTEMPT_ORPHANED;
		return 0;
	}
	rc = has_spec(sys, dirfd);
	if (rc < 0)
		return rc;
	ret->state = rc > 0 ? TAKT_ATTEMPT_NOT_STARTED : TAKT_ATTEMPT_ABSENT;
	return 0;
}

/* Of an attempt whose spec may be gone. */
static struct takt_attempt_mark known_of(uint64_t job_id, uint32_t attempt)
{
	struct takt_attempt_mark mark = {0};

	snprintf(mark.of, sizeof(mark.of), "%" PRIu64 ".%" PRIu32 ".", job_id, attempt);
	return mark;
}

static int read_status(const struct takt_sys *sys, int dirfd, struct takt_attempt_mark *mark,
		       struct takt_attempt_status *ret)
{
	int lock = take_lock(sys, dirfd, 0, LOCK_SH);
	int rc;

	if (lock < 0 && lock != -TAKT_E_BUSY && lock != -ENOENT)
		return lock;
	rc = takt_attempt_read_mark(sys, dirfd, mark);
	if (rc == 0)
		rc = read_start(sys, dirfd, mark, ret);
	if (rc == 0 && lock == -TAKT_E_BUSY)
		ret->state = TAKT_ATTEMPT_ALIVE;
	else if (rc == 0)
		rc = read_idle(sys, dirfd, mark, ret);
	if (lock >= 0)
		(void)sys->close(sys, lock);
	return rc;
}

int takt_attempt_status(const struct takt_sys *sys, int jobs_dirfd, uint64_t job_id,
			uint32_t attempt, struct takt_attempt_status *ret, struct takt_err *err)
{
	struct takt_attempt_status status = {.state = TAKT_ATTEMPT_ABSENT};
	struct takt_attempt_mark mark = known_of(job_id, attempt);
	int dirfd, rc;

	dirfd = takt_attempt_open(sys, jobs_dirfd, job_id, attempt, err);
	if (dirfd == -ENOENT) {
		*ret = status;
		return 0;
	}
	if (dirfd < 0)
		return dirfd;
	rc = read_status(sys, dirfd, &mark, &status);
	(void)sys->close(sys, dirfd);
	if (rc < 0)
		return takt_err_set(err, rc, "read attempt %" PRIu64 ".%" PRIu32, job_id, attempt);
	*ret = status;
	return 0;
}

int takt_attempt_unused(const struct takt_sys *sys, int attempt_dirfd, struct takt_err *err)
{
	struct takt_attempt_status status = {0};
	struct takt_attempt_mark mark = {0};
	int rc = takt_attempt_read_mark(sys, attempt_dirfd, &mark);

	if (rc == 0)
		rc = read_start(sys, attempt_dirfd, &mark, &status);
	if (rc == 0)
		rc = read_exit(sys, attempt_dirfd, &mark, &status);
	if (rc < 0)
		return takt_err_set(err, rc, "read the attempt");
	if (rc > 0 && status.exit_kind == TAKT_EXIT_VOID)
		return takt_err_set(err, -TAKT_E_CONFLICT, "the attempt is void");
	if (rc > 0)
		return takt_err_set(err, -TAKT_E_CONFLICT, "the attempt has ended");
	if (status.started)
		return takt_err_set(err, -TAKT_E_CONFLICT, "the attempt has started");
	return 0;
}

/* With the lock held shared. */
static int write_spec(const struct takt_sys *sys, int dirfd, const struct takt_attempt_spec *spec,
		      struct takt_err *err)
{
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(TAKT_ATTEMPT_MAX_SPEC);
	int rc = takt_attempt_unused(sys, dirfd, err);

	if (rc < 0)
		return rc;
	rc = takt_attempt_spec_format(spec, &text);
	if (rc < 0)
		return takt_err_set(err, rc, "spec of at most %d bytes", TAKT_ATTEMPT_MAX_SPEC);
	return takt_attempt_write_text(sys, dirfd, "spec", &text, err);
}

static int fill_directory(const struct takt_sys *sys, int dirfd,
			  const struct takt_attempt_spec *spec, struct takt_err *err)
{
	int lock = take_lock(sys, dirfd, O_CREAT, LOCK_SH);
	int rc;

	if (lock == -TAKT_E_BUSY)
		return takt_err_set(err, -TAKT_E_CONFLICT, "the attempt is alive");
	if (lock < 0)
		return takt_err_set(err, lock, "open 'lock'");
	rc = write_spec(sys, dirfd, spec, err);
	(void)sys->close(sys, lock);
	return rc;
}

int takt_attempt_create(const struct takt_sys *sys, int jobs_dirfd,
			const struct takt_attempt_spec *spec, struct takt_err *err)
{
	char name[TAKT_ATTEMPT_NAME];
	int dirfd, rc;

	rc = takt_attempt_spec_check(spec, err);
	if (rc < 0)
		return rc;
	takt_attempt_name(spec->job_id, spec->attempt, name);
	rc = sys->mkdirat(sys, jobs_dirfd, name, 0700);
	if (rc < 0 && rc != -EEXIST)
		return takt_err_set(err, rc, "make the directory of attempt %s", name);
	dirfd = takt_attempt_open(sys, jobs_dirfd, spec->job_id, spec->attempt, err);
	if (dirfd < 0)
		return dirfd;
	rc = fill_directory(sys, dirfd, spec, err);
	(void)sys->close(sys, dirfd);
	return rc < 0 ? takt_err_wrap(err, rc, "attempt %s", name) : 0;
}

int takt_attempt_hand_over(const struct takt_sys *sys, int jobs_dirfd,
			   const struct takt_attempt_spec *spec, struct takt_err *err)
{
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(TAKT_ATTEMPT_MAX_SPEC);
	int rc = takt_attempt_spec_check(spec, err);
	int dirfd;

	if (rc < 0)
		return rc;
	rc = takt_attempt_spec_format(spec, &text);
	if (rc < 0)
		return takt_err_set(err, rc, "spec of at most %d bytes", TAKT_ATTEMPT_MAX_SPEC);
	dirfd = takt_attempt_open(sys, jobs_dirfd, spec->job_id, spec->attempt, err);
	if (dirfd < 0)
		return dirfd;
	rc = takt_attempt_write_text(sys, dirfd, "go", &text, err);
	(void)sys->close(sys, dirfd);
	return rc;
}

/* With the lock held. */
static int void_locked(const struct takt_sys *sys, int dirfd, struct takt_err *err)
{
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(TAKT_ATTEMPT_MAX_RECORD);
	struct takt_attempt_status status = {0};
	struct takt_attempt_mark mark = {0};
	int rc = takt_attempt_read_mark(sys, dirfd, &mark);

	if (rc == 0)
		rc = read_exit(sys, dirfd, &mark, &status);
	if (rc > 0 && status.exit_kind == TAKT_EXIT_VOID)
		return 0;
	rc = takt_attempt_unused(sys, dirfd, err);
	if (rc < 0)
		return rc;
	status.exit_kind = TAKT_EXIT_VOID;
	status.ended_at = takt_wall_now(sys);
	rc = takt_attempt_exit_format(&status, &text);
	if (rc == 0)
		rc = takt_record_mark_put(&text, mark.of);
	if (rc < 0)
		return takt_err_set(err, rc, "record the end");
	return takt_attempt_write_text(sys, dirfd, "exit", &text, err);
}

int takt_attempt_void(const struct takt_sys *sys, int jobs_dirfd, uint64_t job_id, uint32_t attempt,
		      struct takt_err *err)
{
	int dirfd, lock, rc;

	dirfd = takt_attempt_open(sys, jobs_dirfd, job_id, attempt, err);
	if (dirfd < 0)
		return dirfd == -ENOENT ? 0 : dirfd;
	lock = take_lock(sys, dirfd, 0, LOCK_EX);
	if (lock >= 0) {
		rc = void_locked(sys, dirfd, err);
		(void)sys->close(sys, lock);
	} else if (lock == -TAKT_E_BUSY) {
		rc = takt_err_set(err, -TAKT_E_CONFLICT, "the attempt is alive");
	} else {
		rc = lock == -ENOENT ? 0 : takt_err_set(err, lock, "lock the attempt");
	}
	(void)sys->close(sys, dirfd);
	return rc;
}

void takt_attempt_shed(const struct takt_sys *sys, int jobs_dirfd, uint64_t job_id,
		       uint32_t attempt)
{
	static const char *const names[] = {"spec", "go", "spec.new", "go.new"};
	int dirfd = takt_attempt_open(sys, jobs_dirfd, job_id, attempt, NULL);

	if (dirfd < 0)
		return;
	for (size_t i = 0; i < TAKT_ARRAY_LEN(names); i++)
		(void)sys->unlinkat(sys, dirfd, names[i], 0);
	(void)sys->close(sys, dirfd);
}

/* The lock last: as long as it is there, whoever comes sees an attempt. */
static int remove_files(const struct takt_sys *sys, int dirfd)
{
	static const char *const names[] = {
		"log",	    "spec",	"go",	       "progress",   "isolation",
		"shim",	    "staged",	"started",     "exit",	     "cut",
		"spec.new", "shim.new", "go.new",      "staged.new", "isolation.new",
		"exit.new", "cut.new",	"started.tmp", "exit.tmp",   TAKT_TERMINAL_SOCKET,
		"lock",
	};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(names); i++) {
		int rc = sys->unlinkat(sys, dirfd, names[i], 0);

		if (rc < 0 && rc != -ENOENT && rc != -EISDIR)
			return rc;
		takt_crash_point("attempt.file_removed");
	}
	return 0;
}

int takt_attempt_remove(const struct takt_sys *sys, int jobs_dirfd, uint64_t job_id,
			uint32_t attempt, struct takt_err *err)
{
	char name[TAKT_ATTEMPT_NAME];
	int dirfd, lock, rc;

	takt_attempt_name(job_id, attempt, name);
	dirfd = takt_attempt_open(sys, jobs_dirfd, job_id, attempt, err);
	if (dirfd < 0)
		return dirfd == -ENOENT ? 0 : dirfd;
	lock = take_lock(sys, dirfd, 0, LOCK_EX);
	rc = lock == -TAKT_E_BUSY ? -TAKT_E_CONFLICT : remove_files(sys, dirfd);
	if (lock >= 0)
		(void)sys->close(sys, lock);
	(void)sys->close(sys, dirfd);
	if (rc == 0)
		rc = sys->unlinkat(sys, jobs_dirfd, name, AT_REMOVEDIR);
	takt_crash_point("attempt.removed");
	return rc < 0 ? takt_err_set(err, rc, "remove attempt %s", name) : 0;
}

int takt_attempt_record_shim(const struct takt_sys *sys, int attempt_dirfd,
			     const struct takt_proc_id *shim, struct takt_err *err)
{
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(TAKT_ATTEMPT_MAX_RECORD);
	int rc = takt_attempt_shim_format(shim, &text);

	if (rc == 0)
		rc = mark_record(sys, attempt_dirfd, &text);
	if (rc < 0)
		return takt_err_set(err, rc, "record the shim");
	return takt_attempt_write_text(sys, attempt_dirfd, "shim", &text, err);
}

int takt_attempt_record_staged(const struct takt_sys *sys, int attempt_dirfd,
			       const struct takt_proc_id *job, struct takt_err *err)
{
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(TAKT_ATTEMPT_MAX_RECORD);
	int rc = takt_attempt_staged_format(job, &text);

	if (rc == 0)
		rc = mark_record(sys, attempt_dirfd, &text);
	if (rc < 0)
		return takt_err_set(err, rc, "record that it waits");
	return takt_attempt_write_text(sys, attempt_dirfd, "staged", &text, err);
}

int takt_attempt_record_isolation(const struct takt_sys *sys, int attempt_dirfd, const char *why,
				  struct takt_err *err)
{
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(TAKT_ATTEMPT_MAX_RECORD);
	int rc = takt_attempt_isolation_format(why, &text);

	if (rc == 0)
		rc = mark_record(sys, attempt_dirfd, &text);
	if (rc < 0)
		return takt_err_set(err, rc, "record the isolation");
	return takt_attempt_write_text(sys, attempt_dirfd, "isolation", &text, err);
}

/* The text of a record; *ret_text is the caller's. */
static int read_record_of(const struct takt_sys *sys, int jobs_dirfd, uint64_t job_id,
			  uint32_t attempt, const char *name, char **ret_text, size_t *ret_len)
{
	struct takt_attempt_mark mark = known_of(job_id, attempt);
	int dirfd = takt_attempt_open(sys, jobs_dirfd, job_id, attempt, NULL);
	int rc;

	if (dirfd < 0)
		return dirfd;
	rc = takt_attempt_read_mark(sys, dirfd, &mark);
	if (rc == 0)
		rc = read_own(sys, dirfd, name, &mark, ret_text, ret_len);
	(void)sys->close(sys, dirfd);
	return rc == -TAKT_E_CONFLICT ? -TAKT_E_CORRUPT : rc;
}

int takt_attempt_isolation(const struct takt_sys *sys, int jobs_dirfd, uint64_t job_id,
			   uint32_t attempt, char *ret_why)
{
	TAKT_CLEANUP(freep) char *text = NULL;
	size_t len;
	int rc = read_record_of(sys, jobs_dirfd, job_id, attempt, "isolation", &text, &len);

	return rc < 0 ? rc : takt_attempt_isolation_parse(text, len, ret_why);
}

int takt_attempt_record_cut(const struct takt_sys *sys, int attempt_dirfd,
			    const struct takt_output_cut *cut, struct takt_err *err)
{
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(TAKT_ATTEMPT_MAX_RECORD);
	int rc = takt_attempt_cut_format(cut, &text);

	if (rc == 0)
		rc = mark_record(sys, attempt_dirfd, &text);
	if (rc < 0)
		return takt_err_set(err, rc, "record what is not kept of the output");
	return takt_attempt_write_text(sys, attempt_dirfd, "cut", &text, err);
}

int takt_attempt_cut(const struct takt_sys *sys, int jobs_dirfd, uint64_t job_id, uint32_t attempt,
		     struct takt_output_cut *ret)
{
	TAKT_CLEANUP(freep) char *text = NULL;
	size_t len;
	int rc = read_record_of(sys, jobs_dirfd, job_id, attempt, "cut", &text, &len);

	return rc < 0 ? rc : takt_attempt_cut_parse(text, len, ret);
}

static int read_shim(const struct takt_sys *sys, int dirfd, struct takt_attempt_mark *mark,
		     struct takt_proc_id *ret, uid_t *ret_uid)
{
	struct takt_attempt_status status = {0};
	TAKT_CLEANUP(freep) char *text = NULL;
	struct stat st;
	size_t len;
	int rc = sys->fstat(sys, dirfd, &st);

	if (rc == 0)
		rc = takt_attempt_read_mark(sys, dirfd, mark);
	if (rc == 0)
		rc = read_own(sys, dirfd, "shim", mark, &text, &len);
	if (rc == -TAKT_E_CONFLICT)
		rc = -TAKT_E_CORRUPT;
	if (rc == 0)
		rc = takt_attempt_shim_parse(text, len, &status);
	if (rc < 0)
		return rc;
	*ret = status.shim;
	*ret_uid = st.st_uid;
	return 0;
}

int takt_attempt_shim(const struct takt_sys *sys, int jobs_dirfd, uint64_t job_id, uint32_t attempt,
		      struct takt_proc_id *ret, uid_t *ret_uid)
{
	struct takt_attempt_mark mark = known_of(job_id, attempt);
	int dirfd = takt_attempt_open(sys, jobs_dirfd, job_id, attempt, NULL);
	int rc;

	if (dirfd < 0)
		return dirfd;
	rc = read_shim(sys, dirfd, &mark, ret, ret_uid);
	(void)sys->close(sys, dirfd);
	return rc;
}

int takt_attempt_record_started(const struct takt_sys *sys, int attempt_dirfd,
				const struct takt_proc_id *job, struct takt_wall at,
				struct takt_err *err)
{
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(TAKT_ATTEMPT_MAX_RECORD);
	int rc = takt_attempt_started_format(job, at, sys->boot_ns(sys), &text);

	if (rc == 0)
		rc = mark_record(sys, attempt_dirfd, &text);
	if (rc < 0)
		return takt_err_set(err, rc, "record the start");
	rc = takt_file_write_durable(sys, attempt_dirfd, "started", text.s, text.len,
				     TAKT_ATTEMPT_MODE, err);
	if (rc < 0) {
		(void)sys->unlinkat(sys, attempt_dirfd, "started", 0);
		(void)sys->fsync(sys, attempt_dirfd);
	}
	return rc;
}

int takt_attempt_record_exit(const struct takt_sys *sys, int attempt_dirfd,
			     const struct takt_attempt_status *status, struct takt_err *err)
{
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(TAKT_ATTEMPT_MAX_RECORD);
	int rc = takt_attempt_exit_format(status, &text);

	if (rc == 0)
		rc = mark_record(sys, attempt_dirfd, &text);
	if (rc < 0)
		return takt_err_set(err, rc, "record the end");
	return takt_file_write_durable(sys, attempt_dirfd, "exit", text.s, text.len,
				       TAKT_ATTEMPT_MODE, err);
}
