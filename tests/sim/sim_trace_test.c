/* SPDX-License-Identifier: Apache-2.0 */
/* Traces as users have them: the published files, columns in any order, and every kind of mistake.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "codec/json.h"
#include "sim/throughputs.h"
#include "sim/trace.h"

#define NEED(field) (1u << TAKT_TRACE_JOB_##field)

static const uint32_t pod_columns = NEED(CPU) | NEED(MEMORY) | NEED(GPUS) | NEED(GPU_MILLI);

static struct takt_trace *jobs_in(const char *text, uint32_t required, struct takt_err *err)
{
	struct takt_lines *lines;
	struct takt_trace *trace = NULL;

	assert_int_equal(takt_lines_open_memory("pods.csv", text, strlen(text), &lines, err), 0);
	if (takt_trace_new(lines, TAKT_TRACE_OF_JOBS, required, &trace, err) < 0)
		return NULL;
	return trace;
}

/* The message of the first failure, at the header or at a record. */
static void must_refuse(const char *text, uint32_t required, const char *message)
{
	struct takt_err err = {0};
	struct takt_trace *trace = jobs_in(text, required, &err);
	struct takt_trace_job job;

	while (trace && takt_trace_next_job(trace, &job, &err) == 1)
		;
	takt_trace_free(trace);
	assert_string_equal(err.msg, message);
}

static void count_jobs(const char *file, size_t want, int64_t want_milli, const char *hash)
{
	char path[512];
	struct takt_trace *trace;
	struct takt_trace_job job;
	struct takt_err err = {0};
	size_t count = 0;
	int64_t milli = 0;
	int rc;

	snprintf(path, sizeof(path), "%s/%s", getenv("TAKT_TRACES"), file);
	if (takt_trace_open(path, TAKT_TRACE_OF_JOBS, NEED(GPUS), &trace, &err) < 0)
		fail_msg("%s", err.msg);
	while ((rc = takt_trace_next_job(trace, &job, &err)) == 1) {
		count++;
		milli += job.gpus * job.gpu_milli;
	}
	assert_int_equal(rc, 0);
	assert_int_equal(count, want);
	assert_int_equal(milli, want_milli);
	if (hash)
		assert_memory_equal(takt_trace_hash(trace), hash, strlen(hash));
	takt_trace_free(trace);
}

/* Figures counted with other programs: wc, awk, sha256sum. */
static void published_files_are_read_whole(void **state)
{
	(void)state;
	count_jobs("openb_pod_list_default.csv.gz", 8152, 6086800,
		   "1ee7ed79c27a3b0861cda8ddba86a004c6aba904caafa329a76ae93ca63834a8");
	count_jobs("openb_pod_list_multigpu20.csv.gz", 8324, 7086800, NULL);
	count_jobs("philly_jobs_2017_09_10.csv.gz", 52849, 63436000, NULL);
}

static void nodes_of_openb(void **state)
{
	char path[512];
	struct takt_trace *trace;
	struct takt_trace_node node;
	struct takt_err err = {0};
	int64_t gpus = 0, cpu = 0, count = 0;

	(void)state;
	snprintf(path, sizeof(path), "%s/openb_node_list_gpu_node.csv", getenv("TAKT_TRACES"));
	assert_int_equal(takt_trace_open(path, TAKT_TRACE_OF_NODES, 1u << TAKT_TRACE_NODE_GPUS,
					 &trace, &err),
			 0);
	while (takt_trace_next_node(trace, &node, &err) == 1) {
		if (count == 0) {
			assert_string_equal(node.name, "openb-node-0000");
			assert_string_equal(node.model, "P100");
			assert_int_equal(node.memory_mib, 262144);
		}
		count += node.count;
		gpus += node.gpus;
		cpu += node.cpu_milli;
	}
	assert_int_equal(count, 1213);
	assert_int_equal(gpus, 6212);
	assert_int_equal(cpu, 107018000);
	takt_trace_free(trace);
}

static void columns_may_come_in_any_order(void **state)
{
	struct takt_err err = {0};
	struct takt_trace *trace =
		jobs_in("\xef\xbb\xbfgpu_spec, weather ,num_gpu,\"name\",gpu_milli,cpu_milli,"
			"memory_mib,creation_time\r\n"
			"\"A|B\",\"wet, \"\"cold\"\"\",1,first,460,6000,12288,427061\r\n"
			"\n"
			",,2.0,second,2000,,1,",
			NEED(GPUS), &err);
	struct takt_trace_job job;

	(void)state;
	assert_non_null(trace);
	assert_int_equal(takt_trace_next_job(trace, &job, &err), 1);
	assert_string_equal(job.name, "first");
	assert_string_equal(job.models, "A|B");
	assert_int_equal(job.gpu_milli, 460);
	assert_int_equal(job.submit_ns, 427061 * INT64_C(1000000000));
	assert_true(job.has & NEED(CPU));
	assert_int_equal(takt_trace_next_job(trace, &job, &err), 1);
	assert_string_equal(job.name, "second");
	assert_int_equal(job.gpus, 2);
	assert_int_equal(job.gpu_milli, 1000);
	assert_false(job.has & (NEED(CPU) | NEED(SUBMIT)));
	assert_int_equal(takt_trace_line(trace), 4);
	assert_int_equal(takt_trace_next_job(trace, &job, &err), 0);
	takt_trace_free(trace);
}

static void our_name_counts_where_two_columns_say_the_same(void **state)
{
	struct takt_err err = {0};
	struct takt_trace *trace = jobs_in("qos,tenant,cluster,gpus\nBE,physics,x,1\n", 0, &err);
	struct takt_trace_job job;

	(void)state;
	assert_int_equal(takt_trace_next_job(trace, &job, &err), 1);
	assert_string_equal(job.tenant, "physics");
	takt_trace_free(trace);
}

/* Of the published dialects: each has its own word for how often the job asks for the rest. */
static void columns_that_multiply_what_a_job_asks_for_are_read(void **state)
{
	static const char *const names[] = {"tasks", "num_inst", "inst_num", "worker_num",
					    "replicas"};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct takt_trace_job job;
		struct takt_err err = {0};
		struct takt_trace *trace;
		char text[80];

		snprintf(text, sizeof(text),
			 "job_name,gpu_request,node_num,%s\nj,1,5,40.0\nk,1,5,\n", names[i]);
		trace = jobs_in(text, NEED(GPUS), &err);
		assert_non_null(trace);
		assert_int_equal(takt_trace_next_job(trace, &job, &err), 1);
		assert_int_equal(job.tasks, 40);
		assert_int_equal(takt_trace_next_job(trace, &job, &err), 1);
		assert_int_equal(job.tasks, 1);
		takt_trace_free(trace);
	}
}

static void times_are_exact(void **state)
{
	struct takt_err err = {0};
	struct takt_trace *trace = jobs_in("timestamp,duration,num_gpus\n"
					   "2017-09-04 10:30:41,2240194.0,8\n"
					   "1972-02-29T23:59:59.5Z,0.000000001,1\n"
					   "2000-03-01 00:00:00,1,1\n",
					   NEED(SUBMIT) | NEED(DURATION), &err);
	struct takt_trace_job job;

	(void)state;
	assert_int_equal(takt_trace_next_job(trace, &job, &err), 1);
	assert_int_equal(job.submit_ns, 1504521041 * INT64_C(1000000000));
	assert_int_equal(job.duration_ns, 2240194 * INT64_C(1000000000));
	assert_int_equal(takt_trace_next_job(trace, &job, &err), 1);
	assert_int_equal(job.submit_ns, 68255999 * INT64_C(1000000000) + 500000000);
	assert_int_equal(job.duration_ns, 1);
	assert_int_equal(takt_trace_next_job(trace, &job, &err), 1);
	assert_int_equal(job.submit_ns, 951868800 * INT64_C(1000000000));
	takt_trace_free(trace);
}

static void json_lines_say_the_same(void **state)
{
	struct takt_err err = {0};
	struct takt_trace *trace =
		jobs_in("{\"name\":\"a\",\"gpus\":2,\"submit_s\":1.5,\"models\":null,\"x\":[1]}\n"
			"\n"
			"{\"gpus\":\"1\",\"gpu_milli\":320,\"submit_s\":\"2\"}\n",
			NEED(GPUS), &err);
	struct takt_trace_job job;

	(void)state;
	assert_int_equal(takt_trace_next_job(trace, &job, &err), 1);
	assert_string_equal(job.name, "a");
	assert_string_equal(job.models, "");
	assert_int_equal(job.submit_ns, 1500000000);
	assert_int_equal(job.gpu_milli, 1000);
	assert_int_equal(takt_trace_next_job(trace, &job, &err), 1);
	assert_string_equal(job.name, "");
	assert_int_equal(job.gpu_milli, 320);
	assert_int_equal(takt_trace_next_job(trace, &job, &err), 0);
	takt_trace_free(trace);
}

static void mistakes_are_named_by_file_line_and_column(void **state)
{
	(void)state;
	must_refuse("", 0, "'pods.csv' is empty: a header line is needed");
	must_refuse(
		"name,cpu_milli,memory_mib,gpu_milli\n", pod_columns,
		"pods.csv:1: there is no column 'gpus' (or num_gpu|num_gpus|gpu_num|gpu_request)");
	must_refuse("gpus,name,gpus\n", 0, "pods.csv:1: column 'gpus' is there twice");
	must_refuse("name,gpus\na,1\nb,many\n", 0,
		    "pods.csv:3: column 'gpus': 'many' is not a whole number from 0 to 100000");
	must_refuse("name,gpus\na,-1\n", 0,
		    "pods.csv:2: column 'gpus': '-1' is not a whole number from 0 to 100000");
	must_refuse("name,gpus\na,1.5\n", 0,
		    "pods.csv:2: column 'gpus': '1.5' is not a whole number from 0 to 100000");
	must_refuse("name,gpus\na,\n", NEED(GPUS), "pods.csv:2: column 'gpus' is empty");
	must_refuse("name,gpus\na,1,2\n", 0, "pods.csv:2: 3 cells, the header has 2");
	must_refuse("name,gpus\n\"a,1\n", 0, "pods.csv:2: cell 1 has a quote that is not closed");
	must_refuse("name,gpus\n\"a\"b,1\n", 0, "pods.csv:2: cell 1 has text behind its quote");
	must_refuse("duration,gpus\n1e5,1\n", 0,
		    "pods.csv:2: column 'duration_s': '1e5' is not a number of seconds such as "
		    "12.5");
	must_refuse("timestamp\n2017-02-29 10:30:41\n", 0,
		    "pods.csv:2: column 'submit_s': '2017-02-29 10:30:41' is not a time: seconds "
		    "such as 12.5, or 2017-09-04 10:30:41");
	must_refuse("timestamp\n2017-13-04 10:30:41\n", 0,
		    "pods.csv:2: column 'submit_s': '2017-13-04 10:30:41' is not a time: seconds "
		    "such as 12.5, or 2017-09-04 10:30:41");
	must_refuse("submit_s\n99999999999999999999\n", 0,
		    "pods.csv:2: column 'submit_s': '99999999999999999999' is not a time: seconds "
		    "such as 12.5, or 2017-09-04 10:30:41");
	must_refuse("[1]\n", 0, "pods.csv:1: a JSON list; JSON Lines are read: an object a line");
	must_refuse("{\"gpus\":1,\"num_gpu\":1}\n", 0, "pods.csv:1: a member is there twice");
	must_refuse("{\"gpus\":{}}\n", 0,
		    "pods.csv:1: column 'gpus': a number or a text is needed");
	must_refuse("{}\n", NEED(GPUS), "pods.csv:1: column 'gpus' is empty");
}

static void damaged_files_are_refused(void **state)
{
	struct takt_err err = {0};
	struct takt_lines *lines;
	struct takt_trace *trace = NULL;
	char *line;

	(void)state;
	assert_int_equal(takt_lines_open("/nowhere/pods.csv", &lines, &err), -ENOENT);
	assert_string_equal(err.msg, "open '/nowhere/pods.csv'");
	assert_int_equal(takt_lines_open("/", &lines, &err), -EISDIR);
	assert_int_equal(takt_lines_open_memory("m", "a\0b\n", 4, &lines, &err), 0);
	assert_int_equal(takt_lines_next(lines, &line, &err), -TAKT_E_CORRUPT);
	assert_string_equal(err.msg, "m:1: holds a NUL byte: no text");
	takt_lines_free(lines);
	assert_null(trace);
}

/* A gzip that lost its end: what was read so far must not pass for the whole. */
static void a_cut_off_gzip_is_noticed(void **state)
{
	char path[512], copy[] = "/tmp/takt-sim-XXXXXX";
	static char bytes[60000];
	struct takt_err err = {0};
	struct takt_trace *trace;
	struct takt_trace_job job;
	int fd = mkstemp(copy), rc;
	FILE *from;

	(void)state;
	snprintf(path, sizeof(path), "%s/openb_pod_list_default.csv.gz", getenv("TAKT_TRACES"));
	from = fopen(path, "rb");
	assert_non_null(from);
	assert_int_equal(fread(bytes, 1, sizeof(bytes), from), sizeof(bytes));
	fclose(from);
	assert_int_equal(write(fd, bytes, sizeof(bytes)), sizeof(bytes));
	close(fd);
	assert_int_equal(takt_trace_open(copy, TAKT_TRACE_OF_JOBS, 0, &trace, &err), 0);
	while ((rc = takt_trace_next_job(trace, &job, &err)) == 1)
		;
	assert_int_equal(rc, -TAKT_E_CORRUPT);
	assert_non_null(strstr(err.msg, "is damaged or cut off after line"));
	takt_trace_free(trace);
	unlink(copy);
}

static int read_all(const char *text)
{
	struct takt_lines *lines;
	struct takt_trace *trace;
	struct takt_trace_job job;
	int rc = takt_lines_open_memory("m", text, strlen(text), &lines, NULL);

	if (rc == 0)
		rc = takt_trace_new(lines, TAKT_TRACE_OF_JOBS, 0, &trace, NULL);
	if (rc < 0)
		return rc;
	while ((rc = takt_trace_next_job(trace, &job, NULL)) == 1)
		;
	takt_trace_free(trace);
	return rc;
}

static void want_of_memory_is_reported(void **state)
{
	static const char *const texts[] = {"name,gpus\na,1\n", "{\"name\":\"a\",\"gpus\":1}\n"};

	(void)state;
	takt_json_init();
	for (size_t i = 0; i < 2; i++) {
		int rc = -ENOMEM;

		for (unsigned long nth = 1; rc == -ENOMEM; nth++) {
			takt_alloc_fail_nth(nth, 0);
			rc = read_all(texts[i]);
			takt_alloc_fail_nth(0, 0);
		}
		assert_int_equal(rc, 0);
	}
}

static void hashes_are_those_of_sha256sum(void **state)
{
	static char million[1000000];
	struct takt_sha256 sha;
	char text[TAKT_SHA256_TEXT];

	(void)state;
	takt_sha256_init(&sha);
	takt_sha256_text(&sha, text);
	assert_string_equal(text,
			    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	memset(million, 'a', sizeof(million));
	takt_sha256_init(&sha);
	takt_sha256_add(&sha, million, 7);
	takt_sha256_add(&sha, million + 7, sizeof(million) - 7);
	takt_sha256_text(&sha, text);
	assert_string_equal(text,
			    "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static void gavels_table_is_read(void **state)
{
	char path[512];
	struct takt_throughputs table;
	struct takt_lines *lines;
	struct takt_err err = {0};

	(void)state;
	snprintf(path, sizeof(path), "%s/gavel_throughputs.json.gz", getenv("TAKT_TRACES"));
	assert_int_equal(takt_lines_open(path, &lines, &err), 0);
	if (takt_throughputs_read(lines, &table, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(table.model_count, 3);
	assert_string_equal(table.models[0], "k80");
	assert_string_equal(table.models[2], "v100");
	assert_int_equal(table.kinds.len, 83);
	for (size_t i = 0; i < table.kinds.len; i++) {
		const struct takt_throughput_kind *kind = &table.kinds.at[i];

		if (strcmp(kind->name, "ResNet-18 (batch size 16)") == 0 && kind->gpus == 1) {
			assert_int_equal(kind->together[0], 4795295);
			assert_int_equal(kind->together[2], 32353384);
			assert_int_equal(kind->apart[0], 4795295);
		}
	}
	takt_throughputs_fini(&table);
	takt_lines_free(lines);
}

static void wrong_tables_of_throughputs_are_refused(void **state)
{
	static const char *const cases[][2] = {
		{"{}", "'t.json': an object of models is needed"},
		{"[]", "'t.json': an object of models is needed"},
		{"{\"v100\":{}}", "'t.json': there is no kind of job"},
		{"{\"v100\":1}", "'t.json': model 'v100': an object of kinds of jobs is needed"},
		{"{\"v100\":{\"A3C\":{\"null\":1}}}",
		 "'t.json': kind of job \"A3C\" does not read \"('NAME', ACCELERATORS)\""},
		{"{\"v100\":{\"('A3C', 1)\":{\"null\":-1}}}",
		 "'t.json': \"('A3C', 1)\" on 'v100': \"null\" must be its speed in steps a "
		 "second"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct takt_throughputs table;
		struct takt_lines *lines;
		struct takt_err err = {0};

		assert_int_equal(takt_lines_open_memory("t.json", cases[i][0], strlen(cases[i][0]),
							&lines, &err),
				 0);
		assert_int_equal(takt_throughputs_read(lines, &table, &err), -TAKT_E_CORRUPT);
		assert_string_equal(err.msg, cases[i][1]);
		takt_lines_free(lines);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(published_files_are_read_whole),
		cmocka_unit_test(nodes_of_openb),
		cmocka_unit_test(columns_may_come_in_any_order),
		cmocka_unit_test(our_name_counts_where_two_columns_say_the_same),
		cmocka_unit_test(columns_that_multiply_what_a_job_asks_for_are_read),
		cmocka_unit_test(times_are_exact),
		cmocka_unit_test(json_lines_say_the_same),
		cmocka_unit_test(mistakes_are_named_by_file_line_and_column),
		cmocka_unit_test(damaged_files_are_refused),
		cmocka_unit_test(a_cut_off_gzip_is_noticed),
		cmocka_unit_test(want_of_memory_is_reported),
		cmocka_unit_test(gavels_table_is_read),
		cmocka_unit_test(wrong_tables_of_throughputs_are_refused),
		cmocka_unit_test(hashes_are_those_of_sha256sum),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
