/* SPDX-License-Identifier: Apache-2.0 */
/* Starting and watching takt-guard. */
#include "actuate/guard_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "actuate/actuate_log.h"
#include "base/pace.h"

static const struct takt_pace restarts = {20 * TAKT_NS_PER_MS, 5 * TAKT_NS_PER_S};

enum {
	WATCH_FD = 3 /* where the guard finds its end */
};

extern char **environ;

void takt_guard_watch_init(struct takt_guard_watch *watch, const struct takt_actuate_config *config)
{
	*watch = (struct takt_guard_watch){.config = config, .pidfd = -1, .socket = -1};
}

/* Its own session, so that what ends the terminal's or the actuator's group leaves it alone; and no
 * descriptor but its log and its end of the pair, so that it keeps nobody's socket open. */
static int spawn(const struct takt_actuate_config *config, int end, pid_t *ret_pid)
{
	char fd_text[16], deadline[24];
	const char *argv[] = {config->guard_path,
			      "--journal",
			      config->journal_path,
			      "--lock",
			      config->lock_path,
			      "--watch-fd",
			      fd_text,
			      "--deadline-ms",
			      deadline,
			      "--driver-calls",
			      config->any_call ? "any" : "listed",
			      "--sysfs",
			      config->sysfs_root ? config->sysfs_root : "/sys",
			      NULL,
			      NULL,
			      NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none;
	int rc;

	(void)snprintf(fd_text, sizeof(fd_text), "%d", WATCH_FD);
	(void)snprintf(deadline, sizeof(deadline), "%llu",
		       (unsigned long long)(config->call_deadline_ns / TAKT_NS_PER_MS));
	if (config->nvml_path) {
		argv[13] = "--nvml";
		argv[14] = config->nvml_path;
	}
	sigemptyset(&none);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setsigmask(&attr, &none);
	rc = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	if (rc == 0)
		rc = posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
	if (rc == 0)
		rc = posix_spawn_file_actions_adddup2(&actions, end, WATCH_FD);
	if (rc == 0)
		rc = posix_spawn_file_actions_addclosefrom_np(&actions, WATCH_FD + 1);
	if (rc == 0)
		rc = posix_spawn(ret_pid, config->guard_path, &actions, &attr, (char **)argv,
				 environ);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&actions);
	return -rc;
}

/* dup2 onto its own number would keep close-on-exec: the guard's end must not be WATCH_FD. */
static int make_ends(int ends[2])
{
	int moved;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0)
		return -errno;
	moved = fcntl(ends[1], F_DUPFD_CLOEXEC, WATCH_FD + 1);
	close(ends[1]);
	ends[1] = moved;
	if (moved >= 0)
		return 0;
	moved = -errno;
	close(ends[0]);
	return moved;
}

static int start(struct takt_guard_watch *watch)
{
	int ends[2], rc;

	rc = make_ends(ends);
	if (rc < 0)
		return rc;
	rc = spawn(watch->config, ends[1], &watch->pid);
	close(ends[1]);
	if (rc == 0) {
		watch->pidfd = (int)syscall(SYS_pidfd_open, watch->pid, 0);
		rc = watch->pidfd < 0 ? -errno : 0;
	}
	if (rc < 0) {
		close(ends[0]);
		watch->pid = 0;
		return rc;
	}
	watch->socket = ends[0];
	return 0;
}

static void again_later(struct takt_guard_watch *watch, struct takt_boot now)
{
	watch->next = takt_boot_add(now, takt_pace_ns(&restarts, watch->failures++));
}

static void let_go(struct takt_guard_watch *watch)
{
	if (watch->pidfd >= 0)
		close(watch->pidfd);
	if (watch->socket >= 0)
		close(watch->socket);
	watch->pidfd = watch->socket = -1;
	watch->pid = 0;
	watch->ready = false;
}

/* Notes that the running guard has become ready, or has died. */
static void look(struct takt_guard_watch *watch, struct takt_boot now)
{
	siginfo_t info = {0};
	char byte;

	if (!watch->ready && recv(watch->socket, &byte, 1, MSG_DONTWAIT) == 1) {
		watch->ready = true;
		watch->failures = 0;
	}
	if (waitid(P_PIDFD, (id_t)watch->pidfd, &info, WEXITED | WNOHANG) < 0 || info.si_pid == 0)
		return;
	takt_actuate_say(
		&watch->config->log, "the guard (pid %d) ended by itself (%s %d): starting another",
		(int)watch->pid, info.si_code == CLD_EXITED ? "exit" : "signal", info.si_status);
	let_go(watch);
	if (watch->failures > 0)
		again_later(watch, now);
}

struct takt_boot takt_guard_watch_step(struct takt_guard_watch *watch, struct takt_boot now)
{
	int rc;

	if (!watch->config->guard_path)
		return (struct takt_boot){UINT64_MAX};
	if (watch->pid != 0)
		look(watch, now);
	if (watch->pid == 0 && now.ns >= watch->next.ns) {
		rc = start(watch);
		if (rc < 0 && watch->failures == 0)
			takt_actuate_say(
				&watch->config->log,
				"the guard '%s' cannot be started (%s): no clock is set without it",
				watch->config->guard_path, strerror(-rc));
		if (rc < 0)
			again_later(watch, now);
		else
			watch->failures++; /* until it is ready */
	}
	return watch->pid != 0 ? (struct takt_boot){UINT64_MAX} : watch->next;
}

nfds_t takt_guard_watch_poll(const struct takt_guard_watch *watch,
			     struct pollfd fds[TAKT_GUARD_WATCH_FDS])
{
	nfds_t n = 0;

	if (watch->pidfd >= 0)
		fds[n++] = (struct pollfd){.fd = watch->pidfd, .events = POLLIN};
	if (watch->socket >= 0 && !watch->ready)
		fds[n++] = (struct pollfd){.fd = watch->socket, .events = POLLIN};
	return n;
}

void takt_guard_watch_fini(struct takt_guard_watch *watch)
{
	let_go(watch);
}
