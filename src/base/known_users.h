/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the system's data base says of users, for a main loop. An answer of the C library may read a
 * file, or ask a server of the network that takes its time or never answers (LDAP). So one thread
 * asks, and what it heard is kept for a while. Who wants to know waits for it, but all such waits
 * together take at most a fifth of the time; then the loop goes on without.
 *
 * One for the process, whose thread begins with the first question; any thread may ask.
 */
#ifndef TAKT_BASE_KNOWN_USERS_H
#define TAKT_BASE_KNOWN_USERS_H

#include <stdbool.h>
#include <sys/types.h>

enum {
	TAKT_KNOWN_USER_NAME = 64, /* bytes, with the NUL */
};

struct takt_known_user {
	uid_t uid;
	gid_t gid;     /* its main group */
	bool found;    /* there is such a user; the rest counts only then */
	bool in_group; /* of the group that was asked for */
	char name[TAKT_KNOWN_USER_NAME];
};

/* A user by his number. What was heard within the last minute or, while there is no newer word,
 * ever. -EAGAIN: there is no word yet; it is asked for. */
int takt_known_user_of(uid_t uid, struct takt_known_user *ret);
/* The same, and whether he is a member of a group: by a word of the last ten seconds. */
int takt_known_user_in_group(uid_t uid, gid_t group, struct takt_known_user *ret);
/* A user by his name, by a word of the last ten seconds. */
int takt_known_user_named(const char *name, struct takt_known_user *ret);

/* The user that is called so, or else has this number. -TAKT_E_NOT_FOUND; -EAGAIN as above. */
int takt_known_user_find(const char *text, uid_t *ret);

#endif
