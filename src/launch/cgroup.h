/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cgroup v2 directory around a job: nothing of it escapes, all of it can be killed at once. Where
 * there is no cgroup v2, or none that we may write to, jobs run without, and the log says so.
 */
#ifndef TAKT_LAUNCH_CGROUP_H
#define TAKT_LAUNCH_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/*
 * The cgroup v2 directory of this process, in which cgroups for jobs may be made.
 * -TAKT_E_UNSUPPORTED with the reason: no cgroup v2 at /sys/fs/cgroup, or not writable (no
 * delegation).
 */
int takt_cgroup_root(char *ret, size_t size, struct takt_err *err);

/* An existing directory is fine. */
int takt_cgroup_make(const char *path, struct takt_err *err);
/* The calling process enters. */
int takt_cgroup_enter(const char *path, struct takt_err *err);
/* SIGKILL to everything in it; -errno. */
int takt_cgroup_kill(const char *path);
/* Once empty; best effort. */
void takt_cgroup_remove(const char *path);

/* Calls `each` with every process in it (zombies included) until one returns negative, which is
 * returned; 0 otherwise, also when there is no such cgroup. */
int takt_cgroup_each(const char *path, int (*each)(void *ctx, int32_t pid), void *ctx);

#endif
