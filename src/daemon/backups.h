/* SPDX-License-Identifier: Apache-2.0 */
/* The daily copies of the database, in <state_dir>/backups. */
#ifndef TAKT_DAEMON_BACKUPS_H
#define TAKT_DAEMON_BACKUPS_H

#include <stdint.h>

#include "base/err.h"
#include "base/vec.h"

enum {
	TAKT_BACKUP_NAME = 40,
};

struct takt_backup {
	char name[TAKT_BACKUP_NAME]; /* of the file: takt-20261127-203800.db, UTC */
	int64_t at_s;		     /* the same as a time */
};

struct takt_backups {
	TAKT_VEC(struct takt_backup) list; /* newest first */
};

/* Other files of that folder are nobody's backups. No folder: none. */
int takt_backups_read(const char *state_dir, struct takt_backups *ret, struct takt_err *err);
void takt_backups_fini(struct takt_backups *backups);
void takt_backup_name(int64_t at_s, char ret[TAKT_BACKUP_NAME]);

struct takt_daemon;
struct takt_daily_backup;
int takt_daily_backup_new(struct takt_daemon *daemon, struct takt_err *err);
/* Breaks one off that is being made. NULL is fine. */
void takt_daily_backup_free(struct takt_daily_backup *backup);
/* Looks now and then whether one is due; it is made by a thread of its own. */
void takt_daily_backup_tick(struct takt_daemon *daemon);

#endif
