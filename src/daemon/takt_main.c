/* SPDX-License-Identifier: Apache-2.0 */
/* The program `takt`: the command line; `serve` goes on as takt-serve. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/cli.h"
#include "daemon/daemon.h"
#include "daemon/libexec.h"

/* Becomes the daemon, under the name that the process list should show. Returns only when that
 * fails. */
static int become_serve(int argc, char **argv)
{
	char dir[PATH_MAX], path[PATH_MAX + 16];
	char **args = takt_calloc((size_t)argc + 2, sizeof(*args));

	takt_libexec_dir(dir);
	snprintf(path, sizeof(path), "%s/takt-serve", dir);
	if (args) {
		args[0] = program_invocation_name;
		memcpy(args + 1, argv, (size_t)argc * sizeof(*args));
		execv(path, args);
	}
	fprintf(stderr, "takt serve: start '%s': %s\n", path, strerror(errno));
	takt_free(args);
	return 69;
}

int main(int argc, char **argv)
{
	static const struct takt_cli_extra extra = {.serve = become_serve,
						    .record = takt_record_main};

	return takt_cli_main(argc, argv, &extra);
}
