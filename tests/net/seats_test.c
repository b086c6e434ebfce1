/* SPDX-License-Identifier: Apache-2.0 */
/* How connections are shared out: a user's share, what is kept for administrators, the surplus. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "net/seats.h"

enum {
	ALICE = 1000,
	BOB,
	CAROL,
	DAVE,
};

static const struct takt_seats_limits limits = {.total = 20, .share = 5, .reserve = 5};
static struct takt_seats seats;

static int set_up(void **state)
{
	return takt_seats_init(&seats, &limits, NULL);
}

static int tear_down(void **state)
{
	takt_seats_fini(&seats);
	return 0;
}

static const char *why;

static struct takt_seat *take(uid_t uid, bool admin)
{
	why = NULL;
	return takt_seats_take(&seats,
			       &(struct takt_newcomer){.uid = uid, .admin = admin, .fd = -1}, &why);
}

static unsigned seated(uid_t uid, bool admin, unsigned tries)
{
	unsigned n = 0;

	for (unsigned i = 0; i < tries; i++)
		n += take(uid, admin) != NULL;
	return n;
}

static void a_user_has_his_share(void **state)
{
	struct takt_seat *first = take(ALICE, false);

	assert_int_equal(seated(ALICE, false, 4), 4);
	assert_null(take(ALICE, false));
	assert_non_null(strstr(why, "a user may hold 5 of the 20"));
	assert_int_equal(seated(BOB, false, 5), 5);
	takt_seats_leave(first);
	assert_int_equal(seated(ALICE, false, 2), 1);
}

static void users_leave_some_to_administrators(void **state)
{
	assert_int_equal(seated(ALICE, false, 5) + seated(BOB, false, 5) + seated(CAROL, false, 5),
			 15);
	assert_null(take(DAVE, false));
	assert_non_null(strstr(why, "5 of them for administrators only"));
	assert_int_equal(seated(0, true, 10), 5);
}

static void administrators_may_have_all(void **state)
{
	assert_int_equal(seated(0, true, 30), 20);
	assert_int_equal(seated(ALICE, false, 1), 0);
}

static void of_unknown_peers_nobody_has_a_share(void **state)
{
	const struct takt_seats_limits tcp = {.total = 8};

	takt_seats_fini(&seats);
	assert_int_equal(takt_seats_init(&seats, &tcp, NULL), 0);
	assert_int_equal(seated(TAKT_SEATS_NO_USER, false, 8), 8);
	assert_null(take(TAKT_SEATS_NO_USER, false));
	assert_non_null(strstr(why, "there are 8; ask again"));
}

static void without_memory_there_are_none(void **state)
{
	struct takt_seats none = {.seats = NULL};

	takt_alloc_fail_nth(1, 0);
	assert_int_equal(takt_seats_init(&none, &limits, NULL), -ENOMEM);
	takt_alloc_fail_nth(0, 0);
	assert_null(none.seats);
}

static struct takt_seat *take_from(int family, const char *address)
{
	struct sockaddr_storage from = {.ss_family = (sa_family_t)family};
	void *to = family == AF_INET ? (void *)&((struct sockaddr_in *)&from)->sin_addr
				     : (void *)&((struct sockaddr_in6 *)&from)->sin6_addr;

	why = NULL;
	assert_int_equal(inet_pton(family, address, to), 1);
	return takt_seats_take(
		&seats,
		&(struct takt_newcomer){.uid = TAKT_SEATS_NO_USER, .address = &from, .fd = -1},
		&why);
}

static void sit(const struct takt_seats_limits *tcp)
{
	takt_seats_fini(&seats);
	assert_int_equal(takt_seats_init(&seats, tcp, NULL), 0);
}

static const struct takt_seats_limits tcp = {
	.total = 8, .share = 3, .by_address = true, .user_share = 2, .spare = 3};

static void all_addresses_of_the_loopback_are_one(void **state)
{
	sit(&tcp);
	assert_non_null(take_from(AF_INET, "127.0.0.1"));
	assert_non_null(take_from(AF_INET, "127.200.3.4"));
	assert_non_null(take_from(AF_INET6, "::1"));
	assert_null(take_from(AF_INET, "127.0.0.9"));
	assert_null(take_from(AF_INET6, "::ffff:127.0.0.5"));
	assert_non_null(strstr(why, "an address may hold 3 of the 8"));
	assert_non_null(take_from(AF_INET, "128.0.0.1"));
	assert_non_null(take_from(AF_INET6, "fe80::1"));
}

/* Idle ones go first, then the one that has been waited for longest; an answer that is ours to give
 * is waited for by the client. */
static void whose_client_is_waited_for_goes_when_others_come(void **state)
{
	const struct takt_newcomer late = {.uid = TAKT_SEATS_NO_USER, .fd = -1};
	struct takt_seat *seat[4];

	sit(&(struct takt_seats_limits){.total = 4});
	for (int i = 0; i < 4; i++)
		seat[i] = take(TAKT_SEATS_NO_USER, false);
	takt_seat_is_at(&seats, seat[0], TAKT_SEAT_ANSWER, 1, 0);
	takt_seat_is_at(&seats, seat[1], TAKT_SEAT_SENT, 3, 100);
	takt_seat_is_at(&seats, seat[2], TAKT_SEAT_BODY, 2, 100);
	takt_seat_is_at(&seats, seat[3], TAKT_SEAT_HEAD, 9, 100);
	for (int i = 3; i > 0; i--) {
		assert_true(takt_seats_make_room(&seats, &late));
		assert_int_equal(seat[i]->stage, TAKT_SEAT_LEAVES);
	}
	assert_false(takt_seats_make_room(&seats, &late));
	assert_int_equal(seat[0]->stage, TAKT_SEAT_ANSWER);
}

static void an_answer_that_nobody_reads_has_an_end(void **state)
{
	struct takt_seat *seat = take(ALICE, false);

	takt_seat_is_at(&seats, seat, TAKT_SEAT_SENT, 10, 100);
	takt_seats_look(&seats, 109);
	assert_int_equal(seat->stage, TAKT_SEAT_SENT);
	takt_seats_look(&seats, 110);
	assert_int_equal(seat->stage, TAKT_SEAT_LEAVES);
}

/* Wherever he comes from; and all of them leave some to who is not known yet. */
static void who_is_known_by_his_requests_has_a_share(void **state)
{
	static const char *const from[] = {"10.0.0.1", "10.0.0.2", "10.0.0.3",
					   "10.0.0.4", "10.0.0.5", "10.0.0.6"};
	struct takt_seat *seat[6];

	sit(&tcp);
	for (int i = 0; i < 6; i++) {
		seat[i] = take_from(AF_INET, from[i]);
		takt_seat_is_at(&seats, seat[i], TAKT_SEAT_ANSWER, 1, 0);
	}
	assert_true(takt_seats_claim(&seats, seat[0], ALICE));
	assert_true(takt_seats_claim(&seats, seat[1], ALICE));
	assert_true(takt_seats_claim(&seats, seat[1], ALICE));
	assert_false(takt_seats_claim(&seats, seat[2], ALICE));
	assert_true(takt_seats_claim(&seats, seat[2], BOB));
	assert_true(takt_seats_claim(&seats, seat[3], BOB));
	assert_true(takt_seats_claim(&seats, seat[4], CAROL));
	assert_false(takt_seats_claim(&seats, seat[5], DAVE));
	takt_seat_is_at(&seats, seat[0], TAKT_SEAT_HEAD, 2, 0);
	assert_true(takt_seats_claim(&seats, seat[5], ALICE));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_user_has_his_share),
		CASE(users_leave_some_to_administrators),
		CASE(administrators_may_have_all),
		CASE(of_unknown_peers_nobody_has_a_share),
		CASE(without_memory_there_are_none),
		CASE(all_addresses_of_the_loopback_are_one),
		CASE(whose_client_is_waited_for_goes_when_others_come),
		CASE(an_answer_that_nobody_reads_has_an_end),
		CASE(who_is_known_by_his_requests_has_a_share),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
