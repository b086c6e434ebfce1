/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of "key=value" with a checksum: written and read back strictly. */
#include "launch/attempt_record.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/checksum.h"
#include "base/err.h"
#include "base/hex.h"
#include "base/mem.h"

#define TRAILER_FORMAT " crc=%08" PRIx32 "\n"

enum {
	TRAILER_LEN = 14, /* " crc=", eight digits, newline */
	NUMBER_MAX = 24,
};

void takt_record_begin(struct takt_str *out, const char *name)
{
	takt_str_reset(out);
	(void)takt_str_addf(out, "%s %d", name, TAKT_RECORD_VERSION);
}

void takt_record_put_u64(struct takt_str *out, const char *key, uint64_t value)
{
	(void)takt_str_addf(out, " %s=%" PRIu64, key, value);
}

void takt_record_put_i64(struct takt_str *out, const char *key, int64_t value)
{
	(void)takt_str_addf(out, " %s=%" PRId64, key, value);
}

static bool plain(char c)
{
	return c > 0x20 && c < 0x7f && c != '%';
}

void takt_record_put_text(struct takt_str *out, const char *key, const char *text)
{
	size_t run;

	(void)takt_str_addf(out, " %s=", key);
	while (*text) {
		for (run = 0; plain(text[run]); run++)
			;
		(void)takt_str_addn(out, text, run);
		text += run;
		if (*text)
			(void)takt_str_addf(out, "%%%02x", (unsigned char)*text++);
	}
}

int takt_record_end(struct takt_str *out)
{
	uint32_t crc = takt_crc32c(takt_str_text(out), out->len);

	return takt_str_addf(out, TRAILER_FORMAT, crc);
}

int takt_record_mark_put(struct takt_str *out, const char *mark)
{
	if (!mark[0] || out->rc < 0)
		return out->rc;
	out->len -= TRAILER_LEN;
	takt_record_put_text(out, "of", mark);
	return takt_record_end(out);
}

static bool is_sound(const char *text, size_t len)
{
	char want[TRAILER_LEN + 1];

	if (len < TRAILER_LEN || memchr(text, '\0', len))
		return false;
	snprintf(want, sizeof(want), TRAILER_FORMAT, takt_crc32c(text, len - TRAILER_LEN));
	return memcmp(text + len - TRAILER_LEN, want, TRAILER_LEN) == 0;
}

int takt_record_mark_take(char *text, size_t *len, const char *mark, bool all)
{
	static const char key[] = " of=";
	char *of, *value;
	size_t left, value_len, mark_len = strlen(mark);

	if (!is_sound(text, *len))
		return -TAKT_E_CORRUPT;
	of = memmem(text, *len - TRAILER_LEN, key, sizeof(key) - 1);
	if (!of)
		return all ? -TAKT_E_CONFLICT : 0;
	value = of + sizeof(key) - 1;
	left = (size_t)(of - text);
	value_len = *len - TRAILER_LEN - left - (sizeof(key) - 1);
	if (value_len < mark_len || memcmp(value, mark, mark_len) != 0 ||
	    (all && value_len != mark_len))
		return -TAKT_E_CONFLICT;
	snprintf(of, TRAILER_LEN + 1, TRAILER_FORMAT, takt_crc32c(text, left));
	*len = left + TRAILER_LEN;
	return 0;
}

/* The length of "NAME VERSION" at the start of text, 0 when it is not that. */
static size_t header_len(const char *text, size_t len, const char *name, int version)
{
	char want[64];
	int n = snprintf(want, sizeof(want), "%s %d", name, version);

	if (n >= (int)sizeof(want) || (size_t)n > len || memcmp(text, want, (size_t)n) != 0)
		return 0;
	return (size_t)n == len || text[n] == ' ' ? (size_t)n : 0;
}

int takt_record_open(const char *text, size_t len, const char *name, struct takt_record *ret)
{
	size_t body, head, name_len = strlen(name);

	if (!is_sound(text, len))
		return -TAKT_E_CORRUPT;
	body = len - TRAILER_LEN;
	head = header_len(text, body, name, TAKT_RECORD_VERSION);
	if (head == 0 && body > name_len && memcmp(text, name, name_len) == 0 &&
	    text[name_len] == ' ')
		return -TAKT_E_VERSION;
	if (head == 0)
		return -TAKT_E_CORRUPT;
	*ret = (struct takt_record){.at = text + head, .end = text + body};
	return 0;
}

bool takt_record_next_is(const struct takt_record *record, const char *key)
{
	size_t key_len = strlen(key);
	size_t left = (size_t)(record->end - record->at);

	return record->rc == 0 && left >= key_len + 2 && record->at[0] == ' ' &&
	       memcmp(record->at + 1, key, key_len) == 0 && record->at[key_len + 1] == '=';
}

/* The bytes of the next value, which must be that of `key`. */
static bool next_value(struct takt_record *record, const char *key, const char **ret, size_t *ret_n)
{
	size_t key_len = strlen(key);
	const char *value, *blank;

	if (record->rc < 0)
		return false;
	if (!takt_record_next_is(record, key)) {
		record->rc = -TAKT_E_CORRUPT;
		return false;
	}
	value = record->at + key_len + 2;
	blank = memchr(value, ' ', (size_t)(record->end - value));
	record->at = blank ? blank : record->end;
	*ret = value;
	*ret_n = (size_t)(record->at - value);
	return true;
}

static bool next_number(struct takt_record *record, const char *key, char buf[NUMBER_MAX])
{
	const char *value;
	size_t n;

	if (!next_value(record, key, &value, &n))
		return false;
	if (n >= NUMBER_MAX) {
		record->rc = -TAKT_E_CORRUPT;
		return false;
	}
	memcpy(buf, value, n);
	buf[n] = '\0';
	return true;
}

uint64_t takt_record_u64(struct takt_record *record, const char *key, uint64_t min, uint64_t max)
{
	unsigned long long value = 0;
	char buf[NUMBER_MAX];

	if (next_number(record, key, buf) && takt_parse_u64(buf, min, max, &value) < 0)
		record->rc = -TAKT_E_CORRUPT;
	return record->rc < 0 ? 0 : value;
}

int64_t takt_record_i64(struct takt_record *record, const char *key, int64_t min, int64_t max)
{
	long long value = 0;
	char buf[NUMBER_MAX];

	if (next_number(record, key, buf) && takt_parse_i64(buf, min, max, &value) < 0)
		record->rc = -TAKT_E_CORRUPT;
	return record->rc < 0 ? 0 : value;
}

/* Undoes the escapes; false when one is malformed, or it and the NUL do not fit. */
static bool unescape(const char *value, size_t n, char *buf, size_t size)
{
	size_t out = 0;
	char digits[3] = {0};

	for (size_t i = 0; i < n; i++) {
		if (out + 1 >= size)
			return false;
		if (value[i] != '%') {
			buf[out++] = value[i];
			continue;
		}
		if (n - i < 3)
			return false;
		memcpy(digits, value + i + 1, 2);
		if (takt_hex_decode(digits, &buf[out], 1) < 0 || !buf[out])
			return false;
		out++;
		i += 2;
	}
	buf[out] = '\0';
	return true;
}

void takt_record_text(struct takt_record *record, const char *key, char *buf, size_t size)
{
	const char *value;
	size_t n;

	if (next_value(record, key, &value, &n) && unescape(value, n, buf, size))
		return;
	record->rc = record->rc < 0 ? record->rc : -TAKT_E_CORRUPT;
	buf[0] = '\0';
}

char *takt_record_dup(struct takt_record *record, const char *key)
{
	const char *value;
	size_t n;
	char *buf;

	if (!next_value(record, key, &value, &n))
		return NULL;
	buf = takt_alloc(n + 1);
	if (buf && unescape(value, n, buf, n + 1))
		return buf;
	record->rc = buf ? -TAKT_E_CORRUPT : -ENOMEM;
	takt_free(buf);
	return NULL;
}

int takt_record_done(const struct takt_record *record)
{
	if (record->rc < 0)
		return record->rc;
	return record->at == record->end ? 0 : -TAKT_E_CORRUPT;
}
