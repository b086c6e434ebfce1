/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting with a staged attempt: everything that a job needs is there but its turn. The first
 * process is forked and blocked, the prefetch fills caches meanwhile. What ends the wait is `go`
 * (looked for when we are told to look), SIGTERM, the death of the process that waits, or that
 * nobody has said for too long that it is still wanted.
 */
#include <errno.h>
#include <linux/ioprio.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/str.h"
#include "launch/launch.h"
#include "launch/proc_tree.h"
#include "launch/shim_job.h"

enum {
	LEAST_NICE = 19,
	KILL_TRIES = 500,    /* then it hangs in the kernel, where it does nothing */
	STUBBORN_TRIES = 50, /* then it may fork no more */
	REAPS_AT_ONCE = 64,
	KILL_AGAIN_MS = 2,
};

struct stage {
	struct takt_shim *shim; /* borrowed */
	pid_t prefetch;		/* its first process; 0 = it is over */
	bool prefetching;	/* something of it may be left */
	bool job_gone;		/* a process that waits was killed */
	bool late;		/* the prefetch was ended at its limit */
	bool more;		/* children that have ended may be left to take */
	struct takt_boot lease_end, prefetch_end;
};

static struct takt_boot in_ms(const struct stage *stage, uint32_t ms)
{
	return takt_boot_add(takt_boot_now(stage->shim->sys), ms * TAKT_NS_PER_MS);
}

static void renew(struct stage *stage)
{
	stage->lease_end = in_ms(stage, stage->shim->spec.stage_lease_ms);
}

/* Whatever of this the kernel refuses, the prefetch runs all the same. */
static void take_lowest_priority(void)
{
	struct sched_param none = {0};

	(void)setpriority(PRIO_PROCESS, 0, LEAST_NICE);
	(void)sched_setscheduler(0, SCHED_IDLE, &none);
	(void)syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0,
		      IOPRIO_PRIO_VALUE(IOPRIO_CLASS_IDLE, 0));
}

static _Noreturn void become_prefetch(struct takt_shim *shim)
{
	struct takt_err err;

	(void)close(shim->lockfd); /* a copy of the lock must not outlive the shim */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != shim->self)
		_exit(EXIT_FAILURE);
	(void)setsid();
	take_lowest_priority();
	if (takt_shim_log_take(shim, &err) == 0)
		(void)takt_shim_become(shim, shim->spec.prefetch, NULL, &err);
	takt_shim_note(shim, "prefetch: %s: %s", err.msg, takt_err_sentence(err.rc));
	_exit(127);
}

static void start_prefetch(struct stage *stage)
{
	struct takt_shim *shim = stage->shim;
	pid_t pid;

	if (!shim->spec.prefetch)
		return;
	pid = fork();
	if (pid == 0)
		become_prefetch(shim);
	if (pid < 0) {
		takt_shim_note(shim, "prefetch: %s", takt_err_sentence(-errno));
		return;
	}
	stage->prefetch = pid;
	stage->prefetching = true;
	stage->prefetch_end = in_ms(stage, shim->spec.prefetch_limit_ms);
	takt_crash_point("shim.after_prefetch");
}

static void note_prefetch(const struct stage *stage, int status)
{
	if (stage->late)
		takt_shim_note(stage->shim, "prefetch: ended, it took longer than %u ms",
			       stage->shim->spec.prefetch_limit_ms);
	else if (WIFSIGNALED(status))
		takt_shim_note(stage->shim, "prefetch: ended by signal %d; the job is not affected",
			       WTERMSIG(status));
	else if (WEXITSTATUS(status) != 0)
		takt_shim_note(stage->shim, "prefetch: exit status %d; the job is not affected",
			       WEXITSTATUS(status));
}

/* A prefetch can have ended children ready for ever: signals come between. */
static void reap(struct stage *stage)
{
	int status;
	pid_t pid;

	stage->more = true;
	for (int i = 0; i < REAPS_AT_ONCE && stage->more; i++) {
		pid = waitpid(-1, &status, WNOHANG);
		stage->more = pid > 0;
		if (pid <= 0)
			break;
		if (takt_shim_rank_of(stage->shim, pid))
			stage->job_gone = true;
		if (pid != stage->prefetch)
			continue;
		stage->prefetch = 0;
		note_prefetch(stage, status);
	}
}

/* SIGKILL to all that is below us but the processes that wait; how many there were. */
static size_t kill_prefetch(const struct stage *stage)
{
	struct takt_proc_tree tree = TAKT_PROC_TREE_INIT;
	size_t n = 0;

	if (takt_proc_tree_read(&tree) < 0) {
		n = stage->prefetch != 0;
		if (n > 0)
			(void)kill(-stage->prefetch, SIGKILL);
	}
	takt_proc_tree_mark(&tree, getpid());
	TAKT_VEC_EACH (entry, &tree.procs) {
		if (!entry->below || takt_shim_rank_of(stage->shim, entry->pid))
			continue;
		takt_proc_signal(entry, SIGKILL);
		n++;
	}
	takt_proc_tree_fini(&tree);
	return n;
}

static void end_prefetch(struct stage *stage)
{
	struct timespec pause = {.tv_nsec = KILL_AGAIN_MS * (long)TAKT_NS_PER_MS};
	const char *leaf = stage->shim->place->job;
	struct takt_job_forks forks = {0};

	if (!stage->prefetching)
		return;
	stage->prefetching = false;
	for (int i = 0; i < KILL_TRIES && kill_prefetch(stage) > 0; i++) {
		if (i == STUBBORN_TRIES)
			takt_job_cgroup_stop_forks(leaf, &forks);
		(void)nanosleep(&pause, NULL);
		reap(stage);
	}
	takt_job_cgroup_let_fork(leaf, &forks);
	reap(stage);
}

static bool prefetch_is_late(const struct stage *stage, uint64_t now_ns)
{
	return stage->prefetch && now_ns >= stage->prefetch_end.ns;
}

/* The next signal, or 0 when something is due. The kernel gives out the one with the lowest number,
 * and a prefetch can have SIGCHLD come all the time: any other comes first. */
static int wait_signal(const struct stage *stage)
{
	static const struct timespec at_once;
	uint64_t now = takt_boot_now(stage->shim->sys).ns;
	uint64_t until = takt_shim_bound_due(stage->shim, stage->lease_end).ns;
	struct timespec limit;
	sigset_t all;
	int sig;

	if (stage->prefetch && stage->prefetch_end.ns < until)
		until = stage->prefetch_end.ns;
	until = until > now && !stage->more ? until - now : 0;
	limit = (struct timespec){.tv_sec = (time_t)(until / TAKT_NS_PER_S),
				  .tv_nsec = (long)(until % TAKT_NS_PER_S)};
	sigfillset(&all);
	sigdelset(&all, SIGCHLD);
	sig = sigtimedwait(&all, NULL, &at_once);
	sigaddset(&all, SIGCHLD);
	if (sig <= 0)
		sig = sigtimedwait(&all, NULL, &limit);
	return sig > 0 ? sig : 0;
}

/* Takes what was decided since. What the attempt is must not have changed. 1: it is its turn. */
static int look(struct stage *stage, struct takt_err *err)
{
	struct takt_shim *shim = stage->shim;
	struct takt_attempt_spec go;
	int rc = takt_attempt_read_go(shim->sys, shim->dirfd, &go, err);

	renew(stage);
	if (rc == -ENOENT)
		return 0;
	if (rc < 0)
		return rc;
	if (strcmp(go.id, shim->spec.id) != 0 || strcmp(go.secret, shim->spec.secret) != 0 ||
	    strcmp(go.cgroup, shim->spec.cgroup) != 0 || go.ranks != shim->spec.ranks) {
		takt_attempt_spec_fini(&go);
		return takt_err_set(err, -TAKT_E_CORRUPT, "'go' is of another attempt");
	}
	takt_attempt_spec_fini(&shim->spec);
	shim->spec = go;
	return 1;
}

/* One turn: 0 = wait on, 1 = it is its turn, -ECANCELED with the reason. */
static int step(struct stage *stage, struct takt_err *err)
{
	int sig = wait_signal(stage), rc;
	uint64_t now_ns = takt_boot_now(stage->shim->sys).ns;

	if (sig == SIGIO)
		takt_shim_bound_told(stage->shim);
	takt_shim_bound_look(stage->shim);
	reap(stage);
	if (stage->job_gone)
		return takt_err_set(err, -ECANCELED, "the process that waited was killed");
	if (sig == SIGTERM)
		return takt_err_set(err, -ECANCELED, "called off before its turn");
	stage->late = stage->late || prefetch_is_late(stage, now_ns);
	if (stage->late || !stage->prefetch)
		end_prefetch(stage); /* now rather than when its turn has come */
	if (sig == TAKT_SHIM_LOOK_SIGNAL) {
		rc = look(stage, err);
		return rc < 0 ? -ECANCELED : rc;
	}
	if (now_ns >= stage->lease_end.ns)
		return takt_err_set(err, -ECANCELED, "takt has not been heard of for too long");
	return 0;
}

static int record(struct takt_shim *shim, struct takt_err *err)
{
	struct takt_proc_id job;
	int rc = takt_proc_identify(shim->ranks[0].pid, &job, err);

	takt_crash_point("shim.before_staged");
	if (rc == 0)
		rc = takt_attempt_record_staged(shim->sys, shim->dirfd, &job, err);
	takt_crash_point("shim.after_staged");
	return rc;
}

int takt_shim_wait_staged(struct takt_shim *shim, struct takt_err *err)
{
	struct stage stage = {.shim = shim};
	int rc = record(shim, err);

	if (rc < 0)
		return rc;
	renew(&stage);
	start_prefetch(&stage);
	takt_shim_bound_begin(shim);
	do {
		rc = step(&stage, err);
	} while (rc == 0);
	end_prefetch(&stage);
	takt_crash_point("shim.after_wait");
	if (rc > 0)
		return 0;
	takt_shim_note(shim, "not started: %s", err->msg);
	return rc;
}
