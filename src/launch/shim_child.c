/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between fork and exec: the process that becomes the job's program. It may run nothing of the job
 * before `started` is on disk, so it waits for the shim's word; a shim that dies instead closes the
 * pipe (and has the kernel kill us), and then nothing ever ran.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "launch/attempt_files.h"
#include "launch/shim_job.h"

/* An ignored signal would stay ignored across exec. */
static void reset_signals(void)
{
	struct sigaction act = {.sa_handler = SIG_DFL};
	sigset_t none;

	for (int sig = 1; sig <= SIGRTMAX; sig++)
		(void)sigaction(sig, &act, NULL);
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* What the job can run without: said in its log, not fatal. */
static void take_cpus(const struct takt_shim *shim)
{
	cpu_set_t cpus;

	if (shim->spec.cpu_count == 0)
		return;
	CPU_ZERO(&cpus);
	for (unsigned int cpu = 0; cpu < TAKT_ATTEMPT_CPU_WORDS * 64 && cpu < CPU_SETSIZE; cpu++)
		if (shim->spec.cpus[cpu / 64] >> (cpu % 64) & 1)
			CPU_SET(cpu, &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus) < 0)
		takt_shim_note(shim, "runs on any CPU: the chosen ones are not to be had: %s",
			       takt_err_sentence(-errno));
}

/* True once the shim has said to go on. */
static bool wait_for_word(int go)
{
	char word;
	ssize_t got;

	do {
		got = read(go, &word, 1);
	} while (got < 0 && errno == EINTR);
	return got == 1;
}

/* Nothing of an earlier attempt, or of another job's, is lost: it is added to. */
static int take_output(const struct takt_shim *shim, const char *output, struct takt_err *err)
{
	int fd = open(output, O_WRONLY | O_CREAT | O_APPEND | O_NOCTTY | O_CLOEXEC, 0666);

	if (fd < 0)
		return takt_err_set(err, -errno, "output '%s'", output);
	takt_shim_note(shim, "its output goes to '%s'", output);
	if (dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0)
		return takt_err_set(err, -errno, "standard descriptors");
	return 0;
}

int takt_shim_become(const struct takt_shim *shim, char *const *argv, const char *output,
		     struct takt_err *err)
{
	int rc;

	take_cpus(shim);
	rc = takt_job_user_become(shim->user, shim->self, err);
	if (rc < 0)
		return rc;
	if (chdir(shim->spec.cwd) < 0)
		return takt_err_set(err, -errno, "change to directory '%s'", shim->spec.cwd);
	umask(022);
	rc = output ? take_output(shim, output, err) : 0;
	if (rc < 0)
		return rc;
	(void)close_range(STDERR_FILENO + 1, ~0u, CLOSE_RANGE_CLOEXEC);
	reset_signals();
	environ = shim->spec.env; /* execvp searches the PATH of the job */
	execvp(argv[0], argv);
	if (errno == EAGAIN)
		return takt_err_set(err, -EAGAIN,
				    "exec '%s': more processes than its user may have (nproc)",
				    argv[0]);
	return takt_err_set(err, -errno, "exec '%s'", argv[0]);
}

/* What a staged process was forked with lacks what was decided since. */
static int complete_spec(struct takt_shim *shim, struct takt_err *err)
{
	struct takt_attempt_spec go;
	int rc;

	if (!shim->spec.stage_lease_ms)
		return 0;
	rc = takt_attempt_read_go(shim->sys, shim->dirfd, &go, err);
	if (rc == 0)
		shim->spec = go;
	return rc;
}

/* Returns only when it failed. */
static int become(struct takt_shim *shim, uint32_t rank, struct takt_err *err)
{
	int rc = complete_spec(shim, err);

	if (rc == 0)
		rc = takt_shim_rank_env(shim, rank, err);
	if (rc < 0)
		return rc;
	takt_job_user_files_begin(shim->user);
	rc = takt_shim_io_take(shim, rank, err);
	takt_job_user_files_end(shim->user);
	if (rc < 0)
		return rc;
	return takt_shim_become(shim, shim->spec.argv, shim->spec.output, err);
}

void takt_shim_become_job(struct takt_shim *shim, uint32_t rank, int go, int report)
{
	struct takt_err err = {0};

	(void)close(shim->lockfd); /* a copy of the lock must not outlive the shim */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != shim->self)
		_exit(EXIT_FAILURE);
	(void)setsid();
	if (!wait_for_word(go))
		_exit(EXIT_FAILURE);
	(void)become(shim, rank, &err);
	while (write(report, &err, sizeof(err)) < 0 && errno == EINTR)
		;
	_exit(127);
}
