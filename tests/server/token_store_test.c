/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens: what is on disk, whom a token lets in, and disks and memory that fail. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "codec/json.h"
#include "server/token_store.h"

enum {
	ALICE = 4242
};

static char dir[64];
static struct takt_sys sys;
static int64_t wall_ns;
static uint64_t mono_ns;
static int write_rc; /* what the next writes come to */

static int64_t fake_wall(const struct takt_sys *self)
{
	return wall_ns;
}

static uint64_t fake_mono(const struct takt_sys *self)
{
	return mono_ns;
}

static ssize_t fake_pwrite(const struct takt_sys *self, int fd, const void *buf, size_t n, off_t at)
{
	return write_rc < 0 ? write_rc : takt_sys_real()->pwrite(takt_sys_real(), fd, buf, n, at);
}

static int set_up(void **state)
{
	takt_json_init();
	sys = *takt_sys_real();
	sys.wall_ns = fake_wall;
	sys.mono_ns = fake_mono;
	sys.pwrite = fake_pwrite;
	wall_ns = INT64_C(1700000000000000000);
	mono_ns = 100 * TAKT_NS_PER_S;
	write_rc = 0;
	snprintf(dir, sizeof(dir), "/tmp/takt-tokens-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static char *file(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static int tear_down(void **state)
{
	(void)unlink(file("tokens"));
	(void)unlink(file("tokens.tmp"));
	return rmdir(dir);
}

static struct takt_token_store *open_store(void)
{
	struct takt_token_store *store = NULL;
	struct takt_err err;

	if (takt_token_store_open(&sys, dir, &store, &err) < 0)
		fail_msg("%s", err.msg);
	return store;
}

static struct takt_token add(struct takt_token_store *store, uint32_t days,
			     char text[TAKT_TOKEN_TEXT])
{
	const struct takt_token_request request = {.write = true, .days = days, .note = "\"n\""};
	struct takt_token token = {.id = ""};

	assert_int_equal(takt_token_store_add(store, ALICE, &request, text, &token, NULL), 0);
	return token;
}

static enum takt_token_verdict check(struct takt_token_store *store, const char *text)
{
	struct takt_token token = {.uid = 0};
	enum takt_token_verdict verdict = takt_token_store_check(store, text, &token);

	assert_int_equal(token.uid, verdict == TAKT_TOKEN_GOOD ? ALICE : 0);
	return verdict;
}

static void a_token_outlives_the_store(void **state)
{
	struct takt_token_store *store = open_store();
	char one[TAKT_TOKEN_TEXT], two[TAKT_TOKEN_TEXT];
	struct takt_token first = add(store, 0, one);
	struct stat st;

	(void)add(store, 0, two);
	assert_string_not_equal(one, two);
	assert_int_equal(stat(file("tokens"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	takt_token_store_free(store);
	store = open_store();
	assert_int_equal(takt_token_store_all(store)->count, 2);
	assert_string_equal(takt_token_store_all(store)->tokens[0].note, "\"n\"");
	assert_int_equal(check(store, one), TAKT_TOKEN_GOOD);
	assert_int_equal(check(store, two), TAKT_TOKEN_GOOD);
	assert_int_equal(takt_token_store_revoke(store, first.id, NULL), 0);
	assert_int_equal(takt_token_store_revoke(store, first.id, NULL), -TAKT_E_NOT_FOUND);
	assert_false(takt_token_store_has(store, first.id));
	takt_token_store_free(store);
	store = open_store();
	assert_int_equal(check(store, one), TAKT_TOKEN_UNKNOWN);
	assert_int_equal(check(store, two), TAKT_TOKEN_GOOD);
	takt_token_store_free(store);
}

static void it_expires_and_makes_room(void **state)
{
	struct takt_token_store *store = open_store();
	const struct takt_token_request request = {.days = 1};
	char text[TAKT_TOKEN_TEXT], next[TAKT_TOKEN_TEXT];
	struct takt_token token = {.id = ""};

	for (int i = 0; i < TAKT_TOKENS_A_USER; i++)
		token = add(store, 1, text);
	assert_int_equal(takt_token_store_add(store, ALICE, &request, next, &token, NULL),
			 -TAKT_E_LIMIT);
	wall_ns += 86400 * (int64_t)TAKT_NS_PER_S - 1000000;
	assert_int_equal(check(store, text), TAKT_TOKEN_GOOD);
	wall_ns += 1000000;
	assert_int_equal(check(store, text), TAKT_TOKEN_EXPIRED);
	assert_false(takt_token_store_has(store, token.id));
	(void)add(store, 1, next);
	assert_int_equal(takt_token_store_all(store)->count, 1);
	assert_int_equal(check(store, text), TAKT_TOKEN_UNKNOWN);
	takt_token_store_free(store);
}

static void guesses_are_counted_by_the_minute(void **state)
{
	struct takt_token_store *store = open_store();
	char text[TAKT_TOKEN_TEXT], wrong[TAKT_TOKEN_TEXT], other[TAKT_TOKEN_TEXT];

	(void)add(store, 0, text);
	(void)add(store, 0, other);
	memcpy(wrong, text, sizeof(wrong));
	wrong[strlen(wrong) - 1] = wrong[strlen(wrong) - 1] == '0' ? '1' : '0';
	for (int i = 0; i < TAKT_TOKEN_MISSES; i++)
		assert_int_equal(check(store, wrong), TAKT_TOKEN_UNKNOWN);
	assert_int_equal(check(store, wrong), TAKT_TOKEN_TOO_OFTEN);
	assert_int_equal(check(store, text), TAKT_TOKEN_TOO_OFTEN);
	assert_int_equal(check(store, other), TAKT_TOKEN_GOOD);
	for (int i = 0; i < 2000; i++)
		assert_int_not_equal(check(store, "takt_"), TAKT_TOKEN_GOOD);
	assert_int_equal(check(store, ""), TAKT_TOKEN_TOO_OFTEN);
	assert_int_equal(check(store, other), TAKT_TOKEN_GOOD);
	mono_ns += 61 * TAKT_NS_PER_S;
	assert_int_equal(check(store, text), TAKT_TOKEN_GOOD);
	assert_int_equal(check(store, ""), TAKT_TOKEN_UNKNOWN);
	takt_token_store_free(store);
}

static void a_full_disk_changes_nothing(void **state)
{
	struct takt_token_store *store = open_store();
	const struct takt_token_request request = {.days = 1};
	char text[TAKT_TOKEN_TEXT], next[TAKT_TOKEN_TEXT];
	struct takt_token first = add(store, 0, text), token;

	(void)add(store, 0, next);
	write_rc = -ENOSPC;
	assert_int_equal(takt_token_store_add(store, ALICE, &request, next, &token, NULL), -ENOSPC);
	assert_int_equal(takt_token_store_revoke(store, first.id, NULL), -ENOSPC);
	assert_int_equal(takt_token_store_all(store)->count, 2);
	assert_string_equal(takt_token_store_all(store)->tokens[0].id, first.id);
	assert_int_equal(check(store, text), TAKT_TOKEN_GOOD);
	takt_token_store_free(store);
	write_rc = 0;
	store = open_store();
	assert_int_equal(takt_token_store_all(store)->count, 2);
	takt_token_store_free(store);
}

static void write_file(const char *text, mode_t mode)
{
	FILE *out = fopen(file("tokens"), "w");

	assert_non_null(out);
	fputs(text, out);
	fclose(out);
	assert_int_equal(chmod(file("tokens"), mode), 0);
}

#define ROW(id, sha) "{\"id\":\"" id "\",\"sha256\":\"" sha "\",\"uid\":1000,\"made_ms\":1}"
#define SHA	     "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void files_that_will_not_do_are_refused(void **state)
{
	static const struct {
		const char *text, *word;
	} bad[] = {
		{"", "tokens"},
		{"{\"tokens\":[" ROW("0a0b0c0d0e0f", SHA) "]", "tokens"},
		{"{\"tokens\":[" ROW("0A0b0c0d0e0f", SHA) "]}", "id"},
		{"{\"tokens\":[" ROW("0a", SHA) "]}", "id"},
		{"{\"tokens\":[" ROW("0a0b0c0d0e0f", "12") "]}", "hash"},
		{"{\"tokens\":[" ROW("0a0b0c0d0e0f", SHA) "," ROW("0a0b0c0d0e0f", SHA) "]}",
		 "twice"},
	};
	struct takt_token_store *store = NULL;
	struct takt_err err;

	for (size_t i = 0; i < TAKT_ARRAY_LEN(bad); i++) {
		write_file(bad[i].text, 0600);
		assert_int_equal(takt_token_store_open(&sys, dir, &store, &err), -TAKT_E_CORRUPT);
		assert_non_null(strstr(err.msg, bad[i].word));
	}
	write_file("{\"tokens\":[" ROW("0a0b0c0d0e0f", SHA) "]}", 0640);
	assert_int_equal(takt_token_store_open(&sys, dir, &store, &err), -EPERM);
	assert_non_null(strstr(err.msg, "chmod 600"));
	assert_null(store);
	write_file("{\"tokens\":[" ROW("0a0b0c0d0e0f", SHA) "]}", 0600);
	takt_token_store_free(open_store());
}

/* With every allocation failing in turn, what was there stays, and a token is made or is not. */
static void runs_out_of_memory_and_goes_on(void **state)
{
	struct takt_token_store *store = open_store();
	const struct takt_token_request request = {.days = 1};
	char text[TAKT_TOKEN_TEXT], next[TAKT_TOKEN_TEXT];
	struct takt_token first = add(store, 0, text), token;
	int rc = -ENOMEM;

	for (int nth = 1; nth < 200 && rc < 0; nth++) {
		uint32_t before = takt_token_store_all(store)->count;

		takt_alloc_fail_nth(nth, 0);
		rc = takt_token_store_add(store, ALICE, &request, next, &token, NULL);
		takt_alloc_fail_nth(0, 0);
		assert_int_equal(takt_token_store_all(store)->count, before + (rc == 0));
		assert_int_equal(check(store, text), TAKT_TOKEN_GOOD);
	}
	assert_int_equal(rc, 0);
	for (int nth = 1; nth < 200 && takt_token_store_has(store, first.id); nth++) {
		takt_alloc_fail_nth(nth, 0);
		(void)takt_token_store_revoke(store, first.id, NULL);
		takt_alloc_fail_nth(0, 0);
	}
	assert_int_equal(takt_token_store_all(store)->count, 1);
	takt_token_store_free(store);
	store = NULL;
	for (int nth = 1; nth < 200 && !store; nth++) {
		takt_alloc_fail_nth(nth, 0);
		(void)takt_token_store_open(&sys, dir, &store, NULL);
		takt_alloc_fail_nth(0, 0);
	}
	assert_int_equal(takt_token_store_all(store)->count, 1);
	assert_int_equal(check(store, next), TAKT_TOKEN_GOOD);
	takt_token_store_free(store);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_token_outlives_the_store),	  CASE(it_expires_and_makes_room),
		CASE(guesses_are_counted_by_the_minute),  CASE(a_full_disk_changes_nothing),
		CASE(files_that_will_not_do_are_refused), CASE(runs_out_of_memory_and_goes_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
