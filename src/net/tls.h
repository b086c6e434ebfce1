/* SPDX-License-Identifier: Apache-2.0 */
/* A certificate and its key, as a listening socket needs them: read, and known to belong together.
 */
#ifndef TAKT_NET_TLS_H
#define TAKT_NET_TLS_H

#include "base/err.h"

struct takt_tls {
	char *certificate_pem; /* the chain, this machine's first; owned */
	char *key_pem;	       /* owned */
};

/*
 * Reads two PEM files. -TAKT_E_USAGE: they are none, do not belong together, or the key can be read
 * by everybody; -errno with the file's name when one cannot be read. *ret is the caller's to end.
 */
int takt_tls_load(const char *certificate_path, const char *key_path, struct takt_tls *ret,
		  struct takt_err *err);
/* The key is wiped. All zero is fine. */
void takt_tls_fini(struct takt_tls *tls);

#endif
