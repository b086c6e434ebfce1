/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of /proc/PID/stat. Its second field is the program's name in parentheses, chosen by the
 * program: it may hold spaces, newlines and parentheses, so fields are counted from the last ')'.
 */
#ifndef TAKT_BASE_PROC_STAT_H
#define TAKT_BASE_PROC_STAT_H

#include <stdint.h>

#include "base/err.h"

enum {
	TAKT_PROC_ENDING = 0x4,	     /* the kernel's PF_EXITING */
	TAKT_PROC_FORKED = 0x40,     /* PF_FORKNOEXEC: forked, nothing executed since */
	TAKT_PROC_KERNEL = 0x200000, /* PF_KTHREAD: a thread of the kernel's own */
};

struct takt_proc_stat {
	char state;	    /* field 3: R S D Z T t X I */
	int32_t ppid;	    /* field 4 */
	int32_t pgrp;	    /* field 5 */
	int32_t session;    /* field 6 */
	uint32_t flags;	    /* field 9, TAKT_PROC_* */
	uint64_t cpu_ticks; /* fields 14 and 15: processor time of all its threads so far */
	int32_t threads; /* field 20; 0: it is being released. A leader that has ended may have left
			    others behind. */
	uint64_t start_ticks; /* field 22, clock ticks since boot */
	/* Addresses; 0 of a thread of the kernel, of the ending, and in the middle of an execve. */
	uint64_t code_start; /* field 26 */
	uint64_t env_start;  /* field 50, this and the next 0 also where we may not look */
	uint64_t env_end;    /* field 51 */
};

/* Fills *ret, or -EINVAL and *ret untouched when `text` is not such a line. */
int takt_proc_stat_parse(const char *text, struct takt_proc_stat *ret);
/* Of that process: -ESRCH if it is gone, -EACCES if /proc hides it. */
int takt_proc_stat_read(int32_t pid, struct takt_proc_stat *ret, struct takt_err *err);

#endif
