/* SPDX-License-Identifier: Apache-2.0 */
/*
 * takt alerts: looks at takt now and then and tells a person, for machines without Prometheus. A
 * process of its own, since the daemon carries no HTTP client and runs no commands of
 * administrators; nothing leaves the machine unless a webhook is named.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sys.h"
#include "base/timetext.h"
#include "cli/alerts.h"
#include "cli/verb.h"
#include "client/webhook.h"

enum {
	HOOK_LIMIT_MS = 60000,
	MAX_URL = 2048,
	MAX_JSON = 4096,
	WEEK_MS = 7 * 24 * 3600 * 1000,
};

struct teller {
	struct takt_cli *cli;
	struct takt_alerts alerts;
	const char *hook; /* NULL = none */
	char url[MAX_URL];
	uint64_t every_ms;
	unsigned fire; /* now, of --once */
};

static void put(const char *name, const char *value)
{
	(void)setenv(name, value, 1);
}

static void become_hook(const struct teller *teller, const struct takt_alert_news *news,
			const char *summary)
{
	char gpu[16] = "";

	if (takt_alert_of_gpu(news->alert)) {
		snprintf(gpu, sizeof(gpu), "%u", news->at);
		put("TAKT_UUID", teller->alerts.uuids[news->at]);
	}
	put("TAKT_PEER", takt_alert_of_peer(news->alert) ? teller->alerts.peers[news->at] : "");
	put("TAKT_GPU", gpu);
	put("TAKT_ALERT", takt_alert_name(news->alert));
	put("TAKT_ALERT_STATE", news->fires ? "firing" : "resolved");
	put("TAKT_SEVERITY", takt_alert_severity(news->alert));
	put("TAKT_HOSTNAME", teller->alerts.hostname);
	put("TAKT_SUMMARY", summary);
	(void)setpgid(0, 0);
	(void)dup2(STDERR_FILENO, STDOUT_FILENO);
	execl("/bin/sh", "sh", "-c", teller->hook, (char *)NULL);
	_exit(127);
}

/* Its exit status; one that takes too long is killed with all that it started in its group. */
static int wait_hook(pid_t pid, struct takt_err *err)
{
	int pidfd = pidfd_open(pid, 0), status = 0;
	struct pollfd over = {.fd = pidfd, .events = POLLIN};
	bool in_time = pidfd >= 0 && poll(&over, 1, HOOK_LIMIT_MS) > 0;

	if (!in_time) {
		(void)kill(-pid, SIGKILL);
		(void)kill(pid, SIGKILL);
	}
	if (pidfd >= 0)
		close(pidfd);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (!in_time)
		return takt_err_set(err, -ETIMEDOUT, "the hook took over %d s",
				    HOOK_LIMIT_MS / 1000);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return takt_err_set(err, -TAKT_E_UNAVAILABLE, "the hook ended with %d",
				    WIFEXITED(status) ? WEXITSTATUS(status)
						      : 128 + WTERMSIG(status));
	return 0;
}

static int run_hook(const struct teller *teller, const struct takt_alert_news *news,
		    const char *summary, struct takt_err *err)
{
	pid_t pid = fork();

	if (pid == 0)
		become_hook(teller, news, summary);
	return pid < 0 ? takt_err_set(err, -errno, "start the hook") : wait_hook(pid, err);
}

static int say(struct teller *teller, const struct takt_alert_news *news, const char *summary,
	       const struct takt_str *json, struct takt_err *err)
{
	TAKT_CLEANUP(strp) struct takt_str line = TAKT_STR(MAX_JSON + 64);

	if (teller->cli->json)
		takt_str_addf(&line, "%s\n", takt_str_text(json));
	else
		takt_str_addf(&line, "%s %s: %s\n", takt_alert_severity(news->alert),
			      takt_alert_name(news->alert), summary);
	return takt_cli_write(takt_str_text(&line), line.len, err);
}

static int tell(struct teller *teller, const struct takt_alert_news *news, struct takt_err *err)
{
	TAKT_CLEANUP(strp) struct takt_str summary = TAKT_STR(512), json = TAKT_STR(MAX_JSON);
	int rc = 0;

	takt_alert_summary(&teller->alerts, news, &summary);
	if (takt_alert_json(&teller->alerts, news, &json) < 0)
		return takt_err_set(err, json.rc, "no memory for an alert");
	if (teller->hook)
		rc = run_hook(teller, news, takt_str_text(&summary), err);
	if (rc == 0 && teller->url[0])
		rc = takt_webhook_post(teller->url, takt_str_text(&json), err);
	return rc < 0 ? rc : say(teller, news, takt_str_text(&summary), &json, err);
}

static uint64_t now_ms(void)
{
	return takt_boot_now(takt_sys_real()).ns / TAKT_NS_PER_MS;
}

/* What could not be told is tried again at a later look. */
static void tell_all(struct teller *teller, uint64_t looked_ms)
{
	struct takt_alert_news news = {.at = 0};
	struct takt_err err;

	for (; takt_alerts_news(&teller->alerts, &news, looked_ms); news.at++) {
		if (tell(teller, &news, &err) == 0) {
			takt_alerts_told(&teller->alerts, &news);
		} else {
			takt_alerts_untold(&teller->alerts, &news, now_ms());
			takt_cli_complain(&err);
		}
		teller->fire += news.fires;
	}
}

/* A takt that does not answer, or is too old to know, tells nothing of the network. */
static void look_at_net(struct teller *teller, uint64_t looked_ms)
{
	TAKT_CLEANUP(freep) struct takt_net_view *view = takt_zalloc(sizeof(*view));

	if (view && takt_client_net(teller->cli->client, view, NULL) == 0)
		takt_alerts_look_at_net(&teller->alerts, view, looked_ms);
}

static void look(struct teller *teller)
{
	uint64_t looked_ms = now_ms();
	struct takt_status_view view;
	struct takt_err err;
	int rc = takt_cli_connect(teller->cli, &err);

	if (rc == 0)
		rc = takt_client_status(teller->cli->client, &view, &err);
	takt_alerts_look(&teller->alerts, rc == 0 ? &view : NULL, looked_ms);
	if (rc == 0)
		look_at_net(teller, looked_ms);
	if (rc == 0)
		takt_status_view_fini(&view);
	tell_all(teller, looked_ms);
}

/* "@FILE": the first line of the file, since a command line is seen by everybody. */
static int read_url(struct teller *teller, struct takt_err *err)
{
	const char *text = takt_cli_value(teller->cli, "webhook");
	FILE *file;

	if (!text)
		return 0;
	if (text[0] != '@') {
		if (!takt_strcpy(teller->url, sizeof(teller->url), text))
			return takt_err_set(err, -TAKT_E_USAGE, "'--webhook' has over %zu bytes",
					    sizeof(teller->url) - 1);
		return takt_webhook_check(teller->url, err);
	}
	file = fopen(text + 1, "re");
	if (!file)
		return takt_err_set(err, -errno, "'--webhook': open '%s'", text + 1);
	if (!fgets(teller->url, sizeof(teller->url), file))
		teller->url[0] = '\0';
	fclose(file);
	teller->url[strcspn(teller->url, "\r\n")] = '\0';
	return takt_webhook_check(teller->url, err);
}

static int read_latency(struct teller *teller, struct takt_err *err)
{
	const char *text = takt_cli_value(teller->cli, "latency");
	uint64_t *ns = &teller->alerts.terms.rtt_ns;

	if (text && (takt_duration_parse(text, ns) < 0 || *ns == 0 || *ns > TAKT_NS_PER_S))
		return takt_err_set(err, -TAKT_E_USAGE,
				    "'--latency' must be a time such as 200us or 1ms, at most 1s");
	return 0;
}

static int read_terms(struct teller *teller, struct takt_err *err)
{
	struct takt_alert_terms *terms = &teller->alerts.terms;
	struct takt_cli *cli = teller->cli;
	int64_t temp_c = 0;
	int rc = takt_cli_duration_ms(cli, "every", WEEK_MS, 15000, &teller->every_ms, err);

	terms->at_once = takt_cli_has(cli, "once");
	if (rc == 0)
		rc = takt_cli_duration_ms(cli, "idle", WEEK_MS, 3600 * 1000, &terms->idle_ms, err);
	if (rc == 0)
		rc = takt_cli_number(cli, "temperature", 1, 200, 0, &temp_c, err);
	if (rc == 0)
		rc = read_latency(teller, err);
	if (rc == 0 && teller->every_ms < 1000)
		rc = takt_err_set(err, -TAKT_E_USAGE, "'--every' must be at least 1s");
	terms->temp_c = (int32_t)temp_c;
	teller->hook = takt_cli_value(cli, "hook");
	return rc == 0 ? read_url(teller, err) : rc;
}

static int run(struct takt_cli *cli, struct takt_err *err)
{
	TAKT_CLEANUP(freep) struct teller *teller = takt_zalloc(sizeof(*teller));
	struct timespec pause;
	int rc;

	if (!teller)
		return takt_err_set(err, -ENOMEM, "no memory for alerts");
	teller->cli = cli;
	rc = read_terms(teller, err);
	if (rc < 0)
		return rc;
	pause = (struct timespec){(time_t)(teller->every_ms / 1000),
				  (long)(teller->every_ms % 1000) * 1000000};
	look(teller);
	while (!teller->alerts.terms.at_once) {
		(void)nanosleep(&pause, NULL);
		look(teller);
	}
	return teller->fire > 0;
}

static const struct takt_option options[] = {
	{"hook", 0, "COMMAND", "run by the shell when an alert begins or ends, see below"},
	{"webhook", 0, "URL", "POST it as JSON to there; @FILE: to the URL in this file"},
	{"every", 0, "TIME", "look so often (default 15s)"},
	{"idle", 0, "TIME",
	 "a GPU that is held and idle for so long is one (default 1h, 0s: never)"},
	{"temperature", 0, "CELSIUS", "a GPU hotter than this is one (default: none is)"},
	{"latency", 0, "TIME",
	 "so long a round trip to a machine that takt probes is one (default: none is)"},
	{"once", 0, NULL, "look once, tell what stands now, and end"},
	{NULL},
};

static const struct takt_text_pair examples[] = {
	{"takt alerts --hook 'mail -s \"$TAKT_SUMMARY\" root </dev/null'", "a mail for each"},
	{"takt alerts --webhook @/etc/takt/webhook",
	 "to a chat; the URL is not for everybody's eyes"},
	{"takt alerts --once --temperature 80", "for cron, or a check of another system"},
	{NULL, NULL},
};

static const struct takt_text_pair exits[] = {
	{"1", "with --once: something stands"},
	{NULL, NULL},
};

const struct takt_verb takt_verb_alerts = {
	.name = "alerts",
	.summary = "tell somebody when a GPU or takt is in trouble",
	.usage = "[--hook COMMAND] [--webhook URL] [--once]",
	.about =
		"Looks at takt now and then and tells when something begins that is worth a "
		"person's time, and when it is over: takt that does not answer, GPUs that are "
		"lost, silent, set aside, not clean, slowed down by heat, braked by the power "
		"supply, held and idle, hotter than you want, or with clocks that could not be put "
		"back, and machines of takt net that are silent or later than you want. It runs "
		"until it is ended; what it tells it prints, too.\n"
		"The hook has TAKT_ALERT (a name such as GpuLost), TAKT_ALERT_STATE (firing or "
		"resolved), TAKT_SEVERITY, TAKT_GPU, TAKT_UUID, TAKT_PEER, TAKT_HOSTNAME and "
		"TAKT_SUMMARY in "
		"its environment and a minute's time. What a hook or webhook that fails was to be "
		"told is tried again at later looks, ever more seldom, down to once a minute. "
		"Nothing leaves the machine unless a webhook is named. With "
		"Prometheus use deploy/prometheus instead.",
	.options = options,
	.examples = examples,
	.exits = exits,
	.run = run,
};
