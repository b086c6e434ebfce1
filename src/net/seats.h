/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who holds how many of a server's connections, so that no user can hold them all.
 *
 * Three rules: all together hold at most `total`; users that are no administrators hold at most
 * `share` each, and together leave `reserve` of the total to administrators.
 */
#ifndef TAKT_NET_SEATS_H
#define TAKT_NET_SEATS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

#define TAKT_SEATS_NO_USER ((uid_t)-1) /* of a peer whom nobody knows (TCP) */

struct takt_tls_pair;

enum takt_seat_kind {
	TAKT_SEAT_FREE,
	TAKT_SEAT_USER,
	TAKT_SEAT_ADMIN,
};

struct takt_seat {
	enum takt_seat_kind kind;
	uid_t uid;
	struct takt_tls_pair *pair; /* what the connection holds, of its server; NULL = none */
};

struct takt_seats_limits {
	unsigned total;	  /* at least 1 */
	unsigned share;	  /* of a user; 0 = as many as there are */
	unsigned reserve; /* under total */
};

struct takt_seats {
	struct takt_seats_limits limits;
	struct takt_seat *seats; /* owned, total of them */
	char over_share[160], over_total[160];
};

int takt_seats_init(struct takt_seats *seats, const struct takt_seats_limits *limits,
		    struct takt_err *err);
void takt_seats_fini(struct takt_seats *seats);

/* Borrowed until left. NULL: refused; *ret_why, borrowed from the seats, names the rule. */
struct takt_seat *takt_seats_take(struct takt_seats *seats, uid_t uid, bool admin,
				  const char **ret_why);
/* NULL is fine. */
void takt_seats_leave(struct takt_seat *seat);

#endif
