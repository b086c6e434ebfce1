/* SPDX-License-Identifier: Apache-2.0 */
/* Making, limiting and sweeping the cgroups of jobs. */
#include "launch/job_cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/str.h"
#include "base/vec.h"
#include "launch/device_filter.h"
#include "launch/device_rules.h"

enum {
	CPU_PERIOD_US = 100000,
	CPU_LIST = 4096,
	ROOT_TRIES = 100,
	ROOT_AGAIN_MS = 50,
	PREPARE_TRIES = 10,
	/* Of a clean-up alone, by a runtime of containers. */
	CLEANUP_PROCESSES = 1024,
	CLEANUP_MIB = 2048,
	SHIM_MIB = 64,
};

/* Memory first: where it is on, no process can be put beside the cgroups of jobs. */
static const char *const controllers[] = {"memory", "cpu", "cpuset", "pids"};

/* Below `dir`; an overlong name is cut and does not exist. */
static const char *join(char ret[TAKT_CGROUP_PATH], const char *dir, const char *name)
{
	(void)takt_strcpy(ret, TAKT_CGROUP_PATH, dir);
	snprintf(ret + strlen(ret), TAKT_CGROUP_PATH - strlen(ret), "/%s", name);
	return ret;
}

static int prefix_of(const struct takt_job_cgroups *cgroups, char ret[40])
{
	return snprintf(ret, 40, "takt-%" PRIx64 "-", cgroups->mark);
}

static void base_of(const struct takt_job_cgroups *cgroups, uint64_t job_id, uint32_t attempt,
		    char ret[TAKT_CGROUP_PATH])
{
	char prefix[40], name[96];

	(void)prefix_of(cgroups, prefix);
	snprintf(name, sizeof(name), "%s%" PRIu64 ".%" PRIu32, prefix, job_id, attempt);
	join(ret, cgroups->root, name);
}

void takt_job_cgroup_leaf(const struct takt_job_cgroups *cgroups, uint64_t job_id, uint32_t attempt,
			  char ret[TAKT_CGROUP_PATH])
{
	char base[TAKT_CGROUP_PATH];

	ret[0] = '\0';
	if (!cgroups->root[0])
		return;
	base_of(cgroups, job_id, attempt, base);
	join(ret, base, "job");
}

/* Each by itself: a controller that is missing does not cost the others. */
static void switch_controllers(const char *path, char sign)
{
	for (size_t i = 0; i < TAKT_ARRAY_LEN(controllers); i++) {
		char text[16];

		snprintf(text, sizeof(text), "%c%s", sign, controllers[i]);
		(void)takt_cgroup_write(path, "cgroup.subtree_control", text);
	}
}

static int move_process(void *ctx, int32_t pid)
{
	(void)takt_cgroup_make(ctx, NULL);
	(void)takt_cgroup_enter(ctx, pid, NULL);
	return 0;
}

static int found_one(void *ctx, int32_t pid)
{
	(void)ctx;
	(void)pid;
	return -EBUSY;
}

/*
 * Memory can be limited only below a cgroup without processes of its own. Who makes the cgroup anew
 * may put one there while we switch controllers on. Without memory that succeeds, and makes it the
 * root of a threaded domain, below which no other cgroup takes any process, so that nothing can be
 * moved out either. No job runs below one that is so: it can be undone.
 */
static void prepare_root(const struct takt_job_cgroups *cgroups)
{
	char leaf[TAKT_CGROUP_PATH];

	join(leaf, cgroups->root, "own");
	for (int i = 0; i < PREPARE_TRIES; i++) {
		if (cgroups->named && takt_cgroup_each(cgroups->root, found_one, NULL) == -EBUSY) {
			switch_controllers(cgroups->root, '-');
			(void)takt_cgroup_each(cgroups->root, move_process, leaf);
		}
		switch_controllers(cgroups->root, '+');
		if (!cgroups->named || takt_cgroup_each(cgroups->root, found_one, NULL) == 0)
			return;
	}
}

/* Whether this kernel and this process can close devices at all. */
static int try_filter(struct takt_err *err)
{
	takt_device_rules none = TAKT_VEC_INIT(TAKT_DEVICE_RULES_MAX);
	int fd = takt_device_filter_load(&none, err);

	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

static int find_root(struct takt_job_cgroups *cgroups, const char *cgroup, struct takt_err *err)
{
	struct statfs fs;

	if (!cgroup)
		return takt_cgroup_root(cgroups->root, sizeof(cgroups->root), err);
	if (statfs(cgroup, &fs) < 0 || fs.f_type != CGROUP2_SUPER_MAGIC)
		return takt_err_set(err, -TAKT_E_UNSUPPORTED, "no cgroup v2 at '%s'", cgroup);
	if (!takt_strcpy(cgroups->root, sizeof(cgroups->root), cgroup))
		return takt_err_set(err, -ENAMETOOLONG, "cgroup '%.64s...'", cgroup);
	if (access(cgroup, W_OK) < 0)
		return takt_err_set(err, -errno, "cgroup '%s'", cgroup);
	cgroups->named = true;
	return 0;
}

void takt_job_cgroups_open(struct takt_job_cgroups *ret, const char *cgroup, int jobs_dirfd)
{
	struct takt_job_cgroups made = {0};
	struct takt_err err;
	struct stat st;
	int rc = find_root(&made, cgroup, &err);

	if (rc < 0)
		made.root[0] = '\0';
	else
		prepare_root(&made);
	if (rc == 0)
		rc = try_filter(&err);
	if (rc < 0)
		(void)takt_err_text(&err, made.why_no_devices, sizeof(made.why_no_devices));
	if (fstat(jobs_dirfd, &st) == 0)
		made.mark = (uint64_t)st.st_dev << 48 ^ (uint64_t)st.st_ino;
	*ret = made;
}

/* "0-3,8" */
static void cpu_list(const struct takt_job_limits *limits, struct takt_str *out)
{
	const uint32_t end = TAKT_LIMITS_CPU_WORDS * 64;

	for (uint32_t cpu = 0; cpu < end; cpu++) {
		uint32_t first = cpu;

		while (cpu < end && limits->cpus[cpu / 64] >> (cpu % 64) & 1)
			cpu++;
		if (cpu > first)
			takt_str_addf(out, "%s%u-%u", out->len ? "," : "", first, cpu - 1);
	}
}

static int limit_cpus(const char *base, const struct takt_job_limits *limits)
{
	struct takt_str list = TAKT_STR(CPU_LIST);
	int rc;

	if (limits->cpu_count == 0)
		return 0;
	cpu_list(limits, &list);
	rc = list.rc < 0 ? list.rc : takt_cgroup_write(base, "cpuset.cpus", takt_str_text(&list));
	takt_str_fini(&list);
	return rc;
}

static int limit_cpu_time(const char *base, const struct takt_job_limits *limits)
{
	char text[48];

	if (limits->cpu_milli == 0)
		return 0;
	snprintf(text, sizeof(text), "%" PRIu64 " %d",
		 (uint64_t)limits->cpu_milli * CPU_PERIOD_US / 1000, CPU_PERIOD_US);
	return takt_cgroup_write(base, "cpu.max", text);
}

static int put_memory(const char *path, uint64_t mib)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, mib << 20);
	return takt_cgroup_write(path, "memory.max", text);
}

static bool has_memory(const char *leaf)
{
	char control[TAKT_CGROUP_PATH];

	return access(join(control, leaf, "memory.max"), F_OK) == 0;
}

/*
 * Swap would only make a job that is over its memory slow. Kernels without swap have no such file.
 * The leaf of the job has the same limit, and the shim room beside it: files in memory stay when
 * all who wrote them were ended, and the shim still has to write down how that was.
 */
static int limit_memory(const char *base, const struct takt_job_limits *limits)
{
	char leaf[TAKT_CGROUP_PATH];
	uint64_t room;

	if (limits->mem_mib == 0)
		return 0;
	(void)takt_cgroup_write(base, "memory.swap.max", "0");
	if (has_memory(join(leaf, base, "job")))
		(void)put_memory(leaf, limits->mem_mib);
	room = has_memory(join(leaf, base, "shim")) ? SHIM_MIB : 0;
	return put_memory(base, limits->mem_mib + room);
}

static int limit_processes(const char *base, const struct takt_job_limits *limits)
{
	char text[16];

	if (limits->processes == 0)
		return 0;
	snprintf(text, sizeof(text), "%" PRIu32, limits->processes);
	return takt_cgroup_write(base, "pids.max", text);
}

static void note(struct takt_job_place *place, const char *what, int rc)
{
	if (rc < 0 && !place->why[0])
		snprintf(place->why, sizeof(place->why), "%s: %s", what,
			 rc == -ENOENT ? "that controller is not delegated to takt"
				       : takt_err_sentence(rc));
}

static void limit(const char *base, const struct takt_job_limits *limits,
		  struct takt_job_place *place)
{
	note(place, "its memory is not limited", limit_memory(base, limits));
	note(place, "its processes are not limited", limit_processes(base, limits));
	note(place, "its CPU time is not limited", limit_cpu_time(base, limits));
	note(place, "its CPUs are not limited", limit_cpus(base, limits));
}

static int close_devices(const char *base, const struct takt_job_limits *limits,
			 struct takt_err *err)
{
	takt_device_rules rules = TAKT_VEC_INIT(TAKT_DEVICE_RULES_MAX);
	int dev = open("/dev", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int cgroup = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int filter = -1, rc = 0;

	if (dev < 0 || cgroup < 0)
		rc = takt_err_set(err, -errno, "open '%s'", dev < 0 ? "/dev" : base);
	if (rc == 0)
		rc = takt_device_rules_add(dev, limits, &rules, err);
	if (rc == 0)
		rc = filter = takt_device_filter_load(&rules, err);
	if (rc >= 0)
		rc = takt_device_filter_attach(filter, cgroup, err);
	if (filter >= 0)
		close(filter);
	if (cgroup >= 0)
		close(cgroup);
	if (dev >= 0)
		close(dev);
	takt_vec_fini(&rules);
	return rc;
}

/* While one launcher takes over from another there are two: what one makes, the other does not
 * sweep. -1 where there is no such lock. */
static int lock_root(const struct takt_job_cgroups *cgroups, int how)
{
	int root = open(cgroups->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (root >= 0 && flock(root, how) < 0) {
		close(root);
		root = -1;
	}
	return root;
}

static int enter_shim(const char *base, struct takt_err *err)
{
	char shim[TAKT_CGROUP_PATH];
	int rc = takt_cgroup_make(base, err);

	if (rc == 0)
		rc = takt_cgroup_make(join(shim, base, "shim"), err);
	return rc == 0 ? takt_cgroup_enter(shim, 0, err) : rc;
}

/* The leaf is not made earlier: while it is empty, systemd removes it when it stops the unit above.
 */
static int admit(const char *base, const struct takt_job_limits *limits, bool closes,
		 struct takt_err *err)
{
	char job[TAKT_CGROUP_PATH];
	int rc = closes ? close_devices(base, limits, err) : 0;

	if (rc == 0)
		rc = takt_cgroup_make(join(job, base, "job"), err);
	if (rc < 0)
		return rc;
	(void)takt_cgroup_write(job, "memory.oom.group", "1");
	return 0;
}

/* What runs before a staged job's turn, in the leaf of the shim, opens no GPU. */
static int close_all(const char *base, struct takt_err *err)
{
	static const struct takt_job_limits none;
	char shim[TAKT_CGROUP_PATH];

	return close_devices(join(shim, base, "shim"), &none, err);
}

static bool closes(const struct takt_job_cgroups *cgroups, const struct takt_job_limits *limits)
{
	return !cgroups->why_no_devices[0] && !limits->any_device;
}

static int try_to_enter(const struct takt_job_cgroups *cgroups, const char *base,
			struct takt_err *err)
{
	int lock = lock_root(cgroups, LOCK_SH);
	int rc;

	prepare_root(cgroups);
	rc = enter_shim(base, err);
	if (rc == 0) {
		prepare_root(cgroups); /* it may have been made anew; from now on it is not */
		(void)takt_cgroup_write(base, "cgroup.subtree_control", "+memory");
	}
	if (lock >= 0)
		close(lock);
	return rc;
}

/* systemd makes the cgroup of a unit anew when nothing is left in it and the unit starts again, and
 * puts the unit's process there. */
static bool is_made_anew(int rc)
{
	return rc == -ENOENT || rc == -ENODEV || rc == -EBUSY || rc == -EOPNOTSUPP;
}

static int enter(const struct takt_job_cgroups *cgroups, const char *base, struct takt_err *err)
{
	const struct timespec pause = {.tv_nsec = ROOT_AGAIN_MS * 1000000L};
	int rc = try_to_enter(cgroups, base, err);

	for (int i = 1; is_made_anew(rc) && i < ROOT_TRIES; i++) {
		(void)nanosleep(&pause, NULL);
		rc = try_to_enter(cgroups, base, err);
	}
	return rc;
}

static int make(const struct takt_job_cgroups *cgroups, const char *base,
		const struct takt_job_limits *limits, struct takt_err *err)
{
	int rc = enter(cgroups, base, err);

	if (rc < 0)
		return rc;
	if (!limits->staged)
		return admit(base, limits, closes(cgroups, limits), err);
	return closes(cgroups, limits) ? close_all(base, err) : 0;
}

int takt_job_cgroup_make(const struct takt_job_cgroups *cgroups, uint64_t job_id, uint32_t attempt,
			 const struct takt_job_limits *limits, struct takt_job_place *ret,
			 struct takt_err *err)
{
	char base[TAKT_CGROUP_PATH];
	struct takt_err failed;
	int rc;

	*ret = (struct takt_job_place){0};
	takt_strcpy(ret->why, sizeof(ret->why),
		    limits->any_device ? "the driver does not say which nodes its GPUs have"
				       : cgroups->why_no_devices);
	if (!cgroups->root[0])
		return 0;
	base_of(cgroups, job_id, attempt, base);
	rc = make(cgroups, base, limits, &failed);
	if (rc < 0)
		return closes(cgroups, limits) ? takt_err_set(err, rc, "%s", failed.msg) : 0;
	limit(base, limits, ret);
	takt_job_cgroup_leaf(cgroups, job_id, attempt, ret->job);
	return 0;
}

int takt_job_cgroup_admit(const struct takt_job_cgroups *cgroups, uint64_t job_id, uint32_t attempt,
			  const struct takt_job_limits *limits, struct takt_err *err)
{
	struct takt_job_place place = {0};
	char base[TAKT_CGROUP_PATH];
	int rc;

	if (!cgroups->root[0])
		return 0;
	base_of(cgroups, job_id, attempt, base);
	if (access(base, F_OK) < 0) /* it runs without, or was begun by an older takt */
		return closes(cgroups, limits) ? takt_err_set(err, -errno, "cgroup '%s'", base) : 0;
	rc = admit(base, limits, closes(cgroups, limits), err);
	if (rc == 0)
		limit(base, limits, &place);
	return rc;
}

int takt_job_cgroup_reenter(const struct takt_job_cgroups *cgroups, uint64_t job_id,
			    uint32_t attempt, struct takt_job_place *ret, struct takt_err *err)
{
	static const struct takt_job_limits few = {.processes = CLEANUP_PROCESSES,
						   .mem_mib = CLEANUP_MIB};
	char base[TAKT_CGROUP_PATH];
	bool anew;
	int rc;

	*ret = (struct takt_job_place){0};
	if (!cgroups->root[0])
		return 0;
	base_of(cgroups, job_id, attempt, base);
	anew = access(base, F_OK) < 0;
	rc = enter(cgroups, base, err);
	if (rc == 0)
		rc = admit(base, &few, anew && closes(cgroups, &few), err);
	if (rc < 0) /* where devices are open jobs, too, run without */
		return closes(cgroups, &few) ? rc : 0;
	(void)limit_processes(base, &few);
	if (anew)
		(void)limit_memory(base, &few);
	takt_job_cgroup_leaf(cgroups, job_id, attempt, ret->job);
	return 0;
}

void takt_job_cgroup_stop_forks(const char *leaf, struct takt_job_forks *ret_was)
{
	char base[TAKT_CGROUP_PATH];
	int rc;

	*ret_was = (struct takt_job_forks){.most = UINT64_MAX};
	if (!leaf[0])
		return;
	join(base, leaf, "..");
	rc = takt_cgroup_number(base, "pids.max", "", &ret_was->most);
	if (rc < 0 && rc != -ERANGE)
		return;
	ret_was->stopped = takt_cgroup_write(base, "pids.max", "0") == 0;
}

void takt_job_cgroup_let_fork(const char *leaf, struct takt_job_forks *was)
{
	char base[TAKT_CGROUP_PATH], text[24] = "max";

	if (!was->stopped)
		return;
	if (was->most != UINT64_MAX)
		snprintf(text, sizeof(text), "%" PRIu64, was->most);
	was->stopped = takt_cgroup_write(join(base, leaf, ".."), "pids.max", text) < 0;
}

/* The leaf of a job that has yet to begin is empty, too: as long as a shim lives it is needed. */
static void remove_one(const char *root, const char *name)
{
	char base[TAKT_CGROUP_PATH], leaf[TAKT_CGROUP_PATH];

	join(base, root, name);
	if (takt_cgroup_remove(join(leaf, base, "shim")) < 0 ||
	    takt_cgroup_remove(join(leaf, base, "job")) < 0)
		return;
	(void)takt_cgroup_remove(base);
}

void takt_job_cgroups_sweep(const struct takt_job_cgroups *cgroups)
{
	int root = cgroups->root[0] ? lock_root(cgroups, LOCK_EX | LOCK_NB) : -1;
	DIR *dir = root >= 0 ? fdopendir(root) : NULL;
	struct dirent *entry;
	char prefix[40];
	size_t len = (size_t)prefix_of(cgroups, prefix);

	while (dir && (entry = readdir(dir)))
		if (strncmp(entry->d_name, prefix, len) == 0)
			remove_one(cgroups->root, entry->d_name);
	if (dir)
		closedir(dir);
	else if (root >= 0)
		close(root);
}

void takt_job_cgroup_free_shim(const char *leaf)
{
	char base[TAKT_CGROUP_PATH];

	if (leaf[0] && has_memory(leaf))
		(void)takt_cgroup_write(join(base, leaf, ".."), "memory.max", "max");
}

bool takt_job_cgroup_ran_out(const char *leaf, char *buf, size_t size)
{
	char base[TAKT_CGROUP_PATH];
	uint64_t kills, bytes, mib;
	int rc;

	if (takt_cgroup_number(leaf, "memory.events", "oom_kill", &kills) < 0 || kills == 0)
		return false;
	rc = takt_cgroup_number(leaf, "memory.max", "", &bytes);
	if (rc < 0)
		rc = takt_cgroup_number(join(base, leaf, ".."), "memory.max", "", &bytes);
	mib = rc == 0 ? bytes >> 20 : 0;
	if (rc < 0)
		snprintf(buf, size, "ended by the kernel: the machine was out of memory");
	else if (mib % 1024 == 0)
		snprintf(buf, size, "ended by the kernel: over its %" PRIu64 " GiB of memory",
			 mib / 1024);
	else
		snprintf(buf, size, "ended by the kernel: over its %" PRIu64 " MiB of memory", mib);
	return true;
}
