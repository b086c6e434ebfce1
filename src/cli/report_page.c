/* SPDX-License-Identifier: Apache-2.0 */
/* The page of results, see the header. */
#include "cli/report_page.h"

#include <string.h>

enum {
	MAX_PAGE = 512 * 1024 * 1024
};

struct escape {
	const char *bytes, *json;
};

/* All of them stand inside strings of the document, where JSON takes any character by its number:
 * '<' begins "</script" and "<!--"; U+2028 and U+2029 end lines in JavaScript. */
static const struct escape escapes[] = {
	{"<", "\\u003c"},
	{"\xe2\x80\xa8", "\\u2028"},
	{"\xe2\x80\xa9", "\\u2029"},
};

static const struct escape *escape_at(const char *at)
{
	for (size_t i = 0; i < TAKT_ARRAY_LEN(escapes); i++)
		if (strncmp(at, escapes[i].bytes, strlen(escapes[i].bytes)) == 0)
			return &escapes[i];
	return NULL;
}

static void add_document(const char *at, struct takt_str *out)
{
	while (*at) {
		size_t plain = strcspn(at, "<\xe2");
		const struct escape *escape = escape_at(at + plain);

		takt_str_addn(out, at, plain);
		at += plain;
		if (escape) {
			takt_str_add(out, escape->json);
			at += strlen(escape->bytes);
		} else if (*at) {
			takt_str_addn(out, at++, 1);
		}
	}
}

void takt_report_page(const struct takt_str *json, struct takt_str *out)
{
	const struct takt_report_parts *page = &takt_report_parts;

	takt_str_addn(out, page->before, page->before_len);
	add_document(takt_str_text(json), out);
	takt_str_addn(out, page->behind, page->behind_len);
	if (json->rc < 0)
		out->rc = json->rc;
}

int takt_report_write(const struct takt_cli *cli, const struct takt_str *json, struct takt_err *err)
{
	TAKT_CLEANUP(strp) struct takt_str page = TAKT_STR(MAX_PAGE);

	if (!takt_cli_has(cli, "html"))
		return 0;
	takt_report_page(json, &page);
	return takt_cli_write_file(cli, "html", &page, err);
}
