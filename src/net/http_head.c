/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libmicrohttpd 0.9.75 takes all of these, at its strict level too. It does not tell how lines
 * ended; but it leaves them where it read them, with NULs in place of their ends, so that the
 * distance of what it hands over says it: two bytes from a line to the next, one from a part of the
 * first line to the next. From 0.9.77 on it has
 * levels of discipline of its own, and may lay lines out otherwise.
 */
#include "net/http_head.h"

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

enum {
	LINE_END = 2, /* CR LF */
};

/* Headers that say what a request is and who asks: of two, one reader takes the first, another the
 * last. */
static const struct {
	const char *name, *twice;
} once[] = {
	{"Host", "there are two Host headers"},
	{"Content-Length", "there are two Content-Length headers"},
	{"Content-Type", "there are two Content-Type headers"},
	{"Authorization", "there are two Authorization headers"},
	{"Origin", "there are two Origin headers"},
	{"Sec-Fetch-Site", "there are two Sec-Fetch-Site headers"},
};
enum {
	ONCE = sizeof(once) / sizeof(once[0]),
	LENGTH = 1, /* of them */
};

static const char wrong_target[] = "the first line must be METHOD TARGET HTTP/1.1, without control "
				   "characters, %00 or more spaces";

struct head {
	unsigned seen[ONCE], codings;
	const char *coding;
	const char *line_end; /* of the line before; NULL = lines are not looked at */
	const char *wrong;
};

static bool leaves_lines_in_place(void)
{
	const char *version = MHD_get_version();

	return strcmp(version, "0.9.73") >= 0 && strcmp(version, "0.9.77") < 0;
}

static bool is_token(const char *name, size_t len)
{
	static const char others[] = "!#$%&'*+-.^_`|~";

	for (size_t i = 0; i < len; i++) {
		char c = name[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      (c && strchr(others, c))))
			return false;
	}
	return len > 0;
}

static bool is_text(const char *value, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (((unsigned char)value[i] < ' ' && value[i] != '\t') || value[i] == 0x7f)
			return false;
	return true;
}

static bool is_called(const char *name, size_t len, const char *known)
{
	return strlen(known) == len && strncasecmp(name, known, len) == 0;
}

static enum MHD_Result look_at(void *ctx, enum MHD_ValueKind kind, const char *name,
			       size_t name_len, const char *value, size_t value_len)
{
	struct head *head = ctx;

	if (!value)
		value = "";
	if (!is_token(name, name_len))
		head->wrong = "a header's name has a character that it may not have";
	else if (!is_text(value, value_len))
		head->wrong = "a header's value has a control character";
	else if (head->line_end && name != head->line_end + LINE_END)
		head->wrong = "each line must end in CR LF and be no continuation";
	if (head->line_end)
		head->line_end = value + value_len;
	for (size_t i = 0; i < ONCE; i++)
		head->seen[i] += is_called(name, name_len, once[i].name);
	if (is_called(name, name_len, "Transfer-Encoding")) {
		head->codings++;
		head->coding = value;
	}
	return head->wrong ? MHD_NO : MHD_YES;
}

/* The last line's end, and the empty line. */
static bool ends_well(struct MHD_Connection *connection, const char *begin, const char *line_end)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);

	return !info || begin + info->header_size == line_end + 2 * LINE_END;
}

static const char *wrong_together(const struct head *head, const char *version)
{
	for (size_t i = 0; i < ONCE; i++)
		if (head->seen[i] > 1)
			return once[i].twice;
	if (head->codings > 0 && head->seen[LENGTH] > 0)
		return "there are both Content-Length and Transfer-Encoding";
	if (head->codings > 1 || (head->coding && strcasecmp(head->coding, "chunked") != 0))
		return "the Transfer-Encoding must be 'chunked'";
	if (head->codings > 0 && strcmp(version, MHD_HTTP_VERSION_1_1) != 0)
		return "there is a Transfer-Encoding in a request that is not HTTP/1.1";
	return NULL;
}

struct takt_http_target takt_http_target_of(const char *uri)
{
	struct takt_http_target target = {uri, uri + strcspn(uri, " ")};

	/* Where it has what it must not have it ends early, and is found wrong with the version. */
	for (const char *c = uri; c < target.end; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f || strncmp(c, "%00", 3) == 0)
			target.end = c;
	return target;
}

const char *takt_http_head_wrong(struct MHD_Connection *connection, const char *method,
				 const struct takt_http_target *target, const char *version)
{
	bool lines = leaves_lines_in_place();
	struct head head = {.line_end = lines ? version + strlen(version) : NULL};

	if (lines && target->begin &&
	    (target->begin != method + strlen(method) + 1 || version != target->end + 1))
		return wrong_target;
	(void)MHD_get_connection_values_n(connection, MHD_HEADER_KIND, look_at, &head);
	if (head.wrong)
		return head.wrong;
	if (lines && !ends_well(connection, method, head.line_end))
		return "each line must end in CR LF and be no continuation";
	return wrong_together(&head, version);
}
