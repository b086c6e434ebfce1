/* SPDX-License-Identifier: Apache-2.0 */
/* Views: random ones come back as they were, absence stays absence, and damage is named. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/rng.h"
#include "codec/course_view.h"
#include "codec/health.h"
#include "codec/history_view.h"
#include "codec/json.h"
#include "codec/net_view.h"
#include "codec/views.h"

enum {
	ROUNDS = 200
};

static void any_text(struct takt_rng *rng, char *ret, size_t size)
{
	static const char *const parts[] = {"a", "Z", " ", "\"", "\\", "\n", "\x01", "é", "𝄞", "/"};
	size_t used = 0, want = takt_rng_below(rng, size);

	for (;;) {
		const char *part = parts[takt_rng_below(rng, TAKT_ARRAY_LEN(parts))];

		if (used + strlen(part) > want)
			break;
		memcpy(ret + used, part, strlen(part));
		used += strlen(part);
	}
	ret[used] = '\0';
}

static void any_gpu(struct takt_rng *rng, struct takt_gpu_view *gpu)
{
	gpu->has = (uint32_t)takt_rng_below(rng, 1u << 15);
	any_text(rng, gpu->name, sizeof(gpu->name));
	any_text(rng, gpu->clock_note, sizeof(gpu->clock_note));
	gpu->index = (uint32_t)takt_rng_below(rng, 64);
	gpu->stale = takt_rng_below(rng, 2);
	gpu->age_ms = takt_rng_below(rng, TAKT_JSON_MAX_INT);
	gpu->sm_mhz = (uint32_t)takt_rng_next(rng);
	gpu->temp_c = (int32_t)takt_rng_next(rng);
	gpu->mem_used_bytes = takt_rng_below(rng, TAKT_JSON_MAX_INT);
	gpu->energy_mj = takt_rng_below(rng, TAKT_JSON_MAX_INT);
	gpu->job_id = takt_rng_below(rng, 2);
	gpu->proc_count = (uint32_t)takt_rng_below(rng, TAKT_VIEW_MAX_PROCS + 4);
	for (size_t i = 0; i < TAKT_VIEW_MAX_PROCS && i < gpu->proc_count; i++) {
		struct takt_proc_view *proc = &gpu->procs[i];

		proc->pid = (int32_t)takt_rng_below(rng, INT32_MAX);
		proc->uid = takt_rng_below(rng, 2) ? UINT32_MAX : 1000;
		proc->memory_known = takt_rng_below(rng, 2);
		proc->memory_bytes = takt_rng_below(rng, 1 << 30);
		any_text(rng, proc->command, sizeof(proc->command));
	}
}

static void status_comes_back(void **state)
{
	struct takt_rng rng;

	takt_rng_init(&rng, 1);
	for (int round = 0; round < ROUNDS; round++) {
		TAKT_CLEANUP(strp)
		struct takt_str once = TAKT_STR(1 << 24), twice = TAKT_STR(1 << 24);
		struct takt_status_view view = {.gpu_count = (uint32_t)takt_rng_below(&rng, 9)},
					back;

		view.gpus = takt_calloc(view.gpu_count, sizeof(*view.gpus));
		any_text(&rng, view.notes[1], sizeof(view.notes[1]));
		any_text(&rng, view.observe_why, sizeof(view.observe_why));
		view.simulated = round % 2;
		for (uint32_t i = 0; i < view.gpu_count; i++)
			any_gpu(&rng, &view.gpus[i]);
		assert_int_equal(takt_status_view_to_json(&view, &once), 0);
		assert_int_equal(takt_status_view_from_json(once.s, once.len, &back, NULL), 0);
		assert_int_equal(back.gpu_count, view.gpu_count);
		assert_string_equal(back.notes[0], view.notes[1]);
		for (uint32_t i = 0; i < view.gpu_count; i++) {
			assert_int_equal(back.gpus[i].has, view.gpus[i].has);
			assert_string_equal(back.gpus[i].name, view.gpus[i].name);
		}
		assert_int_equal(takt_status_view_to_json(&back, &twice), 0);
		assert_string_equal(once.s, twice.s);
		takt_status_view_fini(&view);
		takt_status_view_fini(&back);
	}
}

static void jobs_come_back(void **state)
{
	struct takt_rng rng;

	takt_rng_init(&rng, 2);
	for (int round = 0; round < ROUNDS; round++) {
		TAKT_CLEANUP(strp)
		struct takt_str once = TAKT_STR(1 << 24), twice = TAKT_STR(1 << 24);
		struct takt_job_view view = {.id = takt_rng_range(&rng, 1, 1000)}, back;

		view.gpu_list_count = (uint32_t)takt_rng_below(&rng, 65);
		for (uint32_t i = 0; i < view.gpu_list_count; i++) {
			view.gpu_list[i] = i;
			any_text(&rng, view.gpu_uuid[i], sizeof(view.gpu_uuid[i]));
		}
		view.has_exit_code = takt_rng_below(&rng, 2);
		view.exit_code = (int32_t)takt_rng_below(&rng, 2);
		view.submitted_ms = (int64_t)takt_rng_below(&rng, TAKT_JSON_MAX_INT);
		view.report.has = (uint32_t)takt_rng_below(&rng, 32);
		view.report.energy_mj = takt_rng_below(&rng, TAKT_JSON_MAX_INT);
		view.progress.has = (uint32_t)takt_rng_below(&rng, 256);
		view.progress.steps = takt_rng_below(&rng, TAKT_JSON_MAX_INT);
		view.progress.steps_milli_s = takt_rng_below(&rng, TAKT_JSON_MAX_INT);
		any_text(&rng, view.command, sizeof(view.command));
		assert_int_equal(takt_job_view_to_json(&view, &once), 0);
		assert_int_equal(takt_job_view_from_json(once.s, once.len, &back, NULL), 0);
		assert_int_equal(back.has_exit_code, view.has_exit_code);
		assert_int_equal(back.report.has, view.report.has);
		assert_int_equal(back.progress.has, view.progress.has);
		if (view.progress.has & TAKT_PV_STEPS)
			assert_int_equal(back.progress.steps, view.progress.steps);
		assert_string_equal(back.command, view.command);
		assert_int_equal(takt_job_view_to_json(&back, &twice), 0);
		assert_string_equal(once.s, twice.s);
	}
}

static void the_queue_is_written_job_by_job(void **state)
{
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(1 << 20);
	struct takt_job_view job = {.id = 7};
	struct takt_queue_view queue;

	takt_queue_json_begin(&text, true);
	takt_queue_json_job(&text, &job);
	job.id = 8;
	takt_queue_json_job(&text, &job);
	assert_int_equal(takt_queue_json_end(&text, 5, 3), 0);
	assert_int_equal(takt_queue_view_from_json(text.s, text.len, &queue, NULL), 0);
	assert_true(queue.simulated);
	assert_int_equal(queue.total, 5);
	assert_int_equal(queue.next, 3);
	assert_int_equal(queue.count, 2);
	assert_int_equal(queue.jobs[1].id, 8);
	takt_queue_view_fini(&queue);

	takt_str_reset(&text);
	takt_queue_json_begin(&text, false);
	takt_queue_json_end(&text, 0, 0);
	assert_string_equal(text.s, "{\"simulated\":false,\"jobs\":[],\"total\":0}");
}

static void topology_comes_back(void **state)
{
	TAKT_CLEANUP(strp) struct takt_str once = TAKT_STR(1 << 22), twice = TAKT_STR(1 << 22);
	static struct takt_topo_view view, back;

	view.gpu_count = 3;
	view.numa_node[1] = -1;
	view.best2_mask = UINT64_C(1) << 63 | 1;
	takt_strcpy(view.link[2][1], 8, "NV18");
	view.score[2][1] = 1800;
	assert_int_equal(takt_topo_view_to_json(&view, &once), 0);
	assert_non_null(strstr(once.s, "\"numa_node\":[0,null,0]"));
	assert_non_null(strstr(once.s, "\"best2\":[0,63]"));
	assert_int_equal(takt_topo_view_from_json(once.s, once.len, &back, NULL), 0);
	assert_int_equal(back.numa_node[1], -1);
	assert_int_equal(back.score[2][1], 1800);
	assert_true(back.best2_mask == view.best2_mask);
	assert_int_equal(takt_topo_view_to_json(&back, &twice), 0);
	assert_string_equal(once.s, twice.s);
}

static void clocks_and_explanations_come_back(void **state)
{
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(1 << 22);
	static struct takt_clock_view clocks = {.gpu_count = 2}, clocks_back;
	struct takt_explain_view explain = {.id = 3, .counted = true, .need = 4, .behind_job = 2},
				 explain_back;

	clocks.gpu[1].has_sm = true;
	clocks.gpu[1].index = 1;
	assert_int_equal(takt_clock_view_to_json(&clocks, &text), 0);
	assert_int_equal(takt_clock_view_from_json(text.s, text.len, &clocks_back, NULL), 0);
	assert_false(clocks_back.gpu[0].has_sm);
	assert_true(clocks_back.gpu[1].has_sm);
	takt_str_reset(&text);
	assert_int_equal(takt_explain_view_to_json(&explain, &text), 0);
	assert_int_equal(takt_explain_view_from_json(text.s, text.len, &explain_back, NULL), 0);
	assert_memory_equal(&explain, &explain_back, sizeof(explain));
}

static void courses_come_back(void **state)
{
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(1 << 20);
	static struct takt_course_view view, back;

	view.id = 7;
	view.attempt = 2;
	takt_strcpy(view.governor, sizeof(view.governor), "assured");
	view.said_count = 2;
	view.said[0] = (struct takt_course_said_view){.has = TAKT_PV_STEPS, .at_ms = 1, .steps = 5};
	view.said[1] = (struct takt_course_said_view){
		.has = TAKT_PV_TOKENS | TAKT_PV_LATENCY, .at_ms = 2, .latency_us = 9};
	view.decision_count = 1;
	view.decisions[0] = (struct takt_course_decision_view){.has = TAKT_COURSE_SM,
							       .at_ms = 3,
							       .until_ms = 4,
							       .max_mhz = 1200,
							       .epochs = 2,
							       .sm_mhz = 1190,
							       .reason = "hold"};
	assert_int_equal(takt_course_view_to_json(&view, &text), 0);
	assert_null(strstr(takt_str_text(&text), "nccl"));
	view.has_nccl = true;
	view.nccl_count = 1;
	view.nccl[0] = (struct takt_course_nccl_view){.gpu = 1,
						      .ranks = 16,
						      .nodes = 2,
						      .operation = "AllReduce",
						      .comm = "DP Group 0",
						      .bus_bytes_s = 48500000000,
						      .operation_us = 9500,
						      .age_ms = 1200};
	takt_str_reset(&text);
	assert_int_equal(takt_course_view_to_json(&view, &text), 0);
	assert_non_null(
		strstr(takt_str_text(&text), "{\"at_ms\":2,\"tokens\":0,\"latency_us\":9}"));
	assert_null(strstr(takt_str_text(&text), "power_mw"));
	assert_int_equal(takt_course_view_from_json(text.s, text.len, &back, NULL), 0);
	assert_memory_equal(&view, &back, sizeof(view));
}

static void histories_come_back(void **state)
{
	struct takt_history_view_point points[] = {{1763650000000, -3.5, 0.25, 400.125},
						   {1763650010000, 1e9, 1e9, 1e9}};
	struct takt_history_view view = {.simulated = true,
					 .gpu = 3,
					 .uuid = "GPU-1",
					 .metric = "power",
					 .unit = "W",
					 .step_ms = 10000,
					 .from_ms = 1,
					 .until_ms = 1763650020000,
					 .lost = 7,
					 .point_count = 2,
					 .points = points};
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(4096);
	struct takt_history_view back;

	takt_json_init();
	for (view.point_count = 0; view.point_count <= 2; view.point_count++) {
		takt_str_reset(&text);
		assert_int_equal(takt_history_view_to_json(&view, &text), 0);
		assert_int_equal(takt_history_view_from_json(text.s, text.len, &back, NULL), 0);
		assert_string_equal(back.metric, "power");
		assert_int_equal(back.lost, 7);
		assert_int_equal(back.until_ms, view.until_ms);
		assert_int_equal(back.point_count, view.point_count);
		for (uint32_t i = 0; i < back.point_count; i++)
			assert_true(back.points[i].at_ms == points[i].at_ms &&
				    back.points[i].min == points[i].min &&
				    back.points[i].mean == points[i].mean &&
				    back.points[i].max == points[i].max);
		takt_history_view_fini(&back);
	}
}

static void a_damaged_history_is_refused(void **state)
{
	static const char *const points[] = {
		"7",   "[7]", "[[1,2,3]]", "[[1,2,3,4,5]]", "[[1,2,3,\"4\"]]", "[[1e300,1,1,1]]",
		"null"};
	struct takt_history_view back = {.gpu = 9};
	struct takt_err err;
	char text[256];

	takt_json_init();
	for (size_t i = 0; i < TAKT_ARRAY_LEN(points); i++) {
		snprintf(
			text, sizeof(text),
			"{\"simulated\":false,\"gpu\":1,\"step_ms\":0,\"from_ms\":0,\"until_ms\":1,"
			"\"points\":%s}",
			points[i]);
		assert_int_equal(takt_history_view_from_json(text, strlen(text), &back, &err),
				 -TAKT_E_CORRUPT);
		assert_non_null(strstr(err.msg, "'points'"));
		assert_int_equal(back.gpu, 9);
	}
}

static void round_trips_come_back(void **state)
{
	static struct takt_net_view view = {
		.listen = "10.0.0.1:9833",
		.peer_count = 2,
		.refused_count = 1,
		.peers = {{.name = "a", .state = "answers", .answered = 9, .lost = 1, .last_ns = 5},
			  {.name = "b", .state = "silent", .lost = 3}},
		.refused = {{"forged", 4}},
	};
	static struct takt_net_view back;
	TAKT_CLEANUP(strp) struct takt_str json = TAKT_STR(4096);

	assert_int_equal(takt_net_view_to_json(&view, &json), 0);
	assert_int_equal(takt_net_view_from_json(json.s, json.len, &back, NULL), 0);
	assert_memory_equal(&view, &back, sizeof(view));
	assert_true(takt_net_view_from_json("{}", 2, &back, NULL) < 0);
}

static void health_comes_back(void **state)
{
	TAKT_CLEANUP(strp) struct takt_str once = TAKT_STR(1 << 22), twice = TAKT_STR(1 << 22);
	static struct takt_health_gpu gpus[2] = {
		{.state = "healthy"},
		{.index = 1,
		 .state = "quarantined",
		 .since_ms = 1790000000000,
		 .finding_count = 2,
		 .findings = {{"xid", "critical", "reset-gpu", "XID 48 \"x\"", 5, -1},
			      {"row-pending", "warning", "reset-gpu", "a row", 6, 0}},
		 .action_count = 1,
		 .actions = {"reset-gpu"},
		 .past = {1, {{5, "healthy", "quarantined", "xid"}}},
		 .xid_count = 1,
		 .xids = {{48, 3, 5, "Double Bit ECC Error"}}},
	};
	struct takt_health_view view = {.kernel_log_why = "off",
					.gpu_count = 2,
					.gpus = gpus,
					.sxid_count = 2,
					.sxids = {{"0000:c5:00", 20034, 3, 9, true, 30},
						  {"0000:c6:00", 12028, 1, 8, false, -1}}};
	struct takt_health_view back;

	assert_int_equal(takt_health_view_to_json(&view, &once), 0);
	assert_non_null(strstr(once.s, "\"cause\":0"));
	assert_non_null(strstr(once.s, "\"findings\":[]"));
	assert_int_equal(takt_health_view_from_json(once.s, once.len, &back, NULL), 0);
	assert_int_equal(back.gpus[1].findings[0].cause, -1);
	assert_int_equal(back.gpus[1].xids[0].count, 3);
	assert_int_equal(back.sxid_count, 2);
	assert_true(back.sxids[0].fatal && back.sxids[1].link == -1);
	assert_int_equal(takt_health_view_to_json(&back, &twice), 0);
	assert_string_equal(once.s, twice.s);
	takt_health_view_fini(&back);
	assert_true(takt_health_view_from_json("{}", 2, &back, NULL) < 0);
}

/* What a daemon leaves to the next one. */
static void a_past_comes_back(void **state)
{
	static const char unnamed[] = "{\"changes\":[{\"at_ms\":5,\"from\":7}]}";
	static struct takt_health_past past, back;
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(1 << 16);

	for (uint32_t i = 0; i < TAKT_HEALTH_MAX_CHANGES; i++)
		past.changes[past.change_count++] = (struct takt_health_change){
			1790000000000 + i, "quarantined", "healthy", ""};
	assert_int_equal(takt_health_past_to_json(&past, &text), 0);
	assert_int_equal(takt_health_past_from_json(text.s, text.len, &back, NULL), 0);
	assert_memory_equal(&past, &back, sizeof(past));
	assert_true(takt_health_past_from_json(text.s, text.len - 1, &back, NULL) < 0);
	assert_true(takt_health_past_from_json(unnamed, strlen(unnamed), &back, NULL) < 0);
	assert_memory_equal(&past, &back, sizeof(past));
}

static void errors_come_back(void **state)
{
	static const int codes[] = {-EPERM, -ENOENT, -TAKT_E_IMPOSSIBLE, -TAKT_E_USAGE};
	struct takt_err back;

	for (size_t i = 0; i < TAKT_ARRAY_LEN(codes); i++) {
		TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(4096);
		struct takt_err error = {.rc = codes[i], .vendor = 3};

		takt_strcpy(error.msg, sizeof(error.msg), "asks for 9 GPUs");
		assert_int_equal(takt_error_to_json(&error, &text), 0);
		assert_int_equal(takt_error_from_json(text.s, text.len, &back), 0);
		assert_int_equal(back.rc, codes[i]);
		assert_int_equal(back.vendor, 3);
		assert_string_equal(back.msg, error.msg);
	}
	assert_true(takt_error_from_json("<html>", 6, &back) < 0);
}

/* What has no valid bit is not in the JSON at all, not even as 0. */
static void absence_is_left_out(void **state)
{
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(1 << 20);
	struct takt_gpu_view gpu = {.has = 0};
	struct takt_status_view view = {.gpu_count = 1, .gpus = &gpu};

	assert_int_equal(takt_status_view_to_json(&view, &text), 0);
	for (const char *const *name =
		     (const char *const[]){"sm_mhz", "power_mw", "temp_c", "mem_used_bytes",
					   "energy_mj", "procs", "job_id", "throttle", NULL};
	     *name; name++)
		assert_null(strstr(text.s, *name));
}

/* A counter that reads 2^64-1 must not take the whole view down, nor be rounded. */
static void numbers_that_json_rounds_are_absent(void **state)
{
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(1 << 20);
	struct takt_gpu_view gpu = {.has = TAKT_VIEW_ENERGY, .energy_mj = UINT64_MAX};
	struct takt_status_view view = {.gpu_count = 1, .gpus = &gpu}, back;

	assert_int_equal(takt_status_view_to_json(&view, &text), 0);
	assert_int_equal(takt_status_view_from_json(text.s, text.len, &back, NULL), 0);
	assert_int_equal(back.gpus[0].has, 0);
	takt_status_view_fini(&back);
}

static void text_that_is_not_utf8_is_repaired(void **state)
{
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(1 << 20);
	struct takt_explain_view view = {.id = 1}, back;

	takt_strcpy(view.text, sizeof(view.text), "a\xff\xc3z");
	assert_int_equal(takt_explain_view_to_json(&view, &text), 0);
	assert_int_equal(takt_explain_view_from_json(text.s, text.len, &back, NULL), 0);
	assert_string_equal(back.text, "a\xef\xbf\xbd\xef\xbf\xbdz");
}

/* An older command line with a newer daemon. */
static void fields_of_the_future_are_ignored(void **state)
{
	static const char text[] = "{\"simulated\":false,\"id\":1,\"future\":{\"a\":[1]}}";
	struct takt_explain_view view;

	assert_int_equal(takt_explain_view_from_json(text, strlen(text), &view, NULL), 0);
}

static void damage_is_named(void **state)
{
	static const struct {
		const char *json, *part;
	} rows[] = {
		{"{\"simulated\":false,\"manages\":true}", "field 'gpus' is missing"},
		{"{\"simulated\":false,\"manages\":true,\"gpus\":[{\"index\":0},{\"index\":-1}]}",
		 "field 'gpus[1].index'"},
		{"{\"simulated\":false,\"manages\":true,\"gpus\":[{\"index\":0,\"proc_count\":2,"
		 "\"procs\":[]}]}",
		 "field 'gpus[0].procs' must have 2 entries, not 0"},
		{"{\"simulated\":false,\"manages\":true,\"gpus\":[7]}",
		 "field 'gpus[0]' must be an object, not a number"},
		{"{\"manages\":true,\"gpus\":[]}", "field 'simulated' is missing"},
	};
	struct takt_status_view view = {.pid = 77};
	struct takt_err err;

	for (size_t i = 0; i < TAKT_ARRAY_LEN(rows); i++) {
		assert_int_equal(
			takt_status_view_from_json(rows[i].json, strlen(rows[i].json), &view, &err),
			-TAKT_E_CORRUPT);
		if (!strstr(err.msg, rows[i].part))
			fail_msg("'%s' lacks '%s'", err.msg, rows[i].part);
		assert_int_equal(view.pid, 77);
	}
}

static void runs_out_of_memory_cleanly(void **state)
{
	static const char text[] =
		"{\"simulated\":false,\"manages\":true,\"gpus\":[{\"index\":0}]}";
	int rc = -ENOMEM;

	takt_json_init();
	for (unsigned long nth = 1; rc == -ENOMEM; nth++) {
		struct takt_status_view view = {.pid = 1};

		takt_alloc_fail_nth(nth, 0);
		rc = takt_status_view_from_json(text, strlen(text), &view, NULL);
		takt_alloc_fail_nth(0, 0);
		takt_status_view_fini(&view);
		assert_true(nth < 1000);
	}
	assert_int_equal(rc, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(status_comes_back),
		cmocka_unit_test(jobs_come_back),
		cmocka_unit_test(the_queue_is_written_job_by_job),
		cmocka_unit_test(topology_comes_back),
		cmocka_unit_test(clocks_and_explanations_come_back),
		cmocka_unit_test(courses_come_back),
		cmocka_unit_test(histories_come_back),
		cmocka_unit_test(a_damaged_history_is_refused),
		cmocka_unit_test(health_comes_back),
		cmocka_unit_test(a_past_comes_back),
		cmocka_unit_test(round_trips_come_back),
		cmocka_unit_test(errors_come_back),
		cmocka_unit_test(absence_is_left_out),
		cmocka_unit_test(numbers_that_json_rounds_are_absent),
		cmocka_unit_test(text_that_is_not_utf8_is_repaired),
		cmocka_unit_test(fields_of_the_future_are_ignored),
		cmocka_unit_test(damage_is_named),
		cmocka_unit_test(runs_out_of_memory_cleanly),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
