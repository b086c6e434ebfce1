/* SPDX-License-Identifier: Apache-2.0 */
/* Cells of CSV, see the header. */
#include "sim/csv_cells.h"

#include <string.h>

/* Moves a quoted cell's text to its front; returns what is behind the closing quote, NULL if none
 * closes. */
static char *unquote(char *cell)
{
	char *to = cell, *at = cell + 1;

	for (; *at; at++) {
		if (*at == '"' && at[1] != '"')
			break;
		if (*at == '"')
			at++;
		*to++ = *at;
	}
	if (*at != '"')
		return NULL;
	*to = '\0';
	return at + 1;
}

/* Cuts blanks off both ends; `end` is where the cell ends, and becomes its NUL. */
static char *trim(char *cell, char *end)
{
	cell += strspn(cell, " \t");
	while (end > cell && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	*end = '\0';
	return cell;
}

int takt_csv_split(char *line, char *cells[TAKT_CSV_MAX_CELLS], struct takt_err *err)
{
	int count = 0;
	char *at = line, *end;
	bool more = true;

	while (more) {
		if (count == TAKT_CSV_MAX_CELLS)
			return takt_err_set(err, -TAKT_E_LIMIT, "more than %d cells",
					    TAKT_CSV_MAX_CELLS);
		if (*at == '"') {
			cells[count] = at;
			end = unquote(at);
			if (!end)
				return takt_err_set(err, -TAKT_E_CORRUPT,
						    "cell %d has a quote that is not closed",
						    count + 1);
			if (*end && *end != ',')
				return takt_err_set(err, -TAKT_E_CORRUPT,
						    "cell %d has text behind its quote", count + 1);
			more = *end == ',';
		} else {
			end = at + strcspn(at, ",");
			more = *end == ',';
			cells[count] = trim(at, end);
		}
		count++;
		at = end + 1;
	}
	return count;
}
