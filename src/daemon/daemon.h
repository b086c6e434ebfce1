/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon (`takt serve`): everything that one machine needs, wired together. Single-threaded but
 * for the device's workers and the store's writer; whatever could block is behind a descriptor of
 * the loop.
 */
#ifndef TAKT_DAEMON_DAEMON_H
#define TAKT_DAEMON_DAEMON_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/sys.h"
#include "config/config.h"
#include "device/device.h"
#include "engine/engine.h"
#include "launch/attempt.h"
#include "queue/queue.h"
#include "server/server.h"
#include "store/store.h"
#include "telemetry/telemetry.h"

struct takt_helper_proc {
	const char *name; /* "takt-launch" */
	pid_t pid;	  /* 0 = not running */
	int pidfd;	  /* -1 = none */
	char socket_path[108];
	struct takt_boot started, retry_at;
};

/* What one GPU lost before a job that waited for it to become clean, see handover.c. */
struct takt_handover_gap {
	uint64_t job_id; /* 0 = no such job yet */
	uint64_t driver_ns, scheduler_ns, start_ns;
	struct takt_wall given_at; /* with the engine; 0 = not yet */
	bool complete;		   /* it runs */
};

/* One GPU's drain and health, as the watch sees it. */
struct takt_gpu_watch {
	bool outside, lost, quarantined, draining;
	uint64_t seq_seen; /* of the newest sample looked at */
	struct takt_mono
		drain_since_mono; /* only a process list read after this may prove it clean */
	struct takt_boot drain_since;
	uint64_t mem_before_bytes; /* used with no job on it */
	bool mem_before_known;
	uint64_t mem_last_bytes;
	struct takt_mono
		mem_settled_at; /* since when mem_last_bytes is what is used; 0 = not looked yet */
	struct takt_boot clean_at;    /* clean since the last plan; 0 = no */
	uint64_t drained_ns;	      /* how long that took */
	struct takt_handover_gap gap; /* of the newest such job */
	struct takt_boot taken_at; /* when the GPU that a placed job waited for was clean; 0 = no */
	char lost_note[120], aside_note[160]; /* why it is lost, set aside; "" = it is not */
	char over_note[180]; /* who uses more memory of it than is reserved; "" = nobody */
};

/* Sums over all GPUs since the start, see handover.c. */
struct takt_handover {
	uint64_t driver_ns, drains, scheduler_ns, starts, start_ns, processes;
};

struct takt_attempts;
/* A file as it was when it was last read; compared as bytes. */
struct takt_file_mark {
	uint64_t inode;
	int64_t size, changed_s, changed_ns; /* size -1 = it was not there */
};

struct takt_idle;
struct takt_lease_keeper;
struct takt_orders;
struct takt_peaks;
struct takt_proc_cache;
struct takt_waiters;

struct takt_daemon {
	struct takt_config config;
	char libexec_dir[PATH_MAX];    /* of takt-launch, takt-shim, takt-actuate, takt-guard */
	const char *metrics_hosts[17]; /* into config.metrics_hosts, NULL-terminated */
	unsigned metrics_port;	       /* 0 = no TCP */
	const struct takt_sys *sys;
	bool single_user, manages;
	char observe_why[240];
	char hostname[65];
	char notes[4][200];
	struct takt_mono started;
	struct takt_machine *machine;
	int machine_event_fd;
	struct takt_telemetry *telemetry;
	struct takt_store *store;
	struct takt_engine *engine;
	struct takt_queue *queue;
	struct takt_server *server;
	struct takt_helper_proc actuate, launch;
	struct takt_lease_keeper *leases;
	struct takt_attempts *attempts;
	struct takt_orders *orders;
	struct takt_idle *idle;
	struct takt_proc_cache *procs;
	struct takt_waiters *waiters;
	struct takt_peaks *peaks;
	struct takt_gpu_watch watch[TAKT_DEVICE_MAX_GPUS];
	struct takt_handover handover;
	int gpu_lock_fd[TAKT_DEVICE_MAX_GPUS]; /* -1 = not held */
	int jobs_dirfd, signal_fd;
	uint32_t gpu_count;
	int32_t pair_score[TAKT_DEVICE_MAX_GPUS * TAKT_DEVICE_MAX_GPUS];
	struct takt_file_mark tenants_mark;
	struct takt_boot tenants_looked;
	struct takt_boot complained; /* when the loop last said that something failed */
	bool stop;
};

/* serve_setup.c: open everything in order, close it in reverse. open fails with the reason for
 * people. */
int takt_daemon_open(struct takt_daemon *daemon, const struct takt_config *config,
		     struct takt_err *err);
void takt_daemon_close(struct takt_daemon *daemon);
/* serve_loop.c: until SIGTERM or SIGINT. */
int takt_daemon_loop(struct takt_daemon *daemon, struct takt_err *err);

/* gpu_owner.c: one manager a GPU. Takes a lock a GPU by UUID across users; looks for slurmd, a
 * kubelet. Fills manages and observe_why. */
int takt_daemon_own_gpus(struct takt_daemon *daemon, struct takt_err *err);
/* A lock is held. Whether to try again, after a short pause: a daemon that was killed while it
 * started a helper leaves its locks to that process, for the moment until it has become the helper.
 */
bool takt_daemon_lock_again(const struct takt_daemon *daemon);
void takt_daemon_disown_gpus(struct takt_daemon *daemon);

/* tenants_file.c: who may have how much. Read it; read it if it has changed. */
void takt_tenants_file_read(struct takt_daemon *daemon);
void takt_tenants_file_look(struct takt_daemon *daemon, struct takt_boot now);

/* helper_proc.c */
/* All programs that jobs and clocks need are there and can be executed; otherwise the first that is
 * not is named. */
int takt_helpers_check(const struct takt_daemon *daemon, struct takt_err *err);
int takt_helper_start(struct takt_daemon *daemon, struct takt_helper_proc *helper,
		      struct takt_err *err);
/* Its pidfd is readable: reap, start again (at once the first time, then with a pause). */
void takt_helper_died(struct takt_daemon *daemon, struct takt_helper_proc *helper);
void takt_helper_retry(struct takt_daemon *daemon, struct takt_helper_proc *helper,
		       struct takt_boot now);
void takt_helper_stop(struct takt_helper_proc *helper);

/* gpu_watch.c */
/* Whether the driver said at the start which GPU it is. One that is not known is neither locked nor
 * given out. */
bool takt_watch_known(const struct takt_daemon *daemon, uint32_t gpu);
void takt_watch_tick(struct takt_daemon *daemon, struct takt_mono now, struct takt_boot boot);
/* Tells the queue again which GPUs are fit for use. */
void takt_watch_health(struct takt_daemon *daemon);
/* Why nobody gets this GPU; "" = no reason. Borrowed until the next tick. */
const char *takt_watch_note(const struct takt_daemon *daemon, uint32_t gpu);
void takt_watch_job_placed(struct takt_daemon *daemon, const struct takt_queue_job *job);
void takt_watch_job_over(struct takt_daemon *daemon, const struct takt_queue_job *job);

/* handover.c: what a GPU loses between two jobs. */
void takt_handover_clean(struct takt_daemon *daemon, uint32_t gpu);
void takt_handover_placed(struct takt_daemon *daemon, const struct takt_queue_job *job);
void takt_handover_planned(struct takt_daemon *daemon);
void takt_handover_started(struct takt_daemon *daemon, const struct takt_queue_job *job);
void takt_handover_running(struct takt_daemon *daemon, const struct takt_queue_job *job);
/* NULL = it did not wait for a GPU to become clean, or does not run yet. */
const struct takt_handover_gap *takt_handover_of(const struct takt_daemon *daemon, uint64_t job_id,
						 uint64_t gpu_mask);
void takt_handover_update_page(struct takt_daemon *daemon);

/* attempts.c: ids of containers' attempts, and ports where ranks meet. */
int takt_attempts_new(uint32_t port_first, uint32_t port_last, struct takt_attempts **ret);
void takt_attempts_free(struct takt_attempts *attempts);
/* An attempt of the job is about to start. *ret_port: for its ranks, 0 = it has none.
 * -TAKT_E_UNAVAILABLE: none is free. */
int takt_attempts_begin(struct takt_attempts *attempts, const struct takt_queue_job *job,
			const char *attempt_id, uint32_t *ret_port, struct takt_err *err);
/* One that runs since before this daemon: as its spec says. */
int takt_attempts_adopt(struct takt_attempts *attempts, const struct takt_sys *sys, int jobs_dirfd,
			const struct takt_queue_job *job, struct takt_err *err);
/* Its port is free again. */
void takt_attempts_over(struct takt_attempts *attempts, uint64_t job_id);
/* Whether that user's process, which says that it is of this attempt, is of this job's. */
bool takt_attempts_is(const struct takt_attempts *attempts, uint64_t job_id, const char *attempt_id,
		      uid_t uid);

/* idle_release.c: jobs that are ended when nobody uses them. */
int takt_idle_new(struct takt_daemon *daemon, struct takt_idle **ret);
void takt_idle_free(struct takt_idle *idle);
/* It runs; nothing happens to one that did not ask for it, or is watched already. */
void takt_idle_watch(struct takt_idle *idle, const struct takt_queue_job *job);
void takt_idle_forget(struct takt_idle *idle, uint64_t job_id);
/* Samples have come. */
void takt_idle_tick(struct takt_idle *idle, struct takt_mono now, struct takt_boot boot);

/* job_strays.c: what the owner of a running job should know of GPUs that were not given to it; "" =
 * nothing. */
void takt_stray_note(struct takt_daemon *daemon, const struct takt_queue_job *job, char *ret,
		     size_t size);
/* Whether dockerd or containerd started it, or an ancestor of it. */
bool takt_stray_in_container(int32_t pid);

/* proc_who.c: whose process a pid is. */
struct takt_proc_who {
	uint64_t start_ticks;
	uint64_t checked_ns;
	uint64_t job_id;  /* 0 = not takt's */
	uint32_t attempt; /* of the job */
	uint32_t uid;	  /* UINT32_MAX = not known */
	bool gone;	  /* the driver lists it, the kernel does not */
	char command[65];
};
int takt_proc_cache_new(const char *jobs_dir, const struct takt_attempts *attempts,
			struct takt_proc_cache **ret);
void takt_proc_cache_free(struct takt_proc_cache *cache);
const struct takt_proc_who *takt_proc_who(struct takt_proc_cache *cache, int32_t pid,
					  struct takt_mono now);
/* Name of a user into buf; "" when the system does not know it. */
const char *takt_user_name(uid_t uid, char *buf, size_t size);

/* lease_keeper.c: clock leases of jobs and administrators, over the actuator's socket. */
int takt_leases_new(struct takt_daemon *daemon, struct takt_lease_keeper **ret,
		    struct takt_err *err);
void takt_leases_free(struct takt_lease_keeper *leases);
int takt_leases_fd(const struct takt_lease_keeper *leases); /* -1 = not connected */
/* Connects, renews, reads replies, times out; *ret_next_ns as ever. */
void takt_leases_pump(struct takt_lease_keeper *leases, struct takt_boot now,
		      uint64_t *ret_next_ns);
/* Ask for the job's clocks on its GPUs; takt_queue_prepared() follows. At once when it asks for
 * none. */
void takt_leases_job_start(struct takt_lease_keeper *leases, const struct takt_queue_job *job);
/* The daemon has found it running after a restart: apply again. */
void takt_leases_job_adopt(struct takt_lease_keeper *leases, const struct takt_queue_job *job);
void takt_leases_job_end(struct takt_lease_keeper *leases, const struct takt_queue_job *job);
/* "takt clock set|reset". job_id 0: an administrator's own lease. The pending gets the clock view.
 */
void takt_leases_set(struct takt_lease_keeper *leases, uint64_t gpu_mask, uint64_t job_id,
		     uint32_t min_mhz, uint32_t max_mhz, struct takt_pending *pending);
void takt_leases_reset(struct takt_lease_keeper *leases, uint64_t gpu_mask, uint64_t job_id,
		       struct takt_pending *pending);
/* What is known of one GPU's clocks. */
struct takt_lease_state {
	const char *state; /* static text, "clean", ... */
	char note[160];
	uint32_t min_mhz, max_mhz; /* applied; max 0 = none */
	uint64_t job_id;
};
void takt_leases_state(const struct takt_lease_keeper *leases, uint32_t gpu,
		       struct takt_lease_state *ret);
/* Whether a job that runs did not have the clocks that it asked for, all the time and on every GPU;
 * then buf says so. */
bool takt_leases_job_trouble(const struct takt_lease_keeper *leases,
			     const struct takt_queue_job *job, char *buf, size_t size);
/* What a job's view says of its clocks. */
void takt_leases_job_note(const struct takt_lease_keeper *leases, const struct takt_queue_job *job,
			  char *buf, size_t size);

/* job_spec.c: CPUs that jobs may use, in thousandths. */
int32_t takt_daemon_cpu_milli(void);
/* job_spec.c: what the engine starts; see struct takt_engine_local_config.describe. */
int takt_daemon_describe_job(void *ctx, const struct takt_action *start, const char *attempt_id,
			     struct takt_attempt_spec *ret_spec, uid_t *ret_uid, gid_t *ret_gid,
			     struct takt_err *err);

/* not_yet.c: refuses (-TAKT_E_UNSUPPORTED, names flag and field) what is not carried out yet. */
int takt_daemon_check_carried_out(const struct takt_jobspec *spec, struct takt_err *err);

/* job_hooks.c: the queue's callbacks. */
extern const struct takt_queue_hooks takt_daemon_queue_hooks;

/* waiters.c: requests that wait for a job. */
int takt_waiters_new(struct takt_daemon *daemon, struct takt_waiters **ret);
void takt_waiters_free(struct takt_waiters *waiters);
int takt_waiters_add(struct takt_waiters *waiters, uint64_t job_id, uint64_t deadline_ns,
		     const struct takt_peer *peer, struct takt_pending *pending,
		     struct takt_err *err);
/* The job has ended durably: answer everybody who waits for it. */
void takt_waiters_ended(struct takt_waiters *waiters, const struct takt_queue_job *job);
void takt_waiters_expire(struct takt_waiters *waiters, struct takt_boot now, uint64_t *ret_next_ns);

/* api_gpus.c, api_jobs.c, api_submit.c, api_change.c, api_control.c: what the server asks. */
extern const struct takt_server_backend takt_daemon_backend;
int takt_api_status(void *ctx, const struct takt_peer *peer, struct takt_status_view *ret,
		    struct takt_err *err);
int takt_api_topology(void *ctx, struct takt_topo_view *ret, struct takt_err *err);
int takt_api_clocks(void *ctx, struct takt_clock_view *ret, struct takt_err *err);
int takt_api_job(void *ctx, const struct takt_peer *peer, uint64_t job_id,
		 struct takt_job_view *ret, struct takt_err *err);
uint64_t takt_api_live_version(void *ctx);
int takt_api_queue(void *ctx, const struct takt_peer *peer, bool history, uint32_t limit,
		   int (*each)(void *arg, const struct takt_job_view *view), void *arg,
		   uint64_t *ret_total, struct takt_err *err);
int takt_api_explain(void *ctx, const struct takt_peer *peer, uint64_t job_id,
		     struct takt_explain_view *ret, struct takt_err *err);
int takt_api_submit(void *ctx, const struct takt_peer *peer, struct takt_jobspec *spec,
		    struct takt_pending *pending, struct takt_err *err);
int takt_api_submit_many(void *ctx, const struct takt_peer *peer, struct takt_jobspecs *specs,
			 struct takt_pending *pending, struct takt_err *err);
int takt_api_try(void *ctx, const struct takt_peer *peer, struct takt_jobspecs *specs,
		 struct takt_try_view *ret, struct takt_err *err);
void takt_api_accepted(void *ctx, void *token, const struct takt_queue_job *job,
		       const struct takt_err *error);
int takt_api_change(void *ctx, const struct takt_peer *peer, uint64_t job_id,
		    const struct takt_job_change *change, struct takt_pending *pending,
		    struct takt_err *err);
void takt_api_noted(void *ctx, void *token, const struct takt_queue_job *job,
		    const struct takt_err *error);
/* A live job that the peer may act on; else -EPERM, -TAKT_E_CONFLICT (it has ended) or
 * -TAKT_E_NOT_FOUND. */
int takt_api_find_own(struct takt_daemon *daemon, const struct takt_peer *peer, uint64_t job_id,
		      const struct takt_queue_job **ret, struct takt_err *err);
/* Act on a job: its owner and administrators. Read its command, directory, log: its owner and root.
 */
bool takt_api_may_act(const struct takt_peer *peer, uid_t owner);
bool takt_api_may_read(const struct takt_peer *peer, uid_t owner);
/* Row of a job that the queue no longer has; the caller finis it. -TAKT_E_NOT_FOUND names the job.
 */
int takt_api_ended_row(struct takt_daemon *daemon, uint64_t job_id, struct takt_job *ret,
		       struct takt_err *err);
/* Finish a pending with a job's view. */
void takt_api_answer_job(struct takt_daemon *daemon, struct takt_pending *pending, int http_status,
			 const struct takt_peer *peer, const struct takt_queue_job *job);
/* job_outlook.c: what is to be expected of a live job. */
void takt_api_fill_outlook(const struct takt_daemon *daemon, const struct takt_queue_job *job,
			   struct takt_job_view *ret);
bool takt_api_start_error(const struct takt_daemon *daemon, uint64_t *ret_ms);
/* why_more.c: appends to the plan's word on why a job waits what only the daemon knows: who has set
 * a GPU aside, whose process is on it. */
void takt_api_why_more(struct takt_daemon *daemon, enum takt_why why, char *text, size_t size);
void takt_throttle_text(uint64_t bits, char *buf, size_t size);
/* Metrics that are not a GPU's; labels of GPUs. */
void takt_api_update_page(struct takt_daemon *daemon);

/* The verb `serve`, whose name is argv[1] if there is one; argv is the process's own. Returns its
 * exit status. */
int takt_serve_main(int argc, char **argv);
/* The verb `admin`: backup, restore, check or report of the files of a daemon, which need not run.
 */
int takt_admin_files(const char *action, const struct takt_config *config, const char *file,
		     void (*say)(void *ctx, const char *text), void *ctx, struct takt_err *err);
/* The verb `record`. */
int takt_record_main(int argc, char **argv);

#endif
