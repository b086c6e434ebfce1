/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often something that does not come is asked for: after a first pause, then after pauses that
 * double up to a longest. What takt waits for may stay away for as long as it likes (a GPU, a
 * driver, a disk, a helper, a peer): it is asked all the same, and costs no more than rest.
 *
 * Whoever waits counts failures in a row and keeps the time before which he does not ask again, by
 * the clock that he goes by.
 */
#ifndef TAKT_BASE_PACE_H
#define TAKT_BASE_PACE_H

#include <stdint.h>

#include "base/timetypes.h" /* who waits has units of time at hand */

struct takt_pace {
	uint64_t first_ns, longest_ns;
};

/* The pause after a failure that so many came before, in a row. */
uint64_t takt_pace_ns(const struct takt_pace *pace, uint32_t failures);

#endif
