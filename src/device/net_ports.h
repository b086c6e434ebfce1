/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counters and links of a machine's network ports, as the kernel tells them in sysfs: InfiniBand
 * and RoCE ports, and Ethernet interfaces of a card (of a virtual one, too). One look, no state: a
 * figure that is not there, or is none, is absent. Reading may block for as long as a card's
 * firmware takes to answer: see net_watch.h.
 */
#ifndef TAKT_DEVICE_NET_PORTS_H
#define TAKT_DEVICE_NET_PORTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/timetypes.h"

enum {
	TAKT_NET_MAX_PORTS = 128,
	TAKT_NET_MAX_ERRORS = 12,
	TAKT_NET_NAME = 64,
	TAKT_NET_WORD = 24,
};

enum takt_net_kind {
	TAKT_NET_INFINIBAND,
	TAKT_NET_ROCE, /* RDMA over an Ethernet link; the link's own interface stands beside it */
	TAKT_NET_ETHERNET,
	TAKT_NET_KINDS,
};

enum takt_net_has {
	TAKT_NET_SENT = 1u << 0,
	TAKT_NET_RECEIVED = 1u << 1,
	TAKT_NET_UP = 1u << 2,
	TAKT_NET_STATE = 1u << 3,
	TAKT_NET_RATE = 1u << 4,
};

struct takt_net_port {
	enum takt_net_kind kind;
	char device[TAKT_NET_NAME]; /* "mlx5_0", "eth0" */
	uint32_t port;		    /* 0 = the device has no numbered ports */
	struct takt_mono at;	    /* when it was read */
	uint32_t has;		    /* enum takt_net_has */
	uint64_t sent_bytes, received_bytes;
	bool up;		   /* it can carry traffic */
	char state[TAKT_NET_WORD]; /* the kernel's word for it: "active", "init", "down" */
	uint32_t rate_mbit_s;
	uint32_t errors_has; /* bit i = errors[i], named by takt_net_error_name */
	uint64_t errors[TAKT_NET_MAX_ERRORS];
};

/* In order of kind, device, port; in the kernel's where there is no memory to sort them. */
struct takt_net_ports {
	uint32_t count;
	uint32_t left_out; /* ports beyond TAKT_NET_MAX_PORTS */
	struct takt_net_port port[TAKT_NET_MAX_PORTS];
};

/* root is "/sys" but in tests. Nothing there: no ports. Leaves `at` 0. */
void takt_net_ports_read(const char *root, struct takt_net_ports *ret);

/* "infiniband", "roce", "ethernet". */
const char *takt_net_kind_name(enum takt_net_kind kind);
/* The kernel's name of a counter of errors, "symbol_error"; NULL beyond the kind's last. */
const char *takt_net_error_name(enum takt_net_kind kind, uint32_t error);

#endif
