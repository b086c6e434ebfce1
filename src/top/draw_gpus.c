/* SPDX-License-Identifier: Apache-2.0 */
/* GPUs as cards with graphs where there is room, else a line each. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "top/graph.h"
#include "top/top_columns.h"
#include "top/top_draw.h"
#include "top/top_text.h"

enum {
	STATS_COLS = 31, /* of a card, left of its graph, at least */
	STATS_COLS_MOST = 44,
	VALUE_COLS = 11,
	JOB_COLS = 16, /* of a line, for whose it is, where lines have JOB_FROM_COLS */
	JOB_FROM_COLS = 72,
	RATES_COLS = 50, /* from here on there is room for what goes over all links */
};

enum takt_role takt_series_role(enum takt_top_series series)
{
	static const enum takt_role roles[] = {
		[TAKT_TOP_UTIL] = TAKT_ROLE_UTIL,   [TAKT_TOP_MEMORY] = TAKT_ROLE_MEMORY,
		[TAKT_TOP_POWER] = TAKT_ROLE_POWER, [TAKT_TOP_TEMP] = TAKT_ROLE_TEMP,
		[TAKT_TOP_CLOCK] = TAKT_ROLE_CLOCK,
	};

	return roles[series];
}

const char *takt_series_name(enum takt_top_series series)
{
	static const char *const names[] = {
		[TAKT_TOP_UTIL] = "util",   [TAKT_TOP_MEMORY] = "memory",
		[TAKT_TOP_POWER] = "power", [TAKT_TOP_TEMP] = "temperature",
		[TAKT_TOP_CLOCK] = "clock",
	};

	return names[series];
}

const char *takt_draw_value(const struct takt_gpu_view *gpu, enum takt_top_series series,
			    char ret[TAKT_TOP_TEXT])
{
	char used[TAKT_TOP_TEXT], all[TAKT_TOP_TEXT];

	takt_strcpy(ret, TAKT_TOP_TEXT, "-");
	if (takt_top_value(gpu, series) == TAKT_NO_VALUE &&
	    !(series == TAKT_TOP_POWER && gpu->has & TAKT_VIEW_POWER && !gpu->lost))
		return ret;
	switch (series) {
	case TAKT_TOP_UTIL:
		snprintf(ret, TAKT_TOP_TEXT, "%u %%", gpu->gpu_util_pct);
		break;
	case TAKT_TOP_MEMORY:
		snprintf(ret, TAKT_TOP_TEXT, "%s/%s", takt_top_bytes(gpu->mem_used_bytes, used),
			 takt_top_bytes(gpu->mem_total_bytes, all));
		break;
	case TAKT_TOP_POWER:
		if (gpu->has & TAKT_VIEW_POWER_LIMIT)
			snprintf(ret, TAKT_TOP_TEXT, "%u/%u W", gpu->power_mw / 1000,
				 gpu->power_limit_mw / 1000);
		else
			snprintf(ret, TAKT_TOP_TEXT, "%u W", gpu->power_mw / 1000);
		break;
	case TAKT_TOP_TEMP:
		snprintf(ret, TAKT_TOP_TEXT, "%d\u00b0C", gpu->temp_c);
		break;
	default:
		snprintf(ret, TAKT_TOP_TEXT, "%u MHz", gpu->sm_mhz);
	}
	return ret;
}

static enum takt_role heat_role(const struct takt_gpu_view *gpu)
{
	if (!(gpu->has & TAKT_VIEW_MARGIN))
		return TAKT_ROLE_PLAIN;
	return gpu->margin_c <= 2   ? TAKT_ROLE_ALARM
	       : gpu->margin_c <= 8 ? TAKT_ROLE_MIND
				    : TAKT_ROLE_PLAIN;
}

static enum takt_role clock_role(const struct takt_gpu_view *gpu)
{
	const char *why = takt_top_held_back(gpu);

	if (strcmp(why, "idle") == 0 || !why[0])
		return gpu->lease_max_mhz ? TAKT_ROLE_JOB : TAKT_ROLE_PLAIN;
	return strcmp(why, "power cap") == 0 || strcmp(why, "app clocks") == 0 ? TAKT_ROLE_MIND
									       : TAKT_ROLE_ALARM;
}

static void draw_meter(struct takt_cells *cells, int row, int col, int width,
		       const struct takt_gpu_view *gpu, enum takt_top_series series)
{
	static const char *const names[] = {"util", "mem", "power"};
	char text[TAKT_TOP_TEXT];

	takt_cells_text(cells, row, col, 5, TAKT_ROLE_DIM, names[series]);
	takt_meter(cells, row, col + 6, width - 6 - VALUE_COLS - 1, takt_series_role(series),
		   takt_top_value(gpu, series));
	takt_cells_right(cells, row, col + width - VALUE_COLS, VALUE_COLS, TAKT_ROLE_PLAIN,
			 takt_draw_value(gpu, series, text));
}

/* Temperature and its margin, and the clock with its cap and reason. */
static void draw_heat_and_clock(struct takt_cells *cells, int row, int col, int width,
				const struct takt_gpu_view *gpu)
{
	char text[TAKT_TOP_TEXT];
	int at = 0;

	if (gpu->lost)
		return;
	if (gpu->has & TAKT_VIEW_TEMP)
		at += takt_cells_textf(cells, row, col, width, heat_role(gpu), "%d\u00b0C",
				       gpu->temp_c);
	if (gpu->has & TAKT_VIEW_TEMP && gpu->has & TAKT_VIEW_MARGIN)
		at += takt_cells_textf(cells, row, col + at, width - at, TAKT_ROLE_DIM, " %d left",
				       gpu->margin_c);
	if (gpu->has & TAKT_VIEW_SM)
		takt_cells_right(cells, row, col + at + 1, width - at - 1, clock_role(gpu),
				 takt_top_clock(gpu, text));
}

/* Of PCIe, or of all NVLinks; empty where that is not known. */
static void rates_text(bool known, uint64_t sent_bytes_per_s, uint64_t received_bytes_per_s,
		       char *ret, size_t size)
{
	char sent[TAKT_TOP_TEXT], received[TAKT_TOP_TEXT];

	ret[0] = '\0';
	if (known)
		snprintf(ret, size, " %s/%s/s", takt_top_bytes(sent_bytes_per_s, sent),
			 takt_top_bytes(received_bytes_per_s, received));
}

static bool has_nvlinks(const struct takt_gpu_view *gpu)
{
	return gpu->has & TAKT_VIEW_NVLINKS && gpu->nvlinks && !gpu->lost;
}

static enum takt_role nvlink_role(const struct takt_gpu_view *gpu)
{
	return gpu->nvlinks_up < gpu->nvlinks ? TAKT_ROLE_MIND : TAKT_ROLE_DIM;
}

static void draw_links(struct takt_cells *cells, int row, int col, int width,
		       const struct takt_gpu_view *gpu)
{
	char rates[80] = "";
	int at = 0;

	if (gpu->lost)
		return;
	if (width >= RATES_COLS)
		rates_text(gpu->has & TAKT_VIEW_NVLINK_RATES, gpu->nvlink_sent_bytes_per_s,
			   gpu->nvlink_received_bytes_per_s, rates, sizeof(rates));
	if (has_nvlinks(gpu))
		at += takt_cells_textf(cells, row, col, width, nvlink_role(gpu), "NVLink %u/%u%s  ",
				       gpu->nvlinks_up, gpu->nvlinks, rates);
	rates_text(gpu->has & TAKT_VIEW_PCIE_RATES, gpu->pcie_sent_bytes_per_s,
		   gpu->pcie_received_bytes_per_s, rates, sizeof(rates));
	if (gpu->has & TAKT_VIEW_PCIE)
		takt_cells_textf(cells, row, col + at, width - at, TAKT_ROLE_DIM, "PCIe %ux%u%s",
				 gpu->pcie_gen, gpu->pcie_width, rates);
}

static void draw_note(struct takt_cells *cells, int row, int col, int width,
		      const struct takt_gpu_view *gpu)
{
	const char *note = gpu->health_note[0] ? gpu->health_note
			   : gpu->clock_note[0] && strcmp(gpu->clock_state, "CHANGED") == 0
				   ? gpu->clock_note
				   : gpu->note;

	if (note[0])
		takt_cells_text(cells, row, col, width,
				gpu->health_note[0] ? TAKT_ROLE_ALARM : TAKT_ROLE_DIM, note);
}

/* Its model where it is not that of all, which the head names. */
static void draw_title(struct takt_cells *cells, struct takt_area area,
		       const struct takt_gpu_view *gpu, bool named, bool selected)
{
	char label[TAKT_GPU_LABEL], title[128];
	enum takt_role role;
	int room;

	snprintf(title, sizeof(title), "GPU %u%s%s", gpu->index, named ? " " : "",
		 named ? takt_top_model_name(gpu->name) : "");
	takt_cells_frame(cells, area, selected ? TAKT_ROLE_FOCUS : TAKT_ROLE_FRAME, title);
	room = area.cols - takt_cells_width(title) - 9;
	takt_gpu_label(gpu, room, label, &role);
	if (!label[0] || room < 4)
		return;
	if (takt_cells_width(label) < room)
		room = takt_cells_width(label);
	takt_cells_textf(cells, area.row, area.col + area.cols - room - 4, room + 2, role, " %s ",
			 label);
}

/* What a card has below its meters: as many lines as there is room for. */
static void draw_more(struct takt_cells *cells, int row, int rows, int col, int width,
		      const struct takt_gpu_view *gpu)
{
	bool noted = gpu->health_note[0] || gpu->note[0];

	if (rows == 1 && gpu->health_note[0])
		draw_note(cells, row, col, width, gpu);
	else if (rows > 0)
		draw_heat_and_clock(cells, row, col, width, gpu);
	if (rows > 1 && !(noted && rows == 2))
		draw_links(cells, row + 1, col, width, gpu);
	if (rows > 1 && noted)
		draw_note(cells, row + rows - 1, col, width, gpu);
}

void takt_draw_curve(struct takt_cells *cells, struct takt_area area,
		     const struct takt_top_history *history, enum takt_top_series series,
		     uint32_t most)
{
	const struct takt_top_curve curve = {history, series, most};

	takt_graph(cells, area, takt_series_role(series), takt_top_curve_at, &curve);
}

static void draw_card(struct takt_cells *cells, const struct takt_top_ui *ui,
		      const struct takt_top_model *model, uint32_t at, struct takt_area area)
{
	const struct takt_gpu_view *gpu = &model->now.status.gpus[at];
	int inner = area.cols - 4, stats = inner * 45 / 100, rows = area.rows - 2;
	struct takt_area graph;

	stats = stats < STATS_COLS ? STATS_COLS : stats > STATS_COLS_MOST ? STATS_COLS_MOST : stats;
	draw_title(cells, area, gpu, !takt_top_one_model(&model->now.status),
		   ui->focus == TAKT_PANE_GPUS && ui->selected[TAKT_PANE_GPUS] == (int)at);
	for (int s = TAKT_TOP_UTIL; s <= TAKT_TOP_POWER; s++)
		draw_meter(cells, area.row + 1 + s, area.col + 2, stats, gpu, s);
	draw_more(cells, area.row + 4, rows - 3, area.col + 2, stats, gpu);
	graph = (struct takt_area){area.row + 1, area.col + 2 + stats + 2, rows, inner - stats - 2};
	if (rows >= 7) {
		graph.rows = (rows + 1) / 2;
		takt_draw_curve(cells, graph, &model->history[at], ui->series, 0);
		graph.row += graph.rows;
		graph.rows = rows - graph.rows;
		takt_draw_curve(cells, graph, &model->history[at],
				ui->series == TAKT_TOP_POWER ? TAKT_TOP_UTIL : TAKT_TOP_POWER, 0);
	} else {
		takt_draw_curve(cells, graph, &model->history[at], ui->series, 0);
	}
}

enum line_column {
	COL_GPU,
	COL_NAME,
	COL_UTIL,
	COL_GRAPH,
	COL_MEM,
	COL_POWER,
	COL_TEMP,
	COL_CLOCK,
	COL_NVLINK,
	COL_JOB,
	LINE_COLUMNS,
};

static const struct takt_top_column line_columns[] = {
	[COL_GPU] = {"GPU", 3, 3, 0, true},	  [COL_NAME] = {"NAME", 9, 18, 6, false},
	[COL_UTIL] = {"UTIL", 10, 22, 0, false},  [COL_GRAPH] = {"HISTORY", 10, 40, 7, false},
	[COL_MEM] = {"MEMORY", 15, 28, 0, false}, [COL_POWER] = {"POWER", 9, 9, 0, true},
	[COL_TEMP] = {"TEMP", 5, 5, 0, true},	  [COL_CLOCK] = {"CLOCK", 5, 24, 0, false},
	[COL_NVLINK] = {"NVLINK", 6, 6, 8, true}, [COL_JOB] = {"JOB", 7, 40, 0, false},
};

/* A meter with its value at its right. */
static void draw_gauge(struct takt_cells *cells, int row, int col, int width,
		       const struct takt_gpu_view *gpu, enum takt_top_series series, int room)
{
	char text[TAKT_TOP_TEXT];

	takt_meter(cells, row, col, width - room - 1, takt_series_role(series),
		   takt_top_value(gpu, series));
	takt_cells_right(cells, row, col + width - room, room, TAKT_ROLE_PLAIN,
			 takt_draw_value(gpu, series, text));
}

static void draw_line_clock(struct takt_cells *cells, int row, int col, int width,
			    const struct takt_gpu_view *gpu)
{
	char text[TAKT_TOP_TEXT];

	if (!(gpu->has & TAKT_VIEW_SM) || gpu->lost)
		return;
	if (width < 9)
		takt_cells_textf(cells, row, col, width, clock_role(gpu), "%u", gpu->sm_mhz);
	else
		takt_cells_text(cells, row, col, width, clock_role(gpu), takt_top_clock(gpu, text));
}

static void draw_line_cell(struct takt_cells *cells, int row, int col, int width,
			   const struct takt_top_ui *ui, const struct takt_top_model *model,
			   uint32_t at, enum line_column column)
{
	const struct takt_gpu_view *gpu = &model->now.status.gpus[at];
	enum takt_role role;
	char text[TAKT_GPU_LABEL];

	switch (column) {
	case COL_GPU:
		takt_cells_textf(cells, row, col, width, TAKT_ROLE_BOLD, "%3u", gpu->index);
		break;
	case COL_NAME:
		takt_cells_text(cells, row, col, width, TAKT_ROLE_PLAIN,
				takt_top_model_name(gpu->name));
		break;
	case COL_UTIL:
		draw_gauge(cells, row, col, width, gpu, TAKT_TOP_UTIL, 5);
		break;
	case COL_GRAPH:
		takt_draw_curve(cells, (struct takt_area){row, col, 1, width}, &model->history[at],
				ui->series, 0);
		break;
	case COL_MEM:
		draw_gauge(cells, row, col, width, gpu, TAKT_TOP_MEMORY, 11);
		break;
	case COL_POWER:
		takt_cells_right(cells, row, col, width, TAKT_ROLE_PLAIN,
				 takt_draw_value(gpu, TAKT_TOP_POWER, text));
		break;
	case COL_TEMP:
		takt_cells_right(cells, row, col, width, heat_role(gpu),
				 takt_draw_value(gpu, TAKT_TOP_TEMP, text));
		break;
	case COL_CLOCK:
		draw_line_clock(cells, row, col, width, gpu);
		break;
	case COL_NVLINK:
		if (!has_nvlinks(gpu))
			break;
		snprintf(text, sizeof(text), "%u/%u", gpu->nvlinks_up, gpu->nvlinks);
		takt_cells_right(cells, row, col, width, nvlink_role(gpu), text);
		break;
	default:
		takt_gpu_label(gpu, width, text, &role);
		takt_cells_text(cells, row, col, width, role, text);
	}
}

static void draw_line_heads(struct takt_cells *cells, int row, int col, const int *widths)
{
	for (int c = 0; c < LINE_COLUMNS; c++) {
		if (!widths[c])
			continue;
		if (line_columns[c].right)
			takt_cells_right(cells, row, col, widths[c], TAKT_ROLE_HEAD,
					 line_columns[c].title);
		else
			takt_cells_text(cells, row, col, widths[c], TAKT_ROLE_HEAD,
					line_columns[c].title);
		col += widths[c] + 1;
	}
}

static void draw_line(struct takt_cells *cells, const struct takt_top_ui *ui,
		      const struct takt_top_model *model, uint32_t at, int row, int col,
		      const int *widths, int width)
{
	for (int c = 0, x = col; c < LINE_COLUMNS; c++) {
		if (!widths[c])
			continue;
		draw_line_cell(cells, row, x, widths[c], ui, model, at, c);
		x += widths[c] + 1;
	}
	if (ui->focus == TAKT_PANE_GPUS && ui->selected[TAKT_PANE_GPUS] == (int)at)
		takt_cells_select(cells, row, col, width);
}

/* Where no GPU has a link there is no column of them; where all are of one model the head names it.
 */
static void fit_lines(const struct takt_status_view *status, int width, int *ret_widths)
{
	struct takt_top_column columns[LINE_COLUMNS];
	bool any = false;

	for (uint32_t i = 0; i < status->gpu_count; i++)
		any |= has_nvlinks(&status->gpus[i]);
	memcpy(columns, line_columns, sizeof(columns));
	if (!any)
		columns[COL_NVLINK].min = 0;
	if (takt_top_one_model(status))
		columns[COL_NAME].min = 0;
	if (width >= JOB_FROM_COLS)
		columns[COL_JOB].min = JOB_COLS;
	takt_top_fit(columns, LINE_COLUMNS, width, ret_widths);
}

static void draw_lines(struct takt_cells *cells, const struct takt_top_ui *ui,
		       const struct takt_top_model *model, const struct takt_top_layout *layout)
{
	struct takt_area area = layout->gpus;
	int width = (area.cols - 2 * (layout->across - 1)) / layout->across, rows = area.rows - 1;
	int widths[LINE_COLUMNS], count = (int)model->now.status.gpu_count;

	fit_lines(&model->now.status, width, widths);
	for (int x = 0; x < layout->across; x++) {
		int col = area.col + x * (width + 2);

		draw_line_heads(cells, area.row, col, widths);
		for (int r = 0; r < rows; r++) {
			int at = ui->first[TAKT_PANE_GPUS] + x * rows + r;

			if (at < count)
				draw_line(cells, ui, model, (uint32_t)at, area.row + 1 + r, col,
					  widths, width);
		}
	}
	takt_draw_scroll_marks(cells, (struct takt_area){area.row, area.col, area.rows, area.cols},
			       ui->first[TAKT_PANE_GPUS] > 0,
			       ui->first[TAKT_PANE_GPUS] + layout->across * rows < count);
}

static void draw_cards(struct takt_cells *cells, const struct takt_top_ui *ui,
		       const struct takt_top_model *model, const struct takt_top_layout *layout)
{
	int across = layout->across, width = layout->gpus.cols / across;

	for (uint32_t i = 0; i < model->now.status.gpu_count; i++) {
		int x = (int)i % across, y = (int)i / across;
		int cols = x == across - 1 ? layout->gpus.cols - x * width : width;

		draw_card(cells, ui, model, i,
			  (struct takt_area){layout->gpus.row + y * layout->card_rows,
					     layout->gpus.col + x * width, layout->card_rows,
					     cols});
	}
}

void takt_draw_gpus(struct takt_cells *cells, const struct takt_top_ui *ui,
		    const struct takt_top_model *model, const struct takt_top_layout *layout)
{
	if (layout->gpus.rows < 1)
		return;
	if (model->now.status.gpu_count == 0)
		takt_cells_text(cells, layout->gpus.row, 1, layout->gpus.cols - 2, TAKT_ROLE_DIM,
				"no GPUs here");
	else if (layout->cards)
		draw_cards(cells, ui, model, layout);
	else
		draw_lines(cells, ui, model, layout);
}

void takt_draw_gpu(struct takt_cells *cells, const struct takt_top_model *model, uint32_t at,
		   struct takt_area area)
{
	const struct takt_gpu_view *gpu = &model->now.status.gpus[at];
	int each, row = area.row + 1, lines;
	char text[TAKT_TOP_TEXT];

	draw_title(cells, area, gpu, true, true);
	lines = takt_draw_sharers(
		cells, (struct takt_area){row + 3, area.col + 2, area.rows / 3, area.cols - 4},
		gpu);
	each = (area.rows - 5 - lines) / TAKT_TOP_SERIES;
	draw_heat_and_clock(cells, row, area.col + 2, area.cols - 4, gpu);
	draw_links(cells, row + 1, area.col + 2, area.cols - 4, gpu);
	draw_note(cells, row + 2, area.col + 2, area.cols - 4, gpu);
	row += 3 + lines;
	for (int s = 0; each > 0 && s < TAKT_TOP_SERIES; s++, row += each) {
		takt_cells_text(cells, row, area.col + 2, 12, TAKT_ROLE_DIM, takt_series_name(s));
		takt_cells_text(cells, row + (each > 1), area.col + 2 + (each > 1 ? 0 : 12), 12,
				takt_series_role(s) + TAKT_SHADES - 1,
				takt_draw_value(gpu, s, text));
		takt_draw_curve(cells, (struct takt_area){row, area.col + 26, each, area.cols - 28},
				&model->history[at], s, 0);
	}
}
