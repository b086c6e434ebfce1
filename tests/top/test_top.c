/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The terminal view without a terminal: whole screens as golden text, what keys do, and what the
 * model makes of snapshots. TAKT_GOLDEN_WRITE=1 writes the golden texts anew: look at them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "top/deed_line.h"
#include "top/graph.h"
#include "top/host_look.h"
#include "top/paint.h"
#include "top/top_json.h"
#include "top/top_log.h"
#include "top/top_past.h"
#include "top/top_text.h"
#include "top/top_ui.h"

static const char boot_id[] = "01234567-89ab-cdef-0123-456789abcdef";
static struct takt_top_model model;
static struct takt_top_ui ui;
static struct takt_top_layout layout;
static struct takt_cells cells;

static struct takt_gpu_view a_gpu(uint32_t index)
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
						.why_text = "waits for 2 more GPUs"};
}

/* 8 GPUs: two work, one is hot, one is lost, one is capped by takt. */
static void fill(struct takt_top_snapshot *s, uint32_t gpus)
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

static void take(uint32_t gpus)
{
	struct takt_top_snapshot snapshot;

	fill(&snapshot, gpus);
	assert_int_equal(takt_top_model_take(&model, &snapshot), 0);
}

static void draw(int rows, int cols)
{
	assert_int_equal(takt_cells_resize(&cells, rows, cols), 0);
	takt_top_layout(&ui, &model, rows, cols, &layout);
	takt_top_settle(&ui, &model, &layout);
	takt_top_draw(&cells, &ui, &model, &layout);
}

static int begin(void **state)
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

static int end(void **state)
{
	takt_top_model_fini(&model);
	takt_cells_fini(&cells);
	return 0;
}

static struct takt_str screen(void)
{
	struct takt_str text = TAKT_STR(1 << 20);

	assert_int_equal(takt_cells_to_text(&cells, &text), 0);
	return text;
}

static void expect_golden(const char *name)
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

static void expect_on_screen(const char *part, bool there)
{
	TAKT_CLEANUP(strp) struct takt_str text = screen();

	if ((strstr(takt_str_text(&text), part) != NULL) != there)
		fail_msg("'%s' %s:\n%s", part, there ? "is missing" : "is there",
			 takt_str_text(&text));
}

static struct takt_deed press(uint32_t key)
{
	struct takt_deed deed;

	takt_top_press(&ui, &model, &layout, key, &deed);
	draw(cells.rows, cells.cols);
	return deed;
}

static void screens_are_as_they_were(void **state)
{
	static const int sizes[][2] = {{24, 80}, {40, 120}, {60, 200}, {20, 60}};
	char name[32];

	for (size_t i = 0; i < TAKT_ARRAY_LEN(sizes); i++) {
		draw(sizes[i][0], sizes[i][1]);
		snprintf(name, sizeof(name), "%dx%d", sizes[i][1], sizes[i][0]);
		expect_golden(name);
	}
	cells.ascii = true;
	draw(40, 120);
	expect_golden("120x40_ascii");
}

static void zoomed_screens_are_as_they_were(void **state)
{
	ui.focus = TAKT_PANE_GPUS;
	draw(40, 120);
	press(TAKT_KEY_ENTER);
	expect_golden("gpu_120x40");
	press(TAKT_KEY_ESC);
	assert_int_equal(ui.focus, TAKT_PANE_GPUS);
	press('\t');
	press(TAKT_KEY_ENTER);
	expect_golden("job_120x40");
	draw(24, 80);
	expect_golden("job_80x24");
	assert_int_equal(press('q').kind, TAKT_DEED_NONE);
	assert_int_equal(ui.look, TAKT_LOOK_ALL);
	assert_int_equal(ui.focus, TAKT_PANE_JOBS);
	assert_int_equal(press('q').kind, TAKT_DEED_QUIT);
}

/* The charts of a job begin where it did: what was on its GPUs before is not drawn as its. */
static void a_jobs_charts_begin_with_it(void **state)
{
	static const char graph[] = "\u28ff\u28ff\u28ff\u28ff\u28ff\u28ff";

	model.now.queue.jobs[0].report.wall_ms = 5000;
	ui.look = TAKT_LOOK_JOB;
	ui.look_at = 12;
	draw(40, 120);
	expect_on_screen(graph, false);
	expect_on_screen("\u28ff\u28ff\u28ff", true);
	model.now.queue.jobs[0].report.wall_ms = 60000;
	draw(40, 120);
	expect_on_screen(graph, true);
}

/* More jobs than there is room for: `count` that wait, behind the two of the other tests. */
static void queue_up(uint32_t count)
{
	struct takt_queue_view *queue = &model.now.queue;
	struct takt_job_view *jobs = takt_calloc(2 + count, sizeof(*jobs));

	assert_non_null(jobs);
	memcpy(jobs, queue->jobs, 2 * sizeof(*jobs));
	for (uint32_t i = 0; i < count; i++) {
		jobs[2 + i] = jobs[1];
		jobs[2 + i].id = 100 + i;
	}
	takt_free(queue->jobs);
	queue->jobs = jobs;
	queue->count = queue->total = 2 + count;
}

static void a_list_that_is_longer_says_so_and_where_one_is(void **state)
{
	queue_up(38);
	ui.focus = ui.table = TAKT_PANE_JOBS;
	draw(24, 80);
	assert_true(layout.jobs.rows > layout.procs.rows && layout.procs.rows > 2);
	assert_true(layout.jobs.row < layout.procs.row);
	expect_on_screen("Jobs 1-5 of 40", true);
	expect_on_screen("\u25bc", true);
	expect_on_screen("\u25b2", false);
	press(TAKT_KEY_PAGE_DOWN);
	expect_on_screen("Jobs 2-6 of 40", true);
	expect_on_screen("\u25b2", true);
	press(TAKT_KEY_END);
	expect_on_screen("Jobs 36-40 of 40", true);
	expect_on_screen("\u25bc", false);
	cells.ascii = true;
	draw(24, 80);
	expect_on_screen("^\n", true);
}

static void jobs_are_shown_alone(void **state)
{
	queue_up(38);
	draw(24, 80);
	press('J');
	expect_golden("jobs_80x24");
	expect_on_screen("Jobs 1-19 of 40", true);
	expect_on_screen("Processes", false);
	press(TAKT_KEY_ENTER);
	expect_on_screen("job 12 train", true);
	press(TAKT_KEY_ESC);
	expect_on_screen("Jobs 1-19 of 40", true);
	press('J');
	expect_on_screen("Processes", true);
	press('J');
	press('\t');
	expect_on_screen("Processes", true);
	model.now.daemon = false;
	draw(24, 80);
	press('J');
	expect_on_screen("no daemon answers", true);
	expect_on_screen("Processes", true);
}

static void a_shared_gpu_shows_all_its_jobs(void **state)
{
	struct takt_gpu_view *gpu = &model.now.status.gpus[2];

	gpu->job_id = 20;
	gpu->share_count = 4;
	gpu->shares[0] = (struct takt_gpu_share_view){
		.job_id = 20, .name = "gone", .user = "bo", .milli = 250, .left = true};
	gpu->shares[1] = (struct takt_gpu_share_view){
		.job_id = 21, .name = "serve", .user = "ana", .milli = 500, .mem_mib = 20480};
	gpu->shares[2] = (struct takt_gpu_share_view){
		.job_id = 22, .name = "eval", .user = "bo", .milli = 250};
	gpu->shares[3] = gpu->shares[2]; /* another part of the same job's */
	draw(40, 120);
	expect_on_screen("#21 serve, #22 eval, #20 gone over", true);
	draw(24, 80);
	expect_on_screen("#21 #22 #20 over", true);
	draw(20, 60);
	expect_on_screen("#21 +2", true);
	ui.focus = TAKT_PANE_GPUS;
	ui.chosen[TAKT_PANE_GPUS] = 3;
	draw(40, 120);
	press(TAKT_KEY_ENTER);
	expect_on_screen("#21 serve  ana  0.50 of it, 20.0G reserved", true);
	expect_on_screen("#20 gone  bo  0.25 of it  over", true);
}

static void a_model_is_named_once(void **state)
{
	static const int sizes[][2] = {{24, 80}, {40, 120}, {60, 200}};
	const char *name = "H100 80GB HBM3";

	for (size_t i = 0; i < TAKT_ARRAY_LEN(sizes); i++) {
		TAKT_CLEANUP(strp) struct takt_str text = {0};
		const char *at;

		draw(sizes[i][0], sizes[i][1]);
		text = screen();
		at = strstr(takt_str_text(&text), name);
		assert_non_null(at);
		assert_null(strstr(at + 1, name));
	}
	takt_strcpy(model.now.status.gpus[7].name, 96, "TWIN NVIDIA A100-SXM4-40GB");
	draw(40, 120);
	expect_on_screen("GPU 0 H100 80GB HBM3", true);
	expect_on_screen("GPU 7 A100-SXM4-40GB", true);
	takt_top_model_fini(&model);
	take(32);
	takt_strcpy(model.now.status.gpus[7].name, 96, "TWIN NVIDIA A100-SXM4-40GB");
	draw(40, 120);
	expect_on_screen("NAME", true);
	expect_on_screen("A100-SXM4-40GB", true);
}

static void processes_say_what_they_use(void **state)
{
	struct takt_gpu_view *gpu = &model.now.status.gpus[4];

	gpu->proc_count = 1;
	gpu->procs[0] = (struct takt_proc_view){.pid = 4712, .uid = 1000, .user = "bo"};
	assert_int_equal(takt_top_gather_procs(&model.now), 0);
	model.now.procs.at[0].id.start_ticks = 99;
	model.now.procs.at[0].run_ms = 185000;
	model.now.procs.at[0].cpu_known = true;
	model.now.procs.at[0].cpu_permille = 2140;
	draw(24, 80);
	expect_on_screen("MEM  %SM %GMBW  %CPU", true);
	expect_on_screen("120G   93    41   214  3m05s", true);
	/* Nothing is known of the other one, which is not 0. */
	expect_on_screen("4    -    -     -     -      -", false);
	expect_on_screen("-    -     -     -      -", true);
	ui.focus = ui.table = TAKT_PANE_PROCS;
	for (int i = 0; i < 6; i++)
		press('s');
	expect_on_screen("by SM %", true);
	assert_int_equal(ui.sort[TAKT_PANE_PROCS], 6);
}

static void the_head_says_what_the_machine_is_and_does(void **state)
{
	draw(24, 80);
	expect_on_screen(
		"H100 80GB HBM3  driver 550.54.15 CUDA 12.4  CPU 12 %  mem 34.0G/251G  load 1.2\n",
		true);
	draw(40, 120);
	expect_on_screen("H100 80GB HBM3  driver 550.54.15 CUDA 12.4  CPU 12 %  "
			 "mem 34.0G/251G  load 1.20 0.98 0.71",
			 true);
	draw(40, 60);
	expect_on_screen("H100 80GB HBM3  driver 550.54.15 CUDA 12.4  CPU 12 %\n", true);
	draw(40, 75);
	expect_on_screen("H100 80GB\u2026  driver 550.54.15 CUDA 12.4  CPU 12 %  mem 34.0G/251G  "
			 "load 1.2\n",
			 true);
	model.now.host.has = TAKT_TOP_HOST_MEMORY;
	draw(40, 120);
	expect_on_screen("CPU 12", false);
	expect_on_screen("load", false);
}

static void the_kernels_words_on_the_machine_are_read(void **state)
{
	struct takt_top_host host = {0};
	struct takt_host_ticks ticks = {0}, before;

	assert_true(takt_host_read_ticks("cpu  10 2 8 70 5 1 3 1 0 0\ncpu0 1 2", &ticks));
	assert_int_equal(ticks.all, 100);
	assert_int_equal(ticks.busy, 25);
	assert_false(takt_host_read_ticks("cpu 1 2 3", &ticks));
	assert_true(takt_host_read_memory("MemTotal:       1000 kB\nMemFree: 1 kB\n"
					  "MemAvailable:    400 kB\n",
					  &host));
	assert_int_equal(host.mem_used_bytes, 600 * 1024);
	assert_false(takt_host_read_memory("MemTotal: 1000 kB\n", &host));
	assert_true(takt_host_read_load("1.20 0.98 12.71 1/2 3\n", &host));
	assert_int_equal(host.load_centi[0], 120);
	assert_int_equal(host.load_centi[1], 98);
	assert_int_equal(host.load_centi[2], 1271);
	assert_false(takt_host_read_load("1.20\n", &host));
	/* Here; how busy it is is known from the second look on. */
	before = (struct takt_host_ticks){0};
	takt_host_look(&before, &host);
	assert_int_equal(host.has, TAKT_TOP_HOST_MEMORY | TAKT_TOP_HOST_LOAD);
	before.all -= 10;
	takt_host_look(&before, &host);
	assert_true(host.has & TAKT_TOP_HOST_CPU);
}

/* On every screen, whatever is looked at, however narrow or wide it is. */
static void simulated_is_said_everywhere(void **state)
{
	static const enum takt_top_look looks[] = {TAKT_LOOK_ALL, TAKT_LOOK_GPU, TAKT_LOOK_JOB,
						   TAKT_LOOK_JOBS, TAKT_LOOK_LOG};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(looks); i++)
		for (int over = 0; over < 3; over++)
			for (int cols = 10; cols <= 1000; cols += cols < 100 ? 3 : 150)
				for (int rows = 2; rows <= 100; rows += rows < 30 ? 1 : 23) {
					ui.look = looks[i];
					ui.look_at = looks[i] == TAKT_LOOK_GPU ? 1 : 12;
					ui.help = over == 1;
					ui.ask.kind = over == 2 ? TAKT_DEED_CANCEL : TAKT_DEED_NONE;
					ui.paused = model.lost = cols % 2 == 0;
					draw(rows, cols);
					expect_on_screen("SIMULATED", true);
				}
	model.now.status.simulated = false;
	draw(24, 80);
	expect_on_screen("SIMULATED", false);
}

static struct takt_history_view points_of(struct takt_history_view_point *points, uint32_t count,
					  uint64_t step_ms)
{
	return (struct takt_history_view){
		.points = points, .point_count = count, .step_ms = step_ms};
}

/* A point is the value for as long as its step is; what lies between is not made up. */
static void the_past_is_put_where_it_belongs(void **state)
{
	struct takt_history_view_point coarse[] = {{80000, 0, 20, 0}, {90000, 0, 200, 0}},
				       fine[] = {{99500, 0, 70, 0}};
	struct takt_gpu_view gpu = a_gpu(0);
	struct takt_history_view view = points_of(coarse, 2, 10000);
	uint16_t row[TAKT_TOP_HISTORY];

	for (int i = 0; i < TAKT_TOP_HISTORY; i++)
		row[i] = TAKT_NO_VALUE;
	takt_top_past_put(&view, &gpu, TAKT_TOP_UTIL, 105000, 1000, row);
	assert_int_equal(row[5], TAKT_NO_VALUE); /* 100 s */
	assert_int_equal(row[6], 1000);
	assert_int_equal(row[15], 1000);
	assert_int_equal(row[16], 200);
	assert_int_equal(row[25], 200);
	assert_int_equal(row[26], TAKT_NO_VALUE);
	view = points_of(fine, 1, 0);
	takt_top_past_put(&view, &gpu, TAKT_TOP_UTIL, 105000, 1000, row);
	assert_int_equal(row[3], TAKT_NO_VALUE);
	assert_int_equal(row[4], 700);
	assert_int_equal(row[5], 700);
	assert_int_equal(row[6], 1000);
	fine[0].mean = 350; /* W, of 700 */
	takt_top_past_put(&view, &gpu, TAKT_TOP_POWER, 105000, 1000, row);
	assert_int_equal(row[5], 500);
	gpu.has = 0;
	fine[0].mean = 1;
	takt_top_past_put(&view, &gpu, TAKT_TOP_POWER, 105000, 1000, row);
	assert_int_equal(row[5], 500); /* of what is not known */
}

static void graphs_are_full_from_the_past(void **state)
{
	struct takt_top_snapshot snapshot;
	const struct takt_top_history *history;

	takt_top_model_fini(&model);
	take(8);
	draw(40, 120);
	expect_on_screen("\u28ff\u28ff", false);
	fill(&snapshot, 8);
	snapshot.past = takt_top_past_new(1, 1000);
	assert_non_null(snapshot.past);
	strcpy(snapshot.past->gpus[0].uuid, "GPU-6");
	for (int s = 0; s < TAKT_TOP_SERIES; s++)
		for (int i = 0; i < TAKT_TOP_HISTORY; i++)
			snapshot.past->gpus[0].permille[s][i] = i < 60 ? 1000 : TAKT_NO_VALUE;
	assert_int_equal(takt_top_model_take(&model, &snapshot), 0);
	history = &model.history[6];
	assert_int_equal(history->count, 60);
	assert_int_equal(model.history[5].count, 2);
	/* The two that were seen live stay, what is older comes behind them. */
	assert_int_equal(takt_top_curve_at(&(struct takt_top_curve){history, TAKT_TOP_UTIL, 0}, 1),
			 0);
	assert_int_equal(takt_top_curve_at(&(struct takt_top_curve){history, TAKT_TOP_UTIL, 0}, 2),
			 1000);
	draw(40, 120);
	expect_on_screen("\u28ff\u28ff", true);
	take(8);
	assert_int_equal(takt_top_curve_at(&(struct takt_top_curve){history, TAKT_TOP_UTIL, 0}, 3),
			 1000);
}

static void print_log(uint64_t job, int lines)
{
	char line[80];

	model.now.log.job_id = job;
	for (int i = 1; i <= lines; i++) {
		snprintf(line, sizeof(line), "step %d of %d\n", i, lines);
		takt_top_log_add(&model.now.log, line, strlen(line));
	}
}

static void a_jobs_log_is_shown_and_scrolled(void **state)
{
	struct takt_deed deed;

	ui.focus = ui.table = TAKT_PANE_JOBS;
	draw(24, 80);
	press('l');
	expect_on_screen("Enter on a job", true);
	press(TAKT_KEY_ENTER);
	deed = press('l');
	assert_int_equal(deed.kind, TAKT_DEED_LOG);
	assert_int_equal(deed.job_id, 12);
	expect_on_screen("it is being read", true);
	print_log(12, 100);
	draw(24, 80);
	expect_golden("log_80x24");
	press(TAKT_KEY_UP);
	expect_on_screen("step 100 of", false);
	expect_on_screen("step 99 of", true);
	print_log(12, 3); /* what comes meanwhile moves nothing */
	draw(24, 80);
	expect_on_screen("step 99 of", true);
	press('g');
	expect_on_screen("step 1 of 100", true);
	press('G');
	expect_on_screen("step 3 of 3", true);
	press(TAKT_KEY_RIGHT);
	expect_on_screen("step", false);
	deed = press('q');
	assert_int_equal(deed.kind, TAKT_DEED_LOG);
	assert_int_equal(deed.job_id, 0);
	assert_int_equal(ui.look, TAKT_LOOK_JOB);
}

static void a_log_is_for_who_may_read_it(void **state)
{
	model.now.queue.jobs[0].mine = false;
	ui.focus = ui.table = TAKT_PANE_JOBS;
	draw(24, 80);
	press(TAKT_KEY_ENTER);
	assert_int_equal(press('l').kind, TAKT_DEED_NONE);
	expect_on_screen("its owner's", true);
	assert_int_equal(ui.look, TAKT_LOOK_JOB);
	ui.look = TAKT_LOOK_LOG;
	model.now.log.job_id = 12;
	strcpy(model.now.log.why_not, "job 12 is another user's");
	draw(24, 80);
	expect_on_screen("job 12 is another user's", true);
}

/* Lines as a terminal would leave them, and no more than are kept. */
static void a_log_is_made_plain(void **state)
{
	static const struct {
		const char *line, *plain;
	} cases[] = {
		{"\033[1;31mred\033[0m", "red"}, {" 10%|#  |\r 99%|###|", " 99%|###|"},
		{"windows\r", "windows"},	 {"a\tb", "a       b"},
		{"cut \033[1", "cut "},		 {"", ""},
	};
	static char text[TAKT_TOP_LOG_LINE], more[1000];
	struct takt_top_log log = {0};
	size_t len;

	for (size_t i = 0; i < TAKT_ARRAY_LEN(cases); i++) {
		takt_top_log_plain(cases[i].line, strlen(cases[i].line), text);
		assert_string_equal(text, cases[i].plain);
	}
	memset(more, 'x', sizeof(more));
	more[sizeof(more) - 1] = '\n';
	for (int i = 0; i < 1000; i++)
		takt_top_log_add(&log, more, sizeof(more));
	assert_in_range(log.text.len, 1, TAKT_TOP_LOG_BYTES);
	assert_int_equal(log.dropped_lines + takt_top_log_lines(&log), 1000);
	takt_top_log_add(&log, "a\0b", 3);
	(void)takt_top_log_line(&log, takt_top_log_lines(&log) - 1, &len);
	assert_int_equal(len, 3);
	takt_top_log_fini(&log);
}

static void sixty_four_gpus_are_scrolled(void **state)
{
	takt_top_model_fini(&model);
	take(64);
	ui.focus = TAKT_PANE_GPUS;
	draw(24, 80);
	expect_on_screen("\n 63 ", false);
	press(TAKT_KEY_END);
	expect_on_screen("\n 63 ", true);
	draw(60, 200);
	expect_on_screen(" 63 ", true);
}

/* Any size at all, with any key: nothing is drawn outside, nothing breaks. */
static void every_size_holds(void **state)
{
	static const uint32_t keys[] = {'\t', TAKT_KEY_ENTER, '?', 'x', 't', TAKT_KEY_END, 'c',
					'n',  TAKT_KEY_DOWN,  'I', 's', 'm', TAKT_KEY_ESC};

	for (int rows = 1; rows < 70; rows += 3)
		for (int cols = 1; cols < 210; cols += 7) {
			draw(rows, cols);
			press(keys[(rows + cols) % (int)TAKT_ARRAY_LEN(keys)]);
		}
}

static void a_cancel_is_asked_first(void **state)
{
	struct takt_deed deed;

	ui.focus = ui.table = TAKT_PANE_JOBS;
	draw(40, 120);
	assert_int_equal(press('c').kind, TAKT_DEED_NONE);
	expect_on_screen("Cancel job 12 train?", true);
	expect_on_screen("python3 train.py --lr 0.1", true);
	assert_int_equal(press(TAKT_KEY_ENTER).kind, TAKT_DEED_NONE);
	assert_int_equal(press('n').kind, TAKT_DEED_NONE);
	assert_int_equal(press('y').kind, TAKT_DEED_NONE);
	press('c');
	deed = press('y');
	assert_int_equal(deed.kind, TAKT_DEED_CANCEL);
	assert_int_equal(deed.job_id, 12);
}

static void a_requeue_is_asked_first(void **state)
{
	struct takt_deed deed;

	ui.focus = ui.table = TAKT_PANE_JOBS;
	draw(40, 120);
	assert_int_equal(press('R').kind, TAKT_DEED_NONE);
	expect_on_screen("Requeue job 12 train?", true);
	expect_on_screen("waits in its old place and begins anew", true);
	assert_int_equal(press('n').kind, TAKT_DEED_NONE);
	press('R');
	deed = press('y');
	assert_int_equal(deed.kind, TAKT_DEED_REQUEUE);
	assert_int_equal(deed.job_id, 12);
}

static void a_signal_is_for_the_process_of_the_row(void **state)
{
	struct takt_deed deed;

	draw(40, 120);
	deed = press(TAKT_KEY_F1 + 8);
	assert_int_equal(deed.kind, TAKT_DEED_LOOK_UP);
	assert_int_equal(deed.proc.start_ticks, 99);
	expect_on_screen("Signal process 4711?", true);
	press(TAKT_KEY_RIGHT);
	deed = press('y');
	assert_int_equal(deed.kind, TAKT_DEED_SIGNAL);
	assert_int_equal(deed.signal, 2);
	assert_int_equal(deed.proc.pid, 4711);
	press('K');
	assert_int_equal(press('n').kind, TAKT_DEED_DROP);
}

static void others_processes_get_no_signal(void **state)
{
	draw(40, 120);
	ui.own_uid = 1001;
	assert_int_equal(press('K').kind, TAKT_DEED_NONE);
	expect_on_screen("only with --allow-foreign", true);
	ui.allow_foreign = true;
	assert_int_equal(press('K').kind, TAKT_DEED_LOOK_UP);
	press('n');
	model.now.procs.at[0].id.start_ticks = 0;
	assert_int_equal(press('K').kind, TAKT_DEED_NONE);
}

static void lists_are_filtered_and_ordered(void **state)
{
	ui.focus = ui.table = TAKT_PANE_JOBS;
	draw(40, 120);
	press('/');
	press('b');
	press('o');
	press(TAKT_KEY_ENTER);
	expect_on_screen("filter: bo", true);
	expect_on_screen("Jobs 1", true);
	press(TAKT_KEY_ESC);
	expect_on_screen("Jobs 2", true);
	press('s');
	press('I');
	expect_on_screen("by number, reversed", true);
	assert_int_equal(ui.chosen[TAKT_PANE_JOBS] & UINT32_MAX, 13);
	assert_int_equal(ui.selected[TAKT_PANE_JOBS], 0);
	press('I');
	assert_int_equal(ui.chosen[TAKT_PANE_JOBS] & UINT32_MAX, 13);
	assert_int_equal(ui.selected[TAKT_PANE_JOBS], 1);
}

static void the_mouse_selects_and_zooms(void **state)
{
	struct takt_deed deed;

	draw(24, 80);
	takt_top_click(&ui, &model, &layout, 4, 5, 0, false, &deed);
	assert_int_equal(ui.focus, TAKT_PANE_GPUS);
	assert_int_equal(ui.selected[TAKT_PANE_GPUS], 1);
	takt_top_click(&ui, &model, &layout, 5, 5, 0, true, &deed);
	assert_int_equal(ui.look, TAKT_LOOK_GPU);
	assert_int_equal(ui.look_at, 2);
	takt_top_click(&ui, &model, &layout, 23, 1, 0, false, &deed);
	assert_true(ui.help);
}

static void no_news_keep_what_was_known(void **state)
{
	struct takt_top_snapshot none;

	takt_top_snapshot_init(&none);
	takt_strcpy(none.why_not, sizeof(none.why_not), "no takt answers");
	assert_int_equal(takt_top_model_take(&model, &none), 0);
	draw(24, 80);
	expect_on_screen("NO NEWS", true);
	expect_on_screen("no takt answers", true);
	expect_on_screen("#12 train", true);
	take(8);
	draw(24, 80);
	expect_on_screen("NO NEWS", false);
}

static void a_queue_that_was_not_asked_for_stays(void **state)
{
	struct takt_top_snapshot next;

	fill(&next, 8);
	takt_queue_view_fini(&next.queue);
	next.same_queue = true;
	assert_int_equal(takt_top_model_take(&model, &next), 0);
	assert_int_equal(model.now.queue.count, 2);
}

/* Three machines: the one of the other tests, one that has not answered, and it again. */
static void watch_several(struct takt_top_model *silent)
{
	*silent = (struct takt_top_model){.lost = true, .lost_why = "down: No route to host"};
	ui.hosts = (struct takt_top_hosts){
		.count = 3, .at = {{"node7", &model}, {"down", silent}, {"node9", &model}}};
}

static void several_machines_have_a_line(void **state)
{
	struct takt_top_model silent;
	struct takt_deed deed;

	watch_several(&silent);
	draw(24, 80);
	expect_golden("hosts_80x24");
	assert_int_equal(press('[').kind, TAKT_DEED_NONE);
	assert_int_equal(ui.hosts.shown, 2);
	press(']');
	press(']');
	assert_int_equal(ui.hosts.shown, 1);
	takt_top_layout(&ui, &silent, 24, 80, &layout);
	takt_top_settle(&ui, &silent, &layout);
	takt_top_draw(&cells, &ui, &silent, &layout);
	expect_golden("silent_host_80x24");
	for (int rows = 1; rows < 40; rows++)
		for (int cols = 1; cols < 100; cols += 7) {
			assert_int_equal(takt_cells_resize(&cells, rows, cols), 0);
			takt_top_layout(&ui, &silent, rows, cols, &layout);
			takt_top_press(&ui, &silent, &layout, TAKT_KEY_ENTER, &deed);
			takt_top_draw(&cells, &ui, &silent, &layout);
		}
}

static void the_shown_machine_is_in_the_line(void **state)
{
	struct takt_top_model silent;

	watch_several(&silent);
	ui.hosts.shown = 2;
	draw(24, 30);
	expect_on_screen("node9", true);
	expect_on_screen("\n node7", false);
}

/* The question names the machine that is shown, and the deed is for that one. */
static void a_deed_is_for_the_machine_that_is_shown(void **state)
{
	struct takt_top_model silent;
	struct takt_deed deed;

	watch_several(&silent);
	ui.hosts.shown = 2;
	ui.focus = ui.table = TAKT_PANE_JOBS;
	draw(40, 120);
	assert_int_equal(press('c').kind, TAKT_DEED_NONE);
	expect_golden("ask_host_120x40");
	assert_int_equal(press(']').kind, TAKT_DEED_NONE);
	assert_int_equal(ui.hosts.shown, 2);
	deed = press('y');
	assert_int_equal(deed.kind, TAKT_DEED_CANCEL);
	assert_int_equal(deed.job_id, 12);
	assert_int_equal(deed.host, 2);
	assert_int_equal(press('H').host, 2);
	press('R');
	assert_int_equal(press('y').host, 2);
}

/* Whose it is, and whether it is still the same, is known where it runs. */
static void a_signal_for_another_machine_is_not_looked_up_here(void **state)
{
	struct takt_top_model silent;
	struct takt_deed deed;

	watch_several(&silent);
	ui.own_uid = 1001;
	draw(40, 120);
	assert_int_equal(press('K').kind, TAKT_DEED_NONE);
	expect_on_screen("node7", true);
	expect_on_screen("Signal process 4711?", true);
	deed = press('y');
	assert_int_equal(deed.kind, TAKT_DEED_SIGNAL);
	assert_int_equal(deed.proc.start_ticks, 99);
	assert_string_equal(deed.proc.boot_id, boot_id);
}

static void a_deed_is_a_line(void **state)
{
	static const struct {
		const char *line;
		enum takt_deed_kind kind;
		bool hold;
	} lines[] = {
		{"{\"do\":\"cancel\",\"job_id\":12}\n", TAKT_DEED_CANCEL, false},
		{"{\"do\":\"requeue\",\"job_id\":12}\n", TAKT_DEED_REQUEUE, false},
		{"{\"do\":\"hold\",\"job_id\":12}\n", TAKT_DEED_HOLD, true},
		{"{\"do\":\"release\",\"job_id\":12}\n", TAKT_DEED_HOLD, false},
	};
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(TAKT_DEED_LINE);
	struct takt_deed deed = {
		.kind = TAKT_DEED_SIGNAL, .signal = 15, .proc = {.pid = 4711, .start_ticks = 99}};
	struct takt_deed read;

	for (size_t i = 0; i < TAKT_ARRAY_LEN(lines); i++) {
		assert_int_equal(
			takt_deed_from_line(lines[i].line, strlen(lines[i].line), &read, NULL), 0);
		assert_true(read.kind == lines[i].kind && read.hold == lines[i].hold);
		takt_str_reset(&text);
		takt_deed_to_line(&read, &text);
		assert_string_equal(takt_str_text(&text), lines[i].line);
	}
	strcpy(deed.proc.boot_id, boot_id);
	takt_str_reset(&text);
	takt_deed_to_line(&deed, &text);
	assert_int_equal(takt_deed_from_line(text.s, text.len, &read, NULL), 0);
	assert_true(read.kind == TAKT_DEED_SIGNAL && read.signal == 15 && read.proc.pid == 4711);
	assert_int_equal(read.proc.start_ticks, 99);
	assert_string_equal(read.proc.boot_id, boot_id);
}

static void a_wrong_line_does_nothing(void **state)
{
	static const char *const bad[] = {
		"{}",
		"cancel 12",
		"{\"do\":\"reboot\",\"job_id\":12}",
		"{\"do\":\"cancel\"}",
		"{\"do\":\"cancel\",\"job_id\":-1}",
		"{\"do\":\"signal\",\"signal\":9,\"pid\":1,\"start_ticks\":9}",
		"{\"do\":\"signal\",\"signal\":0,\"pid\":1,\"start_ticks\":9,\"boot_id\":"
		"\"01234567-89ab-cdef-0123-456789abcdef\"}",
		"{\"do\":\"signal\",\"signal\":9,\"pid\":0,\"start_ticks\":9,\"boot_id\":"
		"\"01234567-89ab-cdef-0123-456789abcdef\"}",
	};
	struct takt_deed deed = {.kind = TAKT_DEED_NONE};
	struct takt_err err;
	char said[20];
	bool failed;

	for (size_t i = 0; i < TAKT_ARRAY_LEN(bad); i++) {
		assert_true(takt_deed_from_line(bad[i], strlen(bad[i]), &deed, &err) < 0);
		assert_true(takt_deed_answer_from_line(bad[i], strlen(bad[i]), &failed, said,
						       sizeof(said), &err) < 0);
		assert_int_equal(deed.kind, TAKT_DEED_NONE);
	}
	assert_int_equal(takt_deed_answer_from_line("{\"failed\":\"no\"}", 15, &failed, said,
						    sizeof(said), &err),
			 0);
	assert_true(failed && strcmp(said, "no") == 0);
}

static void a_look_is_read_as_it_was_written(void **state)
{
	TAKT_CLEANUP(strp) struct takt_str once = TAKT_STR(1 << 20), twice = TAKT_STR(1 << 20);
	struct takt_top_snapshot copy;

	assert_int_equal(takt_top_to_json(&model.now, &once), 0);
	assert_int_equal(takt_top_from_json(takt_str_text(&once), once.len, &copy, NULL), 0);
	assert_int_equal(copy.procs.at[0].id.start_ticks, 99);
	assert_string_equal(copy.procs.at[0].id.boot_id, boot_id);
	assert_int_equal(copy.queue.count, 2);
	assert_int_equal(takt_top_to_json(&copy, &twice), 0);
	assert_string_equal(takt_str_text(&once), takt_str_text(&twice));
	takt_top_snapshot_fini(&copy);
}

static void a_bad_look_is_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"Welcome to node7!",
		"{}",
		"{\"at_ms\":1,\"from\":\"hearsay\",\"status\":{},\"processes\":[]}",
		"{\"at_ms\":-1,\"from\":\"driver\",\"status\":{},\"processes\":[]}",
		"{\"at_ms\":1,\"from\":\"driver\",\"status\":7,\"processes\":[]}",
	};
	static const char *const procs[] = {
		"{}",
		"{\"pid\":-1}",
		"{\"pid\":1.5}",
		"{\"pid\":3},{\"pid\":3}",
		"{\"pid\":3,\"gpus\":[64]}",
	};
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(1 << 20);
	struct takt_top_snapshot copy;
	struct takt_err err;
	char *end;

	for (size_t i = 0; i < TAKT_ARRAY_LEN(bad); i++)
		assert_true(takt_top_from_json(bad[i], strlen(bad[i]), &copy, &err) < 0);
	for (size_t i = 0; i < TAKT_ARRAY_LEN(procs); i++) {
		takt_str_reset(&text);
		assert_int_equal(takt_top_to_json(&model.now, &text), 0);
		end = strstr(text.s, "\"processes\":[");
		assert_non_null(end);
		text.len = (size_t)(end - text.s);
		takt_str_addf(&text, "\"processes\":[%s]}", procs[i]);
		assert_int_equal(takt_top_from_json(text.s, text.len, &copy, &err),
				 -TAKT_E_CORRUPT);
		assert_non_null(strstr(err.msg, "processes"));
	}
}

/* As many processes as a GPU lists, each with a line to go to; what is beyond them is counted. */
static void a_hundred_processes_of_a_gpu_are_scrolled(void **state)
{
	struct takt_gpu_view *gpu = &model.now.status.gpus[2];

	gpu->proc_count = TAKT_VIEW_MAX_PROCS + 12;
	for (int i = 0; i < TAKT_VIEW_MAX_PROCS; i++)
		gpu->procs[i] = (struct takt_proc_view){.pid = 20001 + i, .uid = 1000};
	assert_int_equal(takt_top_gather_procs(&model.now), 0);
	assert_int_equal(model.now.procs.len, TAKT_VIEW_MAX_PROCS + 1);
	assert_int_equal(takt_top_unlisted(&model.now), 12);
	draw(40, 120);
	expect_on_screen(" of 129 and 12 that are not listed", true);
	expect_on_screen(" 20128 ", false);
	press(TAKT_KEY_END);
	expect_on_screen(" 20128 ", true);
	gpu->proc_count = TAKT_VIEW_MAX_PROCS;
	draw(40, 120);
	expect_on_screen("not listed", false);
}

static void links_are_counted_where_there_are_some(void **state)
{
	takt_top_model_fini(&model);
	take(64);
	draw(60, 240);
	expect_on_screen("NVLINK", true);
	expect_on_screen(" 17/18 ", true);
	for (int i = 0; i < 64; i++)
		model.now.status.gpus[i].has &= ~(uint32_t)TAKT_VIEW_NVLINKS;
	draw(60, 240);
	expect_on_screen("NVLINK", false);
	take(8);
	model.now.status.gpus[0].has |= TAKT_VIEW_NVLINK_RATES;
	model.now.status.gpus[0].nvlink_sent_bytes_per_s = (uint64_t)3 << 30;
	ui.focus = TAKT_PANE_GPUS;
	draw(40, 120);
	expect_on_screen("NVLink 18/18 3.0G/0/s", false); /* a card has no room for it */
	press(TAKT_KEY_ENTER);
	expect_on_screen("NVLink 18/18 3.0G/0/s", true);
}

static void what_was_not_read_is_not_shown(void **state)
{
	struct takt_gpu_view *gpu = &model.now.status.gpus[0];

	gpu->has = 0;
	assert_int_equal(takt_top_value(gpu, TAKT_TOP_UTIL), TAKT_NO_VALUE);
	draw(24, 80);
	expect_on_screen("612", true); /* of the other GPU */
	model.now.status.gpus[1].has = 0;
	draw(24, 80);
	expect_on_screen("612", false);
	expect_on_screen("0 \u00b0C", false);
}

static void others_text_cannot_steer_the_terminal(void **state)
{
	takt_strcpy(model.now.queue.jobs[0].name, 65, "a\033[2Jb\n\xff\xe6\x97\xa5");
	draw(40, 120);
	expect_on_screen("a?[2Jb???", true);
}

/* A snapshot is taken whole or left whole, and a list that could not be made is short. */
static void memory_may_be_short(void **state)
{
	struct takt_top_snapshot snapshot;
	int rc;

	for (unsigned long n = 1; n < 6; n++) {
		takt_top_model_fini(&model);
		fill(&snapshot, 8);
		takt_alloc_fail_nth(n, 0);
		rc = takt_top_model_take(&model, &snapshot);
		takt_top_layout(&ui, &model, 24, 80, &layout);
		takt_top_settle(&ui, &model, &layout);
		if (takt_cells_resize(&cells, 24, 80) == 0)
			takt_top_draw(&cells, &ui, &model, &layout);
		takt_alloc_fail_nth(0, 0);
		assert_int_equal(snapshot.status.gpu_count, rc < 0 ? 8 : 0);
		assert_int_equal(model.now.status.gpu_count, rc < 0 ? 0 : 8);
		takt_top_snapshot_fini(&snapshot);
	}
}

static void quantities_are_short(void **state)
{
	char text[TAKT_TOP_TEXT];

	assert_string_equal(takt_top_bytes(0, text), "0");
	assert_string_equal(takt_top_bytes((uint64_t)512 << 20, text), "512M");
	assert_string_equal(takt_top_bytes((uint64_t)61 << 30, text), "61.0G");
	assert_string_equal(takt_top_energy(850000, text), "850 J");
	assert_string_equal(takt_top_energy(12300000, text), "12.3 kJ");
	assert_string_equal(takt_top_energy(4500000000, text), "1.25 kWh");
	assert_string_equal(takt_top_span(185000, text), "3m05s");
	assert_string_equal(takt_top_gpus(0x4f, text), "0-3,6");
	assert_string_equal(takt_top_gpus(0, text), "-");
}

static void say_move(int row, int col, char ret[TAKT_MOVE_BYTES])
{
	snprintf(ret, TAKT_MOVE_BYTES, "<%d,%d>", row, col);
}

static void painted(const struct takt_cells *grid, struct takt_cells *shown, bool all,
		    const struct takt_pens *pens, const char *expected)
{
	struct takt_str out = TAKT_STR(1024);

	assert_int_equal(takt_paint(grid, shown, all, pens, &out), 0);
	assert_string_equal(takt_str_text(&out), expected);
	takt_str_fini(&out);
}

static void only_what_differs_is_painted(void **state)
{
	struct takt_pens pens = {.plain = "[0]", .clear = "[clear]", .move = say_move};
	struct takt_cells grid = {0}, shown = {0};

	strcpy(pens.pen[TAKT_ROLE_PLAIN][0], "[p]");
	strcpy(pens.pen[TAKT_ROLE_BOLD][0], "[b]");
	strcpy(pens.pen[TAKT_ROLE_BOLD][1], "[B]");
	assert_int_equal(takt_cells_resize(&grid, 2, 20), 0);
	takt_cells_text(&grid, 0, 0, 20, TAKT_ROLE_PLAIN, "ab");
	takt_cells_text(&grid, 0, 10, 10, TAKT_ROLE_BOLD, "\u03bcs");
	painted(&grid, &shown, false, &pens, "[clear]<0,0>[p]ab<0,10>[b]\u03bcs[0]");
	painted(&grid, &shown, false, &pens, "");
	/* A short way in the same look is written, a long one is leapt over. */
	takt_cells_text(&grid, 0, 0, 20, TAKT_ROLE_PLAIN, "A  D    I");
	painted(&grid, &shown, false, &pens, "<0,0>[p]A  D    I[0]");
	takt_cells_text(&grid, 0, 0, 20, TAKT_ROLE_PLAIN, "a  D    i");
	painted(&grid, &shown, false, &pens, "<0,0>[p]a<0,8>i[0]");
	takt_cells_select(&grid, 0, 11, 1);
	takt_cells_text(&grid, 1, 19, 1, TAKT_ROLE_PLAIN, "z");
	painted(&grid, &shown, false, &pens, "<0,11>[B]s<1,19>[p]z[0]");
	painted(&grid, &shown, true, &pens, "[clear]<0,0>[p]a  D    i [b]\u03bc[B]s<1,19>[p]z[0]");
	pens.last_scrolls = true;
	takt_cells_text(&grid, 1, 18, 2, TAKT_ROLE_PLAIN, "yy");
	painted(&grid, &shown, false, &pens, "<1,18>[p]y[0]");
	takt_cells_fini(&grid);
	takt_cells_fini(&shown);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(screens_are_as_they_were, begin),
		cmocka_unit_test_setup(zoomed_screens_are_as_they_were, begin),
		cmocka_unit_test_setup(a_jobs_charts_begin_with_it, begin),
		cmocka_unit_test_setup(a_list_that_is_longer_says_so_and_where_one_is, begin),
		cmocka_unit_test_setup(jobs_are_shown_alone, begin),
		cmocka_unit_test_setup(a_shared_gpu_shows_all_its_jobs, begin),
		cmocka_unit_test_setup(a_model_is_named_once, begin),
		cmocka_unit_test_setup(processes_say_what_they_use, begin),
		cmocka_unit_test_setup(the_head_says_what_the_machine_is_and_does, begin),
		cmocka_unit_test(the_kernels_words_on_the_machine_are_read),
		cmocka_unit_test_setup(simulated_is_said_everywhere, begin),
		cmocka_unit_test(the_past_is_put_where_it_belongs),
		cmocka_unit_test_setup(graphs_are_full_from_the_past, begin),
		cmocka_unit_test_setup(a_jobs_log_is_shown_and_scrolled, begin),
		cmocka_unit_test_setup(a_log_is_for_who_may_read_it, begin),
		cmocka_unit_test(a_log_is_made_plain),
		cmocka_unit_test_setup(sixty_four_gpus_are_scrolled, begin),
		cmocka_unit_test_setup(every_size_holds, begin),
		cmocka_unit_test_setup(a_cancel_is_asked_first, begin),
		cmocka_unit_test_setup(a_requeue_is_asked_first, begin),
		cmocka_unit_test_setup(a_signal_is_for_the_process_of_the_row, begin),
		cmocka_unit_test_setup(others_processes_get_no_signal, begin),
		cmocka_unit_test_setup(lists_are_filtered_and_ordered, begin),
		cmocka_unit_test_setup(the_mouse_selects_and_zooms, begin),
		cmocka_unit_test_setup(no_news_keep_what_was_known, begin),
		cmocka_unit_test_setup(a_queue_that_was_not_asked_for_stays, begin),
		cmocka_unit_test_setup(several_machines_have_a_line, begin),
		cmocka_unit_test_setup(the_shown_machine_is_in_the_line, begin),
		cmocka_unit_test_setup(a_deed_is_for_the_machine_that_is_shown, begin),
		cmocka_unit_test_setup(a_signal_for_another_machine_is_not_looked_up_here, begin),
		cmocka_unit_test(a_deed_is_a_line),
		cmocka_unit_test(a_wrong_line_does_nothing),
		cmocka_unit_test_setup(a_look_is_read_as_it_was_written, begin),
		cmocka_unit_test_setup(a_bad_look_is_refused, begin),
		cmocka_unit_test_setup(a_hundred_processes_of_a_gpu_are_scrolled, begin),
		cmocka_unit_test_setup(links_are_counted_where_there_are_some, begin),
		cmocka_unit_test_setup(what_was_not_read_is_not_shown, begin),
		cmocka_unit_test_setup(others_text_cannot_steer_the_terminal, begin),
		cmocka_unit_test_setup(memory_may_be_short, begin),
		cmocka_unit_test(quantities_are_short),
		cmocka_unit_test(only_what_differs_is_painted),
	};

	setlocale(LC_CTYPE, "C.UTF-8");
	setenv("TZ", "UTC", 1);
	return cmocka_run_group_tests(tests, NULL, end);
}
