/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Seeing a job through: one loop over signals that are blocked and taken one by one.
 *
 * The shim is a child subreaper, so whatever loses its parent becomes our child: "no children left"
 * means that nothing of the job is left. Phases only move forward:
 *
 *   RUN     the first processes live and nobody asked to stop; a hook not for ever
 *   LINGER  they have ended; what they left (a tee, a resource tracker) may finish by itself
 *   TERM    SIGTERM was sent to everything
 *   KILL    SIGKILL is sent to everything again and again, for what forks meanwhile
 */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/pace.h"
#include "launch/launch.h"
#include "launch/proc_tree.h"
#include "launch/shim_job.h"

enum phase {
	PHASE_RUN,
	PHASE_LINGER,
	PHASE_TERM,
	PHASE_KILL
};

enum {
	LINGER_MS = 1000,
	REAPS_AT_ONCE = 64,
	SIGNALS_AT_ONCE = 64,
	STUBBORN_KILLS = 6, /* rounds of KILL, about a second */
};

/* What SIGKILL does not end (a process that hangs in the driver) may stay for long. */
static const struct takt_pace kills = {20 * TAKT_NS_PER_MS, TAKT_NS_PER_S};

struct watch {
	struct takt_shim *shim; /* borrowed */
	enum phase phase;
	/* When the next phase is due, or the next round of KILL; 0 = never, in RUN. */
	struct takt_boot until;
	uint32_t kills; /* rounds of it */
	bool more;	/* children that have ended may be left to take */
	struct takt_job_forks forks;
	bool late; /* a hook's time was up */
};

enum reach {
	REACH_ALL,
	REACH_GROUP
};

/* To every process of the job, or those in its process groups. Without memory for the table the
 * first processes and their groups still get it. */
static void signal_job(struct watch *watch, int sig, enum reach reach)
{
	struct takt_proc_tree tree = TAKT_PROC_TREE_INIT;
	const struct takt_shim *shim = watch->shim;

	if (takt_proc_tree_read(&tree) == 0) {
		takt_proc_tree_mark(&tree, getpid());
		TAKT_VEC_EACH (entry, &tree.procs)
			if (entry->below &&
			    (reach == REACH_ALL || takt_shim_rank_of(shim, entry->stat.pgrp)))
				takt_proc_signal(entry, sig);
	} else {
		for (uint32_t i = 0; i < shim->rank_count; i++)
			if (!shim->ranks[i].ended)
				(void)kill(-shim->ranks[i].pid, sig);
	}
	takt_proc_tree_fini(&tree);
}

/* What is below us may have left the job's leaf, or never been in it; what outforks this is in one
 * of our leaves, and may fork no more. */
static void kill_job(struct watch *watch)
{
	const char *leaf = watch->shim->place->job;

	if (watch->kills == STUBBORN_KILLS)
		takt_job_cgroup_stop_forks(leaf, &watch->forks);
	if (leaf[0])
		(void)takt_cgroup_kill(leaf);
	signal_job(watch, SIGKILL, REACH_ALL);
}

static void enter_phase(struct watch *watch, enum phase phase)
{
	struct takt_shim *shim = watch->shim;
	uint64_t wait_ns = shim->spec.grace_ms * TAKT_NS_PER_MS;

	if (phase == PHASE_TERM && wait_ns == 0)
		phase = PHASE_KILL;
	if (phase == PHASE_TERM) {
		signal_job(watch, SIGTERM, REACH_ALL);
		signal_job(watch, SIGCONT, REACH_ALL);
	} else if (phase == PHASE_KILL) {
		kill_job(watch);
		wait_ns = takt_pace_ns(&kills, watch->kills++);
	} else if (wait_ns > LINGER_MS * TAKT_NS_PER_MS) {
		wait_ns = LINGER_MS * TAKT_NS_PER_MS;
	}
	watch->phase = phase;
	watch->until = takt_boot_add(takt_boot_now(shim->sys), wait_ns);
}

/* RUN and LINGER lead to TERM, TERM to KILL, KILL to KILL. */
static void advance(struct watch *watch)
{
	if (watch->until.ns == 0 || takt_boot_now(watch->shim->sys).ns < watch->until.ns)
		return;
	watch->late = watch->late || watch->phase == PHASE_RUN;
	enter_phase(watch, watch->phase <= PHASE_LINGER ? PHASE_TERM : PHASE_KILL);
}

/* The last first process ending ends the job, and so does one that fails. */
static void note_end(struct watch *watch, struct takt_shim_rank *rank, int status)
{
	struct takt_shim *shim = watch->shim;
	bool stop = takt_shim_rank_ended(shim, rank, status, watch->phase != PHASE_RUN);

	if (watch->phase != PHASE_RUN)
		return;
	if (shim->ranks_left == 0)
		enter_phase(watch, PHASE_LINGER);
	else if (stop)
		enter_phase(watch, PHASE_TERM);
}

/* False when no child is left. A job can have ended children ready for ever: signals come between.
 */
static bool reap(struct watch *watch)
{
	struct takt_shim_rank *rank;
	int status;
	pid_t pid;

	watch->more = true;
	for (int i = 0; i < REAPS_AT_ONCE; i++) {
		pid = waitpid(-1, &status, WNOHANG);
		watch->more = pid != 0;
		if (pid < 0 && errno == ECHILD)
			return false;
		if (pid == 0)
			break;
		rank = takt_shim_rank_of(watch->shim, pid);
		if (rank && !rank->ended)
			note_end(watch, rank, status);
	}
	return true;
}

/* Signals that mean something to a job; faults and job control of our own are not passed on. */
static bool passes_on(int sig)
{
	switch (sig) {
	case SIGHUP:
	case SIGINT:
	case SIGQUIT:
	case SIGUSR1:
	case SIGUSR2:
	case SIGCONT:
	case SIGWINCH:
		return true;
	default:
		return false;
	}
}

static void forward(struct watch *watch, int sig)
{
	if (sig == SIGKILL)
		enter_phase(watch, PHASE_KILL);
	else if (sig > 0 && sig <= SIGRTMAX)
		signal_job(watch, sig, sig == SIGSTOP || sig == SIGCONT ? REACH_ALL : REACH_GROUP);
	else if (sig >= TAKT_SHIM_NOTICE_IDLE)
		takt_shim_notice_idle(watch->shim, (uint32_t)(sig - TAKT_SHIM_NOTICE_IDLE));
}

/* The first process of the machine ends everybody when it goes down: that end is not the job's. */
static bool is_shutdown(const siginfo_t *info)
{
	return info->si_signo == SIGTERM && info->si_code == SI_USER && info->si_pid == 1;
}

static void heed(struct watch *watch, const siginfo_t *info)
{
	int sig = info->si_signo;

	if (is_shutdown(info) && watch->phase == PHASE_RUN)
		watch->shim->interrupted = true;
	if (sig == SIGTERM && watch->phase < PHASE_TERM)
		enter_phase(watch, PHASE_TERM);
	else if (sig == SIGIO)
		takt_shim_bound_told(watch->shim);
	else if (sig == TAKT_SHIM_FORWARD_SIGNAL)
		forward(watch, info->si_value.sival_int);
	else if (passes_on(sig))
		forward(watch, sig);
}

/* True when there was one. Without a limit it is waited for. The kernel gives out the one with the
 * lowest number, and a job can have SIGCHLD come all the time: `but` is left where it is. */
static bool take_signal(struct watch *watch, const struct timespec *limit, int but)
{
	sigset_t all;
	siginfo_t info;
	int sig;

	sigfillset(&all);
	if (but)
		sigdelset(&all, but);
	sig = sigtimedwait(&all, &info, limit);
	if (sig > 0 && sig != SIGCHLD)
		heed(watch, &info);
	return sig > 0;
}

/* The next signal, or none once something is due. */
static void wait_signal(struct watch *watch)
{
	uint64_t now = takt_boot_now(watch->shim->sys).ns;
	uint64_t until = takt_shim_bound_due(watch->shim, watch->until).ns;
	uint64_t left = until > now ? until - now : 0;
	struct timespec limit = {.tv_sec = (time_t)(left / TAKT_NS_PER_S),
				 .tv_nsec = (long)(left % TAKT_NS_PER_S)};
	bool forever = until == 0 && !watch->more;

	if (watch->more) {
		left = 0;
		limit = (struct timespec){0};
	}
	if (watch->shim->io) {
		takt_shim_io_wait(watch->shim,
				  forever ? -1 : (int)(left / TAKT_NS_PER_MS) + !watch->more);
		limit = (struct timespec){0};
		forever = false;
	}
	(void)take_signal(watch, forever ? NULL : &limit, 0);
}

/* False when no child is left. A shutdown stops everybody, then ends everybody: what was said to us
 * comes before how the job took it. */
static bool look(struct watch *watch)
{
	static const struct timespec at_once;

	for (int i = 0; i < SIGNALS_AT_ONCE && take_signal(watch, &at_once, SIGCHLD); i++)
		;
	return reap(watch);
}

void takt_shim_see_through(struct takt_shim *shim)
{
	struct watch watch = {.shim = shim};

	if (shim->spec.hook_event[0])
		watch.until = takt_boot_add(shim->began, shim->spec.hook_limit_ms * TAKT_NS_PER_MS);
	takt_shim_bound_begin(shim);
	while (look(&watch)) {
		advance(&watch);
		takt_shim_bound_look(shim);
		wait_signal(&watch);
	}
	takt_job_cgroup_free_shim(shim->place->job);
	takt_job_cgroup_let_fork(shim->place->job, &watch.forks);
	takt_shim_io_finish(shim);
	takt_shim_bound_apply(shim);
	takt_shim_settle_report(shim);
	if (shim->spec.hook_event[0])
		takt_shim_hook_note(shim, watch.late);
	shim->end.ended_at = takt_wall_now(shim->sys);
	shim->end.run_ns = takt_boot_elapsed_ns(takt_boot_now(shim->sys), shim->began);
}
