/* SPDX-License-Identifier: Apache-2.0 */
/* The spec of an attempt as text; private to this room and its tests. */
#ifndef TAKT_LAUNCH_ATTEMPT_SPEC_H
#define TAKT_LAUNCH_ATTEMPT_SPEC_H

#include <stddef.h>

#include "base/str.h"
#include "launch/attempt.h"

/* Whose the records of an attempt are. */
struct takt_attempt_mark {
	char of[TAKT_ATTEMPT_SECRET + 40]; /* "JOB.ATTEMPT.SECRET", or how that begins */
	bool all;
};

/* Completes *ret from the `spec` in the directory; leaves it alone where there is none that is
 * sound, or one without a secret. */
int takt_attempt_read_mark(const struct takt_sys *sys, int attempt_dirfd,
			   struct takt_attempt_mark *ret);

/* Replaces what `out` holds; out->rc otherwise. */
int takt_attempt_spec_format(const struct takt_attempt_spec *spec, struct takt_str *out);

/* -TAKT_E_CORRUPT, -TAKT_E_VERSION or -ENOMEM leave *ret alone; what a sound checksum covers but
 * takt_attempt_spec_check() would refuse is corrupt too. */
int takt_attempt_spec_parse(const char *text, size_t len, struct takt_attempt_spec *ret);

#endif
