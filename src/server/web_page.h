/* SPDX-License-Identifier: Apache-2.0 */
/* The web page inside the binary: web/dist/index.html, as tools/embed_page.py wrote it down. */
#ifndef TAKT_SERVER_WEB_PAGE_H
#define TAKT_SERVER_WEB_PAGE_H

#include <stddef.h>

struct takt_web_page {
	const char *plain, *gzip;
	size_t plain_len, gzip_len;
	const char *etag; /* with its quotes */
	const char
		*policy; /* Content-Security-Policy: its own scripts and styles by their hashes */
};
extern const struct takt_web_page takt_web_page;

#endif
