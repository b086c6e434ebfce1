/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Growable text with a stated limit. Once an append fails (limit or memory) the string keeps what
 * it had, remembers the failure in `rc`, and ignores further appends: build first, check once.
 */
#ifndef TAKT_BASE_STR_H
#define TAKT_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

struct takt_str {
	char *s; /* owned, NUL-terminated once anything was appended; may be NULL while len == 0 */
	size_t len; /* bytes before the NUL */
	size_t cap;
	size_t max; /* never grows beyond this many bytes */
	int rc;	    /* 0, -ENOMEM or -TAKT_E_LIMIT; sticky until takt_str_reset */
};

#define TAKT_STR(limit) ((struct takt_str){.max = (limit)})

int takt_str_add(struct takt_str *str, const char *text);
int takt_str_addn(struct takt_str *str, const void *bytes, size_t n);
int takt_str_addf(struct takt_str *str, const char *fmt, ...) TAKT_PRINTF(2, 3);
const char *
takt_str_text(const struct takt_str *str); /* "" when empty; borrowed until next change */
void takt_str_reset(struct takt_str *str); /* empty again, memory kept, rc cleared */
char *takt_str_take(struct takt_str *str); /* caller owns; NULL when rc != 0 or out of memory */
void takt_str_fini(struct takt_str *str);

static inline void takt_cleanup_strp(struct takt_str *str)
{
	takt_str_fini(str);
}

/* Copy with termination; returns false if `text` had to be cut. */
bool takt_strcpy(char *dst, size_t size, const char *text);

/* Whole-string decimal parsers: -EINVAL on anything but digits (sign allowed for i64), -ERANGE
 * outside [min, max]. *ret untouched on failure. */
int takt_parse_u64(const char *text, unsigned long long min, unsigned long long max,
		   unsigned long long *ret);
int takt_parse_i64(const char *text, long long min, long long max, long long *ret);
/* "3%", "3", "0.5%": a percentage with at most one decimal, in thousandths; as above. */
int takt_percent_parse(const char *text, uint32_t max_permille, uint32_t *ret_permille);
/* "512M", "16GiB", "16GB", "16g": a size with its unit (K, M, G, T, powers of 1024 however it is
 * written), in MiB, rounded up; as above. */
int takt_size_parse(const char *text, uint64_t *ret_mib);

#endif
