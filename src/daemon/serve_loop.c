/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's loop: wait for any of a dozen descriptors or the next due time, then let each room
 * do what is due. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/pace.h"
#include "base/str.h"
#include "daemon/backups.h"
#include "daemon/daemon.h"
#include "daemon/govern.h"
#include "daemon/gpu_health.h"
#include "daemon/gpu_orders.h"
#include "daemon/log.h"
#include "daemon/metrics_file.h"
#include "daemon/nccl_watch.h"

static const uint64_t longest_sleep_ns = TAKT_NS_PER_S;
static const uint64_t forget_ns = 20 * TAKT_NS_PER_MS;
/* Of turns in which a room fails. */
static const struct takt_pace retries = {TAKT_NS_PER_S / 10, TAKT_NS_PER_S};

static const char driver_gone[] =
	"the NVIDIA driver answers no more, as after it was unloaded or loaded anew: no job gets a "
	"GPU; takt looks for it and starts anew when it answers";

enum {
	SLOT_SIGNAL,
	SLOT_MACHINE,
	SLOT_STORE,
	SLOT_ENGINE,
	SLOT_SERVER,
	SLOT_LEASES,
	SLOT_KNOBS,
	SLOT_HISTORY,
	SLOT_ACTUATE,
	SLOT_LAUNCH,
	SLOTS,
	FORGET_A_TURN = 8, /* jobs */
};

/* Earliest due time of this turn, as a delay in nanoseconds. */
struct due {
	uint64_t delay_ns;
	bool failed; /* a room */
};

static void due_in(struct due *due, uint64_t delay_ns)
{
	if (delay_ns < due->delay_ns)
		due->delay_ns = delay_ns;
}

static void due_at(struct due *due, uint64_t at_ns, uint64_t now_ns)
{
	if (at_ns)
		due_in(due, at_ns > now_ns ? at_ns - now_ns : 0);
}

static void drain_eventfd(int fd)
{
	uint64_t count;

	if (read(fd, &count, sizeof(count)) < 0)
		return; /* nothing was there */
}

static void fill_slots(const struct takt_daemon *daemon, struct pollfd slots[SLOTS])
{
	int fds[SLOTS] = {
		[SLOT_SIGNAL] = daemon->signal_fd,
		[SLOT_MACHINE] = daemon->machine_event_fd,
		[SLOT_STORE] = takt_store_fd(daemon->store),
		[SLOT_ENGINE] = takt_engine_fd(daemon->engine),
		[SLOT_SERVER] = takt_server_fd(daemon->server),
		[SLOT_LEASES] = takt_leases_fd(daemon->leases),
		[SLOT_KNOBS] = takt_knobs_fd(daemon->knobs),
		[SLOT_HISTORY] = takt_gpu_history_fd(daemon->history),
		[SLOT_ACTUATE] = daemon->actuate.pidfd,
		[SLOT_LAUNCH] = daemon->launch.pidfd,
	};

	for (int i = 0; i < SLOTS; i++)
		slots[i] = (struct pollfd){.fd = fds[i], .events = POLLIN};
}

/* How many of the descriptors are ready, or negative. */
static int wait_for(struct pollfd slots[SLOTS], uint64_t delay_ns, struct takt_err *err)
{
	struct timespec limit = {(time_t)(delay_ns / TAKT_NS_PER_S),
				 (long)(delay_ns % TAKT_NS_PER_S)};
	int n = ppoll(slots, SLOTS, &limit, NULL);

	if (n < 0 && errno != EINTR)
		return takt_err_set(err, -errno, "wait for events");
	return n < 0 ? 0 : n;
}

static void look_at_samples(struct takt_daemon *daemon)
{
	struct takt_mono now = takt_mono_now(daemon->sys);

	takt_gpu_history_tick(daemon, takt_telemetry_collect(daemon->telemetry, now), now);
	takt_watch_tick(daemon, now, takt_boot_now(daemon->sys));
	takt_idle_tick(daemon->idle, now, takt_boot_now(daemon->sys));
	takt_job_progress_tick(daemon, now);
	takt_job_output_tick(daemon, now);
	takt_nccl_watch_tick(daemon, now);
	takt_govern_tick(daemon->govern, now);
	takt_accounts_tick(daemon, now);
	takt_health_tick(daemon->health, now);
	if (takt_telemetry_page_is_due(daemon->telemetry, now)) {
		takt_api_update_page(daemon);
		takt_telemetry_page_refresh(daemon->telemetry, now);
	}
	takt_metrics_file_tick(daemon, now);
}

/* Where no job has a GPU, or has left anything on one, nobody is in a hurry to see a sample. */
static bool may_doze(const struct takt_daemon *daemon)
{
	size_t held;

	(void)takt_queue_holdings(daemon->queue, &held);
	return held == 0;
}

/* Waits for something to do. To ask for samples that fall due meanwhile is no reason for a turn,
 * nor are, on an idle machine, those that change nothing: they are looked at when the next are
 * asked for, so that a tick wakes this thread once. */
static int wait_and_tick(struct takt_daemon *daemon, struct pollfd slots[SLOTS], uint64_t delay_ns,
			 struct takt_err *err)
{
	struct takt_mono now = takt_mono_now(daemon->sys), until = takt_mono_add(now, delay_ns);
	bool dozes = takt_telemetry_hush(daemon->telemetry, may_doze(daemon));
	uint64_t version = takt_queue_version(daemon->queue);
	int ready;

	do {
		struct due due = {.delay_ns = takt_mono_elapsed_ns(until, now)};

		due_at(&due, takt_telemetry_tick(daemon->telemetry, now).ns, now.ns);
		ready = wait_for(slots, due.delay_ns, err);
		now = takt_mono_now(daemon->sys);
		if (dozes && ready == 0)
			look_at_samples(daemon);
	} while (ready == 0 && now.ns < until.ns && takt_queue_version(daemon->queue) == version);
	return ready;
}

/* A room that failed this turn (out of memory or descriptors, a broken socket) is tried again in
 * the next: jobs run on meanwhile. Said at most once a second. */
static void complain(struct takt_daemon *daemon, int rc, const struct takt_err *err,
		     struct due *due)
{
	struct takt_boot now = takt_boot_now(daemon->sys);
	char text[TAKT_ERR_MSG + 64];

	if (rc >= 0)
		return;
	due->failed = true;
	if (now.ns - daemon->complained.ns < TAKT_NS_PER_S)
		return;
	daemon->complained = now;
	takt_log(TAKT_LOG_WARNING, "%s", takt_err_text(err, text, sizeof(text)));
}

static void run_jobs(struct takt_daemon *daemon, struct due *due)
{
	struct takt_boot now = takt_boot_now(daemon->sys);
	struct takt_err err = {0};
	uint64_t next_ns = 0;

	takt_leases_pump(daemon->leases, now, &next_ns);
	due_at(due, daemon->manages ? next_ns : 0, now.ns);
	next_ns = 0;
	takt_knobs_pump(daemon->knobs, now, &next_ns);
	due_at(due, next_ns, now.ns);
	next_ns = 0;
	complain(daemon, takt_engine_pump(daemon->engine, now, &next_ns, &err), &err, due);
	due_at(due, next_ns, now.ns);
	next_ns = 0;
	complain(daemon,
		 takt_queue_pump(daemon->queue, now, takt_wall_now(daemon->sys), &next_ns, &err),
		 &err, due);
	takt_refused_look(daemon);
	takt_orders_tick(daemon->orders, takt_wall_now(daemon->sys));
	takt_handover_planned(daemon);
	due_at(due, next_ns, now.ns);
	takt_waiters_expire(daemon->waiters, now, &next_ns);
	due_at(due, next_ns, now.ns);
}

/* What cannot be removed now is tried again after the next start. */
static void forget_job(struct takt_daemon *daemon, const struct takt_store_gone *gone)
{
	bool left = false;

	for (uint32_t attempt = 1; attempt <= gone->attempts; attempt++)
		takt_govern_forget_log(daemon->govern, gone->job_id, attempt);
	for (uint32_t attempt = 1; attempt <= gone->attempts; attempt++)
		left |= takt_attempt_remove(daemon->sys, daemon->jobs_dirfd, gone->job_id, attempt,
					    NULL) < 0;
	if (!left && gone->attempts > 0)
		(void)takt_store_forget_gone(daemon->store, gone->job_id, NULL);
}

/* What history has let go of takes its logs and records along; few a turn, since a disk may be
 * slow. */
static void forget_attempts(struct takt_daemon *daemon, struct due *due)
{
	struct takt_store_gone gone[FORGET_A_TURN];
	size_t n = takt_store_gone(daemon->store, gone, FORGET_A_TURN);

	for (size_t i = 0; i < n; i++)
		forget_job(daemon, &gone[i]);
	if (n == FORGET_A_TURN)
		due_in(due, forget_ns);
}

static void answer(struct takt_daemon *daemon, struct due *due)
{
	struct takt_err err = {0};
	int timeout_ms = -1;

	complain(daemon, takt_server_pump(daemon->server, &timeout_ms, &err), &err, due);
	if (timeout_ms >= 0)
		due_in(due, (uint64_t)timeout_ms * TAKT_NS_PER_MS);
}

static void look_after_helpers(struct takt_daemon *daemon, const struct pollfd slots[SLOTS],
			       struct due *due)
{
	struct takt_boot now = takt_boot_now(daemon->sys);

	if (slots[SLOT_ACTUATE].revents)
		takt_helper_died(daemon, &daemon->actuate);
	if (slots[SLOT_LAUNCH].revents)
		takt_helper_died(daemon, &daemon->launch);
	takt_helper_retry(daemon, &daemon->actuate, now);
	takt_helper_retry(daemon, &daemon->launch, now);
	due_at(due, daemon->actuate.retry_at.ns, now.ns);
	due_at(due, daemon->launch.retry_at.ns, now.ns);
}

/* One that is gone may come back, another one, or with other GPUs; where it answers after all it
 * was held up. */
static void miss_driver(struct takt_daemon *daemon)
{
	bool gone = takt_machine_driver_is_gone(daemon->machine);

	if (takt_machine_info(daemon->machine)->why_none[0] || gone == daemon->looks_for_driver)
		return;
	daemon->looks_for_driver = gone;
	takt_driver_look_fini(&daemon->driver_look);
	takt_driver_look_init(&daemon->driver_look, &daemon->machine_config,
			      takt_boot_now(daemon->sys));
	takt_strcpy(daemon->notes[0], sizeof(daemon->notes[0]), gone ? driver_gone : "");
	takt_log(gone ? TAKT_LOG_WARNING : TAKT_LOG_NOTICE, "%s",
		 gone ? driver_gone : "the NVIDIA driver answers again");
}

/* All that depends on which GPUs there are is opened anew; jobs go on meanwhile, as they do when
 * takt is stopped and started. */
static void look_for_driver(struct takt_daemon *daemon, struct due *due)
{
	struct takt_boot now = takt_boot_now(daemon->sys), next;

	miss_driver(daemon);
	if (!daemon->looks_for_driver)
		return;
	if (!takt_driver_look_step(&daemon->driver_look, now, &next)) {
		due_at(due, next.ns, now.ns);
		return;
	}
	takt_log(TAKT_LOG_NOTICE, "the NVIDIA driver answers now: takt starts anew with its GPUs");
	daemon->again = daemon->stop = true;
}

static void look_for_gpus(struct takt_daemon *daemon, struct due *due)
{
	struct takt_boot now = takt_boot_now(daemon->sys), next;

	if (!daemon->owned_by_another)
		return;
	if (!takt_daemon_may_own_gpus(daemon, now, &next)) {
		due_at(due, next.ns, now.ns);
		return;
	}
	takt_log(TAKT_LOG_NOTICE,
		 "no other takt has these GPUs any more: takt starts anew with them");
	daemon->again = daemon->stop = true;
}

/* Rooms that fail turn after turn are waited for ever longer. */
static void go_easy(struct takt_daemon *daemon, struct due *due)
{
	if (due->failed)
		due_in(due, takt_pace_ns(&retries, daemon->failed_turns++));
	else
		daemon->failed_turns = 0;
}

/* One turn: what a request changed is planned, and what is planned is started, before we sleep
 * again. */
static void turn(struct takt_daemon *daemon, struct pollfd slots[SLOTS], struct due *due)
{
	daemon->turns++;
	if (slots[SLOT_MACHINE].revents)
		drain_eventfd(daemon->machine_event_fd);
	look_after_helpers(daemon, slots, due);
	takt_gpu_history_pump(daemon);
	answer(daemon, due);
	look_at_samples(daemon);
	due_at(due, takt_watch_due(daemon).ns, takt_boot_now(daemon->sys).ns);
	takt_tenants_file_look(daemon, takt_boot_now(daemon->sys));
	takt_tls_files_look(daemon, takt_boot_now(daemon->sys));
	takt_own_files_tick(daemon, takt_boot_now(daemon->sys));
	takt_daily_backup_tick(daemon);
	run_jobs(daemon, due);
	forget_attempts(daemon, due);
	look_for_driver(daemon, due);
	look_for_gpus(daemon, due);
	go_easy(daemon, due);
}

/* SIGHUP: read what an administrator has written anew. Any other ends the loop. */
static void heed_signal(struct takt_daemon *daemon)
{
	struct takt_reload_view view;
	struct signalfd_siginfo info;
	struct takt_err err;

	if (read(daemon->signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return;
	if (info.ssi_signo == SIGHUP) {
		(void)takt_daemon_reload(daemon, &view, &err); /* the log and the notes tell */
		return;
	}
	daemon->stop = true;
	daemon->again = false;
}

/* Whoever asks something meanwhile waits for so long. */
static void note_turn(struct takt_daemon *daemon, struct takt_mono begin)
{
	uint64_t took_ns = takt_mono_elapsed_ns(takt_mono_now(daemon->sys), begin);

	daemon->busy_ns += took_ns;
	if (took_ns > daemon->longest_ns)
		daemon->longest_ns = took_ns;
}

int takt_daemon_loop(struct takt_daemon *daemon, struct takt_err *err)
{
	struct pollfd slots[SLOTS] = {0};
	int rc = 0;

	while (rc >= 0 && !daemon->stop) {
		struct due due = {.delay_ns = longest_sleep_ns};
		struct takt_mono begin = takt_mono_now(daemon->sys);

		turn(daemon, slots, &due);
		note_turn(daemon, begin);
		fill_slots(daemon, slots);
		rc = wait_and_tick(daemon, slots, due.delay_ns, err);
		if (slots[SLOT_SIGNAL].revents)
			heed_signal(daemon);
	}
	takt_accounts_keep(daemon);
	return rc < 0 ? rc : 0;
}
