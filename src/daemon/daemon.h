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

#include "actuate/actuate.h"
#include "base/err.h"
#include "base/mig_layout.h"
#include "base/sys.h"
#include "clock/governor.h"
#include "config/config.h"
#include "device/device.h"
#include "device/driver_look.h"
#include "engine/engine.h"
#include "launch/attempt.h"
#include "queue/queue.h"
#include "server/server.h"
#include "store/store.h"
#include "telemetry/history.h"
#include "telemetry/telemetry.h"
#include "top/gpu_view.h"

struct takt_helper_proc {
	const char *name; /* "takt-launch" */
	pid_t pid;	  /* 0 = not running */
	int pidfd;	  /* -1 = none */
	char socket_path[108];
	struct takt_boot started, retry_at;
	uint32_t failures; /* of its start, in a row */
};

/* What one GPU lost before a job that waited for it to become clean, see handover.c. */
struct takt_handover_gap {
	uint64_t job_id; /* 0 = no such job yet */
	uint64_t driver_ns, scheduler_ns, start_ns;
	struct takt_boot given_at; /* with the engine; 0 = not yet */
	bool complete;		   /* it runs */
};

/* One GPU's drain and health, as the watch sees it. */
struct takt_gpu_watch {
	bool outside, lost, quarantined, ill, draining;
	uint64_t seq_seen; /* of the newest sample looked at */
	struct takt_mono
		drain_since_mono; /* only a process list read after this may prove it clean */
	struct takt_boot drain_since;
	uint64_t mem_before_bytes; /* used with no job on it */
	bool mem_before_known;
	uint32_t drain_looks;	       /* that found it not clean, in a row */
	struct takt_boot drain_ask_at; /* the next; 0 = it was asked for */
	bool kept;		       /* the store may have a record of it, see drain_kept.c */
	uint64_t mem_last_bytes;
	struct takt_mono
		mem_settled_at; /* since when mem_last_bytes is what is used; 0 = not looked yet */
	struct takt_boot clean_at;    /* clean since the last plan; 0 = no */
	uint64_t drained_ns;	      /* how long that took */
	struct takt_handover_gap gap; /* of the newest such job */
	struct takt_boot taken_at; /* when the GPU that a placed job waited for was clean; 0 = no */
	char lost_note[120], aside_note[160]; /* why it is lost, set aside; "" = it is not */
	char ill_note[240];		      /* what the rules of health found; "" = nothing */
	char over_note[180]; /* who uses more memory of it than is reserved; "" = nobody */
};

/* Sums over all GPUs since the start, see handover.c. */
struct takt_handover {
	uint64_t driver_ns, drains, scheduler_ns, starts, start_ns, processes;
};

struct takt_attempts;
struct takt_event_hooks;
/* A file as it was when it was last looked at; compared as bytes. */
struct takt_file_mark {
	uint64_t inode;
	int64_t size, changed_s, changed_ns; /* size -1 = it was not there */
};

struct takt_tls_marks {
	struct takt_file_mark certificate, key;
};
_Static_assert(sizeof(struct takt_file_mark) == 4 * sizeof(uint64_t) &&
		       sizeof(struct takt_tls_marks) == 2 * sizeof(struct takt_file_mark),
	       "no padding: they are compared as bytes");

struct takt_clock_admin;
struct takt_govern;
struct takt_governor_objects;
struct takt_gpu_health;
struct takt_net_probe;
struct takt_net_watch;
struct takt_gpu_history;
struct takt_idle;
struct takt_job_course;
struct takt_job_output;
struct takt_job_progress;
struct takt_lease_keeper;
struct takt_orders;
struct takt_own_files;
struct takt_daily_backup;
struct takt_peaks;
struct takt_proc_cache;
struct takt_waiters;
struct takt_daemon {
	struct takt_config config; /* in force */
	struct takt_config read;   /* as it was read, what counts without a restart as in force */
	int argc;		   /* of `takt serve`, to read it again */
	char **argv;
	char libexec_dir[PATH_MAX];	 /* of takt-launch, takt-shim, takt-actuate, takt-guard */
	const char *metrics_hosts[17];	 /* into config.metrics_hosts, NULL-terminated */
	unsigned metrics_port, web_port; /* 0 = no TCP */
	struct takt_tls *tls;		 /* NULL = none */
	struct takt_mono metrics_file_due;
	bool metrics_file_failed;
	struct takt_mono nccl_due;
	bool nccl_failed;
	const struct takt_sys *sys;
	bool single_user, manages;
	uid_t min_uid; /* users below are the system's */
	char observe_why[240];
	bool owned_by_another; /* takt is why it does not; asked for again: */
	struct takt_boot own_at;
	uint32_t own_tries;
	char hostname[65];
	char notes[9][320];
	struct takt_mono started;
	struct takt_machine *machine;
	struct takt_machine_config machine_config; /* it was opened by; strings of config */
	struct takt_driver_look driver_look;
	bool looks_for_driver; /* it was not there, and may come, or it is gone */
	int machine_event_fd;
	struct takt_telemetry *telemetry;
	struct takt_gpu_history *history;
	struct takt_store *store;
	struct takt_engine *engine;
	struct takt_queue *queue;
	struct takt_server *server;
	struct takt_helper_proc actuate, launch;
	struct takt_lease_keeper *leases;
	struct takt_clock_admin *clock_admin;
	struct takt_admin_knobs *knobs;
	struct takt_attempts *attempts;
	struct takt_event_hooks *hooks;
	struct takt_orders *orders;
	struct takt_mig *mig;
	struct takt_governor_objects *governors; /* an administrator's own */
	struct takt_govern *govern;
	struct takt_gpu_health *health;
	struct takt_net_watch *net_watch;
	struct takt_net_probe *net_probe; /* NULL = off */
	struct takt_idle *idle;
	struct takt_job_progress *progress;
	struct takt_job_output *output;
	struct takt_job_course *courses;
	struct takt_proc_cache *procs;
	struct takt_waiters *waiters;
	struct takt_peaks *peaks;
	struct takt_own_files *own_files;
	struct takt_daily_backup *daily_backup;
	struct takt_gpu_watch watch[TAKT_DEVICE_MAX_GPUS];
	struct takt_handover handover;
	int gpu_lock_fd[TAKT_DEVICE_MAX_GPUS]; /* -1 = not held */
	int jobs_dirfd, signal_fd;
	uint32_t gpu_count;
	int32_t pair_score[TAKT_DEVICE_MAX_GPUS * TAKT_DEVICE_MAX_GPUS];
	uint32_t gpu_mem_mib[TAKT_DEVICE_MAX_GPUS]; /* 0 = not known */
	const char *gpu_uuid[TAKT_DEVICE_MAX_GPUS]; /* the machine's */
	struct takt_file_mark tenants_mark;
	struct takt_boot tenants_looked;
	struct takt_tls_marks tls_read, tls_seen; /* when read last, when looked at last */
	struct takt_boot tls_looked;
	struct takt_mono accounts_due; /* when they are kept next; 0 = not looked yet */
	struct takt_boot complained;   /* when the loop last said that something failed */
	uint32_t failed_turns;	       /* of the loop, in a row */
	uint64_t turns;		       /* of the loop */
	uint64_t busy_ns, longest_ns;  /* of its turns: together, and the longest one */
	bool stop;
	bool again; /* with stop: what is there has changed, and the program begins anew */
};

/* serve_setup.c: open everything in order, close it in reverse. open fails with the reason for
 * people. The arguments, those of `takt serve`, are borrowed until close. */
int takt_daemon_open(struct takt_daemon *daemon, const struct takt_config *config, int argc,
		     char **argv, struct takt_err *err);
void takt_daemon_close(struct takt_daemon *daemon);
/* serve_loop.c: until SIGTERM or SIGINT. */
int takt_daemon_loop(struct takt_daemon *daemon, struct takt_err *err);

/* gpu_owner.c: one manager a GPU. Takes a lock a GPU by UUID across users; looks for slurmd, a
 * kubelet. Fills manages and observe_why. */
int takt_daemon_own_gpus(struct takt_daemon *daemon, struct takt_err *err);
/* Of GPUs that another takt had: whether none is any more; else when to ask again. */
bool takt_daemon_may_own_gpus(struct takt_daemon *daemon, struct takt_boot now,
			      struct takt_boot *ret_next);
/* A lock is held, for the how many-th time (from 0). Whether to try again, after a pause: a daemon
 * that was killed while it started a helper leaves its locks to that process, for the moment until
 * it has become the helper.
 */
bool takt_daemon_lock_again(const struct takt_daemon *daemon, uint32_t tries);
void takt_daemon_disown_gpus(struct takt_daemon *daemon);

/* reload.c: the configuration read again, whole or not at all. The notes of `takt status` say what
 * was refused or needs a restart. */
int takt_daemon_reload(struct takt_daemon *daemon, struct takt_reload_view *ret,
		       struct takt_err *err);
int takt_api_reload(void *ctx, const struct takt_peer *peer, struct takt_reload_view *ret,
		    struct takt_err *err);
/* What the queue is told of a configuration. */
struct takt_queue_terms takt_daemon_queue_terms(const struct takt_config *config);

/* file_mark.c */
struct takt_file_mark takt_file_mark_of(const char *path);

/* tls_files.c: the certificate and its key, if any. Open them; read them again, for connections to
 * come; read them again if they have changed. */
int takt_tls_files_open(struct takt_daemon *daemon, struct takt_err *err);
void takt_tls_files_read(struct takt_daemon *daemon);
void takt_tls_files_look(struct takt_daemon *daemon, struct takt_boot now);

/* own_files.c: the database, socket and journal that are open are those on disk; once the server is
 * open. look: now, before a job is accepted; -TAKT_E_MOVED names the first that is not. tick: some
 * seconds after the last look. */
int takt_own_files_new(struct takt_daemon *daemon, struct takt_err *err);
void takt_own_files_free(struct takt_own_files *files);
int takt_own_files_look(struct takt_daemon *daemon, struct takt_err *err);
void takt_own_files_tick(struct takt_daemon *daemon, struct takt_boot now);
void takt_own_files_update_page(struct takt_daemon *daemon);

/* refused_starts.c: jobs that have had their turn and were not started. fill: after `why`. look:
 * after each turn of the queue, for `takt status` and the log. */
void takt_refused_fill(struct takt_daemon *daemon, const struct takt_queue_job *job,
		       struct takt_job_view *ret);
void takt_refused_look(struct takt_daemon *daemon);
void takt_refused_update_page(struct takt_daemon *daemon);

/* The API's socket, as the configuration says. */
int takt_daemon_listen(const struct takt_daemon *daemon, int *ret_fd, struct takt_err *err);

/* tenants_file.c: who may have how much. Read it; read it if it has changed. */
void takt_tenants_file_read(struct takt_daemon *daemon);
void takt_tenants_file_look(struct takt_daemon *daemon, struct takt_boot now);

/* helper_proc.c */
/* All programs that jobs and clocks need are there and can be executed; otherwise the first that is
 * not is named. */
int takt_helpers_check(const struct takt_daemon *daemon, struct takt_err *err);
int takt_helper_start(struct takt_daemon *daemon, struct takt_helper_proc *helper,
		      struct takt_err *err);
/* Its pidfd is readable: reap, start again (at once if it lived for a while, else after a pause).
 */
void takt_helper_died(struct takt_daemon *daemon, struct takt_helper_proc *helper);
void takt_helper_retry(struct takt_daemon *daemon, struct takt_helper_proc *helper,
		       struct takt_boot now);
void takt_helper_stop(struct takt_helper_proc *helper);

/* gpu_watch.c */
/* Whether the driver said at the start which GPU it is. One that is not known is neither locked nor
 * given out. */
bool takt_watch_known(const struct takt_daemon *daemon, uint32_t gpu);
/* Whether it is suspended and left so: nothing is read of it. */
bool takt_watch_asleep(const struct takt_daemon *daemon, uint32_t gpu);
void takt_watch_tick(struct takt_daemon *daemon, struct takt_mono now, struct takt_boot boot);
/* When a GPU that drains is to be looked at again; UINT64_MAX = none. */
struct takt_boot takt_watch_due(const struct takt_daemon *daemon);
/* Tells the queue again which GPUs are fit for use. */
void takt_watch_health(struct takt_daemon *daemon);
/* Why nobody gets this GPU; "" = no reason. Borrowed until the next tick. */
const char *takt_watch_note(const struct takt_daemon *daemon, uint32_t gpu);
/* The GPU's clocks as they are shown: of one that does not answer nobody knows that they are clean.
 */
struct takt_lease_state;
void takt_watch_clocks(const struct takt_daemon *daemon, uint32_t gpu,
		       struct takt_lease_state *ret);
void takt_watch_job_placed(struct takt_daemon *daemon, const struct takt_queue_job *job);
void takt_watch_job_over(struct takt_daemon *daemon, const struct takt_queue_job *job);

/* drain_kept.c: once the queue is loaded. GPUs that were left, and were not known to be clean when
 * an earlier daemon of this boot ended, drain on. */
int takt_drain_load(struct takt_daemon *daemon, struct takt_err *err);

/* account_kept.c: accounts of jobs that run, over a restart. Look whether they are to be kept; keep
 * them now; the attempt is over; go on with those of an earlier daemon, once the queue is loaded.
 */
void takt_accounts_tick(struct takt_daemon *daemon, struct takt_mono now);
void takt_accounts_keep(struct takt_daemon *daemon);
void takt_account_forget(struct takt_daemon *daemon, const struct takt_queue_job *job);
int takt_accounts_load(struct takt_daemon *daemon, struct takt_err *err);

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
/* For its owner, once it is to be released soon; else *ret stays. */
void takt_idle_note(const struct takt_idle *idle, const struct takt_queue_job *job, char *ret,
		    size_t size);
/* Samples have come. */
void takt_idle_tick(struct takt_idle *idle, struct takt_mono now, struct takt_boot boot);

/* gpu_history.c: what GPUs did, in files of state_dir. */
int takt_gpu_history_new(struct takt_daemon *daemon, struct takt_err *err);
void takt_gpu_history_free(struct takt_gpu_history *history);	 /* NULL is fine */
int takt_gpu_history_fd(const struct takt_gpu_history *history); /* -1 = none is kept */
/* Bit g of `fresh`: GPU g has a new reading. */
void takt_gpu_history_tick(struct takt_daemon *daemon, uint64_t fresh, struct takt_mono now);
void takt_gpu_history_pump(struct takt_daemon *daemon);
void takt_gpu_history_update_page(struct takt_daemon *daemon);
int takt_api_history(void *ctx, const struct takt_gpu_history_ask *ask,
		     struct takt_pending *pending, struct takt_err *err);

/* job_progress.c: how far jobs say they are. */
enum {
	TAKT_PROGRESS_PATH = 64
};
/* Of the file, below the folder of attempts. */
void takt_job_progress_path(uint64_t job_id, uint32_t attempt, char ret[TAKT_PROGRESS_PATH]);
int takt_job_progress_new(struct takt_job_progress **ret);
void takt_job_progress_free(struct takt_job_progress *progress);
/* It runs; or is over. */
void takt_job_progress_watch(struct takt_job_progress *progress, const struct takt_queue_job *job);
void takt_job_progress_forget(struct takt_job_progress *progress, uint64_t job_id);
void takt_job_progress_tick(struct takt_daemon *daemon, struct takt_mono now);
void takt_job_progress_fill(struct takt_daemon *daemon, uint64_t job_id,
			    struct takt_progress_view *ret);
/* What it said last, while its folder is there. */
void takt_job_progress_fill_ended(struct takt_daemon *daemon, const struct takt_job *row,
				  struct takt_progress_view *ret);

/* job_output.c: what jobs print. */
int takt_job_output_new(struct takt_job_output **ret);
void takt_job_output_free(struct takt_job_output *output);
/* How many bytes are kept of any one job: output_limit, and less where the disk has not a hundred
 * times as much free. 0 = all. */
uint64_t takt_job_output_limit(const struct takt_daemon *daemon);
/* Of this one, which is started now: less where output_share has not as much left for its user. Of
 * a hook: the log of its job goes on by a mebibyte. */
uint64_t takt_job_output_give(const struct takt_daemon *daemon, uint64_t job_id, uid_t uid);
uint64_t takt_job_output_of_hook(const struct takt_daemon *daemon, uint64_t job_id,
				 uint32_t attempt);
/* How much of the disk the store sets aside for when it is full; 0 of a small one. */
uint64_t takt_job_output_reserve(const struct takt_daemon *daemon);
/* How large the database may get: history_limit, and a share of the disk. */
uint64_t takt_job_output_history(const struct takt_daemon *daemon);
/* -ENOSPC: why no job is accepted. */
int takt_job_output_refuse(const struct takt_daemon *daemon, struct takt_err *err);
/* It runs; its attempt is over. */
void takt_job_output_watch(struct takt_job_output *output, const struct takt_queue_job *job);
void takt_job_output_over(struct takt_daemon *daemon, const struct takt_queue_job *job);
void takt_job_output_tick(struct takt_daemon *daemon, struct takt_mono now);
void takt_job_output_fill(const struct takt_daemon *daemon, struct takt_job_view *ret);

/* job_course.c */
int takt_api_course(void *ctx, const struct takt_peer *peer, uint64_t job_id,
		    struct takt_course_view *ret, struct takt_err *err);

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
	bool gone;	  /* the driver lists it, /proc does not: it ended, or is of another PID
			   * namespace; or root is asked whose it is */
	bool asked;	  /* the answer is still to come */
	char command[65];
};
/* jobs_dirfd: the same folder, borrowed. */
int takt_proc_cache_new(const char *jobs_dir, int jobs_dirfd, const struct takt_attempts *attempts,
			struct takt_proc_cache **ret);
void takt_proc_cache_free(struct takt_proc_cache *cache);
/* Whom to ask for the attempt that a process of a container belongs to, where this user may not
 * look into it; and his answer, "" = none. */
void takt_proc_cache_asks(struct takt_proc_cache *cache,
			  void (*ask)(void *ctx, const struct takt_proc_id *process, uid_t uid),
			  void *ctx);
void takt_proc_cache_told(struct takt_proc_cache *cache, const struct takt_proc_id *process,
			  const char *attempt_id);
const struct takt_proc_who *takt_proc_who(struct takt_proc_cache *cache, int32_t pid,
					  struct takt_mono now);
/* His name, or his number where none is known by now (base/known_users.h). */
const char *takt_user_name(uid_t uid, char *buf, size_t size);

/* lease_keeper.c: clock leases of jobs and administrators, over the actuator's socket. */
int takt_leases_new(struct takt_daemon *daemon, struct takt_lease_keeper **ret,
		    struct takt_err *err);
void takt_leases_free(struct takt_lease_keeper *leases);
int takt_leases_fd(const struct takt_lease_keeper *leases); /* -1 = not connected */
/* Which file the actuator has open as its journal; false while none answers. */
bool takt_leases_journal(const struct takt_lease_keeper *leases, uint64_t *ret_device,
			 uint64_t *ret_inode);
/* Connects, renews, reads replies, times out; *ret_next_ns as ever. */
void takt_leases_pump(struct takt_lease_keeper *leases, struct takt_boot now,
		      uint64_t *ret_next_ns);
/* Ask for the job's clocks on its GPUs; takt_queue_prepared() follows. At once when it asks for
 * none. */
void takt_leases_job_start(struct takt_lease_keeper *leases, const struct takt_queue_job *job);
/* The daemon has found it running after a restart: apply again. */
void takt_leases_job_adopt(struct takt_lease_keeper *leases, const struct takt_queue_job *job);
void takt_leases_job_end(struct takt_lease_keeper *leases, const struct takt_queue_job *job);
/* "takt clock set|reset". job_id 0: an administrator's own lease; a job that says nothing of power
 * keeps the limit that it was submitted with. The pending gets the clock view. */
void takt_leases_set(struct takt_lease_keeper *leases, uint64_t gpu_mask, uint64_t job_id,
		     const struct takt_clock_order *ask, struct takt_pending *pending);
void takt_leases_reset(struct takt_lease_keeper *leases, uint64_t gpu_mask, uint64_t job_id,
		       struct takt_pending *pending);
/* One setting for all GPUs of a job, sent to all before any answers; with nothing in `sets` the job
 * is as one that asks for no clock. `was`: what was asked before; a GPU where somebody has asked
 * otherwise for this job since is left to him. */
void takt_leases_govern(struct takt_lease_keeper *leases, const struct takt_queue_job *job,
			const struct takt_governor_cap *was, const struct takt_governor_cap *cap);
/* How far that got on the GPU that is worst off, the worse the later. */
enum takt_lease_standing {
	TAKT_STANDING_HOLDS,   /* applied and read back everywhere, and nobody asks for more */
	TAKT_STANDING_ASKED,   /* no answer yet, or the actuator is away or waits for load */
	TAKT_STANDING_OUTBID,  /* somebody else's wish is in force */
	TAKT_STANDING_ADVICE,  /* no permission to set, or somebody may have locked the clock */
	TAKT_STANDING_FOREIGN, /* somebody else sets this board */
	TAKT_STANDING_REFUSED,
	TAKT_STANDING_GONE, /* somebody let go of it: an administrator's reset */
};
/* `note` has the actuator's word of that GPU, "" where it holds. */
enum takt_lease_standing takt_leases_standing(const struct takt_lease_keeper *leases,
					      const struct takt_queue_job *job,
					      const struct takt_governor_cap *cap,
					      uint32_t *ret_gpu, char *note, size_t size);
/* What is known of one GPU's clocks. */
struct takt_lease_state {
	const char *state; /* static text, "clean", ... */
	char note[160];
	uint32_t min_mhz, max_mhz; /* applied; max 0 = none */
	uint32_t mem_min_mhz, mem_max_mhz;
	uint64_t job_id;
	uint32_t power_mw;     /* applied; 0 = none */
	uint32_t cap_power_mw; /* a facility's; 0 = none */
	/* Declared as the baseline; 0 = the driver's own, what was found. */
	uint32_t base_min_mhz, base_max_mhz, base_power_mw;
};
void takt_leases_state(const struct takt_lease_keeper *leases, uint32_t gpu,
		       struct takt_lease_state *ret);
/* One request beside those of leases; its number, 0 = the actuator is away. The reply goes to
 * takt_clock_admin_take. */
uint64_t takt_leases_send(struct takt_lease_keeper *leases, struct takt_actuate_request request);
/* Finishes it with the clock view. */
void takt_leases_answer(struct takt_lease_keeper *leases, struct takt_pending *pending);
/* An administrator's own leases are over. */
void takt_leases_end_standing(struct takt_lease_keeper *leases);

/* clock_admin.c: caps, and what is declared of clocks. */
int takt_clock_admin_new(struct takt_daemon *daemon, struct takt_clock_admin **ret,
			 struct takt_err *err);
void takt_clock_admin_free(struct takt_clock_admin *admin); /* NULL is fine */
/* Whether the reply was one of its own; the state of the GPU in it is known already. */
bool takt_clock_admin_take(struct takt_clock_admin *admin, const struct takt_actuate_reply *reply);
/* Gives up what was not answered in time. */
void takt_clock_admin_tick(struct takt_clock_admin *admin, struct takt_boot now,
			   uint64_t *ret_next_ns);
/* How the GPU is declared to be cut into MIG instances; "" = it is not. Returns ret. */
const char *takt_clock_admin_mig(const struct takt_clock_admin *admin, uint32_t gpu,
				 char ret[TAKT_MIG_TEXT]);
/* A declaration is under way that may cut the GPU into other instances. */
bool takt_clock_admin_cuts(const struct takt_clock_admin *admin, uint32_t gpu);
/* "root: the rack's fuse"; "" = nobody said. Borrowed. */
const char *takt_clock_admin_cap_why(const struct takt_clock_admin *admin, uint32_t gpu,
				     uint32_t power_mw);
int takt_api_clock_cap(void *ctx, const struct takt_peer *peer, const struct takt_clock_cap *cap,
		       struct takt_pending *pending, struct takt_err *err);
int takt_api_clock_declare(void *ctx, const struct takt_peer *peer,
			   const struct takt_declaration *declaration, struct takt_pending *pending,
			   struct takt_err *err);

/* Whether a job that runs did not have the clocks that it asked for, all the time and on every GPU;
 * then buf says so. */
bool takt_leases_job_trouble(const struct takt_lease_keeper *leases,
			     const struct takt_queue_job *job, char *buf, size_t size);
/* What a job's view says of its clocks. */
void takt_leases_job_note(const struct takt_lease_keeper *leases, const struct takt_queue_job *job,
			  char *buf, size_t size);

/* admin_knobs.c: what administrators turn beside clocks of GPUs, over the actuator's socket. */
int takt_knobs_new(struct takt_daemon *daemon, struct takt_admin_knobs **ret, struct takt_err *err);
void takt_knobs_free(struct takt_admin_knobs *knobs);
int takt_knobs_fd(const struct takt_admin_knobs *knobs); /* -1 = nothing to say at present */
void takt_knobs_pump(struct takt_admin_knobs *knobs, struct takt_boot now, uint64_t *ret_next_ns);
/* A ceiling of all CPUs, 0: as they were found. The pending gets the clock view; on failure it was
 * not taken. */
int takt_knobs_cpu(struct takt_admin_knobs *knobs, uint32_t max_mhz, struct takt_pending *pending,
		   struct takt_err *err);
void takt_knobs_cpu_state(const struct takt_admin_knobs *knobs, struct takt_cpu_clock *ret);

/* job_spec.c: CPUs that jobs may use, in thousandths. */
int32_t takt_daemon_cpu_milli(void);
/* job_spec.c: what the engine starts; see struct takt_engine_local_config.describe. */
int takt_daemon_describe_job(void *ctx, const struct takt_action *start, const char *attempt_id,
			     struct takt_attempt_spec *ret_spec, uid_t *ret_uid, gid_t *ret_gid,
			     struct takt_err *err);

/* job_still.c: see struct takt_queue_hooks. */
bool takt_daemon_stands_still(void *ctx, const struct takt_queue_job *job, uint32_t *ret_mem_mib);

/* job_cause.c: see struct takt_queue_hooks. */
bool takt_daemon_job_cause(void *ctx, const struct takt_queue_job *job, struct takt_boot since,
			   struct takt_job_cause *ret);

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
int takt_api_queue(void *ctx, const struct takt_peer *peer, const struct takt_history_ask *history,
		   uint32_t limit, int (*each)(void *arg, const struct takt_job_view *view),
		   void *arg, struct takt_queue_rest *ret_rest, struct takt_err *err);
int takt_api_explain(void *ctx, const struct takt_peer *peer, uint64_t job_id,
		     struct takt_explain_view *ret, struct takt_err *err);
int takt_api_submit(void *ctx, const struct takt_peer *peer, struct takt_jobspec *spec,
		    struct takt_pending *pending, struct takt_err *err);
int takt_api_submit_many(void *ctx, const struct takt_peer *peer, struct takt_jobspecs *specs,
			 struct takt_pending *pending, struct takt_err *err);
int takt_api_again(void *ctx, const struct takt_peer *peer, uint64_t job_id,
		   struct takt_jobspec *env, struct takt_pending *pending, struct takt_err *err);
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
void takt_api_fill_start(const struct takt_queue_start *start, struct takt_start_view *ret);
/* why_more.c: appends to the plan's word on why a job waits what only the daemon knows: who has set
 * a GPU aside, whose process is on it; which of the GPUs that the job names (0 = none) are in use.
 */
void takt_api_why_more(struct takt_daemon *daemon, enum takt_why why, uint64_t named, char *text,
		       size_t size);
/* Where a job waits for GPUs that no driver shows: says so instead, and what that is called. */
enum takt_why takt_api_why_no_driver(const struct takt_daemon *daemon, enum takt_why why,
				     const struct takt_jobspec *spec, char *text, size_t size);
/* Metrics that are not a GPU's; labels of GPUs. */
void takt_api_update_page(struct takt_daemon *daemon);

/* The verb `serve`, whose name is argv[1] if there is one; argv is the process's own. Returns its
 * exit status. */
int takt_serve_main(int argc, char **argv);
/* The verb `record`. */
int takt_record_main(int argc, char **argv);
/* recorded_series.c: one value out of a recording, see cli/cli.h. */
int takt_recorded_series(const char *path, uint32_t gpu, bool power,
			 int (*each)(void *ctx, int64_t at_us, double value), void *ctx,
			 bool *ret_simulated, struct takt_err *err);

#endif
