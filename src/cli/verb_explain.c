/* SPDX-License-Identifier: Apache-2.0 */
/* takt explain: why a job waits, with the numbers behind it. */
#include <stdio.h>
#include <string.h>

#include "cli/outlook_text.h"
#include "cli/units.h"
#include "cli/verb.h"

static void print_numbers(struct takt_cli *cli, const struct takt_explain_view *view)
{
	const struct {
		const char *label;
		uint32_t value;
	} rows[] = {
		{"asked for", view->need},
		{"GPUs there are", view->total},
		{"free", view->free},
		{"running jobs", view->running},
		{"draining", view->draining},
		{"used from outside", view->outside},
		{"unhealthy", view->unhealthy},
		{"promised to others", view->promised},
		{"set aside, reserved", view->kept},
		{"must come free", view->must_end},
		{"jobs ahead", view->ahead},
	};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(rows); i++)
		takt_str_addf(&cli->out, "  %-20s%u\n", rows[i].label, rows[i].value);
	if (view->behind_job)
		takt_str_addf(&cli->out, "  %-20s%llu\n", "behind job",
			      (unsigned long long)view->behind_job);
}

static void print_time(struct takt_cli *cli, const char *label, int64_t wall_ms)
{
	char text[TAKT_UNIT_TEXT];

	if (wall_ms)
		takt_str_addf(&cli->out, "  %-20s%s\n", label, takt_when_text(wall_ms, text));
}

static void print_outlook(struct takt_cli *cli, const struct takt_explain_view *view)
{
	if (view->start.starts_ms) {
		takt_str_addf(&cli->out, "  %-20s", "expected start");
		takt_starts_text(&view->start, &cli->out);
		takt_str_add(&cli->out, "\n");
	}
	if (view->run_ms) {
		takt_str_addf(&cli->out, "  %-20s", "expected run");
		takt_run_text(view->run_ms, view->run_from, &cli->out);
		takt_str_add(&cli->out, "\n");
	}
}

static int run(struct takt_cli *cli, struct takt_err *err)
{
	struct takt_explain_view view;
	uint64_t id = 0;
	int rc = takt_cli_job_id(cli->operands[0], &id, err);

	if (rc == 0)
		rc = takt_cli_connect(cli, err);
	if (rc == 0)
		rc = takt_client_explain(cli->client, id, &view, err);
	if (rc < 0 || takt_cli_print_json(cli))
		return rc;
	takt_print_simulated(cli, view.simulated);
	takt_str_addf(&cli->out, "job %llu is %s%s%s\n", (unsigned long long)view.id, view.state,
		      view.text[0] ? ": " : "", view.text);
	if (view.counted)
		print_numbers(cli, &view);
	print_time(cli, "refused since", view.refused_since_ms);
	print_time(cli, "tried again", view.retry_at_ms);
	print_outlook(cli, &view);
	return 0;
}

static const struct takt_text_pair examples[] = {
	{"takt explain 12", "why job 12 waits and what would let it start"},
	{NULL, NULL},
};

const struct takt_verb takt_verb_explain = {
	.name = "explain",
	.summary = "why a job waits, with the numbers",
	.usage = "JOB",
	.about = "Says why a waiting job has not been placed, what would unblock it, and the "
		 "counts of "
		 "GPUs that the scheduler saw.",
	.examples = examples,
	.operands = TAKT_OPERANDS_JOBS,
	.min_operands = 1,
	.max_operands = 1,
	.run = run,
};
