/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command once: how fast, at what power and energy. Its standard output goes into a hash and
 * nowhere else; what it says on standard error is the sweep's own.
 */
#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sys.h"
#include "cli/tune.h"
#include "codec/json.h"

enum {
	TURN_MS = 50,
	KEPT_OUTPUT = 16 * 1024,
	EXIT_NOT_FOUND = 127,
};

struct running {
	const struct takt_tune_work *work;
	struct takt_tune_meter *meter;
	int32_t pid;
	int pid_fd, output_fd;
	bool ended; /* by us, after its time */
	uint64_t begin_ns, end_ns;
	struct takt_tune_told told;
	struct takt_tune_output written;
	char output[KEPT_OUTPUT]; /* its beginning */
	size_t output_len;
	char worked_out[16]; /* by the benchmark: a checksum; "" = it did not say */
};

static uint64_t now_ns(void)
{
	return takt_mono_now(takt_sys_real()).ns;
}

/* Counters of the last run are not this one's. */
static void forget_progress(const char *path)
{
	if (path && path[0])
		(void)truncate(path, 0);
}

static void become_work(const struct takt_tune_work *work, int output)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)signal(SIGPIPE, SIG_DFL);
	if (dup2(output, STDOUT_FILENO) < 0)
		_exit(EXIT_NOT_FOUND);
	execvp(work->argv[0], work->argv);
	fprintf(stderr, "takt: run '%s': %s\n", work->argv[0], strerror(errno));
	_exit(EXIT_NOT_FOUND);
}

static int begin(struct running *run, struct takt_err *err)
{
	int output[2];

	if (pipe2(output, O_CLOEXEC) < 0)
		return takt_err_set(err, -errno, "make a pipe");
	fflush(NULL);
	run->begin_ns = now_ns();
	run->pid = fork();
	if (run->pid == 0)
		become_work(run->work, output[1]);
	close(output[1]);
	run->output_fd = output[0];
	run->pid_fd = run->pid > 0 ? pidfd_open(run->pid, 0) : -1;
	return run->pid_fd < 0 ? takt_err_set(err, -errno, "start the command") : 0;
}

/* False at its end. */
static bool take_output(struct running *run)
{
	char bytes[65536];
	ssize_t n = read(run->output_fd, bytes, sizeof(bytes));
	size_t kept = n > 0 ? (size_t)n : 0;

	if (n <= 0)
		return false;
	takt_tune_output_add(&run->written, bytes, (size_t)n);
	if (kept > KEPT_OUTPUT - 1 - run->output_len)
		kept = KEPT_OUTPUT - 1 - run->output_len;
	memcpy(run->output + run->output_len, bytes, kept);
	run->output_len += kept;
	return true;
}

static int trouble(struct running *run, struct takt_err *err)
{
	int rc = takt_tune_meter_listen(run->meter, err);

	if (rc == 0 && run->meter->event[0])
		rc = takt_err_set(err, -EIO, "%s while it ran", run->meter->event);
	return rc;
}

/* Until the command has ended. */
static int follow(struct running *run, struct takt_err *err)
{
	struct pollfd wait[] = {
		{.fd = run->pid_fd, .events = POLLIN},
		{.fd = run->output_fd, .events = POLLIN},
		{.fd = run->work->owner_fd, .events = POLLIN},
	};
	int rc = 0;

	while (rc == 0 && !(wait[0].revents & POLLIN)) {
		(void)poll(wait, TAKT_ARRAY_LEN(wait), TURN_MS);
		if (wait[1].revents && !take_output(run))
			wait[1].fd = -1;
		takt_tune_look(&run->told, getenv("TAKT_PROGRESS"));
		rc = trouble(run, err);
		if (wait[2].revents)
			rc = takt_err_set(err, -ECANCELED, "whoever began this sweep is gone");
		if (run->work->for_ms && !run->ended &&
		    now_ns() - run->begin_ns >= run->work->for_ms * TAKT_NS_PER_MS) {
			run->ended = true;
			(void)kill(run->pid, SIGTERM);
		}
	}
	run->end_ns = now_ns();
	return rc;
}

/* What is left in the pipe; children that outlive the command are not waited for. */
static void drain_output(struct running *run)
{
	struct pollfd output = {.fd = run->output_fd, .events = POLLIN};

	while (poll(&output, 1, 0) > 0 && take_output(run))
		;
}

static int end(struct running *run, bool broken, struct takt_err *err)
{
	int status = 0;

	if (broken)
		(void)kill(run->pid, SIGKILL);
	(void)waitpid(run->pid, &status, 0);
	drain_output(run);
	close(run->output_fd);
	close(run->pid_fd);
	if (broken || (run->ended && WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM))
		return 0;
	if (WIFSIGNALED(status))
		return takt_err_set(err, -EIO, "the command was killed by signal %d",
				    WTERMSIG(status));
	return WEXITSTATUS(status) == 0
		       ? 0
		       : takt_err_set(err, -EIO, "the command failed with exit status %d",
				      WEXITSTATUS(status));
}

/* The benchmark prints rates, which are never the same: what it worked out is compared. */
static int take_worked_out(struct running *run, struct takt_err *err)
{
	if (!run->worked_out[0])
		return takt_err_set(err, -TAKT_E_CORRUPT, "the benchmark told no result");
	takt_tune_output_init(&run->written);
	takt_tune_output_add(&run->written, run->worked_out, strlen(run->worked_out));
	return 0;
}

static int compare(struct takt_tune_work *work, struct running *run, struct takt_tune_sample *ret,
		   struct takt_err *err)
{
	bool said = work->metric == TAKT_TUNE_SAID, of_ranks = takt_tune_ranks(&run->told) > 1;
	int rc = 0;

	if (work->compare != TAKT_TUNE_COMPARE_NONE && said)
		rc = take_worked_out(run, err);
	if (rc < 0 || work->compare == TAKT_TUNE_COMPARE_NONE)
		return rc;
	takt_tune_output_end(&run->written, &ret->written);
	if (!work->first.all[0])
		work->first = ret->written;
	return work->compare == TAKT_TUNE_COMPARE_STOP &&
			       !takt_tune_same(&work->first, &ret->written, of_ranks)
		       ? takt_err_set(err, -EIO, "the %s differs from that of its first run",
				      said ? "benchmark's result" : "command's output")
		       : 0;
}

static int check_result(const struct takt_tune_work *work, struct takt_err *err)
{
	int status, pid = work->check ? fork() : 0;

	if (!work->check)
		return 0;
	if (pid == 0) {
		(void)dup2(STDERR_FILENO, STDOUT_FILENO);
		execl("/bin/sh", "sh", "-c", work->check, (char *)NULL);
		_exit(EXIT_NOT_FOUND);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return takt_err_set(err, -errno, "run the check");
	return status == 0
		       ? 0
		       : takt_err_set(
				 err, -EIO, "the check '%.80s' says no (status %d)", work->check,
				 WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

static double number_in(const cJSON *object, const char *name)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

	return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

/* takt bench gpu has measured by itself, over the part that counts. */
static int take_said(struct running *run, struct takt_tune_sample *ret, struct takt_err *err)
{
	struct cJSON *said = NULL;
	const cJSON *unit, *result;
	int rc = takt_json_parse(run->output, run->output_len, KEPT_OUTPUT, &said, err);

	if (rc < 0)
		return takt_err_wrap(err, rc, "the benchmark's result");
	unit = cJSON_GetObjectItemCaseSensitive(said, "unit");
	ret->performance = number_in(said, "performance");
	ret->power_w = number_in(said, "power_w");
	ret->sm_mhz = number_in(said, "sm_mhz");
	if (cJSON_IsString(unit))
		takt_strcpy(ret->unit, sizeof(ret->unit), unit->valuestring);
	result = cJSON_GetObjectItemCaseSensitive(said, "result_crc32c");
	if (cJSON_IsString(result))
		takt_strcpy(run->worked_out, sizeof(run->worked_out), result->valuestring);
	cJSON_Delete(said);
	return isfinite(ret->performance) && ret->unit[0]
		       ? 0
		       : takt_err_set(err, -TAKT_E_CORRUPT, "the benchmark told no performance");
}

static int rate(struct takt_tune_work *work, struct running *run, struct takt_tune_sample *ret,
		struct takt_err *err)
{
	bool told = takt_tune_ranks(&run->told) > 0;

	if (work->metric == TAKT_TUNE_SAID)
		return take_said(run, ret, err);
	if (work->metric != TAKT_TUNE_TIME && takt_tune_rate_told(&run->told, ret)) {
		work->metric = TAKT_TUNE_PROGRESS;
		return 0;
	}
	if (work->metric == TAKT_TUNE_PROGRESS || work->for_ms)
		return takt_err_set(err, -TAKT_E_USAGE, "%s tells %s progress (docs/job.md)%s",
				    told ? "the command, or a rank of it," : "the command",
				    told ? "too little" : "no",
				    work->for_ms ? ", so '--for' has nothing to measure by" : "");
	work->metric = TAKT_TUNE_TIME;
	ret->performance = 1e9 / (double)(run->end_ns - run->begin_ns);
	takt_strcpy(ret->unit, sizeof(ret->unit), "run");
	return 0;
}

int takt_tune_run(struct takt_tune_work *work, struct takt_tune_meter *meter,
		  struct takt_tune_sample *ret, struct takt_err *err)
{
	TAKT_CLEANUP(freep) struct running *run = takt_zalloc(sizeof(*run));
	struct takt_tune_mark before, after;
	int rc = run ? takt_tune_meter_mark(meter, &before, err)
		     : takt_err_set(err, -ENOMEM, "a run");
	int ended;

	if (rc < 0)
		return rc;
	*ret = (struct takt_tune_sample){
		.performance = NAN, .power_w = NAN, .sm_mhz = NAN, .energy_j = NAN};
	run->work = work;
	run->meter = meter;
	takt_tune_output_init(&run->written);
	forget_progress(getenv("TAKT_PROGRESS"));
	rc = begin(run, err);
	if (rc < 0)
		return rc;
	takt_crash_point("tune.in_run");
	rc = follow(run, err);
	if (rc == 0)
		rc = takt_tune_meter_mark(meter, &after, err);
	ended = end(run, rc < 0, err);
	rc = rc < 0 ? rc : ended;
	rc = rc < 0 ? rc : trouble(run, err);
	if (rc == 0)
		rc = check_result(work, err);
	if (rc < 0)
		return rc;
	takt_tune_use_marks(&before, &after, meter->gpus, ret);
	rc = rate(work, run, ret, err);
	ret->energy_j = ret->power_w / ret->performance;
	return rc < 0 ? rc : compare(work, run, ret, err);
}
