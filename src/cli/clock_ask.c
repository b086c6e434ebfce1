/* SPDX-License-Identifier: Apache-2.0 */
/* See clock_ask.h. */
#include "cli/clock_ask.h"

#include <stdio.h>
#include <stdlib.h>

#include "cli/daemon_config.h"

static bool names_a_daemon(const struct takt_cli *cli)
{
	const char *socket = getenv("TAKT_SOCKET");

	return cli->socket || (socket && socket[0]);
}

static int look_alone(struct takt_cli *cli, struct takt_clock_view *ret, struct takt_err *err)
{
	struct takt_config config;
	int rc = takt_cli_daemon_config(cli, &config, err);

	return rc < 0 ? rc : cli->extra->look_at_clocks(&config, ret, err);
}

int takt_clock_look(struct takt_cli *cli, bool may_be_alone, struct takt_clock_view *ret,
		    struct takt_err *err)
{
	int rc = takt_cli_connect(cli, err);

	if (rc == 0)
		rc = takt_client_clocks(cli->client, ret, err);
	if (rc != -TAKT_E_UNAVAILABLE || !may_be_alone || !cli->extra->look_at_clocks ||
	    (names_a_daemon(cli) && !takt_cli_has(cli, "config")))
		return rc;
	takt_client_free(cli->client);
	cli->client = NULL;
	fprintf(stderr, "takt: no takt serve answers: doing it without one\n");
	return look_alone(cli, ret, err);
}

int takt_clock_declare(struct takt_cli *cli, const struct takt_declaration *declaration,
		       struct takt_clock_view *view, struct takt_err *err)
{
	struct takt_config config;
	int rc;

	if (cli->client && declaration)
		return takt_client_clock_apply(cli->client, declaration, view, err);
	if (cli->client)
		return takt_client_clock_restore(cli->client, view, err);
	rc = takt_cli_daemon_config(cli, &config, err);
	return rc < 0 ? rc : cli->extra->declare_clocks(&config, declaration, view, err);
}

bool takt_clock_print_json(struct takt_cli *cli, const struct takt_clock_view *view)
{
	if (cli->client)
		return takt_cli_print_json(cli);
	if (cli->json)
		(void)takt_clock_view_to_json(view, &cli->out);
	return cli->json;
}
