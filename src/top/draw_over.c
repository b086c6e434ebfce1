/* SPDX-License-Identifier: Apache-2.0 */
/* The last line, and what lies above the picture: help and questions. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "top/top_draw.h"
#include "top/top_text.h"

const struct takt_top_signal takt_top_signals[] = {
	{15, "SIGTERM"}, {2, "SIGINT"},	  {9, "SIGKILL"},  {10, "SIGUSR1"},
	{12, "SIGUSR2"}, {19, "SIGSTOP"}, {18, "SIGCONT"}, {0, NULL},
};

enum {
	ASK_COLS = 96, /* commands are long */
};

enum {
	IN_LISTS = 1 << TAKT_LOOK_ALL | 1 << TAKT_LOOK_JOBS,
	IN_ZOOM = 1 << TAKT_LOOK_GPU | 1 << TAKT_LOOK_JOB,
	IN_LOG = 1 << TAKT_LOOK_LOG,
	BEFORE_LOG = IN_LISTS | IN_ZOOM,
};

/* A key that is left out on narrow screens is in the help. */
static const struct takt_top_hint hints[] = {
	{TAKT_KEY_F1, "F1", "Help", BEFORE_LOG | IN_LOG, 0},
	{TAKT_KEY_ENTER, "Enter", "Zoom", IN_LISTS, 0},
	{'\t', "Tab", "List", 1 << TAKT_LOOK_ALL, 0},
	{'J', "J", "Jobs", IN_LISTS, 0, true},
	{'l', "l", "Log", 1 << TAKT_LOOK_JOB, 0},
	{TAKT_KEY_UP, "Up", "Older", IN_LOG, 0},
	{TAKT_KEY_DOWN, "Down", "Newer", IN_LOG, 0},
	{'G', "G", "Follow", IN_LOG, 0},
	{TAKT_KEY_F1 + 1, "F2", "Graph", 1 << TAKT_LOOK_ALL, 0},
	{TAKT_KEY_F1 + 3, "F4", "Filter", IN_LISTS, 0},
	{TAKT_KEY_F1 + 4, "F5", "Tree", 1 << TAKT_LOOK_ALL, 90},
	{TAKT_KEY_F1 + 5, "F6", "Sort", BEFORE_LOG, 0},
	{'c', "c", "Cancel", BEFORE_LOG, 0, true},
	{TAKT_KEY_F1 + 8, "F9", "Signal", BEFORE_LOG, 0},
	{'q', "q", "Quit", 1 << TAKT_LOOK_ALL, 0},
	{'q', "q", "Back", IN_ZOOM | IN_LOG | 1 << TAKT_LOOK_JOBS, 0},
};

const struct takt_top_hint *takt_top_next_hint(const struct takt_top_ui *ui,
					       const struct takt_top_model *model, int cols,
					       const struct takt_top_hint *hint)
{
	for (hint = hint ? hint + 1 : hints; hint < hints + TAKT_ARRAY_LEN(hints); hint++)
		if (hint->looks >> ui->look & 1 && cols >= hint->least_cols &&
		    (model->now.daemon || !hint->of_jobs))
			return hint;
	return NULL;
}

int takt_top_hint_cols(const struct takt_top_hint *hint)
{
	return takt_cells_width(hint->name) + takt_cells_width(hint->label) + 1;
}

static void draw_hints(struct takt_cells *cells, const struct takt_top_ui *ui,
		       const struct takt_top_model *model, struct takt_area area)
{
	const struct takt_top_hint *hint = NULL;
	int at = area.col;

	while ((hint = takt_top_next_hint(ui, model, area.cols, hint))) {
		if (at + takt_top_hint_cols(hint) > area.col + area.cols)
			return;
		at += takt_cells_text(cells, area.row, at, area.cols - at, TAKT_ROLE_KEY,
				      hint->name);
		at += takt_cells_textf(cells, area.row, at, area.cols - at, TAKT_ROLE_BAR_DIM,
				       "%s ", hint->label);
	}
}

void takt_draw_footer(struct takt_cells *cells, const struct takt_top_ui *ui,
		      const struct takt_top_model *model, struct takt_area area)
{
	if (ui->filtering)
		takt_cells_textf(cells, area.row, area.col, area.cols, TAKT_ROLE_BOLD,
				 "Filter: %s_   Enter keeps it, Esc takes it away", ui->filter);
	else if (ui->notice[0])
		takt_cells_text(cells, area.row, area.col, area.cols,
				ui->notice_bad ? TAKT_ROLE_ALARM : TAKT_ROLE_GOOD, ui->notice);
	else
		draw_hints(cells, ui, model, area);
}

/* In the middle, blank, with a frame; below the first line, which says what must not be overlooked.
 */
static struct takt_area box(struct takt_cells *cells, int rows, int cols, const char *title)
{
	struct takt_area area;

	rows = rows < cells->rows - 1 ? rows : cells->rows - 1;
	cols = cols < cells->cols ? cols : cells->cols;
	area = (struct takt_area){1 + (cells->rows - 1 - rows) / 2, (cells->cols - cols) / 2, rows,
				  cols};
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
		{"Enter; Esc or q", "zoom on a GPU or job; back"},
		{"J", "jobs alone, with all the room; back"},
		{"l", "the log of the job that is zoomed on"},
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
		{"q F10", "quit"},
	};
	int count = (int)TAKT_ARRAY_LEN(keys);
	struct takt_area area = box(cells, count + 4, 78, "takt top");

	for (int i = 0; i < count && i < area.rows - 2; i++) {
		takt_cells_text(cells, area.row + 1 + i, area.col + 2, 28, TAKT_ROLE_BOLD,
				keys[i][0]);
		takt_cells_text(cells, area.row + 1 + i, area.col + 31, area.cols - 33,
				TAKT_ROLE_PLAIN, keys[i][1]);
	}
	if (area.rows < 3)
		return;
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

	if (area.rows < 3)
		return;
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
	if (ui->look == TAKT_LOOK_ALL || ui->look == TAKT_LOOK_JOBS) {
		takt_draw_gpus(cells, ui, model, layout);
		takt_draw_list(cells, ui, model, TAKT_PANE_JOBS, layout->jobs);
	} else if (layout->whole.rows < 2) {
		/* Nothing has room beside head and keys. */
	} else if (ui->look == TAKT_LOOK_JOB) {
		takt_draw_job(cells, ui, model, middle);
	} else if (ui->look == TAKT_LOOK_LOG) {
		takt_draw_log(cells, ui, model, layout->whole);
	} else if (ui->look_at < model->now.status.gpu_count) {
		takt_draw_gpu(cells, model, (uint32_t)ui->look_at, middle);
	}
	if (ui->look != TAKT_LOOK_LOG)
		takt_draw_list(cells, ui, model, TAKT_PANE_PROCS, layout->procs);
	takt_draw_footer(cells, ui, model, layout->footer);
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
