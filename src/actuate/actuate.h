/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The actuator seen from outside: leases on SM clock ranges, over a SOCK_SEQPACKET Unix socket with
 * fixed binary messages. The actuator process (takt-actuate) is the only code that changes a GPU.
 *
 * A lease says "GPU with this UUID, SM clock within [min, max], for this job, until ttl after the
 * last renewal". Setting goes: clamp to the driver's own list -> journal (durable) -> driver ->
 * read back -> reply. When the lease ends (end, ttl, client gone for longer than ttl, actuator
 * killed) the GPU returns to the declared baseline. What cannot be restored stays "changed" in
 * every status and is tried again.
 */
#ifndef TAKT_ACTUATE_ACTUATE_H
#define TAKT_ACTUATE_ACTUATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

enum {
	TAKT_ACTUATE_VERSION = 1,
	TAKT_ACTUATE_UUID = 96,
	TAKT_ACTUATE_MAX_GPUS = 64
};

enum takt_actuate_op {
	TAKT_ACTUATE_HELLO = 1, /* reply: epoch, permission */
	TAKT_ACTUATE_SET,    /* lease_id, uuid, min_mhz, max_mhz, ttl_ns, job_id: make or change a
				lease */
	TAKT_ACTUATE_RENEW,  /* lease_id (0 = all of this client), ttl_ns */
	TAKT_ACTUATE_END,    /* lease_id: restore and forget */
	TAKT_ACTUATE_STATUS, /* reply carries one GPU (gpu_index), ask for each */
	TAKT_ACTUATE_RESET,  /* uuid ("" = all): an administrator drops every lease and restores the
				baseline */
};

/* What the journal and memory know of a GPU. */
enum takt_actuate_gpu_state {
	TAKT_ACTUATE_CLEAN,   /* at its baseline, as far as takt changed it */
	TAKT_ACTUATE_LEASED,  /* a lease is applied */
	TAKT_ACTUATE_CHANGED, /* should be at its baseline and is not: restoring was refused so far
			       */
	TAKT_ACTUATE_ADVISE,  /* no permission to set: leases are kept as advice, nothing is changed
			       */
	TAKT_ACTUATE_UNKNOWN, /* GPU lost or a setter timed out; reconciled when it answers */
};
const char *takt_actuate_gpu_state_name(enum takt_actuate_gpu_state state);

struct takt_actuate_request {
	uint32_t version;
	uint32_t op;
	uint64_t seq;
	uint64_t lease_id; /* chosen by the client, unique for ever */
	uint64_t job_id;
	uint64_t ttl_ns;
	uint32_t min_mhz, max_mhz;
	uint32_t gpu_index; /* STATUS */
	char uuid[TAKT_ACTUATE_UUID];
};

struct takt_actuate_reply {
	uint32_t version;
	uint32_t op;
	uint64_t seq;
	int32_t rc;
	uint32_t vendor; /* the driver's code when it refused */
	uint64_t epoch;
	uint32_t gpu_count;
	uint32_t gpu_state;			   /* enum takt_actuate_gpu_state */
	uint32_t applied_min_mhz, applied_max_mhz; /* LEASED: what was set, after clamping */
	uint32_t readback_mhz;			   /* SM clock after setting; 0 = not readable */
	uint64_t lease_id;			   /* STATUS: the lease in force, 0 = none */
	uint64_t job_id;
	char uuid[TAKT_ACTUATE_UUID];
	char message[160];
};

/* Client, non-blocking; as in launch/launch.h. */
struct takt_actuate_client;
int takt_actuate_connect(const char *socket_path, struct takt_actuate_client **ret,
			 struct takt_err *err);
int takt_actuate_fd(const struct takt_actuate_client *client);
int takt_actuate_send(struct takt_actuate_client *client, struct takt_actuate_request request,
		      struct takt_err *err);
int takt_actuate_recv(struct takt_actuate_client *client, struct takt_actuate_reply *ret,
		      struct takt_err *err);
void takt_actuate_client_free(struct takt_actuate_client *client);

/* The processes. Paths are absolute. Both take the same exclusive lock before they touch a GPU. */
struct takt_actuate_config {
	int listen_fd;
	uid_t client_uid;	   /* this user and root may ask */
	const char *journal_path;  /* preallocated file, two checksummed slots a GPU */
	const char *lock_path;	   /* exclusive lock of whoever sets */
	const char *nvml_path;	   /* NULL: search path */
	const char *guard_path;	   /* takt-guard; started and watched */
	const char *baseline_path; /* "" = reset; see docs/clocks */
};
int takt_actuate_serve(const struct takt_actuate_config *config, struct takt_err *err);

/* takt-guard: waits until the actuator behind `watch_fd` is gone, then restores every GPU that the
 * journal calls changed. */
int takt_guard_run(const struct takt_actuate_config *config, int watch_fd, struct takt_err *err);

#endif
