/* SPDX-License-Identifier: Apache-2.0 */
/*
 * takt attach, and what takt run --pty does once the job is handed in: wait for its turn, sit at
 * its terminal, say how it ended. The terminal is the shim's, so that neither our death nor the
 * daemon's ends the job; what is typed goes to the job's own user's process and through nobody
 * else's.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

#include "base/mem.h"
#include "base/pace.h"
#include "cli/job_terminal.h"
#include "cli/job_text.h"
#include "cli/log_stream.h"

/* For a terminal that is not there yet, or not any more. */
static const struct takt_pace looks = {20 * TAKT_NS_PER_MS, TAKT_NS_PER_S};

static volatile sig_atomic_t interrupted;

struct visit {
	struct takt_cli *cli;
	uint64_t id;
	bool quiet;
	int key;
	unsigned looked; /* in vain, in a row */
	struct takt_patience patience;
	struct takt_job_view job;
};

static void say(const struct visit *visit, const char *text)
{
	if (!visit->quiet)
		fprintf(stderr, "takt: job %llu %s: %s\n", (unsigned long long)visit->id,
			visit->job.name, text);
}

static void wait_longer(struct visit *visit)
{
	uint64_t ns = takt_pace_ns(&looks, visit->looked++);
	struct timespec t = {(time_t)(ns / TAKT_NS_PER_S), (long)(ns % TAKT_NS_PER_S)};

	(void)nanosleep(&t, NULL);
}

/* 0, or negative when it is no use to ask again. A daemon that is away is waited for. */
static int look(struct visit *visit, struct takt_err *err)
{
	int rc;

	do
		rc = takt_client_job(visit->cli->client, visit->id, &visit->job, err);
	while (takt_patience_retry(&visit->patience, rc, err));
	return rc;
}

static int check(const struct visit *visit, struct takt_err *err)
{
	if (!visit->job.mine)
		return takt_err_set(err, -EPERM, "job %llu is another user's",
				    (unsigned long long)visit->id);
	if (!visit->job.pty)
		return takt_err_set(err, -TAKT_E_CONFLICT,
				    "job %llu has no terminal: it was not handed in with "
				    "takt run --pty (takt logs shows what it writes)",
				    (unsigned long long)visit->id);
	return 0;
}

static void print_end(const struct visit *visit)
{
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(8192);

	takt_job_state_text(&visit->job, &text);
	say(visit, takt_str_text(&text));
	takt_str_reset(&text);
	takt_job_report_text(&visit->job, "takt:   ", &text);
	if (!visit->quiet)
		fputs(takt_str_text(&text), stderr);
}

static int leave(const struct visit *visit, enum takt_terminal_end end)
{
	char text[120];

	snprintf(text, sizeof(text), "%s; it goes on, 'takt attach %llu' comes back",
		 end == TAKT_TERMINAL_TAKEN_OVER ? "somebody else sits at its terminal now"
						 : "left",
		 (unsigned long long)visit->id);
	say(visit, text);
	return 0;
}

/* 1: left, 0: look at the job again; negative as ever. */
static int sit(struct visit *visit, struct takt_err *err)
{
	enum takt_terminal_end end;
	int rc = takt_terminal_sit(visit->job.terminal, visit->job.uid, visit->key, &end, err);

	if (rc == -ENOENT || rc == -ECONNREFUSED) { /* it begins or ends just now */
		wait_longer(visit);
		return 0;
	}
	if (rc < 0)
		return rc;
	visit->looked = 0;
	if (end == TAKT_TERMINAL_ENDED || end == TAKT_TERMINAL_LOST)
		return 0;
	(void)leave(visit, end);
	return 1;
}

static void note_interrupt(int sig)
{
	interrupted = sig;
}

static int give_up(struct visit *visit, struct takt_err *err)
{
	int rc = takt_client_cancel(visit->cli->client, visit->id, &visit->job, err);

	if (rc < 0 && rc != -TAKT_E_CONFLICT)
		return rc;
	say(visit, "cancelled");
	return 128 + SIGINT;
}

static int attend(struct visit *visit, struct takt_err *err)
{
	for (;;) {
		int rc = look(visit, err);

		if (interrupted)
			return give_up(visit, err);

		if (rc == 0)
			rc = check(visit, err);
		if (rc < 0)
			return rc;
		if (takt_client_job_ended(&visit->job)) {
			print_end(visit);
			return takt_client_exit_status(&visit->job);
		}
		rc = visit->job.terminal[0] ? sit(visit, err) : 0;
		if (rc != 0)
			return rc > 0 ? 0 : rc;
		if (!visit->job.terminal[0])
			wait_longer(visit);
	}
}

void takt_terminal_interrupt_cancels(void)
{
	const struct sigaction act = {.sa_handler = note_interrupt, .sa_flags = SA_RESTART};

	(void)sigaction(SIGINT, &act, NULL);
}

int takt_terminal_attend(struct takt_cli *cli, uint64_t job_id, struct takt_err *err)
{
	const char *key = takt_cli_value(cli, "detach-key");
	TAKT_CLEANUP(freep) struct visit *visit = takt_zalloc(sizeof(*visit));
	int rc;

	if (!visit)
		return takt_err_set(err, -ENOMEM, "no memory for a terminal");
	visit->cli = cli;
	visit->id = job_id;
	visit->quiet = takt_cli_has(cli, "quiet");
	visit->patience = TAKT_PATIENCE;
	rc = takt_terminal_key(key ? key : "^]", &visit->key, err);
	return rc < 0 ? rc : attend(visit, err);
}

static int run(struct takt_cli *cli, struct takt_err *err)
{
	uint64_t id;
	int rc = takt_cli_job_id(cli->operands[0], &id, err);

	if (rc == 0)
		rc = takt_terminal_check(err);
	if (rc == 0)
		rc = takt_cli_connect(cli, err);
	return rc < 0 ? rc : takt_terminal_attend(cli, id, err);
}

static const struct takt_option options[] = {
	TAKT_TERMINAL_OPTIONS,
	{"quiet", 'q', NULL, "no word of takt's own unless something fails"},
	{NULL},
};

static const struct takt_text_pair examples[] = {
	{"takt attach 12", "back to the shell of job 12"},
	{NULL, NULL},
};

static const struct takt_text_pair exits[] = {
	{"0", "left with the key, or the job ended well"},
	{"N", "the job's own exit status, when it ended meanwhile"},
	{NULL, NULL},
};

const struct takt_verb takt_verb_attach = {
	.name = "attach",
	.summary = "sit at the terminal of a job again",
	.usage = "JOB",
	.about =
		"Joins this terminal with that of a job which was handed in with takt run --pty: "
		"after a lost connection, from another machine's shell, or for a look. What it "
		"wrote last is shown first; all of it is in takt logs. One sits at a terminal at a "
		"time: who comes later takes the place.\n"
		"Ctrl-] leaves, and the job goes on; --detach-key chooses another key. All other "
		"keys go to the job, Ctrl-C too. A job that waits is waited for. Only its owner "
		"and root can.",
	.options = options,
	.examples = examples,
	.exits = exits,
	.operands = TAKT_OPERANDS_JOBS,
	.min_operands = 1,
	.max_operands = 1,
	.run = run,
};
