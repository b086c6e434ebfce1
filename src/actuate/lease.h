/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may have which GPU's clock, and until when: at most one lease a GPU. Arithmetic over a table;
 * what follows for the board is the keeper's.
 */
#ifndef TAKT_ACTUATE_LEASE_H
#define TAKT_ACTUATE_LEASE_H

#include <stdint.h>

#include "actuate/actuate.h"
#include "base/timetypes.h"

struct takt_lease {
	uint64_t id; /* 0: none */
	uint64_t job_id;
	uint64_t ttl_ns;
	uint64_t connection; /* that set or renewed it last */
	struct takt_boot expires;
};

struct takt_leases {
	struct takt_lease of[TAKT_ACTUATE_MAX_GPUS]; /* by GPU index */
};

/* GPU of a lease, -1 when there is no such lease. */
int takt_leases_gpu(const struct takt_leases *leases, uint64_t id);

/* Whether `request` may take this GPU: -TAKT_E_BUSY when a lease of another job has it,
 * -TAKT_E_CONFLICT when its lease id is in use on another GPU, -EINVAL for a lease id or time to
 * live out of bounds. */
int takt_leases_admit(const struct takt_leases *leases, uint32_t gpu,
		      const struct takt_actuate_request *request, struct takt_err *err);
void takt_leases_put(struct takt_leases *leases, uint32_t gpu,
		     const struct takt_actuate_request *request, uint64_t connection,
		     struct takt_boot now);

/* How many were renewed. id 0: all of this connection. ttl 0: as long as before. */
uint32_t takt_leases_renew(struct takt_leases *leases, uint64_t id, uint64_t ttl_ns,
			   uint64_t connection, struct takt_boot now);

/* A GPU whose lease has run out by `now`, -1 when there is none. */
int takt_leases_expired(const struct takt_leases *leases, struct takt_boot now);
struct takt_boot takt_leases_next_expiry(const struct takt_leases *leases);

#endif
