/* SPDX-License-Identifier: Apache-2.0 */
/* One line of /proc/PID/stat to its fields. */
#include "base/proc_stat.h"

#include <errno.h>
#include <string.h>

#include "base/str.h"

enum {
	FIELD_STATE = 3,
	FIELD_PPID = 4,
	FIELD_PGRP = 5,
	FIELD_SESSION = 6,
	FIELD_FLAGS = 9,
	FIELD_USER_TIME = 14,
	FIELD_SYSTEM_TIME = 15,
	FIELD_THREADS = 20,
	FIELD_START = 22,
	FIELD_CODE_START = 26,
	FIELD_ENV_START = 50,
	FIELD_ENV_END = 51,
	WORD_MAX = 24,
};

/* Cuts the next space-separated word off *text into word; false at the end or when too long. */
static bool next_word(const char **text, char word[WORD_MAX])
{
	const char *start = *text + strspn(*text, " ");
	size_t len = strcspn(start, " \n");

	if (len == 0 || len >= WORD_MAX)
		return false;
	memcpy(word, start, len);
	word[len] = '\0';
	*text = start + len;
	return true;
}

static int parse_i32(const char *word, int32_t *ret)
{
	long long value;

	if (takt_parse_i64(word, INT32_MIN, INT32_MAX, &value) < 0)
		return -EINVAL;
	*ret = (int32_t)value;
	return 0;
}

static int parse_u64(const char *word, uint64_t *ret)
{
	unsigned long long value;

	if (takt_parse_u64(word, 0, UINT64_MAX, &value) < 0)
		return -EINVAL;
	*ret = value;
	return 0;
}

static int take_field(struct takt_proc_stat *stat, int field, const char *word)
{
	unsigned long long value;
	uint64_t ticks = 0;
	int rc;

	switch (field) {
	case FIELD_STATE:
		stat->state = word[0];
		return word[1] == '\0' ? 0 : -EINVAL;
	case FIELD_PPID:
		return parse_i32(word, &stat->ppid);
	case FIELD_PGRP:
		return parse_i32(word, &stat->pgrp);
	case FIELD_SESSION:
		return parse_i32(word, &stat->session);
	case FIELD_FLAGS:
		if (takt_parse_u64(word, 0, UINT32_MAX, &value) < 0)
			return -EINVAL;
		stat->flags = (uint32_t)value;
		return 0;
	case FIELD_USER_TIME:
	case FIELD_SYSTEM_TIME:
		rc = parse_u64(word, &ticks);
		stat->cpu_ticks += ticks;
		return rc;
	case FIELD_THREADS:
		return parse_i32(word, &stat->threads);
	case FIELD_START:
		return parse_u64(word, &stat->start_ticks);
	case FIELD_CODE_START:
		return parse_u64(word, &stat->code_start);
	case FIELD_ENV_START:
		return parse_u64(word, &stat->env_start);
	case FIELD_ENV_END:
		return parse_u64(word, &stat->env_end);
	default:
		return 0;
	}
}

int takt_proc_stat_parse(const char *text, struct takt_proc_stat *ret)
{
	const char *rest = strrchr(text, ')');
	struct takt_proc_stat stat = {0};
	char word[WORD_MAX];
	int field;

	if (!rest)
		return -EINVAL;
	rest++;
	for (field = FIELD_STATE; field <= FIELD_ENV_END && next_word(&rest, word); field++)
		if (take_field(&stat, field, word) < 0)
			return -EINVAL;
	if (field <= FIELD_START)
		return -EINVAL;
	*ret = stat;
	return 0;
}
