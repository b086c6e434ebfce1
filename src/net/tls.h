/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A certificate and its key, as a listening socket needs them: read, known to belong together, and
 * read again when they were renewed.
 *
 * A connection holds the pair that it began with, so that a renewal takes nothing from a handshake
 * that is under way; a pair that was replaced is there until nobody holds it.
 */
#ifndef TAKT_NET_TLS_H
#define TAKT_NET_TLS_H

#include "base/err.h"

struct takt_tls;
struct takt_tls_pair;

/*
 * Reads two PEM files, whose names are borrowed until free. -TAKT_E_USAGE: they are none, do not
 * belong together, or the key can be read by everybody; -errno with the file's name when one cannot
 * be read.
 */
int takt_tls_new(const char *certificate_path, const char *key_path, struct takt_tls **ret,
		 struct takt_err *err);
/* Nobody holds a pair any more. Keys are wiped. NULL is fine. */
void takt_tls_free(struct takt_tls *tls);

/* The same files again, for connections to come. Fails as above, and all is as before then. */
int takt_tls_read_again(struct takt_tls *tls, struct takt_err *err);
/* Frees what was replaced and is no longer held. */
void takt_tls_tidy(struct takt_tls *tls);

/* Of the pair in force, PEM: the chain, this machine's first, and the key; borrowed until the next
 * pair is. */
const char *takt_tls_certificate(const struct takt_tls *tls);
const char *takt_tls_key(const struct takt_tls *tls);

/* Gives a session (gnutls_session_t) that has not shaken hands yet the pair in force, to be held
 * until the session has ended. NULL: it could not be given. */
struct takt_tls_pair *takt_tls_hold(struct takt_tls *tls, void *session);
/* NULL is fine. */
void takt_tls_leave(struct takt_tls_pair *pair);

#endif
