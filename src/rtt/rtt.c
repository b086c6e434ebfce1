/* SPDX-License-Identifier: Apache-2.0 */
#include "rtt/rtt.h"

#include <errno.h>
#include <string.h>

enum {
	FOR_COOKIE = 1, /* what a mixed number is for */
	FOR_TOKEN = 2,
};

const char *takt_rtt_refusal_name(enum takt_rtt_refusal refusal)
{
	static const char *const names[TAKT_RTT_REFUSALS] = {"stranger", "malformed", "forged",
							     "replayed", "stale",     "too_many"};

	return names[refusal];
}

void takt_rtt_init(struct takt_rtt *rtt, uint32_t count, const struct takt_rtt_key *key,
		   const uint8_t secret[TAKT_RTT_SECRET])
{
	memset(rtt, 0, sizeof(*rtt));
	rtt->key = *key;
	rtt->count = count;
	rtt->secret.len = TAKT_RTT_SECRET - sizeof(rtt->session);
	memcpy(rtt->secret.bytes, secret, rtt->secret.len);
	memcpy(&rtt->session, secret + rtt->secret.len, sizeof(rtt->session));
	rtt->session |= 1; /* 0 is nobody's */
}

static bool refuse(struct takt_rtt *rtt, enum takt_rtt_refusal why)
{
	rtt->refused[why]++;
	return false;
}

static void send_ask(struct takt_rtt *rtt, struct takt_rtt_peer *peer, struct takt_mono now,
		     uint8_t ret[TAKT_RTT_BYTES])
{
	uint64_t number = (uint64_t)(peer - rtt->peer);
	struct takt_rtt_datagram ask = {TAKT_RTT_ASK, rtt->session, ++peer->seq, peer->cookie};

	ask.token = peer->token = takt_rtt_mix(&rtt->secret, FOR_TOKEN, number, peer->seq);
	peer->asked_at = now;
	peer->under_way = true;
	takt_rtt_pack(&ask, &rtt->key, ret);
}

void takt_rtt_ask(struct takt_rtt *rtt, uint32_t number, struct takt_mono now,
		  uint8_t ret[TAKT_RTT_BYTES])
{
	struct takt_rtt_peer *peer = &rtt->peer[number];

	if (peer->under_way) {
		peer->lost++;
		peer->lost_in_a_row++;
	}
	peer->may_ask_again = true;
	send_ask(rtt, peer, now, ret);
}

static uint64_t cookie_for(const struct takt_rtt *rtt, const struct takt_rtt_peer *peer,
			   uint64_t session)
{
	uint64_t number = (uint64_t)(peer - rtt->peer);

	return takt_rtt_mix(&rtt->secret, FOR_COOKIE | number << 8, peer->generation, session);
}

static bool has_answers_left(struct takt_rtt_peer *peer, struct takt_mono now)
{
	if (takt_mono_elapsed_ns(now, peer->second) >= TAKT_NS_PER_S) {
		peer->second = now;
		peer->answers = 0;
	}
	return peer->answers++ < TAKT_RTT_ANSWERS_A_SECOND;
}

static bool reply(struct takt_rtt *rtt, struct takt_rtt_peer *peer, struct takt_mono now,
		  struct takt_rtt_datagram *heard, enum takt_rtt_kind kind, uint64_t cookie,
		  uint8_t ret[TAKT_RTT_BYTES])
{
	if (!has_answers_left(peer, now))
		return refuse(rtt, TAKT_RTT_TOO_MANY);
	heard->kind = kind;
	heard->cookie = cookie;
	takt_rtt_pack(heard, &rtt->key, ret);
	return true;
}

static bool hear_ask(struct takt_rtt *rtt, struct takt_rtt_peer *peer, struct takt_mono now,
		     struct takt_rtt_datagram *ask, uint8_t ret[TAKT_RTT_BYTES])
{
	uint64_t cookie;

	if (ask->session == peer->session) {
		if (ask->cookie != peer->held_cookie || ask->seq <= peer->highest_seq)
			return refuse(rtt, TAKT_RTT_REPLAYED);
		peer->highest_seq = ask->seq;
		return reply(rtt, peer, now, ask, TAKT_RTT_ANSWER, 0, ret);
	}
	cookie = cookie_for(rtt, peer, ask->session);
	if (ask->cookie != cookie) {
		if (ask->cookie != 0)
			(void)refuse(rtt, TAKT_RTT_STALE);
		return reply(rtt, peer, now, ask, TAKT_RTT_CHALLENGE, cookie, ret);
	}
	peer->session = ask->session;
	peer->held_cookie = cookie;
	peer->highest_seq = ask->seq;
	peer->generation++;
	return reply(rtt, peer, now, ask, TAKT_RTT_ANSWER, 0, ret);
}

static void count_trip(struct takt_rtt_peer *peer, uint64_t ns)
{
	peer->last_ns = ns;
	peer->least_ns = peer->bins.count && peer->least_ns < ns ? peer->least_ns : ns;
	peer->most_ns = peer->most_ns > ns ? peer->most_ns : ns;
	peer->lost_in_a_row = 0;
	takt_latency_add(&peer->bins, ns);
}

static bool hear_reply(struct takt_rtt *rtt, struct takt_rtt_peer *peer, struct takt_mono now,
		       const struct takt_rtt_datagram *heard, uint8_t ret[TAKT_RTT_BYTES])
{
	if (!peer->under_way || heard->session != rtt->session || heard->seq != peer->seq ||
	    heard->token != peer->token)
		return refuse(rtt, TAKT_RTT_REPLAYED);
	peer->under_way = false;
	if (heard->kind == TAKT_RTT_ANSWER) {
		count_trip(peer, takt_mono_elapsed_ns(now, peer->asked_at));
		return false;
	}
	peer->cookie = heard->cookie;
	if (!peer->may_ask_again)
		return false;
	peer->may_ask_again = false;
	send_ask(rtt, peer, now, ret);
	return true;
}

bool takt_rtt_hear(struct takt_rtt *rtt, uint32_t number, const uint8_t *bytes, size_t len,
		   struct takt_mono now, uint8_t ret[TAKT_RTT_BYTES])
{
	struct takt_rtt_datagram heard;
	int rc;

	if (number >= rtt->count)
		return refuse(rtt, TAKT_RTT_STRANGER);
	rc = takt_rtt_unpack(bytes, len, &rtt->key, &heard);
	if (rc < 0)
		return refuse(rtt, rc == -EPERM ? TAKT_RTT_FORGED : TAKT_RTT_MALFORMED);
	if (heard.kind == TAKT_RTT_ASK)
		return hear_ask(rtt, &rtt->peer[number], now, &heard, ret);
	return hear_reply(rtt, &rtt->peer[number], now, &heard, ret);
}
