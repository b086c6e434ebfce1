/* SPDX-License-Identifier: Apache-2.0 */
/* How much GPU memory a user's jobs of a name took the last time. */
#ifndef TAKT_DAEMON_PEAKS_H
#define TAKT_DAEMON_PEAKS_H

#include "store/store.h"

struct takt_peaks;

int takt_peaks_new(struct takt_store *store, struct takt_peaks **ret, struct takt_err *err);
void takt_peaks_free(struct takt_peaks *peaks);
/* A job has ended. */
void takt_peaks_note(struct takt_peaks *peaks, uid_t uid, const char *name,
		     const struct takt_job_report *report);
/* Bytes on one GPU; 0 = not known. */
uint64_t takt_peaks_last(const struct takt_peaks *peaks, uid_t uid, const char *name);

#endif
