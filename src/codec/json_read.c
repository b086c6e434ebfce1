/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guard in front of cJSON. One pass over the bytes checks what cJSON is lax about; the grammar
 * of objects and lists is left to cJSON.
 */
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "codec/json.h"

enum {
	MAX_NUMBER = 400, /* bytes; the longest that stands for a double has 309 and a fraction */
};
#define EXACT 9007199254740992.0 /* 2^53 */

struct scan {
	const char *text;
	size_t len, at;
	unsigned depth;
	const char *wrong;
};

/* cJSON does not tell want of memory from bad grammar; its allocator does. In static space also
 * where this is part of a module: LeakSanitizer cannot bear what is made at the first use. */
static _Thread_local bool starved __attribute__((tls_model("initial-exec")));

static void *json_alloc(size_t size)
{
	void *p = takt_alloc(size);

	starved = starved || !p;
	return p;
}

void takt_json_init(void)
{
	cJSON_Hooks hooks = {.malloc_fn = json_alloc, .free_fn = takt_free};

	cJSON_InitHooks(&hooks);
}

static bool fail(struct scan *scan, const char *wrong)
{
	scan->wrong = wrong;
	return false;
}

static int hex4(const struct scan *scan, size_t at)
{
	int value = 0;

	for (size_t i = at; i < at + 4; i++) {
		int c = i < scan->len ? scan->text[i] | 0x20 : 0;

		if (c >= '0' && c <= '9')
			value = value * 16 + c - '0';
		else if (c >= 'a' && c <= 'f')
			value = value * 16 + c - 'a' + 10;
		else
			return -1;
	}
	return value;
}

/* At the backslash. */
static bool scan_escape(struct scan *scan)
{
	char c = scan->at + 1 < scan->len ? scan->text[scan->at + 1] : '\0';
	int code;

	if (c != 'u') {
		scan->at += 2;
		return c != '\0' && strchr("\"\\/bfnrt", c) ? true : fail(scan, "unknown escape");
	}
	code = hex4(scan, scan->at + 2);
	if (code < 0)
		return fail(scan, "\\u needs four hexadecimal digits");
	if (code == 0)
		return fail(scan, "NUL is not allowed in text");
	scan->at += 6;
	return true;
}

/* At the opening quote. */
static bool scan_text(struct scan *scan)
{
	for (scan->at++; scan->at < scan->len;) {
		const char *c = scan->text + scan->at;
		size_t n = takt_utf8_length(c, scan->len - scan->at);

		if (*c == '"') {
			scan->at++;
			return true;
		}
		if (n == 0)
			return fail(scan, "not UTF-8");
		if ((unsigned char)*c < 0x20)
			return fail(scan, "control character in text");
		if (*c != '\\')
			scan->at += n;
		else if (!scan_escape(scan))
			return false;
	}
	return fail(scan, "text has no end");
}

/* Whether the digits at text, without sign, stand for a whole number. */
static bool is_whole_text(const char *text, size_t len)
{
	size_t point = strcspn(text, ".eE"), end = strcspn(text, "eE"), last = 0;
	long long exponent = end < len ? strtoll(text + end + 1, NULL, 10) : 0;

	/* The last digit that is not 0, counted as places behind the point. */
	for (size_t i = 0; i < end; i++)
		if (text[i] != '0' && text[i] != '.')
			last = i + 1;
	if (last == 0)
		return true;
	return last <= point ? (long long)(point - last) + exponent >= 0
			     : exponent >= (long long)(last - point - 1);
}

bool takt_json_number_keeps(const char *text, size_t len)
{
	char number[MAX_NUMBER + 1];
	double value;

	if (len > MAX_NUMBER)
		return false;
	memcpy(number, text, len);
	number[len] = '\0';
	value = strtod(number, NULL);
	return !(value >= -EXACT && value <= EXACT) || value != (double)(long long)value ||
	       is_whole_text(number + (*number == '-' || *number == '+'),
			     strlen(number) - (*number == '-' || *number == '+'));
}

static size_t digits(const struct scan *scan, size_t at)
{
	size_t n = 0;

	while (at + n < scan->len && scan->text[at + n] >= '0' && scan->text[at + n] <= '9')
		n++;
	return n;
}

static bool is_at(const struct scan *scan, size_t at, const char *set)
{
	return at < scan->len && scan->text[at] != '\0' && strchr(set, scan->text[at]);
}

static bool scan_number(struct scan *scan)
{
	size_t at = scan->at + (scan->text[scan->at] == '-'), n = digits(scan, at);

	if (n == 0 || (n > 1 && scan->text[at] == '0'))
		return fail(scan, "not a number");
	at += n;
	if (is_at(scan, at, ".")) {
		n = digits(scan, at + 1);
		if (n == 0)
			return fail(scan, "not a number");
		at += 1 + n;
	}
	if (is_at(scan, at, "eE")) {
		at += is_at(scan, at + 1, "+-") ? 2 : 1;
		n = digits(scan, at);
		if (n == 0)
			return fail(scan, "not a number");
		at += n;
	}
	if (is_at(scan, at, "+-.0123456789eE"))
		return fail(scan, "not a number");
	if (!takt_json_number_keeps(scan->text + scan->at, at - scan->at))
		return fail(scan, "a number that only rounding would make whole");
	scan->at = at;
	return true;
}

static bool scan_token(struct scan *scan)
{
	char c = scan->text[scan->at];

	if (c == '"')
		return scan_text(scan);
	if (c == '-' || (c >= '0' && c <= '9'))
		return scan_number(scan);
	if ((c == '{' || c == '[') && ++scan->depth > TAKT_JSON_MAX_DEPTH)
		return fail(scan, "nested too deep");
	if ((c == '}' || c == ']') && scan->depth-- == 0)
		return fail(scan, "closes what was not opened");
	if (c == '\0' || !strchr("{}[]:, \t\r\ntruefalsn", c))
		return fail(scan, "unexpected character");
	scan->at++;
	return true;
}

static bool scan_all(struct scan *scan)
{
	while (scan->at < scan->len)
		if (!scan_token(scan))
			return false;
	return true;
}

static bool only_space(const char *text, const char *end)
{
	while (text < end && strchr(" \t\r\n", *text))
		text++;
	return text == end;
}

/* "byte 25", or beyond the first line "line 3, byte 25". `at` may be beyond the text, where it ends
 * too early. */
static int invalid(const char *text, size_t len, size_t at, const char *wrong, struct takt_err *err)
{
	unsigned line = 1;
	char where[24] = "";

	for (size_t i = 0; i < at && i < len; i++)
		line += text[i] == '\n';
	if (line > 1)
		snprintf(where, sizeof(where), "line %u, ", line);
	return takt_err_set(err, -TAKT_E_CORRUPT, "not valid JSON at %sbyte %zu%s%s", where, at,
			    wrong ? ": " : "", wrong ? wrong : "");
}

int takt_json_parse(const char *text, size_t len, size_t max, struct cJSON **ret,
		    struct takt_err *err)
{
	struct scan scan = {.text = text, .len = len};
	const char *end = text;
	cJSON *root;

	starved = false;
	if (len > max)
		return takt_err_set(err, -TAKT_E_LIMIT, "JSON of %zu bytes, the limit is %zu", len,
				    max);
	if (!scan_all(&scan))
		return invalid(text, len, scan.at, scan.wrong, err);
	root = cJSON_ParseWithLengthOpts(text, len, &end, false);
	if (root && only_space(end, text + len)) {
		*ret = root;
		return 0;
	}
	cJSON_Delete(root);
	if (starved)
		return takt_err_set(err, -ENOMEM, "no memory to read JSON");
	return invalid(text, len, (size_t)(end - text), NULL, err);
}
