/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The launcher: the one process that starts shims, as root where jobs run as other users. It loads
 * no NVML, knows no JSON, serves one client (the daemon) over a SOCK_SEQPACKET Unix socket and
 * keeps no state worth saving: everything is in the attempt's directory.
 *
 * Messages are fixed structs of host byte order (both ends are the same build; `version` says so).
 * Every request gets exactly one reply with the same `seq`; replies may come in another order.
 */
#ifndef TAKT_LAUNCH_LAUNCH_H
#define TAKT_LAUNCH_LAUNCH_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/refusal.h"
#include "base/sys.h"
#include "launch/job_cgroup.h"
#include "launch/job_limits.h"
#include "launch/job_user.h"

enum {
	TAKT_LAUNCH_VERSION = 6,
	TAKT_LAUNCH_MAX_PENDING = 64, /* requests without a reply; more wait in the socket */
};

/* Sent to a shim with a signal number as value: pass that number on to the job. */
#define TAKT_SHIM_FORWARD_SIGNAL SIGRTMIN

/* With seconds added, instead of a signal's number: say at the job's terminal that it will be ended
 * after so long unless somebody uses it. Nothing is sent to the job. */
enum {
	TAKT_SHIM_NOTICE_IDLE = 1 << 20
};
/* Sent to a shim that waits with a staged attempt: it is still wanted; look whether its turn has
 * come. Any other shim ignores it. */
#define TAKT_SHIM_LOOK_SIGNAL (SIGRTMIN + 1)

enum takt_launch_op {
	TAKT_LAUNCH_HELLO = 1,

	/* job_id, attempt, uid, gid, limits: fork, make the job's cgroup, take the user's
	 * groups, exec the shim on the attempt's directory. The reply names the shim.
	 * -TAKT_E_CONFLICT when the attempt is alive, started, ended or void; -TAKT_E_NOT_FOUND
	 * without a spec; -EPERM for a user that may run nothing. A request repeated while the
	 * first is under way is harmless: the lock lets one shim run.
	 */
	TAKT_LAUNCH_START,

	/* job_id, attempt, uid, target (the shim), signal: the shim passes it on to the job. -ESRCH
	 * when the target is gone, -EPERM when it is no shim of that attempt. */
	TAKT_LAUNCH_SIGNAL,

	/* As SIGNAL, without a signal: the shim sends SIGTERM, and SIGKILL after the job's grace.
	 * With SIGKILL: the launcher does it at once, to all that is in the job's cgroup or
	 * descends from the shim. */
	TAKT_LAUNCH_STOP,

	/* job_id, attempt, uid: SIGKILL to every survivor of an attempt whose shim is gone. rc is
	 * how many there were; repeat until it is 0. -TAKT_E_CONFLICT while the lock is held. The
	 * launcher finds them itself: it may see what the daemon may not. */
	TAKT_LAUNCH_REAP,

	/* As STOP, for a staged attempt: have the shim look for `go`. With limits that are not
	 * `staged` its turn has come: its GPUs are opened to it first. May be repeated. */
	TAKT_LAUNCH_LOOK,

	/* uid, target: what the environment of that process of the user's names as TAKT_ATTEMPT, as
	 * the reply's message; "" when it names none. Processes of containers are nobody's
	 * children, and a daemon that is not root cannot read it. -ESRCH, -EPERM as above. */
	TAKT_LAUNCH_WHOSE,
};

struct takt_launch_request {
	uint32_t version; /* filled in by takt_launch_send */
	uint32_t op;
	uint64_t seq;
	uint64_t job_id;
	uint32_t attempt;
	uint32_t uid, gid;
	int32_t signal;
	struct takt_proc_id target;
	struct takt_job_limits limits; /* START, LOOK */
};

struct takt_launch_reply {
	uint32_t version;
	uint32_t op;
	uint64_t seq;
	int32_t rc;		  /* 0 or positive, or negative as base/err.h says */
	uint32_t refusal;	  /* START that failed: enum takt_refusal */
	struct takt_proc_id shim; /* START */
	char message[160];
};

/*
 * Client side, non-blocking. connect: -ENOENT, -ECONNREFUSED (nobody there), -EAGAIN (too many
 * wait), -EACCES. send: -EAGAIN when the socket is full, -EPIPE when the launcher is gone. recv: 1
 * = a reply in *ret, 0 = none yet, -EPIPE = the launcher is gone, -TAKT_E_VERSION = another build.
 */
struct takt_launch_client;
int takt_launch_connect(const char *socket_path, struct takt_launch_client **ret,
			struct takt_err *err);
int takt_launch_fd(const struct takt_launch_client *client);
int takt_launch_send(struct takt_launch_client *client, struct takt_launch_request request,
		     struct takt_err *err);
int takt_launch_recv(struct takt_launch_client *client, struct takt_launch_reply *ret,
		     struct takt_err *err);
void takt_launch_client_free(struct takt_launch_client *client); /* closes; takes NULL */

/*
 * Server side: the whole process (takt-launch). Returns 0 on SIGTERM or SIGINT, or when no client
 * is there for idle_ms. The shims that it started go on. It changes the signal mask, makes SIGCHLD
 * ignored, and expects to be single-threaded.
 */
struct takt_launch_server_config {
	int listen_fd;	       /* borrowed */
	const char *jobs_dir;  /* where attempts live */
	const char *shim_path; /* absolute path of takt-shim */
	const char *cgroup;    /* where cgroups of jobs are made; NULL = the launcher's own */
	uid_t client_uid;      /* only this user (and root) may ask */
	uid_t min_uid;	       /* as root: users below are the system's, like nobody; they and root
				  are refused, but never the user that runs both launcher and
				  client, which is single-user mode */
	bool allow_system;     /* as root: only root is refused */
	uint32_t idle_ms;      /* 0 = wait for ever */
	bool allow_weak;       /* as root: start jobs of other users also where devices stay open */
};
int takt_launch_serve(const struct takt_launch_server_config *config, struct takt_err *err);

/* A listening socket at `path` (mode 0600; a dead one's name is taken over), non-blocking and
 * close-on-exec, for the caller to close. -TAKT_E_BUSY when somebody listens there. */
int takt_launch_listen(const char *path, struct takt_err *err);

/*
 * The shim: runs one attempt to its end (takt-shim DIR JOBS CGROUP WHY USER LIMITS). attempt_dirfd
 * is borrowed; place says into which cgroup the job goes and how well it is isolated; user whose
 * the job is, where he is not who runs the shim: then that is root. Returns 0 when the end is
 * recorded; negative when nothing was run and nothing is recorded, so that the attempt may be
 * started again: -TAKT_E_BUSY (another shim has it), -TAKT_E_CONFLICT (it has started or ended),
 * -ENOSPC, ... It changes the signal mask and dispositions, the umask, and the working directory of
 * the process.
 *
 * The job's first process leads a session and process group of its own; standard input is
 * /dev/null, output and error go to the log. Its signals and mask are the default ones, its umask
 * is 022. What starts it and what it cannot have (CPUs, cgroup) is said in the log.
 *
 * A staged attempt waits first, see attempt.h: its prefetch runs meanwhile at the lowest
 * priorities, with its output in the log; how it ended is said there and has no other effect.
 * SIGTERM calls a waiting attempt off: nothing of it is left, and `exit` says void.
 *
 * SIGTERM to the shim: SIGTERM and SIGCONT to every process of the job, after its grace SIGKILL
 * until none is left. TAKT_SHIM_FORWARD_SIGNAL with a number, and any other signal that would end
 * or inform a process: passed on to the job's process group, as a terminal does.
 *
 * The first process ending ends the job. What it leaves behind has one second (or the grace, if
 * shorter) to finish, then gets SIGTERM, then after the grace SIGKILL. Only when none is left is
 * `exit` recorded. A full disk is waited out: a shim that cannot record does not end.
 *
 * Killed with SIGKILL the shim takes the first process along (PR_SET_PDEATHSIG; not one that is
 * set-uid); others survive until TAKT_LAUNCH_REAP.
 */
int takt_shim_run(const struct takt_sys *sys, int attempt_dirfd, const struct takt_job_place *place,
		  const struct takt_job_user *user, struct takt_err *err);

#endif
