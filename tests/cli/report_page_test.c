/* SPDX-License-Identifier: Apache-2.0 */
/* A result as a page: the document stands in it so that nothing in it can end it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "cli/report_page.h"

enum {
	MAX = 1 << 20
};

static const char opens[] = "<script type=\"application/json\" id=\"document\">";

/* What stands in the page for `document`; the caller owns it. */
static char *embedded(const char *document)
{
	TAKT_CLEANUP(strp) struct takt_str json = TAKT_STR(MAX), page = TAKT_STR(MAX);
	char *begin, *end;

	takt_str_add(&json, document);
	takt_report_page(&json, &page);
	assert_int_equal(page.rc, 0);
	assert_memory_equal(page.s, "<!doctype html>", 15);
	begin = strstr(page.s, opens);
	assert_non_null(begin);
	begin += sizeof(opens) - 1;
	end = strstr(begin, "</script>");
	assert_non_null(end);
	*end = '\0';
	/* The page's own script follows: nothing of the document ended it. */
	assert_true(strncmp(end + 9, "\n<script type=\"module\">", 23) == 0);
	begin = takt_strdup(begin);
	assert_non_null(begin);
	return begin;
}

static void check(const char *document, const char *expected)
{
	char *found = embedded(document);

	assert_string_equal(found, expected);
	takt_free(found);
}

static void what_would_end_it_is_escaped(void **state)
{
	check("{\"a\":\"</script><script>\"}", "{\"a\":\"\\u003c/script>\\u003cscript>\"}");
	check("{\"a\":\"<!--\"}", "{\"a\":\"\\u003c!--\"}");
	check("{\"a\":\"\xe2\x80\xa8|\xe2\x80\xa9\"}", "{\"a\":\"\\u2028|\\u2029\"}");
}

static void all_else_is_as_it_was(void **state)
{
	const char *plain = "{\"a\":\"\xe2\x80\xa6 \xe2\x82\xac \xc3\xa9 & ' \\\" > $& \"}\n";

	check(plain, plain);
	check("", "");
	check("\xe2", "\xe2");
	check("\xe2\x80", "\xe2\x80");
}

static void a_page_is_whole_or_failed(void **state)
{
	struct takt_str json = TAKT_STR(MAX), page;
	unsigned long nth = 0;
	int rc;

	takt_str_add(&json, "{\"a\":\"<\"}");
	do {
		page = TAKT_STR(MAX);
		takt_alloc_fail_nth(++nth, 0);
		takt_report_page(&json, &page);
		takt_alloc_fail_nth(0, 0);
		rc = page.rc;
		assert_true(rc == 0 || rc == -ENOMEM);
		if (rc == 0)
			assert_string_equal(page.s + page.len - 8, "</html>\n");
		takt_str_fini(&page);
	} while (rc < 0);
	assert_true(nth > 1);
	json.rc = -ENOMEM;
	page = TAKT_STR(MAX);
	takt_report_page(&json, &page);
	assert_int_equal(page.rc, -ENOMEM);
	takt_str_fini(&page);
	takt_str_fini(&json);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_would_end_it_is_escaped),
		cmocka_unit_test(all_else_is_as_it_was),
		cmocka_unit_test(a_page_is_whole_or_failed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
