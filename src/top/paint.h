/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What to write to a terminal so that it shows another grid than it does. ncurses can do that, too,
 * but writes at every movement of the cursor: 18 system calls where one suffices, at each look.
 */
#ifndef TAKT_TOP_PAINT_H
#define TAKT_TOP_PAINT_H

#include "top/cells.h"

enum {
	TAKT_PEN_BYTES = 64,
	TAKT_MOVE_BYTES = 32,
};

/* A terminal's words. A pen is all of a character's look, whatever it was before. */
struct takt_pens {
	char pen[TAKT_ROLE_COUNT][2][TAKT_PEN_BYTES]; /* by role, and whether it is selected */
	char plain[TAKT_PEN_BYTES];
	char clear[TAKT_PEN_BYTES];				   /* blank, in the plain look */
	void (*move)(int row, int col, char ret[TAKT_MOVE_BYTES]); /* the cursor */
	bool last_scrolls; /* a character at the end of the last line: left out */
};

/* Appends what makes `shown` into `cells`, and makes it so. A `shown` of another size, or `all`:
 * from a cleared terminal. -ENOMEM: begin anew with `all`. */
int takt_paint(const struct takt_cells *cells, struct takt_cells *shown, bool all,
	       const struct takt_pens *pens, struct takt_str *out);

#endif
