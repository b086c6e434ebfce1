/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turning connections away with an answer.
 *
 * A socket that is closed before its peer has sent his request gives him an error instead of the
 * answer that waits for him. So the last few stay open for a second, and are never read.
 */
#ifndef TAKT_NET_FAREWELL_H
#define TAKT_NET_FAREWELL_H

#include <stdbool.h>
#include <stdint.h>

enum {
	TAKT_FAREWELL_SLOTS = 64,
	TAKT_FAREWELL_MS = 1000,
};

/* All zero is nobody. */
struct takt_farewell {
	struct {
		int fd;		   /* owned */
		uint64_t until_ns; /* 0 = free */
	} slots[TAKT_FAREWELL_SLOTS];
	unsigned next; /* the oldest; makes room for one more */
};

/* Answers 503 as the API does, without having read what is asked. Takes the descriptor. `why` has
 * nothing that JSON would escape. */
void takt_farewell_say(struct takt_farewell *farewell, int fd, const char *why, uint64_t now_ns);
/* Closes those whose time is up. */
void takt_farewell_look(struct takt_farewell *farewell, uint64_t now_ns);
/* Closes all, for want of descriptors or at the end; false: there was none. */
bool takt_farewell_drop(struct takt_farewell *farewell);
/* -1 = nothing to be called for. */
int takt_farewell_timeout_ms(const struct takt_farewell *farewell, uint64_t now_ns);

#endif
