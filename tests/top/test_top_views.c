/* SPDX-License-Identifier: Apache-2.0 */
/* What the terminal view shows beside its lists: the head, shared GPUs, a job and its log, and what
 * was before. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "top/graph.h"
#include "top/host_look.h"
#include "top/top_log.h"
#include "top/top_past.h"
#include "top/top_ui.h"
#include "top_world.h"

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
	expect_on_screen("A100-SXM4", true);
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
	static const int heights[] = {2, 3, 4, 5, 8, 12, 16, 20, 24, 40, 100};
	static const int widths[] = {10, 11, 17, 18, 24, 25, 31, 40, 55, 60, 79, 80, 100, 200, 999};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(looks); i++)
		for (int over = 0; over < 3; over++) {
			ui.look = looks[i];
			ui.look_at = looks[i] == TAKT_LOOK_GPU ? 1 : 12;
			ui.help = over == 1;
			ui.ask.kind = over == 2 ? TAKT_DEED_CANCEL : TAKT_DEED_NONE;
			ui.paused = model.lost = over == (int)(i % 3);
			for (size_t w = 0; w < TAKT_ARRAY_LEN(widths); w++)
				for (size_t h = 0; h < TAKT_ARRAY_LEN(heights); h++) {
					draw(heights[h], widths[w]);
					expect_on_screen("SIMULATED", true);
				}
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
	struct takt_history_view samples = points_of(fine, 1, 0),
				 means = points_of(coarse, 2, 10000);
	uint16_t util[TAKT_TOP_HISTORY], power[TAKT_TOP_HISTORY];

	for (int i = 0; i < TAKT_TOP_HISTORY; i++)
		util[i] = power[i] = TAKT_NO_VALUE;
	takt_top_past_put(&samples, &gpu, TAKT_TOP_UTIL, 105000, 1000, util);
	assert_int_equal(util[3], TAKT_NO_VALUE);
	assert_int_equal(util[4], 700); /* 101 s */
	assert_int_equal(util[5], 700);
	assert_int_equal(util[6], TAKT_NO_VALUE);
	coarse[1].at_ms = 91000; /* what was sampled stays */
	takt_top_past_put(&means, &gpu, TAKT_TOP_UTIL, 105000, 1000, util);
	assert_int_equal(util[4], 700);
	assert_int_equal(util[5], 700);
	assert_int_equal(util[6], 1000);
	assert_int_equal(util[14], 1000);
	assert_int_equal(util[15], TAKT_NO_VALUE); /* 90 s */
	assert_int_equal(util[16], 200);
	assert_int_equal(util[25], 200);
	assert_int_equal(util[26], TAKT_NO_VALUE);
	fine[0].mean = 350; /* W, of 700 */
	takt_top_past_put(&samples, &gpu, TAKT_TOP_POWER, 105000, 1000, power);
	assert_int_equal(power[5], 500);
	gpu.has = 0; /* of what is not known */
	takt_top_past_put(&means, &gpu, TAKT_TOP_POWER, 105000, 1000, power);
	assert_int_equal(power[6], TAKT_NO_VALUE);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_jobs_charts_begin_with_it, world_begin),
		cmocka_unit_test_setup(a_list_that_is_longer_says_so_and_where_one_is, world_begin),
		cmocka_unit_test_setup(jobs_are_shown_alone, world_begin),
		cmocka_unit_test_setup(a_shared_gpu_shows_all_its_jobs, world_begin),
		cmocka_unit_test_setup(a_model_is_named_once, world_begin),
		cmocka_unit_test_setup(processes_say_what_they_use, world_begin),
		cmocka_unit_test_setup(the_head_says_what_the_machine_is_and_does, world_begin),
		cmocka_unit_test(the_kernels_words_on_the_machine_are_read),
		cmocka_unit_test_setup(simulated_is_said_everywhere, world_begin),
		cmocka_unit_test(the_past_is_put_where_it_belongs),
		cmocka_unit_test_setup(graphs_are_full_from_the_past, world_begin),
		cmocka_unit_test_setup(a_jobs_log_is_shown_and_scrolled, world_begin),
		cmocka_unit_test_setup(a_log_is_for_who_may_read_it, world_begin),
		cmocka_unit_test(a_log_is_made_plain),
	};

	return cmocka_run_group_tests(tests, world_open, world_close);
}
