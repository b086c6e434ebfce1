/* SPDX-License-Identifier: Apache-2.0 */
/* Job descriptions: what is accepted, what is refused and in which words, and that nothing is lost
 * on the way through JSON. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "codec/grid.h"
#include "codec/jobspec.h"
#include "codec/json.h"

/* A text that may be written to, as argv is. */
#define WORD(text) ((char[]){text})

static int parse(const char *text, struct takt_jobspec *ret, struct takt_err *err)
{
	takt_jobspec_init(ret);
	return takt_jobspec_from_json(text, strlen(text), ret, err);
}

static void reads_a_full_description(void **state)
{
	struct takt_jobspec spec;

	assert_int_equal(
		parse("{\"name\":\"train-1\",\"argv\":[\"python3\",\"a b.py\"],"
		      "\"env\":[\"A=1\",\"B=\"],\"cwd\":\"/tmp\",\"gpus\":4,"
		      "\"priority\":-3,\"held\":true,\"retries\":3,\"time_limit_ms\":60000,"
		      "\"begin_ms\":1795204226500,\"after\":[{\"job\":7},{\"job\":9,\"any\":true}],"
		      "\"requeue\":true,\"use_outside\":true,"
		      "\"clock_ask\":\"ceiling\",\"clock_mhz\":1410,\"visible\":\"uuid\","
		      "\"power_limit_mw\":300000,\"grace_ms\":0}",
		      &spec, NULL),
		0);
	assert_string_equal(spec.name, "train-1");
	assert_string_equal(spec.argv[1], "a b.py");
	assert_null(spec.argv[2]);
	assert_string_equal(spec.env[1], "B=");
	assert_string_equal(spec.cwd, "/tmp");
	assert_int_equal(spec.gpus, 4);
	assert_int_equal(spec.priority, -3);
	assert_true(spec.requeue && spec.use_outside && spec.held);
	assert_int_equal(spec.retries, 3);
	assert_int_equal(spec.time_limit_ms, 60000);
	assert_int_equal(spec.begin_ms, 1795204226500);
	assert_int_equal(spec.after_count, 2);
	assert_true(spec.after[0].job == 7 && !spec.after[0].any);
	assert_true(spec.after[1].job == 9 && spec.after[1].any);
	assert_int_equal(spec.clock_ask, TAKT_CLOCK_ASK_CEILING);
	assert_int_equal(spec.clock_mhz, 1410);
	assert_int_equal(spec.power_limit_mw, 300000);
	assert_int_equal(spec.visible, TAKT_VISIBLE_UUID);
	assert_int_equal(spec.grace_ms, 0);
	takt_jobspec_fini(&spec);
}

static void reads_the_terms_of_a_job(void **state)
{
	struct takt_jobspec spec;

	assert_int_equal(
		parse("{\"argv\":[\"x\"],\"cwd\":\"/\",\"gpus\":2,\"gpu_milli\":250,"
		      "\"preemptible\":true,\"freezable\":true,\"checkpoint_signal\":10,"
		      "\"checkpoint_grace_ms\":5000,\"checkpoint_dir\":\"/ck\","
		      "\"deadline_ms\":1795204226500,\"estimate_ms\":7200000,"
		      "\"tenant\":\"lab/vision\",\"tags\":\"a,b-2\",\"retry_backoff_ms\":10000,"
		      "\"ranks\":4,\"idle_release_ms\":60000,\"container\":\"debian:12\","
		      "\"container_args\":[\"--ipc=host\"],\"container_runtime\":\"podman\","
		      "\"stage\":true,\"prefetch\":[\"/bin/sh\",\"-c\",\"cat d\"],"
		      "\"hook\":\"mail me\",\"wait_outside\":true,\"gpu_indices\":[1,3],"
		      "\"clock_policy\":\"assured\",\"max_slowdown_permille\":30,"
		      "\"slo_latency_us\":50000,\"slo_permille\":990}",
		      &spec, NULL),
		0);
	assert_int_equal(spec.gpus, 2);
	assert_int_equal(spec.gpu_milli, 250);
	assert_int_equal(spec.gpu_indices, 0xa);
	assert_true(spec.preemptible && spec.freezable && spec.stage && spec.wait_outside);
	assert_int_equal(spec.checkpoint_signal, 10);
	assert_int_equal(spec.checkpoint_grace_ms, 5000);
	assert_string_equal(spec.checkpoint_dir, "/ck");
	assert_int_equal(spec.deadline_ms, 1795204226500);
	assert_int_equal(spec.estimate_ms, 7200000);
	assert_string_equal(spec.tenant, "lab/vision");
	assert_string_equal(spec.tags, "a,b-2");
	assert_int_equal(spec.retry_backoff_ms, 10000);
	assert_int_equal(spec.ranks, 4);
	assert_int_equal(spec.idle_release_ms, 60000);
	assert_string_equal(spec.container, "debian:12");
	assert_string_equal(spec.container_args[0], "--ipc=host");
	assert_string_equal(spec.container_runtime, "podman");
	assert_string_equal(spec.prefetch[2], "cat d");
	assert_string_equal(spec.hook, "mail me");
	assert_string_equal(spec.clock_policy, "assured");
	assert_int_equal(spec.max_slowdown_permille, 30);
	assert_int_equal(spec.slo_latency_us, 50000);
	assert_int_equal(spec.slo_permille, 990);
	takt_jobspec_fini(&spec);
}

static void fills_in_what_follows(void **state)
{
	struct takt_jobspec spec;

	assert_int_equal(parse("{\"argv\":[\"x\"],\"cwd\":\"/\",\"gpu_milli\":1000,"
			       "\"checkpoint_signal\":12,\"mig\":\"1g.10gb+me\",\"pty\":true}",
			       &spec, NULL),
			 0);
	assert_int_equal(spec.gpu_milli, 0);
	assert_int_equal(spec.checkpoint_grace_ms, 60000);
	assert_int_equal(spec.retry_backoff_ms, 1000);
	assert_string_equal(spec.mig, "1g.10gb+me");
	assert_true(spec.pty);
	takt_jobspec_fini(&spec);
}

static void element(const struct takt_jobspec *array, uint32_t index, const char *params,
		    const char *command, const char *name)
{
	struct takt_jobspec spec;
	char text[200];

	takt_jobspec_init(&spec);
	assert_int_equal(takt_jobspec_element(array, 7, index, &spec, NULL), 0);
	assert_true(spec.array_id == 7 && spec.array_index == index && !spec.has_array);
	assert_null(spec.grid);
	takt_words_text(spec.params, text, sizeof(text));
	assert_string_equal(text, params);
	takt_jobspec_command(&spec, text, sizeof(text));
	assert_string_equal(text, command);
	assert_string_equal(spec.name, name);
	takt_jobspec_fini(&spec);
}

static void a_grid_has_an_element_a_combination(void **state)
{
	struct takt_jobspec array;

	assert_int_equal(
		parse("{\"argv\":[\"x\",\"{lr}{\",\"{no}\",\"a{k}b{lr}\"],\"cwd\":\"/\","
		      "\"name\":\"n-{k}\",\"checkpoint_dir\":\"/c/{k}\","
		      "\"grid\":[\"lr=0.1,1\\\\,5\",\"k=8-9,x/y,1\\\\-3\"],\"array_limit\":2}",
		      &array, NULL),
		0);
	assert_true(array.has_array && array.array_first == 0 && array.array_last == 7);
	element(&array, 0, "lr=0.1 k=8", "x '0.1{' '{no}' a8b0.1", "n-8");
	element(&array, 1, "lr=0.1 k=9", "x '0.1{' '{no}' a9b0.1", "n-9");
	element(&array, 6, "lr=1,5 k=x/y", "x '1,5{' '{no}' ax/yb1,5", "n-x_y");
	element(&array, 7, "lr=1,5 k=1-3", "x '1,5{' '{no}' a1-3b1,5", "n-1-3");
	takt_jobspec_fini(&array);
}

static void values_of_a_grid_are_read_as_they_were_added(void **state)
{
	static const char *const values[] = {"a,b", "1-3", "\\", "-1", "x"};
	TAKT_CLEANUP(strp) struct takt_str list = TAKT_STR(1000), text = TAKT_STR(1000);
	char *grid[] = {NULL, NULL};
	uint32_t count;

	for (size_t i = 0; i < TAKT_ARRAY_LEN(values); i++)
		takt_grid_add_value(&list, values[i]);
	takt_str_addf(&text, "p=%s", takt_str_text(&list));
	grid[0] = text.s;
	assert_int_equal(takt_grid_check(grid, &count, NULL), 0);
	assert_int_equal(count, TAKT_ARRAY_LEN(values));
	for (uint32_t i = 0; i < count; i++) {
		char **params = takt_grid_params(grid, i);

		assert_string_equal(params[0] + 2, values[i]);
		takt_free(params[0]);
		takt_free(params);
	}
}

static void an_element_without_memory_leaves_nothing(void **state)
{
	struct takt_jobspec array;
	int rc = -ENOMEM;

	takt_json_init();
	assert_int_equal(parse("{\"argv\":[\"x\",\"{k}\"],\"cwd\":\"/\",\"grid\":[\"k=1-2\"]}",
			       &array, NULL),
			 0);
	for (unsigned long nth = 1; rc == -ENOMEM; nth++) {
		struct takt_jobspec spec;

		takt_jobspec_init(&spec);
		takt_alloc_fail_nth(nth, 0);
		rc = takt_jobspec_element(&array, 7, 1, &spec, NULL);
		takt_alloc_fail_nth(0, 0);
		if (rc < 0)
			assert_null(spec.argv);
		takt_jobspec_fini(&spec);
		assert_true(nth < 1000);
	}
	assert_int_equal(rc, 0);
	takt_jobspec_fini(&array);
}

static void fills_in_defaults(void **state)
{
	struct takt_jobspec spec;

	assert_int_equal(parse("{\"argv\":[\"./my train.sh\"],\"cwd\":\"/\"}", &spec, NULL), 0);
	assert_string_equal(spec.name, "my_train.sh");
	assert_int_equal(spec.gpus, 1);
	assert_int_equal(spec.grace_ms, 30000);
	assert_null(spec.env);
	takt_jobspec_fini(&spec);
}

struct refusal {
	const char *json, *part_of_message;
};

#define OK "\"argv\":[\"x\"],\"cwd\":\"/\""
static const struct refusal refusals[] = {
	{"", "not valid JSON"},
	{"[]", "must be an object, not a list"},
	{"{" OK "} x", "byte 25"},
	{"{" OK ",\"gpu\":1}", "field 'gpu' is not known"},
	{"{" OK ",\"GPUS\":1}", "field 'GPUS' is not known"},
	{"{" OK ",\"gpus\":1,\"gpus\":2}", "field 'gpus' stands twice"},
	{"{" OK ",\"gpus\":\"1\"}", "field 'gpus' must be a whole number from 0 to 64, not text"},
	{"{" OK ",\"gpus\":65}", "field 'gpus' must be a whole number from 0 to 64, not 65"},
	{"{" OK ",\"gpus\":1.5}", "not 1.5"},
	{"{" OK ",\"gpus\":-1}", "not -1"},
	{"{" OK ",\"gpus\":01}", "not a number"},
	{"{" OK ",\"gpus\":1e99}", "field 'gpus'"},
	{"{" OK ",\"gpus\":1e-400}", "only rounding would make whole"},
	{"{" OK ",\"gpus\":-1e-400}", "only rounding would make whole"},
	{"{" OK ",\"gpus\":0.99999999999999999999}", "only rounding would make whole"},
	{"{" OK ",\"gpus\":1.00000000000000000000000001}", "only rounding would make whole"},
	{"{" OK ",\"gpus\":20000000000000000000000001e-25}", "only rounding would make whole"},
	{"{" OK ",\"gpu_milli\":0}", "field 'gpu_milli' must be a whole number from 1 to 1000"},
	{"{" OK ",\"gpus\":null}", "not null"},
	{"{" OK ",\"array_last\":10000,\"array_first\":0}",
	 "'array_last' must be 0 ('array_first') to 9999"},
	{"{" OK ",\"array_limit\":2}", "'array_limit' needs"},
	{"{" OK ",\"array_last\":1,\"array_id\":3}", "'array_id' is set by takt"},
	{"{" OK ",\"retries\":101}", "field 'retries' must be a whole number from 0 to 100"},
	{"{" OK ",\"time_limit_ms\":31622400001}", "field 'time_limit_ms' must be at most"},
	{"{" OK ",\"begin_ms\":-1}", "since 1970"},
	{"{" OK ",\"after\":[{\"job\":0}]}", "field 'after[0].job'"},
	{"{" OK ",\"after\":[{\"any\":true}]}", "after[0].job"},
	{"{" OK ",\"after\":[{\"job\":1,\"al\":true}]}", "'after[0].al'"},
	{"{" OK ",\"gpu_milli\":1001}", "field 'gpu_milli' must be a whole number from 1 to 1000"},
	{"{" OK ",\"gpu_milli\":500,\"gpus\":0}", "'gpu_milli' needs at least one GPU"},
	{"{" OK ",\"gpu_milli\":500,\"clock_ask\":\"lock\",\"clock_mhz\":1}", "shares them"},
	{"{" OK ",\"mig\":\"half\"}", "'mig' must be a profile such as 1g.10gb, not 'half'"},
	{"{" OK ",\"mig\":\"1g.10gb+\"}", "not '1g.10gb+'"},
	{"{" OK ",\"mig\":\"1g.10gb\",\"gpu_milli\":5}", "exclude each other"},
	{"{" OK ",\"mig\":\"1g.10gb\",\"gpus\":0}", "number of instances"},
	{"{" OK ",\"checkpoint_signal\":9}", "a program can catch, 1 to 64, not 9"},
	{"{" OK ",\"checkpoint_signal\":\"USR1\"}", "whole number from 0 to 64, not text"},
	{"{" OK ",\"checkpoint_grace_ms\":5}", "needs 'checkpoint_signal'"},
	{"{" OK ",\"checkpoint_dir\":\"ck\"}", "'checkpoint_dir' must be an absolute path"},
	{"{" OK ",\"deadline_ms\":-1}", "'deadline_ms' must be milliseconds since 1970"},
	{"{" OK ",\"deadline_ms\":5,\"begin_ms\":5}", "must lie after 'begin_ms'"},
	{"{" OK ",\"estimate_ms\":31622400001}", "field 'estimate_ms' must be at most"},
	{"{" OK ",\"idle_release_ms\":31622400001}", "field 'idle_release_ms' must be at most"},
	{"{" OK ",\"retry_backoff_ms\":0}", "whole number from 1 to 86400000, not 0"},
	{"{" OK ",\"tenant\":\"lab//x\"}", "'tenant' must be such as lab/vision"},
	{"{" OK ",\"tenant\":\"lab/\"}", "not 'lab/'"},
	{"{" OK ",\"tags\":\"a b\"}", "'tags' must be such as night,big"},
	{"{" OK ",\"ranks\":1025}", "from 0 to 1024, not 1025"},
	{"{" OK ",\"ranks\":2,\"pty\":true}", "cannot share a terminal"},
	{"{" OK ",\"container_args\":[\"a\"]}", "'container_args' needs an image"},
	{"{" OK ",\"container_runtime\":\"podman\"}", "'container_runtime' needs an image"},
	{"{" OK ",\"container\":\"--privileged\"}", "'container' must be an image"},
	{"{" OK ",\"container\":\"a\",\"container_runtime\":\"lxc\"}", "podman, docker or"},
	{"{" OK ",\"prefetch\":[]}", "'prefetch' must have a command"},
	{"{" OK ",\"hook\":\"\"}", "'hook' must be a shell command"},
	{"{" OK ",\"use_outside\":true,\"wait_outside\":true}", "exclude each other"},
	{"{" OK ",\"clock_policy\":\"A b\"}", "'clock_policy' must be the name of a governor"},
	{"{" OK ",\"clock_policy\":\"observe\",\"gpus\":0}",
	 "'clock_policy' needs at least one GPU"},
	{"{" OK ",\"max_slowdown_permille\":501}", "from 0 to 500, not 501"},
	{"{" OK ",\"max_slowdown_permille\":9,\"gpus\":0}",
	 "'max_slowdown_permille' needs at least"},
	{"{" OK ",\"max_slowdown_permille\":9,\"clock_ask\":\"ceiling\",\"clock_mhz\":1}",
	 "exclude each other: a governor chooses"},
	{"{" OK ",\"power_limit_mw\":999}", "must be 1000 to 10000000 (milliwatts), not 999"},
	{"{" OK ",\"power_limit_mw\":10000001}", "from 0 to 10000000"},
	{"{" OK ",\"power_limit_mw\":300000,\"gpus\":0}", "'power_limit_mw' needs at least one"},
	{"{" OK ",\"power_limit_mw\":300000,\"clock_policy\":\"ladder\"}",
	 "'clock_policy' and 'power_limit_mw' exclude each other"},
	{"{" OK ",\"slo_latency_us\":9}", "belong together"},
	{"{" OK ",\"slo_permille\":990}", "belong together"},
	{"{" OK ",\"slo_latency_us\":9,\"slo_permille\":100}", "must be 500 to 999"},
	{"{" OK ",\"slo_latency_us\":1800000001,\"slo_permille\":990}", "from 0 to 1800000000"},
	{"{" OK ",\"grid\":[]}", "'grid' must have a parameter"},
	{"{" OK ",\"grid\":[\"lr\"]}", "'grid[0]' must be such as lr=0.1,0.01"},
	{"{" OK ",\"grid\":[\"lr=\"]}", "not 'lr='"},
	{"{" OK ",\"grid\":[\"lr=1,,2\"]}", "not 'lr=1,,2'"},
	{"{" OK ",\"grid\":[\"2=1\"]}", "not '2=1'"},
	{"{" OK ",\"grid\":[\"a b=1\"]}", "not 'a b=1'"},
	{"{" OK ",\"grid\":[\"a=1\",\"a=2\"]}", "'grid[1]': parameter 'a' is there already"},
	{"{" OK ",\"grid\":[\"a=0-99\",\"b=0-100\"]}", "over 10000 combinations"},
	{"{" OK ",\"grid\":[\"a=0-4294967295\"]}", "over 10000 combinations"},
	{"{" OK ",\"grid\":[\"a=0-4\"],\"array_first\":0,\"array_last\":5}", "counts its 5 jobs"},
	{"{" OK ",\"name\":\"{a}\"}", "field 'name' may have letters"},
	{"{" OK ",\"priority\":1001}", "from -1000 to 1000"},
	{"{" OK ",\"requeue\":1}", "field 'requeue' must be true or false, not a number"},
	{"{" OK ",\"clock_ask\":\"max\"}", "one of 'none', 'ceiling', 'lock', not 'max'"},
	{"{" OK ",\"clock_ask\":\"lock\"}", "'clock_mhz' must be 1 to 10000"},
	{"{" OK ",\"clock_mhz\":1410}", "needs 'clock_ask'"},
	{"{" OK ",\"clock_ask\":\"lock\",\"clock_mhz\":1,\"use_outside\":true}", "held alone"},
	{"{" OK ",\"clock_ask\":\"lock\",\"clock_mhz\":1,\"gpus\":0}", "at least one GPU"},
	{"{" OK ",\"name\":\"a/b\"}", "field 'name' may have letters"},
	{"{" OK ",\"name\":\"12345678901234567890123456789012345678901234567890123456789012345\"}",
	 "text of at most 64 bytes, not 65"},
	{"{" OK ",\"env\":[\"A\"]}", "field 'env[0]' must be NAME=value"},
	{"{" OK ",\"env\":[\"A=1\",\"=1\"]}", "env[1]"},
	{"{" OK ",\"env\":[\"A=1\",7]}", "field 'env[1]' must be text, not a number"},
	{"{" OK ",\"env\":\"A=1\"}", "field 'env' must be a list of text"},
	{"{" OK ",\"env\":[\"A=\\u0000b\"]}", "NUL is not allowed"},
	{"{" OK ",\"env\":[\"A=\x80\"]}", "not UTF-8"},
	{"{" OK ",\"env\":[\"A=\n\"]}", "control character"},
	{"{" OK ",\"env\":[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]}", "nested too deep"},
	{"{\"cwd\":\"/\"}", "field 'argv' is missing"},
	{"{\"argv\":[],\"cwd\":\"/\"}", "command as its first entry"},
	{"{\"argv\":[\"\"],\"cwd\":\"/\"}", "command as its first entry"},
	{"{\"argv\":[\"x\"]}", "field 'cwd' is missing"},
	{"{\"argv\":[\"x\"],\"cwd\":\"tmp\"}", "absolute path"},
};

static void refuses_and_says_why(void **state)
{
	for (size_t i = 0; i < TAKT_ARRAY_LEN(refusals); i++) {
		struct takt_jobspec spec;
		struct takt_err err = {.rc = 0};
		int rc = parse(refusals[i].json, &spec, &err);

		if (rc != -TAKT_E_USAGE || !strstr(err.msg, refusals[i].part_of_message))
			fail_msg("%s: rc %d, '%s' lacks '%s'", refusals[i].json, rc, err.msg,
				 refusals[i].part_of_message);
		assert_int_equal(err.rc, rc);
		assert_null(spec.argv);
	}
}

/* However they are written. */
static void numbers_that_are_whole_are_read(void **state)
{
	static const char *const two[] = {"2",
					  "2.0",
					  "2e0",
					  "20e-1",
					  "0.2E+1",
					  "0.0000002e7",
					  "2.000000000000000000000000000000"};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(two); i++) {
		struct takt_jobspec spec;
		char text[128];

		takt_jobspec_init(&spec);
		snprintf(text, sizeof(text), "{" OK ",\"gpus\":%s}", two[i]);
		assert_int_equal(takt_jobspec_from_json(text, strlen(text), &spec, NULL), 0);
		assert_int_equal(spec.gpus, 2);
		takt_jobspec_fini(&spec);
	}
}

/* A list of one text of so many bytes. */
static char **one_text(size_t len)
{
	char **list = takt_calloc(2, sizeof(*list));

	list[0] = takt_alloc(len + 1);
	memset(list[0], 'x', len);
	memcpy(list[0], "A=", 2);
	list[0][len] = '\0';
	return list;
}

static char **many_texts(size_t count, size_t len)
{
	char **list = takt_calloc(count + 1, sizeof(*list));

	for (size_t i = 0; i < count; i++) {
		char **one = one_text(len);

		list[i] = one[0];
		takt_free(one);
	}
	return list;
}

static void must_be_too_long(struct takt_jobspec *spec, const char *said)
{
	struct takt_err err;

	assert_int_equal(takt_jobspec_check_exec(spec, &err), -TAKT_E_LIMIT);
	if (!strstr(err.msg, said))
		fail_msg("'%s' is not in '%s'", said, err.msg);
	takt_jobspec_fini(spec);
}

static void what_the_kernel_cannot_execute_is_refused(void **state)
{
	struct takt_jobspec spec;

	takt_jobspec_init(&spec);
	spec.argv = one_text(131071);
	spec.env = one_text(131071);
	assert_int_equal(takt_jobspec_check_exec(&spec, NULL), 0);
	takt_jobspec_fini(&spec);
	spec.argv = one_text(131072);
	must_be_too_long(&spec, "field 'argv[0]' has 131072 bytes");
	spec.env = one_text(131072);
	must_be_too_long(&spec, "field 'env[0]' has 131072 bytes");
	spec.argv = many_texts(10, 100000);
	spec.env = many_texts(11, 100000);
	must_be_too_long(&spec, "'argv' and 'env' together take 2100189 bytes");
	spec.argv = many_texts(4000, 500); /* with their pointers */
	must_be_too_long(&spec, "together take 2036000 bytes");
}

static void limits_the_number_of_arguments(void **state)
{
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(1 << 20);
	struct takt_jobspec spec;
	struct takt_err err;

	takt_str_add(&text, "{\"cwd\":\"/\",\"argv\":[\"x\"");
	for (int i = 0; i < TAKT_SPEC_MAX_ARGS; i++)
		takt_str_add(&text, ",\"y\"");
	takt_str_add(&text, "]}");
	assert_int_equal(parse(takt_str_text(&text), &spec, &err), -TAKT_E_USAGE);
	assert_non_null(strstr(err.msg, "at most 4096 entries, not 4097"));
}

static void survives_the_way_there_and_back(void **state)
{
	TAKT_CLEANUP(strp) struct takt_str once = TAKT_STR(1 << 20), twice = TAKT_STR(1 << 20);
	char *argv[] = {WORD("sh"), WORD("-c"), WORD("echo \"\t\\ \x7f é 𝄞\""), NULL};
	char *env[] = {WORD("X=1\n2"), NULL};
	struct takt_jobspec spec, back;

	takt_jobspec_init(&spec);
	takt_strcpy(spec.name, sizeof(spec.name), "a");
	spec.argv = argv;
	spec.env = env;
	spec.cwd = WORD("/w");
	spec.gpus = 0;
	spec.grace_ms = 1;
	assert_int_equal(takt_jobspec_to_json(&spec, true, &once), 0);
	assert_int_equal(parse(takt_str_text(&once), &back, NULL), 0);
	assert_string_equal(back.argv[2], argv[2]);
	assert_string_equal(back.env[0], env[0]);
	assert_int_equal(takt_jobspec_to_json(&back, true, &twice), 0);
	assert_string_equal(takt_str_text(&once), takt_str_text(&twice));
	takt_jobspec_fini(&back);
}

static void keeps_the_environment_private(void **state)
{
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(1 << 20);
	char *argv[] = {WORD("x"), NULL}, *env[] = {WORD("SECRET=1"), NULL};
	struct takt_jobspec spec;

	takt_jobspec_init(&spec);
	spec.argv = argv;
	spec.env = env;
	spec.cwd = WORD("/");
	assert_int_equal(takt_jobspec_to_json(&spec, false, &text), 0);
	assert_null(strstr(takt_str_text(&text), "SECRET"));
}

static void shows_commands_as_typed(void **state)
{
	char *argv[] = {WORD("sh"), WORD("-c"), WORD("it's"), WORD(""), WORD("--n=1"), NULL};
	struct takt_jobspec spec = {.argv = argv};
	char text[64], cut[12];

	takt_jobspec_command(&spec, text, sizeof(text));
	assert_string_equal(text, "sh -c 'it'\\''s' '' --n=1");
	takt_jobspec_command(&spec, cut, sizeof(cut));
	assert_string_equal(cut, "sh -c 'i...");
	argv[0] = WORD("ééééééé");
	takt_jobspec_command(&spec, cut, sizeof(cut));
	assert_true(takt_utf8_valid(cut));
}

static void runs_out_of_memory_cleanly(void **state)
{
	static const char text[] =
		"{\"argv\":[\"a\",\"b\"],\"env\":[\"A=1\"],\"cwd\":\"/\",\"container\":\"i\","
		"\"container_args\":[\"x\"],\"prefetch\":[\"y\"],\"hook\":\"z\",\"checkpoint_dir\":"
		"\"/\"}";
	int rc = -ENOMEM;

	takt_json_init();
	for (unsigned long nth = 1; rc == -ENOMEM; nth++) {
		struct takt_jobspec spec;

		takt_alloc_fail_nth(nth, 0);
		rc = parse(text, &spec, NULL);
		takt_alloc_fail_nth(0, 0);
		if (rc < 0)
			assert_null(spec.argv);
		takt_jobspec_fini(&spec);
		assert_true(nth < 1000);
	}
	assert_int_equal(rc, 0);
}

static void expect_change(const char *json, const char *refusal)
{
	struct takt_job_change change;
	struct takt_err err;
	int rc = takt_job_change_from_json(json, strlen(json), &change, &err);

	assert_int_equal(rc, refusal ? -TAKT_E_USAGE : 0);
	if (refusal && !strstr(err.msg, refusal))
		fail_msg("%s: %s", json, err.msg);
	assert_true(refusal || change.requeue);
}

static void a_requeue_stands_alone(void **state)
{
	expect_change("{\"requeue\":true}", NULL);
	expect_change("{\"requeue\":false}", "'frozen' or 'requeue'");
	expect_change("{\"checkpoint\":false}", "nothing to change");
	expect_change("{\"requeue\":true,\"frozen\":true}", "together with 'requeue'");
	expect_change("{\"requeue\":true,\"held\":false}", "together with 'requeue'");
	expect_change("{\"requeue\":true,\"clock_policy\":\"ladder\"}", "together with 'requeue'");
	expect_change("{\"requeue\":true,\"time_limit_ms\":1}", "together with 'requeue'");
	expect_change("{\"checkpoint\":true,\"time_limit_ms\":1}", "cannot be changed together");
	expect_change("{\"time_limit_ms\":99999999999999}", "'time_limit_ms' must be at most");
	expect_change("{\"time_limit_ms\":-1}", "'time_limit_ms'");
	expect_change("{\"requeue\":1}", "requeue");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_a_full_description),
		cmocka_unit_test(reads_the_terms_of_a_job),
		cmocka_unit_test(fills_in_what_follows),
		cmocka_unit_test(fills_in_defaults),
		cmocka_unit_test(a_grid_has_an_element_a_combination),
		cmocka_unit_test(values_of_a_grid_are_read_as_they_were_added),
		cmocka_unit_test(an_element_without_memory_leaves_nothing),
		cmocka_unit_test(refuses_and_says_why),
		cmocka_unit_test(limits_the_number_of_arguments),
		cmocka_unit_test(numbers_that_are_whole_are_read),
		cmocka_unit_test(what_the_kernel_cannot_execute_is_refused),
		cmocka_unit_test(survives_the_way_there_and_back),
		cmocka_unit_test(keeps_the_environment_private),
		cmocka_unit_test(shows_commands_as_typed),
		cmocka_unit_test(runs_out_of_memory_cleanly),
		cmocka_unit_test(a_requeue_stands_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
