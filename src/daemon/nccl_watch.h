/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the NCCL of running jobs says of its operations: every ten seconds the files of
 * config.nccl_inspector are read that belong to the user of a job which holds the GPU and that were
 * written since it began. Nobody else's are heeded.
 */
#ifndef TAKT_DAEMON_NCCL_WATCH_H
#define TAKT_DAEMON_NCCL_WATCH_H

#include "base/timetypes.h"

struct takt_daemon;

/* Looks when it is due; nothing where config.nccl_inspector is "". That the folder cannot be opened
 * is logged once and tried again. */
void takt_nccl_watch_tick(struct takt_daemon *daemon, struct takt_mono now);

#endif
