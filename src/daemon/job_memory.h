/* SPDX-License-Identifier: Apache-2.0 */
/* What holds jobs to the GPU memory that they have reserved. */
#ifndef TAKT_DAEMON_JOB_MEMORY_H
#define TAKT_DAEMON_JOB_MEMORY_H

#include <stdbool.h>

#include "store/store.h"

/* Whether programs with this environment (NULL-terminated) would find the MPS control daemon of the
 * administrator's, whose pipes are in `dir`, and that runs. No other path is looked at, and what
 * there is not root's, or this process's user's, counts as nothing. */
bool takt_mps_runs(const char *dir, char *const *env);

/* "enforced by MIG", "enforced by MPS", "watched", "whole GPU"; "" = it has no GPU. */
const char *takt_job_memory_word(const struct takt_job *row);

#endif
