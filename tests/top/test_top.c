/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The terminal view without a terminal: whole screens as golden text, what keys do, and what the
 * model makes of snapshots. TAKT_GOLDEN_WRITE=1 writes the golden texts anew: look at them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "top/deed_line.h"
#include "top/graph.h"
#include "top/look_line.h"
#include "top/paint.h"
#include "top/top_json.h"
#include "top/top_log.h"
#include "top/top_text.h"
#include "top/top_ui.h"
#include "top_world.h"

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

	model.now.past = takt_top_past_new(1, 1000);
	assert_non_null(model.now.past);
	strcpy(model.now.past->gpus[0].uuid, "GPU-6");
	for (int i = 0; i < TAKT_TOP_HISTORY; i++)
		for (int s = 0; s < TAKT_TOP_SERIES; s++)
			model.now.past->gpus[0].permille[s][i] =
				i % 3 || i > 50 ? TAKT_NO_VALUE : 7;
	model.now.log = (struct takt_top_log){.job_id = 12, .attempt = 2, .over = true};
	takt_top_log_add(&model.now.log, "one\n\033[1mtwo", 11);
	assert_int_equal(takt_top_to_json(&model.now, &once), 0);
	assert_int_equal(takt_top_from_json(takt_str_text(&once), once.len, &copy, NULL), 0);
	assert_int_equal(copy.past->gpus[0].permille[TAKT_TOP_POWER][48], 7);
	assert_int_equal(copy.past->gpus[0].permille[TAKT_TOP_POWER][49], TAKT_NO_VALUE);
	assert_int_equal(copy.past->gpus[0].permille[TAKT_TOP_POWER][599], TAKT_NO_VALUE);
	assert_string_equal(takt_str_text(&copy.log.text), "one\n\033[1mtwo");
	assert_true(copy.log.over);
	assert_int_equal(copy.host.load_centi[2], 71);
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
	static const char *const more[] = {
		"\"past\":{\"step_ms\":1000}",
		"\"past\":{\"step_ms\":1000,\"gpus\":[{\"util\":[1001]}]}",
		"\"log\":{\"attempt\":1}",
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
	for (size_t i = 0; i < TAKT_ARRAY_LEN(more); i++) {
		takt_str_reset(&text);
		assert_int_equal(takt_top_to_json(&model.now, &text), 0);
		text.len--;
		text.s[text.len - 1] = '\0'; /* the end of the object, before that of the line */
		text.len--;
		takt_str_addf(&text, ",%s}", more[i]);
		assert_int_equal(takt_top_from_json(text.s, text.len, &copy, &err),
				 -TAKT_E_CORRUPT);
		assert_true(strstr(err.msg, "past") || strstr(err.msg, "log"));
	}
}

static void a_line_asks_for_more_than_a_look(void **state)
{
	static const struct {
		const char *line;
		struct takt_look_words words;
	} cases[] = {
		{"", {0, 0}},
		{"past 1000 log 12", {1000, 12}},
		{"log 12", {0, 12}},
		{"hello log 12 world", {0, 12}}, /* a newer takt's */
		{"log", {0, 0}},
		{"past 0 log -1", {0, 0}},
		{"past 99999999 log 1e3", {0, 0}},
	};
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(TAKT_DEED_LINE);
	struct takt_look_words words;
	char line[64];

	for (size_t i = 0; i < TAKT_ARRAY_LEN(cases); i++) {
		strcpy(line, cases[i].line);
		takt_look_from_line(line, &words);
		assert_int_equal(words.past_step_ms, cases[i].words.past_step_ms);
		assert_int_equal(words.log_job, cases[i].words.log_job);
	}
	takt_look_to_line(&cases[1].words, &text);
	assert_string_equal(takt_str_text(&text), "past 1000 log 12\n");
	takt_str_reset(&text);
	takt_look_to_line(&cases[0].words, &text);
	assert_string_equal(takt_str_text(&text), "\n");
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
		cmocka_unit_test_setup(screens_are_as_they_were, world_begin),
		cmocka_unit_test_setup(zoomed_screens_are_as_they_were, world_begin),
		cmocka_unit_test_setup(sixty_four_gpus_are_scrolled, world_begin),
		cmocka_unit_test_setup(every_size_holds, world_begin),
		cmocka_unit_test_setup(a_cancel_is_asked_first, world_begin),
		cmocka_unit_test_setup(a_requeue_is_asked_first, world_begin),
		cmocka_unit_test_setup(a_signal_is_for_the_process_of_the_row, world_begin),
		cmocka_unit_test_setup(others_processes_get_no_signal, world_begin),
		cmocka_unit_test_setup(lists_are_filtered_and_ordered, world_begin),
		cmocka_unit_test_setup(the_mouse_selects_and_zooms, world_begin),
		cmocka_unit_test_setup(no_news_keep_what_was_known, world_begin),
		cmocka_unit_test_setup(a_queue_that_was_not_asked_for_stays, world_begin),
		cmocka_unit_test_setup(several_machines_have_a_line, world_begin),
		cmocka_unit_test_setup(the_shown_machine_is_in_the_line, world_begin),
		cmocka_unit_test_setup(a_deed_is_for_the_machine_that_is_shown, world_begin),
		cmocka_unit_test_setup(a_signal_for_another_machine_is_not_looked_up_here,
				       world_begin),
		cmocka_unit_test(a_deed_is_a_line),
		cmocka_unit_test(a_wrong_line_does_nothing),
		cmocka_unit_test_setup(a_look_is_read_as_it_was_written, world_begin),
		cmocka_unit_test_setup(a_bad_look_is_refused, world_begin),
		cmocka_unit_test(a_line_asks_for_more_than_a_look),
		cmocka_unit_test_setup(a_hundred_processes_of_a_gpu_are_scrolled, world_begin),
		cmocka_unit_test_setup(links_are_counted_where_there_are_some, world_begin),
		cmocka_unit_test_setup(what_was_not_read_is_not_shown, world_begin),
		cmocka_unit_test_setup(others_text_cannot_steer_the_terminal, world_begin),
		cmocka_unit_test_setup(memory_may_be_short, world_begin),
		cmocka_unit_test(quantities_are_short),
		cmocka_unit_test(only_what_differs_is_painted),
	};

	return cmocka_run_group_tests(tests, world_open, world_close);
}
