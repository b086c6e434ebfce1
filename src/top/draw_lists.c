/* SPDX-License-Identifier: Apache-2.0 */
/* The lists of jobs and processes, and a job in all its detail. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "top/top_columns.h"
#include "top/top_draw.h"
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
	[PROC_ENERGY] = {"ENERGY", 8, 9, 3, true},
	[PROC_COMMAND] = {"COMMAND", 8, 400, 0, false},
};

static const struct takt_job_view *find_job(const struct takt_top_model *model, uint64_t id)
{
	for (size_t i = 0; id && i < model->now.queue.count; i++)
		if (model->now.queue.jobs[i].id == id)
			return &model->now.queue.jobs[i];
	return NULL;
}

static bool runs(const struct takt_job_view *job)
{
	return job->started_ms != 0 && job->ended_ms == 0 && job->gpu_list_count != 0 &&
	       !job->why[0];
}

/* Running: for how long. Waiting: when it is thought to start. */
static void when_text(const struct takt_top_model *model, const struct takt_job_view *job,
		      char ret[TAKT_TOP_TEXT])
{
	int64_t now_ms = model->now.at.ns / 1000000, in_ms = job->start.starts_ms - now_ms;
	char text[TAKT_TOP_TEXT];

	if (job->report.has & TAKT_RV_WALL)
		takt_top_span(job->report.wall_ms, ret);
	else if (job->start.starts_ms)
		snprintf(ret, TAKT_TOP_TEXT, "in %s",
			 takt_top_span(in_ms > 0 ? (uint64_t)in_ms : 0, text));
	else
		takt_strcpy(ret, TAKT_TOP_TEXT, "-");
}

static const char *energy_text(const struct takt_job_view *job, char ret[TAKT_TOP_TEXT])
{
	if (!job || !(job->report.has & TAKT_RV_ENERGY))
		return "-";
	return takt_top_energy(job->report.energy_mj, ret);
}

static enum takt_role state_role(const struct takt_job_view *job)
{
	if (job->held[0] || job->frozen)
		return TAKT_ROLE_DIM;
	return strcmp(job->state, "running") == 0 ? TAKT_ROLE_GOOD : TAKT_ROLE_MIND;
}

static const char *state_text(const struct takt_job_view *job)
{
	return job->frozen ? "frozen" : job->held[0] ? "held" : job->state;
}

static const char *more_text(const struct takt_job_view *job)
{
	return job->stray_note[0]    ? job->stray_note
	       : job->health_note[0] ? job->health_note
	       : job->why_text[0]    ? job->why_text
				     : job->command;
}

static const char *gpus_text(const struct takt_job_view *job, char ret[TAKT_TOP_TEXT])
{
	if (job->gpu_list_count)
		return takt_top_gpus(takt_top_job_gpus(job), ret);
	snprintf(ret, TAKT_TOP_TEXT, "%u of", job->gpus);
	if (job->gpu_milli && job->gpu_milli < 1000)
		snprintf(ret, TAKT_TOP_TEXT, "%u.%02u", job->gpu_milli / 1000,
			 job->gpu_milli % 1000 / 10);
	else
		snprintf(ret, TAKT_TOP_TEXT, "x%u", job->gpus);
	return ret;
}

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
		say(at, state_role(job), state_text(job));
		break;
	case JOB_GPUS:
		say(at, TAKT_ROLE_PLAIN, gpus_text(job, text));
		break;
	case JOB_NAME:
		say(at, TAKT_ROLE_JOB, job->name[0] ? job->name : "-");
		break;
	case JOB_WHEN:
		when_text(model, job, text);
		say(at, TAKT_ROLE_PLAIN, text);
		break;
	case JOB_ENERGY:
		say(at, TAKT_ROLE_POWER + TAKT_SHADES - 1, energy_text(job, text));
		break;
	default:
		say(at, TAKT_ROLE_DIM, more_text(job));
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
	case PROC_ENERGY:
		say(at, TAKT_ROLE_POWER + TAKT_SHADES - 1,
		    energy_text(find_job(model, proc->job_id), text));
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
		say(at, TAKT_ROLE_PLAIN, gpus_text(job, text));
		break;
	case PROC_ENERGY:
		say(at, TAKT_ROLE_POWER + TAKT_SHADES - 1, energy_text(job, text));
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

static void draw_title(struct takt_cells *cells, const struct takt_top_ui *ui,
		       const struct takt_top_model *model, enum takt_top_pane pane,
		       struct takt_area area, size_t count)
{
	bool jobs = pane == TAKT_PANE_JOBS, focus = ui->focus == pane;
	enum takt_role line = focus ? TAKT_ROLE_FOCUS : TAKT_ROLE_FRAME;
	char sorted[64];
	int at;

	for (int c = 0; c < area.cols; c++)
		takt_cells_put(cells, area.row, area.col + c, line, cells->ascii ? '-' : 0x2500);
	at = 2 + takt_cells_textf(cells, area.row, area.col + 2, area.cols - 4,
				  focus ? TAKT_ROLE_BOLD : TAKT_ROLE_HEAD, " %s %zu ",
				  jobs ? "Jobs" : "Processes", count);
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

void takt_draw_list(struct takt_cells *cells, const struct takt_top_ui *ui,
		    const struct takt_top_model *model, enum takt_top_pane pane,
		    struct takt_area area)
{
	bool jobs = pane == TAKT_PANE_JOBS;
	int widths[TAKT_TOP_COLUMNS] = {0}, lines = area.rows - 2;
	struct takt_top_rows rows;

	if (area.rows < 1)
		return;
	takt_top_fit(jobs ? job_columns : proc_columns, jobs ? JOB_COLUMNS : PROC_COLUMNS,
		     area.cols, widths);
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
	if (rows.all.len == 0 && lines > 0)
		takt_cells_text(cells, area.row + 2, area.col + 2, area.cols - 4, TAKT_ROLE_DIM,
				ui->filter[0] ? "nothing passes the filter"
				: jobs	      ? "no jobs"
					      : "no process is on a GPU");
	takt_vec_fini(&rows.all);
}

struct lines {
	struct takt_cells *cells;
	struct takt_area area;
	int row;
};

static void fact(struct lines *to, const char *name, enum takt_role role, const char *text)
{
	if (!text[0] || to->row >= to->area.row + to->area.rows - 1)
		return;
	takt_cells_text(to->cells, to->row, to->area.col + 2, 12, TAKT_ROLE_DIM, name);
	takt_cells_text(to->cells, to->row, to->area.col + 14, to->area.cols - 16, role, text);
	to->row++;
}

static void work_facts(struct lines *to, const struct takt_job_view *job)
{
	char text[TAKT_TOP_TEXT], clocks[TAKT_TOP_TEXT] = "";

	if (job->report.has & TAKT_RV_MEAN_SM)
		snprintf(clocks, sizeof(clocks), "%u MHz on average", job->report.mean_sm_mhz);
	fact(to, "energy", TAKT_ROLE_POWER + TAKT_SHADES - 1, energy_text(job, text));
	fact(to, "memory", TAKT_ROLE_MEMORY + TAKT_SHADES - 1,
	     job->report.has & TAKT_RV_PEAK_MEMORY
		     ? takt_top_bytes(job->report.peak_memory_bytes, text)
		     : "");
	fact(to, "clock", TAKT_ROLE_PLAIN, clocks);
	fact(to, "governor", TAKT_ROLE_PLAIN, job->governed.text);
	fact(to, "held back", TAKT_ROLE_MIND, job->report.throttle_text);
}

void takt_draw_job(struct takt_cells *cells, const struct takt_top_model *model, uint64_t job_id,
		   struct takt_area area)
{
	const struct takt_job_view *job = find_job(model, job_id);
	struct lines to = {cells, area, area.row + 1};
	char text[TAKT_TOP_TEXT], title[120];

	snprintf(title, sizeof(title), "job %" PRIu64 " %s", job_id, job ? job->name : "");
	takt_cells_frame(cells, area, TAKT_ROLE_FOCUS, title);
	if (!job) {
		fact(&to, "state", TAKT_ROLE_DIM, "it has ended: 'takt show' has its report");
		return;
	}
	fact(&to, "state", state_role(job), state_text(job));
	fact(&to, "user", TAKT_ROLE_PLAIN, job->user);
	fact(&to, "command", TAKT_ROLE_PLAIN, job->command);
	fact(&to, "GPUs", TAKT_ROLE_PLAIN, gpus_text(job, text));
	when_text(model, job, text);
	fact(&to, job->report.has & TAKT_RV_WALL ? "has run" : "starts", TAKT_ROLE_PLAIN, text);
	fact(&to, "waits", TAKT_ROLE_MIND, job->why_text);
	if (runs(job))
		work_facts(&to, job);
	fact(&to, "clocks", TAKT_ROLE_PLAIN, job->clock_note);
	fact(&to, "health", TAKT_ROLE_ALARM, job->health_note);
	fact(&to, "strays", TAKT_ROLE_ALARM, job->stray_note);
}
