/* SPDX-License-Identifier: Apache-2.0 */
/* Governors with parameters as people write them, see the header. */
#include "base/policy_text.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/str.h"

enum {
	DIGITS = 24 /* of a number, with its sign and the NUL */
};

static bool is_printable(const char *text)
{
	while (*text > ' ' && *text <= '~')
		text++;
	return *text == '\0';
}

int takt_policy_param_parse(const char *text, size_t len, struct takt_policy_param *ret)
{
	const char *equals = memchr(text, '=', len);
	size_t name = equals ? (size_t)(equals - text) : 0, digits = len - name - 1;
	struct takt_policy_param param = {.value = 0};
	char number[DIGITS] = "";
	long long value;

	if (name == 0 || name >= sizeof(param.name) || digits >= sizeof(number))
		return -EINVAL;
	memcpy(param.name, text, name);
	memcpy(number, equals + 1, digits);
	if (!is_printable(param.name) || strlen(param.name) != name ||
	    takt_parse_i64(number, INT64_MIN, INT64_MAX, &value) < 0)
		return -EINVAL;
	param.value = value;
	*ret = param;
	return 0;
}

static int take_params(const char *text, struct takt_policy_text *policy)
{
	int rc = 0;

	while (rc == 0) {
		size_t len = strcspn(text, ",");

		if (policy->param_count == TAKT_POLICY_MAX_PARAMS)
			return -EINVAL;
		rc = takt_policy_param_parse(text, len, &policy->params[policy->param_count++]);
		if (!text[len])
			break;
		text += len + 1;
	}
	return rc;
}

int takt_policy_text_parse(const char *text, struct takt_policy_text *ret)
{
	struct takt_policy_text policy = {.param_count = 0};
	size_t len = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-");

	if (len == 0 || len >= sizeof(policy.name) || strlen(text) >= TAKT_POLICY_TEXT ||
	    (text[len] && text[len] != ':'))
		return -EINVAL;
	memcpy(policy.name, text, len);
	if (text[len] && take_params(text + len + 1, &policy) < 0)
		return -EINVAL;
	*ret = policy;
	return 0;
}
