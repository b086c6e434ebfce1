/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The small processes beside the daemon: takt-actuate and takt-launch. The daemon starts them on a
 * socket path in its runtime directory, watches them by pidfd and starts them again. Where a
 * service manager runs them as root their socket answers already, and nothing is started here.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/pace.h"
#include "base/str.h"
#include "daemon/daemon.h"
#include "daemon/log.h"

static const struct takt_pace restarts = {TAKT_NS_PER_S, 10 * TAKT_NS_PER_S};
static const uint64_t short_life_ns = TAKT_NS_PER_S;
static const char launch_idle_ms[] = "60000"; /* without a daemon the launcher has nothing to do */

enum {
	MAX_ARGS = 24,
	STOP_WAIT_MS = 3000,
	CMDLINE_MAX = 64 * 1024,
};

struct arg_list {
	const char *argv[MAX_ARGS + 1];
	size_t n;
	char program[PATH_MAX], jobs[PATH_MAX], shim[PATH_MAX], guard[PATH_MAX], journal[PATH_MAX],
		declared[PATH_MAX], lock[PATH_MAX];
	char uid[16];
};

static void add(struct arg_list *args, const char *flag, const char *value)
{
	args->argv[args->n++] = flag;
	if (value)
		args->argv[args->n++] = value;
	args->argv[args->n] = NULL;
}

static const char *join(char ret[PATH_MAX], const char *dir, const char *name)
{
	if (snprintf(ret, PATH_MAX, "%s/%s", dir, name) >= PATH_MAX)
		ret[0] = '\0'; /* the helper refuses an empty path by name */
	return ret;
}

static void fill_args(const struct takt_daemon *daemon, const struct takt_helper_proc *helper,
		      struct arg_list *args)
{
	const struct takt_config *config = &daemon->config;

	add(args, join(args->program, daemon->libexec_dir, helper->name), NULL);
	snprintf(args->uid, sizeof(args->uid), "%u", getuid());
	add(args, "--socket", helper->socket_path);
	add(args, "--client-uid", args->uid);
	if (helper == &daemon->launch) {
		add(args, "--jobs", join(args->jobs, config->state_dir, "jobs"));
		add(args, "--shim", join(args->shim, daemon->libexec_dir, "takt-shim"));
		add(args, "--idle-ms", launch_idle_ms);
		if (config->allow_weak_isolation)
			add(args, "--allow-weak-isolation", NULL);
		if (config->allow_system_users)
			add(args, "--allow-system-users", NULL);
		return;
	}
	add(args, "--journal", join(args->journal, config->clocks_dir, "clocks.journal"));
	add(args, "--lock", join(args->lock, config->clocks_dir, "clocks.lock"));
	add(args, "--guard", join(args->guard, daemon->libexec_dir, "takt-guard"));
	add(args, "--sysfs", config->sysfs_root);
	if (config->driver_calls)
		add(args, "--driver-calls", "any");
	if (!config->set_clocks)
		add(args, "--sets", "none");
	if (config->nvml_path[0])
		add(args, "--nvml", config->nvml_path);
	if (config->baseline_file[0])
		add(args, "--baseline", config->baseline_file);
	add(args, "--declared", join(args->declared, config->runtime_dir, "clocks.declared"));
}

/* Whether its command line begins as we begin one; a unit's does not. */
static bool was_started_by_us(const struct takt_helper_proc *helper, pid_t pid)
{
	char path[40], begins[sizeof(helper->socket_path) + 64];
	TAKT_CLEANUP(freep) char *cmdline = NULL;
	int n = snprintf(begins, sizeof(begins), "--socket%c%s%c--client-uid%c%u", 0,
			 helper->socket_path, 0, 0, getuid());
	size_t len, program;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	if (takt_file_read(takt_sys_real(), AT_FDCWD, path, CMDLINE_MAX, &cmdline, &len, NULL) < 0)
		return false;
	program = strnlen(cmdline, len) + 1;
	return len > program + (size_t)n && memcmp(cmdline + program, begins, (size_t)n + 1) == 0;
}

/* Watches who listens there if he was started by one of us. False: he is dead, and a child of his
 * has the door, or he cannot be told from that now. One of another pid namespace lives. */
static bool watch_peer(struct takt_helper_proc *helper, pid_t pid)
{
	int pidfd = pidfd_open(pid, 0);

	if (pidfd < 0)
		return errno == EINVAL;
	if (was_started_by_us(helper, pid)) {
		helper->pidfd = pidfd;
		helper->pid = pid;
	} else {
		close(pidfd);
	}
	return true;
}

/*
 * Does somebody answer at this socket already? Then it is a helper of ours that outlived a killed
 * daemon, and is watched and ended like one that we started; or a service manager's, its own
 * socket or a launcher that it runs, and is left alone.
 */
static bool adopt(struct takt_helper_proc *helper)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct ucred peer = {0};
	socklen_t size = sizeof(peer);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	bool answered;

	takt_strcpy(addr.sun_path, sizeof(addr.sun_path), helper->socket_path);
	answered = fd >= 0 && connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0;
	if (answered && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
	    peer.uid == getuid())
		answered = watch_peer(helper, peer.pid);
	if (fd >= 0)
		close(fd);
	return answered;
}

static void become_helper(const struct arg_list *args)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setsid();
	execv(args->argv[0], (char *const *)args->argv);
	_exit(127);
}

int takt_helpers_check(const struct takt_daemon *daemon, struct takt_err *err)
{
	static const char *const names[] = {"takt-launch", "takt-shim", "takt-actuate",
					    "takt-guard"};
	char path[PATH_MAX];

	for (size_t i = 0; i < TAKT_ARRAY_LEN(names); i++)
		if (access(join(path, daemon->libexec_dir, names[i]), X_OK) < 0)
			return takt_err_set(err, -errno, "program '%s'", path);
	return 0;
}

int takt_helper_start(struct takt_daemon *daemon, struct takt_helper_proc *helper,
		      struct takt_err *err)
{
	struct arg_list args = {.n = 0};

	helper->retry_at = (struct takt_boot){0};
	helper->started = takt_boot_now(daemon->sys);
	if (adopt(helper))
		return 0;
	/* What an account could start would run jobs of that account only, and set no clock. */
	if (!daemon->single_user && getuid() != 0)
		return takt_err_set(err, -EPERM,
				    "users = all needs root, or a %s that runs as root and answers "
				    "on '%s'",
				    helper->name, helper->socket_path);
	fill_args(daemon, helper, &args);
	if (access(args.argv[0], X_OK) < 0)
		return takt_err_set(err, -errno, "start '%s'", args.argv[0]);
	helper->pid = fork();
	if (helper->pid == 0)
		become_helper(&args);
	if (helper->pid < 0) {
		helper->pid = 0;
		return takt_err_set(err, -errno, "start '%s'", args.argv[0]);
	}
	helper->pidfd = pidfd_open(helper->pid, 0);
	return 0;
}

/* A signal is told: SIGSYS, say, of a process that held back how a refused call is told. */
static void reap(struct takt_helper_proc *helper)
{
	int status;

	if (helper->pid > 0 && waitpid(helper->pid, &status, WNOHANG) == helper->pid &&
	    WIFSIGNALED(status))
		takt_log(TAKT_LOG_NOTICE, "%s was ended by signal %d (%s)", helper->name,
			 WTERMSIG(status), strsignal(WTERMSIG(status)));
	if (helper->pidfd >= 0)
		close(helper->pidfd);
	helper->pid = 0;
	helper->pidfd = -1;
}

static void try_later(struct takt_helper_proc *helper, struct takt_boot now)
{
	helper->retry_at = takt_boot_add(now, takt_pace_ns(&restarts, helper->failures++));
}

void takt_helper_died(struct takt_daemon *daemon, struct takt_helper_proc *helper)
{
	struct takt_boot now = takt_boot_now(daemon->sys);

	reap(helper);
	if (takt_boot_elapsed_ns(now, helper->started) > short_life_ns) {
		helper->failures = 0;
		helper->retry_at = now;
	} else {
		try_later(helper, now);
	}
	takt_helper_retry(daemon, helper, now);
}

void takt_helper_retry(struct takt_daemon *daemon, struct takt_helper_proc *helper,
		       struct takt_boot now)
{
	/* Started when no descriptor was left to watch it by. Our child stays one until it is
	 * reaped. */
	if (helper->pid > 0 && helper->pidfd < 0)
		helper->pidfd = pidfd_open(helper->pid, 0);
	if (helper->retry_at.ns == 0 || now.ns < helper->retry_at.ns)
		return;
	if (takt_helper_start(daemon, helper, NULL) < 0)
		try_later(helper, now);
}

void takt_helper_stop(struct takt_helper_proc *helper)
{
	struct pollfd gone = {.fd = helper->pidfd, .events = POLLIN};

	if (helper->pid > 0 && kill(helper->pid, SIGTERM) == 0)
		(void)poll(&gone, 1, STOP_WAIT_MS);
	reap(helper);
}
