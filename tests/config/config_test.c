/* SPDX-License-Identifier: Apache-2.0 */
/* Settings: defaults, file, flags, and every way to get them wrong. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "config/config.h"
#include "config/suggest.h"

static int parse(struct takt_config *config, const char *text, struct takt_err *err)
{
	return takt_config_parse(config, text, strlen(text), "takt.conf", err);
}

static void defaults_are_there(void **state)
{
	struct takt_config config;

	takt_config_init(&config);
	assert_int_equal(config.sample_hz, 10);
	assert_int_equal(config.manage, TAKT_MANAGE_AUTO);
	assert_int_equal(config.drain_limit_ms, 60000);
	assert_string_equal(config.metrics_listen, "auto");
}

static void a_file_is_read(void **state)
{
	struct takt_config config;

	takt_config_init(&config);
	assert_int_equal(parse(&config,
			       "# comment\n\n  sample_hz = 20 \r\nmanage=never\n"
			       "drain_limit = 1m30s\nstate_dir = /a b/#c\n\tadmin_group =\n",
			       NULL),
			 0);
	assert_int_equal(config.sample_hz, 20);
	assert_int_equal(config.manage, TAKT_MANAGE_NEVER);
	assert_int_equal(config.drain_limit_ms, 90000);
	assert_string_equal(config.state_dir, "/a b/#c");
	assert_string_equal(config.admin_group, "");
	assert_int_equal(
		parse(&config, "clock_policy = fixed:sm_mhz=900\ngovernors = /a.so, /b.so\n", NULL),
		0);
	assert_string_equal(config.clock_policy, "fixed:sm_mhz=900");
	assert_string_equal(config.governors, "/a.so, /b.so");
}

static void mistakes_are_named_with_their_line(void **state)
{
	static const struct {
		const char *text, *message;
	} rows[] = {
		{"\nsample_hz = 0\n",
		 "takt.conf:2: sample_hz must be a number from 1 to 100, not '0'"},
		{"sample_hz = 10 # fast", "not '10 # fast'"},
		{"sample_hz\n", "takt.conf:1: 'sample_hz' is not a line 'key = value'"},
		{"sampel_hz = 1", "there is no setting 'sampel_hz'; did you mean 'sample_hz'?"},
		{"zzzz = 1", "there is no setting 'zzzz'"},
		{"manage = maybe", "manage must be one of auto, always, never, not 'maybe'"},
		{"state_dir = var", "state_dir must be an absolute path, not 'var'"},
		{"sample_hz = 1\nsample_hz = 2", "takt.conf:2: sample_hz stands twice"},
		{"drain_limit = 30", "a time such as 30s"},
		{"drain_limit = 2d", "from 1s to 1d"},
		{"max_slowdown = 51%", "a percentage up to 50 such as 3%"},
		{"clock_policy = Thrifty", "clock_policy must be auto, the name of a governor"},
		{"clock_policy = fixed:sm_mhz", "such as fixed:sm_mhz=1200, not 'fixed:sm_mhz'"},
		{"governors = own.so", "governors must be absolute paths with commas between"},
		{"governors = /a.so, b.so", "not '/a.so, b.so'"},
		{"admin_group = a\x01", "control characters"},
		{"output_limit = 5", "output_limit must be a size such as 512M or 16G, not '5'"},
		{"output_limit = 2000T", "output_limit must be a size"},
	};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(rows); i++) {
		struct takt_config config, before;
		struct takt_err err = {.rc = 0};

		takt_config_init(&config);
		before = config;
		assert_int_equal(parse(&config, rows[i].text, &err), -TAKT_E_USAGE);
		if (!strstr(err.msg, rows[i].message))
			fail_msg("'%s' lacks '%s'", err.msg, rows[i].message);
		assert_memory_equal(&config, &before, sizeof(config));
	}
}

static void what_is_printed_can_be_read(void **state)
{
	TAKT_CLEANUP(strp) struct takt_str once = TAKT_STR(65536), twice = TAKT_STR(65536);
	struct takt_config config;

	takt_config_init(&config);
	assert_int_equal(
		parse(&config,
		      "manage = always\ndrain_limit = 2m\nsocket = /s\noutput_limit = 1536M\n",
		      NULL),
		0);
	assert_int_equal(takt_config_print(&config, &once), 0);
	takt_config_init(&config);
	assert_int_equal(parse(&config, takt_str_text(&once), NULL), 0);
	assert_int_equal(config.manage, TAKT_MANAGE_ALWAYS);
	assert_int_equal(config.drain_limit_ms, 120000);
	assert_int_equal(config.output_limit_mib, 1536);
	assert_int_equal(takt_config_print(&config, &twice), 0);
	assert_string_equal(once.s, twice.s);
}

static void flags_win_over_the_file(void **state)
{
	char path[] = "/tmp/takt-config-XXXXXX";
	const char text[] = "sample_hz = 20\nmax_jobs = 5\n";
	enum takt_config_action action;
	struct takt_config config;
	int fd = mkstemp(path);
	char *argv[] = {
		(char[]){"serve"},    (char[]){"--sample-hz=30"}, (char[]){"--config"},	     path,
		(char[]){"--manage"}, (char[]){"never"},	  (char[]){"--print-config"}};

	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	assert_int_equal(takt_config_from_args(&config, 7, argv, &action, NULL), 0);
	unlink(path);
	assert_int_equal(config.sample_hz, 30);
	assert_int_equal(config.max_jobs, 5);
	assert_int_equal(config.manage, TAKT_MANAGE_NEVER);
	assert_int_equal(action, TAKT_CONFIG_PRINT);
}

static void some_flags_say_all_by_themselves(void **state)
{
	char *argv[] = {(char[]){"serve"}, (char[]){"--assume-unlocked"}, (char[]){"--manage"}};
	char *no[] = {(char[]){"serve"}, (char[]){"--assume-unlocked=no"}};
	enum takt_config_action action;
	struct takt_config config;

	assert_int_equal(takt_config_from_args(&config, 3, argv, &action, NULL), 0);
	assert_int_equal(config.assume_unlocked, 1);
	assert_int_equal(config.manage, TAKT_MANAGE_ALWAYS);
	assert_int_equal(takt_config_from_args(&config, 2, no, &action, NULL), 0);
	assert_int_equal(config.assume_unlocked, 0);
}

static void wrong_flags_are_refused(void **state)
{
	static const char *const rows[][3] = {
		{"--sampel-hz", "3", "did you mean 'sample_hz'"},
		{"--sample-hz", NULL, "--sample-hz needs a value"},
		{"--sample-hz", "x", "--sample-hz: sample_hz must be"},
		{"status", NULL, "'status' is not a flag"},
		{"--help=3", NULL, "takes no value"},
		{"--config", "/nonexistent/takt.conf", "/nonexistent/takt.conf"},
	};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(rows); i++) {
		char *argv[] = {(char[]){"serve"}, takt_strdup(rows[i][0]),
				takt_strdup(rows[i][1])};
		enum takt_config_action action;
		struct takt_config config;
		struct takt_err err;

		assert_true(takt_config_from_args(&config, rows[i][1] ? 3 : 2, argv, &action,
						  &err) < 0);
		if (!strstr(err.msg, rows[i][2]))
			fail_msg("'%s' lacks '%s'", err.msg, rows[i][2]);
		takt_free(argv[1]);
		takt_free(argv[2]);
	}
}

static void paths_follow_the_user(void **state)
{
	struct takt_config config;
	struct takt_err err;

	takt_config_init(&config);
	assert_int_equal(takt_config_resolve(&config, 0, "/run/user/0", NULL, "/root", NULL), 0);
	assert_string_equal(config.socket, "/run/takt/takt.sock");
	assert_string_equal(config.state_dir, "/var/lib/takt");
	assert_string_equal(config.helpers_dir, "/run/takt-helpers");
	assert_string_equal(config.clocks_dir, "/var/lib/takt-clocks");
	assert_string_equal(config.lock_dir, "/run/takt/locks");

	/* An account that serves all has the machine's places; helpers share those that are named.
	 */
	takt_config_init(&config);
	assert_int_equal(parse(&config, "users = all\nstate_dir = /s\n", NULL), 0);
	assert_int_equal(takt_config_resolve(&config, 7, "/run/user/7", NULL, "/home/u", NULL), 0);
	assert_string_equal(config.socket, "/run/takt/takt.sock");
	assert_string_equal(config.helpers_dir, "/run/takt-helpers");
	assert_string_equal(config.clocks_dir, "/s");
	assert_string_equal(config.lock_dir, "/run/takt/locks");

	takt_config_init(&config);
	assert_int_equal(takt_config_resolve(&config, 7, "/run/user/7", NULL, "/home/u", NULL), 0);
	assert_string_equal(config.socket, "/run/user/7/takt/takt.sock");
	assert_string_equal(config.state_dir, "/home/u/.local/state/takt");
	assert_string_equal(config.helpers_dir, config.runtime_dir);
	assert_string_equal(config.clocks_dir, config.state_dir);

	takt_config_init(&config);
	assert_int_equal(takt_config_resolve(&config, 7, NULL, "/s", NULL, NULL), 0);
	assert_string_equal(config.runtime_dir, "/tmp/takt-7");
	assert_string_equal(config.state_dir, "/s/takt");

	takt_config_init(&config);
	assert_int_equal(takt_config_resolve(&config, 7, NULL, NULL, NULL, &err), -TAKT_E_USAGE);
	assert_non_null(strstr(err.msg, "state_dir"));
}

static void help_names_every_key(void **state)
{
	TAKT_CLEANUP(strp) struct takt_str help = TAKT_STR(65536);
	const char *doc;

	assert_int_equal(takt_config_help(&help), 0);
	assert_non_null(strstr(help.s, "  --drain-limit TIME  (default 1m)\n"));
	assert_non_null(strstr(help.s, "  --manage auto|always|never  (default auto)\n"));
	for (size_t i = 0; takt_config_key(i, &doc); i++)
		assert_true(strlen(doc) > 10);
}

static void what_counts_without_a_restart_is_taken(void **state)
{
	TAKT_CLEANUP(strp) struct takt_str changed = TAKT_STR(200), rest = TAKT_STR(200);
	struct takt_config config, next;

	takt_config_init(&config);
	next = config;
	assert_int_equal(
		parse(&next, "order = las\nsample_hz = 7\nkeep_ended = 9\nsocket = /s\n", NULL), 0);
	takt_config_adopt(&config, &next, &changed, &rest);
	assert_string_equal(takt_str_text(&changed), "keep_ended,order");
	assert_string_equal(takt_str_text(&rest), "socket,sample_hz");
	assert_int_equal(config.keep_ended, 9);
	assert_int_equal(config.sample_hz, 10);
	assert_string_equal(config.socket, "");
}

static const char *word_at(const void *ctx, size_t i)
{
	return ((const char *const *)ctx)[i];
}

static void the_nearest_word_is_suggested(void **state)
{
	static const char *const words[] = {"status", "submit", "show", "wait", NULL};

	assert_string_equal(takt_suggest("stauts", word_at, words), "status");
	assert_string_equal(takt_suggest("sumbit", word_at, words), "submit");
	assert_string_equal(takt_suggest("shw", word_at, words), "show");
	assert_null(takt_suggest("frobnicate", word_at, words));
	assert_null(takt_suggest("x", word_at, words));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults_are_there),
		cmocka_unit_test(a_file_is_read),
		cmocka_unit_test(mistakes_are_named_with_their_line),
		cmocka_unit_test(what_is_printed_can_be_read),
		cmocka_unit_test(flags_win_over_the_file),
		cmocka_unit_test(some_flags_say_all_by_themselves),
		cmocka_unit_test(wrong_flags_are_refused),
		cmocka_unit_test(paths_follow_the_user),
		cmocka_unit_test(help_names_every_key),
		cmocka_unit_test(what_counts_without_a_restart_is_taken),
		cmocka_unit_test(the_nearest_word_is_suggested),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
