/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of a user's processes: found out, written down, taken. */
#include "launch/user_limits.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/str.h"

enum {
	NUMBER_MAX = 21, /* digits of a 64-bit number, and the NUL */
};

static const struct {
	int resource;
	struct rlimit at_most;
} raised_for_itself[] = {
	{RLIMIT_NOFILE, {1024, 512 * 1024}},
	{RLIMIT_MEMLOCK, {8 << 20, 8 << 20}},
	{RLIMIT_CORE, {0, RLIM_INFINITY}},
};

static rlim_t lesser(rlim_t a, rlim_t b)
{
	return a < b ? a : b; /* RLIM_INFINITY is the largest */
}

void takt_user_limits_default(struct takt_user_limits *ret)
{
	ret->known = true;
	for (int i = 0; i < RLIM_NLIMITS; i++)
		if (prlimit(1, i, NULL, &ret->of[i]) < 0)
			(void)getrlimit(i, &ret->of[i]);
	for (size_t i = 0; i < TAKT_ARRAY_LEN(raised_for_itself); i++) {
		struct rlimit *limit = &ret->of[raised_for_itself[i].resource];
		const struct rlimit *at_most = &raised_for_itself[i].at_most;

		limit->rlim_max = lesser(limit->rlim_max, at_most->rlim_max);
		limit->rlim_cur =
			lesser(lesser(limit->rlim_cur, at_most->rlim_cur), limit->rlim_max);
	}
}

int takt_user_limits_read(struct takt_user_limits *ret, struct takt_err *err)
{
	for (int i = 0; i < RLIM_NLIMITS; i++)
		if (getrlimit(i, &ret->of[i]) < 0)
			return takt_err_set(err, -errno, "read limit %d", i);
	ret->known = true;
	return 0;
}

static int take_one(int resource, struct rlimit limit)
{
	struct rlimit own;

	if (setrlimit(resource, &limit) == 0)
		return 0;
	if (errno != EPERM || getrlimit(resource, &own) < 0)
		return -errno;
	limit.rlim_max = lesser(limit.rlim_max, own.rlim_max);
	limit.rlim_cur = lesser(limit.rlim_cur, limit.rlim_max);
	return setrlimit(resource, &limit) < 0 ? -errno : 0;
}

int takt_user_limits_take(const struct takt_user_limits *limits, struct takt_err *err)
{
	int rc = 0;

	for (int i = 0; limits->known && rc == 0 && i < RLIM_NLIMITS; i++)
		rc = take_one(i, limits->of[i]);
	return rc < 0 ? takt_err_set(err, rc, "take the limits of the user") : 0;
}

void takt_user_limits_make_room(const struct takt_user_limits *limits)
{
	struct rlimit own;

	for (int i = 0; limits->known && i < RLIM_NLIMITS; i++) {
		if (getrlimit(i, &own) < 0 || own.rlim_max >= limits->of[i].rlim_max)
			continue;
		own.rlim_max = limits->of[i].rlim_max;
		(void)setrlimit(i, &own);
	}
}

static void format_one(rlim_t limit, char ret[NUMBER_MAX])
{
	if (limit == RLIM_INFINITY)
		takt_strcpy(ret, NUMBER_MAX, "-");
	else
		snprintf(ret, NUMBER_MAX, "%" PRIu64, (uint64_t)limit);
}

void takt_user_limits_format(const struct takt_user_limits *limits, char *ret)
{
	char soft[NUMBER_MAX], hard[NUMBER_MAX];
	int at = 0;

	ret[0] = '\0';
	for (int i = 0; limits->known && i < RLIM_NLIMITS; i++) {
		format_one(limits->of[i].rlim_cur, soft);
		format_one(limits->of[i].rlim_max, hard);
		at += snprintf(ret + at, (size_t)(TAKT_USER_LIMITS_TEXT - at), "%s%s:%s",
			       i ? "," : "", soft, hard);
	}
}

/* What stands before `end`, a character; what stands behind it, or NULL. */
static const char *parse_one(const char *text, char end, rlim_t *ret)
{
	size_t len = strcspn(text, ":,");
	unsigned long long value;
	char number[NUMBER_MAX];

	if (len == 0 || len >= sizeof(number) || text[len] != end)
		return NULL;
	memcpy(number, text, len);
	number[len] = '\0';
	if (strcmp(number, "-") == 0)
		*ret = RLIM_INFINITY;
	else if (takt_parse_u64(number, 0, RLIM_INFINITY - 1, &value) == 0)
		*ret = value;
	else
		return NULL;
	return end ? text + len + 1 : text + len;
}

int takt_user_limits_parse(const char *text, struct takt_user_limits *ret, struct takt_err *err)
{
	struct takt_user_limits limits = {.known = true};
	const char *at = text;

	if (!text[0]) {
		*ret = (struct takt_user_limits){0};
		return 0;
	}
	for (int i = 0; at && i < RLIM_NLIMITS; i++) {
		at = parse_one(at, ':', &limits.of[i].rlim_cur);
		if (at)
			at = parse_one(at, i < RLIM_NLIMITS - 1 ? ',' : '\0',
				       &limits.of[i].rlim_max);
	}
	if (!at)
		return takt_err_set(err, -EINVAL, "limits '%.40s': %d of SOFT:HARD are expected",
				    text, RLIM_NLIMITS);
	*ret = limits;
	return 0;
}
