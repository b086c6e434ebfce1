/* SPDX-License-Identifier: Apache-2.0 */
/* takt-launch: starts shims for one client, as root where jobs run as other users. */
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/pace.h"
#include "base/str.h"
#include "confine/confine.h"
#include "daemon/clean_start.h"
#include "daemon/client_user.h"
#include "daemon/log.h"
#include "launch/launch.h"
#include "launch/system_users.h"

enum {
	LISTEN_TRIES = 14, /* a second */
};

static const struct takt_pace listens = {5 * TAKT_NS_PER_MS, 100 * TAKT_NS_PER_MS};

static const char usage[] =
	"usage: takt-launch (--socket PATH | --listen-fd N) --jobs DIR --shim PATH\n"
	"                   [--client-uid USER] [--min-uid UID] [--cgroup DIR] [--idle-ms MS]\n"
	"                   [--allow-weak-isolation] [--allow-system-users]\n"
	"\n"
	"  --socket PATH     listen there\n"
	"  --listen-fd N     an inherited listening socket (SOCK_SEQPACKET)\n"
	"  --jobs DIR        where attempts live\n"
	"  --shim PATH       takt-shim\n"
	"  --client-uid USER the only user, besides root, that may ask, by number or name\n"
	"                    (default: our own)\n"
	"  --min-uid UID     as root: users below are the system's (default: UID_MIN of\n"
	"                    /etc/login.defs, 1000)\n"
	"  --cgroup DIR      make the cgroups of jobs there (default: in our own); what runs in "
	"it\n"
	"                    itself is moved to a leaf\n"
	"  --allow-weak-isolation\n"
	"                    as root: run jobs also where their devices cannot be closed\n"
	"  --allow-system-users\n"
	"                    as root: run jobs also of users that are the system's, but root\n"
	"  --idle-ms MS      end when no client is there for so long (default: 0, never)\n";

struct options {
	struct takt_launch_server_config config;
	const char *socket;
};

static const struct option longopts[] = {
	{"socket", required_argument, NULL, 's'},
	{"listen-fd", required_argument, NULL, 'l'},
	{"jobs", required_argument, NULL, 'j'},
	{"shim", required_argument, NULL, 'p'},
	{"client-uid", required_argument, NULL, 'c'},
	{"min-uid", required_argument, NULL, 'm'},
	{"idle-ms", required_argument, NULL, 'i'},
	{"allow-weak-isolation", no_argument, NULL, 'a'},
	{"allow-system-users", no_argument, NULL, 'u'},
	{"cgroup", required_argument, NULL, 'g'},
	{0},
};

static int number(const char *name, const char *text, unsigned long long max,
		  unsigned long long *ret, struct takt_err *err)
{
	if (takt_parse_u64(text, 0, max, ret) == 0)
		return 0;
	return takt_err_set(err, -TAKT_E_USAGE, "--%s: '%s' is not a number from 0 to %llu", name,
			    text, max);
}

static int take_option(struct options *options, int opt, const char *arg, struct takt_err *err)
{
	unsigned long long n = 0;
	int rc = 0;

	switch (opt) {
	case 's':
		options->socket = arg;
		break;
	case 'j':
		options->config.jobs_dir = arg;
		break;
	case 'p':
		options->config.shim_path = arg;
		break;
	case 'g':
		options->config.cgroup = arg;
		break;
	case 'a':
		options->config.allow_weak = true;
		break;
	case 'u':
		options->config.allow_system = true;
		break;
	case 'l':
		rc = number("listen-fd", arg, INT_MAX, &n, err);
		options->config.listen_fd = (int)n;
		break;
	case 'c':
		rc = takt_client_user(arg, &options->config.client_uid, err);
		break;
	case 'm':
		rc = number("min-uid", arg, UINT_MAX, &n, err);
		options->config.min_uid = (uid_t)n;
		break;
	case 'i':
		rc = number("idle-ms", arg, INT_MAX, &n, err);
		options->config.idle_ms = (uint32_t)n;
		break;
	default:
		rc = takt_err_set(err, -TAKT_E_USAGE, "see takt-launch --help");
	}
	return rc;
}

static int parse(int argc, char **argv, struct options *options, struct takt_err *err)
{
	int opt, rc;

	while ((opt = getopt_long(argc, argv, "", longopts, NULL)) != -1) {
		rc = take_option(options, opt, optarg, err);
		if (rc < 0)
			return rc;
	}
	if (optind < argc)
		return takt_err_set(err, -TAKT_E_USAGE, "'%s' is not expected", argv[optind]);
	if (!options->config.jobs_dir || !options->config.shim_path)
		return takt_err_set(err, -TAKT_E_USAGE, "--jobs and --shim are needed");
	if (!options->socket == (options->config.listen_fd < 0))
		return takt_err_set(err, -TAKT_E_USAGE,
				    "one of --socket and --listen-fd is needed");
	return 0;
}

/* A process that a killed predecessor had just forked may hold its socket for a moment. */
static int listen_at(const char *path, struct takt_err *err)
{
	int rc = takt_launch_listen(path, err);

	for (uint32_t i = 1; rc == -TAKT_E_BUSY && i < LISTEN_TRIES; i++) {
		struct timespec pause = {.tv_nsec = (long)takt_pace_ns(&listens, i - 1)};

		(void)nanosleep(&pause, NULL);
		rc = takt_launch_listen(path, err);
	}
	return rc;
}

/* Where we are root, for ourselves and whatever jobs do. A kernel that filters nothing is no reason
 * to run no jobs. */
static int confine(struct takt_err *err)
{
	char text[320];

	if (geteuid() != 0)
		return 0;
	if (takt_confine_calls(TAKT_CONFINED_LAUNCH, err) < 0)
		takt_log(TAKT_LOG_WARNING, "%s", takt_err_text(err, text, sizeof(text)));
	return takt_confine_rights(TAKT_CONFINED_LAUNCH, err);
}

int main(int argc, char **argv)
{
	struct options options = {.config = {.listen_fd = -1,
					     .client_uid = getuid(),
					     .min_uid = takt_system_users_below("")}};
	struct takt_err err;
	char text[320];
	int rc;

	if (argc == 2 && strcmp(argv[1], "--help") == 0) {
		fputs(usage, stdout);
		return 0;
	}
	rc = parse(argc, argv, &options, &err);
	takt_log_as("takt-launch");
	if (rc == -TAKT_E_USAGE)
		fputs(usage, stderr);
	if (rc == 0 && geteuid() == 0)
		rc = takt_clean_start(argv, &err);
	if (rc == 0)
		rc = confine(&err);
	if (rc == 0 && options.socket) {
		rc = listen_at(options.socket, &err);
		options.config.listen_fd = rc;
	}
	if (rc >= 0)
		rc = takt_launch_serve(&options.config, &err);
	if (options.socket && options.config.listen_fd >= 0)
		(void)unlink(options.socket);
	if (rc == 0)
		return 0;
	takt_log(TAKT_LOG_ERROR, "%s", takt_err_text(&err, text, sizeof(text)));
	return takt_err_exit_status(rc);
}
