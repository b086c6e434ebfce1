/* SPDX-License-Identifier: Apache-2.0 */
/* The first lines: the machine in sums, what it is, and the line of several machines. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/str.h"
#include "top/top_draw.h"
#include "top/top_text.h"

enum {
	HOST_TEXT = 80,
	MODEL_COLS = 6, /* of a GPU's model, at least */
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

/* The right end: what must not be overlooked, and the time; of a narrow screen the first of these.
 * Returns where it begins. */
static int draw_header_end(struct takt_cells *cells, const struct takt_top_ui *ui,
			   const struct takt_top_model *model, struct takt_area area)
{
	const char *words[] = {model->now.status.simulated ? "SIMULATED" : "",
			       model->lost ? "NO NEWS" : "", ui->paused ? "PAUSED" : "", NULL};
	char time[16], text[80] = "";
	int width;

	clock_text(model->now.at, time, sizeof(time));
	words[3] = time;
	for (size_t i = 0; i < TAKT_ARRAY_LEN(words); i++) {
		size_t used = strlen(text);

		if (words[i][0] && (int)(used + !!used + strlen(words[i])) < area.cols)
			snprintf(text + used, sizeof(text) - used, "%s%s", used ? " " : "",
				 words[i]);
	}
	width = takt_cells_width(text) + 1;
	takt_cells_text(cells, area.row, area.col + area.cols - width, width,
			model->lost ? TAKT_ROLE_ALARM : TAKT_ROLE_BAR, text);
	return area.cols - width;
}

static void draw_sums(struct takt_cells *cells, const struct takt_top_ui *ui,
		      const struct takt_top_model *model, struct takt_area area)
{
	const struct takt_status_view *status = &model->now.status;
	struct sums sums = sum_up(status);
	int at = 1, end = draw_header_end(cells, ui, model, area) - 1;

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

/* Parts of the second line, in their order. */
enum fact {
	FACT_MODEL,
	FACT_DRIVER,
	FACT_CPU,
	FACT_MEMORY,
	FACT_LOAD,
	FACTS,
};

typedef char takt_fact_texts[FACTS][160];

static void say_host(const struct takt_top_host *host, takt_fact_texts ret)
{
	char used[TAKT_TOP_TEXT], all[TAKT_TOP_TEXT];

	if (host->has & TAKT_TOP_HOST_CPU)
		snprintf(ret[FACT_CPU], sizeof(ret[0]), "CPU %u %%", (host->cpu_permille + 5) / 10);
	if (host->has & TAKT_TOP_HOST_MEMORY)
		snprintf(ret[FACT_MEMORY], sizeof(ret[0]), "mem %s/%s",
			 takt_top_bytes(host->mem_used_bytes, used),
			 takt_top_bytes(host->mem_total_bytes, all));
	if (host->has & TAKT_TOP_HOST_LOAD)
		snprintf(ret[FACT_LOAD], sizeof(ret[0]), "load %.1f",
			 (double)host->load_centi[0] / 100);
}

static void say_driver(const struct takt_status_view *status, takt_fact_texts ret)
{
	const char *model = takt_top_one_model(status);

	if (model)
		takt_strcpy(ret[FACT_MODEL], sizeof(ret[0]), takt_top_model_name(model));
	if (status->driver_version[0])
		snprintf(ret[FACT_DRIVER], sizeof(ret[0]), "driver %s%s%s", status->driver_version,
			 status->cuda_version[0] ? " CUDA " : "", status->cuda_version);
}

static int cols_of(takt_fact_texts texts)
{
	int cols = 1;

	for (int i = 0; i < FACTS; i++)
		cols += texts[i][0] ? takt_cells_width(texts[i]) + 2 : 0;
	return cols - 2;
}

/* Where there is room the load has its two longer means, too. */
static void say_loads(const struct takt_top_host *host, takt_fact_texts ret, int cols)
{
	enum {
		MORE_COLS = 11
	};

	if (ret[FACT_LOAD][0] && cols_of(ret) + MORE_COLS <= cols)
		snprintf(ret[FACT_LOAD], sizeof(ret[0]), "load %.2f %.2f %.2f",
			 (double)host->load_centi[0] / 100, (double)host->load_centi[1] / 100,
			 (double)host->load_centi[2] / 100);
}

/* What goes first where there is no room for all. */
static void drop_facts(takt_fact_texts texts, int cols)
{
	static const enum fact first[] = {FACT_LOAD, FACT_MEMORY, FACT_DRIVER};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(first); i++) {
		int over = cols_of(texts) - cols;

		/* A model of which a part is left says enough. */
		if (over <= 0 || takt_cells_width(texts[FACT_MODEL]) - over >= MODEL_COLS)
			return;
		texts[first[i]][0] = '\0';
	}
}

/* What the machine is and does beside its GPUs. */
static void draw_facts(struct takt_cells *cells, const struct takt_top_snapshot *now,
		       struct takt_area area)
{
	takt_fact_texts texts = {""};
	int at = 1, over;

	say_driver(&now->status, texts);
	say_host(&now->host, texts);
	say_loads(&now->host, texts, area.cols);
	drop_facts(texts, area.cols);
	over = cols_of(texts) - area.cols;
	for (int i = 0; i < FACTS; i++) {
		int cut = i == FACT_MODEL && over > 0 ? over : 0;

		if (texts[i][0])
			at += 2 + takt_cells_text(cells, area.row, at,
						  takt_cells_width(texts[i]) - cut,
						  TAKT_ROLE_BAR_DIM, texts[i]);
	}
}

void takt_draw_header(struct takt_cells *cells, const struct takt_top_ui *ui,
		      const struct takt_top_model *model, struct takt_area area)
{
	takt_cells_fill(cells, area, TAKT_ROLE_BAR);
	draw_sums(cells, ui, model, area);
	if (area.rows < 2)
		return;
	area.row++;
	draw_facts(cells, &model->now, area);
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
