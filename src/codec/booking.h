/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bookings: GPUs that a user reserves for himself, within what the administrator's file of tenants
 * leaves him. A pure function of rules, reservations, request and time: the same answer for the
 * same input.
 *
 * GPU hours count over any seven days, not over weeks of a calendar: so nobody has two weeks' share
 * in two days, and neither the time zone nor the change to summer time matters.
 */
#ifndef TAKT_CODEC_BOOKING_H
#define TAKT_CODEC_BOOKING_H

#include "codec/orders.h"
#include "codec/share_rules.h"

enum {
	TAKT_BOOKING_MAX_LIMITS =
		16, /* a user's own and those of his tenants, one above the other */
};

struct takt_booker {
	const struct takt_share_rules *rules;
	const char *user; /* his name */
	uint32_t uid;
};

/* Which rules hold for him. */
struct takt_booking_terms {
	uint32_t limit_count; /* 0 = he may not book */
	struct takt_booking_limit {
		const struct takt_share_rule *rule; /* borrowed of the rules */
		int64_t week_gpu_ms;
	} limits[TAKT_BOOKING_MAX_LIMITS];
	bool needs_approval;
	int64_t ahead_ms, longest_ms;
};
void takt_booking_terms(const struct takt_booker *booker, struct takt_booking_terms *ret);

/* What he may book at that time, for him to see. */
void takt_booking_show(const struct takt_booker *booker, const struct takt_orders_view *orders,
		       int64_t now_ms, struct takt_booking_view *ret);

/*
 * Whether he may have that; 0: with its state ("granted", "waiting") in *ret_state. -EPERM: no rule
 * lets him book; -TAKT_E_LIMIT: which rule forbids it, and how much of it is left;
 * -TAKT_E_CONFLICT: a GPU is taken at that time.
 */
int takt_booking_check(const struct takt_booker *booker, const struct takt_orders_view *orders,
		       const struct takt_reservation *asked, int64_t now_ms, const char **ret_state,
		       struct takt_err *err);

/* An administrator's word on a booking that waits (approve, refuse), or whoever's end of a
 * reservation (release). What was used of a booking goes on counting. *orders is changed on success
 * only; the state is looked at, who may is not. */
int takt_booking_approve(struct takt_orders_view *orders, uint64_t id, const char *by,
			 int64_t now_ms, struct takt_err *err);
int takt_booking_refuse(struct takt_orders_view *orders, uint64_t id, const char *by,
			const char *why, struct takt_err *err);
int takt_booking_release(struct takt_orders_view *orders, uint64_t id, const char *by,
			 int64_t now_ms, struct takt_err *err);

/* NULL when there is none. */
struct takt_reservation *takt_reservation_find(struct takt_orders_view *orders, uint64_t id);
/* Whether GPUs are kept for it when its time is there. */
bool takt_reservation_counts(const struct takt_reservation *reservation);
/* Until when it has to be remembered: bookings for as long as they count against somebody. */
int64_t takt_reservation_kept_until_ms(const struct takt_reservation *reservation);

#endif
