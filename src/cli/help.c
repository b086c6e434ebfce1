/* SPDX-License-Identifier: Apache-2.0 */
/* Help for people at a terminal. */
#include "cli/help.h"

#include <stdio.h>
#include <string.h>

enum {
	COLUMNS = 79,
	INDENT = 24,
};

const struct takt_text_pair takt_common_exits[] = {
	{"0", "done"},
	{"64", "wrong use: unknown verb, option or value"},
	{"65", "can never be satisfied here, or damaged data"},
	{"66", "no such job"},
	{"69", "no daemon answers"},
	{"74", "the output could not be written"},
	{"75", "not now: it conflicts with the present state"},
	{"77", "not permitted"},
	{NULL, NULL},
};

static void add_spaces(struct takt_str *out, size_t n)
{
	while (n-- > 0)
		takt_str_add(out, " ");
}

/* Words of `text` in lines of COLUMNS, each after `indent` spaces; the first line is already at
 * `column`. A newline in the text begins a new paragraph. */
static void add_wrapped(struct takt_str *out, const char *text, size_t indent, size_t column)
{
	bool fresh = column == indent;

	while (*text) {
		size_t word = strcspn(text, " \n");

		if (!fresh && column + 1 + word > COLUMNS) {
			takt_str_add(out, "\n");
			add_spaces(out, indent);
			column = indent;
			fresh = true;
		}
		takt_str_add(out, fresh ? "" : " ");
		takt_str_addn(out, text, word);
		column += word + !fresh;
		fresh = false;
		text += word;
		if (*text == '\n') {
			takt_str_add(out, "\n\n");
			add_spaces(out, indent);
			column = indent;
			fresh = true;
		}
		text += *text != '\0';
	}
	takt_str_add(out, "\n");
}

void takt_help_pair(struct takt_str *out, const char *left, const char *right)
{
	size_t width = strlen(left) + 2;

	takt_str_addf(out, "  %s", left);
	if (width + 2 > INDENT) {
		takt_str_add(out, "\n");
		width = 0;
	}
	add_spaces(out, INDENT - width);
	add_wrapped(out, right, INDENT, INDENT);
}

static void add_pairs(struct takt_str *out, const char *title, const struct takt_text_pair *pairs)
{
	if (!pairs || !pairs->left)
		return;
	takt_str_addf(out, "\n%s\n", title);
	for (; pairs->left; pairs++)
		takt_help_pair(out, pairs->left, pairs->right);
}

static void add_options(struct takt_str *out, const struct takt_option *options)
{
	for (; options && options->name; options++) {
		const char *value = options->value ? options->value : "";
		char letter[8] = "    ", left[64];

		if (options->group)
			takt_str_addf(out, "\n%s\n", options->group);
		if (options->letter)
			snprintf(letter, sizeof(letter), "-%c, ", options->letter);
		snprintf(left, sizeof(left), "%s--%s%s%s", letter, options->name,
			 *value && *value != '[' ? " " : "", value);
		takt_help_pair(out, left, options->help);
	}
}

static void add_examples(struct takt_str *out, const struct takt_text_pair *examples)
{
	if (!examples || !examples->left)
		return;
	takt_str_add(out, "\nexamples\n");
	for (; examples->left; examples++)
		takt_str_addf(out, "  %s\n      %s\n", examples->left, examples->right);
}

void takt_help_verb(const struct takt_verb *verb, struct takt_str *out)
{
	takt_str_addf(out, "takt %s %s\n\n", verb->name, verb->usage);
	add_wrapped(out, verb->about, 0, 0);
	if (!verb->options || !verb->options->group)
		takt_str_add(out, "\noptions\n");
	add_options(out, verb->options);
	if (verb->options && verb->options->group)
		takt_str_add(out, "\nof every verb\n");
	if (verb->add_options)
		verb->add_options(out);
	else
		add_options(out, takt_verb_common(verb));
	add_examples(out, verb->examples);
	add_pairs(out, "exit status", verb->exits);
}
