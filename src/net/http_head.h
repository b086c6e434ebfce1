/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the head of a request must not have, since two readers could understand it differently: two
 * Hosts or Content-Lengths, a length beside chunks, another coding, line ends that are no CR LF,
 * folded lines, names that are no names.
 */
#ifndef TAKT_NET_HTTP_HEAD_H
#define TAKT_NET_HTTP_HEAD_H

struct MHD_Connection;

/* What is wrong, in static words; NULL = nothing. `method` and `version` as libmicrohttpd handed
 * them over. To be called when the head has been read, before the body is. */
const char *takt_http_head_wrong(struct MHD_Connection *connection, const char *method,
				 const char *version);

#endif
