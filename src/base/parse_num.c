/* SPDX-License-Identifier: Apache-2.0 */
/* Strict whole-string decimal parsing; no locale, no errno, so that pure rooms may use it. */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/compiler.h"
#include "base/str.h"

/* Digits only. -EINVAL beats -ERANGE: "99999999999999999999x" is no number at all. */
static int parse_digits(const char *text, unsigned long long *ret)
{
	unsigned long long value = 0, digit;
	bool over = false;

	if (!text[0])
		return -EINVAL;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return -EINVAL;
		digit = (unsigned long long)(*text - '0');
		over = over || value > (ULLONG_MAX - digit) / 10;
		value = value * 10 + digit;
	}
	if (over)
		return -ERANGE;
	*ret = value;
	return 0;
}

int takt_parse_u64(const char *text, unsigned long long min, unsigned long long max,
		   unsigned long long *ret)
{
	unsigned long long value;
	int rc = parse_digits(text, &value);

	if (rc < 0)
		return rc;
	if (value < min || value > max)
		return -ERANGE;
	*ret = value;
	return 0;
}

int takt_parse_i64(const char *text, long long min, long long max, long long *ret)
{
	bool minus = text[0] == '-';
	unsigned long long size, limit = (unsigned long long)LLONG_MAX + minus;
	long long value;
	int rc = parse_digits(text + (minus || text[0] == '+'), &size);

	if (rc < 0)
		return rc;
	if (size > limit)
		return -ERANGE;
	value = !minus ? (long long)size : size == limit ? LLONG_MIN : -(long long)size;
	if (value < min || value > max)
		return -ERANGE;
	*ret = value;
	return 0;
}

int takt_percent_parse(const char *text, uint32_t max_permille, uint32_t *ret_permille)
{
	size_t len = strlen(text), digits;
	unsigned long long whole, tenth = 0;
	char number[16], *point;

	len -= len > 0 && text[len - 1] == '%';
	if (len >= sizeof(number))
		return -EINVAL;
	memcpy(number, text, len);
	number[len] = '\0';
	point = strchr(number, '.');
	digits = point ? strlen(point + 1) : 1;
	if (point)
		*point = '\0';
	if (digits != 1 || parse_digits(number, &whole) < 0 ||
	    (point && parse_digits(point + 1, &tenth) < 0))
		return -EINVAL;
	if (whole > max_permille || whole * 10 + tenth > max_permille)
		return -ERANGE;
	*ret_permille = (uint32_t)(whole * 10 + tenth);
	return 0;
}

/* What may follow the letter of a unit: powers of 1024 all of them, as for Slurm and nvidia-smi. */
static bool is_unit_rest(const char *text)
{
	static const char *const rests[] = {"", "B", "b", "i", "iB", "ib"};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(rests); i++)
		if (strcmp(text, rests[i]) == 0)
			return true;
	return false;
}

int takt_size_parse(const char *text, uint64_t *ret_mib)
{
	static const char units[] = "KMGTkmgt";
	size_t len = strspn(text, "0123456789");
	const char *unit = text[len] ? strchr(units, text[len]) : NULL;
	char digits[24];
	unsigned long long number;
	unsigned shift;

	if (!unit || len >= sizeof(digits) || !is_unit_rest(text + len + 1))
		return -EINVAL;
	memcpy(digits, text, len);
	digits[len] = '\0';
	if (parse_digits(digits, &number) < 0)
		return -EINVAL;
	shift = 10 * (unsigned)((unit - units) % 4); /* of KiB */
	if (number > ULLONG_MAX >> 1 >> shift)
		return -ERANGE;
	*ret_mib = ((number << shift) + 1023) / 1024;
	return 0;
}
