/* SPDX-License-Identifier: Apache-2.0 */
/* What is to be expected of a job, in words: how long it runs and when it starts, each with what it
 * rests on. No newline. */
#ifndef TAKT_CLI_OUTLOOK_TEXT_H
#define TAKT_CLI_OUTLOOK_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "codec/views.h"

/* "2h05m, as earlier jobs like it", "30m, by its owner". run_from as in the views. */
void takt_run_text(uint64_t run_ms, const char *run_from, struct takt_str *out);

/* "14:05:00 (13:50:00 to 14:25:00 in 8 of 10 cases)". */
void takt_starts_text(const struct takt_start_view *start, struct takt_str *out);

#endif
