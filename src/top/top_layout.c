/* SPDX-License-Identifier: Apache-2.0 */
/* Who gets how much of the screen. */
#include "top/top_ui.h"

enum {
	CARD_COLS = 48, /* a card's least width and height */
	CARD_ROWS = 6,
	CARD_ROWS_MOST = 10,
	LINE_COLS = 64, /* of GPUs in several columns of lines */
	BOTH_ROWS = 13, /* from so many on there is room for both lists */
};

static int ceil_div(int a, int b)
{
	return (a + b - 1) / b;
}

/* The fewest cards across that are high enough. */
static bool fit_cards(int gpus, int rows, int cols, struct takt_top_layout *ret)
{
	for (int across = 1; across <= cols / CARD_COLS && across <= gpus; across++) {
		int each = rows / ceil_div(gpus, across);

		if (each < CARD_ROWS)
			continue;
		ret->across = across;
		ret->card_rows = each < CARD_ROWS_MOST ? each : CARD_ROWS_MOST;
		return true;
	}
	return false;
}

static int gpu_rows(int gpus, int rows, int cols, struct takt_top_layout *ret)
{
	int most = cols / LINE_COLS < 1 ? 1 : cols / LINE_COLS, lines;

	ret->cards = gpus > 0 && fit_cards(gpus, rows, cols, ret);
	if (ret->cards)
		return ceil_div(gpus, ret->across) * ret->card_rows;
	ret->across = rows > 1 ? ceil_div(gpus > 0 ? gpus : 1, rows - 1) : 1;
	ret->across = ret->across < most ? ret->across : most;
	lines = ceil_div(gpus, ret->across) + 1;
	return lines < rows ? lines : rows;
}

static void share_tables(const struct takt_top_ui *ui, bool daemon, struct takt_area rest,
			 struct takt_top_layout *ret)
{
	ret->jobs = ret->procs = rest;
	if (daemon && rest.rows >= BOTH_ROWS) {
		ret->jobs.rows = (rest.rows + 1) / 2;
		ret->procs.row += ret->jobs.rows;
		ret->procs.rows -= ret->jobs.rows;
	} else if (daemon && ui->table == TAKT_PANE_JOBS) {
		ret->procs.rows = 0;
	} else {
		ret->jobs.rows = 0;
	}
}

void takt_top_layout(const struct takt_top_ui *ui, const struct takt_top_model *model, int rows,
		     int cols, struct takt_top_layout *ret)
{
	int line = ui->hosts.count ? 1 : 0, body = rows - 2 - line;
	int tables = body < 14 ? body / 2 : body / 3;
	struct takt_area rest = {1 + line, 0, body, cols};

	*ret = (struct takt_top_layout){.header = {0, 0, 1, cols},
					.footer = {rows - 1, 0, 1, cols}};
	if (body < 2)
		return;
	ret->hosts = (struct takt_area){1, 0, line, cols};
	ret->gpus = rest;
	ret->gpus.rows = gpu_rows((int)model->now.status.gpu_count, body - tables, cols, ret);
	rest.row += ret->gpus.rows;
	rest.rows -= ret->gpus.rows;
	share_tables(ui, model->now.daemon, rest, ret);
}
