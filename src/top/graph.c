/* SPDX-License-Identifier: Apache-2.0 */
/* See graph.h. Graphs are of braille: two by four dots a character. */
#include "top/graph.h"

enum {
	DOTS = 4, /* of a character, one above the other */
	BRAILLE = 0x2800,
	FULL_BLOCK = 0x2588, /* left blocks of 7/8 to 1/8 follow it */
};

static enum takt_role shade(enum takt_role role, int at, int of)
{
	int step = of > 1 ? at * TAKT_SHADES / of : TAKT_SHADES - 1;

	return role + (step < TAKT_SHADES ? step : TAKT_SHADES - 1);
}

static uint32_t meter_char(const struct takt_cells *cells, uint32_t eighths)
{
	if (eighths == 0)
		return cells->ascii ? '.' : ' ';
	if (cells->ascii)
		return eighths >= 4 ? '#' : '.';
	return (uint32_t)FULL_BLOCK + 8 - eighths;
}

void takt_meter(struct takt_cells *cells, int row, int col, int width, enum takt_role role,
		uint32_t permille)
{
	uint32_t left;

	if (width < 1 || permille == TAKT_NO_VALUE)
		return;
	permille = permille > 1000 ? 1000 : permille;
	left = (permille * (uint32_t)width * 8 + 500) / 1000;
	for (int i = 0; i < width; i++) {
		uint32_t eighths = left > 8 ? 8 : left;

		left -= eighths;
		if (eighths == 0 && !cells->ascii)
			takt_cells_put(cells, row, col + i, TAKT_ROLE_TRACK, 0xb7);
		else
			takt_cells_put(cells, row, col + i,
				       eighths ? shade(role, i, width) : TAKT_ROLE_TRACK,
				       meter_char(cells, eighths));
	}
}

/* Dots of one of a character's two columns that are lit, `lit` from below. */
static uint32_t dots(uint32_t lit, bool right)
{
	static const uint8_t left_bits[] = {0x40, 0x04, 0x02, 0x01};
	static const uint8_t right_bits[] = {0x80, 0x20, 0x10, 0x08};
	uint32_t bits = 0;

	for (uint32_t i = 0; i < lit && i < DOTS; i++)
		bits |= right ? right_bits[i] : left_bits[i];
	return bits;
}

/* How many dots high the value stands in the line `from_below`; what was read is seen. */
static uint32_t lit_of(uint32_t permille, int from_below, int rows)
{
	uint32_t high, below = (uint32_t)from_below * DOTS;

	if (permille == TAKT_NO_VALUE)
		return 0;
	permille = permille > 1000 ? 1000 : permille;
	high = (permille * (uint32_t)rows * DOTS + 500) / 1000;
	if (high == 0)
		high = 1;
	return high <= below ? 0 : high - below > DOTS ? DOTS : high - below;
}

static uint32_t ascii_of(uint32_t lit)
{
	static const char chars[] = " .:|#";

	return (uint32_t)chars[lit];
}

void takt_graph(struct takt_cells *cells, struct takt_area area, enum takt_role role,
		takt_graph_fn *value, const void *ctx)
{
	uint32_t each = cells->ascii ? 1 : 2;

	for (int c = 0; c < area.cols; c++) {
		uint32_t ago = (uint32_t)(area.cols - 1 - c) * each;
		uint32_t newer = value(ctx, ago),
			 older = cells->ascii ? newer : value(ctx, ago + 1);

		for (int r = 0; r < area.rows; r++) {
			uint32_t a = lit_of(older, r, area.rows), b = lit_of(newer, r, area.rows);
			uint32_t ch = cells->ascii ? ascii_of(b)
						   : BRAILLE + (dots(a, false) | dots(b, true));

			if (a || b)
				takt_cells_put(cells, area.row + area.rows - 1 - r, area.col + c,
					       shade(role, r, area.rows), ch);
		}
	}
}
