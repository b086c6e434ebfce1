/* SPDX-License-Identifier: Apache-2.0 */
/* See cells.h. */
#include "top/cells.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>

#include "base/mem.h"
#include "codec/json.h"

enum {
	ELLIPSIS = 0x2026,
	MAX_TEXT = 1024,
};

int takt_cells_resize(struct takt_cells *cells, int rows, int cols)
{
	struct takt_glyph *at;

	rows = rows < 1 ? 1 : rows > TAKT_CELLS_MAX_ROWS ? TAKT_CELLS_MAX_ROWS : rows;
	cols = cols < 1 ? 1 : cols > TAKT_CELLS_MAX_COLS ? TAKT_CELLS_MAX_COLS : cols;
	at = takt_reallocarray(cells->at, (size_t)rows * (size_t)cols, sizeof(*at));
	if (!at)
		return -ENOMEM;
	cells->at = at;
	cells->rows = rows;
	cells->cols = cols;
	takt_cells_clear(cells);
	return 0;
}

void takt_cells_clear(struct takt_cells *cells)
{
	for (int i = 0; i < cells->rows * cells->cols; i++)
		cells->at[i] = (struct takt_glyph){.ch = ' '};
}

void takt_cells_fini(struct takt_cells *cells)
{
	takt_free(cells->at);
	*cells = (struct takt_cells){.ascii = cells->ascii};
}

static struct takt_glyph *find(struct takt_cells *cells, int row, int col)
{
	if (row < 0 || col < 0 || row >= cells->rows || col >= cells->cols)
		return NULL;
	return &cells->at[row * cells->cols + col];
}

void takt_cells_put(struct takt_cells *cells, int row, int col, enum takt_role role, uint32_t ch)
{
	struct takt_glyph *glyph = find(cells, row, col);

	if (!glyph)
		return;
	glyph->ch = cells->ascii && ch > 126 ? '?' : ch;
	glyph->role = (uint8_t)role;
}

/* What ASCII has for the few characters that are ours. */
static uint32_t plain_of(uint32_t ch)
{
	switch (ch) {
	case 0xb7:   /* middle dot */
	case 0x2026: /* ellipsis */
		return '.';
	case 0xb0: /* degree */
		return ' ';
	case 0x2264: /* at most */
		return '<';
	case 0x2014:
	case 0x2013: /* dashes */
		return '-';
	case 0x25b8: /* triangle */
		return '>';
	case 0x25be:
		return 'v';
	default:
		return ch > 126 ? '?' : ch;
	}
}

/* The next character of UTF-8 text, moved behind it; '?' for what cannot stand in one column. */
static uint32_t next_char(const char **text)
{
	const unsigned char *s = (const unsigned char *)*text;
	uint32_t ch = s[0];
	size_t n;

	if (ch < 0x80) {
		++*text;
		return ch >= ' ' && ch != 0x7f ? ch : '?';
	}
	n = takt_utf8_length(*text, strnlen(*text, 4));
	*text += n ? n : 1;
	if (n == 0)
		return '?';
	ch &= 0xffu >> (n + 1);
	for (size_t i = 1; i < n; i++)
		ch = ch << 6 | (s[i] & 0x3fu);
	return wcwidth((wchar_t)ch) == 1 ? ch : '?';
}

int takt_cells_width(const char *text)
{
	int n = 0;

	while (*text) {
		next_char(&text);
		n++;
	}
	return n;
}

int takt_cells_text(struct takt_cells *cells, int row, int col, int width, enum takt_role role,
		    const char *text)
{
	bool cut = takt_cells_width(text) > width;
	int n = 0;

	while (*text && n < width) {
		uint32_t ch = next_char(&text);

		if (cut && n == width - 1 && width > 3)
			ch = ELLIPSIS;
		takt_cells_put(cells, row, col + n, role, cells->ascii ? plain_of(ch) : ch);
		n++;
	}
	return n;
}

int takt_cells_textf(struct takt_cells *cells, int row, int col, int width, enum takt_role role,
		     const char *fmt, ...)
{
	char text[MAX_TEXT];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	return takt_cells_text(cells, row, col, width, role, text);
}

void takt_cells_right(struct takt_cells *cells, int row, int col, int width, enum takt_role role,
		      const char *text)
{
	int n = takt_cells_width(text);
	int skip = n < width ? width - n : 0;

	takt_cells_text(cells, row, col + skip, width - skip, role, text);
}

void takt_cells_fill(struct takt_cells *cells, struct takt_area area, enum takt_role role)
{
	for (int r = 0; r < area.rows; r++)
		for (int c = 0; c < area.cols; c++)
			takt_cells_put(cells, area.row + r, area.col + c, role, ' ');
}

void takt_cells_select(struct takt_cells *cells, int row, int col, int width)
{
	for (int i = 0; i < width; i++) {
		struct takt_glyph *glyph = find(cells, row, col + i);

		if (glyph)
			glyph->selected = true;
	}
}

void takt_cells_frame(struct takt_cells *cells, struct takt_area area, enum takt_role role,
		      const char *title)
{
	static const uint32_t fine[] = {0x256d, 0x256e, 0x2570, 0x256f, 0x2500, 0x2502};
	static const uint32_t plain[] = {'+', '+', '+', '+', '-', '|'};
	const uint32_t *line = cells->ascii ? plain : fine;
	int bottom = area.row + area.rows - 1, right = area.col + area.cols - 1;

	for (int c = area.col + 1; c < right; c++) {
		takt_cells_put(cells, area.row, c, role, line[4]);
		takt_cells_put(cells, bottom, c, role, line[4]);
	}
	for (int r = area.row + 1; r < bottom; r++) {
		takt_cells_put(cells, r, area.col, role, line[5]);
		takt_cells_put(cells, r, right, role, line[5]);
	}
	takt_cells_put(cells, area.row, area.col, role, line[0]);
	takt_cells_put(cells, area.row, right, role, line[1]);
	takt_cells_put(cells, bottom, area.col, role, line[2]);
	takt_cells_put(cells, bottom, right, role, line[3]);
	if (title[0] && area.cols > 6)
		takt_cells_textf(cells, area.row, area.col + 2, area.cols - 4, TAKT_ROLE_BOLD,
				 " %s ", title);
}

int takt_cells_add_char(struct takt_str *out, uint32_t ch)
{
	char s[4];

	if (ch < 0x80) {
		s[0] = (char)ch;
		return takt_str_addn(out, s, 1);
	}
	if (ch < 0x800) {
		s[0] = (char)(0xc0 | ch >> 6);
		s[1] = (char)(0x80 | (ch & 0x3f));
		return takt_str_addn(out, s, 2);
	}
	if (ch < 0x10000) {
		s[0] = (char)(0xe0 | ch >> 12);
		s[1] = (char)(0x80 | (ch >> 6 & 0x3f));
		s[2] = (char)(0x80 | (ch & 0x3f));
		return takt_str_addn(out, s, 3);
	}
	s[0] = (char)(0xf0 | ch >> 18);
	s[1] = (char)(0x80 | (ch >> 12 & 0x3f));
	s[2] = (char)(0x80 | (ch >> 6 & 0x3f));
	s[3] = (char)(0x80 | (ch & 0x3f));
	return takt_str_addn(out, s, 4);
}

int takt_cells_to_text(const struct takt_cells *cells, struct takt_str *out)
{
	for (int r = 0; r < cells->rows; r++) {
		const struct takt_glyph *row = &cells->at[r * cells->cols];
		int end = cells->cols;

		while (end > 0 && row[end - 1].ch == ' ')
			end--;
		for (int c = 0; c < end; c++)
			takt_cells_add_char(out, row[c].ch);
		takt_str_add(out, "\n");
	}
	return out->rc;
}
