/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Round trips between listed machines: what is sent, what is answered, what is refused. No clock
 * and no socket: the caller has both.
 *
 * A probe is answered once. To know an old one (of an earlier session of the prober, from before a
 * start of this side) from a new one without a clock that both trust, the answering side hands out
 * a cookie for the prober's session, made with a secret of its own; a session that takes over ends
 * every cookie handed out before. Within a session numbers only rise. An answer must bear the token
 * of the one probe that is under way.
 */
#ifndef TAKT_RTT_RTT_H
#define TAKT_RTT_RTT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/latency_bins.h"
#include "base/timetypes.h"
#include "rtt/rtt_peers.h"
#include "rtt/rtt_wire.h"

enum {
	TAKT_RTT_SECRET = 40,
	TAKT_RTT_ANSWERS_A_SECOND = 4, /* to one peer; an honest one needs 2 */
};

enum takt_rtt_refusal {
	TAKT_RTT_STRANGER,  /* from an address that is not listed */
	TAKT_RTT_MALFORMED, /* no such datagram */
	TAKT_RTT_FORGED,    /* made with another key */
	TAKT_RTT_REPLAYED,  /* heard before, or an answer to nothing */
	TAKT_RTT_STALE, /* with a cookie that holds no more: replayed, or from before our start */
	TAKT_RTT_TOO_MANY,
	TAKT_RTT_REFUSALS,
};
/* "stranger", "malformed", ... */
const char *takt_rtt_refusal_name(enum takt_rtt_refusal refusal);

struct takt_rtt_peer {
	/* What was measured. */
	uint64_t lost; /* not answered before the next was due */
	uint32_t lost_in_a_row;
	uint64_t last_ns, least_ns, most_ns; /* of those in bins */
	struct takt_latency_bins bins;

	/* As the one who asks. */
	uint64_t seq, cookie, token;
	struct takt_mono asked_at;
	bool under_way, may_ask_again;

	/* As the one who answers. */
	uint64_t session, held_cookie, highest_seq, generation;
	struct takt_mono second; /* since when answers are counted */
	uint32_t answers;
};

struct takt_rtt {
	struct takt_rtt_key key, secret;
	uint64_t session;
	uint32_t count;
	struct takt_rtt_peer peer[TAKT_RTT_MAX_PEERS];
	uint64_t refused[TAKT_RTT_REFUSALS];
};

/* secret: random bytes, new with each start. */
void takt_rtt_init(struct takt_rtt *rtt, uint32_t count, const struct takt_rtt_key *key,
		   const uint8_t secret[TAKT_RTT_SECRET]);
/* The next probe for a peer, to be sent at once; one that is still under way is lost. */
void takt_rtt_ask(struct takt_rtt *rtt, uint32_t peer, struct takt_mono now,
		  uint8_t ret[TAKT_RTT_BYTES]);
/* A datagram from a peer, UINT32_MAX: from somebody else, came at `now`. True: send *ret back to
 * where it came from. */
bool takt_rtt_hear(struct takt_rtt *rtt, uint32_t peer, const uint8_t *bytes, size_t len,
		   struct takt_mono now, uint8_t ret[TAKT_RTT_BYTES]);

#endif
