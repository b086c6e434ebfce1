/* SPDX-License-Identifier: Apache-2.0 */
/* The public face of the client. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <takt/takt.h>

#include "base/compiler.h"
#include "base/mem.h"
#include "client/client.h"

static int failed(struct takt_failure *failure, int rc, const struct takt_err *err)
{
	if (!failure)
		return rc;
	failure->code = rc;
	takt_strcpy(failure->name, sizeof(failure->name), takt_err_name(rc));
	takt_strcpy(failure->message, sizeof(failure->message), err->msg);
	return rc;
}

TAKT_API int takt_open(const char *socket, struct takt_client **ret, struct takt_failure *failure)
{
	struct takt_err err;
	int rc = takt_client_connect(socket, ret, &err);

	return rc < 0 ? failed(failure, rc, &err) : 0;
}

TAKT_API void takt_close(struct takt_client *client)
{
	takt_client_free(client);
}

TAKT_API int takt_request(struct takt_client *client, const char *path, const char *body,
			  char **ret_json, struct takt_failure *failure)
{
	struct takt_err err;
	int rc = takt_client_ask(client, path, body, &err);
	char *json = rc < 0 ? NULL : takt_strdup(takt_client_json(client));

	if (rc == 0 && !json)
		rc = takt_err_set(&err, -ENOMEM, "no memory for the answer");
	if (rc < 0)
		return failed(failure, rc, &err);
	*ret_json = json;
	return 0;
}

TAKT_API void takt_text_free(char *text)
{
	takt_free(text);
}

TAKT_API int takt_submit(struct takt_client *client, const char *spec_json, uint64_t *ret_job_id,
			 struct takt_failure *failure)
{
	TAKT_CLEANUP(freep) struct takt_job_view *job = takt_alloc(sizeof(*job));
	struct takt_err err;
	int rc = job ? takt_client_ask(client, "/v1/jobs", spec_json, &err)
		     : takt_err_set(&err, -ENOMEM, "no memory for a job");

	if (rc == 0) {
		const char *json = takt_client_json(client);

		rc = takt_job_view_from_json(json, strlen(json), job, &err);
	}
	if (rc < 0)
		return failed(failure, rc, &err);
	*ret_job_id = job->id;
	return 0;
}

TAKT_API int takt_wait(struct takt_client *client, uint64_t job_id, uint32_t timeout_ms,
		       struct takt_result *ret, struct takt_failure *failure)
{
	TAKT_CLEANUP(freep) struct takt_job_view *job = takt_alloc(sizeof(*job));
	struct takt_err err;
	int rc = job ? takt_client_wait(client, job_id, timeout_ms, job, &err)
		     : takt_err_set(&err, -ENOMEM, "no memory for a job");

	if (rc < 0)
		return failed(failure, rc, &err);
	memset(ret, 0, sizeof(*ret));
	ret->ended = takt_client_job_ended(job);
	takt_strcpy(ret->state, sizeof(ret->state), job->state);
	ret->exit_status = ret->ended ? takt_client_exit_status(job) : 0;
	return 0;
}

TAKT_API int takt_cancel(struct takt_client *client, uint64_t job_id, struct takt_failure *failure)
{
	TAKT_CLEANUP(freep) struct takt_job_view *job = takt_alloc(sizeof(*job));
	struct takt_err err;
	int rc = job ? takt_client_cancel(client, job_id, job, &err)
		     : takt_err_set(&err, -ENOMEM, "no memory for a job");

	return rc < 0 ? failed(failure, rc, &err) : 0;
}

TAKT_API int takt_signal(struct takt_client *client, uint64_t job_id, int signal,
			 struct takt_failure *failure)
{
	struct takt_err err;
	int rc = takt_client_signal(client, job_id, signal, &err);

	return rc < 0 ? failed(failure, rc, &err) : 0;
}
