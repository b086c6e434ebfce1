/* SPDX-License-Identifier: Apache-2.0 */
/* Being root, and being the job's user. */
#include "launch/job_user.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/mem.h"
#include "launch/attempt_files.h"
#include "launch/oom_score.h"

int takt_job_user_parse(const char *text, struct takt_job_user *ret, struct takt_err *err)
{
	unsigned int uid, gid;
	int end = 0, score = 0;

	*ret = (struct takt_job_user){0};
	if (!text[0])
		return 0;
	if (sscanf(text, "%u:%u%n:%d%n", &uid, &gid, &end, &score, &end) < 2 || text[end] ||
	    uid == 0 || uid == (uid_t)-1 || gid == (gid_t)-1)
		return takt_err_set(err, -EINVAL, "user '%.40s': UID:GID of a user is expected",
				    text);
	*ret = (struct takt_job_user){.other = true, .uid = uid, .gid = gid, .oom_score = score};
	return 0;
}

void takt_job_user_files_begin(const struct takt_job_user *user)
{
	if (user->other)
		(void)setfsuid(user->uid);
}

void takt_job_user_files_end(const struct takt_job_user *user)
{
	if (user->other)
		(void)setfsuid(geteuid());
}

int takt_job_user_shed_rights(const struct takt_job_user *user, struct takt_err *err)
{
	const uint32_t kept = 1u << CAP_KILL | 1u << CAP_SETUID;
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct rights[_LINUX_CAPABILITY_U32S_3] = {
		{.effective = kept, .permitted = kept}};

	if (!user->other)
		return 0;
	if (getuid() != 0 || getgid() != user->gid)
		return takt_err_set(err, -EPERM, "a shim for user %u is started by root alone",
				    user->uid);
	if (syscall(SYS_capset, &head, rights) < 0)
		return takt_err_set(err, -errno, "give up root's rights");
	return 0;
}

int takt_job_user_become(const struct takt_job_user *user, pid_t parent, struct takt_err *err)
{
	int rc = user->other ? takt_user_limits_take(&user->limits, err) : 0;

	if (rc < 0)
		return rc;
	if (user->other)
		takt_oom_score_take(user->oom_score);
	if (user->other && setresgid(user->gid, user->gid, user->gid) < 0)
		return takt_err_set(err, -errno, "become group %u", user->gid);
	if (user->other && setresuid(user->uid, user->uid, user->uid) < 0)
		return takt_err_set(err, -errno, "become user %u", user->uid);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	return getppid() == parent ? 0 : takt_err_set(err, -ESRCH, "the shim is gone");
}

static const char list_name[] = "system.posix_acl_access";

/* user::ALL user:UID:HIS group::ALL mask::ALL other::--- */
static int set_list(int fd, uint16_t all_rights, uid_t uid, uint16_t his_rights)
{
	const __le32 nobody = htole32((uint32_t)ACL_UNDEFINED_ID);
	const __le16 all = htole16(all_rights), his = htole16(his_rights);
	struct {
		struct posix_acl_xattr_header head;
		struct posix_acl_xattr_entry entry[5];
	} list = {{htole32(POSIX_ACL_XATTR_VERSION)},
		  {{htole16(ACL_USER_OBJ), all, nobody},
		   {htole16(ACL_USER), his, htole32(uid)},
		   {htole16(ACL_GROUP_OBJ), all, nobody},
		   {htole16(ACL_MASK), all, nobody},
		   {htole16(ACL_OTHER), 0, nobody}}};

	return fsetxattr(fd, list_name, &list, sizeof(list), 0) < 0 ? -errno : 0;
}

static bool is_roots(const struct stat *st, mode_t type)
{
	return (st->st_mode & S_IFMT) == type && st->st_uid == 0 &&
	       (type == S_IFDIR || st->st_nlink == 1); /* else another name of what is elsewhere */
}

static bool is_in_roots_directory(const struct takt_sys *sys, int dirfd)
{
	struct stat st;

	return sys->fstat(sys, dirfd, &st) == 0 && is_roots(&st, S_IFDIR);
}

static int lend(const struct takt_sys *sys, int fd, uid_t uid)
{
	struct stat st;
	int rc = sys->fstat(sys, fd, &st);

	if (rc == 0 && !is_roots(&st, S_IFREG))
		rc = -EPERM;
	return rc < 0 ? rc : set_list(fd, ACL_READ | ACL_WRITE, uid, ACL_READ | ACL_WRITE);
}

static int open_lent(const struct takt_job_user *user, const struct takt_sys *sys, int dirfd,
		     const char *name, int flags)
{
	int fd, rc;

	if (!is_in_roots_directory(sys, dirfd))
		return -EPERM;
	fd = sys->openat(sys, dirfd, name, flags, TAKT_ATTEMPT_MODE);
	if (fd < 0)
		return fd;
	rc = lend(sys, fd, user->uid);
	if (rc == 0)
		return fd;
	(void)sys->close(sys, fd);
	if (rc == -EOPNOTSUPP && flags & O_CREAT)
		(void)sys->unlinkat(sys, dirfd, name, 0);
	return rc;
}

int takt_job_user_open(const struct takt_job_user *user, const struct takt_sys *sys, int dirfd,
		       const char *name, int flags)
{
	int fd = -1;

	flags |= O_NOFOLLOW | O_CLOEXEC;
	if (user->other)
		fd = open_lent(user, sys, dirfd, name, flags);
	if (fd >= 0)
		return fd;
	takt_job_user_files_begin(user);
	fd = sys->openat(sys, dirfd, name, flags, TAKT_ATTEMPT_MODE);
	takt_job_user_files_end(user);
	return fd;
}

int takt_job_user_take_back(const struct takt_job_user *user, int fd)
{
	return user->other ? set_list(fd, ACL_READ | ACL_WRITE, user->uid, ACL_READ) : 0;
}

void takt_job_user_take_back_all(const struct takt_sys *sys, int dirfd, uid_t uid)
{
	static const char *const names[] = {"log", "progress"};
	struct takt_job_user user = {.other = true, .uid = uid};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(names) && is_in_roots_directory(sys, dirfd); i++) {
		int fd = sys->openat(sys, dirfd, names[i],
				     O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
		struct stat st;

		if (fd < 0)
			continue;
		if (sys->fstat(sys, fd, &st) == 0 && is_roots(&st, S_IFREG))
			(void)takt_job_user_take_back(&user, fd);
		(void)sys->close(sys, fd);
	}
}

int takt_job_user_let_through(const struct takt_job_user *user, int dirfd)
{
	int rc = user->other ? set_list(dirfd, ACL_READ | ACL_WRITE | ACL_EXECUTE, user->uid,
					ACL_EXECUTE)
			     : 0;

	if (rc == -EOPNOTSUPP)
		rc = fchmod(dirfd, S_ISGID | 0771) < 0 ? -errno : 0;
	return rc;
}

void takt_job_user_shut_out(const struct takt_job_user *user, int dirfd)
{
	if (!user->other)
		return;
	(void)fremovexattr(dirfd, list_name);
	(void)fchmod(dirfd, S_ISGID | 0770);
}
