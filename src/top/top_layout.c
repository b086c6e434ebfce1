/* SPDX-License-Identifier: Apache-2.0 */
/* Who gets how much of the screen: what is queued and runs more than who is on the GPUs. */
#include "top/top_ui.h"

enum {
	CARD_COLS = 48, /* a card's least width and height */
	CARD_ROWS = 6,
	CARD_ROWS_MOST = 10,
	CARD_COLS_GOOD = 64, /* where there is so much each, more of them are side by side */
	LINE_COLS = 64,	     /* of GPUs in several columns of lines */
	BOTH_ROWS = 11,	     /* from so many on there is room for both lists */
	HEAD_ROWS = 16,	     /* from so many on the head has a second line */
};

static int ceil_div(int a, int b)
{
	return (a + b - 1) / b;
}

/* The fewest cards across that are high enough, from as many on as are wide enough: what that saves
 * is the lists'. `even`: all lines have as many. */
static bool fit_across(int gpus, int rows, int cols, bool even, struct takt_top_layout *ret)
{
	int first = cols / CARD_COLS_GOOD < 1 ? 1 : cols / CARD_COLS_GOOD;

	first = first < gpus ? first : gpus;
	for (int across = first; across <= cols / CARD_COLS && across <= gpus; across++) {
		int each = rows / ceil_div(gpus, across);

		if (each < CARD_ROWS || (even && gpus % across != 0))
			continue;
		ret->across = across;
		ret->card_rows = each < CARD_ROWS_MOST ? each : CARD_ROWS_MOST;
		return true;
	}
	return false;
}

static bool fit_cards(int gpus, int rows, int cols, struct takt_top_layout *ret)
{
	return fit_across(gpus, rows, cols, true, ret) || fit_across(gpus, rows, cols, false, ret);
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
		ret->jobs.rows = (rest.rows * 3 + 2) / 5;
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
	int head = rows < HEAD_ROWS ? 1 : 2, line = ui->hosts.count ? 1 : 0;
	int body = rows - head - 1 - line, tables = body < 14 ? body / 2 : body / 3;
	struct takt_area rest = {head + line, 0, body, cols};

	*ret = (struct takt_top_layout){
		.header = {0, 0, head, cols},
		.footer = {rows - 1, 0, 1, cols},
		.whole = rest,
		.gpus = {head + line, 0, 0, cols},
		.across = 1,
	};
	if (body < 2)
		return;
	ret->hosts = (struct takt_area){head, 0, line, cols};
	ret->gpus = ret->jobs = ret->procs = rest;
	if (ui->look == TAKT_LOOK_JOBS) {
		ret->gpus.rows = ret->procs.rows = 0;
		return;
	}
	ret->gpus.rows = gpu_rows((int)model->now.status.gpu_count, body - tables, cols, ret);
	rest.row += ret->gpus.rows;
	rest.rows -= ret->gpus.rows;
	share_tables(ui, model->now.daemon, rest, ret);
}
