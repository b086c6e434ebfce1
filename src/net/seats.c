/* SPDX-License-Identifier: Apache-2.0 */
/* Counting connections by who holds them: a look at every seat, for there are a few hundred. */
#include "net/seats.h"

#include <errno.h>
#include <stdio.h>

#include "base/mem.h"

struct census {
	unsigned seated;
	unsigned users; /* of these, no administrators */
	unsigned own;	/* of these, this user's */
};

int takt_seats_init(struct takt_seats *seats, const struct takt_seats_limits *limits,
		    struct takt_err *err)
{
	struct takt_seats made = {.limits = *limits};

	made.seats = takt_calloc(limits->total, sizeof(*made.seats));
	if (!made.seats)
		return takt_err_set(err, -ENOMEM, "no memory for %u connections", limits->total);
	snprintf(made.over_share, sizeof(made.over_share),
		 "too many connections: a user may hold %u of the %u; close some, or ask again "
		 "later",
		 limits->share, limits->total);
	if (limits->reserve > 0)
		snprintf(made.over_total, sizeof(made.over_total),
			 "too many connections: there are %u, %u of them for administrators only; "
			 "ask again later",
			 limits->total, limits->reserve);
	else
		snprintf(made.over_total, sizeof(made.over_total),
			 "too many connections: there are %u; ask again later", limits->total);
	*seats = made;
	return 0;
}

void takt_seats_fini(struct takt_seats *seats)
{
	takt_free(seats->seats);
	*seats = (struct takt_seats){.seats = NULL};
}

static struct census count(const struct takt_seats *seats, uid_t uid)
{
	struct census census = {.seated = 0};

	for (unsigned i = 0; i < seats->limits.total; i++) {
		const struct takt_seat *seat = &seats->seats[i];
		bool own = seat->uid == uid;

		switch (seat->kind) {
		case TAKT_SEAT_FREE:
			break;
		case TAKT_SEAT_USER:
			census.users++;
			census.own += own;
			census.seated++;
			break;
		case TAKT_SEAT_ADMIN:
			census.seated++;
			break;
		}
	}
	return census;
}

/* Why there is no seat; NULL = there is one. */
static const char *refusal(const struct takt_seats *seats, const struct census *census, bool admin)
{
	const struct takt_seats_limits *limits = &seats->limits;

	if (census->seated >= limits->total)
		return seats->over_total;
	if (admin)
		return NULL;
	if (limits->share > 0 && census->own >= limits->share)
		return seats->over_share;
	return census->users >= limits->total - limits->reserve ? seats->over_total : NULL;
}

static struct takt_seat *find_free(struct takt_seats *seats)
{
	for (unsigned i = 0; i < seats->limits.total; i++)
		if (seats->seats[i].kind == TAKT_SEAT_FREE)
			return &seats->seats[i];
	return NULL;
}

struct takt_seat *takt_seats_take(struct takt_seats *seats, uid_t uid, bool admin,
				  const char **ret_why)
{
	struct census census = count(seats, uid);
	const char *why = refusal(seats, &census, admin);
	struct takt_seat *seat = why ? NULL : find_free(seats);

	if (seat)
		*seat = (struct takt_seat){.kind = admin ? TAKT_SEAT_ADMIN : TAKT_SEAT_USER,
					   .uid = uid};
	else
		*ret_why = why;
	return seat;
}

void takt_seats_leave(struct takt_seat *seat)
{
	if (seat)
		*seat = (struct takt_seat){.kind = TAKT_SEAT_FREE};
}
