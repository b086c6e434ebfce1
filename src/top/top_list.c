/* SPDX-License-Identifier: Apache-2.0 */
/* The lists of jobs and processes: filtered, ordered, and as a tree of jobs with their processes.
 */
#include <stdio.h>
#include <string.h>

#include "base/sort.h"
#include "top/top_ui.h"

enum job_sort {
	BY_QUEUE,
	BY_JOB,
	BY_JOB_USER,
	BY_JOB_TIME,
	BY_JOB_ENERGY,
};

enum proc_sort {
	BY_MEMORY,
	BY_PID,
	BY_USER,
	BY_GPU,
	BY_PROC_JOB,
	BY_COMMAND,
	BY_SM,
	BY_CPU,
	BY_TIME,
};

const char *takt_top_sort_name(enum takt_top_pane pane, int sort)
{
	static const char *const jobs[] = {
		[BY_QUEUE] = "queue",	[BY_JOB] = "number",	    [BY_JOB_USER] = "user",
		[BY_JOB_TIME] = "time", [BY_JOB_ENERGY] = "energy",
	};
	static const char *const procs[] = {
		[BY_MEMORY] = "memory", [BY_PID] = "pid",      [BY_USER] = "user",
		[BY_GPU] = "GPU",	[BY_PROC_JOB] = "job", [BY_COMMAND] = "command",
		[BY_SM] = "SM %",	[BY_CPU] = "CPU %",    [BY_TIME] = "time",
	};

	if (pane == TAKT_PANE_JOBS)
		return sort < (int)TAKT_ARRAY_LEN(jobs) ? jobs[sort] : NULL;
	return pane == TAKT_PANE_PROCS && sort < (int)TAKT_ARRAY_LEN(procs) ? procs[sort] : NULL;
}

struct order {
	const struct takt_top_model *model;
	int sort;
	bool reversed, tree;
};

static int by_number(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int compare_jobs(const struct order *order, const struct takt_job_view *a,
			const struct takt_job_view *b)
{
	switch (order->sort) {
	case BY_JOB:
		return by_number(a->id, b->id);
	case BY_JOB_USER:
		return strcmp(a->user, b->user);
	case BY_JOB_TIME:
		return by_number(b->report.wall_ms, a->report.wall_ms);
	case BY_JOB_ENERGY:
		return by_number(b->report.energy_mj, a->report.energy_mj);
	default:
		return 0;
	}
}

/* Mean of its GPUs, in thousandths; what is not known comes behind what is 0. */
static uint64_t sm_of(const struct takt_top_proc *proc)
{
	return proc->util_gpus ? 1 + (uint64_t)proc->sm_pct_sum * 1000 / proc->util_gpus : 0;
}

static uint64_t cpu_of(const struct takt_top_proc *proc)
{
	return proc->cpu_known ? 1 + (uint64_t)proc->cpu_permille : 0;
}

static int compare_procs(const struct order *order, const struct takt_top_proc *a,
			 const struct takt_top_proc *b)
{
	switch (order->sort) {
	case BY_MEMORY:
		return by_number(b->memory_bytes, a->memory_bytes);
	case BY_USER:
		return strcmp(a->user, b->user);
	case BY_GPU:
		return by_number(a->gpu_mask & -a->gpu_mask, b->gpu_mask & -b->gpu_mask);
	case BY_PROC_JOB:
		return by_number(a->job_id, b->job_id);
	case BY_COMMAND:
		return strcmp(a->command, b->command);
	case BY_SM:
		return by_number(sm_of(b), sm_of(a));
	case BY_CPU:
		return by_number(cpu_of(b), cpu_of(a));
	case BY_TIME:
		return by_number(b->run_ms, a->run_ms);
	default:
		return by_number((uint64_t)a->id.pid, (uint64_t)b->id.pid);
	}
}

static int compare(const void *left, const void *right, void *ctx)
{
	const struct takt_top_row *a = left, *b = right;
	const struct order *order = ctx;
	const struct takt_top_snapshot *now = &order->model->now;
	int by;

	if (!a->is_job && order->tree) {
		by = by_number(now->procs.at[a->at].job_id - 1, now->procs.at[b->at].job_id - 1);
		if (by)
			return by;
	}
	by = a->is_job ? compare_jobs(order, &now->queue.jobs[a->at], &now->queue.jobs[b->at])
		       : compare_procs(order, &now->procs.at[a->at], &now->procs.at[b->at]);
	return order->reversed ? -by : by;
}

static bool holds(const char *text, const char *filter)
{
	return strcasestr(text, filter) != NULL;
}

static bool job_passes(const struct takt_job_view *job, const char *filter)
{
	char number[24];

	snprintf(number, sizeof(number), "%llu", (unsigned long long)job->id);
	return !filter[0] || holds(job->user, filter) || holds(job->name, filter) ||
	       holds(job->state, filter) || holds(job->command, filter) || holds(number, filter);
}

static bool proc_passes(const struct takt_top_proc *proc, const char *filter)
{
	char number[24];

	snprintf(number, sizeof(number), "%d", proc->id.pid);
	return !filter[0] || holds(proc->user, filter) || holds(proc->command, filter) ||
	       holds(number, filter);
}

static bool is_seen(const struct takt_top_ui *ui, const struct takt_top_model *model,
		    const struct takt_top_row *row)
{
	const struct takt_top_snapshot *now = &model->now;

	if (row->is_job)
		return job_passes(&now->queue.jobs[row->at], ui->filter);
	if (ui->look == TAKT_LOOK_GPU && !(now->procs.at[row->at].gpu_mask >> ui->look_at & 1))
		return false;
	if (ui->look == TAKT_LOOK_JOB && now->procs.at[row->at].job_id != ui->look_at)
		return false;
	return proc_passes(&now->procs.at[row->at], ui->filter);
}

/* Above the first process of each job a line of the job. */
static int add_parents(const struct takt_top_model *model, struct takt_top_rows *rows)
{
	const struct takt_top_snapshot *now = &model->now;
	uint64_t job = 0;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < rows->all.len; i++) {
		uint64_t its = now->procs.at[rows->all.at[i].at].job_id;

		rows->all.at[i].child = its != 0;
		if (its == 0 || its == job)
			continue;
		job = its;
		for (size_t k = 0; k < now->queue.count; k++) {
			if (now->queue.jobs[k].id != job)
				continue;
			rc = takt_vec_insert(&rows->all, i,
					     (struct takt_top_row){.is_job = true, .at = k});
			i += rc == 0;
			break;
		}
	}
	return rc;
}

int takt_top_list(const struct takt_top_ui *ui, const struct takt_top_model *model,
		  enum takt_top_pane pane, struct takt_top_rows *ret)
{
	bool jobs = pane == TAKT_PANE_JOBS;
	size_t count = jobs ? model->now.queue.count : model->now.procs.len;
	struct order order = {model, ui->sort[pane], ui->reversed[pane], ui->tree && !jobs};
	int rc = 0;

	*ret = TAKT_TOP_ROWS;
	for (size_t i = 0; rc == 0 && i < count; i++) {
		struct takt_top_row row = {.is_job = jobs, .at = i};

		if (is_seen(ui, model, &row))
			rc = takt_vec_push(&ret->all, row);
	}
	if (rc == 0)
		rc = takt_sort(ret->all.at, ret->all.len, sizeof(*ret->all.at), compare, &order);
	return rc == 0 && order.tree ? add_parents(model, ret) : rc;
}

uint64_t takt_top_row_id(const struct takt_top_model *model, const struct takt_top_row *row)
{
	if (row->is_job)
		return model->now.queue.jobs[row->at].id | (uint64_t)1 << 63;
	return (uint64_t)model->now.procs.at[row->at].id.pid;
}
