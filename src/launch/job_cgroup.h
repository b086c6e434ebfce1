/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cgroups of a job, made by the launcher, as root:
 *
 *   ROOT/takt-<mark>-<job>.<attempt>/   memory.max, cpu.max, cpuset.cpus, pids.max, device filter
 *       shim/                           takt-shim: goes on when the job is killed as a whole
 *       job/                            everything of the job; memory.max, memory.oom.group; made
 *                                       at its turn
 *
 * All of it is root's where the launcher is; nothing is the job's user's.
 *
 * ROOT is a cgroup v2 directory that was delegated to takt (a service of systemd's with
 * Delegate=yes), or the launcher's own. <mark> tells the jobs of two takts apart.
 *
 * Where something of this cannot be had, jobs run with what is left and the reason is told:
 * isolation is then advisory. But a launcher that can close devices starts nothing with open ones.
 */
#ifndef TAKT_LAUNCH_JOB_CGROUP_H
#define TAKT_LAUNCH_JOB_CGROUP_H

#include <sys/types.h>

#include "launch/cgroup.h"
#include "launch/job_limits.h"

enum {
	TAKT_ISOLATION_WHY = 160
};

/* Where a launcher makes the cgroups of its jobs; owns nothing. */
struct takt_job_cgroups {
	char root[256]; /* "" = there are none */
	bool named;	/* nobody sits in it but in a leaf */
	uint64_t mark;
	char why_no_devices[TAKT_ISOLATION_WHY]; /* "" = devices are closed */
};

/* Once, by the launcher. `cgroup` is the directory to use, out of which the processes that sit in
 * it are moved to a leaf of their own, now and with each start of a job: it may be made anew in
 * between. NULL is the launcher's own, which stays as it is. */
void takt_job_cgroups_open(struct takt_job_cgroups *ret, const char *cgroup, int jobs_dirfd);

/* A job's place: what the shim is told. */
struct takt_job_place {
	char job[TAKT_CGROUP_PATH];   /* the job's leaf; "" = it has none */
	char why[TAKT_ISOLATION_WHY]; /* why its isolation is advisory; "" = it holds */
};

/*
 * Make the cgroups of an attempt (one that is staged has no leaf of its job yet), which may be
 * there from an earlier try, and enter its leaf of the shim. In the forked child, still as root.
 * Negative: what was promised cannot be kept; nothing may be started.
 */
int takt_job_cgroup_make(const struct takt_job_cgroups *cgroups, uint64_t job_id, uint32_t attempt,
			 const struct takt_job_limits *limits, struct takt_job_place *ret,
			 struct takt_err *err);

/*
 * The turn of a staged attempt has come: its GPUs are opened to it, and only now there is the leaf
 * into which its shim puts processes. May be repeated.
 */
int takt_job_cgroup_admit(const struct takt_job_cgroups *cgroups, uint64_t job_id, uint32_t attempt,
			  const struct takt_job_limits *limits, struct takt_err *err);

/* The leaf of an attempt's job, "" without cgroups. */
void takt_job_cgroup_leaf(const struct takt_job_cgroups *cgroups, uint64_t job_id, uint32_t attempt,
			  char ret[TAKT_CGROUP_PATH]);

/*
 * For the clean-up after an attempt whose shim is gone: its cgroups, or where they are gone, too,
 * new ones that open no GPU, and enter its leaf of the shim. In the forked child, as root.
 * Negative: nothing may be run.
 */
int takt_job_cgroup_reenter(const struct takt_job_cgroups *cgroups, uint64_t job_id,
			    uint32_t attempt, struct takt_job_place *ret, struct takt_err *err);

/* How many processes an attempt might have before it was to fork no more. */
struct takt_job_forks {
	bool stopped;
	uint64_t most; /* UINT64_MAX = any number */
};

/*
 * In the shim, of the job's leaf: nothing of the attempt, the shim included, can fork until the
 * second is called. What forks faster than it can be killed is ended in between. Neither does
 * anything without the controller, nor the second where the first did nothing.
 */
void takt_job_cgroup_stop_forks(const char *leaf, struct takt_job_forks *ret_was);
void takt_job_cgroup_let_fork(const char *leaf, struct takt_job_forks *was);

/* Remove those of attempts that are over; none while another launcher makes one: the next sweep
 * does. */
void takt_job_cgroups_sweep(const struct takt_job_cgroups *cgroups);

/* In the shim, of the job's leaf, once nothing of the job is left: what that has written into
 * memory is not to keep the shim from going on. The leaf keeps its limit. */
void takt_job_cgroup_free_shim(const char *leaf);

/* In the shim, of the job's leaf: whether the kernel ended processes of the job for want of memory;
 * then buf says so. */
bool takt_job_cgroup_ran_out(const char *leaf, char *buf, size_t size);

#endif
