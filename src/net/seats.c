/* SPDX-License-Identifier: Apache-2.0 */
/* Counting connections by who holds them: a look at every seat, for there are a few hundred. */
#include "net/seats.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

enum {
	LEAVING = 8, /* at a time that are shut down, but not gone yet */
};

struct census {
	unsigned seated, leaving;
	unsigned users; /* of these, no administrators */
	unsigned own;	/* of these, this user's */
};

int takt_seats_init(struct takt_seats *seats, const struct takt_seats_limits *limits,
		    struct takt_err *err)
{
	struct takt_seats made = {.limits = *limits};

	made.seats = takt_calloc(limits->total + LEAVING, sizeof(*made.seats));
	if (!made.seats)
		return takt_err_set(err, -ENOMEM, "no memory for %u connections", limits->total);
	snprintf(made.over_share, sizeof(made.over_share),
		 "too many connections: %s may hold %u of the %u; close some, or ask again "
		 "later",
		 limits->by_address ? "an address" : "a user", limits->share, limits->total);
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

/* This machine's own addresses, of which one who is on it may use any. */
static const unsigned char loopback[TAKT_SEAT_NET] = {1};

static bool is_loopback(const struct sockaddr_storage *address)
{
	const struct in6_addr *in6 = &((const struct sockaddr_in6 *)address)->sin6_addr;

	if (address->ss_family == AF_INET)
		return ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr) >> 24 == 127;
	return address->ss_family == AF_INET6 &&
	       (IN6_IS_ADDR_LOOPBACK(in6) ||
		(IN6_IS_ADDR_V4MAPPED(in6) && in6->s6_addr[12] == 127));
}

static void net_of(const struct sockaddr_storage *address, unsigned char ret[TAKT_SEAT_NET])
{
	memset(ret, 0, TAKT_SEAT_NET);
	if (!address)
		return;
	if (is_loopback(address)) {
		memcpy(ret, loopback, TAKT_SEAT_NET);
	} else if (address->ss_family == AF_INET) {
		ret[0] = 4;
		memcpy(ret + 1, &((const struct sockaddr_in *)address)->sin_addr, 4);
	} else if (address->ss_family == AF_INET6) {
		const struct in6_addr *in = &((const struct sockaddr_in6 *)address)->sin6_addr;
		bool mapped = IN6_IS_ADDR_V4MAPPED(in);

		ret[0] = mapped ? 4 : 6;
		memcpy(ret + 1, in->s6_addr + (mapped ? 12 : 0), mapped ? 4 : 8);
	}
}

static bool is_his(const struct takt_seat *seat, const struct takt_seat *him)
{
	return seat->uid == him->uid && memcmp(seat->net, him->net, TAKT_SEAT_NET) == 0;
}

static struct takt_seat seat_for(const struct takt_newcomer *who)
{
	struct takt_seat seat = {.kind = who->admin ? TAKT_SEAT_ADMIN : TAKT_SEAT_USER,
				 .uid = who->uid,
				 .fd = who->fd};

	net_of(who->address, seat.net);
	return seat;
}

static struct census count(const struct takt_seats *seats, const struct takt_seat *him)
{
	struct census census = {.seated = 0};

	for (unsigned i = 0; i < seats->limits.total + LEAVING; i++) {
		const struct takt_seat *seat = &seats->seats[i];

		if (seat->kind == TAKT_SEAT_FREE)
			continue;
		if (seat->stage == TAKT_SEAT_LEAVES) {
			census.leaving++;
			continue;
		}
		census.seated++;
		census.users += seat->kind == TAKT_SEAT_USER;
		census.own += seat->kind == TAKT_SEAT_USER && is_his(seat, him);
	}
	return census;
}

static bool has_share(const struct takt_seats *seats, const struct census *census, bool admin)
{
	return !admin && seats->limits.share > 0 && census->own >= seats->limits.share;
}

/* Why there is no seat; NULL = there is one. */
static const char *refusal(const struct takt_seats *seats, const struct census *census, bool admin)
{
	const struct takt_seats_limits *limits = &seats->limits;

	if (census->seated >= limits->total)
		return seats->over_total;
	if (admin)
		return NULL;
	if (has_share(seats, census, admin))
		return seats->over_share;
	return census->users >= limits->total - limits->reserve ? seats->over_total : NULL;
}

static struct takt_seat *find_free(struct takt_seats *seats)
{
	for (unsigned i = 0; i < seats->limits.total + LEAVING; i++)
		if (seats->seats[i].kind == TAKT_SEAT_FREE)
			return &seats->seats[i];
	return NULL;
}

struct takt_seat *takt_seats_take(struct takt_seats *seats, const struct takt_newcomer *who,
				  const char **ret_why)
{
	const struct takt_seat his = seat_for(who);
	struct census census = count(seats, &his);
	const char *why = refusal(seats, &census, who->admin);
	struct takt_seat *seat = why ? NULL : find_free(seats);

	if (seat)
		*seat = his;
	else
		*ret_why = why ? why : seats->over_total;
	return seat;
}

/* Of those that are idle, else of those whose client is waited for. */
static struct takt_seat *oldest(struct takt_seats *seats, bool idle, const struct takt_seat *of)
{
	struct takt_seat *found = NULL;

	for (unsigned i = 0; i < seats->limits.total + LEAVING; i++) {
		struct takt_seat *seat = &seats->seats[i];
		bool fits = idle ? seat->stage == TAKT_SEAT_HEAD
				 : seat->stage == TAKT_SEAT_BODY || seat->stage == TAKT_SEAT_SENT;

		if (seat->kind == TAKT_SEAT_USER && fits && (!of || is_his(seat, of)) &&
		    (!found || seat->since_ns < found->since_ns))
			found = seat;
	}
	return found;
}

/* Whoever serves it sees its end, and gives the seat back. */
static void show_out(struct takt_seat *seat)
{
	(void)shutdown(seat->fd, SHUT_RDWR);
	seat->stage = TAKT_SEAT_LEAVES;
	seat->due_ns = 0;
}

bool takt_seats_may_make_room(const struct takt_seats *seats)
{
	static const struct takt_seat nobody;

	return count(seats, &nobody).leaving < LEAVING;
}

bool takt_seats_make_room(struct takt_seats *seats, const struct takt_newcomer *who)
{
	const struct takt_seat his = seat_for(who);
	struct census census = count(seats, &his);
	const struct takt_seat *of = has_share(seats, &census, who->admin) ? &his : NULL;
	struct takt_seat *goes = oldest(seats, true, of);

	if (!goes)
		goes = oldest(seats, false, of);
	if (!goes || census.leaving >= LEAVING)
		return false;
	show_out(goes);
	return true;
}

void takt_seat_is_at(struct takt_seats *seats, struct takt_seat *seat, enum takt_seat_stage stage,
		     uint64_t now_ns, uint64_t within_ns)
{
	if (!seat || seat->stage == TAKT_SEAT_LEAVES)
		return;
	seat->stage = stage;
	if (stage == TAKT_SEAT_HEAD)
		seat->claimed = false;
	seat->since_ns = now_ns;
	seat->due_ns = within_ns ? now_ns + within_ns : 0;
	if (seat->due_ns && (seats->next_ns == 0 || seat->due_ns < seats->next_ns))
		seats->next_ns = seat->due_ns;
}

bool takt_seats_claim(struct takt_seats *seats, struct takt_seat *seat, uid_t uid)
{
	const struct takt_seats_limits *limits = &seats->limits;
	unsigned own = 0, all = 0;

	if (!seat || limits->user_share == 0 || (seat->claimed && seat->claimer == uid))
		return true;
	for (unsigned i = 0; i < limits->total + LEAVING; i++) {
		const struct takt_seat *other = &seats->seats[i];

		if (other->kind == TAKT_SEAT_FREE || !other->claimed ||
		    other->stage == TAKT_SEAT_LEAVES)
			continue;
		all++;
		own += other->claimer == uid;
	}
	if (own >= limits->user_share || all >= limits->total - limits->spare)
		return false;
	seat->claimed = true;
	seat->claimer = uid;
	return true;
}

void takt_seats_look(struct takt_seats *seats, uint64_t now_ns)
{
	uint64_t next_ns = 0;

	if (seats->next_ns == 0 || now_ns < seats->next_ns)
		return;
	for (unsigned i = 0; i < seats->limits.total + LEAVING; i++) {
		struct takt_seat *seat = &seats->seats[i];

		if (seat->kind == TAKT_SEAT_FREE || seat->due_ns == 0)
			continue;
		if (seat->due_ns <= now_ns)
			show_out(seat);
		else if (next_ns == 0 || seat->due_ns < next_ns)
			next_ns = seat->due_ns;
	}
	seats->next_ns = next_ns;
}

void takt_seats_leave(struct takt_seat *seat)
{
	if (seat)
		*seat = (struct takt_seat){.kind = TAKT_SEAT_FREE};
}
