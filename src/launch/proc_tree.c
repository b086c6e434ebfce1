/* SPDX-License-Identifier: Apache-2.0 */
/* /proc as a table, and who descends from whom. */
#include "launch/proc_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sort.h"
#include "base/str.h"
#include "base/sys.h"

enum {
	STAT_MAX = 1024,
	STATUS_MAX = 16 * 1024,
	ENVIRON_MAX = 256 * 1024,
};

/* 1 read, 0 the process is gone or hidden. Any other trouble is no answer. */
static int read_stat(int procfd, const char *pid, struct takt_proc_stat *ret)
{
	char path[32], text[STAT_MAX];
	ssize_t got;
	int fd, rc;

	snprintf(path, sizeof(path), "%.15s/stat", pid);
	fd = openat(procfd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT || errno == ESRCH || errno == EACCES ? 0 : -errno;
	got = read(fd, text, sizeof(text) - 1);
	rc = got < 0 && errno != ESRCH ? -errno : 0;
	close(fd);
	if (got <= 0)
		return rc;
	text[got] = '\0';
	return takt_proc_stat_parse(text, ret) == 0;
}

static int add(struct takt_proc_tree *tree, int procfd, const char *name)
{
	struct takt_proc_entry entry = {0};
	unsigned long long pid;
	int rc;

	if (takt_parse_u64(name, 1, INT32_MAX, &pid) < 0)
		return 0;
	entry.pid = (int32_t)pid;
	rc = read_stat(procfd, name, &entry.stat);
	if (rc == 0) /* gone, or another thread takes the first one's number in an execve */
		rc = read_stat(procfd, name, &entry.stat);
	return rc > 0 ? takt_vec_push(&tree->procs, entry) : rc;
}

static int by_pid(const void *a, const void *b, void *ctx)
{
	const struct takt_proc_entry *left = a, *right = b;

	return (left->pid > right->pid) - (left->pid < right->pid);
}

int takt_proc_tree_read(struct takt_proc_tree *tree)
{
	struct dirent *entry;
	DIR *proc;
	int rc = 0;

	takt_vec_clear(&tree->procs);
	proc = opendir("/proc");
	if (!proc)
		return -errno;
	while (rc == 0 && (entry = readdir(proc)))
		rc = add(tree, dirfd(proc), entry->d_name);
	closedir(proc);
	if (rc < 0)
		return rc;
	return takt_sort(tree->procs.at, tree->procs.len, sizeof(*tree->procs.at), by_pid, NULL);
}

void takt_proc_tree_fini(struct takt_proc_tree *tree)
{
	takt_vec_fini(&tree->procs);
}

static struct takt_proc_entry *find(struct takt_proc_tree *tree, int32_t pid)
{
	size_t low = 0, high = tree->procs.len, mid;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (tree->procs.at[mid].pid == pid)
			return &tree->procs.at[mid];
		if (tree->procs.at[mid].pid < pid)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}

static bool parent_is_below(struct takt_proc_tree *tree, const struct takt_proc_entry *entry,
			    int32_t root)
{
	const struct takt_proc_entry *parent;

	if (entry->stat.ppid == root)
		return true;
	parent = find(tree, entry->stat.ppid);
	return parent && parent->below;
}

/* Parents mostly have smaller pids than their children, so one or two rounds do. */
void takt_proc_tree_mark(struct takt_proc_tree *tree, int32_t root)
{
	bool changed = true;

	TAKT_VEC_EACH (entry, &tree->procs)
		entry->below = false;
	while (changed) {
		changed = false;
		TAKT_VEC_EACH (entry, &tree->procs) {
			if (entry->below || !parent_is_below(tree, entry, root))
				continue;
			entry->below = true;
			changed = true;
		}
	}
}

void takt_proc_signal(const struct takt_proc_entry *entry, int sig)
{
	struct takt_proc_id id = {.pid = entry->pid, .start_ticks = entry->stat.start_ticks};
	int pidfd;

	takt_boot_id(id.boot_id);
	pidfd = takt_proc_open(&id);
	if (pidfd >= 0) {
		(void)pidfd_send_signal(pidfd, sig, NULL, 0);
		close(pidfd);
	} else if (pidfd != -ESRCH) {
		(void)kill(entry->pid, sig); /* no descriptor left: a signal that must go out */
	}
}

int takt_shim_words(int32_t pid, const char *jobs_dir, uint64_t *ret_job_id, uint32_t *ret_attempt)
{
	char path[40], text[PATH_MAX + 128] = "";
	const char *attempt = text + sizeof("takt-shim"), *dir;
	unsigned int number;
	unsigned long long job_id;
	int fd, end = 0;
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -ENOENT;
	len = read(fd, text, sizeof(text) - 2);
	close(fd);
	if (len <= 0 || strcmp(text, "takt-shim") != 0)
		return -ENOENT;
	dir = attempt + strlen(attempt) + 1;
	if (dir >= text + len || strcmp(dir, jobs_dir) != 0 ||
	    sscanf(attempt, "%llu.%u%n", &job_id, &number, &end) != 2 || attempt[end])
		return -ENOENT;
	*ret_job_id = job_id;
	*ret_attempt = number;
	return 0;
}

int takt_process_attempt(int32_t pid, char ret[TAKT_ATTEMPT_ID_MAX])
{
	static const char name[] = "TAKT_ATTEMPT=";
	TAKT_CLEANUP(freep) char *env = takt_alloc(ENVIRON_MAX + 1);
	char path[40];
	ssize_t len;
	int fd;

	if (!env)
		return -ENOMEM;
	snprintf(path, sizeof(path), "/proc/%d/environ", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	len = fd < 0 ? -errno : read(fd, env, ENVIRON_MAX);
	if (fd >= 0 && len < 0)
		len = -errno;
	if (fd >= 0)
		close(fd);
	if (len < 0)
		return (int)len;
	env[len] = '\0';
	ret[0] = '\0';
	for (const char *at = env; at < env + len; at += strlen(at) + 1)
		if (strncmp(at, name, sizeof(name) - 1) == 0) {
			if (!takt_strcpy(ret, TAKT_ATTEMPT_ID_MAX, at + sizeof(name) - 1))
				ret[0] = '\0';
			break;
		}
	return 0;
}

int takt_process_uid(int32_t pid, uid_t *ret)
{
	TAKT_CLEANUP(freep) char *text = NULL;
	const char *line;
	unsigned int uid;
	char path[40];
	size_t len;
	int rc;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	rc = takt_file_read(takt_sys_real(), AT_FDCWD, path, STATUS_MAX, &text, &len, NULL);
	if (rc < 0)
		return rc == -ENOENT ? -ESRCH : rc;
	line = strstr(text, "\nUid:");
	if (!line || sscanf(line, "\nUid: %u", &uid) != 1)
		return -ESRCH;
	*ret = uid;
	return 0;
}
