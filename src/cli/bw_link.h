/* SPDX-License-Identifier: Apache-2.0 */
/* A TCP connection of two machines that have shown each other that they have the same key, for a
 * load (rtt/bw_wire.h). Every wait has an end. */
#ifndef TAKT_CLI_BW_LINK_H
#define TAKT_CLI_BW_LINK_H

#include "base/timetypes.h"
#include "rtt/bw_wire.h"
#include "rtt/rtt_peers.h"

struct takt_bw_link {
	int fd;
	struct takt_rtt_key session;
	uint64_t cap_bits_per_s; /* the lower of both, as are the seconds */
	uint32_t seconds;
};

/* A socket, which the caller closes. -TAKT_E_UNAVAILABLE: nobody there; -TAKT_E_BUSY: somebody
 * listens here. */
int takt_bw_connect(const union takt_rtt_address *to, const char *text, struct takt_err *err);
int takt_bw_listen(const union takt_rtt_address *at, const char *text, struct takt_err *err);

/* Challenge and answer; not a byte of load. -EPERM: another key; -TAKT_E_UNAVAILABLE: silence. `fd`
 * stays the caller's. */
int takt_bw_meet(int fd, enum takt_bw_side side, const struct takt_rtt_key *key,
		 uint64_t cap_bits_per_s, uint32_t seconds, struct takt_bw_link *ret,
		 struct takt_err *err);

int takt_bw_tell(const struct takt_bw_link *link, const struct takt_bw_note *note,
		 struct takt_err *err);
int takt_bw_hear(const struct takt_bw_link *link, struct takt_mono end, struct takt_bw_note *ret,
		 struct takt_err *err);

#endif
