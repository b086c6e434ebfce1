/* SPDX-License-Identifier: Apache-2.0 */
/* What is said around a load, as it comes and with the right signature under it: what is accepted
 * is packed to the same bytes again, and within the bounds. */
#include "fuzz_input.h"
#include "rtt/bw_wire.h"

static const struct takt_rtt_key key = {.len = 32, .bytes = "a key of this test, of 32 bytes."};

static void read_hello(const uint8_t bytes[TAKT_BW_HELLO_BYTES])
{
	uint8_t again[TAKT_BW_HELLO_BYTES];
	struct takt_bw_hello hello;

	if (takt_bw_hello_unpack(bytes, &hello) < 0)
		return;
	fuzz_expect(hello.seconds >= 1 && hello.seconds <= TAKT_BW_MAX_SECONDS);
	fuzz_expect(hello.cap_bits_per_s >= TAKT_BW_MIN_CAP &&
		    hello.cap_bits_per_s <= TAKT_BW_MAX_CAP);
	takt_bw_hello_pack(&hello, again);
	fuzz_expect(memcmp(again, bytes, sizeof(again)) == 0);
}

static void read_note(const uint8_t bytes[TAKT_BW_NOTE_BYTES])
{
	uint8_t again[TAKT_BW_NOTE_BYTES];
	struct takt_bw_note note;

	if (takt_bw_note_unpack(bytes, &key, &note) < 0)
		return;
	takt_bw_note_pack(&note, &key, again);
	fuzz_expect(memcmp(again, bytes, sizeof(again)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t note[TAKT_BW_NOTE_BYTES];

	if (size >= TAKT_BW_HELLO_BYTES)
		read_hello(data);
	if (size < TAKT_BW_NOTE_BYTES)
		return 0;
	read_note(data);
	memcpy(note, data, sizeof(note));
	takt_rtt_sign(&key, note, sizeof(note) - TAKT_RTT_MAC, note + sizeof(note) - TAKT_RTT_MAC);
	read_note(note);
	return 0;
}
