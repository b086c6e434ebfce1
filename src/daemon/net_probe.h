/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Round trips to other machines: one probe a second to each listed peer, over UDP, in a thread of
 * its own, so that the daemon's work is not part of what is measured. Off unless net_listen says
 * where.
 */
#ifndef TAKT_DAEMON_NET_PROBE_H
#define TAKT_DAEMON_NET_PROBE_H

#include "daemon/daemon.h"

/* Opens nothing where net_listen is "off": daemon->net_probe stays NULL. Errors name the key. */
int takt_net_probe_open(struct takt_daemon *daemon, struct takt_err *err);
void takt_net_probe_close(struct takt_net_probe *probe); /* NULL is fine */
void takt_net_probe_update_page(struct takt_daemon *daemon);
int takt_api_net(void *ctx, struct takt_net_view *ret, struct takt_err *err);

#endif
