/* SPDX-License-Identifier: Apache-2.0 */
/* See daemon_config.h. */
#include "cli/daemon_config.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

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

int takt_cli_served_config(struct takt_cli *cli, struct takt_config *ret, struct takt_err *err)
{
	struct takt_status_view status = {0};
	int rc;

	if (takt_cli_has(cli, "config") || takt_cli_has(cli, "state-dir") ||
	    takt_cli_connect(cli, NULL) < 0 || takt_client_status(cli->client, &status, NULL) < 0)
		return takt_cli_daemon_config(cli, ret, err);
	rc = load(cli, status.state_dir[0] ? status.state_dir : NULL, "takt serve", ret, err);
	takt_status_view_fini(&status);
	return rc;
}
