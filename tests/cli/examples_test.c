/* SPDX-License-Identifier: Apache-2.0 */
/* Every example of a command line, in `takt help VERB` and in the pages of docs/, is one that takt
 * takes: its verb is there, and so are its options, with values where they need them, and no
 * operand is too much. Usage: examples_test PAGE... */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "cli/verb.h"

enum {
	MAX_WORDS = 200,
	MAX_LINE = 4096
};

static char **pages;
static int page_count;

/* The words of one command as a shell splits them, up to a pipe, another command or a comment;
 * $(...) counts as one word. `room` holds them. */
static int split(const char *text, char *room, char **words)
{
	int count = 0;

	for (;;) {
		char *out = room;
		char quote = 0;

		text += strspn(text, " \t");
		if (!*text || strchr("|&;<>#)\n", *text))
			break;
		words[count++] = out;
		assert_true(count < MAX_WORDS);
		for (; *text && (quote || !strchr(" \t|&;<>)\n", *text)); text++) {
			if (quote ? *text == quote : *text == '\'' || *text == '"') {
				quote = quote ? 0 : *text;
			} else if (!quote && strncmp(text, "$(", 2) == 0 && strchr(text, ')')) {
				*out++ = '1';
				text = strchr(text, ')');
			} else {
				if (*text == '\\' && text[1] && quote != '\'')
					text++;
				*out++ = *text;
			}
		}
		*out++ = '\0';
		if (strcmp(room, "...") == 0)
			count--; /* what the page leaves out */
		else
			room = out;
	}
	words[count] = NULL;
	return count;
}

/* Whether takt takes the command, which begins with "takt "; says so of `where` if not. */
static bool is_taken(const char *command, const char *where)
{
	static struct takt_cli cli;
	struct takt_err err = {0};
	char room[2 * MAX_LINE], *words[MAX_WORDS];
	int count = split(command + strlen("takt "), room, words);
	const struct takt_verb *verb = count ? takt_verb_find(words[0]) : NULL;

	if (!count || words[0][0] == '-')
		return true; /* takt --version and the like */
	if (!verb) {
		print_message("%s: %s: there is no verb '%s'\n", where, command, words[0]);
		return false;
	}
	if (verb->own_arguments)
		return true;
	memset(&cli, 0, sizeof(cli));
	cli.verb = verb;
	cli.argc = count;
	cli.argv = words;
	if (takt_cli_parse(&cli, &err) == 0)
		return true;
	print_message("%s: %s: %s\n", where, command, err.msg);
	return false;
}

static void help_shows_what_is_taken(void **state)
{
	const struct takt_verb *verb;
	int refused = 0, seen = 0;

	for (size_t i = 0; (verb = takt_verb_at(i, NULL)); i++)
		for (const struct takt_text_pair *pair = verb->examples; pair && pair->left;
		     pair++) {
			const char *takt = strstr(pair->left, "takt ");

			assert_non_null(takt);
			refused += !is_taken(takt, verb->name);
			seen++;
		}
	assert_true(seen > 40);
	assert_int_equal(refused, 0);
}

/* The next line of a page, with those that it goes on in after a backslash; false at the end. */
static bool next_line(FILE *file, char line[MAX_LINE])
{
	size_t len = 0;

	while (fgets(line + len, (int)(MAX_LINE - len), file)) {
		len = strcspn(line, "\n");
		line[len] = '\0';
		if (!len || line[len - 1] != '\\')
			return true;
		line[--len] = '\0';
	}
	return len > 0;
}

/* The command of a line of a page, NULL when it shows none: in a block of code, at its beginning,
 * or behind "$ ". */
static const char *command_of(const char *line, bool fenced)
{
	size_t indent = strspn(line, " ");

	if (!fenced && indent < 4)
		return NULL;
	line += indent;
	if (strncmp(line, "$ ", 2) == 0)
		line += 2;
	if (strncmp(line, "sudo ", 5) == 0)
		line += 5;
	return strncmp(line, "takt ", 5) == 0 && strchr("abcdefghijklmnopqrstuvwxyz-", line[5])
		       ? line
		       : NULL;
}

static void pages_show_what_is_taken(void **state)
{
	int refused = 0, seen = 0;

	for (int i = 0; i < page_count; i++) {
		FILE *file = fopen(pages[i], "r");
		char line[MAX_LINE];
		bool fenced = false;

		assert_non_null(file);
		while (next_line(file, line)) {
			const char *command;

			if (strncmp(line, "```", 3) == 0)
				fenced = !fenced;
			command = command_of(line, fenced);
			if (!command)
				continue;
			refused += !is_taken(command, pages[i]);
			seen++;
		}
		fclose(file);
	}
	assert_true(seen > 40);
	assert_int_equal(refused, 0);
}

static void what_is_wrong_is_seen(void **state)
{
	assert_false(is_taken("takt halth", "here"));
	assert_false(is_taken("takt queue --no-such-option", "here"));
	assert_false(is_taken("takt version 3 | cat", "here"));
	assert_true(is_taken("takt health 3 # a comment", "here"));
	assert_true(is_taken("takt wait $(takt submit -q -- 'a b')", "here"));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(help_shows_what_is_taken),
		cmocka_unit_test(pages_show_what_is_taken),
		cmocka_unit_test(what_is_wrong_is_seen),
	};

	pages = argv + 1;
	page_count = argc - 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
