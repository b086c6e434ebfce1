/* SPDX-License-Identifier: Apache-2.0 */
/* See top_main.h: the loop between the terminal and the thread that looks. */
#include "top/top_main.h"

#include <errno.h>
#include <getopt.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "codec/json.h"
#include "top/sampler.h"
#include "top/terminal_front.h"
#include "top/top_deeds.h"

enum {
	ONCE_ROWS = 40, /* of a screen that goes into a file */
	ONCE_COLS = 120,
	MAX_OUT = 64 * 1024 * 1024,
};

struct top {
	struct takt_top_source_config config;
	struct takt_top_source *source;
	struct takt_top_sampler *sampler;
	struct takt_top_model model;
	struct takt_top_ui ui;
	struct takt_top_layout layout;
	struct takt_cells cells;
	bool once, json;
	int pidfd;
};

static void read_option(struct top *top, int option)
{
	switch (option) {
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
		{"driver", no_argument, NULL, 'd'},
		{"once", no_argument, NULL, 'o'},
		{"json", no_argument, NULL, 'j'},
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
	return optind == argc && top->ui.rate_milli_hz >= TAKT_TOP_MIN_RATE &&
	       top->ui.rate_milli_hz <= TAKT_TOP_MAX_RATE;
}

static int complain(int rc, const char *message)
{
	fprintf(stderr, "takt top: %s\n", message);
	return takt_err_exit_status(rc);
}

/* The first look, without which there is nothing to show. */
static int first_look(struct top *top)
{
	struct takt_top_snapshot snapshot;
	int rc = takt_top_source_new(&top->config, &top->source);

	if (rc < 0)
		return complain(rc, takt_err_sentence(rc));
	takt_top_source_look(top->source, &snapshot);
	if (snapshot.why_not[0])
		return complain(-TAKT_E_UNAVAILABLE, snapshot.why_not);
	rc = takt_top_model_take(&top->model, &snapshot);
	return rc < 0 ? complain(rc, takt_err_sentence(rc)) : 0;
}

static int draw(struct top *top, int rows, int cols)
{
	int rc = 0;

	if (top->cells.rows != rows || top->cells.cols != cols)
		rc = takt_cells_resize(&top->cells, rows, cols);
	if (rc < 0)
		return rc;
	takt_top_layout(&top->ui, &top->model, rows, cols, &top->layout);
	takt_top_settle(&top->ui, &top->model, &top->layout);
	takt_top_draw(&top->cells, &top->ui, &top->model, &top->layout);
	return 0;
}

static int from_env(const char *name, int otherwise)
{
	const char *text = getenv(name);
	unsigned long long value;

	return text && takt_parse_u64(text, 10, 1000, &value) == 0 ? (int)value : otherwise;
}

static int print_once(struct top *top)
{
	struct takt_str out = TAKT_STR(MAX_OUT);
	struct winsize size;
	int rows = ONCE_ROWS, cols = ONCE_COLS, rc;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row && size.ws_col) {
		rows = size.ws_row - 1;
		cols = size.ws_col;
	}
	top->ui.focus = TAKT_PANES; /* no cursor */
	rc = top->json ? takt_top_to_json(&top->model.now, &out)
		       : draw(top, from_env("LINES", rows), from_env("COLUMNS", cols));
	if (rc == 0 && !top->json)
		rc = takt_cells_to_text(&top->cells, &out);
	if (rc == 0 &&
	    (fwrite(takt_str_text(&out), 1, out.len, stdout) != out.len || fflush(stdout) != 0))
		rc = errno ? -errno : -EIO;
	takt_str_fini(&out);
	return rc < 0 ? complain(rc, takt_err_sentence(rc)) : 0;
}

static bool obey(struct top *top, const struct takt_deed *deed)
{
	if (deed->kind == TAKT_DEED_RATE)
		takt_top_sampler_rate(top->sampler, top->ui.rate_milli_hz);
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
			takt_top_click(&top->ui, &top->model, &top->layout, event.row, event.col,
				       event.turn, event.twice, &deed);
		else if (event.kind == TAKT_FRONT_KEY && event.key)
			takt_top_press(&top->ui, &top->model, &top->layout, event.key, &deed);
		more = obey(top, &deed);
		takt_top_settle(&top->ui, &top->model, &top->layout);
	}
	return more;
}

static int take_news(struct top *top)
{
	struct takt_top_snapshot snapshot;
	int rc = 0;

	if (!takt_top_sampler_take(top->sampler, &snapshot))
		return 0;
	if (top->ui.paused) {
		takt_top_keep_queue(&top->model.now, &snapshot);
		takt_top_snapshot_fini(&snapshot);
	} else {
		rc = takt_top_model_take(&top->model, &snapshot);
	}
	return rc;
}

static int loop(struct top *top)
{
	struct pollfd fds[] = {{STDIN_FILENO, POLLIN, 0},
			       {takt_top_sampler_fd(top->sampler), POLLIN, 0}};
	int rows, cols, rc = 0;

	while (rc == 0) {
		takt_front_size(&rows, &cols);
		rc = draw(top, rows, cols);
		if (rc < 0)
			break;
		takt_front_show(&top->cells);
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return -errno;
		if (!read_keys(top) || fds[0].revents & (POLLHUP | POLLERR))
			return 0;
		rc = take_news(top);
	}
	return rc;
}

static int show(struct top *top)
{
	struct takt_err err = {0};
	int rc = takt_front_open(&err);

	if (rc < 0)
		return complain(rc, err.msg);
	rc = takt_top_sampler_start(top->source, top->ui.rate_milli_hz, &top->sampler);
	if (rc == 0)
		rc = loop(top);
	takt_front_close();
	if (!takt_top_sampler_stop(top->sampler))
		top->source = NULL;
	return rc < 0 ? complain(rc, takt_err_sentence(rc)) : 0;
}

int takt_top_main(int argc, char **argv)
{
	static struct top top = {.ui = {.rate_milli_hz = 1000}, .pidfd = -1};
	int status;

	setlocale(LC_CTYPE, "");
	takt_json_init();
	if (!read_options(&top, argc, argv))
		return complain(-TAKT_E_USAGE, "wrong use; 'takt top --help' tells the right one");
	if (strcmp(nl_langinfo(CODESET), "UTF-8") != 0)
		top.cells.ascii = true;
	top.ui.own_uid = geteuid();
	top.ui.table = TAKT_PANE_PROCS;
	top.ui.focus = TAKT_PANE_PROCS;
	status = first_look(&top);
	if (status == 0)
		status = top.once || top.json ? print_once(&top) : show(&top);
	takt_top_model_fini(&top.model);
	takt_cells_fini(&top.cells);
	takt_top_source_free(top.source);
	return status;
}
