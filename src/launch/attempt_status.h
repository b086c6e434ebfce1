/* SPDX-License-Identifier: Apache-2.0 */
/* The records `shim`, `isolation`, `staged`, `started`, `cut` and `exit` as text; private to this
 * room and its tests. */
#ifndef TAKT_LAUNCH_ATTEMPT_STATUS_H
#define TAKT_LAUNCH_ATTEMPT_STATUS_H

#include <stddef.h>

#include "base/str.h"
#include "launch/attempt.h"

int takt_attempt_shim_format(const struct takt_proc_id *shim, struct takt_str *out);
int takt_attempt_staged_format(const struct takt_proc_id *job, struct takt_str *out);
int takt_attempt_started_format(const struct takt_proc_id *job, struct takt_wall at,
				uint64_t boot_ns, struct takt_str *out);
int takt_attempt_isolation_format(const char *why, struct takt_str *out);
int takt_attempt_cut_format(const struct takt_output_cut *cut, struct takt_str *out);
int takt_attempt_exit_format(const struct takt_attempt_status *status, struct takt_str *out);

/* Each fills its own fields of *ret, or is -TAKT_E_CORRUPT or -TAKT_E_VERSION and leaves it alone.
 */
int takt_attempt_shim_parse(const char *text, size_t len, struct takt_attempt_status *ret);
int takt_attempt_staged_parse(const char *text, size_t len, struct takt_attempt_status *ret);
int takt_attempt_started_parse(const char *text, size_t len, struct takt_attempt_status *ret);
int takt_attempt_exit_parse(const char *text, size_t len, struct takt_attempt_status *ret);
/* The same errors. why[TAKT_ATTEMPT_MESSAGE]. */
int takt_attempt_isolation_parse(const char *text, size_t len, char *ret_why);
int takt_attempt_cut_parse(const char *text, size_t len, struct takt_output_cut *ret);

#endif
