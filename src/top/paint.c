/* SPDX-License-Identifier: Apache-2.0 */
/* See paint.h. */
#include "top/paint.h"

#include <string.h>

enum {
	SHORT_WAY = 4, /* columns that are written again rather than leapt over */
};

struct brush {
	const struct takt_pens *pens;
	struct takt_str *out;
	int row, col;			/* of the cursor; row -1 = not known */
	const struct takt_glyph *glyph; /* whose pen it has; NULL = plain */
};

static bool is_other(const struct takt_glyph *a, const struct takt_glyph *b)
{
	return a->ch != b->ch || a->role != b->role || a->selected != b->selected;
}

static bool has_pen_of(const struct brush *brush, const struct takt_glyph *glyph)
{
	return brush->glyph && brush->glyph->role == glyph->role &&
	       brush->glyph->selected == glyph->selected;
}

static void put(struct brush *brush, const struct takt_glyph *glyph)
{
	if (!has_pen_of(brush, glyph))
		takt_str_add(brush->out, brush->pens->pen[glyph->role][glyph->selected]);
	brush->glyph = glyph;
	takt_cells_add_char(brush->out, glyph->ch);
	brush->col++;
}

/* Whether writing what stands between the cursor and `col` gets there with fewer bytes. */
static bool is_short(const struct brush *brush, const struct takt_glyph *line, int row, int col)
{
	if (brush->row != row || brush->col > col || col - brush->col > SHORT_WAY)
		return false;
	for (int c = brush->col; c < col; c++)
		if (!has_pen_of(brush, &line[c]))
			return false;
	return true;
}

static void go_to(struct brush *brush, const struct takt_glyph *line, int row, int col)
{
	char move[TAKT_MOVE_BYTES];

	if (is_short(brush, line, row, col)) {
		while (brush->col < col)
			put(brush, &line[brush->col]);
		return;
	}
	brush->pens->move(row, col, move);
	takt_str_add(brush->out, move);
	brush->row = row;
	brush->col = col;
}

static void paint_line(struct brush *brush, const struct takt_glyph *line, struct takt_glyph *shown,
		       int row, int cols)
{
	for (int col = 0; col < cols; col++) {
		if (!is_other(&line[col], &shown[col]))
			continue;
		go_to(brush, line, row, col);
		put(brush, &line[col]);
		shown[col] = line[col];
	}
}

int takt_paint(const struct takt_cells *cells, struct takt_cells *shown, bool all,
	       const struct takt_pens *pens, struct takt_str *out)
{
	struct brush brush = {.pens = pens, .out = out, .row = -1};
	int rc = 0, rows = cells->rows, cols = cells->cols;

	if (all || shown->rows != rows || shown->cols != cols) {
		rc = takt_cells_resize(shown, rows, cols);
		takt_str_add(out, pens->clear);
	}
	if (rc < 0)
		return rc;
	for (int row = 0; row < rows; row++)
		paint_line(&brush, &cells->at[row * cols], &shown->at[row * cols], row,
			   cols - (pens->last_scrolls && row == rows - 1));
	if (brush.glyph)
		takt_str_add(out, pens->plain);
	return out->rc;
}
