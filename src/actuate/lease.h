/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who wants what of which GPU, until when, and what that comes to. Arithmetic over a table; what
 * follows for the board is the keeper's.
 *
 * Several may have a lease on one GPU: jobs that share it, an administrator, a benchmark. A
 * benchmark outranks all; jobs outrank an administrator's standing wish, but for a lower power
 * limit of his; among jobs the most demanding wins, knob by knob: the highest clocks and the
 * highest power limit. A job that leaves a knob out wants no limit of other jobs: what stands there
 * without jobs holds, the administrator's wish or else the baseline.
 */
#ifndef TAKT_ACTUATE_LEASE_H
#define TAKT_ACTUATE_LEASE_H

#include <stdint.h>

#include "actuate/actuate.h"
#include "actuate/setting.h"
#include "base/timetypes.h"

enum {
	TAKT_LEASES_MAX = 512
};

struct takt_lease {
	uint64_t id; /* 0: none */
	uint64_t job_id;
	uint32_t gpu;
	enum takt_actuate_rank rank;
	struct takt_setting setting;
	uint64_t ttl_ns;
	uint64_t connection; /* that set or renewed it last */
	uint64_t number;     /* another one each time that it is put */
	struct takt_boot expires;
};

struct takt_leases {
	uint64_t last_number;
	struct takt_lease of[TAKT_LEASES_MAX]; /* in no order, with gaps */
};

/* NULL when there is no such lease. */
const struct takt_lease *takt_leases_find(const struct takt_leases *leases, uint64_t id);

/* Whether `request` may have a lease on this GPU: -TAKT_E_BUSY when another's benchmark runs there,
 * -TAKT_E_CONFLICT when its lease id is in use on another GPU, -TAKT_E_LIMIT when the table is
 * full, -EINVAL for a lease id, rank or time to live out of bounds. */
int takt_leases_admit(const struct takt_leases *leases, uint32_t gpu,
		      const struct takt_actuate_request *request, struct takt_err *err);

/* An admitted one; replaces the lease of the same job there, which goes to *ret_was (id 0: there
 * was none). Borrowed until the next change. */
const struct takt_lease *takt_leases_put(struct takt_leases *leases, uint32_t gpu,
					 const struct takt_actuate_request *request,
					 uint64_t connection, struct takt_boot now,
					 struct takt_lease *ret_was);

/* Undoes that. */
void takt_leases_put_back(struct takt_leases *leases, uint64_t id, const struct takt_lease *was);

/* What all leases of a GPU come to. *ret_lease: the one that decides (borrowed); NULL and an empty
 * setting when there is none. */
struct takt_setting takt_leases_demand(const struct takt_leases *leases, uint32_t gpu,
				       const struct takt_lease **ret_lease);

void takt_leases_drop(struct takt_leases *leases, uint64_t id);
void takt_leases_drop_gpu(struct takt_leases *leases, uint32_t gpu);

/* How many were renewed. id 0: all of this connection. ttl 0: as long as before. */
uint32_t takt_leases_renew(struct takt_leases *leases, uint64_t id, uint64_t ttl_ns,
			   uint64_t connection, struct takt_boot now);

/* One that has run out by `now`, NULL when there is none. */
const struct takt_lease *takt_leases_expired(const struct takt_leases *leases,
					     struct takt_boot now);
struct takt_boot takt_leases_next_expiry(const struct takt_leases *leases);

#endif
