/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's settings, for verbs that work on its files whether or not it runs. */
#ifndef TAKT_CLI_DAEMON_CONFIG_H
#define TAKT_CLI_DAEMON_CONFIG_H

#include "cli/verb.h"
#include "config/config.h"

/* From --config FILE, else /etc/takt/takt.conf if it is there; --state-dir DIR goes before it. */
int takt_cli_daemon_config(const struct takt_cli *cli, struct takt_config *ret,
			   struct takt_err *err);

/* The same; but where neither option is given and a daemon answers within two seconds, state_dir is
 * the one that it says it has. It says so to administrators. */
int takt_cli_served_config(struct takt_cli *cli, struct takt_config *ret, struct takt_err *err);

#endif
