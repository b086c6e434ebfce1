/* SPDX-License-Identifier: Apache-2.0 */
/*
 * takt tune: outside a job it hands itself in as one and stays with it, as takt run does; within
 * one it sweeps. The job watches this process: when it is gone, however it went, the sweep ends,
 * the job with it, and with the job its lease.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sys.h"
#include "cli/job_options.h"
#include "cli/profiles.h"
#include "cli/table.h"
#include "cli/tune.h"
#include "cli/units.h"

static const char *permille_text(int32_t value, int32_t error, char ret[TAKT_UNIT_TEXT])
{
	if (error)
		snprintf(ret, TAKT_UNIT_TEXT, "%.1f +-%.1f", value / 10.0, error / 10.0);
	else
		snprintf(ret, TAKT_UNIT_TEXT, "%.1f", value / 10.0);
	return ret;
}

static void add_profile(struct takt_table *table, const struct takt_profile *profile)
{
	char text[TAKT_UNIT_TEXT];

	takt_table_add(table, TAKT_STYLE_PLAIN, "%s", profile->name);
	takt_table_add(table, TAKT_STYLE_PLAIN, "%u", profile->sm_mhz);
	if (profile->power_limit_mw)
		takt_table_add(table, TAKT_STYLE_PLAIN, "%u W", profile->power_limit_mw / 1000);
	else
		takt_table_add(table, TAKT_STYLE_PLAIN, "%s", "");
	takt_table_add(
		table, TAKT_STYLE_PLAIN, "%s",
		permille_text(profile->slowdown_permille, profile->slowdown_error_permille, text));
	takt_table_add(table, TAKT_STYLE_PLAIN, "%s",
		       permille_text(profile->saved_permille, profile->saved_error_permille, text));
	takt_table_add(table, profile->simulated ? TAKT_STYLE_ALARM : TAKT_STYLE_PLAIN, "%s%s",
		       profile->simulated ? "SIMULATED " : "", takt_short_name(profile->gpu_name));
	takt_table_add(table, TAKT_STYLE_PLAIN, "%s", takt_when_text(profile->at_ms, text));
}

static void add_profile_json(struct takt_str *out, const struct takt_profile *profile)
{
	takt_str_addf(out, "{\"name\":\"%s\",\"sm_mhz\":%u", profile->name, profile->sm_mhz);
	if (profile->power_limit_mw)
		takt_str_addf(out, ",\"power_limit_mw\":%u", profile->power_limit_mw);
	takt_str_addf(out, ",\"slowdown_permille\":%d,\"saved_permille\":%d,\"simulated\":%s}",
		      profile->slowdown_permille, profile->saved_permille,
		      profile->simulated ? "true" : "false");
}

static int list_profiles(struct takt_cli *cli, struct takt_err *err)
{
	static const struct takt_column columns[] = {
		{"JOB", false, 0, 0},	   {"SM MHz", true, 0, 0},  {"LIMIT", true, 0, 0},
		{"SLOWER %", true, 0, 0},  {"SAVED %", true, 0, 0}, {"GPU", false, 0, 0},
		{"MEASURED", false, 0, 0},
	};
	struct takt_table table = TAKT_TABLE(columns);
	struct takt_profiles profiles;
	int rc = takt_profiles_read(takt_sys_real(), &profiles, err);

	if (rc < 0)
		return rc;
	if (cli->json)
		takt_str_add(&cli->out, "{\"profiles\":[");
	for (uint32_t i = 0; i < profiles.count; i++) {
		if (cli->json && i > 0)
			takt_str_add(&cli->out, ",");
		if (cli->json)
			add_profile_json(&cli->out, &profiles.at[i]);
		else
			add_profile(&table, &profiles.at[i]);
	}
	if (cli->json)
		takt_str_add(&cli->out, "]}\n");
	else if (profiles.count == 0)
		takt_str_add(&cli->out, "No profiles yet; 'takt tune --save NAME -- COMMAND' "
					"makes one.\n");
	else
		(void)takt_table_print(&table, cli->width, cli->colour, &cli->out);
	takt_profiles_fini(&profiles);
	return 0;
}

/* What takt run is told: the GPUs, a name, who is waiting, and this very command. */
struct hand_in {
	struct takt_cli run;
	char owner[64], columns[32], self[4096];
	char **argv; /* owned, with its words */
};

static void give(struct takt_cli *run, const struct takt_option *option, const char *value)
{
	run->given[run->given_count++] = (struct takt_given){option, value};
}

static int say_owner(struct hand_in *in, struct takt_err *err)
{
	struct takt_proc_id own;
	int rc = takt_proc_identify(getpid(), &own, err);

	snprintf(in->owner, sizeof(in->owner), "TAKT_TUNE_OWNER=%d %llu", own.pid,
		 (unsigned long long)own.start_ticks);
	return rc;
}

/* "--name=value" of the i-th option given; as typed but for the way of writing. */
static char *option_word(const struct takt_cli *cli, size_t i)
{
	struct takt_str word = TAKT_STR(TAKT_SPEC_MAX_BYTES);
	const struct takt_given *given = &cli->given[i];
	char *taken;

	takt_str_addf(&word, "--%s%s", given->option->name, given->value ? "=" : "");
	takt_str_add(&word, given->value ? given->value : "");
	taken = takt_str_take(&word);
	takt_str_fini(&word);
	return taken;
}

char **takt_tune_words(const struct takt_cli *cli, const char *self)
{
	char **words =
		takt_calloc(cli->given_count + (size_t)cli->operand_count + 7, sizeof(*words));
	size_t n = 0, count;

	if (!words)
		return NULL;
	words[n++] = takt_strdup(self);
	words[n++] = takt_strdup(cli->verb->name);
	if (cli->json)
		words[n++] = takt_strdup("--json");
	if (cli->socket) {
		words[n++] = takt_strdup("--socket");
		words[n++] = takt_strdup(cli->socket);
	}
	for (size_t i = 0; i < cli->given_count; i++)
		words[n++] = option_word(cli, i);
	if (cli->operand_count)
		words[n++] = takt_strdup("--");
	for (int i = 0; i < cli->operand_count; i++)
		words[n++] = takt_strdup(cli->operands[i]);
	for (count = 0; words[count]; count++)
		;
	if (count == n)
		return words;
	for (size_t i = 0; i < n; i++)
		takt_free(words[i]);
	takt_free(words);
	return NULL;
}

static int build_command(struct takt_cli *cli, struct hand_in *in, struct takt_err *err)
{
	ssize_t n = readlink("/proc/self/exe", in->self, sizeof(in->self) - 1);

	if (n < 0)
		return takt_err_set(err, -errno, "find takt itself");
	in->argv = takt_tune_words(cli, in->self);
	if (!in->argv)
		return takt_err_set(err, -ENOMEM, "no memory for a job");
	in->run.operands = in->argv;
	while (in->argv[in->run.operand_count])
		in->run.operand_count++;
	return say_owner(in, err);
}

static int hand_in(struct takt_cli *cli, struct takt_err *err)
{
	static const struct takt_option gpus = {"gpus", 'n', "GPUS", ""},
					index = {"gpu-index", 0, "LIST", ""},
					name = {"name", 0, "NAME", ""},
					env = {"env", 'e', "NAME=VALUE", ""},
					policy = {"clock-policy", 0, "GOVERNOR", ""},
					quiet = {"quiet", 'q', NULL, ""};
	struct hand_in *in = takt_zalloc(sizeof(*in));
	const char *count = takt_cli_value(cli, "gpus"), *list = takt_cli_value(cli, "gpu-index");
	int rc;

	if (!in)
		return takt_err_set(err, -ENOMEM, "no memory for a job");
	in->run = (struct takt_cli){.verb = &takt_verb_run,
				    .extra = cli->extra,
				    .socket = cli->socket,
				    .terminal = cli->terminal,
				    .colour = cli->colour,
				    .width = cli->width,
				    .out = TAKT_STR(TAKT_CLI_MAX_OUT)};
	rc = build_command(cli, in, err);
	if (count || !list)
		give(&in->run, &gpus, count ? count : "1");
	if (list)
		give(&in->run, &index, list);
	give(&in->run, &name, "tune");
	give(&in->run, &policy, "observe");
	give(&in->run, &env, in->owner);
	if (cli->width) {
		snprintf(in->columns, sizeof(in->columns), "COLUMNS=%u", cli->width);
		give(&in->run, &env, in->columns);
	}
	if (cli->json)
		give(&in->run, &quiet, NULL);
	if (rc == 0)
		rc = takt_verb_run.run(&in->run, err);
	takt_client_free(in->run.client);
	takt_str_fini(&in->run.out);
	takt_job_env_free(in->argv);
	takt_free(in);
	return rc;
}

static int check_save(const struct takt_cli *cli, struct takt_err *err)
{
	const char *name = takt_cli_value(cli, "save");
	size_t len = name ? strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					 "0123456789._-")
			  : 1;

	return !name || (name[len] == '\0' && len > 0 && len <= TAKT_SPEC_MAX_NAME)
		       ? 0
		       : takt_err_set(err, -TAKT_E_USAGE,
				      "'--save' must be the name of a job: 1 to %d of A-Z, a-z, "
				      "0-9, '.', '_' and '-'",
				      TAKT_SPEC_MAX_NAME);
}

static int check_form(const struct takt_cli *cli, struct takt_err *err)
{
	const char *bench = takt_cli_value(cli, "bench");

	if (takt_cli_has(cli, "clocks") && takt_cli_has(cli, "steps"))
		return takt_err_set(err, -TAKT_E_USAGE,
				    "'--clocks' and '--steps' exclude each other");
	if (bench && strcmp(bench, "matmul") != 0 && strcmp(bench, "stream") != 0)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "'--bench' must be matmul or stream, not '%.40s'", bench);
	if (!bench == !cli->operand_count && !takt_cli_has(cli, "profiles"))
		return takt_err_set(err, -TAKT_E_USAGE,
				    "say what to run at each clock: a command, as in takt tune -- "
				    "python3 train.py, or --bench matmul or stream, takt's own%s",
				    bench ? ", not both" : "");
	if (takt_cli_has(cli, "same-output") && takt_cli_has(cli, "any-output"))
		return takt_err_set(err, -TAKT_E_USAGE,
				    "'--same-output' and '--any-output' exclude each other");
	return check_save(cli, err);
}

/* A job that holds GPUs, not only the environment of one. */
static bool within_job(void)
{
	return getenv("TAKT_JOB_ID") != NULL && getenv("CUDA_VISIBLE_DEVICES") != NULL;
}

static int run(struct takt_cli *cli, struct takt_err *err)
{
	int rc = check_form(cli, err);

	if (rc < 0)
		return rc;
	if (takt_cli_has(cli, "profiles"))
		return list_profiles(cli, err);
	rc = takt_tune_check_files(cli, err);
	if (rc < 0)
		return rc;
	return within_job() ? takt_tune_sweep(cli, err) : hand_in(cli, err);
}

static const struct takt_option options[] = {
	{"clocks", 0, "MHZ,...", "these SM clocks, beside the highest"},
	{"steps", 0, "N", "so many clocks from the highest down to two fifths of it (8)"},
	{"power-limits", 0, "WATTS,...", "and these power limits at the highest clock"},
	{"repeat", 'r', "N", "runs of each, in an order drawn anew each time (3)"},
	{"seed", 0, "N", "of that order (1)"},
	{"max-slowdown", 0, "PERCENT", "what may be lost against the highest clock (5%)"},
	{"metric", 0, "progress|time",
	 "the command's own progress, or its time (progress if it tells any)"},
	{"for", 0, "TIME", "end each run after so long; needs progress"},
	{"same-output", 0, NULL,
	 "stop at the first run that prints something else on standard output"},
	{"any-output", 0, NULL, "do not compare what runs print, or what the benchmark works out"},
	{"check", 0, "CMD", "a shell command that must succeed after each run, or it stops"},
	{"bench", 0, "matmul|stream", "in place of a command: this one of takt bench gpu"},
	{"gpus", 'n', "GPUS", "whole GPUs, set together (1)"},
	{"gpu-index", 0, "LIST", "these GPUs of the machine (3; 0,2-3), or --gpus of them"},
	{"save", 0, "NAME", "keep what is recommended as the profile of jobs of that name"},
	{"profiles", 0, NULL, "list what was kept, and measure nothing"},
	{"csv", 0, "FILE", "the table"},
	{"svg", 0, "FILE", "the chart"},
	{"png", 0, "FILE", "the chart, by rsvg-convert"},
	{"html", 0, "FILE", "a page with both"},
	{NULL},
};

static const struct takt_text_pair examples[] = {
	{"takt tune --max-slowdown 3% --save train -- python3 train.py --epochs 1",
	 "and then: takt run --name train --clock profile -- python3 train.py"},
	{"takt tune --clocks 1980,1700,1400 --for 30s -- python3 serve.py", "half a minute each"},
	{"takt tune --power-limits 500,600 --same-output -- ./simulate",
	 "clocks and limits; results must stay the same"},
	{"takt tune --bench matmul", "the built-in matrix product"},
	{"takt tune --bench matmul --gpu-index 3", "the same on GPU 3, when it is free"},
	{NULL, NULL},
};

const struct takt_verb takt_verb_tune = {
	.name = "tune",
	.summary = "find the clock at which a command costs least energy",
	.usage = "[option...] -- COMMAND [ARGUMENT...] | --bench matmul|stream",
	.about =
		"Runs the command at several SM clocks and power limits and says what each costs: "
		"slowdown against the highest clock, power, energy, with errors; which settings no "
		"other beats; and the one of least energy within --max-slowdown, its error "
		"counted against it.\n"
		"It is a job like any other: it waits for a GPU, holds it alone, and its clocks "
		"outrank everybody's as long as it lasts. Whatever ends it, kill -9 included, "
		"puts them back. Within a job it uses that job's GPUs.\n"
		"It stops at any XID or ECC error, when the command fails, when a setting was not "
		"applied or did not hold, and when results differ (the benchmark's product, "
		"--same-output, --check). Where takt may not set clocks it measures the clock as "
		"it is and says what is needed.\n"
		"What the command prints is compared in any case: a setting at which it prints "
		"something else than at the highest clock, where all its runs print the same, is "
		"not recommended.\n"
		"The command's standard output is not shown. It runs (repeat x settings + 1) "
		"times; the first warms up and does not count.",
	.options = options,
	.examples = examples,
	.operands = TAKT_OPERANDS_COMMAND,
	.min_operands = 0,
	.max_operands = -1,
	.command_follows = true,
	.run = run,
};
