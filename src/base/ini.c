/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of a settings file, see the header. */
#include "base/ini.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

static char *trim(char *text)
{
	size_t len;

	text += strspn(text, " \t\r");
	len = strlen(text);
	while (len > 0 && strchr(" \t\r", text[len - 1]))
		text[--len] = '\0';
	return text;
}

/* True if it is one; *ret_section then is its name, cut out in place. */
static bool is_section(char *text, const char **ret_section)
{
	size_t len = strlen(text);

	if (text[0] != '[' || text[len - 1] != ']')
		return false;
	text[len - 1] = '\0';
	*ret_section = trim(text + 1);
	return true;
}

/* Fills key and value of a line that is no comment; the text is cut in place. */
static int read_line(char *text, struct takt_ini_line *line, struct takt_err *err)
{
	char *equals = strchr(text, '=');

	line->key = line->value = NULL;
	if (is_section(text, &line->section))
		return 0;
	if (!equals)
		return takt_err_set(err, -TAKT_E_USAGE, "%s: '%.60s' is not a line 'key = value'",
				    line->where, text);
	*equals = '\0';
	line->key = trim(text);
	line->value = trim(equals + 1);
	return 0;
}

int takt_ini_each(const char *text, size_t len, const char *name,
		  int (*each)(void *ctx, const struct takt_ini_line *line, struct takt_err *err),
		  void *ctx, struct takt_err *err)
{
	TAKT_CLEANUP(freep) char *copy = takt_alloc(len + 1);
	char where[PATH_MAX], *next = copy, *end;
	struct takt_ini_line line = {.section = "", .where = where};
	int rc = 0;

	if (!copy)
		return takt_err_set(err, -ENOMEM, "no memory to read '%s'", name);
	memcpy(copy, text, len);
	copy[len] = '\0';
	if (strlen(copy) != len)
		return takt_err_set(err, -TAKT_E_USAGE, "%s: is not a text file", name);
	for (unsigned number = 1; next && rc == 0; number++, next = end) {
		char *trimmed;

		end = strchr(next, '\n');
		if (end)
			*end++ = '\0';
		snprintf(where, sizeof(where), "%s:%u", name, number);
		trimmed = trim(next);
		if (!*trimmed || *trimmed == '#')
			continue;
		rc = read_line(trimmed, &line, err);
		if (rc == 0)
			rc = each(ctx, &line, err);
	}
	return rc;
}
