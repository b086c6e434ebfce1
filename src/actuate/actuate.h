/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The actuator seen from outside: leases on SM clock ranges and power limits, over a SOCK_SEQPACKET
 * Unix socket with fixed binary messages. The actuator process (takt-actuate) is the only code that
 * changes a GPU.
 *
 * A lease says "GPU with this UUID, SM clock within [min, max], power limit so much, for this job,
 * until ttl after the last renewal". Setting goes: clamp to the driver's own list -> journal
 * (durable) -> driver -> read back -> reply. When the lease ends (end, ttl, client gone for longer
 * than ttl, actuator killed) the GPU returns to the declared baseline. What cannot be restored
 * stays "changed" in every status and is tried again. Where several have a lease on one GPU,
 * actuate/lease.h says who wins.
 *
 * A facility's cap on the power limit is no lease: it holds until it is lifted, whoever dies.
 */
#ifndef TAKT_ACTUATE_ACTUATE_H
#define TAKT_ACTUATE_ACTUATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/mig_layout.h"
#include "base/sys.h"

enum {
	TAKT_ACTUATE_VERSION = 5,
	TAKT_ACTUATE_UUID = 96,
	TAKT_ACTUATE_MAX_GPUS = 64,
};

/* Times to live that are accepted. */
#define TAKT_ACTUATE_TTL_MIN_NS (50 * TAKT_NS_PER_MS)
#define TAKT_ACTUATE_TTL_MAX_NS (24 * 3600 * TAKT_NS_PER_S)

enum takt_actuate_op {
	TAKT_ACTUATE_HELLO = 1, /* reply: epoch, gpu_count */
	/* lease_id, uuid, rank, min_mhz (0: lowest), max_mhz (both 0: the clock at its baseline),
	 * power_limit_mw (0: at its baseline), mem_min_mhz and mem_max_mhz (as the SM clock; never
	 * touched unless asked for), ttl_ns, job_id: make or change a lease. The reply
	 * comes when what all leases come to was applied and read back, or could not be. The same
	 * request again renews it. Another lease of the same job replaces it. -TAKT_E_BUSY:
	 * somebody else's benchmark has the GPU. -TAKT_E_CONFLICT: somebody else sets it. -EPERM:
	 * the lease is kept as advice and `message` says what an administrator would run.
	 * -EAGAIN: the lease is kept and applied once the GPU was seen to be nobody else's to lock;
	 * STATUS says when. assume_unlocked: an administrator's word that it is. */
	TAKT_ACTUATE_SET,
	/* lease_id (0 = all that this connection set or renewed), ttl_ns */
	TAKT_ACTUATE_RENEW,
	/* lease_id: restore and forget. The reply comes when the baseline is back or the driver
	 * refused (then the GPU is CHANGED and tried again). */
	TAKT_ACTUATE_END,
	/* reply carries one GPU (gpu_index), ask for each */
	TAKT_ACTUATE_STATUS,
	/* uuid ("" = all): an administrator drops every lease and has the baseline restored, even
	 * where takt changed nothing (this lifts what others locked, too) */
	TAKT_ACTUATE_RESET,
	/* uuid ("" = all), power_limit_mw (0: none): the baseline of the power limit is at most
	 * this from now on, until it is changed or the driver is loaded anew */
	TAKT_ACTUATE_CAP,
	/* The file of declared baselines is read anew, whole or not at all (-EINVAL names the
	 * line), and put in force: at once where no lease holds a knob, else when the lease ends.
	 * Its caps are set, other caps stay. What is declared no more is put back, and tried again
	 * until it is. */
	TAKT_ACTUATE_DECLARE,
	/* max_mhz, ttl_ns: no CPU of this machine runs above that until the time is over; 0: as
	 * they were found. The same request again renews it. The reply has max_mhz as
	 * applied_max_mhz, also when ttl_ns is 0, which only asks. */
	TAKT_ACTUATE_CPU,
	/* uuid, mig: an administrator has the GPU cut into these MIG instances for as long as this
	 * process lives, "": as declared, else as found. The reply comes when it was tried once.
	 * -TAKT_E_BUSY: a process is on it, nothing was changed. What cannot be put back is CHANGED
	 * and tried again; nothing that is in use is ever destroyed. RESET leaves it alone. */
	TAKT_ACTUATE_MIG,
};

/* How a GPU is cut, as far as takt has to do with it. */
enum takt_actuate_mig_state {
	TAKT_MIG_AS_FOUND, /* or as declared */
	TAKT_MIG_IS_SET,
	TAKT_MIG_TO_BE_PUT_BACK,
	TAKT_MIG_AT_WORK, /* a change is under way */
};

/* Whose lease it is, the weakest first. */
enum takt_actuate_rank {
	TAKT_ACTUATE_RANK_STANDING, /* an administrator's, for as long as no job has one */
	TAKT_ACTUATE_RANK_JOB,
	TAKT_ACTUATE_RANK_BENCHMARK, /* outranks all: its results depend on it */
};

/* What the journal and memory know of a GPU. */
enum takt_actuate_gpu_state {
	TAKT_ACTUATE_CLEAN,   /* at its baseline, as far as takt changed it */
	TAKT_ACTUATE_LEASED,  /* a lease is applied */
	TAKT_ACTUATE_CHANGED, /* should be at its baseline and is not: restoring was refused so far
			       */
	TAKT_ACTUATE_ADVISE,  /* no permission to set, or somebody else may have locked the clock,
				 which is not changed then: leases are kept as advice */
	TAKT_ACTUATE_UNKNOWN, /* GPU lost or a setter timed out; reconciled when it answers */
	TAKT_ACTUATE_FOREIGN, /* somebody else set what takt had set, or so it seems: takt's own
				 is gone or put back, nothing is set until a reset */
	TAKT_ACTUATE_WAITING, /* the SM clock waits until the GPU was seen under load */
	TAKT_ACTUATE_INEFFECTIVE, /* the clock that was set never came: put back, and set no more
				     until a reset */
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
	uint32_t power_limit_mw;
	uint32_t rank;	    /* SET: enum takt_actuate_rank */
	uint32_t gpu_index; /* STATUS */
	uint32_t mem_min_mhz, mem_max_mhz;
	uint32_t assume_unlocked; /* SET: 1 = no need to look for another's lock first */
	char uuid[TAKT_ACTUATE_UUID];
	char mig[TAKT_MIG_TEXT]; /* MIG: see base/mig_layout.h */
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
	uint32_t applied_power_mw;		   /* LEASED: 0 = at its baseline */
	uint32_t cap_power_mw;			   /* a facility's; 0 = none */
	uint32_t applied_mem_min_mhz, applied_mem_max_mhz; /* LEASED: 0 = at its baseline */
	uint32_t base_min_mhz, base_max_mhz;		   /* declared; 0 = the driver's own */
	uint32_t base_power_mw;				   /* declared; 0 = what was found */
	uint64_t lease_id; /* STATUS: the lease that decides, 0 = none */
	uint64_t job_id;
	uint32_t mig_state; /* enum takt_actuate_mig_state */
	uint32_t reserved;
	uint64_t journal_device, journal_inode; /* of the file that is open */
	char uuid[TAKT_ACTUATE_UUID];
	char message[160];
};

/* Client, non-blocking; as in launch/launch.h: recv gives 1 = a reply in *ret, 0 = none yet, -EPIPE
 * = the actuator is gone (its leases too: connect and set them again). */
struct takt_actuate_client;
int takt_actuate_connect(const char *socket_path, struct takt_actuate_client **ret,
			 struct takt_err *err);
int takt_actuate_fd(const struct takt_actuate_client *client);
int takt_actuate_send(struct takt_actuate_client *client, struct takt_actuate_request request,
		      struct takt_err *err);
int takt_actuate_recv(struct takt_actuate_client *client, struct takt_actuate_reply *ret,
		      struct takt_err *err);
void takt_actuate_client_free(struct takt_actuate_client *client);

/* Where a process of this room says what an administrator should know, a line at a time. */
struct takt_actuate_log {
	void (*line)(void *ctx, const char *text); /* NULL: nowhere */
	void *ctx;
};

/* The processes. Paths are absolute. Both take the same exclusive lock before they touch a GPU. */
struct takt_actuate_config {
	const struct takt_sys *sys;
	int listen_fd;		   /* bound and listening; the guard has none */
	int stop_fd;		   /* readable: restore everything and return; -1: never */
	uid_t client_uid;	   /* this user and root may ask */
	const char *journal_path;  /* preallocated file, two checksummed slots a GPU */
	const char *lock_path;	   /* exclusive lock of whoever sets */
	const char *nvml_path;	   /* NULL: search path */
	const char *guard_path;	   /* takt-guard; started and watched */
	const char *sysfs_root;	   /* NULL: "/sys"; where CPUs are limited */
	const char *baseline_path; /* "" = reset; see docs/clocks.md */
	const char *declared_path; /* goes before it while it says anything; NULL: none */
	const char *declare; /* a file to be that, to be put in force; then end. NULL: serve */
	bool sets_nothing;   /* whoever asks; what was set is put back */
	bool any_call;	     /* of the kernel is the driver's to make: the guard is told */
	uint64_t call_deadline_ns; /* after which a driver call counts as hanging; 0 = 2 s */
	struct takt_actuate_log log;
};

/* Serves until stop_fd says so. 0: every GPU is back at its baseline; -TAKT_E_BUSY: another
 * actuator holds the lock; -TAKT_E_STALE: it lost the right to set; -EAGAIN: stopped while a GPU
 * could not be restored, which the guard goes on trying. With `declare`: 0, or why a GPU does
 * not stand as declared. */
int takt_actuate_serve(const struct takt_actuate_config *config, struct takt_err *err);

/* takt-guard: waits until the actuator behind `watch_fd` (its end of a socket pair, owned here) is
 * gone, then restores every GPU that the journal calls changed, and returns when all are or a new
 * actuator has taken over. Uses journal_path, lock_path, nvml_path, call_deadline_ns and log. */
int takt_guard_run(const struct takt_actuate_config *config, int watch_fd, struct takt_err *err);

#endif
