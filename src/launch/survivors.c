/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is left of an attempt whose shim is gone. The kernel has given its processes another parent,
 * so they are known by what they inherited: the cgroup and the environment.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/proc_stat.h"
#include "base/str.h"
#include "launch/attempt.h"
#include "launch/cgroup.h"
#include "launch/proc_tree.h"

enum {
	ENVIRON_MAX = 32 * 1024 * 1024,
	EXEC_LOOKS = 100, /* of one search, a millisecond apart; then whoever asks asks again */
	SAME_LOOKS = 8,
};

struct search {
	const char *id;
	uid_t uid;
	struct takt_proc_tree *tree; /* borrowed */
	struct takt_proc_id *ret;    /* borrowed */
	size_t max;
	int looks_left;		 /* second ones, each after a pause */
	TAKT_VEC(int32_t) found; /* owned */
};

/* Whether the NUL-separated environment holds TAKT_ATTEMPT=id. */
static bool holds_id(const char *env, size_t len, const char *id)
{
	static const char name[] = "TAKT_ATTEMPT=";
	const char *end = env + len;
	size_t n;

	for (; env < end; env += n + 1) {
		n = strnlen(env, (size_t)(end - env));
		if (n == sizeof(name) - 1 + strlen(id) &&
		    memcmp(env, name, sizeof(name) - 1) == 0 &&
		    memcmp(env + sizeof(name) - 1, id, strlen(id)) == 0)
			return true;
	}
	return false;
}

/* `at`: "PID", or "PID/task/TID" for a thread of it. */
static int read_proc(const char *at, const char *name, char **ret, size_t *ret_len)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%s/%s", at, name);
	return takt_file_read(takt_sys_real(), AT_FDCWD, path, ENVIRON_MAX, ret, ret_len, NULL);
}

/* -ESRCH also: what was read is another's. A name that /proc looked up in the middle of an execve
 * by another thread than the first may lead to the wrong one of the two. */
static int read_stat(const char *at, struct takt_proc_stat *ret)
{
	TAKT_CLEANUP(freep) char *text = NULL;
	const char *slash = strrchr(at, '/');
	const char *number = slash ? slash + 1 : at;
	size_t len;
	int rc = read_proc(at, "stat", &text, &len);

	if (rc < 0)
		return rc;
	len = strlen(number);
	return strncmp(text, number, len) != 0 || text[len] != ' '
		       ? -ESRCH
		       : takt_proc_stat_parse(text, ret);
}

static bool has_no_words(const struct takt_proc_stat *stat)
{
	return (stat->flags & (TAKT_PROC_ENDING | TAKT_PROC_KERNEL)) != 0;
}

/* Whether `len` bytes are all of its environment. In the middle of an execve it shows none or the
 * first part of it: its old memory is gone, and the new one not filled until the kernel says where
 * its code begins (Linux, load_elf_binary). */
static bool was_all(const struct takt_proc_stat *stat, size_t len)
{
	return stat->code_start != 0 && stat->env_end - stat->env_start == len;
}

static bool same_words(const struct takt_proc_stat *a, const struct takt_proc_stat *b)
{
	return b->code_start != 0 && a->start_ticks == b->start_ticks &&
	       a->code_start == b->code_start && a->env_start == b->env_start &&
	       a->env_end == b->env_end;
}

static int pause_for_another_look(struct search *search)
{
	static const struct timespec pause = {.tv_nsec = 1000000};

	if (search->looks_left == 0)
		return -EAGAIN;
	search->looks_left--;
	(void)nanosleep(&pause, NULL);
	return 0;
}

/*
 * 1 its environment holds the id, 0 it does not. -ESRCH: it has none any more. -EAGAIN: no whole
 * one was seen. One that never shows all of the same memory has given part of it back, and is no
 * execve.
 */
static int look_at_words(struct search *search, const char *at)
{
	struct takt_proc_stat stat = {0}, before;
	size_t len, len_before = 0;
	int rc;

	for (int same = 0; same < SAME_LOOKS;) {
		TAKT_CLEANUP(freep) char *env = NULL;

		rc = read_proc(at, "environ", &env, &len);
		if (rc < 0)
			return rc;
		if (holds_id(env, len, search->id))
			return 1;
		before = stat;
		rc = read_stat(at, &stat);
		if (rc == 0 && has_no_words(&stat))
			rc = -ESRCH;
		if (rc < 0 || was_all(&stat, len))
			return rc;
		same = same_words(&before, &stat) && len == len_before ? same + 1 : 0;
		len_before = len;
		rc = pause_for_another_look(search);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/*
 * Whether a thread that showed no words has ended. In an execve it takes the number of the first
 * thread, which is dead and has the number of the other until the kernel releases it. So the first
 * one is read before the thread. Where it has ended, too, and the thread's number is still in use,
 * there was no execve in between.
 */
static bool has_ended(const char *first, const char *thread)
{
	struct takt_proc_stat stat;

	return read_stat(first, &stat) == 0 && has_no_words(&stat) &&
	       read_stat(thread, &stat) == 0 && has_no_words(&stat);
}

/* As look_at_words. -EAGAIN also: one went while it was looked at, or executes a program. */
static int look_at_threads(struct search *search, int32_t pid, const char *first)
{
	char path[40], at[40];
	struct dirent *entry;
	int rc = -ESRCH, one, others = 0; /* the first one may be listed twice */
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	tasks = opendir(path);
	if (!tasks)
		return -errno;
	while (rc <= 0 && (entry = readdir(tasks))) {
		if (entry->d_name[0] == '.')
			continue;
		others += strcmp(entry->d_name, first) != 0;
		snprintf(at, sizeof(at), "%d/task/%.15s", pid, entry->d_name);
		one = look_at_words(search, at);
		if (one == -ESRCH || one == -ENOENT)
			one = has_ended(first, at) ? -ESRCH : -EAGAIN;
		if (one > 0 || (one != -ESRCH && rc != 0))
			rc = one;
	}
	closedir(tasks);
	return rc == -ESRCH && others == 0 ? -EAGAIN : rc;
}

/* /proc may miss one whose first thread is just being released; signals do not. */
static bool is_gone(int32_t pid)
{
	return kill(pid, 0) < 0 && errno == ESRCH;
}

/*
 * The first thread of a process may end before the others; in an execve by another thread it does,
 * until that one takes its number. At that moment it is of a process without any.
 */
static int look_at_process(struct search *search, int32_t pid)
{
	struct takt_proc_stat stat;
	char at[16];
	int rc;

	snprintf(at, sizeof(at), "%d", pid);
	for (;;) {
		rc = look_at_words(search, at);
		if (rc != -ESRCH && rc != -ENOENT)
			return rc;
		stat = (struct takt_proc_stat){0};
		if (read_stat(at, &stat) < 0 ? is_gone(pid) : stat.flags & TAKT_PROC_KERNEL)
			return -ESRCH;
		if (stat.flags & TAKT_PROC_ENDING) {
			rc = stat.threads == 1 ? -ESRCH : look_at_threads(search, pid, at);
			if (rc != -EAGAIN)
				return rc;
		}
		rc = pause_for_another_look(search);
		if (rc < 0)
			return rc;
	}
}

/* 1 yes; 0 no, gone, not ours to read, with more words than a process can have been given, or
 * another user's (who can write there what he likes). Where the kernel does not say, nobody may
 * conclude that it is not one. */
static int belongs(struct search *search, int32_t pid)
{
	uid_t uid;
	int rc = takt_process_uid(pid, &uid);

	if (rc == -ESRCH) /* or one whose first thread is being released */
		rc = takt_process_uid(pid, &uid);
	if (rc == 0 && uid != search->uid)
		return 0;
	if (rc == 0)
		rc = look_at_process(search, pid);
	return rc == -ESRCH || rc == -ENOENT || rc == -EACCES || rc == -EPERM || rc == -TAKT_E_LIMIT
		       ? 0
		       : rc;
}

static bool is_zombie(int32_t pid)
{
	struct takt_proc_stat stat;
	char at[16];

	snprintf(at, sizeof(at), "%d", pid);
	return read_stat(at, &stat) == 0 && (stat.state == 'Z' || stat.state == 'X') &&
	       stat.threads == 1;
}

static int note(struct search *search, int32_t pid)
{
	struct takt_proc_id proc;
	int rc;

	TAKT_VEC_EACH (seen, &search->found)
		if (*seen == pid)
			return 0;
	do
		rc = takt_proc_identify(pid, &proc, NULL);
	while (rc == -ESRCH && !is_gone(pid) && pause_for_another_look(search) == 0);
	if (rc < 0)
		return rc == -ESRCH && is_gone(pid) ? 0 : rc == -ESRCH ? -EAGAIN : rc;
	if (search->found.len < search->max)
		search->ret[search->found.len] = proc;
	return takt_vec_push(&search->found, pid);
}

/* A cgroup lists zombies, too. */
static int note_of_cgroup(void *ctx, int32_t pid)
{
	return is_zombie(pid) ? 0 : note(ctx, pid);
}

/* One that cannot be judged keeps nobody from finding the others. */
static int look(struct search *search, const char *cgroup)
{
	bool unsure = false;
	int rc = 0;

	TAKT_VEC_EACH (entry, &search->tree->procs) {
		rc = belongs(search, entry->pid);
		if (rc > 0)
			rc = note(search, entry->pid);
		unsure |= rc == -EAGAIN;
		if (rc < 0 && rc != -EAGAIN)
			return rc;
	}
	rc = cgroup[0] ? takt_cgroup_each(cgroup, note_of_cgroup, search) : 0;
	return rc == 0 && unsure && search->found.len == 0 ? -EAGAIN : rc;
}

int takt_attempt_survivors(const char *id, uid_t uid, const char *cgroup, struct takt_proc_id *ret,
			   size_t max, struct takt_err *err)
{
	struct takt_proc_tree tree = TAKT_PROC_TREE_INIT;
	struct search search = {.id = id,
				.uid = uid,
				.tree = &tree,
				.ret = ret,
				.max = max,
				.looks_left = EXEC_LOOKS,
				.found = TAKT_VEC_INIT(TAKT_PROC_TREE_MAX)};
	int rc = takt_proc_tree_read(&tree);

	if (rc == 0)
		rc = look(&search, cgroup);
	if (rc == 0)
		rc = (int)search.found.len;
	takt_vec_fini(&search.found);
	takt_proc_tree_fini(&tree);
	return rc < 0 ? takt_err_set(err, rc, "look for what is left of attempt %s", id) : rc;
}
