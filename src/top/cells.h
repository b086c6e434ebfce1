/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A screen as a grid of characters with roles. All of `takt top` is drawn into one of these, so
 * that it can be tested and printed without a terminal; what a role looks like is the terminal's
 * affair (terminal_front.c).
 */
#ifndef TAKT_TOP_CELLS_H
#define TAKT_TOP_CELLS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/str.h"

enum {
	TAKT_CELLS_MAX_ROWS = 500,
	TAKT_CELLS_MAX_COLS = 1000,
	TAKT_SHADES = 4, /* of a series' colour, dark to bright */
};

/* What a character is for. */
enum takt_role {
	TAKT_ROLE_PLAIN,
	TAKT_ROLE_DIM,
	TAKT_ROLE_BOLD,
	TAKT_ROLE_BAR,	   /* the first line */
	TAKT_ROLE_BAR_DIM, /* less of it */
	TAKT_ROLE_HEAD,	   /* the titles of a table */
	TAKT_ROLE_FRAME,
	TAKT_ROLE_FOCUS, /* the frame that keys go to */
	TAKT_ROLE_KEY,	 /* a key in the last line */
	TAKT_ROLE_GOOD,
	TAKT_ROLE_MIND,
	TAKT_ROLE_ALARM,
	TAKT_ROLE_JOB,
	TAKT_ROLE_TRACK, /* the empty part of a meter */
	TAKT_ROLE_UTIL,	 /* four shades each from here on */
	TAKT_ROLE_MEMORY = TAKT_ROLE_UTIL + TAKT_SHADES,
	TAKT_ROLE_POWER = TAKT_ROLE_MEMORY + TAKT_SHADES,
	TAKT_ROLE_TEMP = TAKT_ROLE_POWER + TAKT_SHADES,
	TAKT_ROLE_CLOCK = TAKT_ROLE_TEMP + TAKT_SHADES,
	TAKT_ROLE_COUNT = TAKT_ROLE_CLOCK + TAKT_SHADES,
};

struct takt_glyph {
	uint32_t ch;   /* a code point one column wide */
	uint8_t role;  /* enum takt_role */
	bool selected; /* under the cursor of a list */
};

struct takt_cells {
	int rows, cols;
	bool ascii;	       /* nothing but ASCII is put into it */
	struct takt_glyph *at; /* owned; row by row */
};

/* Blank, of that size, whatever it was; zeroed at first. Keeps `ascii`. -ENOMEM leaves it as it
 * was. */
int takt_cells_resize(struct takt_cells *cells, int rows, int cols);
void takt_cells_clear(struct takt_cells *cells);
void takt_cells_fini(struct takt_cells *cells);

/* A rectangle of a grid. What is drawn outside of it is cut. */
struct takt_area {
	int row, col, rows, cols;
};

void takt_cells_put(struct takt_cells *cells, int row, int col, enum takt_role role, uint32_t ch);
/* UTF-8; what is not printable or not one column wide becomes '?', what does not fit is cut, with
 * an ellipsis where there is room for one. Returns the columns taken. */
int takt_cells_text(struct takt_cells *cells, int row, int col, int width, enum takt_role role,
		    const char *text);
int takt_cells_textf(struct takt_cells *cells, int row, int col, int width, enum takt_role role,
		     const char *fmt, ...) TAKT_PRINTF(6, 7);
/* The same, ending at the right of the width. */
void takt_cells_right(struct takt_cells *cells, int row, int col, int width, enum takt_role role,
		      const char *text);
/* Columns that the text takes. */
int takt_cells_width(const char *text);
void takt_cells_fill(struct takt_cells *cells, struct takt_area area, enum takt_role role);
void takt_cells_select(struct takt_cells *cells, int row, int col, int width);
/* A frame with rounded corners and a title in its upper edge, "" = none. */
void takt_cells_frame(struct takt_cells *cells, struct takt_area area, enum takt_role role,
		      const char *title);

/* A glyph's character as UTF-8. */
int takt_cells_add_char(struct takt_str *out, uint32_t ch);
/* Lines of text without blanks at their ends. */
int takt_cells_to_text(const struct takt_cells *cells, struct takt_str *out);

#endif
