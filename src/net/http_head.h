/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the head of a request must not have, since two readers could understand it differently:
 * NULs, spaces and other control characters in the first line, two Hosts or Content-Lengths, a
 * length beside chunks, another coding, line ends that are no CR LF, folded lines, names that are
 * no names.
 */
#ifndef TAKT_NET_HTTP_HEAD_H
#define TAKT_NET_HTTP_HEAD_H

struct MHD_Connection;

/* Where the target of a request stands as it came ("/v1/jobs?a=b"), in libmicrohttpd's memory. Good
 * until that hands the request over. NULL = not known. */
struct takt_http_target {
	const char *begin, *end;
};

/* What is wrong, in static words; NULL = nothing. `method` and `version` as libmicrohttpd handed
 * them over. To be called when the head has been read, before the body is. */
const char *takt_http_head_wrong(struct MHD_Connection *connection, const char *method,
				 const struct takt_http_target *target, const char *version);

/* What libmicrohttpd told (MHD_OPTION_URI_LOG_CALLBACK), before it cuts and decodes the text. */
struct takt_http_target takt_http_target_of(const char *uri);

#endif
