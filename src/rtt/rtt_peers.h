/* SPDX-License-Identifier: Apache-2.0 */
/* The list of machines that probe each other, as it is written in the configuration. Addresses are
 * numbers: nobody waits for a name server. */
#ifndef TAKT_RTT_RTT_PEERS_H
#define TAKT_RTT_RTT_PEERS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum {
	TAKT_RTT_MAX_PEERS = 32,
	TAKT_RTT_NAME = 64,
	TAKT_RTT_ADDRESS = 64, /* as text, with its port */
};

union takt_rtt_address {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

struct takt_rtt_listed {
	char name[TAKT_RTT_NAME];
	char text[TAKT_RTT_ADDRESS];
	union takt_rtt_address address;
};

struct takt_rtt_peers {
	uint32_t count;
	struct takt_rtt_listed peer[TAKT_RTT_MAX_PEERS];
};

/* "10.0.0.2:9833", "[fd00::2]:9833". -TAKT_E_USAGE. */
int takt_rtt_address_parse(const char *text, union takt_rtt_address *ret, struct takt_err *err);
socklen_t takt_rtt_address_size(const union takt_rtt_address *address);
bool takt_rtt_same_address(const union takt_rtt_address *a, const union takt_rtt_address *b);

/* "gpu2=10.0.0.2:9833, gpu3=10.0.0.3:9833": names of letters, digits, '.', '-' and '_', nobody
 * twice, all of family `family`. -TAKT_E_USAGE says which one is wrong. */
int takt_rtt_peers_parse(const char *text, sa_family_t family, struct takt_rtt_peers *ret,
			 struct takt_err *err);

#endif
