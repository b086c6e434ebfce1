/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the threads of a job do, by looking at their states: running, or waiting for a disk.
 * Everybody may look, and a thread that wants a CPU counts whether it gets one or not: a job that
 * has too few of them is seen, too.
 */
#include "health/slow_gather.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/proc_stat.h"
#include "base/sort.h"
#include "base/str.h"
#include "health/rooted.h"

enum {
	STAT_MAX = 1024
};

/* Calls each for every number in a folder of /proc. */
static int each_number(const char *path, int (*each)(void *ctx, int32_t number), void *ctx)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	unsigned long long number;
	int rc = 0;

	while (rc == 0 && dir && (entry = readdir(dir)))
		if (takt_parse_u64(entry->d_name, 1, INT32_MAX, &number) == 0)
			rc = each(ctx, (int32_t)number);
	if (dir)
		closedir(dir);
	return rc;
}

static bool stat_of(const char *path, struct takt_proc_stat *ret)
{
	char text[STAT_MAX];

	return takt_rooted_text("", path, text, sizeof(text)) &&
	       takt_proc_stat_parse(text, ret) == 0;
}

struct parent {
	int32_t pid, ppid;
};
struct tree {
	TAKT_VEC(struct parent) procs;
};

static int add_process(void *ctx, int32_t pid)
{
	struct tree *tree = ctx;
	struct takt_proc_stat stat;
	char path[40];

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (!stat_of(path, &stat))
		return 0;
	return takt_vec_push(&tree->procs, ((struct parent){pid, stat.ppid}));
}

static bool holds(const struct takt_slow_threads *threads, int32_t pid)
{
	TAKT_VEC_EACH (p, &threads->pids)
		if (*p == pid)
			return true;
	return false;
}

/* What is behind `from` in the list has children that are not in it yet. */
static int add_children(struct takt_slow_threads *threads, const struct tree *tree)
{
	for (size_t from = 0; from < threads->pids.len; from++) {
		int32_t pid = threads->pids.at[from];

		TAKT_VEC_EACH (proc, &tree->procs) {
			int rc = proc->ppid == pid && !holds(threads, proc->pid)
					 ? takt_vec_push(&threads->pids, proc->pid)
					 : 0;

			if (rc < 0)
				return rc;
		}
	}
	return 0;
}

int takt_slow_threads_find(struct takt_slow_threads *threads, const int32_t *roots,
			   uint32_t root_count)
{
	struct tree tree = {.procs = TAKT_VEC_INIT(TAKT_SLOW_MAX_THREADS)};
	int rc = each_number("/proc", add_process, &tree);

	threads->pids.max = threads->at.max = TAKT_SLOW_MAX_THREADS;
	threads->pids.len = 0;
	for (uint32_t i = 0; rc == 0 && i < root_count; i++)
		if (!holds(threads, roots[i]))
			rc = takt_vec_push(&threads->pids, roots[i]);
	if (rc == 0)
		rc = add_children(threads, &tree);
	takt_vec_fini(&tree.procs);
	return rc == -TAKT_E_LIMIT ? 0 : rc;
}

struct look {
	struct takt_slow_threads *threads;
	int32_t pid;
	uint32_t seen;
	size_t hint; /* threads are met in the same order again */
};

static struct takt_slow_thread *find(struct look *look, int32_t tid)
{
	struct takt_slow_threads *threads = look->threads;

	for (size_t i = 0; i < threads->at.len; i++) {
		size_t k = (look->hint + i) % threads->at.len;

		if (threads->at.at[k].tid != tid)
			continue;
		look->hint = k + 1;
		return &threads->at.at[k];
	}
	return NULL;
}

static int count_running(struct look *look, int32_t tid)
{
	struct takt_slow_thread *thread = find(look, tid);

	if (!thread)
		return takt_vec_push(&look->threads->at,
				     ((struct takt_slow_thread){look->pid, tid, 1}));
	thread->ran++;
	return 0;
}

static int look_at(void *ctx, int32_t tid)
{
	struct look *look = ctx;
	struct takt_proc_stat stat;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", look->pid, tid);
	if (!stat_of(path, &stat))
		return 0;
	look->seen++;
	look->threads->ran += stat.state == 'R';
	look->threads->waited += stat.state == 'D';
	return stat.state == 'R' ? count_running(look, tid) : 0;
}

int takt_slow_threads_look(struct takt_slow_threads *threads)
{
	struct look look = {.threads = threads};
	uint32_t processes = 0;
	int rc = 0;

	TAKT_VEC_EACH (pid, &threads->pids) {
		uint32_t before = look.seen;
		char path[40];

		look.pid = *pid;
		snprintf(path, sizeof(path), "/proc/%d/task", *pid);
		if (rc == 0)
			rc = each_number(path, look_at, &look);
		processes += look.seen > before;
	}
	threads->looks += look.seen > 0;
	threads->processes = processes > threads->processes ? processes : threads->processes;
	threads->threads = look.seen > threads->threads ? look.seen : threads->threads;
	return rc == -TAKT_E_LIMIT ? 0 : rc;
}

static int busier_first(const void *a, const void *b, void *ctx)
{
	uint32_t x = ((const struct takt_slow_thread *)a)->ran;
	uint32_t y = ((const struct takt_slow_thread *)b)->ran;

	(void)ctx;
	return x == y ? 0 : x > y ? -1 : 1;
}

/* Whether one of the first `leads` is of this process. */
static bool drives(const struct takt_slow_threads *threads, size_t leads, int32_t pid)
{
	for (size_t i = 0; i < leads; i++)
		if (threads->at.at[i].pid == pid)
			return true;
	return false;
}

int takt_slow_threads_sum_up(struct takt_slow_threads *threads, struct takt_slow_facts *ret)
{
	size_t leads = threads->at.len < ret->gpu_count ? threads->at.len : ret->gpu_count;
	uint64_t lead = 0, within = 0;
	int rc;

	ret->host_known = threads->looks > 0;
	if (!ret->host_known)
		return 0;
	rc = takt_sort(threads->at.at, threads->at.len, sizeof(*threads->at.at), busier_first,
		       NULL);
	for (size_t i = 0; i < threads->at.len; i++)
		if (i < leads)
			lead += threads->at.at[i].ran;
		else if (drives(threads, leads, threads->at.at[i].pid))
			within += threads->at.at[i].ran;
	ret->processes = threads->processes;
	ret->threads = threads->threads;
	ret->cpu_milli = (uint32_t)(threads->ran * 1000 / threads->looks);
	ret->lead_milli = (uint32_t)(lead * 1000 / threads->looks);
	ret->within_milli = (uint32_t)(within * 1000 / threads->looks);
	ret->io_milli = (uint32_t)(threads->waited * 1000 / threads->looks);
	return rc;
}

void takt_slow_threads_fini(struct takt_slow_threads *threads)
{
	takt_vec_fini(&threads->pids);
	takt_vec_fini(&threads->at);
}
