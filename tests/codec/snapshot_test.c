/* SPDX-License-Identifier: Apache-2.0 */
/* Events, snapshots and plans there and back, and what the reader refuses. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "codec/json.h"
#include "codec/snapshot.h"

#define HEADER "{\"format\":\"takt-events\",\"version\":1}\n"

enum {
	TEXT_MAX = 1000000
};

/* Every kind of event, every field, in an order that a scheduler accepts; the canonical form. */
static const char every_event[] = HEADER
	"{\"event\":\"node_add\",\"node_id\":3,\"pair_score\":[[0,150,-7],[150,0,10],[-7,10,0]]}\n"
	"{\"event\":\"gpu_health\",\"node_id\":3,\"gpu\":2,\"state\":\"lost\"}\n"
	"{\"event\":\"gpu_health\",\"node_id\":3,\"gpu\":2,\"state\":\"free\"}\n"
	"{\"event\":\"gpu_outside\",\"node_id\":3,\"gpu\":2,\"outside\":true}\n"
	"{\"event\":\"gpu_draining\",\"node_id\":3,\"gpu\":0,\"job_id\":0}\n"
	"{\"event\":\"gpu_drained\",\"node_id\":3,\"gpu\":0}\n"
	"{\"event\":\"job_add\",\"job_id\":9007199254740991,\"submit_seq\":1,\"priority\":-5,"
	"\"gpus\":2}\n"
	"{\"event\":\"job_change\",\"job_id\":9007199254740991,\"submit_seq\":1,\"priority\":9,"
	"\"gpus\":2,\"use_outside\":true,\"held\":true}\n"
	"{\"event\":\"job_placed\",\"node_id\":3,\"job_id\":9007199254740991,\"gpu_mask\":[0,2]}\n"
	"{\"event\":\"job_running\",\"job_id\":9007199254740991}\n"
	"{\"event\":\"job_requeued\",\"job_id\":9007199254740991}\n"
	"{\"event\":\"job_draining\",\"job_id\":9007199254740991}\n"
	"{\"event\":\"job_ended\",\"job_id\":9007199254740991}\n"
	"{\"event\":\"node_remove\",\"node_id\":3}\n"
	"{\"event\":\"gpu_layout\",\"node_id\":3,\"gpu\":1,\"machine\":{\"mig\":[],\"each_mem_"
	"mib\":[],"
	"\"numa\":[],\"domain\":[],\"mig_cut\":[1],"
	"\"mig_layout\":[0,2,0,1,0,0,0,0]}}\n";

static int append(void *ctx, const struct takt_sched_event *event, struct takt_err *err)
{
	return takt_event_to_json(event, ctx, err);
}

static void test_a_decision_says_when(void **state)
{
	static const struct takt_sched_config config = {0};
	struct takt_sched *sched = NULL;
	struct takt_str out = TAKT_STR(TEXT_MAX);
	uint64_t now_ns = 7;

	(void)state;
	assert_int_equal(takt_sched_new(&config, &sched, NULL), 0);
	assert_int_equal(takt_snapshot_to_json(sched, &out, NULL), 0);
	assert_int_equal(takt_events_now_ns(out.s, out.len, &now_ns, NULL), -ENOENT);
	assert_int_equal(now_ns, 7);
	takt_str_fini(&out);
	out = TAKT_STR(TEXT_MAX);
	assert_int_equal(takt_decision_to_json(sched, 12345678901234, NULL, &out, NULL), 0);
	assert_int_equal(takt_events_now_ns(out.s, out.len, &now_ns, NULL), 0);
	assert_int_equal(now_ns, 12345678901234);
	takt_sched_free(sched);
	sched = NULL;
	assert_int_equal(takt_snapshot_load(out.s, out.len, &config, &sched, NULL), 0);
	takt_sched_free(sched);
	takt_str_fini(&out);
}

static void test_every_event_there_and_back(void **state)
{
	struct takt_str out = TAKT_STR(TEXT_MAX);
	struct takt_err err = {0};

	takt_events_begin(&out);
	if (takt_events_from_json(every_event, strlen(every_event), append, &out, &err) != 0)
		fail_msg("%s", err.msg);
	assert_string_equal(takt_str_text(&out), every_event);
	takt_str_fini(&out);
}

static struct takt_sched *load(const char *text)
{
	struct takt_sched_config config = {0};
	struct takt_sched *sched = NULL;
	struct takt_err err = {0};

	if (takt_snapshot_load(text, strlen(text), &config, &sched, &err) != 0)
		fail_msg("%s", err.msg);
	return sched;
}

static const char snapshot[] =
	HEADER "{\"event\":\"node_add\",\"node_id\":0,\"pair_score\":[]}\n"
	       "{\"event\":\"node_add\",\"node_id\":1,\"pair_score\":[[0,5],[5,0]]}\n"
	       "{\"event\":\"gpu_draining\",\"node_id\":1,\"gpu\":1,\"job_id\":4}\n"
	       "{\"event\":\"job_add\",\"job_id\":2,\"submit_seq\":1,\"priority\":0,\"gpus\":1}\n"
	       "{\"event\":\"job_placed\",\"node_id\":1,\"job_id\":2,\"gpu_mask\":[0]}\n"
	       "{\"event\":\"job_running\",\"job_id\":2}\n"
	       "{\"event\":\"job_add\",\"job_id\":1,\"submit_seq\":2,\"priority\":7,\"gpus\":1}\n"
	       "{\"event\":\"job_add\",\"job_id\":3,\"submit_seq\":3,\"priority\":7,\"gpus\":0}\n";

static void test_a_snapshot_there_and_back(void **state)
{
	struct takt_sched *sched = load(snapshot);
	struct takt_str out = TAKT_STR(TEXT_MAX);

	assert_int_equal(takt_snapshot_to_json(sched, &out, NULL), 0);
	assert_string_equal(takt_str_text(&out), snapshot);
	takt_str_fini(&out);
	takt_sched_free(sched);
}

static void test_gpus_of_unlike_memory_there_and_back(void **state)
{
	static const char text[] =
		HEADER "{\"event\":\"node_add\",\"node_id\":1,\"pair_score\":[[0,5],[5,0]],"
		       "\"machine\":{\"gpu_mem_mib\":24576,\"each_mem_mib\":[24576,81920]}}\n";
	struct takt_sched *sched = load(text);
	struct takt_str out = TAKT_STR(TEXT_MAX);

	assert_int_equal(takt_snapshot_to_json(sched, &out, NULL), 0);
	assert_non_null(strstr(takt_str_text(&out), "\"each_mem_mib\":[24576,81920]"));
	takt_sched_free(sched);
	sched = load(takt_str_text(&out));
	takt_str_fini(&out);
	takt_sched_free(sched);
}

static void test_a_plan_there_and_back(void **state)
{
	struct takt_sched *sched = load(snapshot);
	struct takt_str out = TAKT_STR(TEXT_MAX);
	struct takt_str again = TAKT_STR(TEXT_MAX);
	struct takt_plan plan = {0};
	struct takt_plan back = {0};

	assert_int_equal(takt_sched_run(sched, 0, 0, &plan, NULL), 0);
	assert_int_equal(takt_plan_to_json(&plan, &out, NULL), 0);
	assert_string_equal(
		takt_str_text(&out),
		"{\"version\":8,\"next_wakeup_ns\":0,\n\"placements\":[\n"
		"{\"job_id\":3,\"node_id\":0,\"gpu_mask\":[],\"pair_score_sum\":0}\n],\n"
		"\"waits\":[\n"
		"{\"job_id\":1,\"why\":\"gpus\",\"need\":1,\"total\":2,\"unhealthy\":0,"
		"\"outside\":0,\"running\":1,\"draining\":1,\"promised\":0,\"free\":0,"
		"\"behind_job\":0,\"must_end\":1,\"also\":[\"gpus\"],"
		"\"unblock\":\"jobs_end\",\"how\":\"estimate\"}\n],\n"
		"\"reservations\":[\n"
		"{\"job_id\":1,\"node_id\":1,\"gpu_mask\":[1],\"how\":\"estimate\"}\n]}\n");
	assert_int_equal(takt_plan_from_json(out.s, out.len, &back, NULL), 0);
	assert_int_equal(takt_plan_to_json(&back, &again, NULL), 0);
	assert_string_equal(takt_str_text(&again), takt_str_text(&out));
	takt_plan_fini(&plan);
	takt_plan_fini(&back);
	takt_str_fini(&out);
	takt_str_fini(&again);
	takt_sched_free(sched);
}

#define EVENT(fields) HEADER "{\"event\":" fields "}\n"
#define JOB	      "\"job_add\",\"job_id\":1,\"submit_seq\":1,\"priority\":0,\"gpus\":1"

static void test_what_is_refused(void **state)
{
	static const struct {
		const char *text;
		const char *message;
		int rc;
	} rows[] = {
		/* the log itself */
		{"", "event log is empty", TAKT_E_CORRUPT},
		{"{}", "line 1: field 'format' is missing", TAKT_E_CORRUPT},
		{"{\"format\":\"other\",\"version\":1}",
		 "line 1: field 'format' must be 'takt-events', not 'other'", TAKT_E_CORRUPT},
		{"{\"format\":\"takt-events\",\"version\":2}",
		 "line 1: field 'version' must be a whole number from 1 to 1, not 2",
		 TAKT_E_CORRUPT},
		{"{\"format\":\"takt-events\",\"version\":1,\"now_ns\":-1}",
		 "line 1: field 'now_ns' must be a whole number from 0 to 9007199254740991, not -1",
		 TAKT_E_CORRUPT},
		{HEADER "\n", "line 2: an event: not valid JSON at byte 0", TAKT_E_CORRUPT},
		{HEADER "[]", "line 2: an event must be an object, not a list", TAKT_E_CORRUPT},
		/* fields */
		{EVENT("\"nonsense\""), NULL, TAKT_E_CORRUPT},
		{EVENT("\"node_add\",\"node_id\":1,\"gpus\":2,"
		       "\"machine\":{\"each_mem_mib\":[1,2,3]}"),
		 "line 2: field 'machine.each_mem_mib' must have 2 entries, one for each GPU, not "
		 "3",
		 TAKT_E_CORRUPT},
		{EVENT("\"node_remove\""), "line 2: field 'node_id' of node_remove is missing",
		 TAKT_E_CORRUPT},
		{EVENT("\"node_remove\",\"node_id\":0,\"gpu\":0"),
		 "line 2: field 'gpu' is not one of node_remove", TAKT_E_CORRUPT},
		{EVENT("\"node_remove\",\"node_id\":0,\"held\":true"),
		 "line 2: field 'held' is not one of node_remove", TAKT_E_CORRUPT},
		{EVENT("\"node_remove\",\"node_id\":0,\"colour\":1"),
		 "line 2: field 'colour' is not known", TAKT_E_CORRUPT},
		{EVENT("\"node_remove\",\"node_id\":0,\"node_id\":0"),
		 "line 2: field 'node_id' stands twice", TAKT_E_CORRUPT},
		{EVENT("\"node_remove\",\"node_id\":-1"), NULL, TAKT_E_CORRUPT},
		{EVENT("\"node_remove\",\"node_id\":0.5"), NULL, TAKT_E_CORRUPT},
		{EVENT("\"node_remove\",\"node_id\":4294967296"), NULL, TAKT_E_CORRUPT},
		{EVENT("\"job_ended\",\"job_id\":9007199254740992"), NULL, TAKT_E_CORRUPT},
		{EVENT("\"job_placed\",\"job_id\":1,\"node_id\":0,\"gpu_mask\":[0,0]"), NULL,
		 TAKT_E_CORRUPT},
		{EVENT("\"job_placed\",\"job_id\":1,\"node_id\":0,\"gpu_mask\":[64]"), NULL,
		 TAKT_E_CORRUPT},
		/* matrices */
		{EVENT("\"node_add\",\"node_id\":0,\"pair_score\":[[0,1],[1]]"), NULL,
		 TAKT_E_CORRUPT},
		{EVENT("\"node_add\",\"node_id\":0,\"pair_score\":[0]"), NULL, TAKT_E_CORRUPT},
		/* what the scheduler itself refuses */
		{EVENT("\"node_add\",\"node_id\":0,\"pair_score\":[[0,1],[2,0]]"),
		 "line 2: pair_score of node 0 is not symmetric at 1,0", EINVAL},
		{EVENT(JOB) "{\"event\":" JOB "}", "line 3: job.id 1 is there already", EINVAL},
	};
	struct takt_sched_config config = {0};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(rows); i++) {
		struct takt_sched *sched = NULL;
		struct takt_err err = {0};

		assert_int_equal(takt_snapshot_load(rows[i].text, strlen(rows[i].text), &config,
						    &sched, &err),
				 -rows[i].rc);
		assert_null(sched);
		if (rows[i].message)
			assert_string_equal(err.msg, rows[i].message);
		assert_true(strlen(err.msg) > 0);
	}
}

static void test_bad_plans(void **state)
{
	static const char *const rows[] = {
		"",
		"[]",
		"{\"version\":1,\"next_wakeup_ns\":0,\"placements\":[]}",
		"{\"version\":1,\"next_wakeup_ns\":0,\"placements\":[{}],\"waits\":[]}",
		("{\"version\":1,\"next_wakeup_ns\":0,\"placements\":[{\"job_id\":1,\"node_id\":1,"
		 "\"gpu_mask\":[0],\"pair_score_sum\":0}],\"waits\":[{\"job_id\":1}]}"),
	};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(rows); i++) {
		struct takt_plan plan = {.version = 77};
		struct takt_err err = {0};

		assert_int_equal(takt_plan_from_json(rows[i], strlen(rows[i]), &plan, &err),
				 -TAKT_E_CORRUPT);
		assert_int_equal(plan.version, 77);
		assert_null(plan.placements);
	}
}

static void test_numbers_that_json_cannot_hold(void **state)
{
	struct takt_sched_event event = {.kind = TAKT_SCHED_JOB_ENDED, .job_id = UINT64_C(1) << 53};
	struct takt_str out = TAKT_STR(TEXT_MAX);
	struct takt_err err = {0};

	assert_int_equal(takt_event_to_json(&event, &out, &err), -ERANGE);
	assert_string_equal(takt_str_text(&out), "");
	event.kind = TAKT_SCHED_EVENT_COUNT;
	assert_int_equal(takt_event_to_json(&event, &out, &err), -EINVAL);
	takt_str_fini(&out);
}

static void test_every_allocation_may_fail(void **state)
{
	struct takt_sched_config config = {0};
	struct takt_sched *sched = NULL;
	struct takt_plan plan = {0};
	struct takt_plan back = {0};
	struct takt_str out = TAKT_STR(TEXT_MAX);
	int rc = -ENOMEM;

	for (unsigned long nth = 1; rc != 0; nth++) {
		takt_alloc_fail_nth(nth, 0);
		rc = takt_snapshot_load(snapshot, strlen(snapshot), &config, &sched, NULL);
		takt_alloc_fail_nth(0, 0);
		assert_true(rc == -ENOMEM || (rc == 0 && sched));
	}
	assert_int_equal(takt_sched_run(sched, 0, 0, &plan, NULL), 0);
	rc = -ENOMEM;
	for (unsigned long nth = 1; rc != 0; nth++) {
		takt_str_fini(&out);
		out = TAKT_STR(TEXT_MAX);
		takt_alloc_fail_nth(nth, 0);
		rc = takt_snapshot_to_json(sched, &out, NULL);
		takt_alloc_fail_nth(0, 0);
		assert_true(rc == -ENOMEM || rc == 0);
	}
	rc = -ENOMEM;
	for (unsigned long nth = 1; rc != 0; nth++) {
		takt_str_fini(&out);
		out = TAKT_STR(TEXT_MAX);
		takt_alloc_fail_nth(nth, 0);
		rc = takt_plan_to_json(&plan, &out, NULL);
		takt_alloc_fail_nth(0, 0);
		assert_true(rc == -ENOMEM || rc == 0);
	}
	rc = -ENOMEM;
	for (unsigned long nth = 1; rc != 0; nth++) {
		takt_alloc_fail_nth(nth, 0);
		rc = takt_plan_from_json(out.s, out.len, &back, NULL);
		takt_alloc_fail_nth(0, 0);
		assert_true(rc == -ENOMEM || rc == 0);
		assert_true(rc == 0 || !back.waits);
	}
	takt_plan_fini(&plan);
	takt_plan_fini(&back);
	takt_str_fini(&out);
	takt_sched_free(sched);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_decision_says_when),
		cmocka_unit_test(test_every_event_there_and_back),
		cmocka_unit_test(test_a_snapshot_there_and_back),
		cmocka_unit_test(test_gpus_of_unlike_memory_there_and_back),
		cmocka_unit_test(test_a_plan_there_and_back),
		cmocka_unit_test(test_what_is_refused),
		cmocka_unit_test(test_bad_plans),
		cmocka_unit_test(test_numbers_that_json_cannot_hold),
		cmocka_unit_test(test_every_allocation_may_fail),
	};

	takt_json_init();
	return cmocka_run_group_tests_name("snapshot", tests, NULL, NULL);
}
