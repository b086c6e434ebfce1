/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of text that fit the terminal, and colours where they are wanted. */
#ifndef TAKT_CLI_TABLE_H
#define TAKT_CLI_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"
#include "base/str.h"
#include "base/vec.h"

enum takt_style {
	TAKT_STYLE_PLAIN,
	TAKT_STYLE_HEAD,  /* bold */
	TAKT_STYLE_GOOD,  /* green */
	TAKT_STYLE_MIND,  /* yellow */
	TAKT_STYLE_ALARM, /* bold red */
};

/* Text in a style, with what could steer a terminal (others' names may hold it) turned into '?'. */
int takt_style_add(struct takt_str *out, bool colour, enum takt_style style, const char *text);

struct takt_column {
	const char *title;
	bool right;
	unsigned shrink;   /* may be cut to so many characters; 0 = never cut */
	unsigned drop;	   /* left out when space is short, largest first; 0 = never */
	const char *usual; /* left out where every row says this; NULL = shown always */
	bool same_goes;	   /* left out when space is short, before anything is cut, if every row
			      says the same */
};

struct takt_cell {
	char *text; /* owned */
	enum takt_style style;
};

struct takt_table {
	const struct takt_column *columns; /* borrowed */
	size_t column_count;		   /* at most 16 */
	TAKT_VEC(struct takt_cell) cells;  /* row by row */
	int rc;				   /* 0, or why a cell is missing */
};

#define TAKT_TABLE(table)                                           \
	((struct takt_table){.columns = (table),                    \
			     .column_count = TAKT_ARRAY_LEN(table), \
			     .cells = TAKT_VEC_INIT(1 << 20)})

/* The next cell; empty text is shown as "-". */
void takt_table_add(struct takt_table *table, enum takt_style style, const char *fmt, ...)
	TAKT_PRINTF(3, 4);
/* width 0 = as wide as it gets. Releases the cells. */
int takt_table_print(struct takt_table *table, unsigned width, bool colour, struct takt_str *out);

#endif
