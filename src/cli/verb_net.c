/* SPDX-License-Identifier: Apache-2.0 */
/* takt net: round trips to the machines that are probed; and, by hand, a load (net_bw.c). */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/timetypes.h"
#include "cli/net_bw.h"
#include "cli/table.h"
#include "cli/units.h"
#include "cli/verb.h"

static const struct takt_column columns[] = {
	{"PEER", false, 8, 0},	  {"ADDRESS", false, 0, 3}, {"STATE", false, 0, 0},
	{"ANSWERED", true, 0, 2}, {"LOST", true, 0, 0},	    {"LAST", true, 0, 0},
	{"LEAST", true, 0, 0},	  {"MEAN", true, 0, 0},	    {"99%", true, 0, 0},
	{"MOST", true, 0, 1},
};

/* "85.3 us"; "-" for 0. */
static const char *time_text(uint64_t ns, char ret[TAKT_UNIT_TEXT])
{
	if (ns == 0)
		snprintf(ret, TAKT_UNIT_TEXT, "-");
	else if (ns < TAKT_NS_PER_MS)
		snprintf(ret, TAKT_UNIT_TEXT, "%.1f us", (double)ns / TAKT_NS_PER_US);
	else
		snprintf(ret, TAKT_UNIT_TEXT, "%.2f ms", (double)ns / TAKT_NS_PER_MS);
	return ret;
}

static void add_time(struct takt_table *table, uint64_t ns)
{
	char text[TAKT_UNIT_TEXT];

	takt_table_add(table, TAKT_STYLE_PLAIN, "%s", time_text(ns, text));
}

/* A bound, not a time. */
static void add_below(struct takt_table *table, const struct takt_net_peer_view *peer)
{
	char text[TAKT_UNIT_TEXT];

	if (peer->answered && peer->p99_below_ns == 0)
		takt_table_add(table, TAKT_STYLE_PLAIN, "> 1 s");
	else
		takt_table_add(table, TAKT_STYLE_PLAIN, "%s%s", peer->answered ? "<= " : "",
			       time_text(peer->p99_below_ns, text));
}

static void add_peer(struct takt_table *table, const struct takt_net_peer_view *peer)
{
	bool silent = strcmp(peer->state, "silent") == 0;

	takt_table_add(table, TAKT_STYLE_PLAIN, "%s", peer->name);
	takt_table_add(table, TAKT_STYLE_PLAIN, "%s", peer->address);
	takt_table_add(table, silent ? TAKT_STYLE_ALARM : TAKT_STYLE_PLAIN, "%s", peer->state);
	takt_table_add(table, TAKT_STYLE_PLAIN, "%" PRIu64, peer->answered);
	takt_table_add(table, TAKT_STYLE_PLAIN, "%" PRIu64, peer->lost);
	add_time(table, peer->last_ns);
	add_time(table, peer->least_ns);
	add_time(table, peer->mean_ns);
	add_below(table, peer);
	add_time(table, peer->most_ns);
}

static void print_refused(struct takt_cli *cli, const struct takt_net_view *view)
{
	bool any = false;

	for (uint32_t i = 0; i < view->refused_count; i++) {
		if (view->refused[i].count == 0)
			continue;
		takt_str_add(&cli->out, any ? ", " : "refused: ");
		takt_style_add(&cli->out, false, TAKT_STYLE_PLAIN, view->refused[i].reason);
		takt_str_addf(&cli->out, " %" PRIu64, view->refused[i].count);
		any = true;
	}
	if (any)
		takt_str_add(&cli->out, "\n");
}

static void print_view(struct takt_cli *cli, const struct takt_net_view *view)
{
	struct takt_table table = TAKT_TABLE(columns);

	if (!view->listen[0]) {
		takt_str_add(
			&cli->out,
			"round trips are not measured: net_listen is off (docs/telemetry.md)\n");
		return;
	}
	for (uint32_t i = 0; i < view->peer_count; i++)
		add_peer(&table, &view->peers[i]);
	takt_table_print(&table, cli->width, cli->colour, &cli->out);
	print_refused(cli, view);
}

static int run_view(struct takt_cli *cli, struct takt_err *err)
{
	TAKT_CLEANUP(freep) struct takt_net_view *view = takt_zalloc(sizeof(*view));
	int rc = view ? takt_cli_connect(cli, err) : takt_err_set(err, -ENOMEM, "the network");

	if (rc == 0)
		rc = takt_client_net(cli->client, view, err);
	if (rc == 0 && !takt_cli_print_json(cli))
		print_view(cli, view);
	return rc;
}

static int run(struct takt_cli *cli, struct takt_err *err)
{
	if (cli->operand_count == 0 && cli->given_count > 0)
		return takt_err_set(err, -TAKT_E_USAGE, "'--%s' is for takt net bw",
				    cli->given[0].option->name);
	if (cli->operand_count == 0)
		return run_view(cli, err);
	if (strcmp(cli->operands[0], "bw") != 0)
		return takt_err_set(err, -TAKT_E_USAGE, "takt net takes nothing or bw, not '%.40s'",
				    cli->operands[0]);
	return takt_net_bw(cli, err);
}

static const struct takt_option options[] = {
	{"listen", 0, "ADDRESS:PORT", "bw: be the side that a load is sent to, until Ctrl-C"},
	{"cap", 0, "RATE", "bw: bits a second at the most, such as 500M or 10G (1G)"},
	{"seconds", 0, "N", "bw: so long at the most, 1 to 60 (5)"},
	{"key-file", 0, "FILE", "bw: the shared key (net_key_file of /etc/takt/takt.conf)"},
	{NULL},
};

static const struct takt_text_pair examples[] = {
	{"takt net", "every listed machine: does it answer, and how fast"},
	{"takt net --json", "the same for programs, in nanoseconds"},
	{"takt net bw --listen 10.0.0.2:9834 --cap 10G", "on one machine: wait for a load"},
	{"takt net bw 10.0.0.2:9834 --cap 10G --seconds 10", "on the other: send it, and how much "
							     "arrived"},
	{NULL, NULL},
};

static const struct takt_text_pair exits[] = {
	{"69", "bw: nobody answers there, or a takt does not say what runs"},
	{"75", "bw: refused, or ended early, for a job with ranks on several GPUs"},
	{"77", "bw: the key there is another"},
	{NULL, NULL},
};

static const char *const words[] = {"bw", NULL};

const struct takt_verb takt_verb_net = {
	.name = "net",
	.summary = "round trips to other machines, and a load by hand",
	.usage = "[bw PEER_ADDRESS:PORT | bw --listen ADDRESS:PORT]",
	.about = "Once a second takt sends a small authenticated datagram to each machine of "
		 "net_peers "
		 "and measures how long its takt takes to answer. Off unless net_listen, net_peers "
		 "and "
		 "net_key_file are set. 99% is a bound that 99 of 100 round trips did not exceed.\n"
		 "bw: sends zeros over one TCP connection to a machine where takt net bw --listen "
		 "runs, "
		 "and says how many a second arrived. Both must have the same key; the lower --cap "
		 "and "
		 "--seconds of the two hold. It does not begin, and ends within a second, while a "
		 "job "
		 "with ranks on several GPUs runs on either. Nothing listens unless told to.",
	.options = options,
	.examples = examples,
	.exits = exits,
	.operands = TAKT_OPERANDS_WORDS,
	.words = words,
	.max_operands = 2,
	.run = run,
};
