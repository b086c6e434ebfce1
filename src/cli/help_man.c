/* SPDX-License-Identifier: Apache-2.0 */
/* The manual page, in roff's man macros. */
#include <string.h>

#include "cli/help.h"
#include "config/config.h"
#include "takt_build.h"

/* A line that begins with a dot or an apostrophe would be a request; dashes stay dashes. */
static void add_roff(struct takt_str *out, const char *text)
{
	bool line_start = true;

	for (; *text; text++) {
		if (line_start && (*text == '.' || *text == '\''))
			takt_str_add(out, "\\&");
		line_start = *text == '\n';
		if (*text == '\n')
			takt_str_add(out, "\n.PP\n");
		else if (*text == '-')
			takt_str_add(out, "\\-");
		else if (*text == '\\')
			takt_str_add(out, "\\e");
		else
			takt_str_addn(out, text, 1);
	}
}

static void add_item(struct takt_str *out, const char *head, const char *text)
{
	takt_str_add(out, ".TP\n.B ");
	add_roff(out, head);
	takt_str_add(out, "\n");
	add_roff(out, text);
	takt_str_add(out, "\n");
}

static void add_options(struct takt_str *out, const struct takt_option *options)
{
	for (; options && options->name; options++) {
		if (options->group)
			takt_str_addf(out, ".PP\n%s\n", options->group);
		takt_str_add(out, ".TP\n");
		if (options->letter)
			takt_str_addf(out, "\\fB\\-%c\\fR, ", options->letter);
		takt_str_add(out, "\\fB\\-\\-");
		add_roff(out, options->name);
		takt_str_add(out, "\\fR");
		if (options->value)
			takt_str_addf(out, "%s\\fI%s\\fR", options->value[0] == '[' ? "" : " ",
				      options->value);
		takt_str_add(out, "\n");
		add_roff(out, options->help);
		takt_str_add(out, "\n");
	}
}

static void add_verb(struct takt_str *out, const struct takt_verb *verb)
{
	takt_str_addf(out, ".SS takt %s ", verb->name);
	add_roff(out, verb->usage);
	takt_str_add(out, "\n");
	add_roff(out, verb->about);
	takt_str_add(out, "\n");
	add_options(out, verb->options);
	if (verb->offline)
		add_options(out, takt_verb_common(verb));
	for (const struct takt_text_pair *pair = verb->exits; pair && pair->left; pair++)
		add_item(out, pair->left, pair->right);
}

static void add_examples(struct takt_str *out)
{
	const struct takt_verb *verb;

	takt_str_add(out, ".SH EXAMPLES\n");
	for (size_t i = 0; (verb = takt_verb_at(i, NULL)); i++)
		for (const struct takt_text_pair *pair = verb->examples; pair && pair->left; pair++)
			add_item(out, pair->left, pair->right);
}

void takt_help_man(struct takt_str *out)
{
	const struct takt_verb *verb;
	const char *doc;

	takt_str_add(out, ".TH TAKT 1 \"\" \"takt " TAKT_VERSION "\" \"User Commands\"\n"
			  ".SH NAME\ntakt \\- every GPU on the right job, at the right clock\n"
			  ".SH SYNOPSIS\n.B takt\n.I VERB\n[\\fIoptions\\fR]\n.SH VERBS\n");
	for (size_t i = 0; (verb = takt_verb_at(i, NULL)); i++)
		add_verb(out, verb);
	takt_str_add(out, ".SH OPTIONS OF EVERY VERB THAT ASKS A DAEMON\n");
	add_options(out, takt_common_options);
	takt_str_add(out,
		     ".SH SETTINGS OF THE DAEMON\nIn /etc/takt/takt.conf as \"key = value\", or "
		     "as flags of takt serve with dashes.\n");
	for (size_t i = 0; takt_config_key(i, &doc); i++)
		add_item(out, takt_config_key(i, NULL), doc);
	takt_str_add(out, ".SH ENVIRONMENT\n");
	add_item(out, "TAKT_SOCKET", "The daemon's socket.");
	add_item(out, "NO_COLOR", "If set and not empty: no colours.");
	add_item(out, "COLUMNS", "Width of tables.");
	add_examples(out);
	takt_str_add(out, ".SH EXIT STATUS\n");
	for (const struct takt_text_pair *pair = takt_common_exits; pair->left; pair++)
		add_item(out, pair->left, pair->right);
}
