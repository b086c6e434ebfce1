/* SPDX-License-Identifier: Apache-2.0 */
/* One line of CSV (RFC 4180, comma, quotes doubled inside quotes) into its cells. */
#ifndef TAKT_SIM_CSV_CELLS_H
#define TAKT_SIM_CSV_CELLS_H

#include "base/err.h"

enum {
	TAKT_CSV_MAX_CELLS = 256
};

/*
 * Splits `line` in place; the cells point into it, blanks at the ends of unquoted ones removed.
 * Returns how many, or -TAKT_E_CORRUPT (a quote that is not closed: a cell may not span lines; text
 * behind a quote), -TAKT_E_LIMIT beyond TAKT_CSV_MAX_CELLS. The line is then spoilt.
 */
int takt_csv_split(char *line, char *cells[TAKT_CSV_MAX_CELLS], struct takt_err *err);

#endif
