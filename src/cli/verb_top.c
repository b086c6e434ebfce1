/* SPDX-License-Identifier: Apache-2.0 */
/* takt top: the terminal view, here or, over SSH, of another machine. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/verb.h"

enum {
	MAX_WORDS = 64,
	MAX_HOSTS = 16,
	RATE_TEXT = 16,
	MIN_RATE = 100, /* thousandths of a hertz */
	MAX_RATE = 20000,
};

struct words {
	const char *at[MAX_WORDS + 1];
	size_t count;
};

static void add(struct words *words, const char *word)
{
	if (words->count < MAX_WORDS)
		words->at[words->count++] = word;
}

static int become(const struct words *words, struct takt_err *err)
{
	execvp(words->at[0], (char *const *)words->at);
	return takt_err_set(err, errno == ENOENT ? -TAKT_E_UNAVAILABLE : -errno, "start '%.100s'",
			    words->at[0]);
}

static bool is_at_terminal(const struct takt_cli *cli)
{
	return cli->terminal && isatty(STDIN_FILENO);
}

static bool prints(const struct takt_cli *cli)
{
	return cli->json || takt_cli_has(cli, "once");
}

static void add_flags(const struct takt_cli *cli, struct words *words)
{
	static const char *const flags[][2] = {
		{"once", "--once"},	      {"ascii", "--ascii"},
		{"driver", "--driver"},	      {"allow-foreign", "--allow-foreign"},
		{"each-line", "--each-line"},
	};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(flags); i++)
		if (takt_cli_has(cli, flags[i][0]))
			add(words, flags[i][1]);
	if (cli->json)
		add(words, "--json");
}

/* ssh hands its words to a shell there: none of them may be more than a word. */
static int check_there(const char *host, struct takt_err *err)
{
	const char *allowed =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_@:[]%";

	if (!host[0] || host[0] == '-' || strspn(host, allowed) != strlen(host))
		return takt_err_set(err, -TAKT_E_USAGE,
				    "--host '%.60s' is no host; give a name or USER@NAME", host);
	return 0;
}

/* The hosts, each once. */
static int check_hosts(const struct takt_cli *cli, uint32_t *ret_count, struct takt_err *err)
{
	uint32_t count = 0;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < cli->given_count; i++) {
		if (strcmp(cli->given[i].option->name, "host") != 0)
			continue;
		rc = check_there(cli->given[i].value, err);
		count++;
	}
	if (rc == 0 && count > MAX_HOSTS)
		rc = takt_err_set(err, -TAKT_E_USAGE, "--host %u times; at most %d", count,
				  MAX_HOSTS);
	if (rc == 0 && count && (cli->socket || takt_cli_has(cli, "nvml-path")))
		rc = takt_err_set(err, -TAKT_E_USAGE,
				  "--socket and --nvml-path name files of this machine; with "
				  "--host they cannot be given");
	*ret_count = count;
	return rc;
}

static int run_there(struct takt_cli *cli, struct takt_err *err)
{
	const char *host = takt_cli_value(cli, "host");
	struct words words = {.count = 0};

	add(&words, "ssh");
	if (!prints(cli))
		add(&words, "-t");
	add(&words, "--");
	add(&words, host);
	add(&words, "takt");
	add(&words, "top");
	if (takt_cli_has(cli, "rate")) {
		add(&words, "--rate");
		add(&words, takt_cli_value(cli, "rate"));
	}
	add_flags(cli, &words);
	return become(&words, err);
}

static void add_hosts(const struct takt_cli *cli, struct words *words)
{
	for (size_t i = 0; i < cli->given_count; i++) {
		if (strcmp(cli->given[i].option->name, "host") != 0)
			continue;
		add(words, "--host");
		add(words, cli->given[i].value);
	}
}

static int run_here(struct takt_cli *cli, uint32_t rate_milli_hz, struct takt_err *err)
{
	char rate[RATE_TEXT];
	struct words words = {.count = 0};

	if (!cli->extra || !cli->extra->top)
		return takt_err_set(err, -TAKT_E_UNSUPPORTED,
				    "this takt was built without the terminal view");
	snprintf(rate, sizeof(rate), "%u", rate_milli_hz);
	add(&words, "takt top");
	add(&words, "--rate-milli");
	add(&words, rate);
	if (cli->socket) {
		add(&words, "--socket");
		add(&words, cli->socket);
	}
	if (takt_cli_has(cli, "nvml-path")) {
		add(&words, "--nvml-path");
		add(&words, takt_cli_value(cli, "nvml-path"));
	}
	add_hosts(cli, &words);
	add_flags(cli, &words);
	return cli->extra->top((int)words.count, (char **)words.at);
}

static int run(struct takt_cli *cli, struct takt_err *err)
{
	uint32_t rate, hosts = 0;
	int rc = takt_cli_milli(cli, "rate", MAX_RATE, 1000, &rate, err);

	if (rc == 0 && rate < MIN_RATE)
		rc = takt_err_set(err, -TAKT_E_USAGE,
				  "--rate takes 0.1 to 20 looks a second, not less");
	if (rc == 0 && !prints(cli) && !is_at_terminal(cli))
		rc = takt_err_set(err, -TAKT_E_USAGE,
				  "this is no terminal; --once prints one screen, --json one look "
				  "for programs");
	if (rc == 0 && takt_cli_has(cli, "each-line") && !cli->json)
		rc = takt_err_set(err, -TAKT_E_USAGE, "--each-line belongs to --json");
	if (rc == 0)
		rc = check_hosts(cli, &hosts, err);
	if (rc < 0)
		return rc;
	return hosts == 1 ? run_there(cli, err) : run_here(cli, rate, err);
}

static const struct takt_option options[] = {
	{"rate", 'r', "HZ", "looks a second, 0.1 to 20; 1 if it is not given"},
	{"host", 0, "NAME",
	 "a machine that is reached by ssh, where takt is installed, too; several may be named"},
	{"once", 0, NULL, "print one screen and end"},
	{"driver", 0, NULL, "ask no daemon, read the driver"},
	{"each-line", 0, NULL, "with --json: a look for each line of standard input"},
	{"nvml-path", 0, "PATH", "the driver's library, where it is not found by itself"},
	{"allow-foreign", 0, NULL, "let signals go to processes of others, too"},
	{"ascii", 0, NULL, "draw with plain characters"},
	{NULL},
};

static const struct takt_text_pair examples[] = {
	{"takt top", "GPUs, jobs and processes, once a second"},
	{"takt top --rate 10", "ten times a second"},
	{"takt top --host node7", "another machine's"},
	{"takt top --host node7 --host node8", "several, one at a time: [ and ] go through them"},
	{"takt top --once", "one screen, for a log or a ticket"},
	{"takt top --json", "one look, for programs"},
	{NULL, NULL},
};

const struct takt_verb takt_verb_top = {
	.name = "top",
	.summary = "watch GPUs, jobs and processes in the terminal",
	.usage = "[--rate HZ] [--host NAME]...",
	.about =
		"Shows every GPU with its history, its clock with what caps it and why, power "
		"against "
		"the limit, temperature and what is left of it, memory, links and all jobs that "
		"have a part of it; the jobs with their "
		"predicted starts; the processes with what they hold and use of GPUs and "
		"processors. Graphs begin with what the daemon knows of before. Asks the daemon, "
		"and reads the "
		"driver itself while none answers. Keys are those of htop and nvtop; ? lists them: "
		"Enter zooms on a GPU or job, l shows the log of that job where one may read it, J "
		"shows jobs alone, q goes back, and ends it from the first screen. "
		"Cancelling and signalling ask first and name user, command and GPUs, with several "
		"hosts the host, too; a signal "
		"goes "
		"to the very process that was shown or to none. $NO_COLOR is respected.",
	.options = options,
	.examples = examples,
	.run = run,
};
