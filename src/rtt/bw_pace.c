/* SPDX-License-Identifier: Apache-2.0 */
#include "rtt/bw_pace.h"

#include "base/timetypes.h"

uint64_t takt_bw_pace_allow(struct takt_bw_pace *pace, uint64_t elapsed_ns)
{
	uint64_t earned = pace->bytes_per_s * (elapsed_ns / TAKT_NS_PER_US) / 1000000;

	if (earned > pace->burst_bytes && pace->used_bytes < earned - pace->burst_bytes)
		pace->used_bytes = earned - pace->burst_bytes;
	return earned > pace->used_bytes ? earned - pace->used_bytes : 0;
}
