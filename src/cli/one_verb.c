/* SPDX-License-Identifier: Apache-2.0 */
/* From a verb and its argv to an exit status. Knows no other verb: the module with the terminal
 * view has the one alone. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/help.h"
#include "cli/verb.h"
#include "cli/whole_file.h"
#include "codec/json.h"

void takt_cli_complain(const struct takt_err *err)
{
	/* Our own codes have sentences that only repeat what the message says. */
	if (err->rc > -4096 && err->rc < 0)
		fprintf(stderr, "takt: %s: %s\n", err->msg, takt_err_sentence(err->rc));
	else
		fprintf(stderr, "takt: %s\n", err->msg);
}

int takt_cli_write(const void *bytes, size_t len, struct takt_err *err)
{
	int rc = takt_write_all(STDOUT_FILENO, bytes, len);

	return rc < 0 ? takt_err_set(err, rc, "write to standard output") : 0;
}

int takt_cli_write_file(const struct takt_cli *cli, const char *option, const struct takt_str *text,
			struct takt_err *err)
{
	const char *path = takt_cli_value(cli, option);

	if (text->rc < 0)
		return takt_err_set(err, text->rc, "no memory for the result");
	return path ? takt_whole_file_write(path, text, err) : 0;
}

int takt_cli_connect(struct takt_cli *cli, struct takt_err *err)
{
	return cli->client ? 0 : takt_client_connect(cli->socket, &cli->client, err);
}

bool takt_cli_print_json(struct takt_cli *cli)
{
	if (cli->json)
		takt_str_add(&cli->out, takt_client_json(cli->client));
	return cli->json;
}

/* A terminal's width; what goes into a pipe or a file has no limit. */
static unsigned find_width(bool terminal)
{
	const char *columns = getenv("COLUMNS");
	unsigned long long width;
	struct winsize size;

	if (columns && takt_parse_u64(columns, 20, 10000, &width) == 0)
		return (unsigned)width;
	if (!terminal)
		return 0;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20)
		return size.ws_col;
	return 80;
}

static bool wants_colour(bool terminal)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

	return terminal && !(no_color && no_color[0]) && term && strcmp(term, "dumb") != 0;
}

static int run_verb(struct takt_cli *cli, struct takt_err *err)
{
	int rc = cli->verb->own_arguments ? 0 : takt_cli_parse(cli, err);

	if (rc < 0)
		return rc;
	if (cli->help) {
		takt_help_verb(cli->verb, &cli->out);
		return 0;
	}
	return cli->verb->run(cli, err);
}

/* What there is to print is printed even when something failed afterwards. */
static int finish(struct takt_cli *cli, int rc, const struct takt_err *err)
{
	struct takt_err write_err;

	if (cli->out.rc < 0) {
		fprintf(stderr, "takt: no memory for the output\n");
		return TAKT_EXIT_IO;
	}
	if (takt_cli_write(takt_str_text(&cli->out), cli->out.len, &write_err) < 0) {
		takt_cli_complain(&write_err);
		return TAKT_EXIT_IO;
	}
	if (rc >= 0)
		return rc;
	takt_cli_complain(err);
	return takt_err_exit_status(rc);
}

int takt_cli_run(const struct takt_verb *verb, int argc, char **argv,
		 const struct takt_cli_extra *extra)
{
	static struct takt_cli cli;
	struct takt_err err = {.rc = 0};
	int rc;

	cli = (struct takt_cli){.extra = extra, .verb = verb, .argc = argc, .argv = argv};
	takt_json_init();
	cli.out = TAKT_STR(TAKT_CLI_MAX_OUT);
	cli.terminal = isatty(STDOUT_FILENO) == 1;
	cli.colour = wants_colour(cli.terminal);
	cli.width = find_width(cli.terminal);
	rc = finish(&cli, run_verb(&cli, &err), &err);
	takt_client_free(cli.client);
	takt_str_fini(&cli.out);
	return rc;
}
