/* SPDX-License-Identifier: Apache-2.0 */
/* See http_answer.h. */
#include "client/http_answer.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"

static struct takt_answer *of(http_parser *parser)
{
	return parser->data;
}

static void append(char *text, size_t size, const char *bytes, size_t len)
{
	size_t used = strlen(text), room = size - 1 - used;

	memcpy(text + used, bytes, len < room ? len : room);
	text[used + (len < room ? len : room)] = '\0';
}

static void keep_header(struct takt_answer *answer)
{
	unsigned long long number;

	if (strcasecmp(answer->name, "Takt-Log-Offset") == 0 &&
	    takt_parse_u64(answer->value, 0, INT64_MAX, &number) == 0) {
		answer->place.offset = number;
		answer->has_place = true;
	}
	if (strcasecmp(answer->name, "Takt-Log-Attempt") == 0 &&
	    takt_parse_u64(answer->value, 0, UINT32_MAX, &number) == 0)
		answer->place.attempt = (uint32_t)number;
	if (strcasecmp(answer->name, "Takt-Log-Live") == 0)
		answer->live = strcmp(answer->value, "true") == 0;
	answer->name[0] = answer->value[0] = '\0';
}

static int take_name(http_parser *parser, const char *bytes, size_t len)
{
	if (memchr(bytes, '\0', len))
		return -1; /* the parser lets it pass; no header has one (RFC 9110, 5.5) */
	if (of(parser)->value[0])
		keep_header(of(parser));
	append(of(parser)->name, sizeof(of(parser)->name), bytes, len);
	return 0;
}

static int take_value(http_parser *parser, const char *bytes, size_t len)
{
	if (memchr(bytes, '\0', len))
		return -1;
	append(of(parser)->value, sizeof(of(parser)->value), bytes, len);
	return 0;
}

static int end_headers(http_parser *parser)
{
	keep_header(of(parser));
	return 0;
}

static int take_body(http_parser *parser, const char *bytes, size_t len)
{
	return takt_str_addn(of(parser)->body, bytes, len) < 0;
}

static int end_message(http_parser *parser)
{
	of(parser)->whole = true;
	http_parser_pause(parser, 1);
	return 0;
}

void takt_answer_init(struct takt_answer *answer, struct takt_str *body)
{
	*answer = (struct takt_answer){.body = body};
	http_parser_init(&answer->parser, HTTP_RESPONSE);
	answer->parser.data = answer;
}

int takt_answer_take(struct takt_answer *answer, const char *bytes, size_t len)
{
	static const http_parser_settings settings = {
		.on_header_field = take_name,
		.on_header_value = take_value,
		.on_headers_complete = end_headers,
		.on_body = take_body,
		.on_message_complete = end_message,
	};

	if (answer->whole)
		return 0;
	http_parser_execute(&answer->parser, &settings, bytes, len);
	if (answer->body->rc < 0)
		return answer->body->rc;
	if (answer->whole)
		return 0;
	return len == 0 || HTTP_PARSER_ERRNO(&answer->parser) != HPE_OK ? -EPROTO : 0;
}
