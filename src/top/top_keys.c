/* SPDX-License-Identifier: Apache-2.0 */
/* What keys and the mouse do. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "top/top_job.h"
#include "top/top_log.h"
#include "top/top_text.h"
#include "top/top_ui.h"

enum {
	LOG_STEP = 20, /* columns to the side at a time */
	WHEEL_LINES = 3,
};

static void tell(struct takt_top_ui *ui, bool bad, const char *text)
{
	takt_strcpy(ui->notice, sizeof(ui->notice), text);
	ui->notice_bad = bad;
}

static int count_of(const struct takt_top_ui *ui, const struct takt_top_model *model,
		    enum takt_top_pane pane, struct takt_top_rows *rows)
{
	*rows = TAKT_TOP_ROWS;
	if (pane == TAKT_PANE_GPUS)
		return (int)model->now.status.gpu_count;
	takt_top_list(ui, model, pane, rows);
	return (int)rows->all.len;
}

static uint64_t id_at(const struct takt_top_model *model, enum takt_top_pane pane,
		      const struct takt_top_rows *rows, int at)
{
	return pane == TAKT_PANE_GPUS ? (uint64_t)at + 1
				      : takt_top_row_id(model, &rows->all.at[at]);
}

static int lines_of(const struct takt_top_layout *layout, enum takt_top_pane pane)
{
	if (pane == TAKT_PANE_JOBS)
		return layout->jobs.rows - 2;
	if (pane == TAKT_PANE_PROCS)
		return layout->procs.rows - 2;
	return layout->cards ? TAKT_VIEW_MAX_GPUS : (layout->gpus.rows - 1) * layout->across;
}

static int clamp(int value, int low, int high)
{
	return value > high ? (high > low ? high : low) : value < low ? low : value;
}

static void scroll(struct takt_top_ui *ui, enum takt_top_pane pane, int count, int lines)
{
	int *first = &ui->first[pane], selected = ui->selected[pane];

	if (lines < 1)
		return;
	*first = clamp(*first, selected - lines + 1, selected);
	*first = clamp(*first, 0, count - lines);
}

static void settle(struct takt_top_ui *ui, const struct takt_top_model *model,
		   const struct takt_top_layout *layout, enum takt_top_pane pane)
{
	struct takt_top_rows rows;
	int count = count_of(ui, model, pane, &rows);

	for (int i = 0; i < count; i++)
		if (id_at(model, pane, &rows, i) == ui->chosen[pane])
			ui->selected[pane] = i;
	ui->selected[pane] = clamp(ui->selected[pane], 0, count - 1);
	ui->chosen[pane] = count ? id_at(model, pane, &rows, ui->selected[pane]) : 0;
	scroll(ui, pane, count, lines_of(layout, pane));
	takt_vec_fini(&rows.all);
}

void takt_top_settle(struct takt_top_ui *ui, const struct takt_top_model *model,
		     const struct takt_top_layout *layout)
{
	if (ui->focus == TAKT_PANE_JOBS && !model->now.daemon && model->now.at.ns)
		ui->focus = ui->table = TAKT_PANE_PROCS;
	if (ui->look == TAKT_LOOK_JOBS && !model->now.daemon)
		ui->look = TAKT_LOOK_ALL;
	for (int pane = 0; pane < TAKT_PANES; pane++)
		settle(ui, model, layout, pane);
}

static void select_at(struct takt_top_ui *ui, const struct takt_top_model *model,
		      enum takt_top_pane pane, int at)
{
	struct takt_top_rows rows;
	int count = count_of(ui, model, pane, &rows);

	ui->selected[pane] = clamp(at, 0, count - 1);
	ui->chosen[pane] = count ? id_at(model, pane, &rows, ui->selected[pane]) : 0;
	takt_vec_fini(&rows.all);
}

static void move(struct takt_top_ui *ui, const struct takt_top_model *model, int by)
{
	select_at(ui, model, ui->focus, ui->selected[ui->focus] + by);
}

static void focus_on(struct takt_top_ui *ui, enum takt_top_pane pane)
{
	ui->focus = pane;
	if (pane != TAKT_PANE_JOBS && ui->look == TAKT_LOOK_JOBS)
		ui->look = TAKT_LOOK_ALL;
	if (pane != TAKT_PANE_GPUS)
		ui->table = pane;
}

static void next_pane(struct takt_top_ui *ui, const struct takt_top_model *model, int by)
{
	int pane = (ui->focus + by + TAKT_PANES) % TAKT_PANES;

	if (pane == TAKT_PANE_JOBS && !model->now.daemon)
		pane = (pane + by + TAKT_PANES) % TAKT_PANES;
	focus_on(ui, pane);
}

/* The row under the cursor; false when there is none. */
static bool selected_row(const struct takt_top_ui *ui, const struct takt_top_model *model,
			 enum takt_top_pane pane, struct takt_top_row *ret)
{
	struct takt_top_rows rows;
	int count = count_of(ui, model, pane, &rows);
	bool any = pane != TAKT_PANE_GPUS && ui->selected[pane] < count;

	if (any)
		*ret = rows.all.at[ui->selected[pane]];
	takt_vec_fini(&rows.all);
	return any;
}

/* The job that the cursor is on: of its line, of a process, of a GPU, or the one zoomed on. */
static const struct takt_job_view *selected_job(const struct takt_top_ui *ui,
						const struct takt_top_model *model)
{
	const struct takt_top_snapshot *now = &model->now;
	struct takt_top_row row;

	if (ui->look == TAKT_LOOK_JOB)
		return takt_top_find_job(model, ui->look_at);
	if (ui->focus == TAKT_PANE_GPUS) {
		uint32_t gpu = (uint32_t)ui->selected[TAKT_PANE_GPUS];

		return gpu < now->status.gpu_count
			       ? takt_top_find_job(model, now->status.gpus[gpu].job_id)
			       : NULL;
	}
	if (!selected_row(ui, model, ui->focus, &row))
		return NULL;
	return row.is_job ? &now->queue.jobs[row.at]
			  : takt_top_find_job(model, now->procs.at[row.at].job_id);
}

static void zoom(struct takt_top_ui *ui, const struct takt_top_model *model)
{
	const struct takt_job_view *job = selected_job(ui, model);

	if (ui->look != TAKT_LOOK_ALL && ui->look != TAKT_LOOK_JOBS)
		return;
	ui->from = ui->look;
	ui->from_focus = ui->focus;
	if (ui->focus == TAKT_PANE_GPUS && model->now.status.gpu_count) {
		ui->look = TAKT_LOOK_GPU;
		ui->look_at = (uint64_t)ui->selected[TAKT_PANE_GPUS];
	} else if (job) {
		ui->look = TAKT_LOOK_JOB;
		ui->look_at = job->id;
	} else {
		tell(ui, true, "no job here to zoom on");
		return;
	}
	focus_on(ui, TAKT_PANE_PROCS);
}

/* The machine that is shown is the one that the answer is for. */
static void name_host(const struct takt_top_ui *ui, struct takt_top_ask *ask)
{
	ask->deed.host = ui->hosts.shown;
	if (ui->hosts.count)
		takt_strcpy(ask->host, sizeof(ask->host), ui->hosts.at[ui->hosts.shown].name);
}

static void ask_of_job(struct takt_top_ui *ui, const struct takt_top_model *model,
		       enum takt_deed_kind kind)
{
	const struct takt_job_view *job = selected_job(ui, model);
	struct takt_top_ask *ask = &ui->ask;
	char gpus[TAKT_TOP_TEXT];

	if (!job) {
		tell(ui, true, "no job of takt's under the cursor");
		return;
	}
	*ask = (struct takt_top_ask){.kind = kind, .deed = {.kind = kind, .job_id = job->id}};
	name_host(ui, ask);
	snprintf(ask->title, sizeof(ask->title), "%s job %" PRIu64 " %.40s?",
		 kind == TAKT_DEED_CANCEL ? "Cancel" : "Requeue", job->id, job->name);
	if (kind == TAKT_DEED_REQUEUE)
		takt_strcpy(ask->note, sizeof(ask->note),
			    "it is ended, waits in its old place and begins anew");
	takt_strcpy(ask->user, sizeof(ask->user), job->user);
	takt_strcpy(ask->command, sizeof(ask->command), job->command);
	if (job->gpu_list_count)
		takt_strcpy(ask->gpus, sizeof(ask->gpus),
			    takt_top_gpus(takt_top_job_gpus(job), gpus));
	else
		snprintf(ask->gpus, sizeof(ask->gpus), "none yet, waits for %u", job->gpus);
}

static void ask_signal(struct takt_top_ui *ui, const struct takt_top_model *model,
		       struct takt_deed *ret)
{
	const struct takt_top_proc *proc;
	struct takt_top_ask *ask = &ui->ask;
	struct takt_top_row row;
	char gpus[TAKT_TOP_TEXT];

	if (!selected_row(ui, model, TAKT_PANE_PROCS, &row) || row.is_job ||
	    ui->focus != TAKT_PANE_PROCS) {
		tell(ui, true, "no process under the cursor: Tab goes to their list");
		return;
	}
	proc = &model->now.procs.at[row.at];
	if (proc->id.start_ticks == 0) {
		tell(ui, true, "this process cannot be looked at from here: no signals to it");
		return;
	}
	/* Who we are on another machine is known there. */
	if (!ui->hosts.count && proc->uid != ui->own_uid && !ui->allow_foreign) {
		tell(ui, true, "this process is somebody else's: only with --allow-foreign");
		return;
	}
	*ask = (struct takt_top_ask){.kind = TAKT_DEED_SIGNAL,
				     .deed = {.kind = TAKT_DEED_SIGNAL, .proc = proc->id}};
	name_host(ui, ask);
	snprintf(ask->title, sizeof(ask->title), "Signal process %d?", proc->id.pid);
	takt_strcpy(ask->user, sizeof(ask->user), proc->user);
	takt_strcpy(ask->command, sizeof(ask->command), proc->command);
	takt_strcpy(ask->gpus, sizeof(ask->gpus), takt_top_gpus(proc->gpu_mask, gpus));
	if (proc->job_id)
		snprintf(ask->note, sizeof(ask->note),
			 "a process of job %" PRIu64 "; c cancels the whole job", proc->job_id);
	if (!ui->hosts.count)
		*ret = (struct takt_deed){.kind = TAKT_DEED_LOOK_UP, .proc = proc->id};
}

static void answer(struct takt_top_ui *ui, uint32_t key, struct takt_deed *ret)
{
	struct takt_top_ask *ask = &ui->ask;
	uint32_t signals = 0;

	while (takt_top_signals[signals].name)
		signals++;
	if (ask->kind == TAKT_DEED_SIGNAL && (key == TAKT_KEY_RIGHT || key == TAKT_KEY_DOWN)) {
		ask->choice = (ask->choice + 1) % signals;
	} else if (ask->kind == TAKT_DEED_SIGNAL && (key == TAKT_KEY_LEFT || key == TAKT_KEY_UP)) {
		ask->choice = (ask->choice + signals - 1) % signals;
	} else if (key == 'y' || key == 'Y') {
		*ret = ask->deed;
		ret->signal = takt_top_signals[ask->choice].number;
		ask->kind = TAKT_DEED_NONE;
	} else if (key == 'n' || key == 'N' || key == 'q' || key == TAKT_KEY_ESC) {
		ret->kind = ask->kind == TAKT_DEED_SIGNAL ? TAKT_DEED_DROP : TAKT_DEED_NONE;
		ask->kind = TAKT_DEED_NONE;
	}
}

static void type_filter(struct takt_top_ui *ui, uint32_t key)
{
	size_t len = strlen(ui->filter);

	if (key == TAKT_KEY_ENTER || key == TAKT_KEY_ESC) {
		ui->filtering = false;
		if (key == TAKT_KEY_ESC)
			ui->filter[0] = '\0';
	} else if (key == TAKT_KEY_BACKSPACE && len) {
		ui->filter[len - 1] = '\0';
	} else if (key >= ' ' && key < 127 && len + 1 < sizeof(ui->filter)) {
		ui->filter[len] = (char)key;
		ui->filter[len + 1] = '\0';
	}
}

static void hold(struct takt_top_ui *ui, const struct takt_top_model *model, struct takt_deed *ret)
{
	const struct takt_job_view *job = selected_job(ui, model);

	if (!job)
		tell(ui, true, "no job of takt's under the cursor");
	else
		*ret = (struct takt_deed){.kind = TAKT_DEED_HOLD,
					  .job_id = job->id,
					  .hold = !job->held[0],
					  .host = ui->hosts.shown};
}

static void sort_by(struct takt_top_ui *ui, enum takt_top_pane pane, const char *name)
{
	for (int i = 0; takt_top_sort_name(pane, i); i++)
		if (strcmp(takt_top_sort_name(pane, i), name) == 0)
			ui->sort[pane] = i;
}

static void change_rate(struct takt_top_ui *ui, bool faster, struct takt_deed *ret)
{
	uint32_t rate = faster ? ui->rate_milli_hz * 2 : ui->rate_milli_hz / 2;

	ui->rate_milli_hz = rate < TAKT_TOP_MIN_RATE   ? TAKT_TOP_MIN_RATE
			    : rate > TAKT_TOP_MAX_RATE ? TAKT_TOP_MAX_RATE
						       : rate;
	snprintf(ui->notice, sizeof(ui->notice), "looks %g times a second",
		 (double)ui->rate_milli_hz / 1000);
	ui->notice_bad = false;
	ret->kind = TAKT_DEED_RATE;
}

/* False: there is nowhere to go back to. */
static bool back(struct takt_top_ui *ui, struct takt_deed *ret)
{
	switch (ui->look) {
	case TAKT_LOOK_LOG:
		ui->look = TAKT_LOOK_JOB;
		ret->kind = TAKT_DEED_LOG;
		return true;
	case TAKT_LOOK_JOB:
	case TAKT_LOOK_GPU:
		ui->look = ui->from;
		focus_on(ui, ui->from_focus);
		return true;
	case TAKT_LOOK_JOBS:
		ui->look = TAKT_LOOK_ALL;
		return true;
	default:
		return false;
	}
}

/* The list of jobs with all the room that there is, and back. */
static void jobs_alone(struct takt_top_ui *ui, const struct takt_top_model *model)
{
	if (!model->now.daemon) {
		tell(ui, true, "there are no jobs: no daemon answers");
		return;
	}
	if (ui->look != TAKT_LOOK_ALL && ui->look != TAKT_LOOK_JOBS)
		return;
	ui->look = ui->look == TAKT_LOOK_JOBS ? TAKT_LOOK_ALL : TAKT_LOOK_JOBS;
	focus_on(ui, TAKT_PANE_JOBS);
}

/* Only where he may read it: the daemon would refuse it, too. */
static void show_log(struct takt_top_ui *ui, const struct takt_top_model *model,
		     struct takt_deed *ret)
{
	const struct takt_job_view *job = selected_job(ui, model);

	if (ui->look != TAKT_LOOK_JOB) {
		tell(ui, true, "Enter on a job zooms on it; there l shows its log");
	} else if (job && !job->mine) {
		tell(ui, true, "this log is its owner's and the administrator's to read");
	} else {
		ui->look = TAKT_LOOK_LOG;
		ui->log_follows = true;
		ui->log_left = 0;
		*ret = (struct takt_deed){.kind = TAKT_DEED_LOG, .job_id = ui->look_at};
	}
}

static void scroll_log(struct takt_top_ui *ui, const struct takt_top_model *model,
		       const struct takt_top_layout *layout, int64_t by)
{
	const struct takt_top_log *log = &model->now.log;
	int64_t first = (int64_t)log->dropped_lines,
		last = first + (int64_t)takt_top_log_lines(log) - (layout->whole.rows - 2);
	int64_t at = (ui->log_follows ? last : (int64_t)ui->log_first) + by;

	ui->log_follows = at >= last;
	ui->log_first = (uint64_t)(at < first ? first : at);
}

static bool press_in_log(struct takt_top_ui *ui, const struct takt_top_model *model,
			 const struct takt_top_layout *layout, uint32_t key)
{
	int page = layout->whole.rows - 2;

	switch (key) {
	case TAKT_KEY_UP:
	case 'k':
		scroll_log(ui, model, layout, -1);
		return true;
	case TAKT_KEY_DOWN:
	case 'j':
		scroll_log(ui, model, layout, 1);
		return true;
	case TAKT_KEY_PAGE_UP:
		scroll_log(ui, model, layout, -page);
		return true;
	case TAKT_KEY_PAGE_DOWN:
		scroll_log(ui, model, layout, page);
		return true;
	case TAKT_KEY_HOME:
	case 'g':
		scroll_log(ui, model, layout, INT32_MIN);
		return true;
	case TAKT_KEY_END:
	case 'G':
		ui->log_follows = true;
		return true;
	case TAKT_KEY_LEFT:
		ui->log_left = clamp(ui->log_left - LOG_STEP, 0, TAKT_TOP_LOG_LINE);
		return true;
	case TAKT_KEY_RIGHT:
		ui->log_left = clamp(ui->log_left + LOG_STEP, 0, TAKT_TOP_LOG_LINE);
		return true;
	default:
		return false;
	}
}

static bool press_move(struct takt_top_ui *ui, const struct takt_top_model *model,
		       const struct takt_top_layout *layout, uint32_t key)
{
	int page = ui->focus == TAKT_PANE_GPUS ? 8 : lines_of(layout, ui->focus);
	int across = ui->focus == TAKT_PANE_GPUS && layout->cards ? layout->across : 1;

	switch (key) {
	case TAKT_KEY_UP:
	case 'k':
		move(ui, model, -across);
		return true;
	case TAKT_KEY_DOWN:
	case 'j':
		move(ui, model, across);
		return true;
	case TAKT_KEY_LEFT:
		move(ui, model, -1);
		return true;
	case TAKT_KEY_RIGHT:
		move(ui, model, 1);
		return true;
	case TAKT_KEY_PAGE_UP:
		move(ui, model, -page);
		return true;
	case TAKT_KEY_PAGE_DOWN:
		move(ui, model, page);
		return true;
	case TAKT_KEY_HOME:
	case 'g':
		select_at(ui, model, ui->focus, 0);
		return true;
	case TAKT_KEY_END:
	case 'G':
		select_at(ui, model, ui->focus, TAKT_TOP_MAX_PROCS);
		return true;
	default:
		return false;
	}
}

static void next_sort(struct takt_top_ui *ui)
{
	ui->sort[ui->table]++;
	if (!takt_top_sort_name(ui->table, ui->sort[ui->table]))
		ui->sort[ui->table] = 0;
}

/* How things are shown. */
static bool press_look(struct takt_top_ui *ui, const struct takt_top_model *model, uint32_t key,
		       struct takt_deed *ret)
{
	switch (key) {
	case 'J':
		jobs_alone(ui, model);
		return true;
	case 'l':
		show_log(ui, model, ret);
		return true;
	case TAKT_KEY_F1 + 1:
	case 'm':
		ui->series = (ui->series + 1) % TAKT_TOP_SERIES;
		return true;
	case TAKT_KEY_F1 + 2:
	case TAKT_KEY_F1 + 3:
	case '/':
	case '\\':
		ui->filtering = true;
		return true;
	case TAKT_KEY_F1 + 4:
	case 't':
		ui->tree = !ui->tree;
		focus_on(ui, TAKT_PANE_PROCS);
		return true;
	case TAKT_KEY_F1 + 5:
	case 's':
	case '>':
		next_sort(ui);
		return true;
	case 'I':
		ui->reversed[ui->table] = !ui->reversed[ui->table];
		return true;
	case 'M':
		sort_by(ui, TAKT_PANE_PROCS, "memory");
		return true;
	case 'P':
		sort_by(ui, TAKT_PANE_PROCS, "pid");
		return true;
	case 'U':
		sort_by(ui, ui->table, "user");
		return true;
	case TAKT_KEY_ENTER:
		zoom(ui, model);
		return true;
	case TAKT_KEY_ESC:
		if (!back(ui, ret))
			ui->filter[0] = '\0';
		return true;
	default:
		return false;
	}
}

/* [ and ]: the machine before, and the next one. What was zoomed on is the other one's. */
static void next_host(struct takt_top_ui *ui, uint32_t by)
{
	if (ui->hosts.count == 0)
		return;
	ui->hosts.shown = (ui->hosts.shown + by) % ui->hosts.count;
	ui->look = TAKT_LOOK_ALL;
}

static void press_deed(struct takt_top_ui *ui, const struct takt_top_model *model, uint32_t key,
		       struct takt_deed *ret)
{
	switch (key) {
	case 'q':
		if (!back(ui, ret))
			ret->kind = TAKT_DEED_QUIT;
		break;
	case TAKT_KEY_F1 + 9:
		ret->kind = TAKT_DEED_QUIT;
		break;
	case '?':
	case 'h':
	case TAKT_KEY_F1:
		ui->help = true;
		break;
	case '\t':
		next_pane(ui, model, 1);
		break;
	case TAKT_KEY_BACK_TAB:
		next_pane(ui, model, -1);
		break;
	case ' ':
	case 'z':
		ui->paused = !ui->paused;
		break;
	case '+':
	case '-':
		change_rate(ui, key == '+', ret);
		break;
	case '[':
	case ']':
		next_host(ui, key == ']' ? 1 : ui->hosts.count - 1);
		break;
	case 'c':
		ask_of_job(ui, model, TAKT_DEED_CANCEL);
		break;
	case 'R':
		ask_of_job(ui, model, TAKT_DEED_REQUEUE);
		break;
	case 'H':
		hold(ui, model, ret);
		break;
	case 'K':
	case TAKT_KEY_F1 + 8:
		ask_signal(ui, model, ret);
		break;
	default:
		break;
	}
}

/* Of the other keys those that are no matter of the lists. */
static void press_log(struct takt_top_ui *ui, const struct takt_top_model *model,
		      const struct takt_top_layout *layout, uint32_t key, struct takt_deed *ret)
{
	static const char others[] = "q?h +-z";

	if (press_in_log(ui, model, layout, key))
		return;
	if (key == 'l' || key == TAKT_KEY_ESC)
		(void)back(ui, ret);
	else if (key == TAKT_KEY_F1 || key == TAKT_KEY_F1 + 9 ||
		 (key < 128 && key && strchr(others, (int)key)))
		press_deed(ui, model, key, ret);
}

void takt_top_press(struct takt_top_ui *ui, const struct takt_top_model *model,
		    const struct takt_top_layout *layout, uint32_t key, struct takt_deed *ret)
{
	*ret = (struct takt_deed){.kind = TAKT_DEED_NONE};
	ui->notice[0] = '\0';
	if (ui->help)
		ui->help = false;
	else if (ui->ask.kind)
		answer(ui, key, ret);
	else if (ui->filtering)
		type_filter(ui, key);
	else if (ui->look == TAKT_LOOK_LOG)
		press_log(ui, model, layout, key, ret);
	else if (!press_move(ui, model, layout, key) && !press_look(ui, model, key, ret))
		press_deed(ui, model, key, ret);
}

static bool is_in(const struct takt_area *area, int row, int col)
{
	return row >= area->row && row < area->row + area->rows && col >= area->col &&
	       col < area->col + area->cols;
}

static uint32_t hint_at(const struct takt_top_ui *ui, const struct takt_top_model *model, int cols,
			int col)
{
	const struct takt_top_hint *hint = NULL;
	int at = 0;

	while ((hint = takt_top_next_hint(ui, model, cols, hint))) {
		at += takt_top_hint_cols(hint);
		if (col < at)
			return hint->key;
	}
	return TAKT_KEY_NONE;
}

/* Which GPU is there. */
static int gpu_at(const struct takt_top_ui *ui, const struct takt_top_layout *layout, int row,
		  int col)
{
	int y = row - layout->gpus.row, x = col * layout->across / layout->gpus.cols;

	if (layout->cards)
		return y / layout->card_rows * layout->across + x;
	return y == 0 ? -1 : ui->first[TAKT_PANE_GPUS] + x * (layout->gpus.rows - 1) + y - 1;
}

static void click_pane(struct takt_top_ui *ui, const struct takt_top_model *model,
		       const struct takt_top_layout *layout, enum takt_top_pane pane, int row,
		       int col)
{
	const struct takt_area *area = pane == TAKT_PANE_JOBS ? &layout->jobs : &layout->procs;
	int at = pane == TAKT_PANE_GPUS ? gpu_at(ui, layout, row, col)
					: ui->first[pane] + row - area->row - 2;

	focus_on(ui, pane);
	if (at >= 0 && (pane == TAKT_PANE_GPUS || row - area->row >= 2))
		select_at(ui, model, pane, at);
}

void takt_top_click(struct takt_top_ui *ui, const struct takt_top_model *model,
		    const struct takt_top_layout *layout, int row, int col, int turn, bool twice,
		    struct takt_deed *ret)
{
	const struct takt_area *areas[] = {&layout->gpus, &layout->jobs, &layout->procs};

	*ret = (struct takt_deed){.kind = TAKT_DEED_NONE};
	if (ui->ask.kind || ui->help || turn) {
		if (turn && !ui->ask.kind && ui->look == TAKT_LOOK_LOG)
			scroll_log(ui, model, layout, (int64_t)turn * WHEEL_LINES);
		else if (turn && !ui->ask.kind)
			move(ui, model, turn);
		return;
	}
	if (is_in(&layout->footer, row, col)) {
		takt_top_press(ui, model, layout, hint_at(ui, model, layout->footer.cols, col),
			       ret);
		return;
	}
	for (int pane = 0; pane < TAKT_PANES && ui->look != TAKT_LOOK_LOG; pane++) {
		if (!is_in(areas[pane], row, col) ||
		    ((ui->look == TAKT_LOOK_GPU || ui->look == TAKT_LOOK_JOB) &&
		     pane != TAKT_PANE_PROCS))
			continue;
		click_pane(ui, model, layout, pane, row, col);
		if (twice)
			zoom(ui, model);
		return;
	}
}
