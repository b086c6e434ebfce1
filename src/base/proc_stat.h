/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of /proc/PID/stat. Its second field is the program's name in parentheses, chosen by the
 * program: it may hold spaces, newlines and parentheses, so fields are counted from the last ')'.
 */
#ifndef TAKT_BASE_PROC_STAT_H
#define TAKT_BASE_PROC_STAT_H

#include <stdint.h>

enum {
	TAKT_PROC_FORKED = 0x40, /* the kernel's PF_FORKNOEXEC: forked, nothing executed since */
};

struct takt_proc_stat {
	char state;	      /* field 3: R S D Z T t X I */
	int32_t ppid;	      /* field 4 */
	int32_t pgrp;	      /* field 5 */
	int32_t session;      /* field 6 */
	uint32_t flags;	      /* field 9, TAKT_PROC_* */
	uint64_t start_ticks; /* field 22, clock ticks since boot */
};

/* Fills *ret, or -EINVAL and *ret untouched when `text` is not such a line. */
int takt_proc_stat_parse(const char *text, struct takt_proc_stat *ret);

#endif
