/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the tables, see the header. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tsv.h"

static char *read_text(const char *path)
{
	FILE *file = fopen(path, "re");
	char *text = calloc(1, 1 << 17);

	assert_non_null(file);
	assert_non_null(text);
	assert_in_range(fread(text, 1, (1 << 17) - 1, file), 1, (1 << 17) - 2);
	fclose(file);
	return text;
}

static void add_row(struct tsv *tsv, char *line)
{
	const char **cells = tsv->cell[tsv->count];

	assert_in_range(tsv->count, 0, TSV_ROWS - 1);
	for (size_t i = 0; i < TSV_COLUMNS; i++) {
		char *cell = line ? strsep(&line, "\t") : NULL;
		cells[i] = cell ? cell : "";
	}
	assert_null(line);
	tsv->count++;
}

void tsv_read(struct tsv *tsv, const char *path)
{
	bool head = true;
	char *rest;

	*tsv = (struct tsv){.text = read_text(path)};
	rest = tsv->text;
	for (char *line; (line = strsep(&rest, "\n"));) {
		if (line[0] == '\0' || line[0] == '#')
			continue;
		if (!head)
			add_row(tsv, line);
		head = false;
	}
}

void tsv_free(struct tsv *tsv)
{
	free(tsv->text);
}

int tsv_find(const struct tsv *tsv, const char *name)
{
	for (size_t i = 0; i < tsv->count; i++)
		if (strcmp(tsv->cell[i][0], name) == 0)
			return (int)i;
	return -1;
}
