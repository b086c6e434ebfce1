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
#include "codec/json.h"
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
	gpu->proc_count = (uint32_t)takt_rng_below(rng, 20);
	for (size_t i = 0; i < 16 && i < gpu->proc_count; i++) {
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
		any_text(&rng, view.command, sizeof(view.command));
		assert_int_equal(takt_job_view_to_json(&view, &once), 0);
		assert_int_equal(takt_job_view_from_json(once.s, once.len, &back, NULL), 0);
		assert_int_equal(back.has_exit_code, view.has_exit_code);
		assert_int_equal(back.report.has, view.report.has);
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
	assert_int_equal(takt_queue_json_end(&text, 5), 0);
	assert_int_equal(takt_queue_view_from_json(text.s, text.len, &queue, NULL), 0);
	assert_true(queue.simulated);
	assert_int_equal(queue.total, 5);
	assert_int_equal(queue.count, 2);
	assert_int_equal(queue.jobs[1].id, 8);
	takt_queue_view_fini(&queue);

	takt_str_reset(&text);
	takt_queue_json_begin(&text, false);
	takt_queue_json_end(&text, 0);
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
