/* SPDX-License-Identifier: Apache-2.0 */
/* The client's calls, one a route. */
#include "client/client.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "client/client_impl.h"
#include "codec/json.h"

int takt_client_connect(const char *socket, struct takt_client **ret, struct takt_err *err)
{
	struct takt_client *client = takt_zalloc(sizeof(*client));
	int rc = 0;

	if (!client)
		return takt_err_set(err, -ENOMEM, "no memory for a client");
	client->wake_fd = -1;
	client->body = TAKT_STR(TAKT_VIEW_MAX_BYTES);
	if (!socket)
		rc = takt_client_discover(client->socket, err);
	else if (!takt_strcpy(client->socket, sizeof(client->socket), socket))
		rc = takt_err_set(err, -ENAMETOOLONG, "socket '%.60s...' has over %zu bytes",
				  socket, sizeof(client->socket) - 1);
	if (rc == 0) {
		client->easy = curl_easy_init();
		client->multi = curl_multi_init();
		if (!client->easy || !client->multi)
			rc = takt_err_set(err, -ENOMEM, "no memory for libcurl");
	}
	if (rc < 0) {
		takt_client_free(client);
		return rc;
	}
	*ret = client;
	return 0;
}

void takt_client_free(struct takt_client *client)
{
	if (!client)
		return;
	if (client->easy)
		curl_easy_cleanup(client->easy);
	if (client->multi)
		curl_multi_cleanup(client->multi);
	takt_str_fini(&client->body);
	takt_free(client);
}

const char *takt_client_socket(const struct takt_client *client)
{
	return client->socket;
}

void takt_client_wake_on(struct takt_client *client, int fd, int (*woken)(void *ctx), void *ctx)
{
	client->wake_fd = fd;
	client->woken = woken;
	client->wake_ctx = ctx;
}

const char *takt_client_json(const struct takt_client *client)
{
	return takt_str_text(&client->body);
}

int takt_client_ask(struct takt_client *client, const char *path, const char *body,
		    struct takt_err *err)
{
	return takt_client_exchange(client, path, body, 0, err);
}

/* "/v1/jobs/7/explain" */
static const char *job_path(char ret[96], uint64_t job_id, const char *rest)
{
	snprintf(ret, 96, "/v1/jobs/%" PRIu64 "%s", job_id, rest);
	return ret;
}

int takt_client_status(struct takt_client *client, struct takt_status_view *ret,
		       struct takt_err *err)
{
	int rc = takt_client_ask(client, "/v1/status", NULL, err);

	return rc < 0 ? rc : takt_status_view_from_json(client->body.s, client->body.len, ret, err);
}

int takt_client_topology(struct takt_client *client, struct takt_topo_view *ret,
			 struct takt_err *err)
{
	int rc = takt_client_ask(client, "/v1/topology", NULL, err);

	return rc < 0 ? rc : takt_topo_view_from_json(client->body.s, client->body.len, ret, err);
}

int takt_client_queue(struct takt_client *client, bool history, uint32_t limit,
		      struct takt_queue_view *ret, struct takt_err *err)
{
	char path[96];
	int rc;

	snprintf(path, sizeof(path), "/v1/jobs?history=%d&limit=%u", history, limit);
	rc = takt_client_ask(client, path, NULL, err);
	return rc < 0 ? rc : takt_queue_view_from_json(client->body.s, client->body.len, ret, err);
}

static int job_answer(struct takt_client *client, int rc, struct takt_job_view *ret,
		      struct takt_err *err)
{
	return rc < 0 ? rc : takt_job_view_from_json(client->body.s, client->body.len, ret, err);
}

int takt_client_job(struct takt_client *client, uint64_t job_id, struct takt_job_view *ret,
		    struct takt_err *err)
{
	char path[96];
	int rc = takt_client_ask(client, job_path(path, job_id, ""), NULL, err);

	return job_answer(client, rc, ret, err);
}

int takt_client_explain(struct takt_client *client, uint64_t job_id, struct takt_explain_view *ret,
			struct takt_err *err)
{
	char path[96];
	int rc = takt_client_ask(client, job_path(path, job_id, "/explain"), NULL, err);

	return rc < 0 ? rc
		      : takt_explain_view_from_json(client->body.s, client->body.len, ret, err);
}

static int send_spec(struct takt_client *client, const char *path, const struct takt_jobspec *spec,
		     struct takt_err *err)
{
	TAKT_CLEANUP(strp) struct takt_str body = TAKT_STR(TAKT_SPEC_MAX_BYTES);
	int rc = takt_jobspec_check(spec, err);

	if (rc < 0)
		return rc;
	if (takt_jobspec_to_json(spec, true, &body) < 0)
		return takt_err_set(err, body.rc,
				    "the job with its environment is over %d bytes, or no memory",
				    TAKT_SPEC_MAX_BYTES);
	return takt_client_ask(client, path, body.s, err);
}

int takt_client_submit(struct takt_client *client, const struct takt_jobspec *spec,
		       struct takt_job_view *ret, struct takt_err *err)
{
	return job_answer(client, send_spec(client, "/v1/jobs", spec, err), ret, err);
}

int takt_client_submit_many(struct takt_client *client, const char *body, struct takt_job_view *ret,
			    struct takt_err *err)
{
	return job_answer(client, takt_client_ask(client, "/v1/jobs/batch", body, err), ret, err);
}

int takt_client_try(struct takt_client *client, const struct takt_jobspec *spec,
		    struct takt_try_view *ret, struct takt_err *err)
{
	int rc = send_spec(client, "/v1/jobs/try", spec, err);

	return rc < 0 ? rc : takt_try_view_from_json(client->body.s, client->body.len, ret, err);
}

int takt_client_try_many(struct takt_client *client, const char *body, uint32_t count,
			 struct takt_try_view *ret, struct takt_err *err)
{
	int rc = takt_client_ask(client, "/v1/jobs/batch/try", body, err);

	return rc < 0 ? rc
		      : takt_try_views_from_json(client->body.s, client->body.len, count, ret, err);
}

int takt_client_cancel(struct takt_client *client, uint64_t job_id, struct takt_job_view *ret,
		       struct takt_err *err)
{
	char path[96];
	int rc = takt_client_ask(client, job_path(path, job_id, "/cancel"), "", err);

	return job_answer(client, rc, ret, err);
}

int takt_client_change(struct takt_client *client, uint64_t job_id,
		       const struct takt_job_change *change, struct takt_job_view *ret,
		       struct takt_err *err)
{
	TAKT_CLEANUP(strp) struct takt_str body = TAKT_STR(4096);
	char path[96];
	int rc = takt_job_change_to_json(change, &body);

	if (rc < 0)
		return takt_err_set(err, rc, "no memory for the change");
	rc = takt_client_ask(client, job_path(path, job_id, "/change"), body.s, err);
	return job_answer(client, rc, ret, err);
}

int takt_client_signal(struct takt_client *client, uint64_t job_id, int signal,
		       struct takt_err *err)
{
	char path[96], body[32];

	snprintf(body, sizeof(body), "{\"signal\":%d}", signal);
	return takt_client_ask(client, job_path(path, job_id, "/signal"), body, err);
}

int takt_client_wait(struct takt_client *client, uint64_t job_id, uint32_t timeout_ms,
		     struct takt_job_view *ret, struct takt_err *err)
{
	char path[96], rest[40];
	int rc;

	snprintf(rest, sizeof(rest), "/wait?timeout_ms=%u", timeout_ms);
	rc = takt_client_exchange(client, job_path(path, job_id, rest), NULL, timeout_ms, err);
	return job_answer(client, rc, ret, err);
}

static int clock_answer(struct takt_client *client, int rc, struct takt_clock_view *ret,
			struct takt_err *err)
{
	return rc < 0 ? rc : takt_clock_view_from_json(client->body.s, client->body.len, ret, err);
}

int takt_client_clocks(struct takt_client *client, struct takt_clock_view *ret,
		       struct takt_err *err)
{
	return clock_answer(client, takt_client_ask(client, "/v1/clocks", NULL, err), ret, err);
}

static void add_gpus(struct takt_str *body, uint64_t gpu_mask)
{
	const char *comma = "";

	takt_str_add(body, "{\"gpus\":[");
	for (unsigned i = 0; i < 64; i++) {
		if (!(gpu_mask >> i & 1))
			continue;
		takt_str_addf(body, "%s%u", comma, i);
		comma = ",";
	}
	takt_str_add(body, "]");
}

int takt_client_clock_set(struct takt_client *client, uint64_t gpu_mask, uint32_t max_mhz,
			  bool lock, struct takt_clock_view *ret, struct takt_err *err)
{
	TAKT_CLEANUP(strp) struct takt_str body = TAKT_STR(1024);

	add_gpus(&body, gpu_mask);
	if (takt_str_addf(&body, ",\"max_mhz\":%u,\"lock\":%s}", max_mhz, lock ? "true" : "false") <
	    0)
		return takt_err_set(err, body.rc, "no memory for a request");
	return clock_answer(client, takt_client_ask(client, "/v1/clocks/set", body.s, err), ret,
			    err);
}

int takt_client_clock_reset(struct takt_client *client, uint64_t gpu_mask,
			    struct takt_clock_view *ret, struct takt_err *err)
{
	TAKT_CLEANUP(strp) struct takt_str body = TAKT_STR(1024);

	add_gpus(&body, gpu_mask);
	if (takt_str_add(&body, "}") < 0)
		return takt_err_set(err, body.rc, "no memory for a request");
	return clock_answer(client, takt_client_ask(client, "/v1/clocks/reset", body.s, err), ret,
			    err);
}

static int orders_answer(struct takt_client *client, int rc, struct takt_orders_view *ret,
			 struct takt_err *err)
{
	return rc < 0 ? rc : takt_orders_view_from_json(client->body.s, client->body.len, ret, err);
}

int takt_client_orders(struct takt_client *client, struct takt_orders_view *ret,
		       struct takt_err *err)
{
	return orders_answer(client, takt_client_ask(client, "/v1/gpus", NULL, err), ret, err);
}

int takt_client_order(struct takt_client *client, const struct takt_gpu_request *request,
		      struct takt_orders_view *ret, struct takt_err *err)
{
	static const char *const paths[TAKT_GPU_REQUEST_COUNT] = {
		[TAKT_GPU_DRAIN] = "/v1/gpus/drain",
		[TAKT_GPU_RESUME] = "/v1/gpus/resume",
		[TAKT_GPU_RESERVE] = "/v1/gpus/reserve",
		[TAKT_GPU_RELEASE] = "/v1/gpus/release",
	};
	TAKT_CLEANUP(strp) struct takt_str body = TAKT_STR(4096);

	if (takt_gpu_request_to_json(request, &body) < 0)
		return takt_err_set(err, body.rc, "no memory for a request");
	return orders_answer(client, takt_client_ask(client, paths[request->kind], body.s, err),
			     ret, err);
}

int takt_client_log(struct takt_client *client, uint64_t job_id, uint32_t follow_ms,
		    struct takt_log_place *place, const char **ret_bytes, size_t *ret_len,
		    struct takt_err *err)
{
	char path[160], rest[128];
	int rc;

	snprintf(rest, sizeof(rest), "/log?offset=%" PRIu64 "&attempt=%u&follow=%d&timeout_ms=%u",
		 place->offset, place->attempt, follow_ms > 0, follow_ms);
	snprintf(path, sizeof(path), "/v1/jobs/%" PRIu64 "%s", job_id, rest);
	client->log_place = *place;
	client->log_live = false;
	rc = takt_client_exchange(client, path, NULL, follow_ms, err);
	if (rc < 0)
		return rc;
	*place = client->log_place;
	place->over = !client->log_live && client->body.len == 0;
	*ret_bytes = takt_str_text(&client->body);
	*ret_len = client->body.len;
	return 0;
}

bool takt_client_job_ended(const struct takt_job_view *job)
{
	static const char *const ended[] = {"done", "failed", "cancelled", "lost", "interrupted"};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(ended); i++)
		if (strcmp(job->state, ended[i]) == 0)
			return true;
	return false;
}

int takt_client_exit_status(const struct takt_job_view *job)
{
	if (job->exit_signal > 0 && job->exit_signal < 128)
		return 128 + job->exit_signal;
	if (job->has_exit_code)
		return job->exit_code & 0xff;
	return strcmp(job->state, "done") == 0 ? 0 : 1;
}
