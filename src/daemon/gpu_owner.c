/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One manager a GPU. takt gives out jobs and sets clocks only on GPUs whose lock it holds: a file a
 * GPU, named by UUID, locked with flock (the kernel frees it at death, and says who holds it). A
 * takt that root runs has its locks where only root can take them; that of anybody else leaves it
 * the GPUs, and shares a directory with those of other users. Where a slurmd or a kubelet runs, the
 * GPUs are theirs: takt observes, and says whose they are. While another takt has them it is asked
 * for them again at a pace.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/pace.h"
#include "base/str.h"
#include "daemon/daemon.h"
#include "daemon/shared_places.h"

static const uint64_t lock_patience_ns = TAKT_NS_PER_S; /* since the start */

static const char *const managers[] = {"slurmd", "kubelet"};

static void read_comm(const char *pid, char ret[32])
{
	char path[300];
	ssize_t n;
	int fd;

	ret[0] = '\0';
	snprintf(path, sizeof(path), "/proc/%s/comm", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	n = read(fd, ret, 31);
	close(fd);
	ret[n > 0 ? n : 0] = '\0';
	ret[strcspn(ret, "\n")] = '\0';
}

/* Managers run as root; a name alone anybody can take. */
static bool can_be_manager(const char *pid)
{
	char path[300];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%s", pid);
	return stat(path, &st) == 0 && (st.st_uid == 0 || st.st_uid == getuid());
}

/* "slurmd (pid 812)" into ret, or false when nobody of the kind runs. */
static bool find_manager(char *ret, size_t size)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	bool found = false;

	while (proc && !found && (entry = readdir(proc))) {
		char comm[32];

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		read_comm(entry->d_name, comm);
		for (size_t i = 0; i < TAKT_ARRAY_LEN(managers); i++)
			if (strcmp(comm, managers[i]) == 0 && can_be_manager(entry->d_name)) {
				snprintf(ret, size, "%s (pid %.20s)", comm, entry->d_name);
				found = true;
			}
	}
	if (proc)
		closedir(proc);
	return found;
}

/* A lock file that all users may open. It is never removed: a name that comes and goes cannot be
 * locked. The directory is everybody's: something else may have been put in the file's place. */
static int open_lock(const struct takt_daemon *daemon, uint32_t gpu, struct takt_err *err)
{
	const struct takt_gpu_facts *facts = takt_machine_facts(daemon->machine, gpu);
	const int flags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
	char path[PATH_MAX];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "%s/takt-%s.lock", daemon->config.lock_dir, facts->uuid);
	fd = open(path, O_RDWR | O_CREAT | flags, 0644);
	if (fd < 0 && (errno == EACCES || errno == EPERM))
		fd = open(path, O_RDONLY | flags); /* another's; flock needs no more */
	if (fd < 0)
		return takt_err_set(err, -errno, "lock of GPU %u, '%s'", gpu, path);
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		return fd;
	close(fd);
	return takt_err_set(err, -EEXIST, "lock of GPU %u, '%s' is no plain file; remove it", gpu,
			    path);
}

bool takt_daemon_lock_again(const struct takt_daemon *daemon, uint32_t tries)
{
	static const struct takt_pace locking = {5 * TAKT_NS_PER_MS, 100 * TAKT_NS_PER_MS};
	const struct timespec pause = {.tv_nsec = (long)takt_pace_ns(&locking, tries)};

	if (takt_mono_now(daemon->sys).ns - daemon->started.ns > lock_patience_ns)
		return false;
	(void)nanosleep(&pause, NULL);
	return true;
}

static bool take_flock(const struct takt_daemon *daemon, int fd)
{
	for (uint32_t tries = 0; flock(fd, LOCK_EX | LOCK_NB) < 0; tries++)
		if (errno != EWOULDBLOCK || !takt_daemon_lock_again(daemon, tries))
			return false;
	return true;
}

static int lock_gpu(struct takt_daemon *daemon, uint32_t gpu, struct takt_err *err)
{
	const char *uuid = takt_machine_facts(daemon->machine, gpu)->uuid;
	char owner[96];
	int fd;

	if (takt_gpu_is_roots(&daemon->config, uuid, owner, sizeof(owner)))
		return takt_err_set(err, -TAKT_E_BUSY, "GPU %u is managed by %s", gpu, owner);
	fd = open_lock(daemon, gpu, err);
	if (fd < 0)
		return fd;
	if (take_flock(daemon, fd)) {
		daemon->gpu_lock_fd[gpu] = fd;
		return 0;
	}
	takt_lock_owner(fd, owner, sizeof(owner));
	close(fd);
	return takt_err_set(err, -TAKT_E_BUSY, "GPU %u is managed by %s", gpu, owner);
}

void takt_daemon_disown_gpus(struct takt_daemon *daemon)
{
	for (uint32_t gpu = 0; gpu < TAKT_DEVICE_MAX_GPUS; gpu++) {
		if (daemon->gpu_lock_fd[gpu] >= 0)
			close(daemon->gpu_lock_fd[gpu]);
		daemon->gpu_lock_fd[gpu] = -1;
	}
}

static void only_observe(struct takt_daemon *daemon, const char *why)
{
	daemon->manages = false;
	takt_strcpy(daemon->observe_why, sizeof(daemon->observe_why), why);
	takt_daemon_disown_gpus(daemon);
}

int takt_daemon_own_gpus(struct takt_daemon *daemon, struct takt_err *err)
{
	const struct takt_machine_info *info = takt_machine_info(daemon->machine);
	struct takt_err taken;
	char who[64], why[240];

	daemon->manages = true;
	if (daemon->config.manage == TAKT_MANAGE_NEVER)
		only_observe(daemon, "manage = never");
	else if (strcmp(info->source, "replay") == 0)
		only_observe(daemon, "a recording is replayed");
	else if (daemon->config.manage != TAKT_MANAGE_ALWAYS && !info->simulated &&
		 find_manager(who, sizeof(who))) {
		snprintf(why, sizeof(why),
			 "%s manages this machine; --manage always takes the GPUs all the "
			 "same",
			 who);
		only_observe(daemon, why);
	}
	for (uint32_t gpu = 0; daemon->manages && gpu < daemon->gpu_count; gpu++) {
		int rc = takt_watch_known(daemon, gpu) ? lock_gpu(daemon, gpu, &taken) : 0;

		if (rc == -TAKT_E_BUSY) {
			only_observe(daemon, taken.msg);
			daemon->owned_by_another = true;
		} else if (rc < 0)
			return takt_err_set(err, rc, "%s", taken.msg);
	}
	return 0;
}

/* Tried as the start does: what cannot be locked then would end it. */
static bool may_lock(const struct takt_daemon *daemon, uint32_t gpu)
{
	const char *uuid = takt_machine_facts(daemon->machine, gpu)->uuid;
	bool free;
	int fd;

	if (takt_gpu_is_roots(&daemon->config, uuid, NULL, 0))
		return false;
	fd = open_lock(daemon, gpu, NULL);
	free = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
	if (fd >= 0)
		close(fd);
	return free;
}

static bool may_lock_all(const struct takt_daemon *daemon)
{
	for (uint32_t gpu = 0; gpu < daemon->gpu_count; gpu++)
		if (takt_watch_known(daemon, gpu) && !may_lock(daemon, gpu))
			return false;
	return true;
}

bool takt_daemon_may_own_gpus(struct takt_daemon *daemon, struct takt_boot now,
			      struct takt_boot *ret_next)
{
	static const struct takt_pace asking = {TAKT_NS_PER_S, 30 * TAKT_NS_PER_S};

	if (now.ns >= daemon->own_at.ns) {
		if (daemon->own_at.ns && may_lock_all(daemon))
			return true;
		daemon->own_at = takt_boot_add(now, takt_pace_ns(&asking, daemon->own_tries++));
	}
	*ret_next = daemon->own_at;
	return false;
}
