/* SPDX-License-Identifier: Apache-2.0 */
/* Round trips to the machines that are probed. JSON as in views.h. */
#ifndef TAKT_CODEC_NET_VIEW_H
#define TAKT_CODEC_NET_VIEW_H

#include "codec/views.h"

enum {
	TAKT_NET_VIEW_MAX_PEERS = 64,
	TAKT_NET_VIEW_MAX_REFUSED = 8,
};

struct takt_net_peer_view {
	char name[64], address[64];
	char state[16]; /* "answers", "silent"; "unknown" before the first probe is over */
	uint64_t answered, lost;
	/* Absent (0) before the first answer. below: a bound of the histogram that 99 of 100 do not
	 * exceed; 0 also where it is beyond the last, a second. */
	uint64_t last_ns, least_ns, mean_ns, most_ns, p99_below_ns;
};

struct takt_net_refused_view {
	char reason[16];
	uint64_t count;
};

struct takt_net_view {
	char listen[64]; /* "" = no probes are sent or answered */
	uint32_t peer_count, refused_count;
	struct takt_net_peer_view peers[TAKT_NET_VIEW_MAX_PEERS];
	struct takt_net_refused_view refused[TAKT_NET_VIEW_MAX_REFUSED];
};

int takt_net_view_to_json(const struct takt_net_view *view, struct takt_str *out);
int takt_net_view_from_json(const char *text, size_t len, struct takt_net_view *ret,
			    struct takt_err *err);

#endif
