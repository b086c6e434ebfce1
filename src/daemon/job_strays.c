/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work that a job does on GPUs that it was not given, most often by a container that it started
 * itself: `docker run --gpus all` asks dockerd, which is nobody's child and knows every GPU of the
 * machine. Such processes count as from outside; here they are explained to the job's owner.
 *
 * A foreign container is laid to a job's charge when a client of docker's runs in the job, since
 * dockerd does not tell for whom it works. That is a guess, and worded as one.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/proc_stat.h"
#include "base/str.h"
#include "daemon/daemon.h"

enum {
	MAX_ANCESTORS = 16,
	COMM_MAX = 32,
};

static void read_text(int32_t pid, const char *name, char *ret, size_t size)
{
	char path[48];
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, ret, size - 1);
		close(fd);
	}
	ret[n > 0 ? n : 0] = '\0';
}

static void read_comm(int32_t pid, char ret[COMM_MAX])
{
	read_text(pid, "comm", ret, COMM_MAX);
	ret[strcspn(ret, "\n")] = '\0';
}

static bool starts_containers(const char *comm)
{
	return strncmp(comm, "containerd-shim", 15) == 0 || strcmp(comm, "dockerd") == 0;
}

bool takt_stray_in_container(int32_t pid)
{
	for (int depth = 0; depth < MAX_ANCESTORS && pid > 1; depth++) {
		struct takt_proc_stat stat;
		char text[1024], comm[COMM_MAX];

		read_comm(pid, comm);
		if (starts_containers(comm))
			return true;
		read_text(pid, "stat", text, sizeof(text));
		if (!text[0] || takt_proc_stat_parse(text, &stat) < 0)
			return false;
		pid = stat.ppid;
	}
	return false;
}

/* Whether the job runs a client of docker's at this moment. */
static bool job_runs_docker(struct takt_daemon *daemon, uint64_t job_id, struct takt_mono now)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	bool found = false;

	while (proc && !found && (entry = readdir(proc))) {
		int32_t pid = (int32_t)strtol(entry->d_name, NULL, 10);
		char comm[COMM_MAX];

		if (pid <= 0)
			continue;
		read_comm(pid, comm);
		found = (strcmp(comm, "docker") == 0 || strcmp(comm, "nerdctl") == 0) &&
			takt_proc_who(daemon->procs, pid, now)->job_id == job_id;
	}
	if (proc)
		closedir(proc);
	return found;
}

static bool explain(struct takt_daemon *daemon, const struct takt_queue_job *job, uint32_t gpu,
		    int32_t pid, struct takt_mono now, char *ret, size_t size)
{
	uint64_t of = takt_proc_who(daemon->procs, pid, now)->job_id;

	if (of == job->row.id) {
		snprintf(ret, size,
			 "its process %d uses GPU %u, which was not given to it; "
			 "CUDA_VISIBLE_DEVICES names those that were",
			 pid, gpu);
		return true;
	}
	if (of || !takt_stray_in_container(pid) || !job_runs_docker(daemon, job->row.id, now))
		return false;
	snprintf(ret, size,
		 "process %d in a container of docker's uses GPU %u, and this job runs docker: "
		 "containers that a job starts itself are not held to its GPUs; use takt run "
		 "--container, or docker run --gpus '\"device=...\"' with its own",
		 pid, gpu);
	return true;
}

void takt_stray_note(struct takt_daemon *daemon, const struct takt_queue_job *job, char *ret,
		     size_t size)
{
	struct takt_mono now = takt_mono_now(daemon->sys);
	const struct takt_gpu_reading *reading;

	ret[0] = '\0';
	for (uint32_t gpu = 0; gpu < daemon->gpu_count; gpu++) {
		bool own = job->row.gpu_mask >> gpu & 1;

		if (takt_telemetry_latest(daemon->telemetry, gpu, now, &reading) < 0 ||
		    !(reading->has & TAKT_HAS_PROCS))
			continue;
		for (uint32_t i = 0; i < reading->proc_count; i++) {
			int32_t pid = reading->procs[i].pid;
			bool its = takt_proc_who(daemon->procs, pid, now)->job_id == job->row.id;

			if (!(own && its) && explain(daemon, job, gpu, pid, now, ret, size))
				return;
		}
	}
}
