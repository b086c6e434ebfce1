/* SPDX-License-Identifier: Apache-2.0 */
/* takt progress: a script says how far its job is (include/takt/progress.h). */
#include <errno.h>
#include <sys/file.h>

#include "cli/verb.h"
#include "takt/progress.h"

enum {
	MAX_LATENCY_MS = 24 * 3600 * 1000
};

struct told {
	int64_t steps, tokens, queries;
	uint64_t latency_ms;
};

static int read_options(const struct takt_cli *cli, struct told *ret, struct takt_err *err)
{
	int rc = takt_cli_number(cli, "steps", 0, INT64_MAX, 0, &ret->steps, err);

	rc = rc < 0 ? rc : takt_cli_number(cli, "tokens", 0, INT64_MAX, 0, &ret->tokens, err);
	rc = rc < 0 ? rc : takt_cli_number(cli, "queries", 0, INT64_MAX, 0, &ret->queries, err);
	rc = rc < 0 ? rc
		    : takt_cli_duration_ms(cli, "latency", MAX_LATENCY_MS, 0, &ret->latency_ms,
					   err);
	if (rc == 0 && cli->given_count == 0)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "say what is done: --steps, --tokens, --queries or --latency");
	return rc;
}

/* Several at a time, of a script with background jobs, go one after the other. */
static int lock(struct takt_err *err)
{
	int fd = open(getenv("TAKT_PROGRESS"), O_RDWR | O_CLOEXEC | O_NOFOLLOW);

	if (fd >= 0 && flock(fd, LOCK_EX) == 0)
		return fd;
	takt_err_set(err, -errno, "lock the file of TAKT_PROGRESS");
	if (fd >= 0)
		close(fd);
	return err->rc;
}

static int run(struct takt_cli *cli, struct takt_err *err)
{
	struct takt_progress progress;
	struct told told;
	int fd, rc = read_options(cli, &told, err);

	if (rc < 0)
		return rc;
	rc = takt_progress_open(&progress);
	if (rc == -ENOENT && !getenv("TAKT_PROGRESS"))
		return takt_err_set(err, -TAKT_E_USAGE,
				    "TAKT_PROGRESS is not set: this is for within a job of takt");
	if (rc < 0)
		return takt_err_set(err, rc, "open the file of TAKT_PROGRESS");
	fd = lock(err);
	if (fd >= 0) {
		takt_progress_add(&progress, (uint64_t)told.steps, (uint64_t)told.tokens,
				  (uint64_t)told.queries);
		if (takt_cli_has(cli, "latency"))
			takt_progress_latency(&progress, told.latency_ms * 1000);
		close(fd);
	}
	takt_progress_close(&progress);
	return fd < 0 ? fd : 0;
}

static const struct takt_option options[] = {
	{"steps", 0, "N", "so many more steps are done"},
	{"tokens", 0, "N", "so many more tokens"},
	{"queries", 0, "N", "so many more queries are answered"},
	{"latency", 0, "TIME", "what a query takes at present, such as 20ms"},
	{NULL},
};

static const struct takt_text_pair examples[] = {
	{"takt run -- sh -c 'for f in *.wav; do decode $f; takt progress --steps 1; done'",
	 "takt show then says how many a second"},
	{NULL, NULL},
};

const struct takt_verb takt_verb_progress = {
	.name = "progress",
	.summary = "within a job: say how far it is",
	.usage = "[--steps N] [--tokens N] [--queries N] [--latency TIME]",
	.about = "Adds to what the job has said so far, in the file that TAKT_PROGRESS names. takt "
		 "show has it with rates, and the report. Of ranks each says its own. Programs do "
		 "the same in nanoseconds: in C "
		 "with takt/progress.h, in Python with examples/takt_progress.py; docs/job.md "
		 "has the format.",
	.options = options,
	.examples = examples,
	.offline = true,
	.run = run,
};
