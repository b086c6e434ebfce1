/* SPDX-License-Identifier: Apache-2.0 */
/* Answers in JSON, and what is said when there is no memory left to say it. */
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "server/server_impl.h"

static const char json_type[] = "application/json";

static void answer_no_memory(struct takt_http_request *http)
{
	static const char body[] =
		"{\"error\":{\"name\":\"ENOMEM\",\"message\":\"no memory for the answer\"}}\n";

	takt_http_answer(http, 500, json_type, body, strlen(body), NULL, NULL);
}

static void answer_too_long(struct takt_http_request *http)
{
	static const char body[] = "{\"error\":{\"name\":\"LIMIT\",\"message\":\"the answer is too "
				   "long; ask for less with limit=\"}}\n";

	takt_http_answer(http, 500, json_type, body, strlen(body), NULL, NULL);
}

void takt_server_answer_text(struct takt_http_request *http, int status, struct takt_str *json)
{
	size_t len;
	char *text;

	takt_str_add(json, "\n");
	if (json->rc == -TAKT_E_LIMIT) {
		answer_too_long(http);
		return;
	}
	len = json->len;
	text = takt_str_take(json);
	if (text)
		takt_http_answer(http, status, json_type, text, len, takt_free, text);
	else
		answer_no_memory(http);
}

void takt_server_answer_error(struct takt_http_request *http, int status,
			      const struct takt_err *error)
{
	TAKT_CLEANUP(strp) struct takt_str json = TAKT_STR(8192);

	takt_error_to_json(error, &json);
	takt_server_answer_text(http, status, &json);
}

void takt_server_refuse(struct takt_http_request *http, int status, int rc, const char *message)
{
	struct takt_err error;

	takt_err_set(&error, rc, "%s", message);
	takt_server_answer_error(http, status, &error);
}

void takt_server_answer_told(struct takt_call *call, takt_teller *tell)
{
	TAKT_CLEANUP(strp) struct takt_str json = TAKT_STR(TAKT_SERVER_MAX_JSON);
	struct takt_err err;

	if (tell(call, &json, &err) < 0)
		takt_server_answer_failure(call->http, &err);
	else
		takt_server_answer_text(call->http, 200, &json);
}

void takt_server_answer_failure(struct takt_http_request *http, const struct takt_err *error)
{
	takt_server_answer_error(http, takt_err_http_status(error->rc), error);
}
