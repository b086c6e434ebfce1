/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The metrics page as a file, for node_exporter's textfile collector: written anew every 15 seconds
 * and renamed into place, so that a reader finds a whole page.
 */
#ifndef TAKT_DAEMON_METRICS_FILE_H
#define TAKT_DAEMON_METRICS_FILE_H

#include "base/timetypes.h"

struct takt_daemon;

/* Writes when it is due; nothing where config.metrics_textfile is "". A failure is logged once and
 * tried again when the next is due; the file stays as it was. */
void takt_metrics_file_tick(struct takt_daemon *daemon, struct takt_mono now);
/* takt ends: an old page shown as a present one would be made up. */
void takt_metrics_file_remove(struct takt_daemon *daemon);

#endif
