/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See the header. Root goes through the folder only while it is root's, so nobody else can put
 * anything in its way; the folder itself is given away last, and until then all of it may be done
 * once more. What users have in the attempts at their jobs stays theirs.
 */
#include "daemon/state_owner.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"

enum {
	STATE_MODE = 0711,
	MAX_DEPTH = 4, /* state_dir has folders, of plain files most of them */
	JOURNAL_BYTES = 1 << 20,
};

struct owner {
	uid_t uid;
	gid_t gid;
};

typedef int give_fn(const struct owner *to, int dirfd, const char *name, unsigned int depth);

static int open_folder(int dirfd, const char *name)
{
	int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int give_each(const struct owner *to, int dirfd, unsigned int depth, give_fn *give)
{
	int fd = depth < MAX_DEPTH ? open_folder(dirfd, ".") : -ELOOP, rc = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!dir) {
		rc = fd < 0 ? fd : -errno;
		if (fd >= 0)
			close(fd);
		return rc;
	}
	while (rc == 0 && (entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			rc = give(to, dirfd, entry->d_name, depth + 1);
	closedir(dir);
	return rc;
}

static int change(int dirfd, const char *name, uid_t uid, gid_t gid)
{
	int rc = fchownat(dirfd, name, uid, gid, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;

	return rc == -ENOENT ? 0 : rc; /* a shim that is at work replaces its records */
}

static int give_group(const struct owner *to, int dirfd, const char *name, unsigned int depth)
{
	(void)depth;
	return change(dirfd, name, (uid_t)-1, to->gid);
}

static int give_all(const struct owner *to, int dirfd, const char *name, unsigned int depth)
{
	int fd = open_folder(dirfd, name), rc;

	if (fd == -ENOTDIR || fd == -ELOOP)
		return change(dirfd, name, to->uid, to->gid);
	if (fd < 0)
		return fd;
	rc = give_each(to, fd, depth, give_all);
	close(fd);
	return rc == 0 ? change(dirfd, name, to->uid, to->gid) : rc;
}

/* One whose shim root has started stays root's and is the account's by its group, like those that
 * are made from now on. One of a version whose shims were the user's is left to him. */
static int give_attempt(const struct owner *to, int dirfd, const char *name, unsigned int depth)
{
	int fd = open_folder(dirfd, name), rc = 0;
	struct stat st = {.st_uid = (uid_t)-1};

	if (fd == -ENOTDIR || fd == -ELOOP)
		return change(dirfd, name, to->uid, to->gid);
	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	(void)fstat(fd, &st);
	if (st.st_uid == 0 && st.st_mode & S_ISGID)
		rc = give_each(to, fd, depth, give_group);
	close(fd);
	if (st.st_uid != 0 || rc < 0)
		return rc;
	return st.st_mode & S_ISGID ? give_group(to, dirfd, name, depth)
				    : give_all(to, dirfd, name, depth);
}

static int give_state(const struct owner *to, int dirfd, const char *name, unsigned int depth)
{
	int fd, rc;

	if (strcmp(name, "jobs") != 0)
		return give_all(to, dirfd, name, depth);
	fd = open_folder(dirfd, name);
	if (fd < 0)
		return fd;
	rc = give_each(to, fd, depth, give_attempt);
	if (rc == 0 && fchown(fd, to->uid, to->gid) < 0)
		rc = -errno;
	close(fd);
	return rc;
}

static int find_account(const char *name, struct owner *ret, struct takt_err *err)
{
	const struct passwd *account;

	errno = 0;
	account = getpwnam(name);
	if (!account)
		return takt_err_set(err, errno ? -errno : -ENOENT,
				    "account '%.40s'; systemd-sysusers makes takt's own", name);
	if (account->pw_uid == 0)
		return takt_err_set(err, -TAKT_E_USAGE, "root needs no account of its own");
	*ret = (struct owner){account->pw_uid, account->pw_gid};
	return 0;
}

static int make_places(const struct takt_sys *sys, const struct takt_config *config,
		       struct takt_err *err)
{
	int rc = takt_mkdirs_durable(sys, config->state_dir, STATE_MODE, err);

	return rc == 0 ? takt_mkdirs_durable(sys, config->clocks_dir, STATE_MODE, err) : rc;
}

/* The folder of the attempts, which launchers look for before there is a daemon. */
static int make_jobs(int dirfd, const struct owner *to)
{
	if (mkdirat(dirfd, "jobs", STATE_MODE) == 0)
		return fchownat(dirfd, "jobs", to->uid, to->gid, AT_SYMLINK_NOFOLLOW) < 0 ? -errno
											  : 0;
	return errno == EEXIST ? 0 : -errno;
}

static int give(const struct takt_sys *sys, const struct takt_config *config, int dirfd,
		const struct owner *to, struct takt_err *err)
{
	int rc = takt_clocks_move(sys, config, err);

	if (rc < 0)
		return rc;
	rc = make_jobs(dirfd, to);
	if (rc == 0)
		rc = give_each(to, dirfd, 0, give_state);
	if (rc == 0 && (fchown(dirfd, to->uid, to->gid) < 0 || fchmod(dirfd, STATE_MODE) < 0))
		rc = -errno;
	return rc < 0 ? takt_err_set(err, rc, "give '%s' away", config->state_dir) : 0;
}

int takt_state_give(const struct takt_sys *sys, const struct takt_config *config,
		    const char *account, struct takt_err *err)
{
	struct owner to;
	struct stat st;
	int fd, rc;

	if (getuid() != 0)
		return takt_err_set(err, -EPERM, "only root can give its files away");
	rc = find_account(account, &to, err);
	if (rc == 0)
		rc = make_places(sys, config, err);
	if (rc < 0)
		return rc;
	fd = open_folder(AT_FDCWD, config->state_dir);
	if (fd < 0)
		return takt_err_set(err, fd, "open '%s'", config->state_dir);
	if (fstat(fd, &st) < 0)
		rc = takt_err_set(err, -errno, "look at '%s'", config->state_dir);
	else if (st.st_uid == 0)
		rc = give(sys, config, fd, &to, err);
	else if (st.st_uid != to.uid)
		rc = takt_err_set(err, -EPERM, "state_dir '%s' belongs to another user (uid %u)",
				  config->state_dir, st.st_uid);
	close(fd);
	return rc;
}

/* Whoever holds this lock may change GPUs, and has the journal open. */
static int lock_clocks(const char *state_dir, int *ret_fd, struct takt_err *err)
{
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/clocks.lock", state_dir);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return errno == ENOENT ? 0 : takt_err_set(err, -errno, "open '%s'", path);
	*ret_fd = fd;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return takt_err_set(err, -TAKT_E_BUSY,
				    "'%s' is held: an actuator or guard of an earlier version is "
				    "still at work",
				    path);
	return 0;
}

static int copy_journal(const struct takt_sys *sys, const char *from, const char *clocks_dir,
			struct takt_err *err)
{
	TAKT_CLEANUP(freep) char *text = NULL;
	int fd = open_folder(AT_FDCWD, clocks_dir), rc;
	size_t len;

	if (fd < 0)
		return takt_err_set(err, fd, "open '%s'", clocks_dir);
	rc = takt_file_read(sys, AT_FDCWD, from, JOURNAL_BYTES, &text, &len, err);
	if (rc == 0 && faccessat(fd, "clocks.journal", F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		rc = takt_file_write_durable(sys, fd, "clocks.journal", text, len, 0600, err);
	close(fd);
	return rc;
}

int takt_clocks_move(const struct takt_sys *sys, const struct takt_config *config,
		     struct takt_err *err)
{
	char from[PATH_MAX];
	int lock = -1, rc;

	snprintf(from, sizeof(from), "%s/clocks.journal", config->state_dir);
	if (strcmp(config->state_dir, config->clocks_dir) == 0 || access(from, F_OK) < 0)
		return 0;
	rc = lock_clocks(config->state_dir, &lock, err);
	if (rc == 0)
		rc = copy_journal(sys, from, config->clocks_dir, err);
	if (rc == 0 && unlink(from) < 0)
		rc = takt_err_set(err, -errno, "remove '%s'", from);
	if (lock >= 0)
		close(lock);
	return rc;
}
