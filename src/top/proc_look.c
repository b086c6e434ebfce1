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

#include "base/proc_stat.h"
#include "base/str.h"
#include "base/sys.h"
#include "base/user_name.h"
#include "top/top_source.h"

/* Processor time is counted in hundredths of a second: over less it says nothing. */
static const uint64_t least_ns = 400 * TAKT_NS_PER_MS;

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

static uint64_t ticks_to_ns(uint64_t ticks)
{
	return ticks * (TAKT_NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK));
}

/* For how long it runs, and what it took of processors since the last look. */
static void tell_times(struct takt_top_proc *proc, const struct takt_proc_stat *stat,
		       const struct takt_top_proc *before)
{
	struct takt_boot now = takt_boot_now(takt_sys_real());
	struct takt_boot start = {ticks_to_ns(stat->start_ticks)};
	uint64_t since_ns;

	proc->run_ms = takt_boot_elapsed_ns(now, start) / TAKT_NS_PER_MS;
	proc->cpu_ticks = stat->cpu_ticks;
	proc->cpu_at = takt_mono_now(takt_sys_real());
	if (!before || before->cpu_at.ns == 0 || before->cpu_ticks > stat->cpu_ticks)
		return;
	since_ns = takt_mono_elapsed_ns(proc->cpu_at, before->cpu_at);
	if (since_ns < least_ns) {
		proc->cpu_known = before->cpu_known;
		proc->cpu_permille = before->cpu_permille;
		proc->cpu_ticks = before->cpu_ticks;
		proc->cpu_at = before->cpu_at;
		return;
	}
	proc->cpu_known = true;
	proc->cpu_permille =
		(uint32_t)(ticks_to_ns(stat->cpu_ticks - before->cpu_ticks) * 1000 / since_ns);
}

static void identify(struct takt_top_proc *proc, const struct takt_top_proc *before)
{
	char command[TAKT_TOP_COMMAND];
	struct takt_proc_stat stat;
	struct takt_proc_id id;
	uint32_t uid;

	if (takt_proc_stat_read(proc->id.pid, &stat, NULL) < 0)
		return;
	if (before && before->id.start_ticks == stat.start_ticks) {
		proc->id = before->id;
		proc->uid = before->uid;
		takt_strcpy(proc->user, sizeof(proc->user), before->user);
		takt_strcpy(proc->command, sizeof(proc->command), before->command);
		tell_times(proc, &stat, before);
		return;
	}
	id = (struct takt_proc_id){.pid = proc->id.pid, .start_ticks = stat.start_ticks};
	takt_boot_id(id.boot_id);
	uid = owner_of(id.pid);
	read_command(id.pid, command);
	if (uid == UINT32_MAX || !is_same(proc, uid, command))
		return;
	proc->id = id;
	proc->uid = uid;
	tell_times(proc, &stat, NULL);
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
