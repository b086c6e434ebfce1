/* SPDX-License-Identifier: Apache-2.0 */
/* takt-twin man: the manual page, made of the table of verbs, so that it says what --help says. */
#include <stdio.h>
#include <string.h>

#include "takt_twin.h"

/* Text as it is: what roff would take for its own is told apart. */
static void put(const char *text)
{
	for (const char *c = text; *c; c++) {
		bool first = c == text || c[-1] == '\n';
		if (first && (*c == '.' || *c == '\''))
			fputs("\\&", stdout);
		if (*c == '\\')
			fputs("\\e", stdout);
		else if (*c == '-')
			fputs("\\-", stdout);
		else
			putchar(*c);
	}
}

static void put_verb(const struct twin_verb *verb)
{
	printf(".SS \"takt\\-twin %s\"\n", verb->name);
	put(verb->summary);
	printf(".\n.PP\n.nf\n.B takt\\-twin %s ", verb->name);
	put(verb->usage);
	printf("\n\n");
	put(verb->help);
	printf(".fi\n");
}

static int run_man(int argc, char **argv, struct takt_err *err)
{
	if (argc > 1)
		return takt_err_set(err, -TAKT_E_USAGE, "takes no arguments, not '%s'", argv[1]);
	printf(".TH TAKT\\-TWIN 1\n.SH NAME\ntakt\\-twin \\- simulated GPU machines for any NVML "
	       "client\n.SH SYNOPSIS\n.B takt\\-twin\n.I VERB\n[arguments]\n.SH DESCRIPTION\n"
	       "Nothing here is a real GPU. A machine is a file; TAKT_TWIN names it.\n.SH VERBS\n");
	for (size_t i = 0; i < twin_verb_count; i++)
		put_verb(twin_verbs[i]);
	printf(".SH ENVIRONMENT\n.TP\n.B TAKT_TWIN\nthe machine's file, as takt\\-twin create "
	       "prints it\n.SH EXIT STATUS\n0 done, 64 wrong use, 65 bad data, 66 not found, 69 "
	       "not "
	       "available, 75 in conflict,\nelse what the verb says.\n");
	return 0;
}

const struct twin_verb twin_verb_man = {
	.name = "man",
	.usage = "",
	.summary = "Print this program's manual page",
	.help = "  takt-twin man | man -l -\n",
	.run = run_man,
};
