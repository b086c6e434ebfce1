/* SPDX-License-Identifier: Apache-2.0 */
/* Ending what runs below a process that is a child subreaper, and in the leaf of its job. Private
 * to this room. */
#ifndef TAKT_LAUNCH_BELOW_H
#define TAKT_LAUNCH_BELOW_H

#include <stdint.h>

/* SIGKILL to all that sits in `leaf` ("" = there is none) and to all that descends from `root`, but
 * once: what forks meanwhile may be missed. -ENOMEM and the like: who descends from it is not
 * known. */
int takt_below_kill(int32_t root, const char *leaf);

/* The same below us again and again, and every child that ends is waited for, until none is left.
 * What outforks that may fork no more. -ETIMEDOUT once limit_ms are over; 0 = however long it
 * takes. */
int takt_below_end(const char *leaf, uint32_t limit_ms);

#endif
