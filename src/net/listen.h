/* SPDX-License-Identifier: Apache-2.0 */
/* Listening sockets: Unix ones that survive a crash of their owner, and TCP. */
#ifndef TAKT_NET_LISTEN_H
#define TAKT_NET_LISTEN_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

/*
 * Listens on a Unix socket; *ret_fd is non-blocking, close-on-exec and the caller's. A socket that
 * nobody answers on (left by a killed process) is replaced; one that somebody answers on is
 * -TAKT_E_BUSY and the message has his process id; anything else of that name is -EEXIST. `mode` is
 * not subject to the umask. The directory must exist.
 *
 * Two processes that replace a dead socket at the same moment could take it from each other: call
 * this only after taking whatever lock makes the process the only one of its kind.
 */
int takt_net_listen_unix(const char *path, mode_t mode, int *ret_fd, struct takt_err *err);

/*
 * Listens on "ADDRESS:PORT": "127.0.0.1:9830", "[::1]:9830", "localhost:9830", ":9830" (every
 * address). Port 0 lets the kernel choose. *ret_fd as above; *ret_port (may be NULL) is the port.
 */
int takt_net_listen_tcp(const char *address, int *ret_fd, unsigned *ret_port, struct takt_err *err);

/* Whether a TCP socket is bound to an address that other machines cannot reach. */
bool takt_net_is_loopback(int fd);

/* Connects to a Unix socket without waiting. -ENOENT: no such socket; -ECONNREFUSED: nobody
 * listens; -ENAMETOOLONG: path over 107 bytes. */
int takt_net_connect_unix(const char *path, int *ret_fd, struct takt_err *err);

#endif
