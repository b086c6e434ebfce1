/* SPDX-License-Identifier: Apache-2.0 */
/* The verb `admin`: a daemon's files, whether or not it runs. */
#ifndef TAKT_DAEMON_ADMIN_H
#define TAKT_DAEMON_ADMIN_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/vec.h"
#include "cli/cli.h"
#include "config/config.h"
#include "launch/attempt.h"

/* admin_files.c: backup, restore, check, report or account, see cli/cli.h. */
int takt_admin_files(const char *action, const struct takt_config *config, const char *file,
		     takt_admin_say *say, void *ctx, struct takt_err *err);

/* For a while, where root is at work: whose state_dir it is. What SQLite then opens, makes and
 * removes by names in that folder is what he could. Root's groups are gone for good. */
struct takt_admin_owner {
	uid_t uid;
	gid_t gid;
	bool changed; /* it is somebody else's, and we are root */
};
int takt_admin_as_owner(const char *state_dir, struct takt_admin_owner *ret, struct takt_err *err);
void takt_admin_as_before(const struct takt_admin_owner *owner);

/* admin_check.c: says what belongs together and what does not. -TAKT_E_CORRUPT when something is
 * wrong. */
int takt_admin_check(const struct takt_config *config, const char *db, takt_admin_say *say,
		     void *ctx, struct takt_err *err);

/* admin_attempts.c: an attempt's folder. */
struct takt_admin_attempt {
	uint64_t job_id;
	uint32_t attempt;
	bool known; /* for the caller; false at first */
	struct takt_attempt_status status;
};
struct takt_admin_attempts {
	TAKT_VEC(struct takt_admin_attempt) list; /* by job and attempt */
};

/* All in `jobs_dir`, as they are now; none when there is no such folder. The caller finis, also
 * when it failed. */
int takt_admin_attempts_read(const char *jobs_dir, struct takt_admin_attempts *ret,
			     struct takt_err *err);
void takt_admin_attempts_fini(struct takt_admin_attempts *attempts);
/* The attempts of one job: the first one's place, and how many. */
size_t takt_admin_attempts_of(const struct takt_admin_attempts *attempts, uint64_t job_id,
			      size_t *ret_first);

#endif
