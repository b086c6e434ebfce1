/* SPDX-License-Identifier: Apache-2.0 */
#include "rtt/bw_wire.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

enum {
	AT_VERSION = 7,
	AT_CAP = 8,
	AT_SECONDS = 16,
	AT_ZERO = 20,
	AT_NONCE = 24,
	NOTE_SIGNED = TAKT_BW_NOTE_BYTES - TAKT_RTT_MAC,
	NOTE_AT_END = 1,
	NOTE_AT_ZERO = 2,
	NOTE_AT_BYTES = 8,
};
_Static_assert((int)AT_NONCE + (int)TAKT_BW_NONCE == (int)TAKT_BW_HELLO_BYTES, "nothing after it");

static const uint8_t magic[AT_VERSION] = {'t', 'a', 'k', 't', ' ', 'b', 'w'};
static const uint8_t zeros[NOTE_AT_BYTES];

void takt_bw_hello_pack(const struct takt_bw_hello *hello, uint8_t ret[TAKT_BW_HELLO_BYTES])
{
	uint64_t cap = htobe64(hello->cap_bits_per_s);
	uint32_t seconds = htobe32(hello->seconds);

	memset(ret, 0, TAKT_BW_HELLO_BYTES);
	memcpy(ret, magic, sizeof(magic));
	ret[AT_VERSION] = TAKT_BW_VERSION;
	memcpy(ret + AT_CAP, &cap, sizeof(cap));
	memcpy(ret + AT_SECONDS, &seconds, sizeof(seconds));
	memcpy(ret + AT_NONCE, hello->nonce, TAKT_BW_NONCE);
}

int takt_bw_hello_unpack(const uint8_t bytes[TAKT_BW_HELLO_BYTES], struct takt_bw_hello *ret)
{
	uint64_t cap;
	uint32_t seconds;

	memcpy(&cap, bytes + AT_CAP, sizeof(cap));
	memcpy(&seconds, bytes + AT_SECONDS, sizeof(seconds));
	cap = be64toh(cap);
	seconds = be32toh(seconds);
	if (memcmp(bytes, magic, sizeof(magic)) != 0 || bytes[AT_VERSION] != TAKT_BW_VERSION ||
	    memcmp(bytes + AT_ZERO, zeros, AT_NONCE - AT_ZERO) != 0 || cap < TAKT_BW_MIN_CAP ||
	    cap > TAKT_BW_MAX_CAP || seconds < 1 || seconds > TAKT_BW_MAX_SECONDS)
		return -TAKT_E_CORRUPT;
	ret->cap_bits_per_s = cap;
	ret->seconds = seconds;
	memcpy(ret->nonce, bytes + AT_NONCE, TAKT_BW_NONCE);
	return 0;
}

void takt_bw_session(const struct takt_rtt_key *key, const uint8_t caller[TAKT_BW_HELLO_BYTES],
		     const uint8_t listener[TAKT_BW_HELLO_BYTES], struct takt_rtt_key *ret)
{
	uint8_t both[2 * TAKT_BW_HELLO_BYTES];

	memcpy(both, caller, TAKT_BW_HELLO_BYTES);
	memcpy(both + TAKT_BW_HELLO_BYTES, listener, TAKT_BW_HELLO_BYTES);
	ret->len = TAKT_RTT_MAC;
	takt_rtt_sign(key, both, sizeof(both), ret->bytes);
}

void takt_bw_prove(const struct takt_rtt_key *session, enum takt_bw_side side,
		   uint8_t ret[TAKT_RTT_MAC])
{
	const uint8_t text = (uint8_t)side;

	takt_rtt_sign(session, &text, 1, ret);
}

bool takt_bw_is_proof(const struct takt_rtt_key *session, enum takt_bw_side side,
		      const uint8_t mac[TAKT_RTT_MAC])
{
	const uint8_t text = (uint8_t)side;

	return takt_rtt_is_signed(session, &text, 1, mac);
}

void takt_bw_note_pack(const struct takt_bw_note *note, const struct takt_rtt_key *session,
		       uint8_t ret[TAKT_BW_NOTE_BYTES])
{
	uint64_t count = htobe64(note->bytes);

	memset(ret, 0, NOTE_SIGNED);
	ret[0] = (uint8_t)note->kind;
	ret[NOTE_AT_END] = (uint8_t)note->end;
	memcpy(ret + NOTE_AT_BYTES, &count, sizeof(count));
	takt_rtt_sign(session, ret, NOTE_SIGNED, ret + NOTE_SIGNED);
}

int takt_bw_note_unpack(const uint8_t bytes[TAKT_BW_NOTE_BYTES], const struct takt_rtt_key *session,
			struct takt_bw_note *ret)
{
	uint64_t count;

	if (bytes[0] < TAKT_BW_READY || bytes[0] > TAKT_BW_DONE ||
	    bytes[NOTE_AT_END] < TAKT_BW_TIME || bytes[NOTE_AT_END] > TAKT_BW_PEER ||
	    memcmp(bytes + NOTE_AT_ZERO, zeros, NOTE_AT_BYTES - NOTE_AT_ZERO) != 0)
		return -TAKT_E_CORRUPT;
	if (!takt_rtt_is_signed(session, bytes, NOTE_SIGNED, bytes + NOTE_SIGNED))
		return -EPERM;
	memcpy(&count, bytes + NOTE_AT_BYTES, sizeof(count));
	*ret = (struct takt_bw_note){(enum takt_bw_kind)bytes[0],
				     (enum takt_bw_end)bytes[NOTE_AT_END], be64toh(count)};
	return 0;
}
