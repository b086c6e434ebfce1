/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/booking.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "base/timetext.h"

static const int64_t hour_ms = INT64_C(3600000);
static const int64_t day_ms = 24 * INT64_C(3600000);
static const int64_t week_ms = 7 * 24 * INT64_C(3600000);

enum {
	ABSENT_AHEAD_DAYS = 14,
	ABSENT_LONGEST_DAYS = 1,
};

/*
 * Which rules hold.
 */

/* The nearest section above that is there: of "lab/vision/cats" that of "lab/vision", or "lab". */
static const struct takt_share_rule *above(const struct takt_share_rules *rules,
					   const struct takt_share_rule *rule)
{
	const struct takt_share_rule *found = NULL;
	char name[sizeof(rule->name)];
	char *slash;

	takt_strcpy(name, sizeof(name), rule->name);
	while (!found && (slash = strrchr(name, '/'))) {
		*slash = '\0';
		found = takt_share_rule_tenant(rules, name);
	}
	return found;
}

/* After a user's own section that of his tenant, and those above it; NULL = no more. */
static const struct takt_share_rule *next_rule(const struct takt_share_rules *rules,
					       const struct takt_share_rule *rule)
{
	if (!rule->of_user)
		return above(rules, rule);
	return rule->tenant[0] ? takt_share_rule_tenant(rules, rule->tenant) : NULL;
}

static const struct takt_share_rule *first_rule(const struct takt_booker *booker)
{
	return takt_share_rule_user(booker->rules, booker->user, booker->uid);
}

static void add_limit(struct takt_booking_terms *terms, const struct takt_share_rule *rule)
{
	if (!rule->reserve.has_hours || terms->limit_count == TAKT_BOOKING_MAX_LIMITS)
		return;
	terms->limits[terms->limit_count++] = (struct takt_booking_limit){
		.rule = rule,
		.week_gpu_ms = (int64_t)rule->reserve.week_milli_h * hour_ms / 1000,
	};
}

/* Of what only one rule may say the nearest counts. */
void takt_booking_terms(const struct takt_booker *booker, struct takt_booking_terms *ret)
{
	bool approval_said = false;

	*ret = (struct takt_booking_terms){.limit_count = 0};
	for (const struct takt_share_rule *rule = first_rule(booker); rule;
	     rule = next_rule(booker->rules, rule)) {
		const struct takt_reserve_rule *reserve = &rule->reserve;

		add_limit(ret, rule);
		if (ret->ahead_ms == 0)
			ret->ahead_ms = (int64_t)reserve->ahead_ms;
		if (ret->longest_ms == 0)
			ret->longest_ms = (int64_t)reserve->longest_ms;
		if (reserve->has_approval && !approval_said)
			ret->needs_approval = reserve->needs_approval;
		approval_said |= reserve->has_approval;
	}
	for (uint32_t i = 0; i < ret->limit_count; i++)
		if (ret->limits[i].week_gpu_ms == 0)
			ret->limit_count = 0;
	if (ret->ahead_ms == 0)
		ret->ahead_ms = ABSENT_AHEAD_DAYS * day_ms;
	if (ret->longest_ms == 0)
		ret->longest_ms = ABSENT_LONGEST_DAYS * day_ms;
}

/*
 * What is booked.
 */

static bool is(const struct takt_reservation *at, const char *state)
{
	return strcmp(at->state, state) == 0;
}

bool takt_reservation_counts(const struct takt_reservation *reservation)
{
	return is(reservation, "granted");
}

int64_t takt_reservation_kept_until_ms(const struct takt_reservation *reservation)
{
	return reservation->until_ms + day_ms + (reservation->booked ? week_ms : 0);
}

/* What was refused was never had, nor what nobody decided on in time. */
static bool is_charged(const struct takt_reservation *at, int64_t now_ms)
{
	return at->booked && !is(at, "refused") && (!is(at, "waiting") || at->until_ms > now_ms);
}

static bool is_below(const char *tenant, const char *of)
{
	size_t len = strlen(of);

	return strncmp(tenant, of, len) == 0 && (!tenant[len] || tenant[len] == '/');
}

/* Whether a booking counts against the rule: of a user his own, of a tenant those of all who count
 * for it or below it. "[user *]" is everybody's own. */
static bool is_under(const struct takt_booker *booker, const struct takt_share_rule *rule,
		     const struct takt_reservation *at)
{
	const struct takt_share_rule *theirs;

	if (rule->of_user)
		return at->uid == booker->uid;
	theirs = takt_share_rule_user(booker->rules, at->user, at->uid);
	return theirs && theirs->tenant[0] && is_below(theirs->tenant, rule->name);
}

static int64_t overlap_ms(int64_t from, int64_t until, int64_t other_from, int64_t other_until)
{
	int64_t start = from > other_from ? from : other_from;
	int64_t end = until < other_until ? until : other_until;

	return end > start ? end - start : 0;
}

/* What is added up: what is booked against a rule, and a booking that is asked for (NULL = none).
 */
struct tally {
	const struct takt_booker *booker;
	const struct takt_share_rule *rule;
	const struct takt_orders_view *orders;
	const struct takt_reservation *asked;
	int64_t now_ms;
};

/* GPU time of one in the seven days from `from_ms` on. */
static int64_t part_of(const struct takt_reservation *at, int64_t from_ms)
{
	return overlap_ms(from_ms, from_ms + week_ms, at->from_ms, at->until_ms) *
	       __builtin_popcountll(at->gpu_mask);
}

static int64_t week_from(const struct tally *tally, int64_t from_ms)
{
	int64_t sum = tally->asked ? part_of(tally->asked, from_ms) : 0;

	for (uint32_t i = 0; i < tally->orders->reservation_count; i++) {
		const struct takt_reservation *at = &tally->orders->reservations[i];

		if (is_charged(at, tally->now_ms) && is_under(tally->booker, tally->rule, at))
			sum += part_of(at, from_ms);
	}
	return sum;
}

/* A span that is looked at; whole seven days that touch it count. */
struct span {
	int64_t from_ms, until_ms;
};

/* The fullest seven days so far. */
struct week {
	int64_t from_ms, gpu_ms;
};

static void look_at(const struct tally *tally, const struct span *span, int64_t from_ms,
		    struct week *fullest)
{
	bool touches = from_ms < span->until_ms && span->from_ms < from_ms + week_ms;
	int64_t gpu_ms = touches ? week_from(tally, from_ms) : 0;

	if (gpu_ms > fullest->gpu_ms)
		*fullest = (struct week){from_ms, gpu_ms};
}

/* They are among those that begin where a booking does, or end where one does. */
static struct week fullest_week(const struct tally *tally, const struct span *span)
{
	struct week fullest = {.from_ms = span->from_ms};

	look_at(tally, span, span->from_ms, &fullest);
	look_at(tally, span, span->until_ms - week_ms, &fullest);
	for (uint32_t i = 0; i < tally->orders->reservation_count; i++) {
		const struct takt_reservation *at = &tally->orders->reservations[i];

		look_at(tally, span, at->from_ms, &fullest);
		look_at(tally, span, at->until_ms - week_ms, &fullest);
	}
	return fullest;
}

/* "[user *]", "[tenant lab]". */
static void rule_text(const struct takt_share_rule *rule, char ret[80])
{
	snprintf(ret, 80, "[%s %s]", rule->of_user ? "user" : "tenant", rule->name);
}

static int64_t left_of(const struct takt_booking_limit *limit, int64_t used)
{
	return used < limit->week_gpu_ms ? limit->week_gpu_ms - used : 0;
}

void takt_booking_show(const struct takt_booker *booker, const struct takt_orders_view *orders,
		       int64_t now_ms, struct takt_booking_view *ret)
{
	const struct span span = {now_ms, now_ms + week_ms};
	struct takt_booking_terms terms;

	takt_booking_terms(booker, &terms);
	*ret = (struct takt_booking_view){
		.may = terms.limit_count > 0,
		.approval = terms.needs_approval,
		.ahead_ms = terms.ahead_ms,
		.longest_ms = terms.longest_ms,
	};
	for (uint32_t i = 0; i < terms.limit_count; i++) {
		const struct takt_booking_limit *limit = &terms.limits[i];
		const struct tally tally = {booker, limit->rule, orders, NULL, now_ms};
		int64_t left = left_of(limit, fullest_week(&tally, &span).gpu_ms);

		if (i > 0 && left >= ret->left_gpu_ms)
			continue;
		rule_text(limit->rule, ret->rule);
		ret->week_gpu_ms = limit->week_gpu_ms;
		ret->left_gpu_ms = left;
	}
}

/*
 * Whether a booking may be.
 */

/* "12.5", of GPU hours: what is not whole is rounded down. */
static void hours_text(int64_t gpu_ms, char ret[32])
{
	int64_t tenths = gpu_ms * 10 / hour_ms;

	if (tenths % 10 == 0)
		snprintf(ret, 32, "%" PRId64, tenths / 10);
	else
		snprintf(ret, 32, "%" PRId64 ".%" PRId64, tenths / 10, tenths % 10);
}

static void span_text(int64_t ms, char ret[TAKT_DURATION_TEXT])
{
	takt_duration_text((uint64_t)ms * TAKT_NS_PER_MS, ret);
}

static int check_times(const struct takt_booking_terms *terms, const struct takt_reservation *asked,
		       int64_t now_ms, struct takt_err *err)
{
	char is_text[TAKT_DURATION_TEXT], may_text[TAKT_DURATION_TEXT];

	span_text(asked->until_ms - asked->from_ms, is_text);
	span_text(terms->longest_ms, may_text);
	if (asked->until_ms - asked->from_ms > terms->longest_ms)
		return takt_err_set(err, -TAKT_E_LIMIT,
				    "a booking may last %s (reserve_longest of tenants_file); this "
				    "one would last %s",
				    may_text, is_text);
	span_text(asked->from_ms - now_ms, is_text);
	span_text(terms->ahead_ms, may_text);
	if (asked->from_ms - now_ms > terms->ahead_ms)
		return takt_err_set(err, -TAKT_E_LIMIT,
				    "a booking may begin %s from now at the latest (reserve_ahead "
				    "of tenants_file); this one would begin in %s",
				    may_text, is_text);
	return 0;
}

static int check_limit(const struct takt_booker *booker, const struct takt_booking_limit *limit,
		       const struct takt_orders_view *orders, const struct takt_reservation *asked,
		       int64_t now_ms, struct takt_err *err)
{
	const struct span span = {asked->from_ms, asked->until_ms};
	const struct tally tally = {booker, limit->rule, orders, asked, now_ms};
	const struct week fullest = fullest_week(&tally, &span);
	int64_t wants = part_of(asked, fullest.from_ms);
	char rule[80], most[32], want[32], rest[32];

	if (fullest.gpu_ms <= limit->week_gpu_ms)
		return 0;
	rule_text(limit->rule, rule);
	hours_text(limit->week_gpu_ms, most);
	hours_text(wants, want);
	hours_text(left_of(limit, fullest.gpu_ms - wants), rest);
	return takt_err_set(err, -TAKT_E_LIMIT,
			    "%s of tenants_file leaves %s GPU hours around that time, of %s in any "
			    "seven days (reserve_gpu_hours); this booking takes %s",
			    rule, rest, most, want);
}

static int check_limits(const struct takt_booker *booker, const struct takt_booking_terms *terms,
			const struct takt_orders_view *orders, const struct takt_reservation *asked,
			int64_t now_ms, struct takt_err *err)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < terms->limit_count; i++)
		rc = check_limit(booker, &terms->limits[i], orders, asked, now_ms, err);
	return rc;
}

static bool is_in_the_way(const struct takt_reservation *at, const struct takt_reservation *asked,
			  int64_t now_ms)
{
	return at->id != asked->id && at->gpu_mask & asked->gpu_mask && at->until_ms > now_ms &&
	       (takt_reservation_counts(at) || is(at, "waiting")) &&
	       overlap_ms(at->from_ms, at->until_ms, asked->from_ms, asked->until_ms) > 0;
}

static int check_free(const struct takt_orders_view *orders, const struct takt_reservation *asked,
		      int64_t now_ms, struct takt_err *err)
{
	for (uint32_t i = 0; i < orders->reservation_count; i++) {
		const struct takt_reservation *at = &orders->reservations[i];

		if (!is_in_the_way(at, asked, now_ms))
			continue;
		return takt_err_set(err, -TAKT_E_CONFLICT,
				    "GPU %d is taken then by reservation %" PRIu64
				    "%s ('takt gpu' has its times); choose another GPU or time",
				    __builtin_ctzll(at->gpu_mask & asked->gpu_mask), at->id,
				    is(at, "waiting") ? ", which waits for an answer" : "");
	}
	return 0;
}

static int check_room(const struct takt_booker *booker, const struct takt_orders_view *orders,
		      struct takt_err *err)
{
	uint32_t all = 0, own = 0;

	for (uint32_t i = 0; i < orders->reservation_count; i++) {
		all += orders->reservations[i].booked;
		own += orders->reservations[i].booked && orders->reservations[i].uid == booker->uid;
	}
	if (own >= TAKT_MAX_BOOKINGS_A_USER || all >= TAKT_MAX_BOOKINGS)
		return takt_err_set(
			err, -TAKT_E_LIMIT,
			"you have %u bookings, all users together %u, those of the last "
			"eight days counted; there may be %d and %d",
			(unsigned)own, (unsigned)all, TAKT_MAX_BOOKINGS_A_USER, TAKT_MAX_BOOKINGS);
	return 0;
}

int takt_booking_check(const struct takt_booker *booker, const struct takt_orders_view *orders,
		       const struct takt_reservation *asked, int64_t now_ms, const char **ret_state,
		       struct takt_err *err)
{
	struct takt_booking_terms terms;
	int rc;

	takt_booking_terms(booker, &terms);
	if (terms.limit_count == 0)
		return takt_err_set(err, -EPERM,
				    "no rule of tenants_file lets you reserve GPUs "
				    "(reserve_gpu_hours); an administrator can, or can give you "
				    "some hours");
	rc = check_times(&terms, asked, now_ms, err);
	if (rc == 0)
		rc = check_free(orders, asked, now_ms, err);
	if (rc == 0)
		rc = check_limits(booker, &terms, orders, asked, now_ms, err);
	if (rc == 0)
		rc = check_room(booker, orders, err);
	if (rc == 0)
		*ret_state = terms.needs_approval ? "waiting" : "granted";
	return rc;
}

/*
 * What becomes of it.
 */

struct takt_reservation *takt_reservation_find(struct takt_orders_view *orders, uint64_t id)
{
	for (uint32_t i = 0; i < orders->reservation_count; i++)
		if (orders->reservations[i].id == id)
			return &orders->reservations[i];
	return NULL;
}

static int no_such(uint64_t id, struct takt_err *err)
{
	return takt_err_set(err, -TAKT_E_NOT_FOUND, "there is no reservation %" PRIu64, id);
}

static int find_waiting(struct takt_orders_view *orders, uint64_t id, struct takt_reservation **ret,
			struct takt_err *err)
{
	*ret = takt_reservation_find(orders, id);
	if (!*ret)
		return no_such(id, err);
	return is(*ret, "waiting")
		       ? 0
		       : takt_err_set(err, -TAKT_E_CONFLICT,
				      "reservation %" PRIu64 " waits for nobody's answer: it is %s",
				      id, (*ret)->state);
}

int takt_booking_approve(struct takt_orders_view *orders, uint64_t id, const char *by,
			 int64_t now_ms, struct takt_err *err)
{
	struct takt_reservation *booking;
	int rc = find_waiting(orders, id, &booking, err);

	if (rc == 0 && booking->until_ms <= now_ms)
		rc = takt_err_set(err, -TAKT_E_CONFLICT,
				  "the time of reservation %" PRIu64 " is over", id);
	if (rc == 0)
		rc = check_free(orders, booking, now_ms, err);
	if (rc < 0)
		return rc;
	takt_strcpy(booking->state, sizeof(booking->state), "granted");
	takt_strcpy(booking->decided_by, sizeof(booking->decided_by), by);
	return 0;
}

int takt_booking_refuse(struct takt_orders_view *orders, uint64_t id, const char *by,
			const char *why, struct takt_err *err)
{
	struct takt_reservation *booking;
	int rc = find_waiting(orders, id, &booking, err);

	if (rc < 0)
		return rc;
	takt_strcpy(booking->state, sizeof(booking->state), "refused");
	takt_strcpy(booking->decided_by, sizeof(booking->decided_by), by);
	takt_strcpy(booking->answer, sizeof(booking->answer), why);
	return 0;
}

static void forget(struct takt_orders_view *orders, const struct takt_reservation *at)
{
	size_t place = (size_t)(at - orders->reservations);

	orders->reservation_count--;
	memmove(&orders->reservations[place], &orders->reservations[place + 1],
		(orders->reservation_count - place) * sizeof(orders->reservations[0]));
}

/* Of a booking that has begun the rest is given back; nobody gets back what he has had by giving it
 * up at the end. */
int takt_booking_release(struct takt_orders_view *orders, uint64_t id, const char *by,
			 int64_t now_ms, struct takt_err *err)
{
	struct takt_reservation *at = takt_reservation_find(orders, id);
	bool had = at && at->booked && takt_reservation_counts(at) && at->from_ms < now_ms;

	if (!at)
		return no_such(id, err);
	if ((had && at->until_ms <= now_ms) || is(at, "released"))
		return takt_err_set(err, -TAKT_E_CONFLICT, "reservation %" PRIu64 " is over", id);
	if (!had) {
		forget(orders, at);
		return 0;
	}
	at->until_ms = now_ms;
	takt_strcpy(at->state, sizeof(at->state), "released");
	takt_strcpy(at->decided_by, sizeof(at->decided_by), by);
	return 0;
}
