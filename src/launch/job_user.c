/* SPDX-License-Identifier: Apache-2.0 */
/* Being root, and being the job's user. */
#include "launch/job_user.h"

#include <endian.h>
#include <errno.h>
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

/* user::rwx user:UID:--x group::rwx mask::rwx other::--- */
static int set_list(int dirfd, uid_t uid)
{
	const __le32 nobody = htole32((uint32_t)ACL_UNDEFINED_ID);
	const __le16 all = htole16(ACL_READ | ACL_WRITE | ACL_EXECUTE);
	struct {
		struct posix_acl_xattr_header head;
		struct posix_acl_xattr_entry entry[5];
	} list = {{htole32(POSIX_ACL_XATTR_VERSION)},
		  {{htole16(ACL_USER_OBJ), all, nobody},
		   {htole16(ACL_USER), htole16(ACL_EXECUTE), htole32(uid)},
		   {htole16(ACL_GROUP_OBJ), all, nobody},
		   {htole16(ACL_MASK), all, nobody},
		   {htole16(ACL_OTHER), 0, nobody}}};

	return fsetxattr(dirfd, list_name, &list, sizeof(list), 0) < 0 ? -errno : 0;
}

int takt_job_user_let_through(const struct takt_job_user *user, int dirfd)
{
	int rc = user->other ? set_list(dirfd, user->uid) : 0;

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
