/* SPDX-License-Identifier: Apache-2.0 */
/* See daemon_config.h. */
#include "cli/daemon_config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum {
	ANSWER_S = 2 /* one that hangs is what its files may be looked at for */
};

/* Also with dir as its state_dir, which `said` has named; NULL: as the file says. */
static int load(const struct takt_cli *cli, const char *dir, const char *said,
		struct takt_config *ret, struct takt_err *err)
{
	const char *path = takt_cli_value(cli, "config");
	int rc;

	takt_config_init(ret);
	rc = takt_config_load(ret, path ? path : "/etc/takt/takt.conf", err);
	if (rc == -ENOENT && !path)
		rc = 0;
	if (rc == 0 && dir)
		rc = takt_config_set(ret, "state_dir", dir, said, err);
	return rc < 0 ? rc
		      : takt_config_resolve(ret, getuid(), getenv("XDG_RUNTIME_DIR"),
					    getenv("XDG_STATE_HOME"), getenv("HOME"), err);
}

int takt_cli_daemon_config(const struct takt_cli *cli, struct takt_config *ret,
			   struct takt_err *err)
{
	return load(cli, takt_cli_value(cli, "state-dir"), "--state-dir", ret, err);
}

static int give_up(void *ctx)
{
	return -ECANCELED;
}

/* What the daemon says of itself; false where none answers soon. */
static bool ask_daemon(struct takt_cli *cli, struct takt_status_view *ret)
{
	const struct itimerspec soon = {.it_value.tv_sec = ANSWER_S};
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC), rc = -ENOENT;

	if (fd >= 0 && timerfd_settime(fd, 0, &soon, NULL) == 0 &&
	    takt_cli_connect(cli, NULL) == 0) {
		takt_client_wake_on(cli->client, fd, give_up, NULL);
		rc = takt_client_status(cli->client, ret, NULL);
		takt_client_wake_on(cli->client, -1, NULL, NULL);
	}
	if (fd >= 0)
		close(fd);
	if (rc == -ECANCELED)
		fprintf(stderr, "takt: takt serve does not answer; its files are looked for where "
				"its configuration says\n");
	return rc == 0;
}

int takt_cli_served_config(struct takt_cli *cli, struct takt_config *ret, struct takt_err *err)
{
	struct takt_status_view status = {0};
	int rc;

	if (takt_cli_has(cli, "config") || takt_cli_has(cli, "state-dir") ||
	    !ask_daemon(cli, &status))
		return takt_cli_daemon_config(cli, ret, err);
	rc = load(cli, status.state_dir[0] ? status.state_dir : NULL, "takt serve", ret, err);
	takt_status_view_fini(&status);
	return rc;
}
