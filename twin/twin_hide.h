/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library that lacks functions, as one of an older driver does: a copy in which their names are
 * spoilt. It is kept beside the machine's file, in a folder FILE.without, and goes with the
 * machine.
 */
#ifndef TAKT_TWIN_HIDE_H
#define TAKT_TWIN_HIDE_H

#include <stddef.h>

#include "base/err.h"

/* `names` with commas. The copy's folder is written to `ret`. */
int twin_hide(const char *machine, const char *library, const char *names, char *ret, size_t size,
	      struct takt_err *err);

/* Removes what was made for a machine. */
void twin_hide_clear(const char *machine);

#endif
