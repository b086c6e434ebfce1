/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A listening socket in an epoll set, and who comes in through it.
 *
 * Out of descriptors, accept() leaves the newcomer where he is, and the socket stays readable: a
 * loop that asks again at once would spin. The door shuts for a moment instead, and for longer
 * while that goes on. It keeps one descriptor for that case, so that somebody can still be looked
 * at: an administrator comes in with it, anybody else is told.
 */
#ifndef TAKT_NET_DOOR_H
#define TAKT_NET_DOOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "base/err.h"
#include "net/farewell.h"

struct takt_door {
	int listen_fd;	/* the caller's */
	int epoll_fd;	/* borrowed */
	int reserve_fd; /* owned; -1 = given away */
	void *mark;	/* what the epoll events of the socket carry */
	bool shut;
	uint64_t open_ns; /* when it opens again */
	uint32_t shuts;	  /* in a row */
	struct takt_farewell farewell;
};

struct takt_guest {
	int fd; /* non-blocking, the receiver's */
	struct sockaddr_storage address;
	socklen_t address_len;
	uid_t uid;   /* TAKT_SEATS_NO_USER if not known */
	bool scarce; /* in by the kept descriptor */
};

int takt_door_init(struct takt_door *door, int listen_fd, int epoll_fd, void *mark,
		   struct takt_err *err);
void takt_door_fini(struct takt_door *door);
/* Another socket takes the place of the one that it has, which the caller then closes. */
int takt_door_move(struct takt_door *door, int listen_fd, struct takt_err *err);

/* The next one; false: nobody, or the door is shut. */
bool takt_door_accept(struct takt_door *door, uint64_t now_ns, struct takt_guest *ret);
/* Opens it when its time has come, and puts a descriptor aside again. Before each accept round. */
void takt_door_look(struct takt_door *door, uint64_t now_ns);
/* Answers the guest 503 and shows him out. */
void takt_door_turn_away(struct takt_door *door, const struct takt_guest *guest, const char *why,
			 uint64_t now_ns);
/* -1 = nothing to be called for. */
int takt_door_timeout_ms(const struct takt_door *door, uint64_t now_ns);

#endif
