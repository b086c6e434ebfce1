/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guard: asleep while the actuator lives, with nothing open but its end of the socket pair, and
 * the one who puts the clocks back when the actuator is gone.
 *
 * Handing over. While it restores, the guard holds the lock under an epoch of its own. Between two
 * rounds, when a driver refused, it gives the lock back, so that a new actuator can have it; if it
 * cannot take it again and the journal's epoch has moved on, somebody else answers for the GPUs and
 * the guard leaves. A setter that hangs in the driver at that moment is a restoring one: should it
 * take effect under the new actuator, then towards the baseline.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "actuate/actuate.h"
#include "actuate/actuate_log.h"
#include "actuate/keeper.h"
#include "base/mem.h"
#include "base/pace.h"
#include "base/str.h"

#define SHORTEST_PAUSE_NS (50 * TAKT_NS_PER_MS)
#define LONGEST_PAUSE_NS  (2 * TAKT_NS_PER_S)

static const struct takt_pace locking = {2 * TAKT_NS_PER_MS, 100 * TAKT_NS_PER_MS};
static const struct takt_pace trouble = {100 * TAKT_NS_PER_MS, 30 * TAKT_NS_PER_S};
static const struct takt_pace looking = {500 * TAKT_NS_PER_MS, 30 * TAKT_NS_PER_S};
/* Patience with GPUs that do not answer when the driver is opened: short at first, so that one that
 * hangs keeps no other waiting. */
static const struct takt_pace facts = {TAKT_NS_PER_S, 10 * TAKT_NS_PER_S};

struct guard {
	const struct takt_actuate_config *config; /* borrowed */
	struct takt_machine *machine; /* owned; NULL until something is to be restored */
	int wake;		      /* eventfd of the machine */
	uint64_t epoch; /* of the actuator it watched, then its own: whose changes it answers for */
	struct takt_journal journal;
	struct takt_mandate mandate;
	struct takt_keeper keeper;
	uint32_t opened;	 /* the machine, so often */
	uint32_t unseen;	 /* looks in a row after which a GPU was still missing */
	uint32_t troubles;	 /* rounds in a row that came to nothing */
	char said[TAKT_ERR_MSG]; /* the last trouble that went to the log */
};

static struct takt_boot boot_now(const struct guard *guard)
{
	return takt_boot_now(guard->config->sys);
}

/* Each trouble once, not at each of the many tries. */
static void say_once(struct guard *guard, const struct takt_err *err)
{
	if (strcmp(guard->said, err->msg) == 0)
		return;
	takt_strcpy(guard->said, sizeof(guard->said), err->msg);
	takt_actuate_say(&guard->config->log, "guard: %s (%s); trying again", err->msg,
			 takt_err_sentence(err->rc));
}

static void pause_for(uint64_t ns)
{
	struct timespec ts = {.tv_sec = (time_t)(ns / TAKT_NS_PER_S),
			      .tv_nsec = (long)(ns % TAKT_NS_PER_S)};

	nanosleep(&ts, NULL);
}

/* Until the other end is closed, or the process that made it is gone. */
static void wait_for_end(int watch_fd)
{
	struct pollfd fds[2] = {{.fd = watch_fd, .events = POLLIN}, {.fd = -1, .events = POLLIN}};
	struct ucred peer;
	socklen_t size = sizeof(peer);
	char byte;

	if (getsockopt(watch_fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0)
		fds[1].fd = (int)syscall(SYS_pidfd_open, peer.pid, 0);
	(void)send(watch_fd, "r", 1, MSG_NOSIGNAL);
	for (;;) {
		if (poll(fds, 2, -1) < 0)
			continue;
		if (fds[1].revents)
			break;
		if (fds[0].revents && recv(watch_fd, &byte, 1, MSG_DONTWAIT) == 0)
			break;
	}
	if (fds[1].fd >= 0)
		close(fds[1].fd);
	close(watch_fd);
}

/* 1: locked, 0: somebody else answers for the GPUs now. Waits for threads of the dead actuator that
 * are still inside the driver: what they called may yet take effect. */
static int take_lock(struct guard *guard, struct takt_err *err)
{
	struct takt_journal_holder holder;
	uint32_t tries = 0;
	int rc;

	while ((rc = takt_mandate_lock(&guard->mandate, err)) == -TAKT_E_BUSY) {
		if (takt_journal_read_holder(&guard->journal, &holder) == 0 &&
		    holder.epoch > guard->epoch)
			return 0;
		pause_for(takt_pace_ns(&locking, tries++));
	}
	return rc < 0 ? rc : 1;
}

static bool anything_changed(const struct guard *guard)
{
	char boot_id[TAKT_JOURNAL_BOOT];

	takt_boot_id(boot_id);
	for (uint32_t i = 0; i < TAKT_JOURNAL_PAIRS; i++) {
		const struct takt_journal_pair *pair = &guard->journal.pairs[i];

		if (pair->state == TAKT_JOURNAL_DAMAGED)
			return true;
		if (pair->state == TAKT_JOURNAL_VALID &&
		    pair->record.state == TAKT_JOURNAL_CHANGED &&
		    strcmp(pair->record.boot_id, boot_id) == 0)
			return true;
	}
	return false;
}

static void close_machine(struct guard *guard)
{
	takt_machine_close(guard->machine);
	guard->machine = NULL;
	if (guard->wake >= 0)
		close(guard->wake);
	guard->wake = -1;
}

static int open_machine(struct guard *guard, struct takt_err *err)
{
	const struct takt_actuate_config *config = guard->config;
	struct takt_machine_config open = {
		.source = config->nvml_path ? TAKT_SOURCE_NVML : TAKT_SOURCE_AUTO,
		.nvml_path = config->nvml_path,
		.call_deadline_ns = config->call_deadline_ns,
		.no_processes = true,
		.counts_errors = true,
		.facts_deadline_ns = takt_pace_ns(&facts, guard->opened++),
	};
	int rc;

	rc = takt_machine_open(&open, &guard->machine, err);
	if (rc < 0)
		return rc;
	if (takt_machine_info(guard->machine)->gpu_count == 0)
		return takt_err_set(err, -ENODEV, "no GPU to be seen: %.180s",
				    takt_machine_info(guard->machine)->why_none);
	guard->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (guard->wake < 0)
		return takt_err_set(err, -errno, "make an eventfd");
	takt_machine_notify(guard->machine, guard->wake);
	return 0;
}

/* Machine and keeper, the first time that they are needed. */
static int prepare(struct guard *guard, struct takt_err *err)
{
	int rc;

	guard->keeper.stale = false;
	if (guard->machine && takt_machine_driver_is_gone(guard->machine))
		close_machine(guard); /* the one that there is now is met afresh */
	if (guard->machine)
		return 0;
	rc = open_machine(guard, err);
	if (rc == 0) {
		takt_crash_point("actuate.guard_opened");
		guard->keeper = (struct takt_keeper){
			.sys = guard->config->sys,
			.machine = guard->machine,
			.journal = &guard->journal,
			.mandate = &guard->mandate,
			.log = guard->config->log,
			.cpu.sysfs_root = guard->config->sysfs_root,
			.call_deadline_ns = guard->config->call_deadline_ns,
		};
		takt_keeper_init(&guard->keeper);
		rc = takt_keeper_recover(&guard->keeper, boot_now(guard), err);
	}
	if (rc < 0)
		close_machine(guard);
	return rc;
}

/* Works until every GPU is back (1) or nothing more can be done at present (0); *ret_pause_ns: for
 * how long. */
static int restore(struct guard *guard, uint64_t *ret_pause_ns)
{
	struct pollfd fd = {.fd = guard->wake, .events = POLLIN};
	struct takt_boot now, next;
	uint64_t count, left = 0;

	for (;;) {
		now = boot_now(guard);
		next = takt_keeper_step(&guard->keeper, now);
		if (takt_keeper_all_clean(&guard->keeper))
			break;
		left = next.ns > now.ns ? next.ns - now.ns : 0;
		if (takt_keeper_quiet(&guard->keeper) || guard->keeper.stale)
			break;
		left = left < LONGEST_PAUSE_NS ? left : LONGEST_PAUSE_NS;
		(void)poll(&fd, 1, (int)(left / TAKT_NS_PER_MS) + 1);
		(void)!read(guard->wake, &count, sizeof(count));
	}
	if (!takt_keeper_all_clean(&guard->keeper)) {
		takt_machine_sample(guard->machine, UINT32_MAX); /* whether it is there at all */
		*ret_pause_ns = left < LONGEST_PAUSE_NS ? left : LONGEST_PAUSE_NS;
		return 0;
	}
	if (guard->keeper.unseen == 0)
		return 1;
	close_machine(guard); /* a GPU that did not answer may do so when asked afresh */
	*ret_pause_ns = takt_pace_ns(&looking, guard->unseen++);
	return 0;
}

/* With the lock held. 1: done for good, 0: another round after the pause. */
static int round_locked(struct guard *guard, uint64_t *ret_pause_ns, struct takt_err *err)
{
	int rc;

	takt_journal_close(&guard->journal);
	rc = takt_journal_open(guard->config->sys, guard->config->journal_path, &guard->journal,
			       err);
	if (rc < 0)
		return rc;
	if (!anything_changed(guard))
		return 1;
	if (guard->journal.holder.epoch != guard->epoch)
		close_machine(guard); /* somebody was here in between: what is known is old */
	rc = takt_mandate_begin(&guard->mandate, &guard->journal, "guard", err);
	if (rc < 0)
		return rc;
	guard->epoch = guard->mandate.mine.epoch;
	takt_crash_point("actuate.guard_began");
	rc = prepare(guard, err);
	return rc < 0 ? rc : restore(guard, ret_pause_ns);
}

/* Leaves when all is back, or somebody else answers for it, or takt's folder was removed: then
 * there is no lock any more under which anybody could set. */
static void restore_all(struct guard *guard)
{
	uint64_t pause_ns = SHORTEST_PAUSE_NS;
	struct takt_err err;
	int rc;

	for (;;) {
		rc = take_lock(guard, &err);
		if (rc == 0)
			return;
		if (rc == -ENOENT) {
			takt_actuate_say(&guard->config->log, "guard: %s: gone; leaving", err.msg);
			return;
		}
		takt_crash_point("actuate.guard_locked");
		if (rc > 0)
			rc = round_locked(guard, &pause_ns, &err);
		if (rc > 0)
			return;
		if (rc < 0) {
			say_once(guard, &err);
			pause_ns = takt_pace_ns(&trouble, guard->troubles++);
		} else {
			guard->troubles = 0;
		}
		takt_mandate_release(&guard->mandate);
		pause_for(pause_ns > SHORTEST_PAUSE_NS ? pause_ns : SHORTEST_PAUSE_NS);
	}
}

int takt_guard_run(const struct takt_actuate_config *config, int watch_fd, struct takt_err *err)
{
	TAKT_CLEANUP(freep) struct guard *guard = takt_zalloc(sizeof(*guard));
	int rc;

	if (!guard)
		return takt_err_set(err, -ENOMEM, "start the guard");
	guard->config = config;
	guard->wake = -1;
	rc = takt_mandate_init(&guard->mandate, config->sys, config->lock_path, err);
	if (rc < 0)
		return rc;
	rc = takt_journal_open(config->sys, config->journal_path, &guard->journal, err);
	if (rc == 0) {
		guard->epoch = guard->journal.holder.epoch;
		wait_for_end(watch_fd);
		takt_crash_point("actuate.guard_woken");
		restore_all(guard);
		takt_crash_point("actuate.guard_restored");
		close_machine(guard);
		takt_journal_close(&guard->journal);
	}
	takt_mandate_fini(&guard->mandate);
	return rc;
}
