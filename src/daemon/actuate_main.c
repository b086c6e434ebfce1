/* SPDX-License-Identifier: Apache-2.0 */
/* takt-actuate: the process that sets clocks. Wiring only. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "actuate/actuate.h"
#include "base/pace.h"
#include "base/str.h"
#include "daemon/actuate_flags.h"
#include "daemon/clean_start.h"
#include "daemon/log.h"
#include "device/driver_look.h"

static const char usage[] =
	"Usage: takt-actuate (--socket PATH | --listen-fd N) --journal PATH --lock PATH --guard "
	"PATH\n"
	"                    [--baseline FILE] [--declared FILE] [--client-uid USER] [--nvml "
	"PATH]\n"
	"                    [--sysfs PATH]\n"
	"                    [--deadline-ms N] [--driver-calls listed|any] [--sets asked|none]\n"
	"   or: takt-actuate --declare FILE --declared FILE --journal PATH --lock PATH ...\n"
	"Sets and restores GPU clocks for takt serve. It is started by takt or a service "
	"manager.\n";

enum {
	LISTEN_TRIES = 14, /* a second */
};

static const struct takt_pace listens = {5 * TAKT_NS_PER_MS, 100 * TAKT_NS_PER_MS};

static void log_line(void *ctx, const char *text)
{
	takt_log(TAKT_LOG_NOTICE, "%s", text);
}

/* A socket that nobody listens on is what a killed actuator left behind. */
static int remove_dead_socket(const struct sockaddr_un *address)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int rc;

	if (fd < 0)
		return -errno;
	rc = connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 ? -EADDRINUSE
										  : -errno;
	close(fd);
	if (rc == -ENOENT)
		return 0;
	if (rc == -ECONNREFUSED)
		return unlink(address->sun_path) == 0 ? 0 : -errno;
	return rc;
}

/* The actuator decides by the peer's user who may ask, so the file lets everybody connect. */
static int listen_at(const char *path, struct takt_err *err)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd, rc;

	if (!takt_strcpy(address.sun_path, sizeof(address.sun_path), path))
		return takt_err_set(err, -ENAMETOOLONG, "socket '%.64s...'", path);
	rc = remove_dead_socket(&address);
	if (rc < 0)
		return takt_err_set(err, rc, "socket '%s'", path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return takt_err_set(err, -errno, "make a socket");
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0 && chmod(path, 0666) == 0 &&
	    listen(fd, 16) == 0)
		return fd;
	rc = -errno;
	close(fd);
	return takt_err_set(err, rc, "listen at '%s'", path);
}

/* A process that a killed predecessor had just forked may hold its socket for a moment. */
static int listen_patiently(const char *path, struct takt_err *err)
{
	int rc = listen_at(path, err);

	for (uint32_t i = 1; rc == -EADDRINUSE && i < LISTEN_TRIES; i++) {
		struct timespec pause = {.tv_nsec = (long)takt_pace_ns(&listens, i - 1)};

		(void)nanosleep(&pause, NULL);
		rc = listen_at(path, err);
	}
	return rc;
}

static int stop_signals(void)
{
	sigset_t stop;

	sigemptyset(&stop);
	sigaddset(&stop, SIGTERM);
	sigaddset(&stop, SIGINT);
	sigprocmask(SIG_BLOCK, &stop, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
	return signalfd(-1, &stop, SFD_CLOEXEC | SFD_NONBLOCK);
}

int main(int argc, char **argv)
{
	struct takt_actuate_flags flags;
	struct takt_err err = {0};
	char text[512];
	int rc;

	takt_actuate_tell_refusals("takt-actuate");
	if (takt_driver_look_main(argc, argv, &rc))
		return rc;
	takt_log_as("takt-actuate");
	rc = takt_actuate_flags_parse(argc, argv, &flags, &err);
	if (rc == 0 && geteuid() == 0 && flags.config.client_uid != 0)
		rc = takt_clean_start(argv, &err);
	if (rc == 0 && flags.help) {
		(void)fputs(usage, stdout);
		return 0;
	}
	if (rc == 0 && !flags.config.declare &&
	    (!flags.config.guard_path || (!flags.socket_path && flags.config.listen_fd < 0)))
		rc = takt_err_set(&err, -TAKT_E_USAGE,
				  "--guard and one of --socket, --listen-fd are needed");
	if (rc == 0)
		rc = takt_actuate_confine(&flags, false, &err);
	if (rc == 0 && !flags.config.declare && flags.config.listen_fd < 0)
		rc = flags.config.listen_fd = listen_patiently(flags.socket_path, &err);
	if (rc >= 0) {
		flags.config.log.line = log_line;
		flags.config.stop_fd = stop_signals();
		rc = takt_actuate_serve(&flags.config, &err);
	}
	if (rc == 0 && !flags.config.declare && flags.socket_path)
		(void)unlink(flags.socket_path);
	if (rc == -TAKT_E_STALE)
		takt_log(TAKT_LOG_NOTICE, "%s", err.msg);
	else if (rc < 0)
		takt_log(TAKT_LOG_ERROR, "%s", takt_err_text(&err, text, sizeof(text)));
	return rc < 0 ? takt_err_exit_status(rc) : 0;
}
