/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The actuator's side of its guard: started, watched, started again when it dies. The two hold the
 * ends of a socket pair; the guard writes one byte once it watches, and learns from the end of file
 * that the actuator is gone, however it went.
 */
#ifndef TAKT_ACTUATE_GUARD_WATCH_H
#define TAKT_ACTUATE_GUARD_WATCH_H

#include <poll.h>
#include <stdbool.h>
#include <sys/types.h>

#include "actuate/actuate.h"
#include "base/timetypes.h"

enum {
	TAKT_GUARD_WATCH_FDS = 2
};

struct takt_guard_watch {
	const struct takt_actuate_config *config; /* borrowed until the end */
	pid_t pid;				  /* 0: none is running */
	int pidfd;
	int socket;	       /* our end; closing it is what wakes the guard */
	bool ready;	       /* it watches */
	uint32_t failures;     /* starts in a row that did not get ready */
	struct takt_boot next; /* not to be started before */
};

void takt_guard_watch_init(struct takt_guard_watch *watch,
			   const struct takt_actuate_config *config);

/* Starts a guard if none is running and it is time, notes that it is ready or gone; returns when to
 * come back at the latest. */
struct takt_boot takt_guard_watch_step(struct takt_guard_watch *watch, struct takt_boot now);

/* Fills what to poll for; returns how many. */
nfds_t takt_guard_watch_poll(const struct takt_guard_watch *watch,
			     struct pollfd fds[TAKT_GUARD_WATCH_FDS]);

/* Lets go of the guard, which then does its work. */
void takt_guard_watch_fini(struct takt_guard_watch *watch);

#endif
