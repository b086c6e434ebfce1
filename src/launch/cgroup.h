/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The few files of cgroup v2 that jobs need. What a job's cgroups look like is in job_cgroup.h.
 */
#ifndef TAKT_LAUNCH_CGROUP_H
#define TAKT_LAUNCH_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum {
	TAKT_CGROUP_PATH = 320
};

/*
 * The cgroup v2 directory of this process, in which cgroups for jobs may be made.
 * -TAKT_E_UNSUPPORTED with the reason: no cgroup v2 at /sys/fs/cgroup, or not writable (no
 * delegation).
 */
int takt_cgroup_root(char *ret, size_t size, struct takt_err *err);

/* Whether there is cgroup v2 at /sys/fs/cgroup. */
bool takt_cgroup_is_v2(void);

/* An existing directory is fine. */
int takt_cgroup_make(const char *path, struct takt_err *err);
/* A process is moved there; 0 is the calling one. -ESRCH when it has ended. */
int takt_cgroup_enter(const char *path, int32_t pid, struct takt_err *err);
/* SIGKILL to everything in it; -errno. */
int takt_cgroup_kill(const char *path);
/* -EBUSY while anything is in it; one that is not there is removed. */
int takt_cgroup_remove(const char *path);

/* Text into one of its files ("memory.max"); -errno, -ENOENT without that controller. */
int takt_cgroup_write(const char *path, const char *control, const char *text);
/* The number behind "key " in one of its files, or of the whole file with key "": 0 and *ret, or
 * negative; -ERANGE for the word "max". */
int takt_cgroup_number(const char *path, const char *control, const char *key, uint64_t *ret);

/* Calls `each` with every process in it (zombies included) until one returns negative, which is
 * returned; 0 otherwise, also when there is no such cgroup. */
int takt_cgroup_each(const char *path, int (*each)(void *ctx, int32_t pid), void *ctx);

#endif
