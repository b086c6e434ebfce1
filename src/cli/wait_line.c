/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/wait_line.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/units.h"

enum {
	LOOK_MS = 500,
	COLUMNS = 80, /* of a terminal that does not say */
};

static const char clear_line[] = "\r\033[K";

static unsigned columns(void)
{
	struct winsize size;

	return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : COLUMNS;
}

static void add_start(const struct takt_start_view *start, struct takt_str *text)
{
	char when[TAKT_UNIT_TEXT], to[TAKT_UNIT_TEXT];

	takt_str_addf(text, "; starts %s", takt_when_text(start->starts_ms, when));
	if (start->starts_high_ms)
		takt_str_addf(text, " (%s to %s in 8 of 10 cases)",
			      takt_when_text(start->starts_low_ms, when),
			      takt_when_text(start->starts_high_ms, to));
	else
		takt_str_add(text, " as planned");
}

/* One short of the terminal's width, so that no cursor wraps. */
static void print(const struct takt_explain_view *view)
{
	TAKT_CLEANUP(strp) struct takt_str text = TAKT_STR(1024);

	takt_str_addf(&text, "takt: job %llu waits, ", (unsigned long long)view->id);
	if (!view->counted)
		takt_str_addf(&text, "%s", view->text);
	else if (view->ahead)
		takt_str_addf(&text, "%u before it", view->ahead);
	else
		takt_str_add(&text, "none before it");
	if (view->start.starts_ms)
		add_start(&view->start, &text);
	else if (view->counted)
		takt_str_addf(&text, "; %s", view->text);
	fprintf(stderr, "%s%.*s", clear_line, (int)columns() - 1, takt_str_text(&text));
	fflush(stderr);
}

int takt_wait_line_show(const struct takt_wait_line *line)
{
	struct pollfd wake = {.fd = line->wake_fd, .events = POLLIN};
	struct takt_explain_view view;
	struct takt_err err;
	bool shown = false;
	int rc = 0;

	if (isatty(STDERR_FILENO) != 1)
		return 0;
	while (rc == 0 && takt_client_explain(line->client, line->job_id, &view, &err) == 0 &&
	       strcmp(view.state, "waiting") == 0) {
		print(&view);
		shown = true;
		(void)poll(&wake, 1, LOOK_MS);
		rc = line->woken(line->ctx);
	}
	if (shown)
		fputs(clear_line, stderr);
	return rc;
}
