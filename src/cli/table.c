/* SPDX-License-Identifier: Apache-2.0 */
/* Tables. */
#include "cli/table.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "codec/json.h"

enum {
	MAX_COLUMNS = 16,
	GAP = 2,
	MAX_CELL = 1024,
};

static const char *const style_codes[] = {"", "\x1b[1m", "\x1b[32m", "\x1b[33m", "\x1b[1;31m"};

/* Copies so many characters; controls (and the C1 ones, U+0080 to U+009F) become '?'. */
static void add_clean(struct takt_str *out, const char *text, size_t characters)
{
	size_t len = strlen(text), n;

	for (; len > 0 && characters > 0; text += n, len -= n, characters--) {
		const unsigned char *c = (const unsigned char *)text;

		n = takt_utf8_length(text, len);
		if (n == 0 || c[0] < 0x20 || c[0] == 0x7f || (c[0] == 0xc2 && c[1] < 0xa0)) {
			n = n ? n : 1;
			takt_str_add(out, "?");
		} else {
			takt_str_addn(out, text, n);
		}
	}
}

int takt_style_add(struct takt_str *out, bool colour, enum takt_style style, const char *text)
{
	bool styled = colour && style != TAKT_STYLE_PLAIN;

	takt_str_add(out, styled ? style_codes[style] : "");
	add_clean(out, text, SIZE_MAX);
	return takt_str_add(out, styled ? "\x1b[0m" : "");
}

/* Characters, not bytes. */
static size_t text_width(const char *text)
{
	size_t len = strlen(text), width = 0, n;

	for (; len > 0; text += n, len -= n, width++) {
		n = takt_utf8_length(text, len);
		n = n ? n : 1;
	}
	return width;
}

void takt_table_add(struct takt_table *table, enum takt_style style, const char *fmt, ...)
{
	char text[MAX_CELL];
	struct takt_cell cell = {.style = style};
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	cell.text = takt_strdup(text[0] ? text : "-");
	if (!cell.text || takt_vec_push(&table->cells, cell) < 0) {
		takt_free(cell.text);
		table->rc = -ENOMEM;
	}
}

static void measure(const struct takt_table *table, unsigned widths[MAX_COLUMNS])
{
	for (size_t i = 0; i < table->column_count; i++)
		widths[i] = (unsigned)text_width(table->columns[i].title);
	for (size_t i = 0; i < table->cells.len; i++) {
		unsigned *width = &widths[i % table->column_count];
		unsigned own = (unsigned)text_width(table->cells.at[i].text);

		*width = own > *width ? own : *width;
	}
}

/* Whether every row of the column says the same; `text`: and this, NULL = whatever it is. */
static bool all_say(const struct takt_table *table, size_t column, const char *text)
{
	const char *same = text;

	for (size_t i = column; i < table->cells.len; i += table->column_count) {
		same = same ? same : table->cells.at[i].text;
		if (strcmp(table->cells.at[i].text, same) != 0)
			return false;
	}
	return table->cells.len > 0;
}

static void leave_out_usual(const struct takt_table *table, unsigned widths[MAX_COLUMNS])
{
	for (size_t i = 0; i < table->column_count; i++)
		if (table->columns[i].usual && all_say(table, i, table->columns[i].usual))
			widths[i] = 0;
}

/* A width of 0 means: left out. */
static unsigned total(const struct takt_table *table, const unsigned widths[MAX_COLUMNS])
{
	unsigned sum = 0;

	for (size_t i = 0; i < table->column_count; i++)
		if (widths[i] > 0)
			sum += widths[i] + (sum > 0 ? GAP : 0);
	return sum;
}

/* The widest column that may still be cut; -1 = none. */
static int widest(const struct takt_table *table, const unsigned widths[MAX_COLUMNS])
{
	int best = -1;

	for (size_t i = 0; i < table->column_count; i++) {
		unsigned shrink = table->columns[i].shrink;

		if (shrink > 0 && widths[i] > shrink && (best < 0 || widths[i] > widths[best]))
			best = (int)i;
	}
	return best;
}

static int most_droppable(const struct takt_table *table, const unsigned widths[MAX_COLUMNS])
{
	int best = -1;

	for (size_t i = 0; i < table->column_count; i++) {
		unsigned drop = table->columns[i].drop;

		if (widths[i] > 0 && drop > 0 && (best < 0 || drop > table->columns[best].drop))
			best = (int)i;
	}
	return best;
}

static void leave_out_same(const struct takt_table *table, unsigned width,
			   unsigned widths[MAX_COLUMNS])
{
	for (size_t i = 0; i < table->column_count && total(table, widths) > width; i++)
		if (table->columns[i].same_goes && all_say(table, i, NULL))
			widths[i] = 0;
}

/* First what tells no row from another, then the ends of long texts, then whole columns. */
static void fit(const struct takt_table *table, unsigned width, unsigned widths[MAX_COLUMNS])
{
	int i;

	if (width == 0)
		return;
	leave_out_same(table, width, widths);
	while (total(table, widths) > width) {
		i = widest(table, widths);
		if (i >= 0) {
			widths[i]--;
			continue;
		}
		i = most_droppable(table, widths);
		if (i < 0)
			return;
		widths[i] = 0;
	}
}

static void add_padding(struct takt_str *out, size_t n)
{
	while (n-- > 0)
		takt_str_add(out, " ");
}

static void add_cell(struct takt_str *out, const struct takt_column *column, unsigned width,
		     const struct takt_cell *cell, bool colour, bool last)
{
	size_t own = text_width(cell->text), shown = own < width ? own : width;
	bool styled = colour && cell->style != TAKT_STYLE_PLAIN;

	if (column->right)
		add_padding(out, width - shown);
	takt_str_add(out, styled ? style_codes[cell->style] : "");
	add_clean(out, cell->text, own > width ? width - 1 : width);
	if (own > width)
		takt_str_add(out, "~");
	takt_str_add(out, styled ? "\x1b[0m" : "");
	if (!column->right && !last)
		add_padding(out, width - shown);
}

static void add_row(const struct takt_table *table, const struct takt_cell *cells,
		    const unsigned widths[MAX_COLUMNS], bool colour, struct takt_str *out)
{
	size_t last = table->column_count;
	bool first = true;

	while (last > 0 && widths[last - 1] == 0)
		last--;
	for (size_t i = 0; i < last; i++) {
		if (widths[i] == 0)
			continue;
		if (!first)
			add_padding(out, GAP);
		first = false;
		add_cell(out, &table->columns[i], widths[i], &cells[i], colour, i + 1 == last);
	}
	takt_str_add(out, "\n");
}

static void add_head(const struct takt_table *table, const unsigned widths[MAX_COLUMNS],
		     bool colour, struct takt_str *out)
{
	struct takt_cell head[MAX_COLUMNS];

	for (size_t i = 0; i < table->column_count; i++)
		head[i] = (struct takt_cell){
			.text = (char *)(uintptr_t)table->columns[i].title,
			.style = TAKT_STYLE_HEAD,
		};
	add_row(table, head, widths, colour, out);
}

int takt_table_print(struct takt_table *table, unsigned width, bool colour, struct takt_str *out)
{
	unsigned widths[MAX_COLUMNS];

	measure(table, widths);
	leave_out_usual(table, widths);
	fit(table, width, widths);
	if (table->rc == 0) {
		add_head(table, widths, colour, out);
		for (size_t i = 0; i < table->cells.len; i += table->column_count)
			add_row(table, &table->cells.at[i], widths, colour, out);
	} else if (out->rc == 0) {
		out->rc = table->rc;
	}
	TAKT_VEC_EACH (cell, &table->cells)
		takt_free(cell->text);
	takt_vec_fini(&table->cells);
	return out->rc;
}
