/* SPDX-License-Identifier: Apache-2.0 */
/* A limit is a file with a number of kHz. */
#include "actuate/cpufreq.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

enum {
	TEXT = 64,
	MAX_POLICY = 4095,
};

struct cpus {
	const struct takt_sys *sys;
	const char *root;
	uint32_t last; /* highest number that a policy can have */
};

static int path_of(const struct cpus *cpus, uint32_t policy, const char *name, char ret[PATH_MAX])
{
	int n = snprintf(ret, PATH_MAX, "%s/devices/system/cpu/cpufreq/policy%u/%s", cpus->root,
			 policy, name);

	return n < PATH_MAX ? 0 : -ENAMETOOLONG;
}

/* The first line of a file. */
static int read_line(const struct takt_sys *sys, const char *path, char ret[TEXT])
{
	int fd = sys->openat(sys, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	ssize_t got;

	if (fd < 0)
		return fd;
	got = sys->pread(sys, fd, ret, TEXT - 1, 0);
	(void)sys->close(sys, fd);
	if (got < 0)
		return (int)got;
	ret[got] = '\0';
	ret[strcspn(ret, "\n")] = '\0';
	return 0;
}

static int read_khz(const struct cpus *cpus, uint32_t policy, const char *name, uint32_t *ret)
{
	char path[PATH_MAX], text[TEXT];
	unsigned long long khz;
	int rc = path_of(cpus, policy, name, path);

	if (rc == 0)
		rc = read_line(cpus->sys, path, text);
	if (rc < 0)
		return rc;
	if (takt_parse_u64(text, 1, UINT32_MAX, &khz) < 0)
		return -EIO;
	*ret = (uint32_t)khz;
	return 0;
}

static int write_khz(const struct cpus *cpus, uint32_t policy, const char *name, uint32_t khz)
{
	char path[PATH_MAX], text[TEXT];
	int n = snprintf(text, sizeof(text), "%u\n", khz), fd, rc;
	ssize_t put;

	rc = path_of(cpus, policy, name, path);
	if (rc < 0)
		return rc;
	fd = cpus->sys->openat(cpus->sys, AT_FDCWD, path, O_WRONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return fd;
	put = cpus->sys->pwrite(cpus->sys, fd, text, (size_t)n, 0);
	(void)cpus->sys->close(cpus->sys, fd);
	if (put < 0)
		return (int)put;
	return put == n ? 0 : -EIO;
}

/* "0-127": the last of the CPUs that there may be. */
static int find_cpus(const struct takt_sys *sys, const char *root, struct cpus *ret,
		     struct takt_err *err)
{
	char path[PATH_MAX], text[TEXT];
	unsigned long long last;
	const char *at;
	int rc = 0;

	if (snprintf(path, sizeof(path), "%s/devices/system/cpu/possible", root) >= PATH_MAX)
		rc = -ENAMETOOLONG;
	if (rc == 0)
		rc = read_line(sys, path, text);
	if (rc < 0)
		return takt_err_set(err, rc == -ENOENT ? -TAKT_E_UNSUPPORTED : rc,
				    "the list of CPUs '%.200s'", path);
	at = strrchr(text, '-');
	if (takt_parse_u64(at ? at + 1 : text, 0, MAX_POLICY, &last) < 0)
		return takt_err_set(err, -EIO, "the list of CPUs says '%.60s'", text);
	*ret = (struct cpus){sys, root, (uint32_t)last};
	return 0;
}

/* Adds a policy to the run before it, or begins one. */
static bool add(struct takt_cpufreq *found, uint32_t policy, uint32_t min_khz, uint32_t max_khz)
{
	struct takt_cpufreq_run *run = &found->runs[found->count ? found->count - 1 : 0];

	if (found->count == 0 || run->min_khz != min_khz || run->max_khz != max_khz) {
		if (found->count == TAKT_CPUFREQ_RUNS)
			return false;
		run = &found->runs[found->count++];
		*run = (struct takt_cpufreq_run){(uint16_t)policy, 0, min_khz, max_khz};
	}
	run->last = (uint16_t)policy;
	return true;
}

int takt_cpufreq_read(const struct takt_sys *sys, const char *sysfs_root, struct takt_cpufreq *ret,
		      struct takt_err *err)
{
	struct takt_cpufreq found = {0};
	uint32_t min_khz, max_khz;
	struct cpus cpus;
	int rc = find_cpus(sys, sysfs_root, &cpus, err);

	for (uint32_t policy = 0; rc == 0 && policy <= cpus.last; policy++) {
		rc = read_khz(&cpus, policy, "scaling_min_freq", &min_khz);
		if (rc == 0)
			rc = read_khz(&cpus, policy, "scaling_max_freq", &max_khz);
		if (rc == 0 && !add(&found, policy, min_khz, max_khz))
			return takt_err_set(err, -TAKT_E_LIMIT,
					    "CPUs stand at more than %d limits in turn: they could "
					    "not be put back",
					    TAKT_CPUFREQ_RUNS);
		if (rc < 0 && rc != -ENOENT)
			return takt_err_set(err, rc, "read the limits of CPU policy %u", policy);
		rc = 0;
	}
	if (rc < 0)
		return rc;
	if (found.count == 0)
		return takt_err_set(err, -TAKT_E_UNSUPPORTED,
				    "the kernel has no cpufreq for the CPUs of this machine");
	*ret = found;
	return 0;
}

/* The kernel takes no maximum below the minimum: what is lowered goes first. */
static int put_policy(const struct cpus *cpus, uint32_t policy, uint32_t min_khz, uint32_t max_khz,
		      bool lower)
{
	int rc = lower ? write_khz(cpus, policy, "scaling_min_freq", min_khz)
		       : write_khz(cpus, policy, "scaling_max_freq", max_khz);

	if (rc < 0)
		return rc;
	return lower ? write_khz(cpus, policy, "scaling_max_freq", max_khz)
		     : write_khz(cpus, policy, "scaling_min_freq", min_khz);
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static int cap_policy(const struct cpus *cpus, uint32_t policy, const struct takt_cpufreq_run *run,
		      uint32_t max_khz)
{
	uint32_t lowest;
	int rc = read_khz(cpus, policy, "cpuinfo_min_freq", &lowest);

	if (rc < 0)
		return rc;
	max_khz = smaller(run->max_khz, max_khz > lowest ? max_khz : lowest);
	return put_policy(cpus, policy, smaller(run->min_khz, max_khz), max_khz, true);
}

int takt_cpufreq_cap(const struct takt_sys *sys, const char *sysfs_root,
		     const struct takt_cpufreq *found, uint32_t max_mhz, struct takt_err *err)
{
	struct cpus cpus = {sys, sysfs_root, MAX_POLICY};

	for (uint32_t r = 0; r < found->count; r++) {
		const struct takt_cpufreq_run *run = &found->runs[r];

		for (uint32_t policy = run->first; policy <= run->last; policy++) {
			int rc = cap_policy(&cpus, policy, run, max_mhz * 1000);

			if (rc < 0 && rc != -ENOENT)
				return takt_err_set(err, rc, "limit CPU policy %u", policy);
		}
	}
	return 0;
}

int takt_cpufreq_put_back(const struct takt_sys *sys, const char *sysfs_root,
			  const struct takt_cpufreq *found, struct takt_err *err)
{
	struct cpus cpus = {sys, sysfs_root, MAX_POLICY};
	int first = 0;

	for (uint32_t r = 0; r < found->count; r++) {
		const struct takt_cpufreq_run *run = &found->runs[r];

		for (uint32_t policy = run->first; policy <= run->last; policy++) {
			int rc = put_policy(&cpus, policy, run->min_khz, run->max_khz, false);

			if (rc < 0 && rc != -ENOENT && first == 0)
				first = takt_err_set(err, rc, "put CPU policy %u back", policy);
		}
	}
	return first;
}
