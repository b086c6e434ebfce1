/* SPDX-License-Identifier: Apache-2.0 */
/* The client's calls, one a route. */
#include "client/client.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "client/client_impl.h"
#include "codec/json.h"

int takt_client_connect(const char *socket, struct takt_client **ret, struct takt_err *err)
{
	struct takt_client *client = takt_zalloc(sizeof(*client));
	int rc = 0;

	if (!client)
		return takt_err_set(err, -ENOMEM, "no memory for a client");
	client->fd = client->wake_fd = -1;
	client->body = TAKT_STR(TAKT_VIEW_MAX_BYTES);
	if (!socket)
		rc = takt_client_discover(client->socket, err);
	else if (!takt_strcpy(client->socket, sizeof(client->socket), socket))
		rc = takt_err_set(err, -ENAMETOOLONG, "socket '%.60s...' has over %zu bytes",
				  socket, sizeof(client->socket) - 1);
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
	if (client->fd >= 0)
		close(client->fd);
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

void takt_client_meanwhile(struct takt_client *client, void (*meanwhile)(void))
{
	client->meanwhile = meanwhile;
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

int takt_client_past(struct takt_client *client, const struct takt_client_past *past,
		     struct takt_queue_view *ret, struct takt_err *err)
{
	TAKT_CLEANUP(strp) struct takt_str path = TAKT_STR(4096);
	int rc;

	takt_str_addf(&path,
		      "/v1/jobs?history=1&limit=%u&before=%" PRIu64 "&since_ms=%" PRId64
		      "&until_ms=%" PRId64 "&uid=%u",
		      past->limit, past->before, past->since_ms, past->until_ms, past->uid);
	if (past->gpu >= 0)
		takt_str_addf(&path, "&gpu=%" PRId64, past->gpu);
	/* What is not a list of words is no state's name, and would not be a query. */
	if (past->states && past->states[strspn(past->states, "abcdefghijklmnopqrstuvwxyz,")] == 0)
		takt_str_addf(&path, "&state=%s", past->states);
	if (path.rc < 0)
		return takt_err_set(err, path.rc, "no memory for a request");
	rc = takt_client_ask(client, takt_str_text(&path), NULL, err);
	return rc < 0 ? rc : takt_queue_view_from_json(client->body.s, client->body.len, ret, err);
}

/* Moves the jobs of `part` behind those of `all`. */
static int join(struct takt_queue_view *all, struct takt_queue_view *part, struct takt_err *err)
{
	size_t count = all->count + part->count;
	struct takt_job_view *jobs =
		part->count ? takt_realloc(all->jobs, count * sizeof(*jobs)) : all->jobs;

	if (count > 0 && !jobs)
		return takt_err_set(err, -ENOMEM, "no memory for a list of jobs");
	if (part->count > 0)
		memcpy(jobs + all->count, part->jobs, part->count * sizeof(*jobs));
	all->jobs = jobs;
	all->count = count;
	all->total += part->total;
	all->simulated = part->simulated;
	all->next = part->next;
	return 0;
}

int takt_client_past_all(struct takt_client *client, const struct takt_client_past *past,
			 struct takt_queue_view *ret, struct takt_err *err)
{
	struct takt_client_past ask = *past;
	struct takt_queue_view all = {.count = 0}, part;
	int rc;

	do {
		rc = takt_client_past(client, &ask, &part, err);
		if (rc < 0)
			break;
		rc = join(&all, &part, err);
		takt_queue_view_fini(&part);
		ask.before = all.next;
		ask.limit = past->limit - (uint32_t)all.count;
	} while (rc == 0 && ask.before && all.count < past->limit);
	if (rc < 0)
		takt_queue_view_fini(&all);
	else
		*ret = all;
	return rc;
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

int takt_client_course(struct takt_client *client, uint64_t job_id, struct takt_course_view *ret,
		       struct takt_err *err)
{
	char path[96];
	int rc = takt_client_ask(client, job_path(path, job_id, "/course"), NULL, err);

	return rc < 0 ? rc : takt_course_view_from_json(client->body.s, client->body.len, ret, err);
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

int takt_client_again(struct takt_client *client, uint64_t job_id, const struct takt_jobspec *env,
		      struct takt_job_view *ret, struct takt_err *err)
{
	TAKT_CLEANUP(strp) struct takt_str body = TAKT_STR(TAKT_SPEC_MAX_BYTES);
	char path[96];
	int rc;

	if (takt_jobspec_env_to_json(env, &body) < 0)
		return takt_err_set(err, body.rc, "the environment is over %d bytes, or no memory",
				    TAKT_SPEC_MAX_BYTES);
	rc = takt_client_ask(client, job_path(path, job_id, "/again"), body.s, err);
	return job_answer(client, rc, ret, err);
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

int takt_client_clock_set(struct takt_client *client, uint64_t gpu_mask,
			  const struct takt_clock_order *ask, struct takt_clock_view *ret,
			  struct takt_err *err)
{
	TAKT_CLEANUP(strp) struct takt_str body = TAKT_STR(1024);

	add_gpus(&body, gpu_mask);
	takt_str_addf(&body, ",\"lock\":%s", ask->lock ? "true" : "false");
	if (ask->max_mhz)
		takt_str_addf(&body, ",\"max_mhz\":%u", ask->max_mhz);
	if (ask->mem_mhz)
		takt_str_addf(&body, ",\"mem_mhz\":%u", ask->mem_mhz);
	if (ask->power_limit_mw)
		takt_str_addf(&body, ",\"power_limit_mw\":%u", ask->power_limit_mw);
	if (ask->assume_unlocked)
		takt_str_add(&body, ",\"assume_unlocked\":true");
	if (takt_str_add(&body, ask->benchmark ? ",\"benchmark\":true}" : "}") < 0)
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

int takt_client_clock_cap(struct takt_client *client, const struct takt_clock_cap *cap,
			  struct takt_clock_view *ret, struct takt_err *err)
{
	TAKT_CLEANUP(strp) struct takt_str body = TAKT_STR(4096);

	if (takt_clock_cap_to_json(cap, &body) < 0)
		return takt_err_set(err, body.rc, "no memory for a request");
	return clock_answer(client, takt_client_ask(client, "/v1/clocks/cap", body.s, err), ret,
			    err);
}

int takt_client_clock_apply(struct takt_client *client, const struct takt_declaration *declaration,
			    struct takt_clock_view *ret, struct takt_err *err)
{
	TAKT_CLEANUP(strp) struct takt_str body = TAKT_STR(TAKT_CLOCK_POLICY_BYTES);

	if (takt_declaration_to_json(declaration, &body) < 0)
		return takt_err_set(err, body.rc, "no memory for a request");
	return clock_answer(client, takt_client_ask(client, "/v1/clocks/apply", body.s, err), ret,
			    err);
}

int takt_client_clock_restore(struct takt_client *client, struct takt_clock_view *ret,
			      struct takt_err *err)
{
	return clock_answer(client, takt_client_ask(client, "/v1/clocks/restore", "{}", err), ret,
			    err);
}

int takt_client_cpu_clock(struct takt_client *client, uint32_t max_mhz, struct takt_clock_view *ret,
			  struct takt_err *err)
{
	char body[40];

	snprintf(body, sizeof(body), "{\"max_mhz\":%u}", max_mhz);
	return clock_answer(client, takt_client_ask(client, "/v1/clocks/cpu", body, err), ret, err);
}

int takt_client_reload(struct takt_client *client, struct takt_reload_view *ret,
		       struct takt_err *err)
{
	int rc = takt_client_ask(client, "/v1/config/reload", "{}", err);

	return rc < 0 ? rc : takt_reload_view_from_json(client->body.s, client->body.len, ret, err);
}

static int orders_answer(struct takt_client *client, int rc, struct takt_orders_view *ret,
			 struct takt_err *err)
{
	return rc < 0 ? rc : takt_orders_view_from_json(client->body.s, client->body.len, ret, err);
}

/* What stands in a query as it is. */
static bool is_plain(const char *text)
{
	return text[0] && !text[strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_")];
}

int takt_client_history(struct takt_client *client, uint32_t gpu, const char *metric,
			const char *step, int64_t since_ms, int64_t until_ms,
			struct takt_history_view *ret, struct takt_err *err)
{
	char path[256];
	int rc;

	if (!is_plain(metric) || strlen(metric) > 64)
		return takt_err_set(err, -TAKT_E_USAGE, "there is no metric '%.40s'", metric);
	if (step && (!is_plain(step) || strlen(step) > 16))
		return takt_err_set(err, -TAKT_E_USAGE, "there is no step '%.40s'", step);
	snprintf(path, sizeof(path),
		 "/v1/history?gpu=%u&metric=%s&since_ms=%" PRId64 "&until_ms=%" PRId64 "%s%s", gpu,
		 metric, since_ms, until_ms, step ? "&step=" : "", step ? step : "");
	rc = takt_client_ask(client, path, NULL, err);
	return rc < 0 ? rc
		      : takt_history_view_from_json(client->body.s, client->body.len, ret, err);
}

int takt_client_health(struct takt_client *client, struct takt_health_view *ret,
		       struct takt_err *err)
{
	int rc = takt_client_ask(client, "/v1/health", NULL, err);

	return rc < 0 ? rc : takt_health_view_from_json(client->body.s, client->body.len, ret, err);
}

static int tokens_answer(struct takt_client *client, int rc, struct takt_tokens_view *ret,
			 struct takt_err *err)
{
	return rc < 0 ? rc : takt_tokens_view_from_json(client->body.s, client->body.len, ret, err);
}

int takt_client_tokens(struct takt_client *client, struct takt_tokens_view *ret,
		       struct takt_err *err)
{
	return tokens_answer(client, takt_client_ask(client, "/v1/tokens", NULL, err), ret, err);
}

static int ask_for_token(struct takt_client *client, const char *path,
			 const struct takt_token_request *request, struct takt_tokens_view *ret,
			 struct takt_err *err)
{
	TAKT_CLEANUP(strp) struct takt_str body = TAKT_STR(4096);

	if (takt_token_request_to_json(request, &body) < 0)
		return takt_err_set(err, body.rc, "no memory for a request");
	return tokens_answer(client, takt_client_ask(client, path, body.s, err), ret, err);
}

int takt_client_token_add(struct takt_client *client, const struct takt_token_request *request,
			  struct takt_tokens_view *ret, struct takt_err *err)
{
	return ask_for_token(client, "/v1/tokens", request, ret, err);
}

int takt_client_token_revoke(struct takt_client *client, const char *id,
			     struct takt_tokens_view *ret, struct takt_err *err)
{
	struct takt_token_request request = {.user = ""};

	if (!takt_strcpy(request.id, sizeof(request.id), id))
		return takt_err_set(err, -TAKT_E_NOT_FOUND, "there is no token '%.20s'", id);
	return ask_for_token(client, "/v1/tokens/revoke", &request, ret, err);
}

int takt_client_net(struct takt_client *client, struct takt_net_view *ret, struct takt_err *err)
{
	int rc = takt_client_ask(client, "/v1/net", NULL, err);

	return rc < 0 ? rc : takt_net_view_from_json(client->body.s, client->body.len, ret, err);
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
		[TAKT_GPU_DRAIN] = "/v1/gpus/drain",	 [TAKT_GPU_RESUME] = "/v1/gpus/resume",
		[TAKT_GPU_RESERVE] = "/v1/gpus/reserve", [TAKT_GPU_RELEASE] = "/v1/gpus/release",
		[TAKT_GPU_MIG] = "/v1/gpus/mig",	 [TAKT_GPU_APPROVE] = "/v1/gpus/approve",
		[TAKT_GPU_REFUSE] = "/v1/gpus/refuse",
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
	char path[192], rest[160];
	uint64_t tail = place->tail;
	int rc;

	snprintf(rest, sizeof(rest), "/log?offset=%" PRIu64 "&attempt=%u&follow=%d&timeout_ms=%u",
		 place->offset, place->attempt, follow_ms > 0, follow_ms);
	snprintf(path, sizeof(path), "/v1/jobs/%" PRIu64 "%s", job_id, rest);
	if (tail)
		snprintf(path + strlen(path), sizeof(path) - strlen(path), "&tail=%" PRIu64, tail);
	rc = takt_client_exchange(client, path, NULL, follow_ms, err);
	if (rc < 0)
		return rc;
	if (client->answer.has_place)
		*place = client->answer.place;
	place->tail = tail;
	place->over = !client->answer.live && client->body.len == 0;
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
