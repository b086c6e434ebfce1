/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's log, line by line: /dev/kmsg, or a file that somebody else writes it to. What counts
 * is the path: a file that is renamed is read until there is something in the new one, and one that
 * is cut is read from its beginning. Never blocks, reads nothing but lines that are whole.
 */
#ifndef TAKT_DAEMON_KERNEL_LOG_FILE_H
#define TAKT_DAEMON_KERNEL_LOG_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct takt_kernel_log;

/* What is logged from now on. One that cannot be read now is tried again whenever a line is asked
 * for. -ENOMEM. */
int takt_kernel_log_open(const char *path, struct takt_kernel_log **ret, struct takt_err *err);
void takt_kernel_log_close(struct takt_kernel_log *log); /* NULL is fine */
/* The next line without its newline, borrowed until the next call; false when there is none yet. */
bool takt_kernel_log_next(struct takt_kernel_log *log, const char **ret_line, size_t *ret_len);
/* Why it cannot be read, borrowed; NULL = it can. */
const struct takt_err *takt_kernel_log_why(const struct takt_kernel_log *log);
/* Whether it is a file: what is in that need not be the kernel's log. */
bool takt_kernel_log_is_file(const struct takt_kernel_log *log);

#endif
