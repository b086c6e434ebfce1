/* SPDX-License-Identifier: Apache-2.0 */
/* How much of a load may be passed now, so that a cap holds. What was not used within `burst_bytes`
 * is lost, so that no stall is made up for by a rush. */
#ifndef TAKT_RTT_BW_PACE_H
#define TAKT_RTT_BW_PACE_H

#include <stdint.h>

struct takt_bw_pace {
	uint64_t bytes_per_s;
	uint64_t burst_bytes; /* UINT64_MAX = nothing is lost */
	uint64_t used_bytes;
};

/* Bytes that may be passed this long after the beginning; never more in all than the cap by then.
 * At caps up to 1 Tbit/s for up to two minutes. */
uint64_t takt_bw_pace_allow(struct takt_bw_pace *pace, uint64_t elapsed_ns);

#endif
