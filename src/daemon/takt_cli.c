/* SPDX-License-Identifier: Apache-2.0 */
/* The module takt-cli: the command line but for `top`; `serve` goes on as takt-serve. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/cli.h"
#include "daemon/admin.h"
#include "daemon/clock_alone.h"
#include "daemon/daemon.h"
#include "daemon/libexec.h"
#include "daemon/takt_module.h"
#include "store/store.h"

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

struct decisions {
	int (*each)(void *ctx, uint64_t version, const char *snapshot, const char *plan);
	void *ctx;
};

static int hand_decision(void *ctx, const struct takt_store_decision_row *row)
{
	const struct decisions *to = ctx;

	return to->each(to->ctx, row->version, row->snapshot_json, row->plan_json);
}

static int read_decisions(const char *path, uint32_t limit,
			  int (*each)(void *ctx, uint64_t version, const char *snapshot,
				      const char *plan),
			  void *ctx, struct takt_err *err)
{
	struct decisions to = {each, ctx};

	return takt_store_file_decisions(path, limit, hand_decision, &to, err);
}

static void helper_path(const char *name, char *ret, size_t size)
{
	char dir[PATH_MAX];

	takt_libexec_dir(dir);
	snprintf(ret, size, "%s/%s", dir, name);
}

int takt_module_main(int argc, char **argv)
{
	static const struct takt_cli_extra extra = {.serve = become_serve,
						    .record = takt_record_main,
						    .decisions = read_decisions,
						    .recorded = takt_recorded_series,
						    .helper = helper_path,
						    .look_at_clocks = takt_clock_alone_look,
						    .declare_clocks = takt_clock_alone_declare,
						    .admin = takt_admin_files};

	return takt_cli_main(argc, argv, &extra);
}
