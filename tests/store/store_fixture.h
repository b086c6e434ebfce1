/* SPDX-License-Identifier: Apache-2.0 */
/* What most tests of the store begin with: a directory to work in, jobs to store, tickets to wait
 * for. */
#ifndef TAKT_TESTS_STORE_FIXTURE_H
#define TAKT_TESTS_STORE_FIXTURE_H

#include "store/store.h"

/* A fresh directory under $TMPDIR (or /tmp) with room for "<dir>/takt.db" in `path`. */
struct store_place {
	char dir[200];
	char path[240];
};
void store_place_init(struct store_place *place);
void store_place_fini(struct store_place *place); /* removes what lies in it */

/* Opens or fails the test with the message. */
struct takt_store *store_open_ok(const char *path);

/* A job with these ids, waiting, everything else made of them. Borrows static texts. */
struct takt_job store_job(uint64_t id);

/* Waits until `ticket` is reported and returns its outcome; earlier ones are dropped. Fails the
 * test after 20 s. */
struct takt_store_completion store_wait(struct takt_store *store, int64_t ticket);

/* The whole row as text, for comparing; static buffer a call site (two alternate). */
const char *store_job_text(const struct takt_job *job);

#endif
