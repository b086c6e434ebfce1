/* SPDX-License-Identifier: Apache-2.0 */
/* Instants as people type them. */
#ifndef TAKT_CLI_WHEN_H
#define TAKT_CLI_WHEN_H

#include <stdint.h>

#include "base/err.h"

/*
 * "2h", "1h30m" or "now+2h" from now on; "now"; "18:00" or "18:00:30", the next such time;
 * "yesterday", "today" and "tomorrow", midnight or with " 18:00"; "2026-12-24", or with "T18:00" or
 * " 18:00" (and seconds). Local time. *ret_ms: milliseconds since 1970.
 */
int takt_when_parse(const char *text, int64_t now_ms, int64_t *ret_ms, struct takt_err *err);

#endif
