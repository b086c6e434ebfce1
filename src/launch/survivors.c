/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is left of an attempt whose shim is gone. The kernel has given its processes another parent,
 * so they are known by what they inherited: the cgroup and the environment.
 */
#include <errno.h>
#include <fcntl.h>
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
	EXEC_LOOKS = 100 /* a millisecond apart: only what hangs takes longer, and is asked again */
};

struct search {
	const char *id;
	uid_t uid;
	struct takt_proc_tree *tree; /* borrowed */
	struct takt_proc_id *ret;    /* borrowed */
	size_t max;
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

/* Gone, not ours to read, or with more words than a process can have been given. */
static bool is_out(int rc)
{
	return rc == -ESRCH || rc == -ENOENT || rc == -EACCES || rc == -EPERM ||
	       rc == -TAKT_E_LIMIT;
}

static int read_proc(int32_t pid, const char *name, char **ret, size_t *ret_len)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	return takt_file_read(takt_sys_real(), AT_FDCWD, path, ENVIRON_MAX, ret, ret_len, NULL);
}

/* Whether `len` bytes are all of its environment. In the middle of an execve a process shows none
 * or the first part of it: its old memory is gone, and the new one not filled until the kernel
 * says where its code begins (Linux, load_elf_binary). */
static int was_all(int32_t pid, size_t len)
{
	TAKT_CLEANUP(freep) char *text = NULL;
	struct takt_proc_stat stat;
	size_t text_len;
	int rc = read_proc(pid, "stat", &text, &text_len);

	if (rc == 0)
		rc = takt_proc_stat_parse(text, &stat);
	if (rc < 0)
		return rc;
	return (stat.flags & (TAKT_PROC_ENDING | TAKT_PROC_KERNEL)) != 0 ||
	       (stat.code_start != 0 && stat.env_end - stat.env_start == len);
}

/* 1 its environment holds the id, 0 it does not. -EAGAIN: no whole one was seen. */
static int look_at_words(const struct search *search, int32_t pid)
{
	static const struct timespec pause = {.tv_nsec = 1000000};
	int rc;

	for (int i = 0; i < EXEC_LOOKS; i++) {
		TAKT_CLEANUP(freep) char *env = NULL;
		size_t len;

		rc = read_proc(pid, "environ", &env, &len);
		if (rc < 0)
			return rc;
		if (holds_id(env, len, search->id))
			return 1;
		rc = was_all(pid, len);
		if (rc != 0)
			return rc < 0 ? rc : 0;
		(void)nanosleep(&pause, NULL);
	}
	return -EAGAIN;
}

/* 1 yes; 0 no, out, or another user's (who can write there what he likes). Where the kernel does
 * not say, nobody may conclude that it is not one. */
static int belongs(const struct search *search, int32_t pid)
{
	uid_t uid;
	int rc = takt_process_uid(pid, &uid);

	if (rc == 0 && uid != search->uid)
		return 0;
	if (rc == 0)
		rc = look_at_words(search, pid);
	return is_out(rc) ? 0 : rc;
}

static bool dead(struct takt_proc_tree *tree, int32_t pid)
{
	TAKT_VEC_EACH (entry, &tree->procs)
		if (entry->pid == pid)
			return entry->stat.state == 'Z' || entry->stat.state == 'X';
	return false;
}

static int note(void *ctx, int32_t pid)
{
	struct search *search = ctx;
	struct takt_proc_id proc;
	int rc;

	TAKT_VEC_EACH (seen, &search->found)
		if (*seen == pid)
			return 0;
	if (dead(search->tree, pid))
		return 0;
	rc = takt_proc_identify(pid, &proc, NULL);
	if (rc < 0)
		return rc == -ESRCH ? 0 : rc;
	if (search->found.len < search->max)
		search->ret[search->found.len] = proc;
	return takt_vec_push(&search->found, pid);
}

static int look(struct search *search, const char *cgroup)
{
	int rc = 0;

	TAKT_VEC_EACH (entry, &search->tree->procs) {
		rc = belongs(search, entry->pid);
		if (rc > 0)
			rc = note(search, entry->pid);
		if (rc < 0)
			return rc;
	}
	return cgroup[0] ? takt_cgroup_each(cgroup, note, search) : 0;
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
