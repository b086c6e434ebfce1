/* SPDX-License-Identifier: Apache-2.0 */
/* Text and names as JSON. */
#include <string.h>

#include "codec/json.h"

static void add_escaped(struct takt_str *out, unsigned char c)
{
	switch (c) {
	case '"':
		takt_str_add(out, "\\\"");
		break;
	case '\\':
		takt_str_add(out, "\\\\");
		break;
	case '\n':
		takt_str_add(out, "\\n");
		break;
	case '\t':
		takt_str_add(out, "\\t");
		break;
	default:
		takt_str_addf(out, "\\u%04x", c);
		break;
	}
}

/* Bytes at `text` that need nothing done to them. */
static size_t plain_length(const char *text, size_t len)
{
	size_t done = 0, n;

	while (done < len) {
		unsigned char c = (unsigned char)text[done];

		n = takt_utf8_length(text + done, len - done);
		if (n == 0 || c < 0x20 || c == 0x7f || c == '"' || c == '\\')
			break;
		done += n;
	}
	return done;
}

int takt_json_add_text(struct takt_str *out, const char *text)
{
	size_t len = strlen(text), n;

	takt_str_add(out, "\"");
	while (len > 0) {
		n = plain_length(text, len);
		takt_str_addn(out, text, n);
		text += n;
		len -= n;
		if (len == 0)
			break;
		if (takt_utf8_length(text, len) == 0)
			takt_str_add(out, "\xef\xbf\xbd");
		else
			add_escaped(out, (unsigned char)*text);
		text++;
		len--;
	}
	return takt_str_add(out, "\"");
}

int takt_json_add_name(struct takt_str *out, const char *name, bool first)
{
	if (!first)
		takt_str_add(out, ",");
	takt_json_add_text(out, name);
	return takt_str_add(out, ":");
}
