/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which device nodes the processes of a cgroup may open, decided by the kernel: a list of numbers
 * becomes a small program (BPF_PROG_TYPE_CGROUP_DEVICE) that hangs on the cgroup v2 directory.
 * Whoever is in that cgroup or below gets EPERM for every other node, root included, and cannot
 * leave the program behind; it goes with the directory.
 */
#ifndef TAKT_LAUNCH_DEVICE_FILTER_H
#define TAKT_LAUNCH_DEVICE_FILTER_H

#include <stdint.h>

#include "base/err.h"
#include "base/vec.h"

#define TAKT_DEVICE_ANY_MINOR UINT32_C(0xffffffff)

/* A character device; block devices are nobody's. */
struct takt_device_rule {
	uint32_t major, minor; /* minor may be TAKT_DEVICE_ANY_MINOR */
};

enum {
	TAKT_DEVICE_RULES_MAX = 512
};
typedef TAKT_VEC(struct takt_device_rule) takt_device_rules;

/* A loaded program, for the caller to close. -EPERM without CAP_SYS_ADMIN (or CAP_BPF and
 * CAP_NET_ADMIN), -EINVAL or -ENOSYS where the kernel was built without it. */
int takt_device_filter_load(const takt_device_rules *rules, struct takt_err *err);

/* Hang the program on an open cgroup v2 directory, beside what others hung there: what any of them
 * forbids is forbidden. */
int takt_device_filter_attach(int filter, int cgroup_dirfd, struct takt_err *err);

#endif
