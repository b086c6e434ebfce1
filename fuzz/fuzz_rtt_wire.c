/* SPDX-License-Identifier: Apache-2.0 */
/* Datagrams of probes, as they come and with the right signature under them: what is accepted is
 * packed to the same bytes again, and nothing makes a machine answer without end. */
#include "fuzz_input.h"
#include "rtt/rtt.h"

static const struct takt_rtt_key key = {.len = 32, .bytes = "a key of this test, of 32 bytes."};

static void hear(struct takt_rtt *rtt, const uint8_t *bytes, size_t size)
{
	struct takt_rtt_datagram datagram;
	uint8_t again[TAKT_RTT_BYTES];
	struct takt_mono now = {TAKT_NS_PER_S};
	int answers = 0;

	if (takt_rtt_unpack(bytes, size, &key, &datagram) == 0) {
		takt_rtt_pack(&datagram, &key, again);
		fuzz_expect(size == sizeof(again) && memcmp(again, bytes, size) == 0);
	}
	for (int i = 0; i < 8; i++)
		answers += takt_rtt_hear(rtt, 0, bytes, size, now, again);
	fuzz_expect(answers <= TAKT_RTT_ANSWERS_A_SECOND);
	fuzz_expect(rtt->peer[0].bins.count == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t secret[TAKT_RTT_SECRET];
	struct takt_rtt_datagram datagram = {.kind = TAKT_RTT_ASK};
	uint8_t bytes[TAKT_RTT_BYTES];
	struct takt_rtt rtt;

	takt_rtt_init(&rtt, 1, &key, secret);
	hear(&rtt, data, size);
	if (size < 1 + 4 * sizeof(uint64_t))
		return 0;
	datagram.kind = (enum takt_rtt_kind)(TAKT_RTT_ASK + data[0] % TAKT_RTT_CHALLENGE);
	memcpy(&datagram.session, data + 1, sizeof(uint64_t));
	memcpy(&datagram.seq, data + 9, sizeof(uint64_t));
	memcpy(&datagram.cookie, data + 17, sizeof(uint64_t));
	memcpy(&datagram.token, data + 25, sizeof(uint64_t));
	takt_rtt_pack(&datagram, &key, bytes);
	takt_rtt_init(&rtt, 1, &key, secret);
	hear(&rtt, bytes, sizeof(bytes));
	return 0;
}
