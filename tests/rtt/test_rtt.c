/* SPDX-License-Identifier: Apache-2.0 */
/* Two machines that probe each other over a wire of this test's: it delays, loses, repeats, forges
 * and remembers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "rtt/rtt.h"

static struct takt_rtt_key key = {.len = 32, .bytes = "a key that both of them have, 32"};
static struct takt_rtt_key other = {.len = 32, .bytes = "a key that nobody of them has 32"};
static struct takt_rtt left, right; /* each the other's peer 0 */
static struct takt_mono now;
static uint8_t wire[TAKT_RTT_BYTES], back[TAKT_RTT_BYTES];

static void start(struct takt_rtt *rtt, uint8_t seed)
{
	uint8_t secret[TAKT_RTT_SECRET];

	memset(secret, seed, sizeof(secret));
	takt_rtt_init(rtt, 1, &key, secret);
}

static int begin(void **state)
{
	start(&left, 1);
	start(&right, 2);
	now.ns = 1000 * TAKT_NS_PER_S;
	return 0;
}

static bool hear(struct takt_rtt *who, const uint8_t *bytes, uint8_t *ret)
{
	return takt_rtt_hear(who, 0, bytes, TAKT_RTT_BYTES, now, ret);
}

/* One probe of the left one and all that follows, each way taking so long. Leaves the last ask in
 * `wire` and its answer in `back`. */
static void probe(uint64_t way_ns)
{
	uint8_t next[TAKT_RTT_BYTES];
	bool more = true;

	now.ns += TAKT_NS_PER_S;
	takt_rtt_ask(&left, 0, now, wire);
	while (more) {
		now.ns += way_ns;
		if (!hear(&right, wire, back))
			return;
		now.ns += way_ns;
		more = hear(&left, back, next);
		if (more)
			memcpy(wire, next, sizeof(wire));
	}
}

static uint64_t refused_in_all(const struct takt_rtt *rtt)
{
	uint64_t sum = 0;

	for (int i = 0; i < TAKT_RTT_REFUSALS; i++)
		sum += rtt->refused[i];
	return sum;
}

static void a_round_trip_is_what_it_took(void **state)
{
	const struct takt_rtt_peer *peer = &left.peer[0];

	probe(40 * TAKT_NS_PER_US);
	assert_int_equal(peer->bins.count, 1);
	assert_int_equal(peer->last_ns, 80 * TAKT_NS_PER_US);
	probe(10 * TAKT_NS_PER_US);
	probe(300 * TAKT_NS_PER_US);
	assert_int_equal(peer->bins.count, 3);
	assert_int_equal(peer->least_ns, 20 * TAKT_NS_PER_US);
	assert_int_equal(peer->most_ns, 600 * TAKT_NS_PER_US);
	assert_int_equal(peer->bins.sum_ns, 700 * TAKT_NS_PER_US);
	assert_int_equal(peer->bins.bin[1], 1);
	assert_int_equal(peer->bins.bin[3], 1);
	assert_int_equal(peer->bins.bin[6], 1);
	assert_int_equal(takt_latency_below_ns(&peer->bins, 500), 100 * TAKT_NS_PER_US);
	assert_int_equal(takt_latency_below_ns(&peer->bins, 990), TAKT_NS_PER_MS);
	assert_int_equal(peer->lost, 0);
	assert_int_equal(refused_in_all(&left) + refused_in_all(&right), 0);
}

static void a_lost_probe_is_counted_and_no_round_trip(void **state)
{
	const struct takt_rtt_peer *peer = &left.peer[0];

	probe(1000);
	for (int i = 0; i < 3; i++)
		takt_rtt_ask(&left, 0, now, wire);
	assert_int_equal(peer->lost, 2);
	assert_int_equal(peer->lost_in_a_row, 2);
	assert_int_equal(peer->bins.count, 1);
	probe(1000);
	assert_int_equal(peer->lost, 3);
	assert_int_equal(peer->lost_in_a_row, 0);
	assert_int_equal(peer->bins.count, 2);
}

static void what_was_heard_is_not_answered_again(void **state)
{
	uint8_t ask[TAKT_RTT_BYTES], answer[TAKT_RTT_BYTES];

	probe(1000);
	memcpy(ask, wire, sizeof(ask));
	memcpy(answer, back, sizeof(answer));
	for (int i = 0; i < 100; i++)
		assert_false(hear(&right, ask, back));
	assert_int_equal(right.refused[TAKT_RTT_REPLAYED], 100);
	assert_false(hear(&left, answer, back));
	takt_rtt_ask(&left, 0, now, wire);
	assert_false(hear(&left, answer, back));
	assert_int_equal(left.refused[TAKT_RTT_REPLAYED], 2);
	assert_int_equal(left.peer[0].bins.count, 1);
}

/* Everything that an earlier session sent, hellos too, after the prober was started again. */
static void an_earlier_session_is_over(void **state)
{
	uint8_t hello[TAKT_RTT_BYTES], ask[TAKT_RTT_BYTES];

	takt_rtt_ask(&left, 0, now, hello);
	probe(1000);
	memcpy(ask, wire, sizeof(ask));
	start(&left, 3);
	probe(1000);
	assert_int_equal(left.peer[0].bins.count, 1);
	now.ns += TAKT_NS_PER_S;
	assert_true(hear(&right, ask, back)); /* with a challenge */
	assert_int_equal(right.refused[TAKT_RTT_STALE], 1);
	assert_false(hear(&left, back, wire));
	assert_true(hear(&right, hello, back));
	assert_false(hear(&left, back, wire));
	assert_int_equal(left.refused[TAKT_RTT_REPLAYED], 2);
	probe(1000);
	assert_int_equal(left.peer[0].bins.count, 2);
	assert_int_equal(left.peer[0].lost, 0);
}

static void who_is_started_again_takes_nothing_old(void **state)
{
	uint8_t ask[TAKT_RTT_BYTES];

	probe(1000);
	memcpy(ask, wire, sizeof(ask));
	start(&right, 4);
	assert_true(hear(&right, ask, back));
	assert_int_equal(back[5], TAKT_RTT_CHALLENGE);
	assert_int_equal(right.refused[TAKT_RTT_STALE], 1);
	probe(1000);
	assert_int_equal(left.peer[0].bins.count, 2);
	assert_int_equal(left.peer[0].lost, 0);
}

static void forged_ones_are_refused_and_counted(void **state)
{
	const struct takt_rtt_datagram ask = {TAKT_RTT_ASK, 5, 1, 0, 7};

	takt_rtt_pack(&ask, &other, wire);
	assert_false(hear(&right, wire, back));
	assert_int_equal(right.refused[TAKT_RTT_FORGED], 1);
	probe(1000);
	for (size_t bit = 0; bit < 8 * sizeof(wire); bit++) {
		wire[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_false(hear(&right, wire, back));
		wire[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	assert_int_equal(right.refused[TAKT_RTT_FORGED] + right.refused[TAKT_RTT_MALFORMED],
			 1 + 8 * sizeof(wire));
	assert_int_equal(right.refused[TAKT_RTT_REPLAYED], 0);
}

static void strangers_and_noise_are_not_answered(void **state)
{
	takt_rtt_ask(&left, 0, now, wire);
	assert_false(takt_rtt_hear(&right, UINT32_MAX, wire, sizeof(wire), now, back));
	assert_int_equal(right.refused[TAKT_RTT_STRANGER], 1);
	for (size_t len = 0; len < sizeof(wire); len++)
		assert_false(takt_rtt_hear(&right, 0, wire, len, now, back));
	assert_int_equal(right.refused[TAKT_RTT_MALFORMED], sizeof(wire));
}

static void nobody_gets_many_answers_a_second(void **state)
{
	uint32_t answers = 0;

	probe(1000);
	now.ns += TAKT_NS_PER_S;
	for (int i = 0; i < 50; i++) {
		takt_rtt_ask(&left, 0, now, wire);
		answers += hear(&right, wire, back);
	}
	assert_int_equal(answers, TAKT_RTT_ANSWERS_A_SECOND);
	assert_int_equal(right.refused[TAKT_RTT_TOO_MANY], 50 - TAKT_RTT_ANSWERS_A_SECOND);
	/* With the headers of Ethernet, IP and UDP, both asking and answering. */
	assert_true((2 * 2 + 2 * TAKT_RTT_ANSWERS_A_SECOND) * (TAKT_RTT_BYTES + 62) < 10000);
}

/* Somebody who can only send challenges again does not make two machines talk without end. */
static void a_challenge_is_heeded_once_a_probe(void **state)
{
	struct takt_rtt_datagram ask;

	takt_rtt_ask(&left, 0, now, wire);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(takt_rtt_unpack(wire, sizeof(wire), &key, &ask), 0);
		ask.kind = TAKT_RTT_CHALLENGE;
		takt_rtt_pack(&ask, &key, back);
		assert_int_equal(hear(&left, back, wire), i == 0);
	}
}

static void lists_of_peers_are_read_or_refused(void **state)
{
	static const struct {
		const char *text, *says;
	} wrong[] = {
		{"10.0.0.2:9833", "NAME=ADDRESS:PORT"},
		{"a b=10.0.0.2:9833", "NAME=ADDRESS:PORT"},
		{"b\"=10.0.0.2:9833", "NAME=ADDRESS:PORT"},
		{"b=host:9833", "numeric address"},
		{"b=10.0.0.2", "numeric address"},
		{"b=10.0.0.2:0", "numeric address"},
		{"b=10.0.0.2:65536", "numeric address"},
		{"b=fd00::2:9833", "numeric address"},
		{"b=[fd00::2]:9833", "IPv4"},
		{"b=10.0.0.2:9833, b=10.0.0.3:9833", "twice"},
		{"b=10.0.0.2:9833, c=10.0.0.2:9833", "twice"},
	};
	struct takt_rtt_peers peers;
	struct takt_err err;

	assert_int_equal(takt_rtt_peers_parse("a=10.0.0.2:9833, b-2=10.0.0.3:1,c=10.0.0.2:9834",
					      AF_INET, &peers, &err),
			 0);
	assert_int_equal(peers.count, 3);
	assert_string_equal(peers.peer[1].name, "b-2");
	assert_string_equal(peers.peer[1].text, "10.0.0.3:1");
	assert_false(takt_rtt_same_address(&peers.peer[0].address, &peers.peer[2].address));
	assert_int_equal(takt_rtt_peers_parse("a=[fd00::2]:9833", AF_INET6, &peers, &err), 0);
	assert_int_equal(takt_rtt_peers_parse("", AF_INET, &peers, &err), 0);
	assert_int_equal(peers.count, 0);
	for (size_t i = 0; i < TAKT_ARRAY_LEN(wrong); i++) {
		assert_int_equal(takt_rtt_peers_parse(wrong[i].text, AF_INET, &peers, &err),
				 -TAKT_E_USAGE);
		assert_non_null(strstr(err.msg, wrong[i].says));
	}
}

static void too_many_peers_are_refused(void **state)
{
	struct takt_str text = TAKT_STR(4096);
	struct takt_rtt_peers peers;
	struct takt_err err;

	for (int i = 1; i <= TAKT_RTT_MAX_PEERS + 1; i++)
		assert_true(takt_str_addf(&text, "n%d=10.0.0.%d:9833,", i, i) >= 0);
	assert_int_equal(takt_rtt_peers_parse(text.s, AF_INET, &peers, &err), -TAKT_E_USAGE);
	assert_non_null(strstr(err.msg, "at most 32"));
	takt_str_fini(&text);
}

static int read_key(const char *text, mode_t mode, struct takt_err *err)
{
	char path[] = "/tmp/takt-rtt-key-XXXXXX";
	struct takt_rtt_key read;
	int fd = mkstemp(path), rc;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
	rc = takt_rtt_key_read(path, &read, err);
	unlink(path);
	if (rc == 0)
		assert_int_equal(read.len, strcspn(text, "\n"));
	return rc;
}

static void a_key_is_long_and_secret(void **state)
{
	static const char good[] = "0123456789abcdef0123456789abcdef\n";
	struct takt_rtt_key read;
	struct takt_err err;
	char large[TAKT_RTT_KEY_MOST + 2];

	memset(large, 'x', sizeof(large) - 1);
	large[sizeof(large) - 1] = '\0';
	assert_int_equal(read_key(good, 0600, &err), 0);
	assert_int_equal(read_key(good, 0400, &err), 0);
	assert_int_equal(read_key(large + 1, 0600, &err), 0);
	assert_int_equal(read_key(large, 0600, &err), -TAKT_E_USAGE);
	assert_int_equal(read_key(good, 0640, &err), -EPERM);
	assert_non_null(strstr(err.msg, "chmod 600"));
	assert_int_equal(read_key(good, 0604, &err), -EPERM);
	assert_int_equal(read_key("too short\n", 0600, &err), -TAKT_E_USAGE);
	assert_non_null(strstr(err.msg, "32"));
	assert_int_equal(takt_rtt_key_read("/nonexistent/key", &read, &err), -ENOENT);
	assert_int_equal(takt_rtt_key_read("/dev/null", &read, &err), -TAKT_E_USAGE);
}

#define CASE(name) cmocka_unit_test_setup(name, begin)
int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_round_trip_is_what_it_took),
		CASE(a_lost_probe_is_counted_and_no_round_trip),
		CASE(what_was_heard_is_not_answered_again),
		CASE(an_earlier_session_is_over),
		CASE(who_is_started_again_takes_nothing_old),
		CASE(forged_ones_are_refused_and_counted),
		CASE(strangers_and_noise_are_not_answered),
		CASE(nobody_gets_many_answers_a_second),
		CASE(a_challenge_is_heeded_once_a_probe),
		CASE(lists_of_peers_are_read_or_refused),
		CASE(too_many_peers_are_refused),
		CASE(a_key_is_long_and_secret),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
