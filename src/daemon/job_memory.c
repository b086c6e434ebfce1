/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What holds a job to the GPU memory that it has reserved. A MIG instance has its own; where MPS
 * runs, its server refuses what is beyond the limit that the job is started with; else it is
 * watched (gpu_shares.c).
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
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

/* A pipe is there as long as the directory is; somebody reads from it while the daemon lives. */
bool takt_mps_runs(char *const *env)
{
	char path[PATH_MAX];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "%s/control", pipe_dir(env));
	fd = open(path, O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return false;
	if (fstat(fd, &st) < 0 || !S_ISFIFO(st.st_mode)) {
		close(fd);
		return false;
	}
	close(fd);
	return true;
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
