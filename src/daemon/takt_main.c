/* SPDX-License-Identifier: Apache-2.0 */
/* The program `takt`: the command line, with the daemon behind one of its verbs. */
#include "cli/cli.h"
#include "daemon/daemon.h"

int main(int argc, char **argv)
{
	static const struct takt_cli_extra extra = {.serve = takt_serve_main,
						    .record = takt_record_main};

	return takt_cli_main(argc, argv, &extra);
}
