/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checks: each metric has HELP and TYPE once, before its series, which stand together; names
 * and labels are of the allowed letters, label values are escaped, values are numbers, no series
 * comes twice, counters end in _total (but for those of dcgm-exporter), the last line ends.
 */
#include "prom_check.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	MAX_NAMES = 512,
	MAX_SERIES = 8192,
	NAME_BYTES = 128,
	LINE_BYTES = 4096,
};

struct reader {
	char names[MAX_NAMES][NAME_BYTES]; /* metrics whose TYPE was seen */
	size_t name_count;
	char helped[NAME_BYTES]; /* metric of the last HELP */
	bool counter, histogram;
	char series[MAX_SERIES][512];
	size_t series_count;
};

static size_t name_length(const char *at)
{
	size_t n = 0;

	if (!isalpha((unsigned char)*at) && *at != '_' && *at != ':')
		return 0;
	while (isalnum((unsigned char)at[n]) || at[n] == '_' || at[n] == ':')
		n++;
	return n < NAME_BYTES ? n : 0;
}

static const char *check_help(struct reader *reader, const char *line)
{
	size_t n = name_length(line);

	if (n == 0 || line[n] != ' ' || line[n + 1] == '\0')
		return "HELP without a name and a text";
	for (const char *at = line + n; *at; at++)
		if (*at == '\\' && *++at != '\\' && *at != 'n')
			return "HELP with a wrong escape";
	snprintf(reader->helped, sizeof(reader->helped), "%.*s", (int)n, line);
	return NULL;
}

static const char *check_type(struct reader *reader, const char *line)
{
	size_t n = name_length(line);
	const char *kind = line + n + 1;

	if (n == 0 || strlen(reader->helped) != n || strncmp(reader->helped, line, n) != 0)
		return "TYPE does not follow its HELP";
	reader->counter = strcmp(kind, "counter") == 0;
	reader->histogram = strcmp(kind, "histogram") == 0;
	if (!reader->counter && !reader->histogram && strcmp(kind, "gauge") != 0)
		return "TYPE is neither counter nor gauge nor histogram";
	if (reader->counter && strncmp(line, "DCGM_", 5) != 0 &&
	    (n < 6 || strncmp(line + n - 6, "_total", 6) != 0))
		return "a counter's name must end in _total";
	for (size_t i = 0; i < reader->name_count; i++)
		if (strcmp(reader->names[i], reader->helped) == 0)
			return "the metric was described before";
	if (reader->name_count == MAX_NAMES)
		return "too many metrics";
	strcpy(reader->names[reader->name_count++], reader->helped);
	return NULL;
}

/* Behind the closing quote; NULL when the value is not right. */
static const char *skip_label_value(const char *at)
{
	if (*at++ != '"')
		return NULL;
	for (; *at != '"'; at++) {
		if (*at == '\\' && *++at != '\\' && *at != '"' && *at != 'n')
			return NULL;
		if ((unsigned char)*at < ' ')
			return NULL;
	}
	return at + 1;
}

/* Behind the closing brace. */
static const char *skip_labels(const char *at)
{
	do {
		size_t n = name_length(++at);

		if (n == 0 || memchr(at, ':', n) || at[n] != '=')
			return NULL;
		at = skip_label_value(at + n + 1);
		if (!at)
			return NULL;
	} while (*at == ',');
	return *at == '}' ? at + 1 : NULL;
}

static const char *remember_series(struct reader *reader, const char *line, size_t n)
{
	char series[512];

	if (n >= sizeof(series) || reader->series_count == MAX_SERIES)
		return "too much";
	snprintf(series, sizeof(series), "%.*s", (int)n, line);
	for (size_t i = 0; i < reader->series_count; i++)
		if (strcmp(reader->series[i], series) == 0)
			return "the series came before";
	strcpy(reader->series[reader->series_count++], series);
	return NULL;
}

/* Of the metric that was described last: a histogram's with what it has behind its name. */
static bool is_its(const struct reader *reader, const char *line, size_t n)
{
	static const char *const suffixes[] = {"_bucket", "_sum", "_count"};
	size_t len = strlen(reader->helped);

	if (n < len || strncmp(reader->helped, line, len) != 0)
		return false;
	for (size_t i = 0; reader->histogram && i < 3; i++)
		if (n - len == strlen(suffixes[i]) &&
		    strncmp(line + len, suffixes[i], n - len) == 0)
			return true;
	return n == len && !reader->histogram;
}

static const char *check_series(struct reader *reader, const char *line)
{
	size_t n = name_length(line);
	const char *at = line + n;
	char *end;

	if (n == 0 || !is_its(reader, line, n))
		return "the series does not stand below its TYPE";
	if (*at == '{')
		at = skip_labels(at);
	if (!at || *at != ' ')
		return "wrong labels";
	(void)strtod(at + 1, &end);
	if (end == at + 1 || *end != '\0' || isspace((unsigned char)at[1]))
		return "the value is no number";
	return remember_series(reader, line, (size_t)(at - line));
}

static const char *check_line(struct reader *reader, const char *line)
{
	if (strncmp(line, "# HELP ", 7) == 0)
		return check_help(reader, line + 7);
	if (strncmp(line, "# TYPE ", 7) == 0)
		return check_type(reader, line + 7);
	return check_series(reader, line);
}

const char *prom_check(const char *text, size_t len, size_t *ret_line)
{
	struct reader *reader = calloc(1, sizeof(*reader));
	const char *wrong = NULL;

	*ret_line = 0;
	if (!reader)
		return "out of memory";
	if (len == 0 || text[len - 1] != '\n' || strlen(text) != len)
		wrong = "the page does not end in a newline";
	while (*text && !wrong) {
		char line[LINE_BYTES];
		size_t n = strcspn(text, "\n");

		(*ret_line)++;
		if (n >= sizeof(line)) {
			wrong = "the line is too long";
			break;
		}
		memcpy(line, text, n);
		line[n] = '\0';
		wrong = check_line(reader, line);
		text += n + 1;
	}
	free(reader);
	return wrong;
}

bool prom_value(const char *text, const char *series, double *ret)
{
	size_t n = strlen(series);

	for (; *text; text += strcspn(text, "\n") + 1) {
		if (strncmp(text, series, n) == 0 && text[n] == ' ') {
			*ret = strtod(text + n + 1, NULL);
			return true;
		}
	}
	return false;
}

size_t prom_count(const char *text, const char *metric)
{
	size_t n = strlen(metric), count = 0;

	for (; *text; text += strcspn(text, "\n") + 1)
		count += strncmp(text, metric, n) == 0 && (text[n] == '{' || text[n] == ' ');
	return count;
}
