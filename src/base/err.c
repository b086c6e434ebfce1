/* SPDX-License-Identifier: Apache-2.0 */
/* Error codes to words and statuses; messages built without allocating. */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct own_code {
	int num;
	const char *name;
	const char *sentence;
	int exit_status;
	int http_status;
};

static const struct own_code own_codes[] = {
#define X(name, num, text, status, http) {num, #name, text, status, http},
	TAKT_ERR_TABLE(X)
#undef X
};

static const struct own_code *find_own(int rc)
{
	for (size_t i = 0; i < TAKT_ARRAY_LEN(own_codes); i++)
		if (own_codes[i].num == -rc)
			return &own_codes[i];
	return NULL;
}

static void mark_cut(char msg[TAKT_ERR_MSG])
{
	memcpy(msg + TAKT_ERR_MSG - 4, "...", 4);
}

int takt_err_set(struct takt_err *err, int rc, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return rc;
	err->rc = rc;
	err->vendor = 0;
	va_start(ap, fmt);
	if (vsnprintf(err->msg, sizeof(err->msg), fmt, ap) >= (int)sizeof(err->msg))
		mark_cut(err->msg);
	va_end(ap);
	return rc;
}

int takt_err_wrap(struct takt_err *err, int rc, const char *fmt, ...)
{
	char inner[TAKT_ERR_MSG];
	va_list ap;
	int n;

	if (!err)
		return rc;
	memcpy(inner, err->msg, sizeof(inner));
	err->rc = rc;
	va_start(ap, fmt);
	n = vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	if (n >= 0 && n < (int)sizeof(err->msg))
		n += snprintf(err->msg + n, sizeof(err->msg) - (size_t)n, ": %s", inner);
	if (n >= (int)sizeof(err->msg))
		mark_cut(err->msg);
	return rc;
}

const char *takt_err_sentence(int rc)
{
	const struct own_code *own = find_own(rc);
	const char *text;

	if (own)
		return own->sentence;
	text = strerrordesc_np(-rc);
	return text ? text : "unknown error";
}

const char *takt_err_name(int rc)
{
	const struct own_code *own = find_own(rc);
	const char *name = own ? own->name : strerrorname_np(-rc);

	return name ? name : "E?";
}

int takt_err_exit_status(int rc)
{
	const struct own_code *own = find_own(rc);

	if (rc >= 0)
		return 0;
	if (own)
		return own->exit_status;
	switch (-rc) {
	case EPERM:
	case EACCES:
		return 77;
	case EINVAL:
		return 64;
	case ENOENT:
		return 66;
	default:
		return 1;
	}
}

int takt_err_http_status(int rc)
{
	const struct own_code *own = find_own(rc);

	if (rc >= 0)
		return 200;
	if (own)
		return own->http_status;
	switch (-rc) {
	case EPERM:
	case EACCES:
		return 403;
	case EINVAL:
		return 400;
	case ENOENT:
		return 404;
	case ENOSPC:
	case EDQUOT:
		return 507;
	case ETIMEDOUT:
		return 504;
	default:
		return 500;
	}
}

const char *takt_err_text(const struct takt_err *err, char *buf, size_t size)
{
	if (err->msg[0])
		snprintf(buf, size, "%s: %s", err->msg, takt_err_sentence(err->rc));
	else
		snprintf(buf, size, "%s", takt_err_sentence(err->rc));
	return buf;
}
