/* SPDX-License-Identifier: Apache-2.0 */
/* A job in all its detail: what it is, what its GPUs did since it runs, and its log. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "top/top_draw.h"
#include "top/top_job.h"
#include "top/top_log.h"
#include "top/top_text.h"

enum {
	FACT_COLS = 56,	 /* of facts, where there is room for charts beside them */
	SIDE_COLS = 150, /* from so many on there is */
	CHART_ROWS_MOST = 16,
	CHART_LABEL = 18,
	CHART_ROWS_ALL = 4, /* from so many on a GPU's label has all its lines */
};

struct lines {
	struct takt_cells *cells;
	struct takt_area area;
	int row;
};

static void fact(struct lines *to, const char *name, enum takt_role role, const char *text)
{
	if (!text[0] || to->row >= to->area.row + to->area.rows)
		return;
	takt_cells_text(to->cells, to->row, to->area.col, 12, TAKT_ROLE_DIM, name);
	takt_cells_text(to->cells, to->row, to->area.col + 12, to->area.cols - 12, role, text);
	to->row++;
}

static void work_facts(struct lines *to, const struct takt_job_view *job)
{
	char text[TAKT_TOP_TEXT], clocks[TAKT_TOP_TEXT] = "";

	if (job->report.has & TAKT_RV_MEAN_SM)
		snprintf(clocks, sizeof(clocks), "%u MHz on average", job->report.mean_sm_mhz);
	fact(to, "energy", TAKT_ROLE_POWER + TAKT_SHADES - 1, takt_top_job_energy(job, text));
	fact(to, "memory", TAKT_ROLE_MEMORY + TAKT_SHADES - 1,
	     job->report.has & TAKT_RV_PEAK_MEMORY
		     ? takt_top_bytes(job->report.peak_memory_bytes, text)
		     : "");
	fact(to, "clock", TAKT_ROLE_PLAIN, clocks);
	fact(to, "governor", TAKT_ROLE_PLAIN, job->governed.text);
	fact(to, "held back", TAKT_ROLE_MIND, job->report.throttle_text);
}

/* What is known of it; returns the lines that it took. */
static int draw_facts(struct takt_cells *cells, const struct takt_top_model *model,
		      const struct takt_job_view *job, struct takt_area area)
{
	struct lines to = {cells, area, area.row};
	char text[TAKT_TOP_TEXT];

	fact(&to, "state", takt_top_job_state_role(job), takt_top_job_state(job));
	fact(&to, "user", TAKT_ROLE_PLAIN, job->user);
	fact(&to, "command", TAKT_ROLE_PLAIN, job->command);
	fact(&to, "GPUs", TAKT_ROLE_PLAIN, takt_top_job_gpus_text(job, text));
	takt_top_job_when(model, job, text);
	fact(&to, job->report.has & TAKT_RV_WALL ? "has run" : "starts", TAKT_ROLE_PLAIN, text);
	fact(&to, "waits", TAKT_ROLE_MIND, job->why_text);
	if (takt_top_job_runs(job))
		work_facts(&to, job);
	fact(&to, "clocks", TAKT_ROLE_PLAIN, job->clock_note);
	fact(&to, "health", TAKT_ROLE_ALARM, job->health_note);
	fact(&to, "strays", TAKT_ROLE_ALARM, job->stray_note);
	return to.row - area.row;
}

static void draw_chart_label(struct takt_cells *cells, struct takt_area area,
			     const struct takt_gpu_view *gpu)
{
	static const enum takt_top_series said[] = {TAKT_TOP_UTIL, TAKT_TOP_MEMORY, TAKT_TOP_POWER};
	char text[TAKT_TOP_TEXT];
	int at = takt_cells_textf(cells, area.row, area.col, CHART_LABEL - 1, TAKT_ROLE_BOLD,
				  "GPU %u", gpu->index);

	if (area.rows < CHART_ROWS_ALL) {
		takt_cells_right(cells, area.row, area.col + at, CHART_LABEL - 2 - at,
				 TAKT_ROLE_UTIL + TAKT_SHADES - 1,
				 takt_draw_value(gpu, TAKT_TOP_UTIL, text));
		return;
	}
	if (gpu->share_count)
		takt_cells_text(cells, area.row, area.col + at + 1, CHART_LABEL - 2 - at,
				TAKT_ROLE_MIND, "shared");
	for (size_t i = 0; i < TAKT_ARRAY_LEN(said); i++)
		takt_cells_text(cells, area.row + 1 + (int)i, area.col, CHART_LABEL - 1,
				takt_series_role(said[i]) + TAKT_SHADES - 1,
				takt_draw_value(gpu, said[i], text));
}

/* The samples since the job began: what was on the GPU before it is not its. */
static uint32_t samples_of(const struct takt_top_ui *ui, const struct takt_job_view *job)
{
	uint64_t samples = job->report.wall_ms * ui->rate_milli_hz / 1000000;

	return samples < TAKT_TOP_HISTORY ? (uint32_t)samples + 1 : TAKT_TOP_HISTORY;
}

/* One GPU: its use, memory and power beside each other. */
static void draw_charts(struct takt_cells *cells, const struct takt_top_ui *ui,
			const struct takt_top_model *model, const struct takt_job_view *job,
			uint32_t gpu, struct takt_area area)
{
	static const enum takt_top_series drawn[] = {TAKT_TOP_UTIL, TAKT_TOP_MEMORY,
						     TAKT_TOP_POWER};
	int count = (int)TAKT_ARRAY_LEN(drawn), cols = (area.cols - CHART_LABEL) / count - 2;

	draw_chart_label(cells, area, &model->now.status.gpus[gpu]);
	for (int i = 0; i < count && cols > 0; i++)
		takt_draw_curve(cells,
				(struct takt_area){area.row,
						   area.col + CHART_LABEL + i * (cols + 2),
						   area.rows, cols},
				&model->history[gpu], drawn[i], samples_of(ui, job));
}

static void draw_chart_heads(struct takt_cells *cells, struct takt_area area)
{
	static const char *const names[] = {"util", "memory", "power"};
	int count = (int)TAKT_ARRAY_LEN(names), cols = (area.cols - CHART_LABEL) / count - 2;

	for (int i = 0; i < count && cols > 0; i++)
		takt_cells_text(cells, area.row, area.col + CHART_LABEL + i * (cols + 2), cols,
				TAKT_ROLE_HEAD, names[i]);
}

/* All its GPUs below each other, as many as there is room for. */
static void draw_gpus(struct takt_cells *cells, const struct takt_top_ui *ui,
		      const struct takt_top_model *model, const struct takt_job_view *job,
		      struct takt_area area)
{
	uint32_t count = job->gpu_list_count;
	int rows = area.rows - 1, each = count ? rows / (int)count : 0, row = area.row + 1;

	if (!takt_top_job_runs(job) || rows < 1)
		return;
	draw_chart_heads(cells, area);
	each = each < 1 ? 1 : each > CHART_ROWS_MOST ? CHART_ROWS_MOST : each;
	for (uint32_t i = 0; i < count && row + each <= area.row + area.rows; i++) {
		int gap = each > 2 ? 1 : 0;

		if (job->gpu_list[i] >= model->now.status.gpu_count)
			continue;
		draw_charts(cells, ui, model, job, job->gpu_list[i],
			    (struct takt_area){row, area.col, each - gap, area.cols});
		row += each;
	}
}

/* Charts are beside the facts where there is room, else below them. */
void takt_draw_job(struct takt_cells *cells, const struct takt_top_ui *ui,
		   const struct takt_top_model *model, struct takt_area area)
{
	const struct takt_job_view *job = takt_top_find_job(model, ui->look_at);
	struct takt_area facts = {area.row + 1, area.col + 2, area.rows - 2, area.cols - 4},
			 charts = facts;
	char title[120];

	snprintf(title, sizeof(title), "job %" PRIu64 " %s", ui->look_at, job ? job->name : "");
	takt_cells_frame(cells, area, TAKT_ROLE_FOCUS, title);
	if (!job) {
		takt_cells_text(cells, facts.row, facts.col, facts.cols, TAKT_ROLE_DIM,
				"it has ended: 'takt show' has its report");
		return;
	}
	if (area.cols >= SIDE_COLS) {
		facts.cols = FACT_COLS;
		charts.col += FACT_COLS + 2;
		charts.cols -= FACT_COLS + 2;
		draw_facts(cells, model, job, facts);
	} else {
		if (takt_top_job_runs(job))
			facts.rows = facts.rows / 2 + 1;
		charts.row += draw_facts(cells, model, job, facts);
		charts.rows -= charts.row - facts.row;
	}
	draw_gpus(cells, ui, model, job, charts);
}

/* The log's first line that is shown, of those that are kept. */
static size_t first_shown(const struct takt_top_ui *ui, const struct takt_top_log *log, int rows)
{
	size_t lines = takt_top_log_lines(log), last = 0;
	uint64_t first =
		ui->log_first > log->dropped_lines ? ui->log_first - log->dropped_lines : 0;

	if (rows > 0 && lines > (size_t)rows)
		last = lines - (size_t)rows;
	return ui->log_follows || first > last ? last : (size_t)first;
}

/* From the column on that is the first shown. */
static const char *skip_cols(const char *text, int cols)
{
	for (; cols > 0 && *text; cols--)
		for (text++; (*text & 0xc0) == 0x80; text++)
			;
	return text;
}

static void draw_log_lines(struct takt_cells *cells, const struct takt_top_ui *ui,
			   const struct takt_top_log *log, struct takt_area area)
{
	size_t lines = takt_top_log_lines(log), first = first_shown(ui, log, area.rows), len;
	const char *at = takt_top_log_line(log, first, &len);

	for (int row = 0; row < area.rows && first + (size_t)row < lines; row++) {
		char text[TAKT_TOP_LOG_LINE];

		takt_top_log_plain(at, len, text);
		takt_cells_text(cells, area.row + row, area.col, area.cols, TAKT_ROLE_PLAIN,
				skip_cols(text, ui->log_left));
		at += len + (at[len] == '\n');
		len = strcspn(at, "\n");
	}
	area.row--;
	area.rows++;
	area.cols++;
	takt_draw_scroll_marks(cells, area, first > 0 || log->dropped_lines > 0,
			       first + (size_t)area.rows - 1 < lines);
}

void takt_draw_log(struct takt_cells *cells, const struct takt_top_ui *ui,
		   const struct takt_top_model *model, struct takt_area area)
{
	const struct takt_top_log *log = &model->now.log;
	bool read = log->job_id == ui->look_at;
	char title[120];

	snprintf(title, sizeof(title), "log of job %" PRIu64 "%s", ui->look_at,
		 !read		   ? ""
		 : log->over	   ? ", which has ended"
		 : ui->log_follows ? ", followed"
				   : "");
	takt_cells_frame(cells, area, TAKT_ROLE_FOCUS, title);
	area = (struct takt_area){area.row + 1, area.col + 2, area.rows - 2, area.cols - 4};
	if (!read || log->why_not[0] || log->text.len == 0)
		takt_cells_text(cells, area.row, area.col, area.cols, TAKT_ROLE_DIM,
				!read		  ? "it is being read"
				: log->why_not[0] ? log->why_not
						  : "nothing was printed yet");
	else
		draw_log_lines(cells, ui, log, area);
}
