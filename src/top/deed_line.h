/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A deed as one line of JSON, for `takt top --json --each-line` on the machine that it is of, and
 * what became of it:
 *
 *     {"do": "cancel"|"requeue"|"hold"|"release", "job_id": 12}
 *     {"do": "signal", "signal": 15, "pid": 4711, "start_ticks": 99, "boot_id": "..."}
 *
 *     {"done": "job 12 is being cancelled"}   {"failed": "job 12 has ended (done)"}
 *
 * A signal names the process by the moment of its start, too: another one that has its number by
 * then gets none.
 */
#ifndef TAKT_TOP_DEED_LINE_H
#define TAKT_TOP_DEED_LINE_H

#include "base/err.h"
#include "base/str.h"
#include "top/top_ui.h"

enum {
	TAKT_DEED_LINE = 512, /* bytes at most, its end included */
};

/* Appends the line of a deed that another machine can do. */
void takt_deed_to_line(const struct takt_deed *deed, struct takt_str *out);
/* -TAKT_E_CORRUPT, -TAKT_E_LIMIT, -ENOMEM; *ret is untouched then. */
int takt_deed_from_line(const char *text, size_t len, struct takt_deed *ret, struct takt_err *err);

void takt_deed_answer_to_line(bool bad, const char *text, struct takt_str *out);
/* *ret_bad: it was not done. -TAKT_E_CORRUPT: no answer to a deed. */
int takt_deed_answer_from_line(const char *text, size_t len, bool *ret_bad, char *ret, size_t size,
			       struct takt_err *err);

#endif
