/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and writing the files of an attempt; private to this room. */
#ifndef TAKT_LAUNCH_ATTEMPT_FILES_H
#define TAKT_LAUNCH_ATTEMPT_FILES_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "base/sys.h"

enum {
	TAKT_ATTEMPT_MAX_RECORD = 4096, /* bytes of any record but the spec */
	TAKT_ATTEMPT_NAME = 40,
	TAKT_ATTEMPT_MODE = 0640, /* of every file; the directory keeps strangers out */
};

/* "<job>.<attempt>" */
void takt_attempt_name(uint64_t job_id, uint32_t attempt, char ret[TAKT_ATTEMPT_NAME]);

/*
 * The whole text of a record, for the caller to takt_free. The directory may be another user's, so
 * links are not followed and nothing but a regular file is read: -TAKT_E_CORRUPT for those and for
 * one longer than max; -ENOENT.
 */
int takt_attempt_read_text(const struct takt_sys *sys, int dirfd, const char *name, size_t max,
			   char **ret_text, size_t *ret_len, struct takt_err *err);

/* Replaces the file by a rename, without syncing. */
int takt_attempt_write_text(const struct takt_sys *sys, int dirfd, const char *name,
			    const struct takt_str *text, struct takt_err *err);

#endif
