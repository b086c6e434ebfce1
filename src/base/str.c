/* SPDX-License-Identifier: Apache-2.0 */
/* Growable, bounded text. */
#include "base/str.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"

/* Room for `more` bytes and the NUL. */
static int reserve(struct takt_str *str, size_t more)
{
	size_t need = str->len + more, cap;
	char *grown;

	if (str->rc)
		return str->rc;
	if (more > str->max || need > str->max)
		return str->rc = -TAKT_E_LIMIT;
	if (need < str->cap)
		return 0;
	cap = str->cap ? str->cap * 2 : 64;
	if (cap <= need)
		cap = need + 1;
	if (cap > str->max + 1)
		cap = str->max + 1;
	grown = takt_realloc(str->s, cap);
	if (!grown)
		return str->rc = -ENOMEM;
	str->s = grown;
	str->cap = cap;
	return 0;
}

int takt_str_addn(struct takt_str *str, const void *bytes, size_t n)
{
	if (reserve(str, n) < 0)
		return str->rc;
	if (n)
		memcpy(str->s + str->len, bytes, n);
	str->len += n;
	str->s[str->len] = '\0';
	return 0;
}

int takt_str_add(struct takt_str *str, const char *text)
{
	return takt_str_addn(str, text, strlen(text));
}

int takt_str_addf(struct takt_str *str, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		return str->rc = -EINVAL;
	if (reserve(str, (size_t)n) < 0)
		return str->rc;
	va_start(ap, fmt);
	vsnprintf(str->s + str->len, (size_t)n + 1, fmt, ap);
	va_end(ap);
	str->len += (size_t)n;
	return 0;
}

const char *takt_str_text(const struct takt_str *str)
{
	return str->len ? str->s : "";
}

void takt_str_reset(struct takt_str *str)
{
	str->len = 0;
	str->rc = 0;
	if (str->s)
		str->s[0] = '\0';
}

char *takt_str_take(struct takt_str *str)
{
	char *s = NULL;

	if (reserve(str, 0) == 0) {
		s = str->s;
		s[str->len] = '\0';
		str->s = NULL;
	}
	takt_str_fini(str);
	return s;
}

void takt_str_fini(struct takt_str *str)
{
	takt_free(str->s);
	*str = TAKT_STR(str->max);
}

bool takt_strcpy(char *dst, size_t size, const char *text)
{
	size_t n = strlen(text), keep = n < size ? n : size - 1;

	memcpy(dst, text, keep);
	dst[keep] = '\0';
	return keep == n;
}
