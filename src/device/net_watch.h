/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks at the network's ports every five seconds, in a thread of its own: some of these files are
 * answered by a card's firmware, and one that does not answer holds up nobody else. What it holds
 * up grows old, which the time in each port tells.
 */
#ifndef TAKT_DEVICE_NET_WATCH_H
#define TAKT_DEVICE_NET_WATCH_H

#include "base/err.h"
#include "device/net_ports.h"

struct takt_net_watch;

/* root as of takt_net_ports_read; copied. Heap object; close ends the thread, one that is stuck is
 * left behind after a second. NULL is fine. */
int takt_net_watch_open(const char *root, struct takt_net_watch **ret, struct takt_err *err);
void takt_net_watch_close(struct takt_net_watch *watch);
/* What the last look found; no ports before the first. Waits for nobody. */
void takt_net_watch_latest(struct takt_net_watch *watch, struct takt_net_ports *ret);

#endif
