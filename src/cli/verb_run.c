/* SPDX-License-Identifier: Apache-2.0 */
/*
 * takt run: a job as if it ran here. Its output comes to standard output, signals go to it, and its
 * exit status is ours. The job itself belongs to the daemon, whose restart is survived.
 *
 * Signals are blocked and read from a descriptor that wakes the client out of whatever it waits
 * for; they are sent over a connection of their own.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/job_options.h"
#include "cli/job_terminal.h"
#include "cli/job_text.h"
#include "cli/log_stream.h"
#include "cli/placement.h"
#include "cli/sbatch.h"
#include "cli/verb.h"
#include "cli/wait_line.h"

enum {
	LOOK_MS = 1000
};

static const int forwarded[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH};

struct foreground {
	struct takt_cli *cli;
	struct takt_job_view job;
	struct takt_client *control; /* owned */
	int signal_fd;
	unsigned interrupts; /* how often Ctrl-C was pressed */
	bool output_gone;
};

static void say(const char *text, uint64_t id)
{
	fprintf(stderr, "takt: %s job %llu\n", text, (unsigned long long)id);
}

static void cancel(struct foreground *fg)
{
	TAKT_CLEANUP(freep) struct takt_job_view *view = takt_alloc(sizeof(*view));
	struct takt_err err;

	if (view && takt_client_cancel(fg->control, fg->job.id, view, &err) < 0 &&
	    err.rc != -TAKT_E_CONFLICT)
		takt_cli_complain(&err);
}

/* A job that waits has no process to signal: it is taken out of the queue instead. */
static void forward(struct foreground *fg, int signal)
{
	struct takt_err err;
	int rc = takt_client_signal(fg->control, fg->job.id, signal, &err);

	if (rc == -TAKT_E_CONFLICT && signal != SIGUSR1 && signal != SIGUSR2 && signal != SIGWINCH)
		cancel(fg);
	else if (rc < 0 && rc != -TAKT_E_CONFLICT)
		takt_cli_complain(&err);
}

static int on_signal(struct foreground *fg, int signal)
{
	fg->interrupts += signal == SIGINT;
	if (signal == SIGINT && fg->interrupts == 2) {
		say("cancelling", fg->job.id);
		cancel(fg);
	} else if (signal == SIGINT && fg->interrupts > 2) {
		say("leaving; it is being cancelled:", fg->job.id);
		return -ECANCELED;
	} else if (signal != SIGINT || fg->interrupts == 1) {
		forward(fg, signal);
	}
	return 0;
}

static int on_wake(void *ctx)
{
	struct foreground *fg = ctx;
	struct signalfd_siginfo info;
	int rc = 0;

	while (rc == 0 && read(fg->signal_fd, &info, sizeof(info)) == sizeof(info))
		rc = on_signal(fg, (int)info.ssi_signo);
	return rc;
}

static int watch_signals(struct foreground *fg, struct takt_err *err)
{
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < TAKT_ARRAY_LEN(forwarded); i++)
		sigaddset(&set, forwarded[i]);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return takt_err_set(err, -errno, "block signals");
	(void)signal(SIGPIPE, SIG_IGN);
	fg->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fg->signal_fd < 0 ? takt_err_set(err, -errno, "make a descriptor for signals") : 0;
}

static int connect_both(struct foreground *fg, struct takt_err *err)
{
	struct takt_cli *cli = fg->cli;
	int rc = takt_client_connect(takt_client_socket(cli->client), &fg->control, err);

	if (rc == 0)
		takt_client_wake_on(cli->client, fg->signal_fd, on_wake, fg);
	return rc;
}

/* Whoever read our output has gone: the job gets what any program would get. */
static bool lost_output(struct foreground *fg, int rc)
{
	if (rc != -EPIPE || fg->output_gone)
		return false;
	fg->output_gone = true;
	forward(fg, SIGPIPE);
	return true;
}

static int wait_silently(struct foreground *fg, struct takt_patience *patience,
			 struct takt_err *err)
{
	int rc = takt_client_wait(fg->cli->client, fg->job.id, LOOK_MS, &fg->job, err);

	return takt_patience_retry(patience, rc, err) ? 1 : rc;
}

/* Until the log is at its end and the job too: 0, or why not. */
static int follow(struct foreground *fg, struct takt_err *err)
{
	struct takt_patience patience = {.wake_fd = fg->signal_fd};
	struct takt_log_place place = {.offset = 0};
	int rc;

	do {
		if (on_wake(fg) < 0)
			return -ECANCELED;
		rc = 0;
		if (!fg->output_gone && !place.over)
			rc = takt_log_stream(fg->cli, fg->job.id, true, &patience, &place, err);
		if (lost_output(fg, rc))
			rc = 0;
		if (rc == 0)
			rc = wait_silently(fg, &patience, err);
		place.over = place.over && takt_client_job_ended(&fg->job);
	} while (rc == 1 || (rc == 0 && !takt_client_job_ended(&fg->job)));
	return rc;
}

static void print_start(const struct foreground *fg)
{
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(4096);

	takt_job_state_text(&fg->job, &text);
	fprintf(stderr, "takt: job %llu %s: %s%s\n", (unsigned long long)fg->job.id, fg->job.name,
		takt_str_text(&text), fg->job.simulated ? " (SIMULATED GPUs)" : "");
}

static void print_end(const struct foreground *fg)
{
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(8192);

	takt_str_addf(&text, "takt: job %llu %s: ", (unsigned long long)fg->job.id, fg->job.name);
	takt_job_state_text(&fg->job, &text);
	takt_str_add(&text, "\n");
	takt_job_report_text(&fg->job, "takt:   ", &text);
	fputs(takt_str_text(&text), stderr);
}

/* Ctrl-C on a job that never started ends this program as Ctrl-C ends any. */
static int exit_status(const struct foreground *fg)
{
	if (fg->interrupts > 0 && !fg->job.started_ms)
		return 128 + SIGINT;
	return takt_client_exit_status(&fg->job);
}

static bool waits(const struct foreground *fg)
{
	return strcmp(fg->job.state, "waiting") == 0;
}

/* Says where it runs when it does. */
static int wait_aloud(struct foreground *fg)
{
	const struct takt_wait_line line = {.client = fg->control,
					    .job_id = fg->job.id,
					    .wake_fd = fg->signal_fd,
					    .woken = on_wake,
					    .ctx = fg};
	bool waited = waits(fg);
	int rc = waited ? takt_wait_line_show(&line) : 0;

	if (rc == 0 && waited && takt_client_job(fg->control, fg->job.id, &fg->job, NULL) == 0 &&
	    !waits(fg) && !takt_client_job_ended(&fg->job))
		print_start(fg);
	return rc;
}

static int stay(struct foreground *fg, struct takt_err *err)
{
	bool quiet = takt_cli_has(fg->cli, "quiet");
	int rc = connect_both(fg, err);

	if (!quiet)
		print_start(fg);
	if (rc == 0 && !quiet)
		rc = wait_aloud(fg);
	if (rc == 0)
		rc = follow(fg, err);
	if (rc == -ECANCELED)
		return 128 + SIGINT;
	if (rc < 0)
		return rc;
	if (fg->cli->json)
		fputs(takt_client_json(fg->cli->client), stderr);
	else if (!quiet)
		print_end(fg);
	return exit_status(fg);
}

/* What is wrong with the options is said first, wherever it is said. */
static int check_options(const struct takt_cli *cli, struct takt_err *err)
{
	struct takt_jobspec spec;
	int rc = takt_job_options_read(cli, &spec, err);

	takt_jobspec_fini(&spec);
	return rc < 0 ? rc : takt_terminal_check(err);
}

/* The terminal has keys for what signals are for elsewhere. */
static int run_on_terminal(struct takt_cli *cli, struct takt_err *err)
{
	TAKT_CLEANUP(freep) struct takt_job_view *job = takt_zalloc(sizeof(*job));
	int rc = job ? check_options(cli, err) : takt_err_set(err, -ENOMEM, "no memory for a job");

	if (rc < 0)
		return rc;
	takt_terminal_interrupt_cancels(); /* from before it is there: it is never left behind */
	rc = takt_place_job(cli, job, err);
	return rc == 0 ? takt_terminal_attend(cli, job->id, err) : rc;
}

static int run_with_output(struct takt_cli *cli, struct takt_err *err)
{
	TAKT_CLEANUP(freep) struct foreground *fg = takt_zalloc(sizeof(*fg));
	int rc;

	if (!fg)
		return takt_err_set(err, -ENOMEM, "no memory for a job");
	fg->cli = cli;
	rc = watch_signals(fg, err);
	if (rc == 0)
		rc = takt_place_job(cli, &fg->job, err);
	if (rc == 0)
		rc = stay(fg, err);
	if (cli->client)
		takt_client_wake_on(cli->client, -1, NULL, NULL);
	takt_client_free(fg->control);
	return rc;
}

static int run(struct takt_cli *cli, struct takt_err *err)
{
	struct takt_sbatch script;
	int rc = takt_sbatch_take(cli, &script, err);

	if (rc == 0)
		rc = takt_cli_has(cli, "pty") ? run_on_terminal(cli, err)
					      : run_with_output(cli, err);
	takt_sbatch_fini(&script);
	return rc;
}

static const struct takt_option options[] = {
	TAKT_JOB_OPTIONS,
	{"pty", 0, NULL, "on a terminal of its own, joined with this one", "staying with it"},
	TAKT_TERMINAL_OPTIONS,
	TAKT_SBATCH_OPTION,
	{"quiet", 'q', NULL, "no word of takt's own unless something fails"},
	{NULL},
};

static const struct takt_text_pair examples[] = {
	{"takt run -n 2 --clock 1410 -- python3 train.py", "two GPUs, at most 1410 MHz"},
	{"takt run --pty --idle-release 1h -- bash", "a shell with a GPU, given back when unused"},
	{"takt run -n 0 -- make", "no GPU; runs at once"},
	{NULL, NULL},
};

static const struct takt_text_pair exits[] = {
	{"N", "the job's own exit status"},
	{"128+N", "the job was killed by signal N"},
	{"126, 127", "the command cannot be executed, or does not exist"},
	{NULL, NULL},
};

const struct takt_verb takt_verb_run = {
	.name = "run",
	.summary = "run a job and stay with it",
	.usage = "[options] [--] COMMAND [ARGUMENT...]",
	.about =
		"Hands in a job and stays: its output (standard output and error together) comes "
		"to "
		"standard output, takt's own words and the report at the end go to standard error, "
		"and the exit status is the job's. With --json the report is JSON.\n"
		"SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 and SIGWINCH go to the job. "
		"Ctrl-C a second time cancels it (SIGTERM, then SIGKILL after its grace); a third "
		"time leaves it to that. A job that still waits is taken out of the queue by the "
		"first. When the terminal hangs up the job gets SIGHUP, as it would without takt: "
		"use "
		"takt submit for what shall outlive it. A restart of the daemon is waited out.\n"
		"With --pty the job has a terminal of its own, joined with this one: for shells, "
		"debuggers, Jupyter. All keys go to it, Ctrl-C too; Ctrl-] leaves it running, and "
		"takt attach comes back, as it does after a lost connection. Until it has its turn "
		"Ctrl-C takes it out of the queue. --idle-release ends it when nobody uses it.",
	.options = options,
	.examples = examples,
	.exits = exits,
	.operands = TAKT_OPERANDS_COMMAND,
	.min_operands = 1,
	.max_operands = -1,
	.command_follows = true,
	.run = run,
};
