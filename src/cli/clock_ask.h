/* SPDX-License-Identifier: Apache-2.0 */
/* Whom takt clock asks: the daemon; or, to apply a machine's policy and to take it back, the boards
 * themselves where no daemon answers. */
#ifndef TAKT_CLI_CLOCK_ASK_H
#define TAKT_CLI_CLOCK_ASK_H

#include "cli/verb.h"

/* may_be_alone: cli->client stays NULL where no daemon answers, and the GPUs are looked at here. A
 * daemon that was named (--socket, $TAKT_SOCKET) is asked and nobody in its place, unless --config
 * names its files, too. */
int takt_clock_look(struct takt_cli *cli, bool may_be_alone, struct takt_clock_view *ret,
		    struct takt_err *err);

/* How the GPUs of *view stand, NULL: as they were found; *view is then as they are. */
int takt_clock_declare(struct takt_cli *cli, const struct takt_declaration *declaration,
		       struct takt_clock_view *view, struct takt_err *err);

/* Appends the JSON of the view; true if that is what was asked for. */
bool takt_clock_print_json(struct takt_cli *cli, const struct takt_clock_view *view);

#endif
