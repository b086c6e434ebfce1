/* SPDX-License-Identifier: Apache-2.0 */
/* Meters and graphs of values in thousandths of their full scale, in a grid of characters. */
#ifndef TAKT_TOP_GRAPH_H
#define TAKT_TOP_GRAPH_H

#include "top/cells.h"

enum {
	TAKT_NO_VALUE = 0xffff, /* was not read */
};

/* One line; brighter to the right. `role`: the first of a series' shades. */
void takt_meter(struct takt_cells *cells, int row, int col, int width, enum takt_role role,
		uint32_t permille);

/* The value `ago` samples before the newest: 0..1000, or TAKT_NO_VALUE. */
typedef uint32_t takt_graph_fn(const void *ctx, uint32_t ago);

/* Filled, the newest at the right, two samples a column (one where the grid is ASCII); brighter to
 * the top. */
void takt_graph(struct takt_cells *cells, struct takt_area area, enum takt_role role,
		takt_graph_fn *value, const void *ctx);

#endif
