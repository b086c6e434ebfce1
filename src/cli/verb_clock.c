/* SPDX-License-Identifier: Apache-2.0 */
/* takt clock: show, set and reset SM clocks. */
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "cli/table.h"
#include "cli/units.h"
#include "cli/verb.h"

static const struct takt_column columns[] = {
	{"GPU", true, 0, 0},   {"NAME", false, 8, 3}, {"SM MHZ", true, 0, 0}, {"LIST", true, 0, 1},
	{"LEASE", true, 0, 0}, {"OF", false, 0, 2},   {"STATE", false, 0, 0}, {"NOTE", false, 8, 0},
};

static void add_range(struct takt_table *table, uint32_t min, uint32_t max)
{
	if (max)
		takt_table_add(table, TAKT_STYLE_PLAIN, "%u-%u", min, max);
	else
		takt_table_add(table, TAKT_STYLE_PLAIN, "-");
}

static void add_gpu(struct takt_table *table, const struct takt_clock_gpu *gpu)
{
	bool changed = strcmp(gpu->clock_state, "changed") == 0;

	takt_table_add(table, TAKT_STYLE_PLAIN, "%u", gpu->index);
	takt_table_add(table, TAKT_STYLE_PLAIN, "%s", takt_short_name(gpu->name));
	if (gpu->has_sm)
		takt_table_add(table, TAKT_STYLE_PLAIN, "%u", gpu->sm_mhz);
	else
		takt_table_add(table, TAKT_STYLE_PLAIN, "-");
	add_range(table, gpu->list_min_mhz, gpu->list_max_mhz);
	add_range(table, gpu->lease_min_mhz, gpu->lease_max_mhz);
	if (gpu->lease_job)
		takt_table_add(table, TAKT_STYLE_PLAIN, "job %llu",
			       (unsigned long long)gpu->lease_job);
	else
		takt_table_add(table, TAKT_STYLE_PLAIN, "%s", gpu->lease_max_mhz ? "admin" : "-");
	takt_table_add(table, changed ? TAKT_STYLE_ALARM : TAKT_STYLE_PLAIN, "%s",
		       changed ? "CHANGED" : gpu->clock_state);
	takt_table_add(table, TAKT_STYLE_PLAIN, "%s", changed ? "" : gpu->note);
}

static void print_clocks(struct takt_cli *cli, const struct takt_clock_view *view)
{
	struct takt_table table = TAKT_TABLE(columns);

	takt_print_simulated(cli, view->simulated);
	for (uint32_t i = 0; i < view->gpu_count; i++)
		add_gpu(&table, &view->gpu[i]);
	takt_table_print(&table, cli->width, cli->colour, &cli->out);
	for (uint32_t i = 0; i < view->gpu_count; i++)
		if (strcmp(view->gpu[i].clock_state, "changed") == 0)
			takt_print_changed(cli, view->gpu[i].index, view->gpu[i].note);
}

/* --gpus by the machine's own count. */
static int read_gpus(struct takt_cli *cli, uint32_t count, bool required, uint64_t *ret,
		     struct takt_err *err)
{
	const char *text = takt_cli_value(cli, "gpus");

	if (!text && required)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "say which GPUs: '--gpus 0,2-3' or '--gpus all'");
	return takt_mask_parse(text ? text : "all", count, ret, err);
}

static int set(struct takt_cli *cli, struct takt_clock_view *view, struct takt_err *err)
{
	uint32_t mhz = 0;
	uint64_t mask = 0;
	int rc;

	if (cli->operand_count != 2)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "usage: takt clock set --gpus LIST [--lock] MHZ");
	rc = takt_cli_mhz(cli->operands[1], "the clock", &mhz, err);
	if (rc == 0)
		rc = read_gpus(cli, view->gpu_count, true, &mask, err);
	if (rc < 0)
		return rc;
	return takt_client_clock_set(cli->client, mask, mhz, takt_cli_has(cli, "lock"), view, err);
}

static int reset(struct takt_cli *cli, struct takt_clock_view *view, struct takt_err *err)
{
	uint64_t mask = 0;
	int rc = read_gpus(cli, view->gpu_count, false, &mask, err);

	if (rc == 0 && takt_cli_has(cli, "lock"))
		rc = takt_err_set(err, -TAKT_E_USAGE, "'--lock' is for takt clock set");
	return rc < 0 ? rc : takt_client_clock_reset(cli->client, mask, view, err);
}

static int check_form(const struct takt_cli *cli, const char *action, struct takt_err *err)
{
	if (strcmp(action, "show") != 0 && strcmp(action, "set") != 0 &&
	    strcmp(action, "reset") != 0)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "takt clock takes show, set or reset, not '%.40s'", action);
	if (strcmp(action, "set") != 0 && cli->operand_count > 1)
		return takt_err_set(err, -TAKT_E_USAGE, "'%.40s' is too much for takt clock %s",
				    cli->operands[1], action);
	if (strcmp(action, "show") == 0 && cli->given_count > 0)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "takt clock show takes no options of its own");
	return 0;
}

static int run(struct takt_cli *cli, struct takt_err *err)
{
	TAKT_CLEANUP(freep) struct takt_clock_view *view = takt_alloc(sizeof(*view));
	const char *action = cli->operand_count > 0 ? cli->operands[0] : "show";
	int rc = view ? check_form(cli, action, err)
		      : takt_err_set(err, -ENOMEM, "no memory for the clocks");

	if (rc == 0)
		rc = takt_cli_connect(cli, err);
	if (rc == 0)
		rc = takt_client_clocks(cli->client, view, err);
	if (rc == 0 && strcmp(action, "set") == 0)
		rc = set(cli, view, err);
	if (rc == 0 && strcmp(action, "reset") == 0)
		rc = reset(cli, view, err);
	if (rc == 0 && !takt_cli_print_json(cli))
		print_clocks(cli, view);
	return rc;
}

static const char *const words[] = {"show", "set", "reset", NULL};

static const struct takt_option options[] = {
	{"gpus", 'g', "LIST", "0,2-3 or all; reset takes all by default"},
	{"lock", 0, NULL, "exactly this clock, not at most"},
	{NULL},
};

static const struct takt_text_pair examples[] = {
	{"takt clock", "clocks, what the driver offers, and who asked for what"},
	{"takt clock set --gpus 0-3 1410", "at most 1410 MHz on the first four"},
	{"takt clock reset", "all back to the baseline"},
	{NULL, NULL},
};

const struct takt_verb takt_verb_clock = {
	.name = "clock",
	.summary = "show, set and reset SM clocks",
	.usage = "[show | set --gpus LIST [--lock] MHZ | reset [--gpus LIST]]",
	.about = "show: the SM clock of each GPU, the range of the driver's list, the range asked "
		 "for "
		 "and by whom, and whether takt has changed anything.\n"
		 "set: at most MHZ (with --lock exactly MHZ) until reset. You may do so on GPUs "
		 "that "
		 "your running job holds alone; anything else needs root or group takt-admin. A "
		 "job's "
		 "own wish is better said with takt run --clock, which ends with the job.\n"
		 "reset: back to the machine's baseline.",
	.options = options,
	.examples = examples,
	.operands = TAKT_OPERANDS_WORDS,
	.words = words,
	.max_operands = 2,
	.run = run,
};
