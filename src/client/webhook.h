/* SPDX-License-Identifier: Apache-2.0 */
/* Hands a message to somebody else's HTTP server. Only who was asked to calls this. */
#ifndef TAKT_CLIENT_WEBHOOK_H
#define TAKT_CLIENT_WEBHOOK_H

#include "base/err.h"

/* http:// or https:// and nothing else. */
int takt_webhook_check(const char *url, struct takt_err *err);
/* POSTs the JSON; certificates are checked, redirects are not followed. Takes 10 s at most.
 * Anything but a 2xx answer is -TAKT_E_UNAVAILABLE, no libcurl here -TAKT_E_UNSUPPORTED. The
 * message has the server, never the path of the URL, in which secrets are kept. */
int takt_webhook_post(const char *url, const char *json, struct takt_err *err);

#endif
