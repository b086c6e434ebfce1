/* SPDX-License-Identifier: Apache-2.0 */
/* takt record: a machine's readings into a file. Its work is done elsewhere. */
#include <string.h>

#include "cli/help.h"
#include "cli/verb.h"

static int run(struct takt_cli *cli, struct takt_err *err)
{
	for (int i = 1; i < cli->argc; i++) {
		if (strcmp(cli->argv[i], "--help") == 0 || strcmp(cli->argv[i], "-h") == 0) {
			takt_help_verb(&takt_verb_record, &cli->out);
			return 0;
		}
	}
	if (!cli->extra || !cli->extra->record)
		return takt_err_set(err, -TAKT_E_UNSUPPORTED,
				    "this takt was built without recording");
	return cli->extra->record(cli->argc, cli->argv);
}

static const struct takt_text_pair examples[] = {
	{"takt record machine.takt", "for a report of a problem"},
	{"takt serve --replay machine.takt", "look at it elsewhere; nothing can be set there"},
	{NULL, NULL},
};

const struct takt_verb takt_verb_record = {
	.name = "record",
	.summary = "write what the driver says into a file",
	.usage = "FILE",
	.about =
		"Reads everything that takt reads of this machine's GPUs and writes it into a file "
		"that takt serve --replay answers from. Changes nothing. Needs no daemon.",
	.examples = examples,
	.operands = TAKT_OPERANDS_FILE,
	.own_arguments = true,
	.run = run,
};
