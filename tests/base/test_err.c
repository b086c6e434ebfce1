/* SPDX-License-Identifier: Apache-2.0 */
/* Errors: codes, messages, and what people and programs are told. */
#include "seeded.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"

static void set_and_wrap_build_one_sentence(void **state)
{
	struct takt_err err = {.vendor = 9};
	char text[300];

	assert_int_equal(takt_err_set(&err, -ENOENT, "open '%s'", "/x"), -ENOENT);
	assert_int_equal(err.rc, -ENOENT);
	assert_int_equal(err.vendor, 0);
	assert_int_equal(takt_err_wrap(&err, -ENOENT, "job %d", 7), -ENOENT);
	assert_string_equal(takt_err_text(&err, text, sizeof(text)),
			    "job 7: open '/x': No such file or directory");
}

static void nobody_interested_is_fine(void **state)
{
	assert_int_equal(takt_err_set(NULL, -EIO, "x"), -EIO);
	assert_int_equal(takt_err_wrap(NULL, -EIO, "x"), -EIO);
}

static void overlong_ends_in_dots(void **state)
{
	struct takt_err err;
	char longer[400];

	memset(longer, 'y', sizeof(longer));
	longer[399] = '\0';
	takt_err_set(&err, -EIO, "%s", longer);
	assert_int_equal(strlen(err.msg), TAKT_ERR_MSG - 1);
	assert_string_equal(err.msg + TAKT_ERR_MSG - 4, "...");
	takt_err_set(&err, -EIO, "%.230s", longer);
	takt_err_wrap(&err, -EIO, "twenty letters or so");
	assert_int_equal(strlen(err.msg), TAKT_ERR_MSG - 1);
	assert_string_equal(err.msg + TAKT_ERR_MSG - 4, "...");
	assert_memory_equal(err.msg, "twenty letters or so: yyy", 25);
}

static void text_is_always_terminated(void **state)
{
	struct takt_err err = {.rc = -ENOENT};
	char text[8];

	assert_string_equal(takt_err_text(&err, text, sizeof(text)), "No such");
}

struct row {
	int rc;
	const char *name;
	int exit_status, http_status;
};

static void every_code_has_its_statuses(void **state)
{
	static const struct row rows[] = {{0, NULL, 0, 200},
					  {3, NULL, 0, 200},
					  {-ENOENT, "ENOENT", 66, 404},
					  {-EACCES, "EACCES", 77, 403},
					  {-EINVAL, "EINVAL", 64, 400},
					  {-ENOSPC, "ENOSPC", 1, 507},
					  {-ETIMEDOUT, "ETIMEDOUT", 1, 504},
					  {-EIO, "EIO", 1, 500},
					  {-99999, "E?", 1, 500},
#define X(name, num, text, status, http) {-TAKT_E_##name, #name, status, http},
					  TAKT_ERR_TABLE(X)
#undef X
	};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(rows); i++) {
		assert_int_equal(takt_err_exit_status(rows[i].rc), rows[i].exit_status);
		assert_int_equal(takt_err_http_status(rows[i].rc), rows[i].http_status);
		if (rows[i].name)
			assert_string_equal(takt_err_name(rows[i].rc), rows[i].name);
	}
	assert_string_equal(takt_err_sentence(-TAKT_E_LIMIT), "over a stated limit");
	assert_string_equal(takt_err_sentence(-99999), "unknown error");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(set_and_wrap_build_one_sentence),
		cmocka_unit_test(nobody_interested_is_fine),
		cmocka_unit_test(overlong_ends_in_dots),
		cmocka_unit_test(text_is_always_terminated),
		cmocka_unit_test(every_code_has_its_statuses),
	};

	return cmocka_run_group_tests_name("err", tests, NULL, NULL);
}
