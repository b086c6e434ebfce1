/* SPDX-License-Identifier: Apache-2.0 */
/* See top_model.h. */
#include "top/top_model.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "top/graph.h"
#include "top/top_log.h"

void takt_top_snapshot_init(struct takt_top_snapshot *snapshot)
{
	*snapshot = (struct takt_top_snapshot){.procs = TAKT_VEC_INIT(TAKT_TOP_MAX_PROCS)};
}

void takt_top_snapshot_fini(struct takt_top_snapshot *snapshot)
{
	takt_status_view_fini(&snapshot->status);
	takt_queue_view_fini(&snapshot->queue);
	takt_vec_fini(&snapshot->procs);
	takt_top_log_fini(&snapshot->log);
	takt_top_past_free(snapshot->past);
	takt_top_snapshot_init(snapshot);
}

void takt_top_keep_queue(struct takt_top_snapshot *newer, struct takt_top_snapshot *older)
{
	if (!newer->same_queue || older->same_queue)
		return;
	newer->queue = older->queue;
	newer->same_queue = false;
	older->queue = (struct takt_queue_view){0};
}

/* Where a pid is, or belongs. */
static size_t place_of(const struct takt_top_snapshot *snapshot, int32_t pid)
{
	size_t low = 0, high = snapshot->procs.len;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (snapshot->procs.at[mid].id.pid < pid)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static int add_proc(struct takt_top_snapshot *snapshot, uint32_t gpu,
		    const struct takt_proc_view *view)
{
	size_t at = place_of(snapshot, view->pid);
	struct takt_top_proc *proc;
	int rc = 0;

	if (at == snapshot->procs.len || snapshot->procs.at[at].id.pid != view->pid) {
		struct takt_top_proc made = {
			.id.pid = view->pid, .uid = view->uid, .job_id = view->job_id};

		takt_strcpy(made.user, sizeof(made.user), view->user);
		takt_strcpy(made.command, sizeof(made.command), view->command);
		rc = takt_vec_insert(&snapshot->procs, at, made);
	}
	if (rc < 0)
		return rc;
	proc = &snapshot->procs.at[at];
	proc->gpu_mask |= (uint64_t)1 << (gpu % TAKT_VIEW_MAX_GPUS);
	proc->memory_known |= view->memory_known;
	proc->memory_bytes += view->memory_known ? view->memory_bytes : 0;
	proc->util_gpus += view->util_known;
	proc->sm_pct_sum += view->util_known ? view->sm_util_pct : 0;
	proc->mem_pct_sum += view->util_known ? view->mem_util_pct : 0;
	return 0;
}

static uint32_t listed(const struct takt_gpu_view *gpu)
{
	return gpu->proc_count < TAKT_ARRAY_LEN(gpu->procs) ? gpu->proc_count
							    : TAKT_ARRAY_LEN(gpu->procs);
}

uint64_t takt_top_unlisted(const struct takt_top_snapshot *snapshot)
{
	uint64_t sum = 0;

	for (uint32_t g = 0; g < snapshot->status.gpu_count; g++)
		sum += snapshot->status.gpus[g].proc_count - listed(&snapshot->status.gpus[g]);
	return sum;
}

int takt_top_gather_procs(struct takt_top_snapshot *snapshot)
{
	int rc = 0;

	takt_vec_clear(&snapshot->procs);
	for (uint32_t g = 0; rc == 0 && g < snapshot->status.gpu_count; g++) {
		const struct takt_gpu_view *gpu = &snapshot->status.gpus[g];

		for (uint32_t i = 0; rc == 0 && i < listed(gpu); i++)
			rc = add_proc(snapshot, gpu->index, &gpu->procs[i]);
	}
	return rc;
}

static uint32_t share(uint64_t part, uint64_t whole)
{
	if (whole == 0)
		return TAKT_NO_VALUE;
	return part >= whole ? 1000 : (uint32_t)(part * 1000 / whole);
}

uint32_t takt_top_value(const struct takt_gpu_view *gpu, enum takt_top_series series)
{
	static const uint32_t needs[] = {
		[TAKT_TOP_UTIL] = TAKT_VIEW_GPU_UTIL,
		[TAKT_TOP_MEMORY] = TAKT_VIEW_MEMORY,
		[TAKT_TOP_POWER] = TAKT_VIEW_POWER | TAKT_VIEW_POWER_LIMIT,
		[TAKT_TOP_TEMP] = TAKT_VIEW_TEMP,
		[TAKT_TOP_CLOCK] = TAKT_VIEW_SM | TAKT_VIEW_SM_MAX,
	};

	if ((gpu->has & needs[series]) != needs[series] || gpu->stale || gpu->lost)
		return TAKT_NO_VALUE;
	switch (series) {
	case TAKT_TOP_UTIL:
		return share(gpu->gpu_util_pct, 100);
	case TAKT_TOP_MEMORY:
		return share(gpu->mem_used_bytes >> 20, gpu->mem_total_bytes >> 20);
	case TAKT_TOP_POWER:
		return share(gpu->power_mw, gpu->power_limit_mw);
	case TAKT_TOP_TEMP:
		return share(gpu->temp_c > 0 ? (uint64_t)gpu->temp_c : 0, 100);
	default:
		return share(gpu->sm_mhz, gpu->sm_max_mhz);
	}
}

uint32_t takt_top_curve_at(const void *ctx, uint32_t ago)
{
	const struct takt_top_curve *curve = ctx;
	const struct takt_top_history *h = curve->history;

	if (ago >= h->count || (curve->most && ago >= curve->most))
		return TAKT_NO_VALUE;
	return h->permille[curve->series]
			  [(h->next + TAKT_TOP_HISTORY - 1 - ago) % TAKT_TOP_HISTORY];
}

const char *takt_top_one_model(const struct takt_status_view *status)
{
	for (uint32_t i = 1; i < status->gpu_count; i++)
		if (strcmp(status->gpus[i].name, status->gpus[0].name) != 0)
			return NULL;
	return status->gpu_count && status->gpus[0].name[0] ? status->gpus[0].name : NULL;
}

struct takt_top_past *takt_top_past_new(uint32_t gpu_count, uint32_t step_ms)
{
	struct takt_top_past *past = takt_zalloc(sizeof(*past));

	if (!past)
		return NULL;
	past->step_ms = step_ms;
	past->gpu_count = gpu_count;
	past->gpus = takt_calloc(gpu_count + 1, sizeof(*past->gpus));
	if (past->gpus)
		return past;
	takt_free(past);
	return NULL;
}

void takt_top_past_free(struct takt_top_past *past)
{
	if (!past)
		return;
	takt_free(past->gpus);
	takt_free(past);
}

void takt_top_model_fini(struct takt_top_model *model)
{
	takt_top_snapshot_fini(&model->now);
	takt_free(model->history);
	*model = (struct takt_top_model){0};
}

static void remember(struct takt_top_history *history, const struct takt_gpu_view *gpu)
{
	if (strcmp(history->uuid, gpu->uuid) != 0) {
		history->next = history->count = 0;
		takt_strcpy(history->uuid, sizeof(history->uuid), gpu->uuid);
	}
	for (int s = 0; s < TAKT_TOP_SERIES; s++)
		history->permille[s][history->next] = (uint16_t)takt_top_value(gpu, s);
	history->next = (history->next + 1) % TAKT_TOP_HISTORY;
	history->count += history->count < TAKT_TOP_HISTORY;
}

/* Older than what was seen live. */
static void recall_gpu(struct takt_top_history *history, const struct takt_top_past_gpu *past)
{
	uint32_t seen = history->count;

	for (uint32_t ago = seen; ago < TAKT_TOP_HISTORY; ago++) {
		uint32_t at = (history->next + TAKT_TOP_HISTORY - 1 - ago) % TAKT_TOP_HISTORY;

		for (int s = 0; s < TAKT_TOP_SERIES; s++) {
			history->permille[s][at] = past->permille[s][ago];
			if (past->permille[s][ago] != TAKT_NO_VALUE)
				history->count = ago + 1;
		}
	}
}

static void recall(struct takt_top_model *model)
{
	const struct takt_top_past *past = model->now.past;

	for (uint32_t g = 0; past && g < past->gpu_count; g++)
		for (uint32_t i = 0; i < model->now.status.gpu_count; i++)
			if (strcmp(model->history[i].uuid, past->gpus[g].uuid) == 0)
				recall_gpu(&model->history[i], &past->gpus[g]);
}

static int make_room(struct takt_top_model *model, uint32_t gpus)
{
	struct takt_top_history *more;

	if (gpus <= model->history_count)
		return 0;
	more = takt_reallocarray(model->history, gpus, sizeof(*more));
	if (!more)
		return -ENOMEM;
	memset(more + model->history_count, 0, (gpus - model->history_count) * sizeof(*more));
	model->history = more;
	model->history_count = gpus;
	return 0;
}

int takt_top_model_take(struct takt_top_model *model, struct takt_top_snapshot *snapshot)
{
	if (snapshot->why_not[0]) {
		model->lost = true;
		takt_strcpy(model->lost_why, sizeof(model->lost_why), snapshot->why_not);
		takt_top_snapshot_fini(snapshot);
		return 0;
	}
	if (make_room(model, snapshot->status.gpu_count) < 0)
		return -ENOMEM;
	takt_top_keep_queue(snapshot, &model->now);
	takt_top_snapshot_fini(&model->now);
	model->now = *snapshot;
	takt_top_snapshot_init(snapshot);
	model->lost = false;
	for (uint32_t i = 0; i < model->now.status.gpu_count; i++)
		remember(&model->history[i], &model->now.status.gpus[i]);
	recall(model);
	return 0;
}
