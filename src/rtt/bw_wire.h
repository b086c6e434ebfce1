/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What two machines say to each other before and after a load over TCP (takt net bw), all numbers
 * in network byte order. No clock and no socket.
 *
 *   caller                      listener
 *     hello ------------------->           what it allows, and a nonce
 *           <------------------- hello
 *     proof ------------------->           that it has the key, over both hellos
 *           <------------------- proof
 *           <------------------- READY, or STOP
 *     the load ================>           zeros, until it closes its half
 *           <------------------- STOP      at any time: close your half
 *           <------------------- DONE      what came
 *
 * Both hellos are under every signature, so that nothing of another run counts.
 */
#ifndef TAKT_RTT_BW_WIRE_H
#define TAKT_RTT_BW_WIRE_H

#include "rtt/rtt_wire.h"

enum {
	TAKT_BW_NONCE = 32,
	TAKT_BW_HELLO_BYTES = 56,
	TAKT_BW_NOTE_BYTES = 16 + TAKT_RTT_MAC,
	TAKT_BW_VERSION = 1,
	TAKT_BW_MAX_SECONDS = 60,
};
#define TAKT_BW_MIN_CAP UINT64_C(1000000)	/* bits a second */
#define TAKT_BW_MAX_CAP UINT64_C(1000000000000) /* so that bytes times microseconds fit */

struct takt_bw_hello {
	uint64_t cap_bits_per_s;
	uint32_t seconds;
	uint8_t nonce[TAKT_BW_NONCE];
};
void takt_bw_hello_pack(const struct takt_bw_hello *hello, uint8_t ret[TAKT_BW_HELLO_BYTES]);
/* -TAKT_E_CORRUPT: no such hello, or beyond the bounds above; *ret is untouched then. */
int takt_bw_hello_unpack(const uint8_t bytes[TAKT_BW_HELLO_BYTES], struct takt_bw_hello *ret);

/* The key of one run. */
void takt_bw_session(const struct takt_rtt_key *key, const uint8_t caller[TAKT_BW_HELLO_BYTES],
		     const uint8_t listener[TAKT_BW_HELLO_BYTES], struct takt_rtt_key *ret);

enum takt_bw_side {
	TAKT_BW_CALLER = 1,
	TAKT_BW_LISTENER,
};
void takt_bw_prove(const struct takt_rtt_key *session, enum takt_bw_side side,
		   uint8_t ret[TAKT_RTT_MAC]);
bool takt_bw_is_proof(const struct takt_rtt_key *session, enum takt_bw_side side,
		      const uint8_t mac[TAKT_RTT_MAC]);

enum takt_bw_kind {
	TAKT_BW_READY = 1,
	TAKT_BW_STOP,
	TAKT_BW_DONE,
};
/* Why a run ended. */
enum takt_bw_end {
	TAKT_BW_TIME = 1,
	TAKT_BW_GANG,	 /* a job there has ranks on several GPUs */
	TAKT_BW_NO_TAKT, /* takt there does not say whether one has */
	TAKT_BW_PEER,	 /* the caller closed early */
};
struct takt_bw_note {
	enum takt_bw_kind kind;
	enum takt_bw_end end;
	uint64_t bytes; /* that came so far */
};
void takt_bw_note_pack(const struct takt_bw_note *note, const struct takt_rtt_key *session,
		       uint8_t ret[TAKT_BW_NOTE_BYTES]);
/* -TAKT_E_CORRUPT: no such note; -EPERM: not of this run. *ret is untouched then. */
int takt_bw_note_unpack(const uint8_t bytes[TAKT_BW_NOTE_BYTES], const struct takt_rtt_key *session,
			struct takt_bw_note *ret);

#endif
