/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the daemon's clock leases share: lease_keeper.c keeps them true, lease_govern.c
 * is what governors ask for. */
#ifndef TAKT_DAEMON_LEASE_IMPL_H
#define TAKT_DAEMON_LEASE_IMPL_H

#include "actuate/actuate.h"
#include "daemon/daemon.h"

enum {
	MAX_PENDING = 64,
	MAX_LEASES = 512, /* as many as the actuator takes */
};

/* What a job, or an administrator (job_id 0), wants of one GPU and how far it got. A place whose
 * lease is over (neither wanted nor awaited) keeps how it ended until it is used again. */
struct lease {
	bool wanted, answered;
	uint32_t gpu;
	uint64_t job_id;
	uint32_t min_mhz, max_mhz; /* both 0: no limit, which lifts those of jobs beside it */
	uint32_t power_limit_mw;   /* 0: none */
	uint32_t power_asked_mw;   /* less than that where the board takes no less */
	uint32_t mem_min_mhz, mem_max_mhz;
	bool benchmark; /* a job's that outranks all others */
	bool assume_unlocked;
	uint64_t seq; /* of the latest request; 0 = it could not be sent */
	int32_t rc;   /* of its reply */
	char message[160];
	uint64_t gap_ns; /* longest time it was not applied because the actuator was away */
};

/* What the actuator says of one GPU. */
struct gpu_state {
	bool known;
	bool power_touched; /* takt has set a power limit since it began */
	uint32_t state, applied_min_mhz, applied_max_mhz, applied_power_mw, cap_power_mw;
	uint32_t base_min_mhz, base_max_mhz, base_power_mw;
	uint32_t applied_mem_min_mhz, applied_mem_max_mhz;
	uint64_t job_id;
	char message[160];
	struct lease was; /* an administrator's before his latest "clock set", if it was wanted */
};

/* A request of the API that waits until the GPUs of its mask have answered. */
struct pending_set {
	struct takt_pending *pending; /* NULL = free slot */
	uint64_t gpu_mask, job_id;
	struct takt_boot deadline;
};

struct takt_lease_keeper {
	struct takt_daemon *daemon;
	struct takt_actuate_client *client; /* NULL = not connected */
	uint64_t next_seq;
	bool was_connected; /* ever */
	uint32_t failures;  /* of the connection, since the actuator said something */
	/* Of the journal that the actuator has open; inode 0 = it has not answered on this
	 * connection. */
	uint64_t journal_device, journal_inode;
	struct takt_boot renew_at, status_at, connect_at, lost_at; /* lost_at: or when we began */
	struct takt_boot heard_at; /* newest word of the actuator but for the one at hand */
	uint32_t lease_count;	   /* places ever used */
	struct lease lease[MAX_LEASES];
	struct gpu_state gpu[TAKT_DEVICE_MAX_GPUS];
	struct pending_set pendings[MAX_PENDING];
	struct {
		uint64_t job_id; /* 0 = free slot */
		uint64_t gpu_mask;
		struct takt_boot deadline;
	} preparing[TAKT_DEVICE_MAX_GPUS];
};

/* The lease of this job there, also one that is over; NULL = none. */
struct lease *takt_lease_find(const struct takt_lease_keeper *leases, uint32_t gpu,
			      uint64_t job_id);
/* Asks for it. Of `wish` what is asked for; the rest is filled in. */
void takt_lease_want(struct takt_lease_keeper *leases, uint32_t gpu, uint64_t job_id,
		     struct lease wish);
/* It is wanted no more. */
void takt_lease_end(struct takt_lease_keeper *leases, struct lease *lease);
/* What a governor's limit comes to on that board: the default one and above it are none (0), and it
 * is no less than what the board takes. */
uint32_t takt_lease_power(const struct takt_lease_keeper *leases, uint32_t gpu, uint32_t limit_mw);
/* Whether a job has leases: one that asks for a setting, and one that shares its GPUs and asks for
 * none, or another one's ceiling would hold for it, too. */
bool takt_lease_is_due(const struct takt_queue_job *job);

#endif
