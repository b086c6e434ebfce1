/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps of governors on disk, STATE/epochs/JOB.ATTEMPT, and going on from them after a restart. The
 * log is the state: making its steps again leads to where the governor was. It is appended to
 * without sync: what a power failure takes is of a job that it takes too.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "clock/epoch_log.h"
#include "daemon/govern_impl.h"
#include "daemon/job_course.h"
#include "objects/governor_objects.h"

enum {
	LOG_PATH = 64,
	MAX_STEP = 1024, /* bytes of a line */
	MAX_HEAD = 8192,
};

static void path_of(uint64_t job_id, uint32_t attempt, char ret[LOG_PATH])
{
	snprintf(ret, LOG_PATH, "%llu.%u", (unsigned long long)job_id, attempt);
}

int takt_govern_log_open(struct takt_govern *govern, struct takt_err *err)
{
	const struct takt_daemon *daemon = govern->daemon;
	char path[PATH_MAX];
	int rc;

	snprintf(path, sizeof(path), "%s/epochs", daemon->config.state_dir);
	rc = takt_mkdirs_durable(daemon->sys, path, 0700, err);
	if (rc < 0)
		return rc;
	govern->log_dirfd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return govern->log_dirfd < 0 ? takt_err_set(err, -errno, "open '%s'", path) : 0;
}

void takt_govern_log_shut(struct takt_govern *govern)
{
	if (govern->log_dirfd >= 0)
		close(govern->log_dirfd);
	govern->log_dirfd = -1;
}

void takt_govern_log_close(struct takt_governed *one)
{
	if (one->log_fd >= 0)
		close(one->log_fd);
	one->log_fd = -1;
}

/* A log with a gap would lead elsewhere: it ends where a line could not be written. */
static void append(struct takt_governed *one, const struct takt_str *text)
{
	if (one->log_fd < 0)
		return;
	if (text->rc < 0 ||
	    write(one->log_fd, takt_str_text(text), text->len) != (ssize_t)text->len)
		takt_govern_log_close(one);
}

void takt_govern_log_begin(struct takt_govern *govern, struct takt_governed *one)
{
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(MAX_HEAD);
	char path[LOG_PATH];

	takt_govern_log_close(one);
	path_of(one->job_id, one->attempt, path);
	one->log_fd =
		openat(govern->log_dirfd, path,
		       O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	one->log_steps = 0;
	(void)takt_epoch_log_head(one->governor, &one->setup, &text);
	append(one, &text);
}

void takt_govern_log_step(struct takt_governed *one, const struct takt_governor_observation *seen)
{
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(MAX_STEP);

	if (one->log_steps++ >= TAKT_EPOCH_LOG_MAX_STEPS) {
		takt_govern_log_close(one);
		return;
	}
	(void)takt_epoch_log_step(seen, &one->wish, &text);
	append(one, &text);
}

static bool same_params(const struct takt_governor_setup *was, const struct takt_governor_setup *is)
{
	if (was->param_count != is->param_count)
		return false;
	for (size_t i = 0; i < is->param_count; i++)
		if (strcmp(was->params[i].name, is->params[i].name) != 0 ||
		    was->params[i].value != is->params[i].value)
			return false;
	return true;
}

static bool same_limits(const struct takt_governor_board *was, const struct takt_governor_board *is)
{
	return was->power_min_mw == is->power_min_mw && was->power_max_mw == is->power_max_mw &&
	       was->power_default_mw == is->power_default_mw;
}

/* Whether the log is of this job as it is now. */
static bool fits(const struct takt_epoch_replay *replay, const struct takt_governed *one)
{
	const struct takt_governor_board *was = &replay->setup.board, *is = &one->setup.board;
	const struct takt_governor_job *then = &replay->setup.job, *now = &one->setup.job;

	return replay->governor == one->governor && replay->differing == 0 &&
	       replay->state_version == one->governor->state_version && replay->steps > 0 &&
	       replay->steps < TAKT_EPOCH_LOG_MAX_STEPS && was->can == is->can &&
	       was->sm_count == is->sm_count &&
	       memcmp(was->sm_mhz, is->sm_mhz, is->sm_count * sizeof(is->sm_mhz[0])) == 0 &&
	       same_params(&replay->setup, &one->setup) && same_limits(was, is) &&
	       then->max_slowdown_permille == now->max_slowdown_permille &&
	       then->latency_target_us == now->latency_target_us &&
	       then->latency_permille == now->latency_permille;
}

struct retold {
	struct takt_job_course *courses;
	struct takt_governed *one;
	struct takt_savings savings;
	uint32_t epochs, budget_mw;
	bool by_job, by_counters;
};

static void retell(void *ctx, const struct takt_epoch_replay *at,
		   const struct takt_governor_observation *seen)
{
	struct retold *retold = ctx;

	takt_job_course_step(retold->courses, retold->one->job_id, retold->one->attempt, seen,
			     &at->wish);
	takt_savings_add(&retold->savings, &at->setup, seen);
	takt_load_retell(retold->one, seen);
	retold->epochs += seen->epoch_ns > 0;
	retold->budget_mw = seen->has & TAKT_OBSERVED_BUDGET ? seen->budget_mw : 0;
	retold->by_job |= seen->signal == TAKT_SIGNAL_JOB;
	retold->by_counters |= seen->signal == TAKT_SIGNAL_COUNTERS;
}

static void take_over(struct takt_governed *one, const struct takt_epoch_replay *replay,
		      const struct retold *retold)
{
	memcpy(one->state, replay->state, one->governor->state_bytes);
	one->wish = replay->wish;
	one->savings = retold->savings;
	one->epochs = retold->epochs;
	one->counted = retold->by_counters;
	one->share.told_mw = retold->budget_mw;
	one->ended_ns = replay->last_ns;
	one->log_steps = replay->steps;
}

/* The log goes on behind its last whole line. */
static void reopen(struct takt_govern *govern, struct takt_governed *one, const char *path,
		   size_t whole_bytes)
{
	one->log_fd = openat(govern->log_dirfd, path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
	if (one->log_fd >= 0 && ftruncate(one->log_fd, (off_t)whole_bytes) < 0)
		takt_govern_log_close(one);
}

bool takt_govern_log_resume(struct takt_govern *govern, struct takt_governed *one)
{
	TAKT_CLEANUP(freep) char *text = NULL;
	TAKT_CLEANUP(freep) struct takt_epoch_replay *replay = takt_alloc(sizeof(*replay));
	struct retold retold = {.courses = govern->daemon->courses, .one = one};
	char path[LOG_PATH];
	size_t len = 0;
	bool goes_on;

	path_of(one->job_id, one->attempt, path);
	takt_job_course_governed(retold.courses, one->job_id, one->attempt, one->governor->name);
	if (!replay ||
	    takt_file_read(govern->daemon->sys, govern->log_dirfd, path, TAKT_EPOCH_LOG_MAX_BYTES,
			   &text, &len, NULL) < 0 ||
	    takt_epoch_replay(takt_governor_objects_all(govern->daemon->governors), text, len,
			      retell, &retold, replay, NULL) < 0)
		return false;
	goes_on = fits(replay, one) && retold.by_job == (one->unit != 0);
	if (!goes_on && one->load.ahead)
		takt_load_ahead_reset(one->load.ahead);
	if (goes_on) {
		take_over(one, replay, &retold);
		reopen(govern, one, path, replay->whole_bytes);
	}
	takt_epoch_replay_fini(replay);
	return goes_on;
}

void takt_govern_forget_log(struct takt_govern *govern, uint64_t job_id, uint32_t attempt)
{
	char path[LOG_PATH];

	path_of(job_id, attempt, path);
	(void)unlinkat(govern->log_dirfd, path, 0);
}
