/* SPDX-License-Identifier: Apache-2.0 */
/* TOML's texts, numbers, dates, true and false. */
#include <cjson/cJSON.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec/json.h"
#include "codec/toml_impl.h"

enum {
	MAX_WORD = 64, /* bytes of a number or date */
};

static int add_char(const struct toml *toml, unsigned long code, struct takt_str *out)
{
	char bytes[4];
	size_t n = 0;

	if (code == 0 || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
		return takt_toml_fail(toml, "such a character cannot be in a text");
	if (code < 0x80) {
		bytes[n++] = (char)code;
	} else {
		if (code < 0x800) {
			bytes[n++] = (char)(0xc0 | code >> 6);
		} else {
			if (code < 0x10000) {
				bytes[n++] = (char)(0xe0 | code >> 12);
			} else {
				bytes[n++] = (char)(0xf0 | code >> 18);
				bytes[n++] = (char)(0x80 | (code >> 12 & 0x3f));
			}
			bytes[n++] = (char)(0x80 | (code >> 6 & 0x3f));
		}
		bytes[n++] = (char)(0x80 | (code & 0x3f));
	}
	return takt_str_addn(out, bytes, n);
}

/* Behind \u or \U. */
static int read_code(struct toml *toml, size_t digits, struct takt_str *out)
{
	char hex[9] = "";

	for (size_t i = 0; i < digits; i++) {
		if (!isxdigit((unsigned char)toml->at[i]))
			return takt_toml_fail(toml, "\\u needs 4 hexadecimal digits, \\U needs 8");
		hex[i] = toml->at[i];
	}
	toml->at += digits;
	return add_char(toml, strtoul(hex, NULL, 16), out);
}

/* A backslash at the end of a line takes the space before the next text with it. */
static bool skip_line_end(struct toml *toml)
{
	const char *c = toml->at + strspn(toml->at, " \t\r");

	if (*c != '\n')
		return false;
	for (; *c && strchr(" \t\r\n", *c); c++)
		toml->line += *c == '\n';
	toml->at = c;
	return true;
}

/* Behind the backslash. */
static int read_escape(struct toml *toml, bool lines, struct takt_str *out)
{
	static const char names[] = "btnfr\"\\", values[] = "\b\t\n\f\r\"\\";
	const char *known = *toml->at ? strchr(names, *toml->at) : NULL;

	if (lines && skip_line_end(toml))
		return 0;
	if (known) {
		toml->at++;
		return takt_str_addn(out, &values[known - names], 1);
	}
	if (*toml->at == 'u' || *toml->at == 'U')
		return read_code(toml, *toml->at++ == 'u' ? 4 : 8, out);
	return takt_toml_fail(toml, "unknown escape after '\\'; a text in '...' has none");
}

/* How many of the quotes at the end of a text of several lines belong to the text: "\"\"\"\"\"" is
 * two of them and the end. */
static size_t quotes_inside(const char *at, char quote)
{
	size_t n = 0;

	while (at[n] == quote && n < 5)
		n++;
	return n - 3;
}

static bool is_end(const char *at, char quote, bool lines)
{
	return *at == quote && (!lines || (at[1] == quote && at[2] == quote));
}

static int read_until(struct toml *toml, char quote, bool lines, struct takt_str *out)
{
	int rc = 0;

	while (rc == 0 && !is_end(toml->at, quote, lines)) {
		char c = *toml->at;

		if (!c || (c == '\n' && !lines))
			return takt_toml_fail(toml, "a text has no end on its line");
		toml->line += c == '\n';
		toml->at++;
		if (c == '\\' && quote == '"')
			rc = read_escape(toml, lines, out);
		else if (c != '\r' || *toml->at != '\n')
			rc = takt_str_addn(out, &c, 1);
	}
	return rc;
}

int takt_toml_text(struct toml *toml, bool is_key, struct takt_str *ret)
{
	char quote = *toml->at;
	bool lines = toml->at[1] == quote && toml->at[2] == quote;
	size_t more;
	int rc;

	if (lines && is_key)
		return takt_toml_fail(toml, "a key stands on one line");
	toml->at += lines ? 3 : 1;
	if (lines && toml->at[0] == '\r' && toml->at[1] == '\n')
		toml->at++;
	if (lines && *toml->at == '\n') {
		toml->at++;
		toml->line++;
	}
	rc = takt_str_add(ret, "");
	if (rc == 0)
		rc = read_until(toml, quote, lines, ret);
	if (rc == 0 && lines) {
		more = quotes_inside(toml->at, quote);
		rc = takt_str_addn(ret, toml->at, more);
		toml->at += more;
	}
	if (rc == 0)
		toml->at += lines ? 3 : 1;
	if (rc == -TAKT_E_LIMIT)
		return takt_toml_fail(toml, "a text is over a megabyte");
	return rc == -ENOMEM ? takt_toml_starved(toml) : rc;
}

/* Digits of that base, with '_' between two of them only; they go to `to`. */
static bool copy_digits(const char **at, const char *digits, char **to)
{
	const char *c = *at;

	if (!*c || !strchr(digits, *c))
		return false;
	for (; *c && (strchr(digits, *c) || *c == '_'); c++) {
		if (*c != '_')
			*(*to)++ = *c;
		else if (!c[1] || !strchr(digits, c[1]))
			return false;
	}
	*at = c;
	return true;
}

static const char decimal[] = "0123456789";

/* "0x1f", "0o17", "0b101" */
static bool parse_based(const char *word, double *ret)
{
	static const struct {
		char letter;
		int base;
		const char *digits;
	} bases[] = {{'x', 16, "0123456789abcdefABCDEF"}, {'o', 8, "01234567"}, {'b', 2, "01"}};
	char plain[MAX_WORD], *to = plain;
	const char *at = word + 2;

	for (size_t i = 0; word[0] == '0' && i < TAKT_ARRAY_LEN(bases); i++) {
		if (word[1] != bases[i].letter || !copy_digits(&at, bases[i].digits, &to) || *at)
			continue;
		*to = '\0';
		*ret = (double)strtoull(plain, NULL, bases[i].base);
		return true;
	}
	return false;
}

/* "-17", "1_000", "0.5", "1e-4", "6.02e23"; *ret_whole: it has neither '.' nor 'e'. */
static bool parse_decimal(const char *word, double *ret, bool *ret_whole, bool *ret_keeps)
{
	char plain[MAX_WORD], *to = plain;
	const char *at = word;

	if (*at == '+' || *at == '-')
		*to++ = *at++;
	if (at[0] == '0' && (isdigit((unsigned char)at[1]) || at[1] == '_'))
		return false;
	if (!copy_digits(&at, decimal, &to))
		return false;
	*ret_whole = !*at;
	if (*at == '.') {
		*to++ = *at++;
		if (!copy_digits(&at, decimal, &to))
			return false;
	}
	if (*at == 'e' || *at == 'E') {
		*to++ = *at++;
		if (*at == '+' || *at == '-')
			*to++ = *at++;
		if (!copy_digits(&at, decimal, &to))
			return false;
	}
	*to = '\0';
	*ret = strtod(plain, NULL);
	*ret_keeps = takt_json_number_keeps(plain, strlen(plain));
	return !*at;
}

static int make_number(struct toml *toml, const char *word, cJSON **ret)
{
	bool whole = true, keeps = true;
	double value;

	if (!parse_based(word, &value) && !parse_decimal(word, &value, &whole, &keeps))
		return takt_toml_fail(toml,
				      "a value must be text in quotes, a number, true, false, "
				      "a date, [...] or {...}");
	if (!isfinite(value) || (whole && fabs(value) > (double)TAKT_JSON_MAX_INT))
		return takt_toml_fail(toml, "a number is too large");
	if (!keeps)
		return takt_toml_fail(toml, "a number that only rounding would make whole");
	*ret = cJSON_CreateNumber(value);
	return *ret ? 0 : takt_toml_starved(toml);
}

/* "2026-12-24", "2026-12-24T18:00:00", "18:00" */
static bool is_date(const char *word)
{
	size_t digits = strspn(word, decimal);

	return (digits == 4 && word[4] == '-') || (digits == 2 && word[2] == ':');
}

/* The next word; a date and a time may have one space between them. */
static size_t word_length(const char *at)
{
	static const char in_words[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				       "0123456789_+-.:";
	size_t n = strspn(at, in_words);

	if (n == 10 && is_date(at) && at[n] == ' ' && isdigit((unsigned char)at[n + 1]))
		n += 1 + strspn(at + n + 1, in_words);
	return n;
}

int takt_toml_word(struct toml *toml, cJSON **ret)
{
	size_t n = word_length(toml->at);
	char word[MAX_WORD] = "";

	if (n >= sizeof(word))
		return takt_toml_fail(toml, "a value is too long, or is text without its quotes");
	memcpy(word, toml->at, n);
	toml->at += n;
	if (strcmp(word, "true") == 0 || strcmp(word, "false") == 0)
		*ret = cJSON_CreateBool(word[0] == 't');
	else if (is_date(word))
		*ret = cJSON_CreateString(word);
	else
		return make_number(toml, word, ret);
	return *ret ? 0 : takt_toml_starved(toml);
}
