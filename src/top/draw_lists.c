/* SPDX-License-Identifier: Apache-2.0 */
/* The lists of jobs and processes. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "top/top_columns.h"
#include "top/top_draw.h"
#include "top/top_job.h"
#include "top/top_text.h"

enum job_column {
	JOB_ID,
	JOB_USER,
	JOB_STATE,
	JOB_GPUS,
	JOB_NAME,
	JOB_WHEN,
	JOB_ENERGY,
	JOB_MORE,
	JOB_COLUMNS,
};

static const struct takt_top_column job_columns[] = {
	[JOB_ID] = {"JOB", 5, 7, 0, true},	  [JOB_USER] = {"USER", 5, 10, 2, false},
	[JOB_STATE] = {"STATE", 8, 9, 0, false},  [JOB_GPUS] = {"GPUS", 5, 10, 0, false},
	[JOB_NAME] = {"NAME", 8, 24, 0, false},	  [JOB_WHEN] = {"TIME", 9, 14, 0, true},
	[JOB_ENERGY] = {"ENERGY", 8, 9, 3, true}, [JOB_MORE] = {"", 12, 300, 4, false},
};

enum proc_column {
	PROC_PID,
	PROC_USER,
	PROC_JOB,
	PROC_GPUS,
	PROC_MEM,
	PROC_SM,
	PROC_MEM_UTIL,
	PROC_CPU,
	PROC_TIME,
	PROC_ENERGY,
	PROC_COMMAND,
	PROC_COLUMNS,
};

static const struct takt_top_column proc_columns[] = {
	[PROC_PID] = {"PID", 7, 8, 0, true},
	[PROC_USER] = {"USER", 5, 10, 0, false},
	[PROC_JOB] = {"JOB", 5, 7, 2, true},
	[PROC_GPUS] = {"GPUS", 4, 10, 0, false},
	[PROC_MEM] = {"MEM", 6, 7, 0, true},
	[PROC_SM] = {"%SM", 4, 4, 0, true},
	[PROC_MEM_UTIL] = {"%GMBW", 5, 5, 4, true},
	[PROC_CPU] = {"%CPU", 5, 5, 1, true},
	[PROC_TIME] = {"TIME", 6, 7, 3, true},
	[PROC_ENERGY] = {"ENERGY", 8, 9, 5, true},
	[PROC_COMMAND] = {"COMMAND", 12, 400, 0, false},
};

struct place {
	struct takt_cells *cells;
	int row, col, width;
	bool right;
};

static void say(const struct place *at, enum takt_role role, const char *text)
{
	if (at->right)
		takt_cells_right(at->cells, at->row, at->col, at->width, role, text);
	else
		takt_cells_text(at->cells, at->row, at->col, at->width, role, text);
}

static void job_cell(const struct place *at, const struct takt_top_model *model,
		     const struct takt_job_view *job, enum job_column column)
{
	char text[TAKT_TOP_TEXT];

	switch (column) {
	case JOB_ID:
		snprintf(text, sizeof(text), "%" PRIu64, job->id);
		say(at, TAKT_ROLE_BOLD, text);
		break;
	case JOB_USER:
		say(at, TAKT_ROLE_PLAIN, job->user);
		break;
	case JOB_STATE:
		say(at, takt_top_job_state_role(job), takt_top_job_state(job));
		break;
	case JOB_GPUS:
		say(at, TAKT_ROLE_PLAIN, takt_top_job_gpus_text(job, text));
		break;
	case JOB_NAME:
		say(at, TAKT_ROLE_JOB, job->name[0] ? job->name : "-");
		break;
	case JOB_WHEN:
		takt_top_job_when(model, job, text);
		say(at, TAKT_ROLE_PLAIN, text);
		break;
	case JOB_ENERGY:
		say(at, TAKT_ROLE_POWER + TAKT_SHADES - 1, takt_top_job_energy(job, text));
		break;
	default:
		say(at, TAKT_ROLE_DIM, takt_top_job_more(job, at->width));
	}
}

/* What the driver does not tell of a process is unknown, and not 0. */
static const char *mean_pct(uint32_t sum, uint32_t gpus, char ret[TAKT_TOP_TEXT])
{
	if (gpus == 0)
		return "-";
	snprintf(ret, TAKT_TOP_TEXT, "%u", (sum + gpus / 2) / gpus);
	return ret;
}

static const char *cpu_text(const struct takt_top_proc *proc, char ret[TAKT_TOP_TEXT])
{
	if (!proc->cpu_known)
		return "-";
	snprintf(ret, TAKT_TOP_TEXT, "%u", (proc->cpu_permille + 5) / 10);
	return ret;
}

static void use_cell(const struct place *at, const struct takt_top_proc *proc,
		     enum proc_column column)
{
	char text[TAKT_TOP_TEXT];

	switch (column) {
	case PROC_SM:
		say(at, TAKT_ROLE_UTIL + TAKT_SHADES - 1,
		    mean_pct(proc->sm_pct_sum, proc->util_gpus, text));
		break;
	case PROC_MEM_UTIL:
		say(at, TAKT_ROLE_PLAIN, mean_pct(proc->mem_pct_sum, proc->util_gpus, text));
		break;
	case PROC_CPU:
		say(at, TAKT_ROLE_PLAIN, cpu_text(proc, text));
		break;
	default:
		say(at, TAKT_ROLE_PLAIN,
		    proc->id.start_ticks ? takt_top_span(proc->run_ms, text) : "-");
	}
}

static void proc_cell(const struct place *at, const struct takt_top_model *model,
		      const struct takt_top_proc *proc, enum proc_column column)
{
	char text[TAKT_TOP_TEXT];

	switch (column) {
	case PROC_PID:
		snprintf(text, sizeof(text), "%d", proc->id.pid);
		say(at, TAKT_ROLE_BOLD, text);
		break;
	case PROC_USER:
		say(at, TAKT_ROLE_PLAIN, proc->user[0] ? proc->user : "-");
		break;
	case PROC_JOB:
		snprintf(text, sizeof(text), "#%" PRIu64, proc->job_id);
		say(at, TAKT_ROLE_JOB, proc->job_id ? text : "-");
		break;
	case PROC_GPUS:
		say(at, TAKT_ROLE_PLAIN, takt_top_gpus(proc->gpu_mask, text));
		break;
	case PROC_MEM:
		say(at, TAKT_ROLE_MEMORY + TAKT_SHADES - 1,
		    proc->memory_known ? takt_top_bytes(proc->memory_bytes, text) : "-");
		break;
	case PROC_SM:
	case PROC_MEM_UTIL:
	case PROC_CPU:
	case PROC_TIME:
		use_cell(at, proc, column);
		break;
	case PROC_ENERGY:
		say(at, TAKT_ROLE_POWER + TAKT_SHADES - 1,
		    takt_top_job_energy(takt_top_find_job(model, proc->job_id), text));
		break;
	default:
		say(at, proc->command[0] ? TAKT_ROLE_PLAIN : TAKT_ROLE_DIM,
		    proc->command[0] ? proc->command : "(not yours to see)");
	}
}

/* A job's line above its processes, in the columns of processes. */
static void parent_cell(const struct place *at, const struct takt_job_view *job,
			enum proc_column column)
{
	char text[TAKT_TOP_TEXT];

	switch (column) {
	case PROC_PID:
		say(at, TAKT_ROLE_DIM, at->cells->ascii ? "v" : "\u25be");
		break;
	case PROC_USER:
		say(at, TAKT_ROLE_PLAIN, job->user);
		break;
	case PROC_JOB:
		snprintf(text, sizeof(text), "#%" PRIu64, job->id);
		say(at, TAKT_ROLE_JOB, text);
		break;
	case PROC_GPUS:
		say(at, TAKT_ROLE_PLAIN, takt_top_job_gpus_text(job, text));
		break;
	case PROC_ENERGY:
		say(at, TAKT_ROLE_POWER + TAKT_SHADES - 1, takt_top_job_energy(job, text));
		break;
	case PROC_COMMAND:
		say(at, TAKT_ROLE_JOB, job->name[0] ? job->name : job->command);
		break;
	default:
		break;
	}
}

static void draw_row(struct place at, const struct takt_top_model *model, bool jobs,
		     const struct takt_top_row *row, const int *widths)
{
	const struct takt_top_column *columns = jobs ? job_columns : proc_columns;
	int count = jobs ? JOB_COLUMNS : PROC_COLUMNS;

	for (int c = 0; c < count; c++) {
		int indent = !jobs && row->child && !row->is_job && c == PROC_COMMAND ? 2 : 0;

		if (!widths[c])
			continue;
		at.right = columns[c].right;
		at.width = widths[c] - indent;
		at.col += indent;
		if (jobs)
			job_cell(&at, model, &model->now.queue.jobs[row->at], c);
		else if (row->is_job)
			parent_cell(&at, &model->now.queue.jobs[row->at], c);
		else
			proc_cell(&at, model, &model->now.procs.at[row->at], c);
		at.col += widths[c] - indent + 1;
	}
}

/* "12", or "3-8 of 12" where there is no room for all. */
static const char *count_text(int first, int lines, size_t count, char ret[TAKT_TOP_TEXT])
{
	if (lines < 1 || (int)count <= lines)
		snprintf(ret, TAKT_TOP_TEXT, "%zu", count);
	else
		snprintf(ret, TAKT_TOP_TEXT, "%d-%d of %zu", first + 1, first + lines, count);
	return ret;
}

static void draw_title(struct takt_cells *cells, const struct takt_top_ui *ui,
		       const struct takt_top_model *model, enum takt_top_pane pane,
		       struct takt_area area, size_t count)
{
	bool jobs = pane == TAKT_PANE_JOBS, focus = ui->focus == pane;
	enum takt_role line = focus ? TAKT_ROLE_FOCUS : TAKT_ROLE_FRAME;
	char sorted[64], counted[TAKT_TOP_TEXT];
	int at;

	for (int c = 0; c < area.cols; c++)
		takt_cells_put(cells, area.row, area.col + c, line, cells->ascii ? '-' : 0x2500);
	at = 2 + takt_cells_textf(cells, area.row, area.col + 2, area.cols - 4,
				  focus ? TAKT_ROLE_BOLD : TAKT_ROLE_HEAD, " %s %s ",
				  jobs ? "Jobs" : "Processes",
				  count_text(ui->first[pane], area.rows - 2, count, counted));
	if (jobs && model->now.queue.total > model->now.queue.count)
		at += takt_cells_textf(cells, area.row, area.col + at, area.cols - at - 2,
				       TAKT_ROLE_DIM, "of %" PRIu64 " ", model->now.queue.total);
	if (!jobs && takt_top_unlisted(&model->now))
		at += takt_cells_textf(cells, area.row, area.col + at, area.cols - at - 2,
				       TAKT_ROLE_MIND, "and %" PRIu64 " that are not listed ",
				       takt_top_unlisted(&model->now));
	if (ui->filter[0])
		takt_cells_textf(cells, area.row, area.col + at + 1, area.cols - at - 4,
				 TAKT_ROLE_MIND, " filter: %s ", ui->filter);
	snprintf(sorted, sizeof(sorted), " by %s%s ", takt_top_sort_name(pane, ui->sort[pane]),
		 ui->reversed[pane] ? ", reversed" : "");
	if (area.cols >= 50)
		takt_cells_right(cells, area.row, area.col, area.cols - 2, TAKT_ROLE_DIM, sorted);
}

static void draw_heads(struct takt_cells *cells, struct takt_area area, bool jobs,
		       const int *widths)
{
	const struct takt_top_column *columns = jobs ? job_columns : proc_columns;
	int count = jobs ? JOB_COLUMNS : PROC_COLUMNS;
	struct place at = {cells, area.row + 1, area.col, 0, false};

	for (int c = 0; c < count; c++) {
		if (!widths[c])
			continue;
		at.width = widths[c];
		at.right = columns[c].right;
		say(&at, TAKT_ROLE_HEAD, columns[c].title);
		at.col += widths[c] + 1;
	}
}

void takt_draw_scroll_marks(struct takt_cells *cells, struct takt_area area, bool above, bool below)
{
	int col = area.col + area.cols - 1;

	if (above && area.rows > 1)
		takt_cells_put(cells, area.row + 1, col, TAKT_ROLE_FOCUS,
			       cells->ascii ? '^' : 0x25b2);
	if (below && area.rows > 1)
		takt_cells_put(cells, area.row + area.rows - 1, col, TAKT_ROLE_FOCUS,
			       cells->ascii ? 'v' : 0x25bc);
}

/* Without a daemon there are no jobs. */
static void fit_columns(const struct takt_top_model *model, bool jobs, int width, int *ret_widths)
{
	struct takt_top_column columns[PROC_COLUMNS];

	if (jobs) {
		takt_top_fit(job_columns, JOB_COLUMNS, width, ret_widths);
		return;
	}
	memcpy(columns, proc_columns, sizeof(columns));
	if (!model->now.daemon)
		columns[PROC_JOB].min = columns[PROC_ENERGY].min = 0;
	takt_top_fit(columns, PROC_COLUMNS, width, ret_widths);
}

void takt_draw_list(struct takt_cells *cells, const struct takt_top_ui *ui,
		    const struct takt_top_model *model, enum takt_top_pane pane,
		    struct takt_area area)
{
	bool jobs = pane == TAKT_PANE_JOBS;
	int widths[TAKT_TOP_COLUMNS] = {0}, lines = area.rows - 2;
	struct takt_top_rows rows;

	if (area.rows < 1)
		return;
	fit_columns(model, jobs, area.cols - 1, widths);
	takt_top_list(ui, model, pane, &rows);
	draw_title(cells, ui, model, pane, area, rows.all.len);
	draw_heads(cells, area, jobs, widths);
	for (int i = 0; i < lines; i++) {
		int at = ui->first[pane] + i, row = area.row + 2 + i;

		if (at >= (int)rows.all.len)
			break;
		draw_row((struct place){cells, row, area.col, 0, false}, model, jobs,
			 &rows.all.at[at], widths);
		if (ui->focus == pane && ui->selected[pane] == at)
			takt_cells_select(cells, row, area.col, area.cols);
	}
	takt_draw_scroll_marks(
		cells, (struct takt_area){area.row + 1, area.col, area.rows - 1, area.cols},
		ui->first[pane] > 0, lines > 0 && ui->first[pane] + lines < (int)rows.all.len);
	if (rows.all.len == 0 && lines > 0)
		takt_cells_text(cells, area.row + 2, area.col + 2, area.cols - 4, TAKT_ROLE_DIM,
				ui->filter[0] ? "nothing passes the filter"
				: jobs	      ? "no jobs"
					      : "no process is on a GPU");
	takt_vec_fini(&rows.all);
}
