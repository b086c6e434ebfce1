/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A result as a page: web/dist/report.html, which is in the program, with the JSON document of
 * --json in it. The page draws what it finds there, without a network.
 */
#ifndef TAKT_CLI_REPORT_PAGE_H
#define TAKT_CLI_REPORT_PAGE_H

#include <stddef.h>

#include "cli/verb.h"

/* The page around its document; made by tools/embed_report.py. */
struct takt_report_parts {
	const unsigned char *before, *behind;
	size_t before_len, behind_len;
};
extern const struct takt_report_parts takt_report_parts;

/* Appends the page. What would end its <script> early, or be a line's end in JavaScript, is written
 * as an escape, so that the document is the same to whoever parses it. */
void takt_report_page(const struct takt_str *json, struct takt_str *out);

/* The page to the file of --html, if that is given; json's own failure is this one's, too. */
int takt_report_write(const struct takt_cli *cli, const struct takt_str *json,
		      struct takt_err *err);

#endif
