/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of tests and data: lines of cells between tabs; "#" begins a comment, the first other line
 * names the columns. */
#ifndef TAKT_TESTS_RULES_TSV_H
#define TAKT_TESTS_RULES_TSV_H

#include <stddef.h>

enum {
	TSV_COLUMNS = 26,
	TSV_ROWS = 256,
};

struct tsv {
	char *text;
	size_t count;
	const char *cell[TSV_ROWS][TSV_COLUMNS]; /* "" where a line ends early */
};

/* Fails the test when the file cannot be read or is too long. */
void tsv_read(struct tsv *tsv, const char *path);
void tsv_free(struct tsv *tsv);
/* The row whose first cell is the name; -1 = none. */
int tsv_find(const struct tsv *tsv, const char *name);

#endif
