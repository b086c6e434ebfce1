/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where jobs run as other users the shim is root's, with two capabilities left: to signal the job
 * and to become its user. So the job cannot stop it, nor write what it records. What the user may
 * write among its files is lent to him while the job runs, or made as him; what he named (a
 * directory, a program) is opened as him, by a process that has become him for good. Private to
 * this room and to takt-shim.
 */
#ifndef TAKT_LAUNCH_JOB_USER_H
#define TAKT_LAUNCH_JOB_USER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/sys.h"
#include "launch/user_limits.h"

struct takt_job_user {
	bool other; /* than who runs the shim; else the rest means nothing */
	uid_t uid;
	gid_t gid;
	struct takt_user_limits limits; /* of his processes, not of the shim */
	int oom_score;			/* likewise; launch/oom_score.h */
};

/* "UID:GID" or "UID:GID:OOM-SCORE", or "" for no other. -EINVAL: it is neither, or names root. */
int takt_job_user_parse(const char *text, struct takt_job_user *ret, struct takt_err *err);

/*
 * Between the two, files, sockets, pipes and terminals that this process makes or opens are made
 * and opened as the user (the file system's idea of who asks, setfsuid(2)); its group stays.
 * Signals and /proc are not concerned.
 */
void takt_job_user_files_begin(const struct takt_job_user *user);
void takt_job_user_files_end(const struct takt_job_user *user);

/*
 * A file that he may write to: root's, lent to him by an access control list as long as the job
 * runs, in a directory of root's; where that cannot be, his own. For the owner of the process where
 * he is no other. `flags` as of open(2), O_CREAT among them where it is to be made; links are not
 * followed. A descriptor, or -errno.
 */
int takt_job_user_open(const struct takt_job_user *user, const struct takt_sys *sys, int dirfd,
		       const char *name, int flags);
/* From now on he can read it and no more; what he has open stays so. -EPERM: it is his own. All:
 * log and progress file of an attempt whose shim did not come to that. */
int takt_job_user_take_back(const struct takt_job_user *user, int fd);
void takt_job_user_take_back_all(const struct takt_sys *sys, int dirfd, uid_t uid);

/*
 * Before: root's groups were replaced by the user's, his group is the real one. Keep of root's
 * rights what a shim needs.
 */
int takt_job_user_shed_rights(const struct takt_job_user *user, struct takt_err *err);

/*
 * Become the user for good, with his limits. The kernel forgets then that the process is to die
 * with its parent: that is asked for again, of `parent`; -ESRCH when that is gone meanwhile. In a
 * forked process.
 */
int takt_job_user_become(const struct takt_job_user *user, pid_t parent, struct takt_err *err);

/*
 * His traverse right through an attempt's directory, to what is his there: from here on nothing
 * more can be made there as him. Others get it, too, where the file system has no access control
 * lists: they must know the name, and files have modes of their own. The second takes back what an
 * earlier shim gave; under the attempt's lock, lest it be one that is at work.
 */
int takt_job_user_let_through(const struct takt_job_user *user, int dirfd);
void takt_job_user_shut_out(const struct takt_job_user *user, int dirfd);

#endif
