/* SPDX-License-Identifier: Apache-2.0 */
/* What holds jobs to the GPU memory that they have reserved. */
#ifndef TAKT_DAEMON_JOB_MEMORY_H
#define TAKT_DAEMON_JOB_MEMORY_H

#include <stdbool.h>

#include "store/store.h"

/* Whether the MPS control daemon runs that programs with this environment (NULL-terminated) would
 * find. */
bool takt_mps_runs(char *const *env);

/* "enforced by MIG", "enforced by MPS", "watched", "whole GPU"; "" = it has no GPU. */
const char *takt_job_memory_word(const struct takt_job *row);

#endif
