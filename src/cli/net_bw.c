/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/net_bw.h"

#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/bw_run.h"
#include "cli/units.h"
#include "codec/json.h"
#include "config/config.h"

enum {
	ABSENT_SECONDS = 5,
	FIRST_JOBS = 64, /* that are looked at; more while all of them have begun */
	ALL_JOBS = 10000,
	PLACE_TEXT = 80, /* an address and its port */
};
#define ABSENT_CAP UINT64_C(1000000000)

struct bw {
	struct takt_cli *cli;
	struct takt_rtt_key key;
	uint64_t cap_bits_per_s;
	uint32_t seconds;
	bool listens;
	const char *peer;
	uint64_t gang_id;
	struct takt_err no_takt; /* why takt here said nothing */
};

/* "500M" bits a second. */
static int read_cap(const struct takt_cli *cli, uint64_t *ret, struct takt_err *err)
{
	static const struct {
		char letter;
		uint64_t bits;
	} units[] = {{'M', 1000000}, {'G', 1000000000}, {'T', 1000000000000}};
	const char *text = takt_cli_value(cli, "cap");
	size_t len = text ? strlen(text) : 0;
	unsigned long long count = 0;
	char digits[8] = "";

	*ret = ABSENT_CAP;
	if (!text)
		return 0;
	if (len > 1 && len <= sizeof(digits))
		memcpy(digits, text, len - 1);
	for (size_t i = 0; i < TAKT_ARRAY_LEN(units); i++) {
		if (digits[0] == '\0' || text[len - 1] != units[i].letter ||
		    takt_parse_u64(digits, 1, TAKT_BW_MAX_CAP / units[i].bits, &count) < 0)
			continue;
		*ret = count * units[i].bits;
		return 0;
	}
	return takt_err_set(err, -TAKT_E_USAGE,
			    "'--cap' must be bits a second such as 500M or 10G, from 1M to 1T, "
			    "not '%.40s'",
			    text);
}

/* The daemon's, unless another is named. */
static int read_key(const struct takt_cli *cli, struct takt_rtt_key *ret, struct takt_err *err)
{
	const char *path = takt_cli_value(cli, "key-file");
	struct takt_config config;
	int rc = 0;

	takt_config_init(&config);
	if (!path) {
		rc = takt_config_load(&config, "/etc/takt/takt.conf", err);
		path = config.net_key_file;
	}
	if (rc < 0 && rc != -ENOENT)
		return rc;
	if (!path[0])
		return takt_err_set(err, -TAKT_E_USAGE,
				    "'--key-file' is missing, and net_key_file is not set");
	return takt_rtt_key_read(path, ret, err);
}

static int read_options(struct bw *bw, struct takt_err *err)
{
	int64_t seconds;
	int rc = takt_cli_number(bw->cli, "seconds", 1, TAKT_BW_MAX_SECONDS, ABSENT_SECONDS,
				 &seconds, err);

	rc = rc < 0 ? rc : read_cap(bw->cli, &bw->cap_bits_per_s, err);
	rc = rc < 0 ? rc : read_key(bw->cli, &bw->key, err);
	bw->seconds = rc < 0 ? 0 : (uint32_t)seconds;
	return rc;
}

static bool has_begun(const struct takt_job_view *job)
{
	return strcmp(job->state, "waiting") != 0 && !takt_client_job_ended(job);
}

static bool is_gang(const struct takt_job_view *job)
{
	return job->ranks > 1 && job->gpus > 1 && has_begun(job);
}

/* Whether all that has begun was among them: it comes before what waits. */
static bool find_gang(struct bw *bw, const struct takt_queue_view *view)
{
	bw->gang_id = 0;
	for (size_t i = 0; i < view->count && !bw->gang_id; i++)
		if (is_gang(&view->jobs[i]))
			bw->gang_id = view->jobs[i].id;
	return bw->gang_id || view->count == view->total ||
	       (view->count && !has_begun(&view->jobs[view->count - 1]));
}

static int ask_jobs(struct bw *bw, struct takt_err *err)
{
	bool all = false;
	int rc = takt_cli_connect(bw->cli, err);

	for (uint32_t limit = FIRST_JOBS; rc == 0 && !all && limit <= ALL_JOBS; limit *= 4) {
		struct takt_queue_view view;

		rc = takt_client_queue(bw->cli->client, false, limit, &view, err);
		if (rc < 0)
			break;
		all = find_gang(bw, &view);
		takt_queue_view_fini(&view);
	}
	if (rc == 0 && !all)
		rc = takt_err_set(err, -TAKT_E_LIMIT, "too many jobs run here to look at them");
	return rc;
}

static enum takt_bw_end look(void *ctx)
{
	struct bw *bw = ctx;

	if (ask_jobs(bw, &bw->no_takt) < 0)
		return TAKT_BW_NO_TAKT;
	return bw->gang_id ? TAKT_BW_GANG : 0;
}

/* Decimal, as links are sold. */
static const char *rate_text(uint64_t bits_per_s, char ret[TAKT_UNIT_TEXT])
{
	snprintf(ret, TAKT_UNIT_TEXT, "%.1f Mbit/s", (double)bits_per_s / 1e6);
	return ret;
}

static uint64_t rate_of(uint64_t bytes, uint64_t elapsed_ns)
{
	return elapsed_ns ? (uint64_t)((double)bytes * 8e9 / (double)elapsed_ns) : 0;
}

static void tell(void *ctx, uint64_t bytes, uint64_t elapsed_ns)
{
	const struct bw *bw = ctx;
	char line[PLACE_TEXT], rate[TAKT_UNIT_TEXT];
	int len;

	if (bw->listens && elapsed_ns == 0)
		fprintf(stderr, "takt: %s begins\n", bw->peer);
	if (!bw->cli->terminal || bw->cli->json)
		return;
	len = snprintf(line, sizeof(line), "\r%3u s  %s ", (unsigned)(elapsed_ns / TAKT_NS_PER_S),
		       rate_text(rate_of(bytes, elapsed_ns), rate));
	(void)takt_cli_write(line, (size_t)len, NULL);
}

static const char *end_name(enum takt_bw_end end)
{
	static const char *const names[] = {
		[TAKT_BW_TIME] = "time",
		[TAKT_BW_GANG] = "gang",
		[TAKT_BW_NO_TAKT] = "no_takt",
		[TAKT_BW_PEER] = "caller",
	};

	return names[end];
}

static void add_json(struct bw *bw, const struct takt_bw_link *link,
		     const struct takt_bw_result *result)
{
	struct takt_str *out = &bw->cli->out;

	takt_str_add(out, "{\"peer\":");
	takt_json_add_text(out, bw->peer);
	takt_str_addf(out, ",\"cap_bits_per_s\":%" PRIu64 ",\"seconds\":%u,\"ended\":\"%s\"",
		      link->cap_bits_per_s, link->seconds, end_name(result->end));
	takt_str_addf(out, ",\"ended_there\":%s", result->there ? "true" : "false");
	if (result->begun)
		takt_str_addf(out,
			      ",\"received_bytes\":%" PRIu64 ",\"elapsed_ns\":%" PRIu64
			      ",\"bits_per_s\":%" PRIu64,
			      result->received_bytes, result->elapsed_ns,
			      rate_of(result->received_bytes, result->elapsed_ns));
	takt_str_add(out, "}\n");
}

static void add_text(struct bw *bw, const struct takt_bw_link *link,
		     const struct takt_bw_result *result)
{
	char bytes[TAKT_UNIT_TEXT], rate[TAKT_UNIT_TEXT], cap[TAKT_UNIT_TEXT];

	if (!result->begun)
		return;
	takt_str_addf(&bw->cli->out, "%s%s: %s arrived in %.1f s, %s of at most %s\n",
		      bw->cli->terminal ? "\r" : "", bw->peer,
		      takt_bytes_text(result->received_bytes, bytes),
		      (double)result->elapsed_ns / TAKT_NS_PER_S,
		      rate_text(rate_of(result->received_bytes, result->elapsed_ns), rate),
		      rate_text(link->cap_bits_per_s, cap));
}

/* A run that was not what was asked for is a failure. */
static int judge(const struct bw *bw, const struct takt_bw_result *result, struct takt_err *err)
{
	const char *what = result->begun ? "ended early" : "not begun";

	if (result->end == TAKT_BW_GANG && result->there)
		return takt_err_set(err, -TAKT_E_BUSY,
				    "%s: a job at %s has ranks on several GPUs, and the link", what,
				    bw->peer);
	if (result->end == TAKT_BW_GANG)
		return takt_err_set(err, -TAKT_E_BUSY,
				    "%s: job %" PRIu64 " here has ranks on several GPUs, and the "
				    "link",
				    what, bw->gang_id);
	if (result->end == TAKT_BW_NO_TAKT && result->there)
		return takt_err_set(err, -TAKT_E_UNAVAILABLE,
				    "%s: takt at %s does not say what runs there", what, bw->peer);
	if (result->end == TAKT_BW_NO_TAKT)
		return takt_err_set(err, -TAKT_E_UNAVAILABLE, "%s: %s", what, bw->no_takt.msg);
	if (result->end == TAKT_BW_PEER)
		return takt_err_set(err, -TAKT_E_UNAVAILABLE, "%s: %s closed it", what, bw->peer);
	return 0;
}

static int run_over(struct bw *bw, int fd, struct takt_err *err)
{
	enum takt_bw_side side = bw->listens ? TAKT_BW_LISTENER : TAKT_BW_CALLER;
	const struct takt_bw_watch watch = {look, tell, bw};
	struct takt_bw_result result;
	struct takt_bw_link link;
	int rc = takt_bw_meet(fd, side, &bw->key, bw->cap_bits_per_s, bw->seconds, &link, err);

	if (rc == 0)
		rc = bw->listens ? takt_bw_serve(&link, &watch, &result, err)
				 : takt_bw_call(&link, &watch, &result, err);
	if (rc < 0)
		return takt_err_wrap(err, rc, "%s", bw->peer);
	if (bw->cli->json)
		add_json(bw, &link, &result);
	else
		add_text(bw, &link, &result);
	return judge(bw, &result, err);
}

/* Before anybody is bothered: nothing begins beside a gang. */
static int call(struct bw *bw, const union takt_rtt_address *to, struct takt_err *err)
{
	const struct takt_bw_result refused = {.end = look(bw)};
	int fd, rc;

	if (refused.end)
		return judge(bw, &refused, err);
	fd = takt_bw_connect(to, bw->peer, err);
	if (fd < 0)
		return fd;
	rc = run_over(bw, fd, err);
	close(fd);
	return rc;
}

static void name_peer(const union takt_rtt_address *from, socklen_t size, char ret[PLACE_TEXT])
{
	char host[PLACE_TEXT / 2 + 8], port[8];

	if (getnameinfo(&from->any, size, host, sizeof(host), port, sizeof(port),
			NI_NUMERICHOST | NI_NUMERICSERV) != 0)
		snprintf(ret, PLACE_TEXT, "a caller");
	else
		snprintf(ret, PLACE_TEXT, from->any.sa_family == AF_INET6 ? "[%s]:%s" : "%s:%s",
			 host, port);
}

/* One run; what goes wrong with it is said, and the next is waited for. */
static int serve_one(struct bw *bw, int listener, struct takt_err *err)
{
	union takt_rtt_address from;
	socklen_t size = sizeof(from);
	struct takt_err run_err;
	char peer[PLACE_TEXT];
	int fd = accept4(listener, &from.any, &size, SOCK_CLOEXEC), rc;

	if (fd < 0)
		return errno == EINTR || errno == ECONNABORTED
			       ? 0
			       : takt_err_set(err, -errno, "wait for a caller");
	name_peer(&from, size, peer);
	bw->peer = peer;
	if (run_over(bw, fd, &run_err) < 0)
		takt_cli_complain(&run_err);
	close(fd);
	rc = takt_cli_write(takt_str_text(&bw->cli->out), bw->cli->out.len, err);
	takt_str_reset(&bw->cli->out);
	return rc;
}

static int serve(struct bw *bw, const union takt_rtt_address *at, const char *text,
		 struct takt_err *err)
{
	char rate[TAKT_UNIT_TEXT];
	int fd = -1, rc = takt_cli_connect(bw->cli, err);

	if (rc < 0)
		return rc;
	fd = takt_bw_listen(at, text, err);
	if (fd < 0)
		return fd;
	fprintf(stderr, "takt: listens at %s, at most %s for %u s a run; Ctrl-C ends it\n", text,
		rate_text(bw->cap_bits_per_s, rate), bw->seconds);
	while (rc == 0)
		rc = serve_one(bw, fd, err);
	close(fd);
	return rc;
}

int takt_net_bw(struct takt_cli *cli, struct takt_err *err)
{
	const char *listen_at = takt_cli_value(cli, "listen");
	struct bw bw = {.cli = cli, .listens = listen_at != NULL, .peer = cli->operands[1]};
	union takt_rtt_address address;
	int rc;

	if (!listen_at == (cli->operand_count < 2))
		return takt_err_set(
			err, -TAKT_E_USAGE,
			"takt net bw takes PEER_ADDRESS:PORT, or --listen ADDRESS:PORT");
	rc = takt_rtt_address_parse(listen_at ? listen_at : bw.peer, &address, err);
	rc = rc < 0 ? rc : read_options(&bw, err);
	if (rc < 0)
		return rc;
	return listen_at ? serve(&bw, &address, listen_at, err) : call(&bw, &address, err);
}
