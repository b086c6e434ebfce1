/* SPDX-License-Identifier: Apache-2.0 */
/* takt token: by which the web page, and programs over TCP, act for an account. */
#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "cli/table.h"
#include "cli/units.h"
#include "cli/verb.h"
#include "cli/when.h"

enum {
	ABSENT_DAYS = 90,
	MAX_DAYS = 3650,
};

static const struct takt_column columns[] = {
	{"ID", false, 0, 0},   {"USER", false, 0, 0},	 {"MAY", false, 0, 0},
	{"MADE", false, 0, 1}, {"EXPIRES", false, 0, 0}, {"NOTE", false, 10, 0},
};

static void print_tokens(struct takt_cli *cli, const struct takt_tokens_view *view)
{
	struct takt_table table = TAKT_TABLE(columns);
	char text[TAKT_UNIT_TEXT];

	if (view->count == 0)
		takt_str_add(&cli->out, "no tokens\n");
	for (uint32_t i = 0; i < view->count; i++) {
		const struct takt_token *token = &view->tokens[i];

		takt_table_add(&table, TAKT_STYLE_PLAIN, "%s", token->id);
		takt_table_add(&table, TAKT_STYLE_PLAIN, "%s", token->user);
		takt_table_add(&table, TAKT_STYLE_PLAIN, "%s", token->write ? "write" : "read");
		takt_table_add(&table, TAKT_STYLE_PLAIN, "%s",
			       takt_when_text(token->made_ms, text));
		takt_table_add(&table, TAKT_STYLE_PLAIN, "%s",
			       token->expires_ms ? takt_when_text(token->expires_ms, text)
						 : "never");
		takt_table_add(&table, TAKT_STYLE_PLAIN, "%s", token->note);
	}
	if (view->count > 0)
		takt_table_print(&table, cli->width, cli->colour, &cli->out);
}

/* Alone on standard output: what a script keeps. */
static void print_new(struct takt_cli *cli, const struct takt_tokens_view *view)
{
	takt_str_addf(&cli->out, "%s\n", view->token);
}

static int read_text(const struct takt_cli *cli, const char *option, char *ret, size_t size,
		     struct takt_err *err)
{
	const char *text = takt_cli_value(cli, option);

	if (text && !takt_strcpy(ret, size, text))
		return takt_err_set(err, -TAKT_E_USAGE, "'--%s' has over %zu bytes", option,
				    size - 1);
	return 0;
}

static int add(struct takt_cli *cli, struct takt_tokens_view *view, struct takt_err *err)
{
	struct takt_token_request request = {.write = takt_cli_has(cli, "write")};
	int64_t days;
	int rc = takt_cli_number(cli, "days", 0, MAX_DAYS, ABSENT_DAYS, &days, err);

	if (rc == 0)
		rc = read_text(cli, "user", request.user, sizeof(request.user), err);
	if (rc == 0)
		rc = read_text(cli, "note", request.note, sizeof(request.note), err);
	if (rc == 0 && cli->operand_count > 1)
		rc = takt_err_set(err, -TAKT_E_USAGE, "takt token add takes no '%.40s'",
				  cli->operands[1]);
	if (rc < 0)
		return rc;
	request.days = (uint32_t)days;
	rc = takt_cli_connect(cli, err);
	return rc < 0 ? rc : takt_client_token_add(cli->client, &request, view, err);
}

static int list(struct takt_cli *cli, struct takt_tokens_view *view, struct takt_err *err)
{
	int rc = takt_cli_connect(cli, err);

	return rc < 0 ? rc : takt_client_tokens(cli->client, view, err);
}

static int revoke(struct takt_cli *cli, struct takt_tokens_view *view, struct takt_err *err)
{
	int rc;

	if (cli->operand_count < 2)
		return takt_err_set(err, -TAKT_E_USAGE,
				    "takt token revoke takes an ID (takt token "
				    "list)");
	rc = takt_cli_connect(cli, err);
	return rc < 0 ? rc : takt_client_token_revoke(cli->client, cli->operands[1], view, err);
}

static const struct action {
	const char *name;
	int (*run)(struct takt_cli *cli, struct takt_tokens_view *view, struct takt_err *err);
	void (*print)(struct takt_cli *cli, const struct takt_tokens_view *view);
} actions[] = {
	{"add", add, print_new},
	{"list", list, print_tokens},
	{"revoke", revoke, print_tokens},
};

static int run(struct takt_cli *cli, struct takt_err *err)
{
	struct takt_tokens_view view = {.count = 0};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(actions); i++) {
		int rc;

		if (strcmp(actions[i].name, cli->operands[0]) != 0)
			continue;
		rc = actions[i].run(cli, &view, err);
		if (rc == 0 && !takt_cli_print_json(cli))
			actions[i].print(cli, &view);
		takt_tokens_view_fini(&view);
		return rc;
	}
	return takt_err_set(err, -TAKT_E_USAGE, "takt token takes add, list or revoke, not '%.40s'",
			    cli->operands[0]);
}

static const struct takt_option options[] = {
	{"write", 'w', NULL, "add: it may hand in and change what you may; else it reads only"},
	{"days", 0, "N", "add: how long it counts (90); 0: until it is revoked"},
	{"note", 0, "TEXT", "add: what it is for"},
	{"user", 0, "USER", "add: for this account; for administrators"},
	{NULL},
};

static const struct takt_text_pair examples[] = {
	{"takt token add --note laptop", "for the web page; shown this once"},
	{"takt token add --write --days 1", "one that may hand in jobs, until tomorrow"},
	{"takt token revoke 0a1b2c3d4e5f", "it counts no more, pages that use it end"},
	{NULL, NULL},
};

static const char *const words[] = {"add", "list", "revoke", NULL};

const struct takt_verb takt_verb_token = {
	.name = "token",
	.summary = "let the web page, or programs over TCP, act for an account",
	.usage = "add [-w] [--days N] [--note TEXT] [--user USER] | list | revoke ID",
	.about =
		"With a token in its header a request to web_listen is one of the account that the "
		"token was made for, with the rights that it has on this machine, and no others.\n"
		"add: prints a new one, which takt keeps only a hash of. It reads only, unless "
		"--write is given. There are none for root.\n"
		"list: one's own; administrators see everybody's. revoke: ends one.\n"
		"Tokens are made, listed and revoked here, never by means of a token.",
	.options = options,
	.examples = examples,
	.operands = TAKT_OPERANDS_WORDS,
	.words = words,
	.min_operands = 1,
	.max_operands = 2,
	.run = run,
};
