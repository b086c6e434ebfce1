/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who a process is: its identity, which signals need, its user, and its whole command where it is
 * one's own.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "base/user_name.h"
#include "top/top_source.h"

static uint32_t owner_of(int32_t pid)
{
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d", pid);
	return stat(path, &st) == 0 ? st.st_uid : UINT32_MAX;
}

/* Its arguments with blanks between them. */
static void read_command(int32_t pid, char ret[TAKT_TOP_COMMAND])
{
	char path[32];
	ssize_t n;
	int fd;

	ret[0] = '\0';
	snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	n = read(fd, ret, TAKT_TOP_COMMAND - 1);
	close(fd);
	while (n > 0 && ret[n - 1] == '\0')
		n--;
	ret[n > 0 ? n : 0] = '\0';
	for (ssize_t i = 0; i < n; i++)
		if (ret[i] == '\0')
			ret[i] = ' ';
}

/* The file name of the first word. */
static void first_word(const char *command, char ret[65])
{
	const char *end = command + strcspn(command, " "), *start = end;

	while (start > command && start[-1] != '/')
		start--;
	snprintf(ret, 65, "%.*s", (int)(end - start), start);
}

/* Whether the daemon's word on it is of the process that has this number here: it may speak of
 * another container's. */
static bool is_same(const struct takt_top_proc *proc, uint32_t uid, const char *command)
{
	char word[65];

	if (proc->uid != UINT32_MAX && proc->uid != uid)
		return false;
	first_word(command, word);
	return !proc->command[0] || !command[0] || strcmp(word, proc->command) == 0;
}

static const struct takt_top_proc *find(const struct takt_top_proc *procs, size_t count,
					int32_t pid)
{
	for (size_t i = 0; i < count && procs[i].id.pid <= pid; i++)
		if (procs[i].id.pid == pid)
			return &procs[i];
	return NULL;
}

static void identify(struct takt_top_proc *proc, const struct takt_top_proc *before)
{
	char command[TAKT_TOP_COMMAND];
	struct takt_proc_id id;
	uint32_t uid;

	if (before && takt_proc_lives(&before->id)) {
		proc->id = before->id;
		proc->uid = before->uid;
		takt_strcpy(proc->user, sizeof(proc->user), before->user);
		takt_strcpy(proc->command, sizeof(proc->command), before->command);
		return;
	}
	if (takt_proc_identify(proc->id.pid, &id, NULL) < 0)
		return;
	uid = owner_of(id.pid);
	read_command(id.pid, command);
	if (uid == UINT32_MAX || !is_same(proc, uid, command))
		return;
	proc->id = id;
	proc->uid = uid;
	if (!proc->user[0])
		takt_user_text(uid, proc->user, sizeof(proc->user));
	if (uid == geteuid() || geteuid() == 0)
		takt_strcpy(proc->command, sizeof(proc->command), command);
}

void takt_top_identify(struct takt_top_snapshot *snapshot, const struct takt_top_proc *before,
		       size_t before_count)
{
	TAKT_VEC_EACH (proc, &snapshot->procs)
		identify(proc, find(before, before_count, proc->id.pid));
}
