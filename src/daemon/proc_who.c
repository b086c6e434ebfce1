/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose process is it? A process belongs to the job whose shim is among its ancestors: shims are
 * child subreapers, so whatever a job leaves behind stays below its shim for as long as that lives.
 * Shims are known by their command line "takt-shim <job>.<attempt> <jobs dir>", which every user
 * may read, and which anybody may give to a program of his: so one is believed only when it is the
 * process that the attempt has on record as its shim, and runs as who the directory belongs to:
 * root where jobs run as other users.
 *
 * Answers are kept for a second, so that a sample costs no system call for processes already known.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/proc_stat.h"
#include "base/str.h"
#include "daemon/daemon.h"
#include "launch/proc_tree.h"

enum {
	MAX_ANCESTORS = 64,
	MAX_KNOWN = 8192,
};

static const uint64_t fresh_ns = TAKT_NS_PER_S;

struct takt_proc_cache {
	const struct takt_attempts *attempts; /* borrowed; NULL = no containers are known */
	char jobs_dir[PATH_MAX];
	int jobs_dirfd;	       /* borrowed */
	struct takt_map known; /* pid -> struct takt_proc_who *, owned */
	void (*ask)(void *ctx, const struct takt_proc_id *process, uid_t uid); /* NULL = nobody */
	void *ask_ctx;
};

int takt_proc_cache_new(const char *jobs_dir, int jobs_dirfd, const struct takt_attempts *attempts,
			struct takt_proc_cache **ret)
{
	struct takt_proc_cache *cache = takt_zalloc(sizeof(*cache));

	if (!cache)
		return -ENOMEM;
	cache->attempts = attempts;
	cache->jobs_dirfd = jobs_dirfd;
	takt_strcpy(cache->jobs_dir, sizeof(cache->jobs_dir), jobs_dir);
	cache->known = TAKT_MAP_U64(MAX_KNOWN);
	*ret = cache;
	return 0;
}

static void forget_all(struct takt_proc_cache *cache)
{
	TAKT_MAP_EACH(entry, &cache->known)
	takt_free(entry->value.ptr);
	takt_map_clear(&cache->known);
}

void takt_proc_cache_free(struct takt_proc_cache *cache)
{
	if (!cache)
		return;
	forget_all(cache);
	takt_map_fini(&cache->known);
	takt_free(cache);
}

/* Text of /proc/PID/<name>, terminated; length or negative. */
static ssize_t read_proc(int32_t pid, const char *name, char *buf, size_t size)
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, buf, size - 1);
	if (n < 0)
		n = -errno;
	close(fd);
	if (n < 0)
		return n;
	buf[n] = '\0';
	return n;
}

static int read_stat(int32_t pid, struct takt_proc_stat *ret)
{
	char text[1024];
	ssize_t n = read_proc(pid, "stat", text, sizeof(text));

	return n < 0 ? (int)n : takt_proc_stat_parse(text, ret);
}

static uint32_t owner_of(int32_t pid)
{
	struct stat st;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d", pid);
	return stat(path, &st) == 0 ? st.st_uid : UINT32_MAX;
}

/* Whether it is that attempt's shim: 1, 0, or negative when that cannot be looked at now. */
static int is_shim_of(const struct takt_proc_cache *cache, int32_t pid,
		      const struct takt_proc_stat *stat, uint64_t job, uint32_t attempt)
{
	struct takt_proc_id shim;
	uid_t uid;
	int rc = takt_attempt_shim(takt_sys_real(), cache->jobs_dirfd, job, attempt, &shim, &uid);

	if (rc == -EMFILE || rc == -ENFILE || rc == -ENOMEM)
		return rc;
	return rc == 0 && shim.pid == pid && shim.start_ticks == stat->start_ticks &&
	       owner_of(pid) == uid;
}

/* *ret_job 0: nobody's. Negative when that cannot be looked at now. */
static int find_job(const struct takt_proc_cache *cache, int32_t pid, uint64_t *ret_job,
		    uint32_t *ret_attempt)
{
	*ret_job = 0;
	for (int depth = 0; depth < MAX_ANCESTORS && pid > 1; depth++) {
		struct takt_proc_stat stat;
		uint32_t attempt = 0;
		uint64_t job = 0;
		int its = 0;

		if (read_stat(pid, &stat) < 0)
			return 0;
		if (takt_shim_words(pid, cache->jobs_dir, &job, &attempt) == 0)
			its = is_shim_of(cache, pid, &stat, job, attempt);
		if (its < 0)
			return its;
		if (its) {
			*ret_job = job;
			*ret_attempt = attempt;
			return 0;
		}
		pid = stat.ppid;
	}
	return 0;
}

/* 0: of none. Nobody else knows an attempt's id; a process of another user is not believed. */
static uint64_t job_named(const struct takt_proc_cache *cache, const char *id, uid_t uid,
			  uint32_t *ret_attempt)
{
	unsigned long long job = 0;
	unsigned int attempt = 0;

	if (sscanf(id, "%llu.%u", &job, &attempt) != 2 ||
	    !takt_attempts_is(cache->attempts, job, id, uid))
		return 0;
	*ret_attempt = attempt;
	return job;
}

/*
 * A container's processes are children of its runtime's daemon, and known by the attempt's id that
 * they were started with. True where root has to be asked for it.
 */
static bool find_contained(const struct takt_proc_cache *cache, int32_t pid,
			   struct takt_proc_who *who)
{
	char id[TAKT_ATTEMPT_ID_MAX];
	int rc = cache->attempts ? takt_process_attempt(pid, id) : -ENOENT;

	if (rc == 0)
		who->job_id = job_named(cache, id, who->uid, &who->attempt);
	return rc == -EACCES && cache->ask && takt_stray_in_container(pid);
}

static void ask_root(const struct takt_proc_cache *cache, int32_t pid,
		     const struct takt_proc_who *who)
{
	struct takt_proc_id process;

	if (takt_proc_identify(pid, &process, NULL) == 0 && process.start_ticks == who->start_ticks)
		cache->ask(cache->ask_ctx, &process, who->uid);
}

static void first_word(int32_t pid, char ret[65])
{
	char text[256];
	const char *base;

	ret[0] = '\0';
	if (read_proc(pid, "cmdline", text, sizeof(text)) <= 0)
		return;
	base = strrchr(text, '/');
	takt_strcpy(ret, 65, base ? base + 1 : text);
}

static void look(const struct takt_proc_cache *cache, int32_t pid, struct takt_proc_who *who,
		 struct takt_mono now)
{
	struct takt_proc_stat stat;
	uint64_t job_id = 0;
	int rc = read_stat(pid, &stat);

	if (rc < 0 && rc != -ENOENT && rc != -ESRCH)
		return; /* no descriptor to look with: what was known stands, and a new one is
			   nobody's */
	who->checked_ns = now.ns;
	if (rc == 0 && stat.start_ticks == who->start_ticks && who->asked) {
		ask_root(cache, pid, who); /* again: who was asked may have died */
		return;
	}
	who->gone = rc < 0;
	if (who->gone || stat.start_ticks == who->start_ticks)
		return; /* a job's process that is gone stays known as the job's */
	if (find_job(cache, pid, &job_id, &who->attempt) < 0)
		return;
	who->start_ticks = stat.start_ticks;
	who->uid = owner_of(pid);
	who->job_id = job_id;
	who->asked = !job_id && find_contained(cache, pid, who);
	who->gone = who->asked;
	first_word(pid, who->command);
	if (who->asked)
		ask_root(cache, pid, who);
}

void takt_proc_cache_asks(struct takt_proc_cache *cache,
			  void (*ask)(void *ctx, const struct takt_proc_id *process, uid_t uid),
			  void *ctx)
{
	cache->ask = ask;
	cache->ask_ctx = ctx;
}

void takt_proc_cache_told(struct takt_proc_cache *cache, const struct takt_proc_id *process,
			  const char *attempt_id)
{
	struct takt_proc_who *who = takt_map_u64_ptr(&cache->known, (uint64_t)process->pid);

	if (!who || !who->asked || who->start_ticks != process->start_ticks)
		return;
	who->asked = who->gone = false;
	who->job_id = job_named(cache, attempt_id, who->uid, &who->attempt);
}

const struct takt_proc_who *takt_proc_who(struct takt_proc_cache *cache, int32_t pid,
					  struct takt_mono now)
{
	static const struct takt_proc_who nobody = {.uid = UINT32_MAX, .gone = true};
	struct takt_proc_who *who = takt_map_u64_ptr(&cache->known, (uint64_t)pid);

	if (!who) {
		if (cache->known.len == MAX_KNOWN)
			forget_all(cache);
		who = takt_zalloc(sizeof(*who));
		if (!who || takt_map_u64_put_ptr(&cache->known, (uint64_t)pid, who) < 0) {
			takt_free(who);
			return &nobody;
		}
		who->uid = UINT32_MAX;
		look(cache, pid, who, now);
	} else if (now.ns - who->checked_ns > fresh_ns) {
		look(cache, pid, who, now);
	}
	return who;
}
