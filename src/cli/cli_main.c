/* SPDX-License-Identifier: Apache-2.0 */
/* From argv to the verb that is meant. */
#include <stdio.h>
#include <string.h>

#include "cli/verb.h"
#include "config/suggest.h"

static const char *verb_name_at(const void *ctx, size_t i)
{
	const struct takt_verb *verb = takt_verb_at(i);

	return verb ? verb->name : NULL;
}

static int unknown_verb(const char *name)
{
	const char *near = takt_suggest(name, verb_name_at, NULL);

	fprintf(stderr, "takt: there is no verb '%.60s'%s%s%s; 'takt help' lists them\n", name,
		near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
	return TAKT_EXIT_USAGE;
}

int takt_cli_main(int argc, char **argv, const struct takt_cli_extra *extra)
{
	const char *name = argc > 1 ? argv[1] : "help";
	const struct takt_verb *verb;

	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
		name = "help";
	if (strcmp(name, "--version") == 0)
		name = "version";
	verb = takt_verb_find(name);
	if (!verb)
		return unknown_verb(name);
	return takt_cli_run(verb, argc > 1 ? argc - 1 : argc, argc > 1 ? argv + 1 : argv, extra);
}
