/* SPDX-License-Identifier: Apache-2.0 */
/* See top_main.h: the loop that waits for keys, beside the threads that look. */
#include "top/top_main.h"

#include <errno.h>
#include <getopt.h>
#include <langinfo.h>
#include <locale.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "codec/json.h"
#include "top/deed_line.h"
#include "top/far_deed.h"
#include "top/look_line.h"
#include "top/sampler.h"
#include "top/terminal_front.h"
#include "top/top_deeds.h"
#include "top/top_json.h"

enum {
	ONCE_ROWS = 40, /* of a screen that goes into a file */
	ONCE_COLS = 120,
	MAX_OUT = 64 * 1024 * 1024,
};

struct machine {
	struct top *top; /* borrowed */
	struct takt_top_source_config config;
	struct takt_top_source *source;
	struct takt_top_sampler *sampler;
	struct takt_top_model model;
};

struct top {
	struct takt_top_source_config config; /* of all, but for the host */
	struct machine machines[TAKT_TOP_MAX_HOSTS];
	uint32_t count;		 /* this machine, or the hosts */
	struct machine *machine; /* the one that is shown */
	struct takt_top_ui ui;
	struct takt_top_layout layout;
	struct takt_cells cells;
	bool once, json, each_line;
	struct takt_look_words words; /* of the last line, with each_line */
	int pidfd;
	struct takt_far_deed *far; /* NULL = none is under way */

	/* Held by whoever has news, of keys or of a machine, while he draws them. The above is
	 * behind it once there are samplers. */
	pthread_mutex_t lock;
	bool closed;   /* nothing is drawn any more */
	int failed;    /* why a sampler's news could not be drawn, 0 = they were */
	int failed_fd; /* readable then */
};

/* One more than there may be is counted, and refused later. */
static void add_host(struct top *top, const char *name)
{
	if (top->count < TAKT_TOP_MAX_HOSTS)
		top->machines[top->count].config.host = name;
	top->count++;
}

static void read_option(struct top *top, int option)
{
	switch (option) {
	case 'h':
		add_host(top, optarg);
		break;
	case 's':
		top->config.socket = optarg;
		break;
	case 'n':
		top->config.nvml_path = optarg;
		break;
	case 'r':
		top->ui.rate_milli_hz = (uint32_t)strtoul(optarg, NULL, 10);
		break;
	case 'd':
		top->config.driver_only = true;
		break;
	case 'o':
		top->once = true;
		break;
	case 'j':
		top->json = true;
		break;
	case 'l':
		top->each_line = true;
		break;
	case 'a':
		top->cells.ascii = true;
		break;
	default:
		top->ui.allow_foreign = true;
	}
}

static bool read_options(struct top *top, int argc, char **argv)
{
	static const struct option options[] = {
		{"socket", required_argument, NULL, 's'},
		{"nvml-path", required_argument, NULL, 'n'},
		{"rate-milli", required_argument, NULL, 'r'},
		{"host", required_argument, NULL, 'h'},
		{"driver", no_argument, NULL, 'd'},
		{"once", no_argument, NULL, 'o'},
		{"json", no_argument, NULL, 'j'},
		{"each-line", no_argument, NULL, 'l'},
		{"ascii", no_argument, NULL, 'a'},
		{"allow-foreign", no_argument, NULL, 'f'},
		{NULL, 0, NULL, 0},
	};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == '?')
			return false;
		read_option(top, option);
	}
	return optind == argc && top->count <= TAKT_TOP_MAX_HOSTS &&
	       (!top->each_line || (top->json && !top->count)) &&
	       top->ui.rate_milli_hz >= TAKT_TOP_MIN_RATE &&
	       top->ui.rate_milli_hz <= TAKT_TOP_MAX_RATE;
}

/* In the terminal as it was. */
static int complain(int rc, const char *message)
{
	takt_front_close();
	fprintf(stderr, "takt top: %s\n", message);
	return takt_err_exit_status(rc);
}

/* This machine, or the hosts that were named. */
static int open_machines(struct top *top)
{
	bool hosts = top->count > 0;
	int rc = 0;

	top->count = hosts ? top->count : 1;
	top->machine = &top->machines[0];
	for (uint32_t i = 0; rc == 0 && i < top->count; i++) {
		struct machine *machine = &top->machines[i];
		const char *host = machine->config.host;

		machine->top = top;
		machine->config = top->config;
		machine->config.host = host;
		rc = takt_top_source_new(&machine->config, &machine->source);
	}
	return rc < 0 ? complain(rc, takt_err_sentence(rc)) : 0;
}

/* Without a look there is nothing to show. */
static int look(struct machine *machine)
{
	struct takt_top_snapshot snapshot;
	int rc;

	takt_top_source_look(machine->source, machine->top->words.log_job, &snapshot);
	if (snapshot.why_not[0])
		return complain(-TAKT_E_UNAVAILABLE, snapshot.why_not);
	rc = takt_top_model_take(&machine->model, &snapshot);
	return rc < 0 ? complain(rc, takt_err_sentence(rc)) : 0;
}

static int draw(struct top *top, int rows, int cols)
{
	int rc = 0;

	if (top->cells.rows != rows || top->cells.cols != cols)
		rc = takt_cells_resize(&top->cells, rows, cols);
	if (rc < 0)
		return rc;
	takt_top_layout(&top->ui, &top->machine->model, rows, cols, &top->layout);
	takt_top_settle(&top->ui, &top->machine->model, &top->layout);
	takt_top_draw(&top->cells, &top->ui, &top->machine->model, &top->layout);
	return 0;
}

static int from_env(const char *name, int otherwise)
{
	const char *text = getenv(name);
	unsigned long long value;

	return text && takt_parse_u64(text, 10, 1000, &value) == 0 ? (int)value : otherwise;
}

static int print_text(const struct takt_str *text)
{
	int rc = text->rc;

	if (rc == 0 &&
	    (fwrite(takt_str_text(text), 1, text->len, stdout) != text->len || fflush(stdout) != 0))
		rc = errno ? -errno : -EIO;
	return rc < 0 ? complain(rc, takt_err_sentence(rc)) : 0;
}

static int print_look(struct top *top)
{
	struct takt_str out = TAKT_STR(MAX_OUT);
	struct winsize size;
	int rows = ONCE_ROWS, cols = ONCE_COLS, rc;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row && size.ws_col) {
		rows = size.ws_row - 1;
		cols = size.ws_col;
	}
	top->ui.focus = TAKT_PANES; /* no cursor */
	rc = top->json ? takt_top_to_json(&top->machine->model.now, &out)
		       : draw(top, from_env("LINES", rows), from_env("COLUMNS", cols));
	if (rc == 0 && !top->json)
		rc = takt_cells_to_text(&top->cells, &out);
	rc = rc < 0 ? complain(rc, takt_err_sentence(rc)) : print_text(&out);
	takt_str_fini(&out);
	return rc;
}

/* Steps of graphs, which are looks. */
static uint32_t step_ms(const struct top *top)
{
	return 1000 * 1000 / top->ui.rate_milli_hz;
}

/* One after the other; a machine that does not answer does not stop the next. */
static int print_once(struct top *top)
{
	int first_bad = 0;

	for (uint32_t i = 0; i < top->count; i++) {
		int status;

		top->machine = &top->machines[i];
		top->machine->config.past_step_ms =
			top->json ? top->words.past_step_ms : step_ms(top);
		status = look(top->machine);
		if (status == 0)
			status = print_look(top);
		first_bad = first_bad ? first_bad : status;
	}
	return first_bad;
}

static int do_told(struct top *top, const char *text, size_t len)
{
	TAKT_CLEANUP(strp) struct takt_str answer = TAKT_STR(MAX_OUT);
	struct takt_err err = {0};
	struct takt_deed deed;

	if (takt_deed_from_line(text, len, &deed, &err) == 0) {
		takt_top_do_told(&top->ui, &deed, top->config.socket);
	} else {
		top->ui.notice_bad = true;
		takt_strcpy(top->ui.notice, sizeof(top->ui.notice), err.msg);
	}
	takt_deed_answer_to_line(top->ui.notice_bad, top->ui.notice, &answer);
	return print_text(&answer);
}

/* For another takt top, which asks for each look with a line, until it has no more. A line with a
 * deed is done instead; of any other its words of look_line.h are heeded. */
static int print_each_line(struct top *top)
{
	char line[TAKT_DEED_LINE];
	int status = 0, c = 0;

	while (status == 0 && c != EOF) {
		size_t len = 0;

		while ((c = getchar()) != EOF && c != '\n')
			if (len < sizeof(line))
				line[len++] = (char)c;
		if (c != '\n')
			break;
		if (len && line[0] == '{') {
			status = do_told(top, line, len);
		} else {
			line[len < sizeof(line) ? len : len - 1] = '\0';
			takt_look_from_line(line, &top->words);
			status = print_once(top);
		}
	}
	return status;
}

/* What is of another machine, by whoever answers there. */
static void obey_far(struct top *top, const struct takt_deed *deed)
{
	const char *host = top->machines[deed->host].config.host;
	struct takt_top_ui *ui = &top->ui;
	struct takt_err err = {0};

	if (deed->kind != TAKT_DEED_SIGNAL && deed->kind != TAKT_DEED_CANCEL &&
	    deed->kind != TAKT_DEED_HOLD && deed->kind != TAKT_DEED_REQUEUE)
		return;
	ui->notice_bad = true;
	if (top->far)
		takt_strcpy(ui->notice, sizeof(ui->notice),
			    "what was told before has no answer yet; tell it again");
	else if (takt_far_deed_begin(host, deed, ui->allow_foreign, &top->far, &err) < 0)
		snprintf(ui->notice, sizeof(ui->notice), "%.60s: %.160s", host, err.msg);
	else
		ui->notice_bad = false;
	if (!ui->notice_bad)
		snprintf(ui->notice, sizeof(ui->notice), "%.60s is told", host);
}

static void hear_far(struct top *top)
{
	if (!top->far || !takt_far_deed_over(top->far, &top->ui))
		return;
	takt_far_deed_free(top->far);
	top->far = NULL;
}

static bool obey(struct top *top, const struct takt_deed *deed)
{
	for (uint32_t i = 0; deed->kind == TAKT_DEED_RATE && i < top->count; i++)
		takt_top_sampler_rate(top->machines[i].sampler, top->ui.rate_milli_hz);
	if (deed->kind == TAKT_DEED_LOG)
		takt_top_sampler_log(top->machine->sampler, deed->job_id);
	if (top->ui.hosts.count)
		obey_far(top, deed);
	else
		takt_top_do(&top->ui, deed, top->config.socket, &top->pidfd);
	return deed->kind != TAKT_DEED_QUIT;
}

/* False: the end. */
static bool read_keys(struct top *top)
{
	struct takt_front_event event;
	struct takt_deed deed;
	bool more = true;

	while (more && takt_front_next(&event)) {
		deed.kind = TAKT_DEED_NONE;
		if (event.kind == TAKT_FRONT_CLICK)
			takt_top_click(&top->ui, &top->machine->model, &top->layout, event.row,
				       event.col, event.turn, event.twice, &deed);
		else if (event.kind == TAKT_FRONT_KEY && event.key)
			takt_top_press(&top->ui, &top->machine->model, &top->layout, event.key,
				       &deed);
		more = obey(top, &deed);
		top->machine = &top->machines[top->ui.hosts.shown];
		takt_top_settle(&top->ui, &top->machine->model, &top->layout);
	}
	return more;
}

static int keep_news(struct machine *machine, struct takt_top_snapshot *snapshot)
{
	int rc = 0;

	if (machine->top->ui.paused)
		takt_top_keep_queue(&machine->model.now, snapshot);
	else
		rc = takt_top_model_take(&machine->model, snapshot);
	if (machine->top->ui.paused || rc < 0)
		takt_top_snapshot_fini(snapshot);
	return rc;
}

static int draw_and_show(struct top *top)
{
	int rows, cols, rc;

	takt_front_size(&rows, &cols);
	rc = draw(top, rows, cols);
	if (rc == 0)
		takt_front_show(&top->cells);
	return rc;
}

/* A sampler's thread draws what it brings: waking the one that waits for keys would cost more. */
static void take_news(void *ctx, struct takt_top_snapshot *snapshot)
{
	struct machine *machine = ctx;
	struct top *top = machine->top;
	int rc = 0;

	pthread_mutex_lock(&top->lock);
	if (top->closed) {
		takt_top_snapshot_fini(snapshot);
	} else {
		rc = keep_news(machine, snapshot);
		rc = rc < 0 ? rc : draw_and_show(top);
	}
	if (rc < 0) {
		top->failed = rc;
		(void)eventfd_write(top->failed_fd, 1);
	}
	pthread_mutex_unlock(&top->lock);
}

/* 1 = the end. */
static int take_keys(struct top *top, bool hung_up)
{
	int rc;

	pthread_mutex_lock(&top->lock);
	rc = top->failed;
	if (rc == 0 && (!read_keys(top) || hung_up))
		rc = 1;
	hear_far(top);
	if (rc == 0)
		rc = draw_and_show(top);
	pthread_mutex_unlock(&top->lock);
	return rc;
}

static int loop(struct top *top)
{
	struct pollfd fds[] = {
		{STDIN_FILENO, POLLIN, 0}, {top->failed_fd, POLLIN, 0}, {-1, POLLIN, 0}};
	int rc = take_keys(top, false);

	while (rc == 0) {
		fds[2].fd = takt_far_deed_fd(top->far);
		/* What another machine was told is given up after a time. */
		if (poll(fds, TAKT_ARRAY_LEN(fds), top->far ? 1000 : -1) < 0 && errno != EINTR)
			return -errno;
		rc = take_keys(top, fds[0].revents & (POLLHUP | POLLERR));
	}
	return rc < 0 ? rc : 0;
}

/* Hosts are waited for on the screen: one that does not answer must not stop the others. */
static void announce_hosts(struct top *top)
{
	struct takt_top_hosts *hosts = &top->ui.hosts;

	hosts->count = top->count;
	for (uint32_t i = 0; i < top->count; i++) {
		struct machine *machine = &top->machines[i];

		hosts->at[i].name = machine->config.host;
		hosts->at[i].model = &machine->model;
		machine->model.lost = true;
		snprintf(machine->model.lost_why, sizeof(machine->model.lost_why),
			 "%.60s: no answer yet", machine->config.host);
	}
}

/* What was before the first screen is asked for behind it, so that it comes no later. */
static int start_samplers(struct top *top)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < top->count; i++) {
		top->machines[i].config.past_step_ms = step_ms(top);
		rc = takt_top_sampler_start(
			top->machines[i].source, top->ui.rate_milli_hz,
			(struct takt_top_listener){take_news, &top->machines[i]},
			&top->machines[i].sampler);
	}
	return rc;
}

/* A source that hangs is left to the end of the process. */
static void stop_samplers(struct top *top)
{
	for (uint32_t i = 0; i < top->count; i++)
		if (!takt_top_sampler_stop(top->machines[i].sampler))
			top->machines[i].source = NULL;
}

/* Nobody draws from here on, also no sampler that comes out of a daemon or driver later. */
static void close_front(struct top *top)
{
	pthread_mutex_lock(&top->lock);
	top->closed = true;
	takt_front_close();
	pthread_mutex_unlock(&top->lock);
}

/* The terminal is readied while daemon or driver is waited for; of looks to come it is none of the
 * business.
 */
static int first_look(struct machine *machine)
{
	int rc;

	machine->config.meanwhile = takt_front_begin;
	rc = look(machine);
	machine->config.meanwhile = NULL;
	return rc;
}

static int show(struct top *top)
{
	struct takt_err err = {0};
	int rc = 0;

	if (top->machine->config.host)
		announce_hosts(top);
	else
		rc = first_look(top->machine);
	if (rc != 0)
		return rc;
	rc = takt_front_open(&err);
	if (rc < 0)
		return complain(rc, err.msg);
	top->failed_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rc = top->failed_fd < 0 ? -errno : draw_and_show(top);
	if (rc == 0)
		rc = start_samplers(top);
	if (rc == 0)
		rc = loop(top);
	close_front(top);
	stop_samplers(top);
	return rc < 0 ? complain(rc, takt_err_sentence(rc)) : 0;
}

static void close_machines(struct top *top)
{
	for (uint32_t i = 0; i < top->count; i++) {
		takt_top_model_fini(&top->machines[i].model);
		takt_top_source_free(top->machines[i].source);
	}
}

static int work(struct top *top)
{
	int status = open_machines(top);

	if (status != 0)
		return status;
	if (top->each_line)
		return print_each_line(top);
	return top->once || top->json ? print_once(top) : show(top);
}

int takt_top_main(int argc, char **argv)
{
	static struct top top = {
		.ui = {.rate_milli_hz = 1000}, .pidfd = -1, .lock = PTHREAD_MUTEX_INITIALIZER};
	int status;

#ifdef M_ARENA_MAX
	/* The few threads take turns; a heap for each would cost its setting up and its memory. */
	mallopt(M_ARENA_MAX, 1);
#endif
	setlocale(LC_CTYPE, "");
	takt_json_init();
	if (!read_options(&top, argc, argv))
		return complain(-TAKT_E_USAGE, "wrong use; 'takt top --help' tells the right one");
	if (strcmp(nl_langinfo(CODESET), "UTF-8") != 0)
		top.cells.ascii = true;
	top.ui.own_uid = geteuid();
	top.ui.table = TAKT_PANE_JOBS;
	top.ui.focus = TAKT_PANE_JOBS;
	status = work(&top);
	close_machines(&top);
	takt_cells_fini(&top.cells);
	return status;
}
