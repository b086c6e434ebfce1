/* SPDX-License-Identifier: Apache-2.0 */
/* Values of options that are sizes, or numbers with a fraction. */
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/str.h"
#include "cli/verb.h"

enum {
	MAX_DIGITS = 12
};

/* The digits that the text begins with; how many, 0 when there are none or too many. */
static size_t read_digits(const char *text, uint64_t *ret)
{
	size_t len = strspn(text, "0123456789");
	char digits[MAX_DIGITS + 1];
	unsigned long long value;

	if (len == 0 || len > MAX_DIGITS)
		return 0;
	memcpy(digits, text, len);
	digits[len] = '\0';
	if (takt_parse_u64(digits, 0, UINT64_MAX, &value) < 0)
		return 0;
	*ret = value;
	return len;
}

int takt_cli_size_mib(const struct takt_cli *cli, const char *option, uint64_t max_mib,
		      uint64_t *ret, struct takt_err *err)
{
	const char *text = takt_cli_value(cli, option);
	uint64_t mib = 0;

	if (text && (takt_size_parse(text, &mib) < 0 || mib == 0 || mib > max_mib))
		return takt_err_set(err, -TAKT_E_USAGE,
				    "'--%s' must be a size such as 512M or 16G, not '%.40s'",
				    option, text);
	*ret = mib;
	return 0;
}

bool takt_cli_parse_milli(const char *text, uint64_t *ret)
{
	uint64_t whole, part = 0;
	size_t len = read_digits(text, &whole), more;

	if (len == 0)
		return false;
	text += len;
	if (*text == '.') {
		more = read_digits(text + 1, &part);
		if (more == 0 || more > 3)
			return false;
		for (size_t i = more; i < 3; i++)
			part *= 10;
		text += 1 + more;
	}
	*ret = whole * 1000 + part;
	return !*text;
}

int takt_cli_milli(const struct takt_cli *cli, const char *option, uint32_t max_milli,
		   uint32_t absent, uint32_t *ret, struct takt_err *err)
{
	const char *text = takt_cli_value(cli, option);
	uint64_t milli = absent;

	if (text && (!takt_cli_parse_milli(text, &milli) || milli > max_milli))
		return takt_err_set(err, -TAKT_E_USAGE,
				    "'--%s' must be a number such as 2 or 0.5, at most %u, not "
				    "'%.40s'",
				    option, max_milli / 1000, text);
	*ret = (uint32_t)milli;
	return 0;
}
