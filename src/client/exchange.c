/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request and its answer with libcurl over a Unix socket. The multi interface is used for a
 * single transfer so that a signal's descriptor can be watched while an answer is awaited.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "client/client_impl.h"

enum {
	ANSWER_MS = 60000, /* without any waiting that was asked for */
	CONNECT_MS = 10000,
	TURN_MS = 1000,
};

static size_t take_body(char *bytes, size_t size, size_t n, void *ctx)
{
	struct takt_client *client = ctx;

	return takt_str_addn(&client->body, bytes, size * n) < 0 ? 0 : size * n;
}

/* The value of a header if it has that name. */
static bool header_value(const char *line, size_t len, const char *name, char *ret, size_t size)
{
	size_t name_len = strlen(name), n;

	if (len <= name_len + 1 || strncasecmp(line, name, name_len) != 0 || line[name_len] != ':')
		return false;
	line += name_len + 1;
	len -= name_len + 1;
	while (len > 0 && *line == ' ') {
		line++;
		len--;
	}
	for (n = 0; n < len && n + 1 < size && line[n] > ' '; n++)
		ret[n] = line[n];
	ret[n] = '\0';
	return true;
}

static size_t take_header(char *line, size_t size, size_t n, void *ctx)
{
	struct takt_client *client = ctx;
	unsigned long long number;
	char value[32];

	if (header_value(line, n, "Takt-Log-Offset", value, sizeof(value)) &&
	    takt_parse_u64(value, 0, INT64_MAX, &number) == 0)
		client->log_place.offset = number;
	if (header_value(line, n, "Takt-Log-Attempt", value, sizeof(value)) &&
	    takt_parse_u64(value, 0, UINT32_MAX, &number) == 0)
		client->log_place.attempt = (uint32_t)number;
	if (header_value(line, n, "Takt-Log-Live", value, sizeof(value)))
		client->log_live = strcmp(value, "true") == 0;
	return size * n;
}

static int prepare(struct takt_client *client, const char *path, const char *body, uint32_t wait_ms,
		   struct curl_slist **ret_headers)
{
	CURL *easy = client->easy;
	char url[512];

	if (snprintf(url, sizeof(url), "http://takt%s", path) >= (int)sizeof(url))
		return -ENAMETOOLONG;
	curl_easy_reset(easy);
	curl_easy_setopt(easy, CURLOPT_URL, url);
	curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, client->socket);
	curl_easy_setopt(easy, CURLOPT_PROXY, "");
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
	curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)ANSWER_MS + (long)wait_ms);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, client);
	curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header);
	curl_easy_setopt(easy, CURLOPT_HEADERDATA, client);
	if (!body)
		return 0;
	/* An "Expect: 100-continue" would only cost a round trip. */
	*ret_headers = curl_slist_append(NULL, "Content-Type: application/json");
	if (!*ret_headers || !curl_slist_append(*ret_headers, "Expect:"))
		return -ENOMEM;
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, *ret_headers);
	curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, (long)strlen(body));
	curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body);
	return 0;
}

/* Waits for something to happen; -ECANCELED when woken() says so. */
static int wait_turn(struct takt_client *client)
{
	struct curl_waitfd extra = {.fd = client->wake_fd, .events = CURL_WAIT_POLLIN};
	unsigned n = client->wake_fd >= 0 ? 1 : 0;
	int seen;

	curl_multi_poll(client->multi, &extra, n, TURN_MS, &seen);
	if (n == 1 && (extra.revents & CURL_WAIT_POLLIN) && client->woken(client->wake_ctx) < 0)
		return -ECANCELED;
	return 0;
}

static int transfer(struct takt_client *client, CURLcode *ret_code)
{
	int running = 1, left, rc = 0;
	CURLMsg *message;

	*ret_code = CURLE_FAILED_INIT;
	if (curl_multi_add_handle(client->multi, client->easy) != CURLM_OK)
		return -ENOMEM;
	while (rc == 0 && curl_multi_perform(client->multi, &running) == CURLM_OK && running)
		rc = wait_turn(client);
	while (rc == 0 && (message = curl_multi_info_read(client->multi, &left)))
		if (message->msg == CURLMSG_DONE)
			*ret_code = message->data.result;
	curl_multi_remove_handle(client->multi, client->easy);
	return rc;
}

static int explain_failure(const struct takt_client *client, CURLcode code, struct takt_err *err)
{
	if (client->body.rc == -TAKT_E_LIMIT)
		return takt_err_set(err, -TAKT_E_LIMIT, "the answer of takt is over %d bytes",
				    TAKT_VIEW_MAX_BYTES);
	if (client->body.rc < 0)
		return takt_err_set(err, client->body.rc, "no memory for the answer of takt");
	if (code == CURLE_COULDNT_CONNECT)
		return takt_err_set(err, -TAKT_E_UNAVAILABLE,
				    "no takt answers on '%s'; 'takt serve' starts one",
				    client->socket);
	if (code == CURLE_OPERATION_TIMEDOUT)
		return takt_err_set(err, -TAKT_E_UNAVAILABLE, "takt on '%s' does not answer",
				    client->socket);
	return takt_err_set(err, -TAKT_E_UNAVAILABLE, "lost the connection to takt on '%s': %s",
			    client->socket, curl_easy_strerror(code));
}

/* What the daemon said, or that it is no takt that answers. */
static int check_status(struct takt_client *client, struct takt_err *err)
{
	struct takt_err said;
	long status = 0;

	curl_easy_getinfo(client->easy, CURLINFO_RESPONSE_CODE, &status);
	if (status >= 200 && status < 300)
		return 0;
	if (takt_error_from_json(takt_str_text(&client->body), client->body.len, &said) < 0)
		return takt_err_set(err, -EPROTO,
				    "what answers on '%s' is no takt (HTTP status %ld)",
				    client->socket, status);
	if (err)
		*err = said;
	return said.rc;
}

int takt_client_exchange(struct takt_client *client, const char *path, const char *body,
			 uint32_t wait_ms, struct takt_err *err)
{
	struct curl_slist *headers = NULL;
	CURLcode code;
	int rc;

	takt_str_reset(&client->body);
	rc = prepare(client, path, body, wait_ms, &headers);
	if (rc < 0)
		takt_err_set(err, rc, "prepare a request");
	else
		rc = transfer(client, &code);
	curl_slist_free_all(headers);
	if (rc == -ECANCELED)
		return takt_err_set(err, rc, "interrupted");
	if (rc < 0)
		return rc;
	return code == CURLE_OK ? check_status(client, err) : explain_failure(client, code, err);
}
