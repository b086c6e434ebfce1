/* SPDX-License-Identifier: Apache-2.0 */
/* What users may book: which rules hold, how GPU hours are counted, who is in whose way. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "codec/booking.h"

enum {
	ADA = 1000,
	BOB = 1001,
	ZOE = 1002,
};

static const int64_t hour = 3600000;
static const int64_t day = 24 * INT64_C(3600000);
static const int64_t now = INT64_C(1764334800000); /* a Friday */

struct rig {
	struct takt_share_rules rules;
	struct takt_orders_view orders;
	struct takt_booker ada, bob, zoe;
	struct takt_err err;
	const char *state;
};

static struct rig rig;

static void rules(const char *text)
{
	takt_share_rules_fini(&rig.rules);
	memset(&rig, 0, sizeof(rig));
	assert_int_equal(takt_share_rules_parse(text, strlen(text), "f", &rig.rules, NULL), 0);
	rig.ada = (struct takt_booker){&rig.rules, "ada", ADA};
	rig.bob = (struct takt_booker){&rig.rules, "bob", BOB};
	rig.zoe = (struct takt_booker){&rig.rules, "zoe", ZOE};
}

static int close_rules(void **state)
{
	takt_share_rules_fini(&rig.rules);
	return 0;
}

static struct takt_reservation wish(const struct takt_booker *who, uint64_t gpus, int64_t from,
				    int64_t until)
{
	struct takt_reservation made = {
		.id = rig.orders.last_id + 1,
		.gpu_mask = gpus,
		.uid = who->uid,
		.from_ms = from,
		.until_ms = until,
		.booked = true,
	};

	takt_strcpy(made.user, sizeof(made.user), who->user);
	takt_strcpy(made.by, sizeof(made.by), who->user);
	return made;
}

/* As takt keeps it when it is taken. */
static int book_at(const struct takt_booker *who, uint64_t gpus, int64_t from, int64_t until,
		   int64_t at)
{
	struct takt_reservation made = wish(who, gpus, from, until);
	int rc = takt_booking_check(who, &rig.orders, &made, at, &rig.state, &rig.err);

	if (rc < 0)
		return rc;
	takt_strcpy(made.state, sizeof(made.state), rig.state);
	rig.orders.last_id = made.id;
	rig.orders.reservations[rig.orders.reservation_count++] = made;
	return 0;
}

static int book(const struct takt_booker *who, uint64_t gpus, int64_t from, int64_t until)
{
	return book_at(who, gpus, from, until, now);
}

static void says(const char *what)
{
	if (!strstr(rig.err.msg, what))
		fail_msg("'%s' does not say '%s'", rig.err.msg, what);
}

static int64_t left_hours(const struct takt_booker *who, int64_t at)
{
	struct takt_booking_view view;

	takt_booking_show(who, &rig.orders, at, &view);
	return view.left_gpu_ms / hour;
}

static void without_a_rule_nobody_books(void **state)
{
	struct takt_booking_view view;

	rules("[tenant lab]\nweight = 2\n[user ada]\ntenant = lab\nreserve_ahead = 30d\n");
	assert_int_equal(book(&rig.ada, 1, now, now + hour), -EPERM);
	says("no rule of tenants_file lets you reserve");
	says("reserve_gpu_hours");
	takt_booking_show(&rig.ada, &rig.orders, now, &view);
	assert_false(view.may);
}

/* His own section instead of everybody's, as for all that users may. */
static void a_users_own_section_goes_before_everybodys(void **state)
{
	rules("[user *]\nreserve_gpu_hours = 10\n[user bob]\nweight = 2\n[user zoe]\n"
	      "reserve_gpu_hours = 0\n");
	assert_int_equal(book(&rig.ada, 1, now, now + hour), 0);
	assert_string_equal(rig.state, "granted");
	assert_int_equal(book(&rig.bob, 2, now, now + hour), -EPERM);
	assert_int_equal(book(&rig.zoe, 2, now, now + hour), -EPERM);
}

static void hours_are_gpus_times_time_and_what_is_left_is_said(void **state)
{
	struct takt_booking_view view;

	rules("[user *]\nreserve_gpu_hours = 10\n");
	assert_int_equal(book(&rig.ada, 7, now + hour, now + 3 * hour), 0); /* 6 */
	assert_int_equal(book(&rig.ada, 3, now + 4 * hour, now + 7 * hour), -TAKT_E_LIMIT);
	says("[user *] of tenants_file leaves 4 GPU hours");
	says("of 10 in any seven days (reserve_gpu_hours); this booking takes 6");
	assert_int_equal(book(&rig.ada, 3, now + 4 * hour, now + 6 * hour), 0); /* to the last */
	assert_int_equal(book(&rig.ada, 1, now + 8 * hour, now + 8 * hour + 1), -TAKT_E_LIMIT);
	takt_booking_show(&rig.ada, &rig.orders, now, &view);
	assert_true(view.may && !view.approval);
	assert_string_equal(view.rule, "[user *]");
	assert_int_equal(view.week_gpu_ms, 10 * hour);
	assert_int_equal(view.left_gpu_ms, 0);
	/* Everybody has his own. */
	assert_int_equal(left_hours(&rig.bob, now), 10);
	assert_int_equal(book(&rig.bob, 1 << 7, now, now + 10 * hour), 0);
}

/* Any seven days count, wherever a calendar's week begins: a booking weighs on what lies within
 * seven days before its start and after its end, and on nothing else. */
static void any_seven_days_count(void **state)
{
	rules("[user *]\nreserve_gpu_hours = 10\nreserve_ahead = 60d\n");
	assert_int_equal(book(&rig.ada, 1, now + 7 * day, now + 7 * day + 10 * hour), 0);
	assert_int_equal(book(&rig.ada, 1, now + 13 * day, now + 13 * day + hour), -TAKT_E_LIMIT);
	says("leaves 0 GPU hours");
	assert_int_equal(book(&rig.ada, 1, now + day, now + day + hour), -TAKT_E_LIMIT);
	/* Seven days that end with this one's end no longer hold the first nine hours of that one.
	 */
	assert_int_equal(book(&rig.ada, 1, now + 14 * day, now + 14 * day + 9 * hour), 0);
	assert_int_equal(book(&rig.ada, 2, now + 14 * day, now + 14 * day + hour), -TAKT_E_LIMIT);
	/* Ends seven days before the end of one, and begins as much before it. */
	assert_int_equal(book(&rig.ada, 1, now, now + 10 * hour), 0);
}

/* The fullest seven days may begin and end where the one that is asked for does not. */
static void the_fullest_days_are_found(void **state)
{
	rules("[user *]\nreserve_gpu_hours = 260\nreserve_ahead = 60d\nreserve_longest = 6d\n");
	assert_int_equal(book(&rig.ada, 1, now, now + 5 * day), 0);
	assert_int_equal(book(&rig.ada, 0xf, now + 6 * day + 12 * hour, now + 8 * day), 0);
	/* From the second day to the end of the eighth: 4 + 6 days of GPUs, and one more. */
	assert_int_equal(book(&rig.ada, 1, now + 5 * day, now + 6 * day), -TAKT_E_LIMIT);
	says("leaves 20 GPU hours");
	assert_int_equal(book(&rig.ada, 1, now + 5 * day, now + 5 * day + 20 * hour), 0);
}

static void a_booking_may_not_be_longer_or_later_than_its_rules_say(void **state)
{
	rules("[user *]\nreserve_gpu_hours = 1000\nreserve_longest = 4h\nreserve_ahead = 2d\n");
	assert_int_equal(book(&rig.ada, 1, now, now + 4 * hour + 1), -TAKT_E_LIMIT);
	says("reserve_longest");
	says("4h00m");
	assert_int_equal(book(&rig.ada, 1, now + 2 * day + 1, now + 2 * day + hour), -TAKT_E_LIMIT);
	says("reserve_ahead");
	says("2d00h");
	assert_int_equal(book(&rig.ada, 1, now + 2 * day, now + 2 * day + 4 * hour), 0);
	/* Where nothing is said: two weeks ahead, a day at a time. */
	rules("[user *]\nreserve_gpu_hours = 1000\n");
	assert_int_equal(book(&rig.ada, 1, now, now + day + 1), -TAKT_E_LIMIT);
	assert_int_equal(book(&rig.ada, 1, now + 14 * day + 1, now + 15 * day), -TAKT_E_LIMIT);
	assert_int_equal(book(&rig.ada, 1, now + 14 * day, now + 15 * day), 0);
}

static void a_tenants_hours_are_for_all_who_count_for_it(void **state)
{
	struct takt_booking_view view;

	rules("[tenant lab]\nreserve_gpu_hours = 12\nreserve_longest = 6h\nreserve_approval = yes\n"
	      "[tenant lab/vision]\nreserve_gpu_hours = 100\nreserve_approval = no\n"
	      "[user ada]\ntenant = lab/vision\nreserve_gpu_hours = 8\n"
	      "[user bob]\ntenant = lab\n");
	assert_int_equal(book(&rig.ada, 1, now, now + 6 * hour), 0);
	assert_string_equal(rig.state, "granted"); /* the nearest section that says it */
	assert_int_equal(book(&rig.ada, 1, now + 6 * hour, now + 9 * hour), -TAKT_E_LIMIT);
	says("[user ada] of tenants_file leaves 2 GPU hours");
	assert_int_equal(book(&rig.bob, 2, now, now + 6 * hour), 0);
	assert_string_equal(rig.state, "waiting");
	/* What waits counts, and lab has no more; lab/vision has, and zoe no tenant. */
	assert_int_equal(book(&rig.ada, 4, now, now + hour), -TAKT_E_LIMIT);
	says("[tenant lab] of tenants_file leaves 0 GPU hours");
	assert_int_equal(book(&rig.zoe, 4, now, now + hour), -EPERM);
	takt_booking_show(&rig.ada, &rig.orders, now, &view);
	assert_string_equal(view.rule, "[tenant lab]");
	assert_int_equal(view.longest_ms, 6 * hour);
}

static void a_gpu_is_booked_once_at_a_time(void **state)
{
	rules("[user *]\nreserve_gpu_hours = 100\n[user bob]\nreserve_gpu_hours = 100\n"
	      "reserve_approval = yes\n");
	assert_int_equal(book(&rig.bob, 1, now + hour, now + 2 * hour), 0);
	assert_int_equal(book(&rig.ada, 3, now, now + hour + 1), -TAKT_E_CONFLICT);
	says("GPU 0 is taken then by reservation 1, which waits for an answer");
	assert_int_equal(book(&rig.ada, 3, now, now + hour), 0); /* up to the moment */
	assert_int_equal(book(&rig.ada, 1, now + 2 * hour, now + 3 * hour), 0);
	assert_int_equal(book(&rig.ada, 2, now + hour, now + 2 * hour), 0); /* another GPU */
	/* What was refused is in nobody's way, and counts against nobody. */
	assert_int_equal(takt_booking_refuse(&rig.orders, 1, "root", "no", NULL), 0);
	assert_int_equal(left_hours(&rig.bob, now), 100);
	assert_int_equal(book(&rig.ada, 1, now + hour, now + 2 * hour), 0);
}

static void an_administrator_answers_once_and_in_time(void **state)
{
	struct takt_reservation *admins = &rig.orders.reservations[2];

	rules("[user *]\nreserve_gpu_hours = 100\nreserve_approval = yes\n");
	assert_int_equal(book(&rig.ada, 1, now, now + hour), 0);
	assert_int_equal(book(&rig.ada, 2, now, now + hour), 0);
	assert_false(takt_reservation_counts(&rig.orders.reservations[0]));
	assert_int_equal(takt_booking_approve(&rig.orders, 1, "root", now, NULL), 0);
	assert_true(takt_reservation_counts(&rig.orders.reservations[0]));
	assert_string_equal(rig.orders.reservations[0].decided_by, "root");
	assert_int_equal(takt_booking_approve(&rig.orders, 1, "root", now, &rig.err),
			 -TAKT_E_CONFLICT);
	says("it is granted");
	assert_int_equal(takt_booking_refuse(&rig.orders, 1, "root", "late", NULL),
			 -TAKT_E_CONFLICT);
	assert_int_equal(takt_booking_approve(&rig.orders, 7, "root", now, NULL),
			 -TAKT_E_NOT_FOUND);
	assert_int_equal(takt_booking_approve(&rig.orders, 2, "root", now + hour, &rig.err),
			 -TAKT_E_CONFLICT);
	says("is over");
	/* Nobody has had it: it counts no more. */
	assert_int_equal(left_hours(&rig.ada, now), 98);
	assert_int_equal(left_hours(&rig.ada, now + hour), 99);
	/* Meanwhile an administrator has taken the GPU himself. */
	*admins = (struct takt_reservation){.id = 3,
					    .gpu_mask = 2,
					    .uid = UINT32_MAX,
					    .from_ms = now,
					    .until_ms = now + hour,
					    .state = "granted"};
	rig.orders.reservation_count = 3;
	assert_int_equal(takt_booking_approve(&rig.orders, 2, "root", now, &rig.err),
			 -TAKT_E_CONFLICT);
	says("GPU 1 is taken then by reservation 3");
}

static void what_was_used_goes_on_counting_after_a_release(void **state)
{
	rules("[user *]\nreserve_gpu_hours = 10\n");
	assert_int_equal(book(&rig.ada, 1, now, now + 8 * hour), 0);
	assert_int_equal(book(&rig.ada, 2, now + hour, now + 2 * hour), 0);
	/* One that has not begun is as if it had never been. */
	assert_int_equal(takt_booking_release(&rig.orders, 2, "ada", now + hour, NULL), 0);
	assert_null(takt_reservation_find(&rig.orders, 2));
	assert_int_equal(takt_booking_release(&rig.orders, 1, "ada", now + 3 * hour, NULL), 0);
	assert_false(takt_reservation_counts(&rig.orders.reservations[0]));
	assert_int_equal(left_hours(&rig.ada, now + 3 * hour), 7);
	/* It is not got back by being released again, nor its number by the next. */
	assert_int_equal(takt_booking_release(&rig.orders, 1, "ada", now + 4 * hour, NULL),
			 -TAKT_E_CONFLICT);
	assert_int_equal(book_at(&rig.ada, 1, now + 4 * hour, now + 5 * hour, now + 4 * hour), 0);
	assert_int_equal(rig.orders.reservations[1].id, 3);
	/* Nor when its time is over. */
	assert_int_equal(takt_booking_release(&rig.orders, 3, "ada", now + 6 * hour, NULL),
			 -TAKT_E_CONFLICT);
	assert_int_equal(left_hours(&rig.ada, now + 6 * hour), 6);
	/* Seven days later it is forgotten at last. */
	assert_int_equal(left_hours(&rig.ada, now + 5 * hour + 7 * day), 10);
	assert_true(takt_reservation_kept_until_ms(&rig.orders.reservations[1]) >=
		    now + 5 * hour + 7 * day);
}

static void nobody_fills_the_calendar_for_all(void **state)
{
	static char names[7][8];
	struct takt_booker others[7];
	int rc = 0, made = 0;

	rules("[user *]\nreserve_gpu_hours = 1000\n");
	for (int i = 0; i < TAKT_MAX_BOOKINGS_A_USER; i++)
		assert_int_equal(book(&rig.ada, 1, now + i * 60000, now + (i + 1) * 60000), 0);
	assert_int_equal(book(&rig.ada, 1, now + day, now + day + 1000), -TAKT_E_LIMIT);
	says("you have 32 bookings");
	for (int u = 0; u < 7; u++) {
		snprintf(names[u], sizeof(names[u]), "u%d", u);
		others[u] = (struct takt_booker){&rig.rules, names[u], 2000 + (uint32_t)u};
		for (int i = 0; rc == 0 && i < TAKT_MAX_BOOKINGS_A_USER; i++, made += rc == 0)
			rc = book(&others[u], UINT64_C(2) << u, now + i * 60000,
				  now + (i + 1) * 60000);
	}
	assert_int_equal(rc, -TAKT_E_LIMIT);
	assert_int_equal(made, TAKT_MAX_BOOKINGS - TAKT_MAX_BOOKINGS_A_USER);
	assert_true(rig.orders.reservation_count < TAKT_MAX_RESERVATIONS);
}

#define CASE(name) cmocka_unit_test_teardown(name, close_rules)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(without_a_rule_nobody_books),
		CASE(a_users_own_section_goes_before_everybodys),
		CASE(hours_are_gpus_times_time_and_what_is_left_is_said),
		CASE(any_seven_days_count),
		CASE(the_fullest_days_are_found),
		CASE(a_booking_may_not_be_longer_or_later_than_its_rules_say),
		CASE(a_tenants_hours_are_for_all_who_count_for_it),
		CASE(a_gpu_is_booked_once_at_a_time),
		CASE(an_administrator_answers_once_and_in_time),
		CASE(what_was_used_goes_on_counting_after_a_release),
		CASE(nobody_fills_the_calendar_for_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
