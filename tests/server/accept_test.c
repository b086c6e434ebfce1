/* SPDX-License-Identifier: Apache-2.0 */
/* Accept headers, as clients send them and as they do not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "server/server_impl.h"

static void who_wants_openmetrics_gets_it(void **state)
{
	static const char *const wants[] = {
		/* Prometheus 2.42, and 3 */
		"application/openmetrics-text;version=1.0.0,application/"
		"openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
		"application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
		"application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;"
		"escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1",
		"application/openmetrics-text",
		"Application/OpenMetrics-Text; Version=1.0.0 ; q=1",
	};
	static const char *const wants_not[] = {
		NULL,
		"",
		"*/*",
		"text/plain",
		"text/html,application/xhtml+xml,*/*;q=0.8",
		"application/openmetrics-text;version=2.0.0",
		"application/openmetrics-text;q=0",
		"application/openmetrics-text;q=0.4,text/plain;q=0.5",
		"application/openmetrics-text-ish",
		",,;,;;q=,application/openmetrics-text;q=",
	};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(wants); i++)
		if (!takt_server_wants_openmetrics(wants[i]))
			fail_msg("not '%s'", wants[i]);
	for (size_t i = 0; i < TAKT_ARRAY_LEN(wants_not); i++)
		if (takt_server_wants_openmetrics(wants_not[i]))
			fail_msg("'%s'", wants_not[i] ? wants_not[i] : "(none)");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(who_wants_openmetrics_gets_it)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
