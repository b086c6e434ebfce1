/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who holds how many of a server's connections, so that no user can hold them all.
 *
 * Three rules: all together hold at most `total`; users that are no administrators hold at most
 * `share` each, and together leave `reserve` of the total to administrators. Where the peer is not
 * known, each address counts as a user; of IPv6 each network of 64 bits, which one host may have,
 * and all addresses of this machine's own loopback as one.
 *
 * Who is known by his request only (by its token) may have `user_share` of the seats at requests
 * that are being answered, and all who are known so leave `spare` of them to newcomers.
 *
 * A seat also knows what its connection is waited for, and until when: one that takes longer than
 * it may with a request is over, however often a byte of it comes.
 */
#ifndef TAKT_NET_SEATS_H
#define TAKT_NET_SEATS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "base/err.h"
#include "net/http_head.h"

#define TAKT_SEATS_NO_USER ((uid_t)-1) /* of a peer whom nobody knows (TCP) */

struct takt_tls_pair;

enum takt_seat_kind {
	TAKT_SEAT_FREE,
	TAKT_SEAT_USER,
	TAKT_SEAT_ADMIN,
};

/* What of the next request the client has sent. */
enum takt_seat_stage {
	TAKT_SEAT_HEAD,	  /* not its whole head */
	TAKT_SEAT_BODY,	  /* that */
	TAKT_SEAT_ANSWER, /* all; the answer is ours to give */
	TAKT_SEAT_SENT,	  /* and was given; it is the client's to read */
	TAKT_SEAT_LEAVES, /* it was shut down, and is no longer counted */
};

enum {
	TAKT_SEAT_NET = 9, /* bytes: the family, and what tells hosts apart */
};

struct takt_seat {
	enum takt_seat_kind kind;
	uid_t uid;
	bool claimed; /* by the user of the request that it is at: */
	uid_t claimer;
	unsigned char net[TAKT_SEAT_NET]; /* all 0 = none */
	int fd;				  /* borrowed */
	enum takt_seat_stage stage;
	uint64_t since_ns;		/* when it came to its stage */
	uint64_t due_ns;		/* when it must have gone on; 0 = whenever */
	struct takt_tls_pair *pair;	/* what the connection holds, of its server; NULL = none */
	struct takt_http_target target; /* of the request that it is at */
};

struct takt_seats_limits {
	unsigned total;	     /* at least 1 */
	unsigned share;	     /* of a user; 0 = as many as there are */
	unsigned reserve;    /* under total */
	bool by_address;     /* a user is an address */
	unsigned user_share; /* of a user who is known by his requests; 0 = as many as there are */
	unsigned spare;	     /* that these leave to others, under total */
};

struct takt_seats {
	struct takt_seats_limits limits;
	struct takt_seat *seats; /* owned, total of them and some that leave */
	uint64_t next_ns;	 /* the earliest due_ns; 0 = there is none */
	char over_share[160], over_total[160];
};

int takt_seats_init(struct takt_seats *seats, const struct takt_seats_limits *limits,
		    struct takt_err *err);
void takt_seats_fini(struct takt_seats *seats);

struct takt_newcomer {
	uid_t uid; /* TAKT_SEATS_NO_USER if not known */
	bool admin;
	const struct sockaddr_storage *address; /* NULL = none */
	int fd;
};

/* Borrowed until left. NULL: refused; *ret_why, borrowed from the seats, names the rule. */
struct takt_seat *takt_seats_take(struct takt_seats *seats, const struct takt_newcomer *who,
				  const char **ret_why);
/* Shuts down the connection that has been idle, or at the head of a request, for longest, else the
 * one whose client is waited for, with a body or to read an answer: of his own where he has his
 * share, else of all; administrators' stay. False: there is none. Only while
 * takt_seats_may_make_room: else so many are leaving that he has to wait. */
bool takt_seats_make_room(struct takt_seats *seats, const struct takt_newcomer *who);
bool takt_seats_may_make_room(const struct takt_seats *seats);
/* NULL is fine. */
void takt_seat_is_at(struct takt_seats *seats, struct takt_seat *seat, enum takt_seat_stage stage,
		     uint64_t now_ns, uint64_t within_ns);
/* The request that the seat is at is this user's, until the next one's head. False: there are too
 * many of his, or of all who are known so. NULL is fine. */
bool takt_seats_claim(struct takt_seats *seats, struct takt_seat *seat, uid_t uid);
/* Shuts down those that are overdue. */
void takt_seats_look(struct takt_seats *seats, uint64_t now_ns);
/* NULL is fine. */
void takt_seats_leave(struct takt_seat *seat);

#endif
