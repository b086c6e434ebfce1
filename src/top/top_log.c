/* SPDX-License-Identifier: Apache-2.0 */
/* See top_log.h. */
#include "top/top_log.h"

#include <string.h>

#include "base/mem.h"
#include "base/str.h"

enum {
	MOST_PARTS = 8, /* read at a look; the next one reads on */
	TAB = 8,
	ESC = 27,
};

static size_t count_lines(const char *text, size_t len)
{
	size_t lines = 0;

	for (size_t i = 0; i < len; i++)
		lines += text[i] == '\n';
	return lines;
}

static void drop_front(struct takt_top_log *log, size_t bytes)
{
	log->dropped_lines += count_lines(log->text.s, bytes);
	log->text.len -= bytes;
	memmove(log->text.s, log->text.s + bytes, log->text.len + 1);
}

/* So many bytes have to go: with them the rest of their last line. */
static void make_room(struct takt_top_log *log, size_t bytes)
{
	const char *end;

	if (bytes == 0 || log->text.len == 0)
		return;
	bytes = bytes < log->text.len ? bytes : log->text.len;
	end = memchr(log->text.s + bytes - 1, '\n', log->text.len - bytes + 1);
	drop_front(log, end ? (size_t)(end - log->text.s) + 1 : log->text.len);
}

void takt_top_log_add(struct takt_top_log *log, const char *bytes, size_t len)
{
	size_t over = len > TAKT_TOP_LOG_BYTES ? len - TAKT_TOP_LOG_BYTES : 0;

	log->text.max = TAKT_TOP_LOG_BYTES + 1;
	if (over) {
		log->dropped_lines += count_lines(bytes, over);
		bytes += over;
		len -= over;
	}
	if (log->text.len + len > TAKT_TOP_LOG_BYTES)
		make_room(log, log->text.len + len - TAKT_TOP_LOG_BYTES);
	for (const char *at = bytes, *end = bytes + len; at < end;) {
		const char *nul = memchr(at, '\0', (size_t)(end - at));
		size_t n = (size_t)((nul ? nul : end) - at);

		(void)takt_str_addn(&log->text, at, n);
		if (nul)
			(void)takt_str_addn(&log->text, "?", 1);
		at += n + (nul ? 1 : 0);
	}
}

static void begin_anew(struct takt_top_log *log)
{
	takt_str_reset(&log->text);
	log->dropped_lines = 0;
}

void takt_top_log_follow(struct takt_client *client, struct takt_top_log *log,
			 struct takt_log_place *place)
{
	struct takt_err err = {0};
	size_t len = 1;
	int rc = 0;

	place->tail = TAKT_TOP_LOG_BYTES;
	for (int i = 0; rc == 0 && len > 0 && i < MOST_PARTS; i++) {
		uint32_t attempt = place->attempt;
		const char *bytes;

		rc = takt_client_log(client, log->job_id, 0, place, &bytes, &len, &err);
		if (rc == 0 && place->attempt != attempt)
			begin_anew(log);
		if (rc == 0)
			takt_top_log_add(log, bytes, len);
	}
	log->attempt = place->attempt;
	log->over = place->over;
	takt_strcpy(log->why_not, sizeof(log->why_not), rc < 0 ? err.msg : "");
}

int takt_top_log_copy(const struct takt_top_log *from, struct takt_top_log *ret)
{
	struct takt_str text = TAKT_STR(TAKT_TOP_LOG_BYTES + 1);
	int rc = takt_str_addn(&text, takt_str_text(&from->text), from->text.len);

	if (rc < 0) {
		takt_str_fini(&text);
		return rc;
	}
	*ret = *from;
	ret->text = text;
	return 0;
}

void takt_top_log_fini(struct takt_top_log *log)
{
	takt_str_fini(&log->text);
	*log = (struct takt_top_log){.job_id = 0};
}

size_t takt_top_log_lines(const struct takt_top_log *log)
{
	const char *text = takt_str_text(&log->text);
	size_t len = log->text.len;

	return count_lines(text, len) + (len > 0 && text[len - 1] != '\n');
}

const char *takt_top_log_line(const struct takt_top_log *log, size_t line, size_t *ret_len)
{
	const char *at = takt_str_text(&log->text), *end = at + log->text.len, *stop;

	for (; line > 0 && at < end; line--) {
		stop = memchr(at, '\n', (size_t)(end - at));
		at = stop ? stop + 1 : end;
	}
	stop = memchr(at, '\n', (size_t)(end - at));
	*ret_len = (size_t)((stop ? stop : end) - at);
	return at;
}

/* Behind an escape sequence that begins at `at`. */
static const char *skip_escape(const char *at, const char *end)
{
	at++;
	if (at < end && *at != '[')
		return at + 1;
	for (at++; at < end && !(*at >= '@' && *at <= '~'); at++)
		;
	return at < end ? at + 1 : end;
}

void takt_top_log_plain(const char *line, size_t len, char ret[TAKT_TOP_LOG_LINE])
{
	const char *at = line, *end = line + len;
	size_t used = 0;

	if (end > line && end[-1] == '\r')
		end--;
	for (const char *c = line; c < end; c++)
		if (*c == '\r')
			at = c + 1;
	while (at < end && used + TAB < TAKT_TOP_LOG_LINE) {
		if (*at == ESC) {
			at = skip_escape(at, end);
			continue;
		}
		if (*at == '\t')
			do
				ret[used++] = ' ';
			while (used % TAB);
		else
			ret[used++] = *at;
		at++;
	}
	ret[used] = '\0';
}
