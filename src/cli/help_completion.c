/* SPDX-License-Identifier: Apache-2.0 */
/* Completion scripts for bash, zsh and fish. */
#include "cli/help.h"

static void add_option_words(struct takt_str *out, const struct takt_option *options)
{
	for (; options && options->name; options++) {
		if (options->letter)
			takt_str_addf(out, " -%c", options->letter);
		takt_str_addf(out, " --%s", options->name);
	}
}

static void add_verb_words(struct takt_str *out)
{
	const struct takt_verb *verb;

	for (size_t i = 0; (verb = takt_verb_at(i, NULL)); i++)
		takt_str_addf(out, "%s%s", i ? " " : "", verb->name);
}

/* What may stand where an operand is expected, as a bash word list. */
static void add_operand_words(struct takt_str *out, const struct takt_verb *verb)
{
	if (verb->operands == TAKT_OPERANDS_JOBS)
		takt_str_add(out, "$(takt queue --ids 2>/dev/null)");
	if (verb->operands == TAKT_OPERANDS_VERBS)
		add_verb_words(out);
	for (size_t i = 0; verb->operands == TAKT_OPERANDS_WORDS && verb->words[i]; i++)
		takt_str_addf(out, "%s%s", i ? " " : "", verb->words[i]);
}

void takt_help_bash(struct takt_str *out)
{
	const struct takt_verb *verb;

	takt_str_add(out, "# bash completion of takt; made by: takt completion bash\n"
			  "_takt()\n{\n"
			  "\tlocal cur=${COMP_WORDS[COMP_CWORD]} opts= words= kind=\n"
			  "\tif [ \"$COMP_CWORD\" -eq 1 ]; then\n"
			  "\t\tCOMPREPLY=($(compgen -W '");
	add_verb_words(out);
	takt_str_add(out, "' -- \"$cur\"))\n\t\treturn\n\tfi\n\tcase ${COMP_WORDS[1]} in\n");
	for (size_t i = 0; (verb = takt_verb_at(i, NULL)); i++) {
		takt_str_addf(out, "\t%s)\n\t\topts='", verb->name);
		add_option_words(out, verb->options);
		add_option_words(out, takt_verb_common(verb));
		takt_str_add(out, "'\n\t\twords=\"");
		add_operand_words(out, verb);
		takt_str_add(out, "\"\n");
		if (verb->operands == TAKT_OPERANDS_COMMAND || verb->operands == TAKT_OPERANDS_FILE)
			takt_str_add(out, "\t\tkind=-f\n");
		takt_str_add(out, "\t\t;;\n");
	}
	takt_str_add(out, "\tesac\n"
			  "\tcase $cur in\n"
			  "\t-*) COMPREPLY=($(compgen -W \"$opts\" -- \"$cur\")) ;;\n"
			  "\t*) COMPREPLY=($(compgen $kind -W \"$words\" -- \"$cur\")) ;;\n"
			  "\tesac\n}\n"
			  "complete -o default -F _takt takt\n");
}

/* In single quotes, for zsh's lists of "word:description". */
static void add_described(struct takt_str *out, const char *word, const char *text)
{
	takt_str_addf(out, "'%s:", word);
	for (; *text; text++) {
		if (*text == '\'')
			takt_str_add(out, "'\\''");
		else if (*text == ':')
			takt_str_add(out, "\\:");
		else
			takt_str_addn(out, text, 1);
	}
	takt_str_add(out, "' ");
}

static void add_described_options(struct takt_str *out, const struct takt_option *options)
{
	for (; options && options->name; options++) {
		TAKT_CLEANUP(strp) struct takt_str word = TAKT_STR(256);

		takt_str_addf(&word, "--%s", options->name);
		add_described(out, takt_str_text(&word), options->help);
	}
}

void takt_help_zsh(struct takt_str *out)
{
	const struct takt_verb *verb;

	takt_str_add(out, "#compdef takt\n# zsh completion of takt; made by: takt completion zsh\n"
			  "_takt()\n{\n\tlocal -a verbs opts words_\n\tverbs=(");
	for (size_t i = 0; (verb = takt_verb_at(i, NULL)); i++)
		add_described(out, verb->name, verb->summary);
	takt_str_add(out, ")\n\tif (( CURRENT == 2 )); then\n\t\t_describe verb verbs\n\t\treturn\n"
			  "\tfi\n\tcase ${words[2]} in\n");
	for (size_t i = 0; (verb = takt_verb_at(i, NULL)); i++) {
		takt_str_addf(out, "\t%s)\n\t\topts=(", verb->name);
		add_described_options(out, verb->options);
		add_described_options(out, takt_verb_common(verb));
		takt_str_add(out, ")\n\t\twords_=(");
		add_operand_words(out, verb);
		takt_str_add(out, ")\n\t\t;;\n");
	}
	takt_str_add(out, "\tesac\n"
			  "\tif [[ ${words[CURRENT]} == -* ]]; then\n\t\t_describe option opts\n"
			  "\telif (( ${#words_} )); then\n\t\tcompadd -a words_\n"
			  "\telse\n\t\t_files\n\tfi\n}\n_takt \"$@\"\n");
}

/* In single quotes of fish, where a backslash keeps a quote and itself. */
static void add_fish_text(struct takt_str *out, const char *text)
{
	takt_str_add(out, "'");
	for (; *text; text++)
		takt_str_addf(out, "%s%c", *text == '\'' || *text == '\\' ? "\\" : "", *text);
	takt_str_add(out, "'");
}

static void add_fish_options(struct takt_str *out, const char *verb,
			     const struct takt_option *options)
{
	for (; options && options->name; options++) {
		takt_str_addf(out, "complete -c takt -n '__fish_seen_subcommand_from %s' -l %s",
			      verb, options->name);
		if (options->letter)
			takt_str_addf(out, " -s %c", options->letter);
		if (options->value && options->value[0] != '[')
			takt_str_add(out, " -r");
		takt_str_add(out, " -d ");
		add_fish_text(out, options->help);
		takt_str_add(out, "\n");
	}
}

void takt_help_fish(struct takt_str *out)
{
	const struct takt_verb *verb;

	takt_str_add(out, "# fish completion of takt; made by: takt completion fish\n");
	for (size_t i = 0; (verb = takt_verb_at(i, NULL)); i++) {
		takt_str_addf(out, "complete -c takt -f -n __fish_use_subcommand -a %s -d ",
			      verb->name);
		add_fish_text(out, verb->summary);
		takt_str_add(out, "\n");
		add_fish_options(out, verb->name, verb->options);
		add_fish_options(out, verb->name, takt_verb_common(verb));
		if (verb->operands != TAKT_OPERANDS_JOBS && verb->operands != TAKT_OPERANDS_VERBS &&
		    verb->operands != TAKT_OPERANDS_WORDS)
			continue;
		takt_str_addf(out, "complete -c takt -f -n '__fish_seen_subcommand_from %s' -a '",
			      verb->name);
		if (verb->operands == TAKT_OPERANDS_JOBS)
			takt_str_add(out, "(takt queue --ids 2>/dev/null)");
		else
			add_operand_words(out, verb);
		takt_str_add(out, "'\n");
	}
}
