/* SPDX-License-Identifier: Apache-2.0 */
/* takt logs: what a job has written. */
#include <string.h>

#include "base/str.h"
#include "cli/log_stream.h"
#include "cli/verb.h"

enum {
	MAX_LINES = 1000 * 1000,
	MAX_TAIL = 16 * 1024 * 1024, /* bytes of them */
};

/* Where the last `lines` lines begin; an unfinished one is one. */
static size_t start_of_last(const char *text, size_t len, int64_t lines)
{
	size_t at = len;

	if (lines == 0)
		return len;
	if (at > 0 && text[at - 1] == '\n')
		at--;
	for (; at > 0; at--)
		if (text[at - 1] == '\n' && --lines == 0)
			break;
	return at;
}

/* A log may be longer than memory: of one that is, the newest bytes. */
static void drop_oldest(struct takt_str *kept)
{
	size_t drop = kept->len > 2 * MAX_TAIL ? kept->len - MAX_TAIL : 0;

	if (drop)
		memmove(kept->s, kept->s + drop, kept->len - drop + 1);
	kept->len -= drop;
}

/* Of what is there now; *place is then behind it. */
static int print_last(struct takt_cli *cli, uint64_t job_id, int64_t lines,
		      struct takt_log_place *place, struct takt_err *err)
{
	TAKT_CLEANUP(strp) struct takt_str kept = TAKT_STR(4 * MAX_TAIL);
	const char *bytes;
	size_t len, start;
	int rc;

	do {
		rc = takt_client_log(cli->client, job_id, 0, place, &bytes, &len, err);
		if (rc < 0)
			return rc;
		takt_str_addn(&kept, bytes, len);
		drop_oldest(&kept);
	} while (len > 0);
	if (kept.rc < 0)
		return takt_err_set(err, kept.rc, "no memory for the log");
	start = start_of_last(takt_str_text(&kept), kept.len, lines);
	return takt_cli_write(takt_str_text(&kept) + start, kept.len - start, err);
}

static int run(struct takt_cli *cli, struct takt_err *err)
{
	struct takt_patience patience = TAKT_PATIENCE;
	struct takt_log_place place = {.offset = 0};
	int64_t lines;
	uint64_t id = 0;
	int rc = takt_cli_job_id(cli->operands[0], &id, err);

	if (rc == 0)
		rc = takt_cli_number(cli, "tail", 0, MAX_LINES, -1, &lines, err);
	if (rc == 0)
		rc = takt_cli_connect(cli, err);
	if (rc == 0 && lines >= 0)
		rc = print_last(cli, id, lines, &place, err);
	if (rc < 0)
		return rc;
	do
		rc = takt_log_stream(cli, id, takt_cli_has(cli, "follow"), &patience, &place, err);
	while (rc == 1);
	return rc;
}

static const struct takt_option options[] = {
	{"follow", 'f', NULL, "go on until the job is over"},
	{"tail", 'n', "N", "only the last N lines of what is there now"},
	{NULL},
};

static const struct takt_text_pair examples[] = {
	{"takt logs --tail 20 12", "the last 20 lines of job 12"},
	{"takt logs -f 12", "what job 12 writes, as it writes it"},
	{NULL, NULL},
};

const struct takt_verb takt_verb_logs = {
	.name = "logs",
	.summary = "what a job has written",
	.usage = "[-f] [--tail N] JOB",
	.about = "Prints the output of a job (standard output and error together), byte for byte, "
		 "also after its end. Of a job that was started again it is the latest attempt's. "
		 "Of one that printed more than is kept (output_limit) it has the beginning and "
		 "the newest part, and a line in place of what lies between.",
	.options = options,
	.examples = examples,
	.operands = TAKT_OPERANDS_JOBS,
	.min_operands = 1,
	.max_operands = 1,
	.run = run,
};
