/* SPDX-License-Identifier: Apache-2.0 */
/* See top_world.h. */
#include "top_world.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

const char boot_id[] = "01234567-89ab-cdef-0123-456789abcdef";
struct takt_top_model model;
struct takt_top_ui ui;
struct takt_top_layout layout;
struct takt_cells cells;

struct takt_gpu_view a_gpu(uint32_t index)
{
	struct takt_gpu_view gpu = {
		.index = index,
		.has = TAKT_VIEW_SM | TAKT_VIEW_SM_MAX | TAKT_VIEW_POWER | TAKT_VIEW_POWER_LIMIT |
		       TAKT_VIEW_TEMP | TAKT_VIEW_GPU_UTIL | TAKT_VIEW_MEMORY | TAKT_VIEW_THROTTLE |
		       TAKT_VIEW_PROCS | TAKT_VIEW_MARGIN | TAKT_VIEW_NVLINKS | TAKT_VIEW_PCIE,
		.name = "TWIN NVIDIA H100 80GB HBM3",
		.state = "free",
		.health = "healthy",
		.sm_mhz = 345,
		.sm_max_mhz = 1980,
		.power_mw = 67000,
		.power_limit_mw = 700000,
		.temp_c = 31,
		.margin_c = 56,
		.mem_total_bytes = (uint64_t)80 << 30,
		.throttle = 1,
		.nvlinks = 18,
		.nvlinks_up = 18,
		.pcie_gen = 5,
		.pcie_width = 16,
	};

	snprintf(gpu.uuid, sizeof(gpu.uuid), "GPU-%u", index);
	return gpu;
}

static void work(struct takt_gpu_view *gpu, uint64_t job, const char *name, int32_t pid)
{
	gpu->job_id = job;
	takt_strcpy(gpu->state, sizeof(gpu->state), "running");
	takt_strcpy(gpu->job_name, sizeof(gpu->job_name), name);
	gpu->gpu_util_pct = 97;
	gpu->power_mw = 612000;
	gpu->temp_c = 71;
	gpu->margin_c = 16;
	gpu->sm_mhz = 1755;
	gpu->throttle = 4;
	gpu->mem_used_bytes = (uint64_t)61 << 30;
	gpu->proc_count = 1;
	gpu->procs[0] = (struct takt_proc_view){.pid = pid,
						.uid = 1000,
						.user = "ana",
						.command = "python3",
						.job_id = job,
						.memory_known = true,
						.memory_bytes = (uint64_t)60 << 30,
						.util_known = true,
						.sm_util_pct = 93,
						.mem_util_pct = 41};
}

static void add_jobs(struct takt_queue_view *queue)
{
	queue->jobs = takt_calloc(2, sizeof(*queue->jobs));
	assert_non_null(queue->jobs);
	queue->count = 2;
	queue->total = 2;
	queue->jobs[0] = (struct takt_job_view){.id = 12,
						.name = "train",
						.user = "ana",
						.state = "running",
						.command = "python3 train.py --lr 0.1",
						.mine = true,
						.gpus = 2,
						.gpu_list_count = 2,
						.gpu_list = {0, 1},
						.started_ms = 1,
						.report = {.has = TAKT_RV_WALL | TAKT_RV_ENERGY,
							   .wall_ms = 185000,
							   .energy_mj = 226440000}};
	queue->jobs[1] = (struct takt_job_view){.id = 13,
						.name = "later",
						.user = "bo",
						.state = "waiting",
						.gpus = 8,
						.start.starts_ms = 1000 + 720000,
						.why = "busy",
						.why_text = "waits for 2 more GPUs",
						.why_words = "needs 2 more"};
}

void fill(struct takt_top_snapshot *s, uint32_t gpus)
{
	takt_top_snapshot_init(s);
	s->daemon = true;
	s->at.ns = 1000000000;
	takt_strcpy(s->status.hostname, sizeof(s->status.hostname), "node7");
	takt_strcpy(s->status.driver_version, sizeof(s->status.driver_version), "550.54.15");
	takt_strcpy(s->status.cuda_version, sizeof(s->status.cuda_version), "12.4");
	s->host = (struct takt_top_host){.has = TAKT_TOP_HOST_CPU | TAKT_TOP_HOST_MEMORY |
						TAKT_TOP_HOST_LOAD,
					 .cpu_permille = 124,
					 .mem_used_bytes = (uint64_t)34 << 30,
					 .mem_total_bytes = (uint64_t)251 << 30,
					 .load_centi = {120, 98, 71}};
	s->status.simulated = true;
	s->status.running = s->status.waiting = 1;
	s->status.gpu_count = gpus;
	s->status.gpus = takt_calloc(gpus, sizeof(*s->status.gpus));
	assert_non_null(s->status.gpus);
	for (uint32_t i = 0; i < gpus; i++)
		s->status.gpus[i] = a_gpu(i);
	work(&s->status.gpus[0], 12, "train", 4711);
	work(&s->status.gpus[1], 12, "train", 4711);
	s->status.gpus[2].margin_c = 1;
	s->status.gpus[2].throttle = 0x40;
	s->status.gpus[3].lost = true;
	takt_strcpy(s->status.gpus[3].health_note, 240, "the driver has lost the GPU (reboot)");
	s->status.gpus[4].lease_max_mhz = 1410;
	s->status.gpus[5].nvlinks_up = 17;
	add_jobs(&s->queue);
	assert_int_equal(takt_top_gather_procs(s), 0);
	s->procs.at[0].id.start_ticks = 99;
	takt_strcpy(s->procs.at[0].id.boot_id, sizeof(s->procs.at[0].id.boot_id), boot_id);
	s->procs.at[0].cpu_known = true;
	s->procs.at[0].cpu_permille = 2140;
	s->procs.at[0].run_ms = 185000;
}

void take(uint32_t gpus)
{
	struct takt_top_snapshot snapshot;

	fill(&snapshot, gpus);
	assert_int_equal(takt_top_model_take(&model, &snapshot), 0);
}

void draw(int rows, int cols)
{
	assert_int_equal(takt_cells_resize(&cells, rows, cols), 0);
	takt_top_layout(&ui, &model, rows, cols, &layout);
	takt_top_settle(&ui, &model, &layout);
	takt_top_draw(&cells, &ui, &model, &layout);
}

int world_begin(void **state)
{
	takt_top_model_fini(&model);
	ui = (struct takt_top_ui){.focus = TAKT_PANE_PROCS,
				  .table = TAKT_PANE_PROCS,
				  .own_uid = 1000,
				  .rate_milli_hz = 1000};
	cells.ascii = false;
	for (int i = 0; i < 40; i++)
		take(8);
	return 0;
}

int world_open(void **state)
{
	setlocale(LC_CTYPE, "C.UTF-8");
	setenv("TZ", "UTC", 1);
	return 0;
}

int world_close(void **state)
{
	takt_top_model_fini(&model);
	takt_cells_fini(&cells);
	return 0;
}

struct takt_str screen(void)
{
	struct takt_str text = TAKT_STR(1 << 20);

	assert_int_equal(takt_cells_to_text(&cells, &text), 0);
	return text;
}

void expect_golden(const char *name)
{
	TAKT_CLEANUP(strp) struct takt_str text = screen();
	static char kept[1 << 16];
	char path[512];
	FILE *file;
	size_t n;

	snprintf(path, sizeof(path), "%s/%s.txt", GOLDEN, name);
	if (getenv("TAKT_GOLDEN_WRITE")) {
		file = fopen(path, "we");
		assert_non_null(file);
		fputs(takt_str_text(&text), file);
		fclose(file);
	}
	file = fopen(path, "re");
	assert_non_null(file);
	n = fread(kept, 1, sizeof(kept) - 1, file);
	fclose(file);
	kept[n] = '\0';
	assert_string_equal(takt_str_text(&text), kept);
}

void expect_on_screen(const char *part, bool there)
{
	TAKT_CLEANUP(strp) struct takt_str text = screen();

	if ((strstr(takt_str_text(&text), part) != NULL) != there)
		fail_msg("'%s' %s:\n%s", part, there ? "is missing" : "is there",
			 takt_str_text(&text));
}

struct takt_deed press(uint32_t key)
{
	struct takt_deed deed;

	takt_top_press(&ui, &model, &layout, key, &deed);
	draw(cells.rows, cells.cols);
	return deed;
}
