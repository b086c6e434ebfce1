/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What holds a job to the GPU memory that it has reserved. A MIG instance has its own; where MPS
 * runs, its server refuses what is beyond the limit that the job is started with; else it is
 * watched (gpu_shares.c).
 */
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/daemon.h"
#include "daemon/job_memory.h"

static const char pipe_variable[] = "CUDA_MPS_PIPE_DIRECTORY=";

static const char *pipe_dir(char *const *env)
{
	for (; env && *env; env++)
		if (strncmp(*env, pipe_variable, sizeof(pipe_variable) - 1) == 0)
			return *env + sizeof(pipe_variable) - 1;
	return "/tmp/nvidia-mps";
}

/* Neither over a link nor into another file system, which could be a user's and never answer. */
static int open_there(int dirfd, const char *name, uint64_t flags)
{
	struct open_how how = {.flags = flags | O_NOFOLLOW | O_CLOEXEC,
			       .resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS};

	return (int)syscall(SYS_openat2, dirfd, name, &how, sizeof(how));
}

static bool is_trusted(int fd, mode_t type)
{
	struct stat st;

	return fstat(fd, &st) == 0 && (st.st_mode & S_IFMT) == type &&
	       (st.st_uid == 0 || st.st_uid == geteuid());
}

/* -1: there is none that can be trusted. */
static int open_pipes(const char *dir)
{
	const char *name = strrchr(dir, '/');
	char parent[PATH_MAX];
	int fd, at;

	if (!name || !name[1])
		return -1;
	snprintf(parent, sizeof(parent), "%.*s", (int)(name - dir) + 1, dir);
	at = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (at < 0)
		return -1;
	fd = open_there(at, name + 1, O_PATH | O_DIRECTORY);
	close(at);
	if (fd < 0 || is_trusted(fd, S_IFDIR))
		return fd;
	close(fd);
	return -1;
}

/* A pipe is there as long as the directory is; somebody reads from it while the daemon lives. */
static bool is_read(const char *dir)
{
	int pipes = open_pipes(dir);
	int fd = pipes < 0 ? -1 : open_there(pipes, "control", O_WRONLY | O_NONBLOCK);
	bool read = fd >= 0 && is_trusted(fd, S_IFIFO);

	if (fd >= 0)
		close(fd);
	if (pipes >= 0)
		close(pipes);
	return read;
}

bool takt_mps_runs(const char *dir, char *const *env)
{
	return strcmp(pipe_dir(env), dir) == 0 && is_read(dir);
}

const char *takt_job_memory_word(const struct takt_job *row)
{
	if (row->gpu_mask == 0)
		return "";
	if (row->mig && row->mig[0])
		return "enforced by MIG";
	if (row->share_milli == TAKT_REQUEST_WHOLE)
		return "whole GPU";
	return row->mps_limited ? "enforced by MPS" : "watched";
}
