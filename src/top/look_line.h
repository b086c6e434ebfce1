/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a line of `takt top --json --each-line` asks for beside the look itself, in words:
 *
 *     past 1000       what GPUs did before, in steps of so many milliseconds; once a run of takt
 *     log 12          the end of that job's log
 *
 * Words that are not known are passed over, and so is all of it by an older takt.
 */
#ifndef TAKT_TOP_LOOK_LINE_H
#define TAKT_TOP_LOOK_LINE_H

#include "base/str.h"

struct takt_look_words {
	uint32_t past_step_ms; /* 0 = it is not asked for */
	uint64_t log_job;      /* the same */
};

/* A line with its end. */
void takt_look_to_line(const struct takt_look_words *words, struct takt_str *out);
/* `line`: without its end; it is cut up. */
void takt_look_from_line(char *line, struct takt_look_words *ret);

#endif
