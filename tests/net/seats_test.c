/* SPDX-License-Identifier: Apache-2.0 */
/* How connections are shared out: a user's share, what is kept for administrators, the surplus. */
#include <errno.h>
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

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_user_has_his_share),	     CASE(users_leave_some_to_administrators),
		CASE(administrators_may_have_all),   CASE(of_unknown_peers_nobody_has_a_share),
		CASE(without_memory_there_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
