/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's log, line by line: /dev/kmsg, or a file that somebody else writes it to. Never
 * blocks, reads nothing but lines that are whole.
 */
#ifndef TAKT_DAEMON_KERNEL_LOG_FILE_H
#define TAKT_DAEMON_KERNEL_LOG_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct takt_kernel_log;

/* all: from its beginning (of /dev/kmsg: what the kernel still has), else what is logged from now
 * on. -EPERM, -ENOENT and the like with words for people. */
int takt_kernel_log_open(const char *path, bool all, struct takt_kernel_log **ret,
			 struct takt_err *err);
void takt_kernel_log_close(struct takt_kernel_log *log); /* NULL is fine */
/* The next line without its newline, borrowed until the next call; false when there is none yet. */
bool takt_kernel_log_next(struct takt_kernel_log *log, const char **ret_line, size_t *ret_len);

#endif
