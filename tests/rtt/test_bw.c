/* SPDX-License-Identifier: Apache-2.0 */
/* What two machines say to each other around a load, and the pace of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "base/timetypes.h"
#include "rtt/bw_pace.h"
#include "rtt/bw_wire.h"

static const struct takt_rtt_key key = {.len = 32, .bytes = "a key that both of them have, 32"};
static const struct takt_rtt_key other = {.len = 32, .bytes = "a key that nobody of them has 32"};
static const struct takt_bw_hello hello = {TAKT_BW_MIN_CAP, 5, "a nonce"};

static void a_hello_comes_as_it_was_sent(void **state)
{
	struct takt_bw_hello read;
	uint8_t bytes[TAKT_BW_HELLO_BYTES];

	takt_bw_hello_pack(&hello, bytes);
	assert_int_equal(takt_bw_hello_unpack(bytes, &read), 0);
	assert_int_equal(read.cap_bits_per_s, hello.cap_bits_per_s);
	assert_int_equal(read.seconds, hello.seconds);
	assert_memory_equal(read.nonce, hello.nonce, TAKT_BW_NONCE);
	for (size_t bit = 0; bit < 64; bit++) { /* magic and version */
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_int_equal(takt_bw_hello_unpack(bytes, &read), -TAKT_E_CORRUPT);
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

static void bounds_are_not_the_peers_to_widen(void **state)
{
	static const struct {
		uint64_t cap;
		uint32_t seconds;
		int rc;
	} rows[] = {
		{TAKT_BW_MAX_CAP, TAKT_BW_MAX_SECONDS, 0},
		{TAKT_BW_MAX_CAP + 1, 1, -TAKT_E_CORRUPT},
		{TAKT_BW_MIN_CAP - 1, 1, -TAKT_E_CORRUPT},
		{0, 1, -TAKT_E_CORRUPT},
		{TAKT_BW_MIN_CAP, 0, -TAKT_E_CORRUPT},
		{TAKT_BW_MIN_CAP, TAKT_BW_MAX_SECONDS + 1, -TAKT_E_CORRUPT},
	};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(rows); i++) {
		struct takt_bw_hello asked = {rows[i].cap, rows[i].seconds, {0}}, read;
		uint8_t bytes[TAKT_BW_HELLO_BYTES];

		takt_bw_hello_pack(&asked, bytes);
		assert_int_equal(takt_bw_hello_unpack(bytes, &read), rows[i].rc);
	}
}

/* Another key, another side, another run, or terms that were changed on the way. */
static void a_proof_is_of_one_side_of_one_run(void **state)
{
	uint8_t caller[TAKT_BW_HELLO_BYTES], listener[TAKT_BW_HELLO_BYTES], mac[TAKT_RTT_MAC];
	struct takt_bw_hello again = hello;
	struct takt_rtt_key session, wrong;

	takt_bw_hello_pack(&hello, caller);
	again.nonce[0] ^= 1;
	takt_bw_hello_pack(&again, listener);
	takt_bw_session(&key, caller, listener, &session);
	takt_bw_prove(&session, TAKT_BW_CALLER, mac);
	assert_true(takt_bw_is_proof(&session, TAKT_BW_CALLER, mac));
	assert_false(takt_bw_is_proof(&session, TAKT_BW_LISTENER, mac));
	takt_bw_session(&other, caller, listener, &wrong);
	assert_false(takt_bw_is_proof(&wrong, TAKT_BW_CALLER, mac));
	takt_bw_session(&key, listener, caller, &wrong);
	assert_false(takt_bw_is_proof(&wrong, TAKT_BW_CALLER, mac));
	for (size_t at = 0; at < TAKT_BW_HELLO_BYTES; at++) {
		listener[at] ^= 1;
		takt_bw_session(&key, caller, listener, &wrong);
		assert_false(takt_bw_is_proof(&wrong, TAKT_BW_CALLER, mac));
		listener[at] ^= 1;
	}
}

static void a_note_is_of_this_run(void **state)
{
	const struct takt_bw_note note = {TAKT_BW_DONE, TAKT_BW_GANG, 0x0102030405060708};
	struct takt_bw_note read = {.bytes = 7};
	uint8_t bytes[TAKT_BW_NOTE_BYTES];

	takt_bw_note_pack(&note, &key, bytes);
	assert_int_equal(takt_bw_note_unpack(bytes, &other, &read), -EPERM);
	for (size_t bit = 0; bit < 8 * sizeof(bytes); bit++) {
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_true(takt_bw_note_unpack(bytes, &key, &read) < 0);
		bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	assert_int_equal(read.bytes, 7);
	assert_int_equal(takt_bw_note_unpack(bytes, &key, &read), 0);
	assert_int_equal(read.kind, note.kind);
	assert_int_equal(read.end, note.end);
	assert_int_equal(read.bytes, note.bytes);
}

/* Whenever one looks: every 7 ms, with a second in which nobody did. */
static void a_cap_holds_at_any_time(void **state)
{
	struct takt_bw_pace pace = {1000000, 100000, 0};
	uint64_t sent = 0, most = 0, at_ms;

	for (at_ms = 0; at_ms <= 3000; at_ms += at_ms == 1001 ? 1000 : 7) {
		uint64_t now = takt_bw_pace_allow(&pace, at_ms * TAKT_NS_PER_MS);

		pace.used_bytes += now;
		sent += now;
		most = now > most ? now : most;
		assert_true(sent <= at_ms * 1000);
		assert_int_equal(takt_bw_pace_allow(&pace, at_ms * TAKT_NS_PER_MS), 0);
	}
	assert_int_equal(most, 100000);
	assert_in_range(sent, 1900000, 2100000); /* two seconds' and a burst, not three */
}

static void without_a_burst_nothing_is_lost(void **state)
{
	struct takt_bw_pace pace = {TAKT_BW_MAX_CAP / 8, UINT64_MAX, 0};

	assert_int_equal(takt_bw_pace_allow(&pace, 0), 0);
	assert_int_equal(takt_bw_pace_allow(&pace, 120 * TAKT_NS_PER_S), 15000000000000);
	pace.used_bytes = 15000000000000;
	assert_int_equal(takt_bw_pace_allow(&pace, 119 * TAKT_NS_PER_S), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_hello_comes_as_it_was_sent),
		cmocka_unit_test(bounds_are_not_the_peers_to_widen),
		cmocka_unit_test(a_proof_is_of_one_side_of_one_run),
		cmocka_unit_test(a_note_is_of_this_run),
		cmocka_unit_test(a_cap_holds_at_any_time),
		cmocka_unit_test(without_a_burst_nothing_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
