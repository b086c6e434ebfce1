/* SPDX-License-Identifier: Apache-2.0 */
/* The public library alone, as another program would use it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <takt/takt.h>

#include "fake_backend.h"

static void a_program_hands_in_a_job_and_waits(void **state)
{
	struct takt_client *client = NULL;
	struct takt_failure failure;
	struct takt_result result;
	static struct fake fake;
	char *json = NULL;
	uint64_t id = 0;

	fake_start(&fake, false, false);
	fake_run(&fake);
	assert_int_equal(takt_open(fake.socket, &client, &failure), 0);
	assert_int_equal(
		takt_submit(client, "{\"argv\":[\"kill\",\"9\"],\"cwd\":\"/\"}", &id, &failure), 0);
	assert_int_equal(takt_wait(client, id, 10000, &result, &failure), 0);
	assert_true(result.ended);
	assert_int_equal(result.exit_status, 137);
	assert_int_equal(takt_request(client, "/v1/version", NULL, &json, &failure), 0);
	assert_non_null(strstr(json, "\"api\":1"));
	takt_text_free(json);
	assert_true(takt_submit(client, "{}", &id, &failure) < 0);
	assert_string_equal(failure.name, "USAGE");
	assert_non_null(strstr(failure.message, "'argv' is missing"));
	assert_true(takt_cancel(client, 77, &failure) < 0);
	assert_string_equal(failure.name, "NOT_FOUND");
	takt_close(client);
	fake_halt(&fake);
	fake_stop(&fake);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_program_hands_in_a_job_and_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
