/* SPDX-License-Identifier: Apache-2.0 */
/* Root for others starts with an environment of its own: what a caller's LD_LIBRARY_PATH or the
 * like would make of its libraries must not be. Used by each process of takt's that can be root. */
#ifndef TAKT_DAEMON_CLEAN_START_H
#define TAKT_DAEMON_CLEAN_START_H

#include "base/err.h"

/* A variable that is kept: the driver's library to which those that are dropped led. Nothing is
 * loaded by it, it is told. */
#define TAKT_UNUSED_NVML "TAKT_UNUSED_NVML"

/*
 * First thing of a main(), once it is known that we are root for others. Where the environment has
 * more than the few names that we need, executes this program again, with the same arguments and
 * those alone: the loader has read its variables before main() began. 0 when it is clean; negative
 * when that cannot be done.
 */
int takt_clean_start(char **argv, struct takt_err *err);

/* One that began by /proc/self/exe is called "exe" by the kernel, and so by ps, systemctl and
 * whoever asks who has a lock: it is called as its command line says instead. */
void takt_keep_name(char **argv);

#endif
