/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The launcher: the one process that starts shims, as root where jobs run as other users. It loads
 * no NVML, knows no JSON, serves one client (the daemon) over a SOCK_SEQPACKET Unix socket and
 * keeps no state worth saving: everything is in the attempt's directory.
 *
 * Messages are fixed structs of host byte order (both ends are the same build; `version` says so).
 * Every request gets exactly one reply with the same `seq`.
 */
#ifndef TAKT_LAUNCH_LAUNCH_H
#define TAKT_LAUNCH_LAUNCH_H

#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/sys.h"

enum {
	TAKT_LAUNCH_VERSION = 1
};

enum takt_launch_op {
	TAKT_LAUNCH_HELLO = 1,
	TAKT_LAUNCH_START, /* job_id, attempt, uid, gid: fork, become the user, exec the shim on the
			      attempt's directory */
	TAKT_LAUNCH_SIGNAL, /* job_id, attempt, target, signal: to the shim named by its record, by
			       pidfd */
	TAKT_LAUNCH_KILL,   /* target: SIGKILL to exactly that surviving process */
};

struct takt_launch_request {
	uint32_t version;
	uint32_t op;
	uint64_t seq;
	uint64_t job_id;
	uint32_t attempt;
	uint32_t uid, gid;
	int32_t signal;
	struct takt_proc_id target;
};

struct takt_launch_reply {
	uint32_t version;
	uint32_t op;
	uint64_t seq;
	int32_t rc;		  /* 0 or negative as base/err.h says */
	struct takt_proc_id shim; /* START: the shim */
	char message[160];
};

/* Client side, non-blocking. */
struct takt_launch_client;
int takt_launch_connect(const char *socket_path, struct takt_launch_client **ret,
			struct takt_err *err);
int takt_launch_fd(const struct takt_launch_client *client);
int takt_launch_send(struct takt_launch_client *client, struct takt_launch_request request,
		     struct takt_err *err);
/* 1 = a reply in *ret, 0 = none yet, -EPIPE = the launcher is gone. */
int takt_launch_recv(struct takt_launch_client *client, struct takt_launch_reply *ret,
		     struct takt_err *err);
void takt_launch_client_free(struct takt_launch_client *client);

/* Server side: the whole process (takt-launch). Returns when `listen_fd`'s client closes and none
 * comes within idle time, or on SIGTERM. shim_path: absolute path of takt-shim; jobs_dir: where
 * attempts live. */
struct takt_launch_server_config {
	int listen_fd;
	const char *jobs_dir;
	const char *shim_path;
	uid_t client_uid; /* only this user (and root) may ask */
	uid_t min_uid;	  /* refuses uids below, and 0, when it runs as root */
};
int takt_launch_serve(const struct takt_launch_server_config *config, struct takt_err *err);

/* The shim: runs one attempt to its end (takt-shim DIR). Returns the exit status of the process. */
int takt_shim_run(const struct takt_sys *sys, int attempt_dirfd, struct takt_err *err);

#endif
