/* SPDX-License-Identifier: Apache-2.0 */
/* takt serve: the daemon. Its work is elsewhere; its flags are the settings of src/config. */
#include <string.h>

#include "cli/help.h"
#include "cli/verb.h"
#include "config/config.h"

/* --help comes before everything else, as with every verb; the daemon parses the rest. */
static int run(struct takt_cli *cli, struct takt_err *err)
{
	for (int i = 1; i < cli->argc; i++) {
		if (strcmp(cli->argv[i], "--help") == 0 || strcmp(cli->argv[i], "-h") == 0) {
			takt_help_verb(&takt_verb_serve, &cli->out);
			return 0;
		}
	}
	if (!cli->extra || !cli->extra->serve)
		return takt_err_set(err, -TAKT_E_UNSUPPORTED,
				    "this takt was built without the daemon");
	return cli->extra->serve(cli->argc, cli->argv);
}

static const struct takt_option options[] = {
	{"config", 0, "FILE", "read settings from there instead of /etc/takt/takt.conf"},
	{"print-config", 0, NULL, "print the settings in force, each explained, and end"},
	{"help", 'h', NULL, "print help and end"},
	{NULL},
};

static const struct takt_text_pair examples[] = {
	{"takt serve", "in the foreground, until Ctrl-C"},
	{"takt serve --print-config > takt.conf", "a configuration file to begin with"},
	{NULL, NULL},
};

const struct takt_verb takt_verb_serve = {
	.name = "serve",
	.summary = "the daemon: API, queue, telemetry",
	.usage = "[--config FILE] [--SETTING VALUE...]",
	.about =
		"Runs takt in the foreground. As a user everything runs as that user, with sockets "
		"and files of his own; as root it serves the whole machine. Jobs go on when it "
		"ends "
		"and are taken up again when it is started. Each setting may be given as a flag "
		"or, "
		"with '_' for '-', in the file.",
	.options = options,
	.examples = examples,
	.own_arguments = true,
	.add_options = takt_config_help,
	.run = run,
};
