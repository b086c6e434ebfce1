/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors: a number for the program, a sentence for the person.
 *
 * Every fallible function returns an int: 0 or positive is done, negative is -errno or one of our
 * own codes below -4095 (the kernel's MAX_ERRNO). The last parameter may be a struct takt_err of
 * the caller's, NULL when he does not care. It is filled on failure, left alone on success, and
 * never allocated: there is nothing to release, so an error may be ignored safely.
 *
 * The deepest function that knows the noun sets the message; callers wrap only to add one. No
 * capital letter, no full stop, no strerror: whoever renders it (command line, log line, API body)
 * adds those once with takt_err_text().
 */
#ifndef TAKT_BASE_ERR_H
#define TAKT_BASE_ERR_H

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"

/* name, number, sentence, exit status of a command, HTTP status. A code of our own exists only
 * where a caller branches on it. */
#define TAKT_ERR_TABLE(X)                                              \
	X(STALE, 4096, "planned on a version that is gone", 75, 409)   \
	X(CONFLICT, 4097, "conflicts with the present state", 75, 409) \
	X(LIMIT, 4098, "over a stated limit", 65, 413)                 \
	X(UNAVAILABLE, 4099, "not available now", 69, 503)             \
	X(CORRUPT, 4100, "damaged data", 65, 500)                      \
	X(USAGE, 4101, "wrong use", 64, 400)                           \
	X(NOT_FOUND, 4102, "not found", 66, 404)                       \
	X(IMPOSSIBLE, 4103, "can never be satisfied here", 65, 422)    \
	X(BUSY, 4104, "held by somebody else", 75, 409)                \
	X(UNSUPPORTED, 4105, "not supported here", 69, 501)            \
	X(VERSION, 4106, "speaks another version", 76, 505)            \
	X(MOVED, 4107, "a file in use was moved away", 69, 503)

enum takt_err_code {
#define X(name, num, text, status, http) TAKT_E_##name = num,
	TAKT_ERR_TABLE(X)
#undef X
};

enum {
	TAKT_ERR_MSG = 240
};

struct takt_err {
	int rc;	    /* the value that the call returned */
	int vendor; /* raw NVML, HTTP or SQLite code; 0 if none */
	char msg[TAKT_ERR_MSG];
};

/* Both return rc, so that `return takt_err_set(err, -EINVAL, "...")` reads well. wrap puts
 * "<fmt>: " before the message that is already there; an overlong message ends in "...". */
int takt_err_set(struct takt_err *err, int rc, const char *fmt, ...) TAKT_PRINTF(3, 4);
int takt_err_wrap(struct takt_err *err, int rc, const char *fmt, ...) TAKT_PRINTF(3, 4);

/* The sentence of a code: strerror for errno values, the table's for our own. Static text. */
const char *takt_err_sentence(int rc);

/* Short stable name for machines: "ENOENT", "STALE". Static text; "E?" when unknown. */
const char *takt_err_name(int rc);

/* Exit status for a command and HTTP status for an answer that failed with rc. */
int takt_err_exit_status(int rc);
int takt_err_http_status(int rc);

/* "open '/x': No such file or directory" into buf, always terminated; returns buf. */
const char *takt_err_text(const struct takt_err *err, char *buf, size_t size);

#endif
