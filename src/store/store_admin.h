/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A database as a file: copied, put back, looked at, made fit to be shown to others. None of these
 * opens a store; backup, check and report may be done while a daemon uses it.
 */
#ifndef TAKT_STORE_STORE_ADMIN_H
#define TAKT_STORE_STORE_ADMIN_H

#include <stdatomic.h>

#include "base/way.h"
#include "store/store.h"

/* A new file in a place that a user has named, which may be another user's folder: it is made once,
 * 0600, and written to by its descriptor alone. */
struct takt_store_copy {
	struct takt_way way;
	const char *path; /* borrowed */
	int fd;
};
/* -EEXIST where there is something already; -EPERM for a link of others on the way. */
int takt_store_copy_make(const char *path, struct takt_store_copy *ret, struct takt_err *err);
/* rc: what came of it; below 0 nothing is left of the file. Returns it, or what came of closing. */
int takt_store_copy_end(struct takt_store_copy *copy, int rc, struct takt_err *err);

/* A copy as of one instant, without environments. SQLite opens `path` as whoever the caller then
 * is: he has to be whose folder that is. */
int takt_store_file_backup(const char *path, struct takt_store_copy *to, struct takt_err *err);
/* The same at `to`, in a folder of the caller's alone, 0600, which must not exist (-EEXIST); until
 * *stop is set: then -ECANCELED, and nothing is left of it. */
int takt_store_file_backup_until(const char *path, const char *to, const atomic_bool *stop,
				 struct takt_err *err);

/* An attempt that runs, by its lock. */
struct takt_store_alive {
	uint64_t job_id;
	uint32_t attempt;
};

/*
 * Puts a backup in the place of `path`, which is kept as "<path>.before-restore". Jobs that wait
 * are held, since their environments are not in it. Of those that ran, the ones in `alive` go on as
 * they are, to be adopted by the next daemon, and are held should they come to wait again; the
 * others are lost. Nothing has changed when it fails: -TAKT_E_BUSY while a daemon has the database,
 * -TAKT_E_CONFLICT when an attempt is alive that did not run by the backup, -TAKT_E_VERSION for one
 * of a newer takt, -TAKT_E_CORRUPT for a damaged or foreign one.
 */
int takt_store_file_restore(const char *path, const char *from,
			    const struct takt_store_alive *alive, size_t alive_count,
			    struct takt_err *err);

/* What there is to compare with other files. */
struct takt_store_file_look {
	/* Each job with its latest attempt, 0 before the first, and whether that runs. */
	/* NULL = not wanted, as the other. */
	void (*job)(void *ctx, uint64_t job_id, uint32_t attempt, bool runs);
	void (*environment)(void *ctx, uint64_t job_id); /* of no job that lives */
	void *ctx;
};

/* Every page and index; hands over what `look` asks for. -TAKT_E_CORRUPT with the first thing that
 * is wrong. */
int takt_store_file_check(const char *path, int64_t *ret_schema, uint64_t *ret_jobs,
			  const struct takt_store_file_look *look, struct takt_err *err);

/* HMAC-SHA256 under `key` as "<kind>-<12 hex digits>" into ret; the same text is the same
 * pseudonym. */
void takt_pseudonym(const char *key, const char *kind, const char *text, char ret[40]);
/* For a report of a defect: decisions with their inputs, and figures of jobs, with pseudonyms for
 * users and names; nothing else of what a user typed. `facts` are pairs of name and value, ended by
 * NULL. A database that takt simulate --replay reads. `to` must not exist. */
int takt_store_file_report(const char *path, const char *to, const char *key,
			   const char *const *facts, struct takt_err *err);

#endif
