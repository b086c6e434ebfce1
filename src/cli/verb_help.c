/* SPDX-License-Identifier: Apache-2.0 */
/* takt help, takt completion, takt man: texts made of the table of verbs. */
#include <string.h>

#include "cli/help.h"
#include "cli/synonyms.h"
#include "cli/verb.h"

static void overview(struct takt_str *out)
{
	const struct takt_verb *verb;

	takt_str_add(out, "takt: every GPU on the right job, at the right clock\n\n"
			  "usage: takt VERB [options]\n\n");
	for (size_t i = 0; (verb = takt_verb_at(i)); i++)
		takt_help_pair(out, verb->name, verb->summary);
	takt_str_add(out, "\n'takt help VERB' says more. Every verb takes --json, those that ask a "
			  "daemon --socket.\n");
}

static int help(struct takt_cli *cli, struct takt_err *err)
{
	const struct takt_verb *verb;

	if (cli->operand_count == 0) {
		overview(&cli->out);
		return 0;
	}
	verb = takt_verb_meant(cli->operands[0], err);
	if (!verb)
		return -TAKT_E_USAGE;
	takt_help_verb(verb, &cli->out);
	return 0;
}

static const struct takt_text_pair help_examples[] = {
	{"takt help run", "everything about takt run"},
	{NULL, NULL},
};

const struct takt_verb takt_verb_help = {
	.name = "help",
	.summary = "this list, or all about one verb",
	.usage = "[VERB]",
	.about = "Lists the verbs, or says everything about one.",
	.examples = help_examples,
	.operands = TAKT_OPERANDS_VERBS,
	.max_operands = 1,
	.run = help,
};

static int completion(struct takt_cli *cli, struct takt_err *err)
{
	if (strcmp(cli->operands[0], "bash") == 0)
		takt_help_bash(&cli->out);
	else if (strcmp(cli->operands[0], "zsh") == 0)
		takt_help_zsh(&cli->out);
	else if (strcmp(cli->operands[0], "fish") == 0)
		takt_help_fish(&cli->out);
	else
		return takt_err_set(err, -TAKT_E_USAGE,
				    "completion is there for bash, zsh and fish, not '%.40s'",
				    cli->operands[0]);
	return 0;
}

static const char *const shells[] = {"bash", "zsh", "fish", NULL};

static const struct takt_text_pair completion_examples[] = {
	{"eval \"$(takt completion bash)\"", "in this shell"},
	{"takt completion fish | source", "in fish"},
	{NULL, NULL},
};

const struct takt_verb takt_verb_completion = {
	.name = "completion",
	.summary = "completion script for a shell",
	.usage = "bash | zsh | fish",
	.about = "Prints a script that lets the shell complete verbs, options and the numbers of "
		 "jobs.",
	.examples = completion_examples,
	.operands = TAKT_OPERANDS_WORDS,
	.words = shells,
	.min_operands = 1,
	.max_operands = 1,
	.run = completion,
};

static int man(struct takt_cli *cli, struct takt_err *err)
{
	takt_help_man(&cli->out);
	return 0;
}

static const struct takt_text_pair man_examples[] = {
	{"takt man | man -l -", "the page, without installing it"},
	{NULL, NULL},
};

const struct takt_verb takt_verb_man = {
	.name = "man",
	.summary = "the manual page",
	.usage = "",
	.about = "Prints takt(1) in the form that man reads.",
	.examples = man_examples,
	.run = man,
};
