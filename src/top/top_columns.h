/* SPDX-License-Identifier: Apache-2.0 */
/* How columns share the width of a table. */
#ifndef TAKT_TOP_COLUMNS_H
#define TAKT_TOP_COLUMNS_H

#include <stdbool.h>

enum {
	TAKT_TOP_COLUMNS = 12
};

struct takt_top_column {
	const char *title;
	int min, max;
	int drop; /* left out when space is short, largest first; 0 = never */
	bool right;
};

/* Widths with a blank between columns; 0 = left out. */
void takt_top_fit(const struct takt_top_column *columns, int count, int width, int *ret);

#endif
