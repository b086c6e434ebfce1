/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Simulated GPUs must never be taken for real ones. So the twin refuses to run beside a real driver
 * (a /proc/driver/nvidia/version that is not the twin's own), except where somebody both says so
 * (TAKT_TWIN_FORCE=1) and loads the library by its path instead of by a search path that every
 * other program would follow too.
 */
#ifndef TAKT_TWIN_GUARD_H
#define TAKT_TWIN_GUARD_H

#include <stdbool.h>

bool twin_guard_real_driver(void);

/* May the library at `library_path` run all the same? */
bool twin_guard_forced(const char *library_path);

#endif
