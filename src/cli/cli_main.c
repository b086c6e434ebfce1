/* SPDX-License-Identifier: Apache-2.0 */
/* From argv to the verb that is meant. */
#include <string.h>

#include "cli/synonyms.h"
#include "cli/verb.h"

int takt_cli_main(int argc, char **argv, const struct takt_cli_extra *extra)
{
	const char *name = argc > 1 ? argv[1] : "help";
	const struct takt_verb *verb;
	struct takt_err err;

	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
		name = "help";
	if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0)
		name = "version";
	verb = takt_verb_meant(name, &err);
	if (!verb) {
		takt_cli_complain(&err);
		return takt_err_exit_status(err.rc);
	}
	return takt_cli_run(verb, argc > 1 ? argc - 1 : argc, argc > 1 ? argv + 1 : argv, extra);
}
