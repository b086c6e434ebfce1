/* SPDX-License-Identifier: Apache-2.0 */
/* From names of device nodes to their numbers. */
#include "launch/device_rules.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum {
	NVIDIA_MAJOR = 195, /* of GPUs, nvidiactl and nvidia-modeset, in every driver */
	NVIDIA_CTL = 255,
	NVIDIA_MODESET = 254,
	MINOR_MAX = 253, /* of a GPU: above are the two */
};

static const struct takt_device_rule ordinary[] = {
	{1, 3},			      /* null */
	{1, 5},			      /* zero */
	{1, 7},			      /* full */
	{1, 8},			      /* random */
	{1, 9},			      /* urandom */
	{5, 0},			      /* tty */
	{5, 2},			      /* ptmx */
	{136, TAKT_DEVICE_ANY_MINOR}, /* pts */
	{10, 200},		      /* net/tun */
	{10, 229},		      /* fuse */
};

/* The number of a node that is there now, else `fallback`; 1 when there is one, 0 when none. */
static int number_of(int dev, const char *name, const struct takt_device_rule *fallback,
		     struct takt_device_rule *ret)
{
	struct stat st;

	if (fstatat(dev, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISCHR(st.st_mode)) {
		*ret = (struct takt_device_rule){major(st.st_rdev), minor(st.st_rdev)};
		return 1;
	}
	if (!fallback)
		return 0;
	*ret = *fallback;
	return 1;
}

static int add_name(int dev, const char *name, const struct takt_device_rule *fallback,
		    takt_device_rules *ret)
{
	struct takt_device_rule rule;

	return number_of(dev, name, fallback, &rule) ? takt_vec_push(ret, rule) : 0;
}

static int add_folder(int dev, const char *name, takt_device_rules *ret)
{
	int fd = openat(dev, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	int rc = 0;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	while (rc == 0 && (entry = readdir(dir)))
		rc = add_name(fd, entry->d_name, NULL, ret);
	closedir(dir);
	return rc;
}

/* What every program that uses any GPU of NVIDIA's opens. */
static int add_shared(int dev, takt_device_rules *ret)
{
	const struct takt_device_rule ctl = {NVIDIA_MAJOR, NVIDIA_CTL};
	const struct takt_device_rule modeset = {NVIDIA_MAJOR, NVIDIA_MODESET};
	int rc = add_name(dev, "nvidiactl", &ctl, ret);

	if (rc == 0)
		rc = add_name(dev, "nvidia-modeset", &modeset, ret);
	if (rc == 0)
		rc = add_name(dev, "nvidia-uvm", NULL, ret);
	if (rc == 0)
		rc = add_name(dev, "nvidia-uvm-tools", NULL, ret);
	return rc;
}

static int add_gpus(int dev, const struct takt_job_limits *limits, takt_device_rules *ret)
{
	char name[48];
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < limits->gpu_count; i++) {
		const struct takt_device_rule usual = {NVIDIA_MAJOR, limits->gpu_minor[i]};

		snprintf(name, sizeof(name), "nvidia%u", limits->gpu_minor[i]);
		rc = add_name(dev, name, &usual, ret);
	}
	for (size_t i = 0; rc == 0 && i < limits->cap_count; i++) {
		snprintf(name, sizeof(name), "nvidia-caps/nvidia-cap%u", limits->cap_minor[i]);
		rc = add_name(dev, name, NULL, ret);
	}
	return rc;
}

static int check(const struct takt_job_limits *limits, struct takt_err *err)
{
	if (limits->gpu_count > TAKT_LIMITS_MAX_GPUS || limits->cap_count > TAKT_LIMITS_MAX_CAPS)
		return takt_err_set(err, -TAKT_E_LIMIT, "%u GPUs and %u MIG capabilities",
				    limits->gpu_count, limits->cap_count);
	for (size_t i = 0; i < limits->gpu_count; i++)
		if (limits->gpu_minor[i] > MINOR_MAX)
			return takt_err_set(err, -EINVAL, "/dev/nvidia%u is no GPU",
					    limits->gpu_minor[i]);
	return 0;
}

int takt_device_rules_add(int dev, const struct takt_job_limits *limits, takt_device_rules *ret,
			  struct takt_err *err)
{
	int rc = check(limits, err);

	if (rc < 0)
		return rc;
	for (size_t i = 0; rc == 0 && i < TAKT_ARRAY_LEN(ordinary); i++)
		rc = takt_vec_push(ret, ordinary[i]);
	if (rc == 0)
		rc = add_folder(dev, "infiniband", ret);
	if (rc == 0 && limits->gpu_count > 0)
		rc = add_shared(dev, ret);
	if (rc == 0)
		rc = add_gpus(dev, limits, ret);
	return rc < 0 ? takt_err_set(err, rc, "devices of the job") : 0;
}
