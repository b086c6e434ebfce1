/* SPDX-License-Identifier: Apache-2.0 */
/* See daemon_config.h. */
#include "cli/daemon_config.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

int takt_cli_daemon_config(const struct takt_cli *cli, struct takt_config *ret,
			   struct takt_err *err)
{
	const char *path = takt_cli_value(cli, "config"), *dir = takt_cli_value(cli, "state-dir");
	int rc;

	takt_config_init(ret);
	rc = takt_config_load(ret, path ? path : "/etc/takt/takt.conf", err);
	if (rc == -ENOENT && !path)
		rc = 0;
	if (rc == 0 && dir)
		rc = takt_config_set(ret, "state_dir", dir, "--state-dir", err);
	return rc < 0 ? rc
		      : takt_config_resolve(ret, getuid(), getenv("XDG_RUNTIME_DIR"),
					    getenv("XDG_STATE_HOME"), getenv("HOME"), err);
}
