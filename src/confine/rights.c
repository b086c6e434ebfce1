/* SPDX-License-Identifier: Apache-2.0 */
/* Which of root's rights a process keeps. */
#include <errno.h>
#include <linux/capability.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "confine/confine.h"

#define RIGHT(cap) (UINT64_C(1) << (cap))
#define ALL_RIGHTS (RIGHT(CAP_LAST_CAP + 1) - 1)

/* Of the machine itself. No job needs one, not as root either. */
#define MACHINES                                                              \
	(RIGHT(CAP_SYS_MODULE) | RIGHT(CAP_SYS_RAWIO) | RIGHT(CAP_SYS_BOOT) | \
	 RIGHT(CAP_SYS_TIME) | RIGHT(CAP_SYS_PACCT) | RIGHT(CAP_MAC_ADMIN) |  \
	 RIGHT(CAP_MAC_OVERRIDE) | RIGHT(CAP_WAKE_ALARM) | RIGHT(CAP_BLOCK_SUSPEND))

/* The driver's kernel module asks whether it is an administrator who sets a clock (SYS_ADMIN), and
 * whether he may go before others (SYS_NICE). Its library makes device nodes that are not there.
 * The journal lies in a directory of the daemon's. */
#define DRIVERS                                                                             \
	(RIGHT(CAP_SYS_ADMIN) | RIGHT(CAP_SYS_NICE) | RIGHT(CAP_MKNOD) | RIGHT(CAP_CHOWN) | \
	 RIGHT(CAP_FOWNER) | RIGHT(CAP_DAC_OVERRIDE))

/* To take an attempt over (CHOWN, FOWNER, FSETID, DAC_OVERRIDE), to become its user (SETUID,
 * SETGID) within his limits (SYS_RESOURCE, SYS_NICE), to signal him and read his processes'
 * environment (KILL, SYS_PTRACE), and to close devices to his cgroup (BPF, NET_ADMIN); AUDIT_* to
 * open a session for him. */
#define LAUNCHERS                                                                                \
	(RIGHT(CAP_CHOWN) | RIGHT(CAP_FOWNER) | RIGHT(CAP_FSETID) | RIGHT(CAP_DAC_OVERRIDE) |    \
	 RIGHT(CAP_SETUID) | RIGHT(CAP_SETGID) | RIGHT(CAP_SYS_RESOURCE) | RIGHT(CAP_SYS_NICE) | \
	 RIGHT(CAP_KILL) | RIGHT(CAP_SYS_PTRACE) | RIGHT(CAP_BPF) | RIGHT(CAP_NET_ADMIN) |       \
	 RIGHT(CAP_AUDIT_WRITE) | RIGHT(CAP_AUDIT_CONTROL))

static const struct {
	uint64_t own;	  /* what the process itself can do */
	uint64_t started; /* what root's programs can that it starts */
} rights[TAKT_CONFINED_COUNT] = {
	[TAKT_CONFINED_LAUNCH] = {LAUNCHERS, ALL_RIGHTS & ~MACHINES},
	[TAKT_CONFINED_ACTUATE] = {DRIVERS, DRIVERS},
	[TAKT_CONFINED_GUARD] = {DRIVERS, DRIVERS},
};

/* Those that the kernel does not know, or that somebody has taken already, are gone. */
static int bound(uint64_t kept)
{
	for (int cap = 0; cap < 64 && prctl(PR_CAPBSET_READ, cap) >= 0; cap++)
		if (!(kept >> cap & 1) && prctl(PR_CAPBSET_READ, cap) == 1 &&
		    prctl(PR_CAPBSET_DROP, cap) < 0)
			return -errno;
	return prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 ? -errno : 0;
}

static int keep(uint64_t kept)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct set[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &head, set) < 0)
		return -errno;
	for (size_t i = 0; i < TAKT_ARRAY_LEN(set); i++) {
		set[i].permitted &= (uint32_t)(kept >> 32 * i);
		set[i].effective = set[i].permitted;
		set[i].inheritable = 0;
	}
	return syscall(SYS_capset, &head, set) < 0 ? -errno : 0;
}

int takt_confine_rights(enum takt_confined who, struct takt_err *err)
{
	uint64_t own = rights[who].own;
	int rc = 0;

	if (geteuid() != 0)
		return 0;
	if (own & RIGHT(CAP_BPF) && prctl(PR_CAPBSET_READ, CAP_BPF) < 0)
		own |= RIGHT(CAP_SYS_ADMIN); /* what it is a part of, before Linux 5.8 */
	rc = bound(rights[who].started);
	if (rc == 0)
		rc = keep(own);
	return rc < 0 ? takt_err_set(err, rc, "give up root's rights") : 0;
}
