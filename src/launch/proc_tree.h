/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes of the machine, and those that descend from one of them. A child subreaper keeps
 * all its descendants below it, however they fork; those are what a shim may signal.
 */
#ifndef TAKT_LAUNCH_PROC_TREE_H
#define TAKT_LAUNCH_PROC_TREE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/proc_stat.h"
#include "base/vec.h"
#include "launch/attempt.h"

struct takt_proc_entry {
	int32_t pid;
	struct takt_proc_stat stat;
	bool below; /* takt_proc_tree_mark: descends from the root */
};

enum {
	TAKT_PROC_TREE_MAX = 4 * 1024 * 1024 /* the kernel's own limit of pids */
};

struct takt_proc_tree {
	TAKT_VEC(struct takt_proc_entry) procs; /* owned; by pid, ascending */
};

#define TAKT_PROC_TREE_INIT                                \
	{                                                  \
		.procs = TAKT_VEC_INIT(TAKT_PROC_TREE_MAX) \
	}

/* Reads /proc. Processes that come or go meanwhile may be missing; where one cannot be read for
 * another reason, nothing is said of any. */
int takt_proc_tree_read(struct takt_proc_tree *tree);
void takt_proc_tree_fini(struct takt_proc_tree *tree);

/* Sets `below` of every process that descends from root (not of root itself). */
void takt_proc_tree_mark(struct takt_proc_tree *tree, int32_t root);

/* To that process and no other that has its number by now; without a descriptor to spare, to
 * whoever has the number. */
void takt_proc_signal(const struct takt_proc_entry *entry, int sig);

/*
 * The attempt that a process's command line says it is the shim of, "takt-shim <job>.<attempt>
 * <jobs dir>"; -ENOENT when it says no such thing, or is gone. Everybody may give such words to a
 * program of his.
 */
int takt_shim_words(int32_t pid, const char *jobs_dir, uint64_t *ret_job_id, uint32_t *ret_attempt);

/* What its environment names as TAKT_ATTEMPT, "" when it names none in its first 256 KiB or what it
 * names is too long. Anybody may name anything. -EACCES: this user may not read it. */
int takt_process_attempt(int32_t pid, char ret[TAKT_ATTEMPT_ID_MAX]);

/* Its real user. -ESRCH: it is gone. */
int takt_process_uid(int32_t pid, uid_t *ret);

#endif
