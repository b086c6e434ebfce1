/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leads one browser of this user's to an address that nobody else may know, once. What a browser is
 * started with is in the list of processes, which all users see; so it is started with the address
 * of this door, and told the other one here. Who else comes to the door is turned away: the kernel
 * says whose the other end of a connection on this machine is.
 */
#ifndef TAKT_CLI_WEB_DOOR_H
#define TAKT_CLI_WEB_DOOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct takt_web_door {
	int fd;
	char address[80]; /* "http://127.0.0.1:PORT/NONCE" */
};

int takt_web_door_open(struct takt_web_door *ret, struct takt_err *err);
void takt_web_door_close(struct takt_web_door *door);

/* Whether somebody of this user's came and was told `to` within the time. Ends early when `opener`,
 * a child, has ended with a failure; the child is waited for where it has ended. */
bool takt_web_door_lead(struct takt_web_door *door, const char *to, uint64_t limit_ms,
			pid_t opener);

#endif
