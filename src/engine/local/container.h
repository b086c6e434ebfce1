/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job's command as the command line of a container runtime. Pure: what was decided goes in, argv
 * and environment come out.
 *
 * The container is the job as it would be without one, but for its files: the same user, working
 * directory and progress file (mounted where they are), network and shared memory, its GPUs alone.
 * Values of variables are never arguments, which all users may read: the runtime takes them from
 * its own environment. What describes the host rather than the job (PATH, HOME, LD_LIBRARY_PATH,
 * ...) stays outside.
 *
 * podman  its processes are the shim's descendants and stay in the job's cgroup
 * docker  its processes are dockerd's: they are found, and removed at the end, by the label
 *         takt.attempt; takt tells them as the job's by TAKT_ATTEMPT in their environment
 * apptainer  execs the command in place; hides no GPU, so that CUDA_VISIBLE_DEVICES does it
 */
#ifndef TAKT_ENGINE_LOCAL_CONTAINER_H
#define TAKT_ENGINE_LOCAL_CONTAINER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct takt_container {
	const char *runtime; /* "podman", "docker", "apptainer"; all here is borrowed */
	const char *image;
	char *const *args; /* more for the runtime, before the image; NULL = none */
	char *const *argv; /* the command */
	const char *cwd;
	const char *const
		*gpus; /* UUIDs of GPUs or MIG instances, in the order the job sees them */
	size_t gpu_count;
	uint32_t uid, gid;
	uint64_t job_id;
	const char *attempt_id;
	const char *progress; /* TAKT_PROGRESS, a file that is there; NULL = none */
	bool pty, ranks;
};

/* Whether the runtime's command line can name the path to be mounted. */
bool takt_container_mounts(const char *runtime, const char *path);

/* The first runtime that is installed in the directories of the system; NULL = none is. */
const char *takt_container_first(void);

/* *ret_argv: the command line, given the job's final environment `env`. The caller releases it with
 * takt_jobenv_free. -EINVAL: a directory that cannot be mounted. */
int takt_container_argv(const struct takt_container *in, char *const *env, char ***ret_argv,
			struct takt_err *err);

/* Changes `env` (NULL-terminated, entries of takt_alloc) to what holds inside, where the GPUs of
 * the job are all there are. -ENOMEM. */
int takt_container_env(const struct takt_container *in, char ***env, struct takt_err *err);

/* What removes it, whatever became of its client: argv, or *ret NULL where nothing is left. It
 * succeeds when nothing of the attempt is there. */
int takt_container_cleanup(const struct takt_container *in, char ***ret, struct takt_err *err);

#endif
