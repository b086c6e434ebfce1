/* SPDX-License-Identifier: Apache-2.0 */
/* The first and the last line, and what lies above the picture: help and questions. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/str.h"
#include "top/top_draw.h"
#include "top/top_text.h"

const struct takt_top_hint takt_top_hints[] = {
	{TAKT_KEY_F1, "F1", "Help"},
	{TAKT_KEY_ENTER, "Enter", "Zoom"},
	{'\t', "Tab", "List"},
	{TAKT_KEY_F1 + 1, "F2", "Graph"},
	{TAKT_KEY_F1 + 3, "F4", "Filter"},
	{TAKT_KEY_F1 + 4, "F5", "Tree"},
	{TAKT_KEY_F1 + 5, "F6", "Sort"},
	{'c', "c", "Cancel"},
	{TAKT_KEY_F1 + 8, "F9", "Signal"},
	{'q', "q", "Quit"},
	{0, NULL, NULL},
};

const struct takt_top_signal takt_top_signals[] = {
	{15, "SIGTERM"}, {2, "SIGINT"},	  {9, "SIGKILL"},  {10, "SIGUSR1"},
	{12, "SIGUSR2"}, {19, "SIGSTOP"}, {18, "SIGCONT"}, {0, NULL},
};

enum {
	ASK_COLS = 96, /* commands are long */
	HOST_TEXT = 80,
};

struct sums {
	uint64_t power_mw, limit_mw, util_pct;
	uint32_t power_known, util_known;
};

static struct sums sum_up(const struct takt_status_view *status)
{
	struct sums sums = {0};

	for (uint32_t i = 0; i < status->gpu_count; i++) {
		const struct takt_gpu_view *gpu = &status->gpus[i];

		if (gpu->stale || gpu->lost)
			continue;
		if (gpu->has & TAKT_VIEW_POWER && gpu->has & TAKT_VIEW_POWER_LIMIT) {
			sums.power_mw += gpu->power_mw;
			sums.limit_mw += gpu->power_limit_mw;
			sums.power_known++;
		}
		if (gpu->has & TAKT_VIEW_GPU_UTIL) {
			sums.util_pct += gpu->gpu_util_pct;
			sums.util_known++;
		}
	}
	return sums;
}

static void clock_text(struct takt_wall at, char *ret, size_t size)
{
	time_t seconds = (time_t)(at.ns / 1000000000);
	struct tm tm;

	ret[0] = '\0';
	if (at.ns && localtime_r(&seconds, &tm))
		strftime(ret, size, "%H:%M:%S", &tm);
}

/* The right end: what must not be overlooked, and the time. Returns where it begins. */
static int draw_header_end(struct takt_cells *cells, const struct takt_top_ui *ui,
			   const struct takt_top_model *model, struct takt_area area)
{
	char time[16], text[80];
	int width;

	clock_text(model->now.at, time, sizeof(time));
	snprintf(text, sizeof(text), "%s%s%s%s ", model->now.status.simulated ? "SIMULATED " : "",
		 model->lost ? "NO NEWS " : "", ui->paused ? "PAUSED " : "", time);
	width = takt_cells_width(text);
	takt_cells_text(cells, area.row, area.col + area.cols - width, width,
			model->lost ? TAKT_ROLE_ALARM : TAKT_ROLE_BAR, text);
	return area.cols - width;
}

void takt_draw_header(struct takt_cells *cells, const struct takt_top_ui *ui,
		      const struct takt_top_model *model, struct takt_area area)
{
	const struct takt_status_view *status = &model->now.status;
	struct sums sums = sum_up(status);
	int at = 1, end;

	takt_cells_fill(cells, area, TAKT_ROLE_BAR);
	end = draw_header_end(cells, ui, model, area) - 1;
	at += takt_cells_textf(cells, area.row, at, end - at, TAKT_ROLE_BAR, "takt  %s",
			       status->hostname);
	if (model->now.at.ns == 0)
		return; /* it has not answered yet */
	at += takt_cells_textf(cells, area.row, at, end - at, TAKT_ROLE_BAR_DIM, "  %u GPU%s",
			       status->gpu_count, status->gpu_count == 1 ? "" : "s");
	if (sums.util_known)
		at += takt_cells_textf(cells, area.row, at, end - at, TAKT_ROLE_BAR, "  %u %%",
				       (uint32_t)(sums.util_pct / sums.util_known));
	if (sums.power_known)
		at += takt_cells_textf(cells, area.row, at, end - at, TAKT_ROLE_BAR,
				       "  %.1f/%.1f kW", (double)sums.power_mw / 1e6,
				       (double)sums.limit_mw / 1e6);
	if (model->now.daemon)
		takt_cells_textf(cells, area.row, at, end - at, TAKT_ROLE_BAR_DIM,
				 "  %u running, %u waiting", status->running, status->waiting);
	else
		takt_cells_text(cells, area.row, at, end - at, TAKT_ROLE_BAR_DIM,
				"  no daemon: the driver itself");
}

/* "node7 8 GPUs 97 %", with a blank at each end. */
static void host_text(const char *name, const struct takt_top_model *model, char ret[HOST_TEXT])
{
	struct sums sums = sum_up(&model->now.status);
	uint32_t gpus = model->now.status.gpu_count;

	if (model->lost)
		snprintf(ret, HOST_TEXT, " %.40s NO NEWS ", name);
	else if (sums.util_known)
		snprintf(ret, HOST_TEXT, " %.40s %u GPU%s %u %% ", name, gpus, gpus == 1 ? "" : "s",
			 (uint32_t)(sums.util_pct / sums.util_known));
	else
		snprintf(ret, HOST_TEXT, " %.40s %u GPU%s ", name, gpus, gpus == 1 ? "" : "s");
}

static int host_width(const struct takt_top_hosts *hosts, uint32_t i)
{
	char text[HOST_TEXT];

	host_text(hosts->at[i].name, hosts->at[i].model, text);
	return takt_cells_width(text);
}

/* The first that is drawn, so that there is room for the one that is shown. */
static uint32_t first_host(const struct takt_top_hosts *hosts, int cols)
{
	uint32_t first = hosts->shown;

	for (int used = host_width(hosts, first); first > 0; first--) {
		used += host_width(hosts, first - 1);
		if (used > cols)
			break;
	}
	return first;
}

void takt_draw_hosts(struct takt_cells *cells, const struct takt_top_hosts *hosts,
		     struct takt_area area)
{
	int at = area.col, end = area.col + area.cols;
	char text[HOST_TEXT];

	if (area.rows == 0)
		return;
	for (uint32_t i = first_host(hosts, area.cols); i < hosts->count && at < end; i++) {
		const struct takt_top_model *model = hosts->at[i].model;
		enum takt_role role = model->lost ? TAKT_ROLE_ALARM : TAKT_ROLE_DIM;

		host_text(hosts->at[i].name, model, text);
		at += takt_cells_text(cells, area.row, at, end - at,
				      i == hosts->shown ? TAKT_ROLE_BAR : role, text);
	}
}

static void draw_hints(struct takt_cells *cells, struct takt_area area)
{
	int at = area.col;

	for (const struct takt_top_hint *hint = takt_top_hints; hint->name; hint++) {
		int width = takt_cells_width(hint->name) + takt_cells_width(hint->label) + 2;

		if (at + width > area.col + area.cols)
			return;
		at += takt_cells_text(cells, area.row, at, area.cols - at, TAKT_ROLE_KEY,
				      hint->name);
		at += takt_cells_textf(cells, area.row, at, area.cols - at, TAKT_ROLE_BAR_DIM,
				       "%s ", hint->label);
	}
}

void takt_draw_footer(struct takt_cells *cells, const struct takt_top_ui *ui, struct takt_area area)
{
	if (ui->filtering)
		takt_cells_textf(cells, area.row, area.col, area.cols, TAKT_ROLE_BOLD,
				 "Filter: %s_   Enter keeps it, Esc takes it away", ui->filter);
	else if (ui->notice[0])
		takt_cells_text(cells, area.row, area.col, area.cols,
				ui->notice_bad ? TAKT_ROLE_ALARM : TAKT_ROLE_GOOD, ui->notice);
	else
		draw_hints(cells, area);
}

/* In the middle, blank, with a frame. */
static struct takt_area box(struct takt_cells *cells, int rows, int cols, const char *title)
{
	struct takt_area area;

	rows = rows < cells->rows ? rows : cells->rows;
	cols = cols < cells->cols ? cols : cells->cols;
	area = (struct takt_area){(cells->rows - rows) / 2, (cells->cols - cols) / 2, rows, cols};
	takt_cells_fill(cells, area, TAKT_ROLE_PLAIN);
	for (int r = 0; r < rows; r++)
		for (int c = 0; c < cols; c++)
			cells->at[(area.row + r) * cells->cols + area.col + c].selected = false;
	takt_cells_frame(cells, area, TAKT_ROLE_FOCUS, title);
	return area;
}

void takt_draw_help(struct takt_cells *cells)
{
	static const char *const keys[][2] = {
		{"Tab, Shift-Tab", "GPUs, jobs, processes"},
		{"arrows, j k, PgUp PgDn, g G", "move"},
		{"Enter; Esc", "zoom on a GPU or job; back"},
		{"/ or F4", "filter jobs and processes"},
		{"F5 or t", "processes below their jobs"},
		{"F6 or s, I", "next order; the other way round"},
		{"M P U", "processes by memory, pid, user"},
		{"F2 or m", "what the graphs show"},
		{"c", "cancel the job"},
		{"R", "requeue the job: end it, let it begin anew"},
		{"H", "hold the job, or release it"},
		{"F9 or K", "signal the process"},
		{"[ ]", "the previous, next machine"},
		{"+ -", "look more often, less often"},
		{"Space", "stand still"},
		{"F1 ? h", "this help"},
		{"F10 q", "quit"},
	};
	int count = (int)TAKT_ARRAY_LEN(keys);
	struct takt_area area = box(cells, count + 4, 60, "takt top");

	for (int i = 0; i < count && i < area.rows - 2; i++) {
		takt_cells_text(cells, area.row + 1 + i, area.col + 2, 28, TAKT_ROLE_BOLD,
				keys[i][0]);
		takt_cells_text(cells, area.row + 1 + i, area.col + 31, area.cols - 33,
				TAKT_ROLE_PLAIN, keys[i][1]);
	}
	takt_cells_text(cells, area.row + area.rows - 2, area.col + 2, area.cols - 4, TAKT_ROLE_DIM,
			"The mouse selects, zooms with two clicks, and scrolls.");
}

static void ask_line(struct takt_cells *cells, struct takt_area area, int line, const char *name,
		     const char *text)
{
	takt_cells_text(cells, area.row + line, area.col + 2, 10, TAKT_ROLE_DIM, name);
	takt_cells_text(cells, area.row + line, area.col + 12, area.cols - 14, TAKT_ROLE_BOLD,
			text[0] ? text : "(not known)");
}

void takt_draw_ask(struct takt_cells *cells, const struct takt_top_ask *ask)
{
	int more = ask->host[0] ? 1 : 0;
	struct takt_area area = box(cells, 9 + more, ASK_COLS, ask->title);
	int last = area.row + area.rows - 2;

	if (more)
		ask_line(cells, area, 1, "host", ask->host);
	area.row += more;
	ask_line(cells, area, 1, "user", ask->user);
	ask_line(cells, area, 2, "command", ask->command);
	ask_line(cells, area, 3, "GPUs", ask->gpus);
	takt_cells_text(cells, area.row + 4, area.col + 2, area.cols - 4, TAKT_ROLE_MIND,
			ask->note);
	if (ask->kind == TAKT_DEED_SIGNAL)
		takt_cells_textf(cells, area.row + 5, area.col + 2, area.cols - 4, TAKT_ROLE_PLAIN,
				 "signal    < %s >   arrows choose another",
				 takt_top_signals[ask->choice].name);
	takt_cells_text(cells, last, area.col + 2, area.cols - 4, TAKT_ROLE_ALARM,
			"y  do it      n  leave it");
}

void takt_top_draw(struct takt_cells *cells, const struct takt_top_ui *ui,
		   const struct takt_top_model *model, const struct takt_top_layout *layout)
{
	struct takt_area middle = {layout->gpus.row, 0,
				   layout->footer.row - layout->gpus.row - layout->procs.rows,
				   cells->cols};

	takt_cells_clear(cells);
	takt_draw_header(cells, ui, model, layout->header);
	takt_draw_hosts(cells, &ui->hosts, layout->hosts);
	if (ui->look == TAKT_LOOK_ALL) {
		takt_draw_gpus(cells, ui, model, layout);
		takt_draw_list(cells, ui, model, TAKT_PANE_JOBS, layout->jobs);
	} else if (ui->look == TAKT_LOOK_JOB) {
		takt_draw_job(cells, model, ui->look_at, middle);
	} else if (ui->look_at < model->now.status.gpu_count) {
		takt_draw_gpu(cells, model, (uint32_t)ui->look_at, middle);
	}
	takt_draw_list(cells, ui, model, TAKT_PANE_PROCS, layout->procs);
	takt_draw_footer(cells, ui, layout->footer);
	if (model->lost && !ui->notice[0]) {
		takt_cells_fill(cells, layout->footer, TAKT_ROLE_PLAIN);
		takt_cells_text(cells, layout->footer.row, 0, cells->cols, TAKT_ROLE_ALARM,
				model->lost_why);
	}
	if (ui->help)
		takt_draw_help(cells);
	if (ui->ask.kind)
		takt_draw_ask(cells, &ui->ask);
}
