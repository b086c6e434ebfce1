/* SPDX-License-Identifier: Apache-2.0 */
/* The terminal: shows a grid of characters, tells keys and the mouse. One a process (ncurses),
 * one thread at a time. */
#ifndef TAKT_TOP_TERMINAL_FRONT_H
#define TAKT_TOP_TERMINAL_FRONT_H

#include "base/err.h"
#include "top/top_ui.h"

/* What takes time, writes nothing and leaves modes and signals as they are: for who waits for
 * something else first. May be left out, and called again. */
void takt_front_begin(void);
/* -TAKT_E_UNSUPPORTED: this terminal is not known. */
int takt_front_open(struct takt_err *err);
/* The terminal as it was; nothing where neither of the above was called. */
void takt_front_close(void);
/* Its size now. */
void takt_front_size(int *ret_rows, int *ret_cols);
/* Writes what differs from what is shown. */
void takt_front_show(const struct takt_cells *cells);

struct takt_front_event {
	enum {
		TAKT_FRONT_KEY,
		TAKT_FRONT_CLICK,
		TAKT_FRONT_RESIZE,
	} kind;
	uint32_t key;
	int row, col, turn; /* of a click, see takt_top_click */
	bool twice;
};
/* False: nothing more was typed. */
bool takt_front_next(struct takt_front_event *ret);

#endif
