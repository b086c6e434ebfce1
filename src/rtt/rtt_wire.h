/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The datagram of round-trip probes: 72 bytes, the same for each kind, so that an answer is never
 * larger than what asked for it. Numbers are big-endian.
 *
 *	 0  "takt", version, kind, two bytes 0
 *	 8  session: whose probes these are, new with each start of a prober
 *	16  seq: rises with each probe of a session
 *	24  cookie: of the answering side, see rtt.h
 *	32  token: cannot be guessed by who has not seen the probe
 *	40  HMAC-SHA256 of the above
 */
#ifndef TAKT_RTT_RTT_WIRE_H
#define TAKT_RTT_RTT_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum {
	TAKT_RTT_BYTES = 72,
	TAKT_RTT_MAC = 32, /* HMAC-SHA256 */
	TAKT_RTT_VERSION = 1,
	TAKT_RTT_KEY_LEAST = 32, /* bytes of a key */
	TAKT_RTT_KEY_MOST = 1024,
};

enum takt_rtt_kind {
	TAKT_RTT_ASK = 1,
	TAKT_RTT_ANSWER,
	TAKT_RTT_CHALLENGE, /* ask again with this cookie */
};

struct takt_rtt_datagram {
	enum takt_rtt_kind kind;
	uint64_t session, seq, cookie, token;
};

struct takt_rtt_key {
	size_t len;
	uint8_t bytes[TAKT_RTT_KEY_MOST];
};

void takt_rtt_sign(const struct takt_rtt_key *key, const uint8_t *bytes, size_t len,
		   uint8_t ret[TAKT_RTT_MAC]);
bool takt_rtt_is_signed(const struct takt_rtt_key *key, const uint8_t *bytes, size_t len,
			const uint8_t mac[TAKT_RTT_MAC]);
void takt_rtt_pack(const struct takt_rtt_datagram *datagram, const struct takt_rtt_key *key,
		   uint8_t ret[TAKT_RTT_BYTES]);
/* -TAKT_E_CORRUPT: not such a datagram; -EPERM: not made with this key. *ret is untouched then. */
int takt_rtt_unpack(const uint8_t *bytes, size_t len, const struct takt_rtt_key *key,
		    struct takt_rtt_datagram *ret);
/* A number that nobody knows who has not the key: of two others. Never 0. */
uint64_t takt_rtt_mix(const struct takt_rtt_key *key, uint64_t a, uint64_t b, uint64_t c);

/* A key from a file of at least 32 bytes, a newline at the end not counted, that only its owner can
 * read: ours or root's. -EPERM, -TAKT_E_USAGE and what opening it says, with `path` in the message.
 */
int takt_rtt_key_read(const char *path, struct takt_rtt_key *ret, struct takt_err *err);

#endif
