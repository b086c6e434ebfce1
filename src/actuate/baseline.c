/* SPDX-License-Identifier: Apache-2.0 */
/* The baseline file: strict, because a misread line would leave a GPU at the wrong clock. */
#include "actuate/baseline.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

enum {
	MAX_WORDS = 11, /* one more than a line may have */
	MAX_WORD = 95,
};

struct words {
	size_t count;
	char at[MAX_WORDS][MAX_WORD + 1];
};

static bool blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* Splits up to `#`. A word too long or a control character is an error; words beyond MAX_WORDS
 * need not be kept, the line is wrong anyway. */
static int split(const char *line, size_t len, struct words *ret)
{
	size_t i = 0, start;

	ret->count = 0;
	while (i < len && line[i] != '#' && ret->count < MAX_WORDS) {
		if (blank(line[i])) {
			i++;
			continue;
		}
		start = i;
		while (i < len && line[i] != '#' && !blank(line[i])) {
			if ((unsigned char)line[i] < 0x21 || line[i] == 0x7f)
				return -EINVAL;
			i++;
		}
		if (i - start > MAX_WORD)
			return -EINVAL;
		memcpy(ret->at[ret->count], line + start, i - start);
		ret->at[ret->count++][i - start] = '\0';
	}
	return 0;
}

static int parse_range(const struct words *words, unsigned line, struct takt_clock_range *ret,
		       struct takt_err *err)
{
	unsigned long long min, max;

	if (takt_parse_u64(words->at[2], 1, TAKT_BASELINE_MAX_MHZ, &min) < 0 ||
	    takt_parse_u64(words->at[3], 1, TAKT_BASELINE_MAX_MHZ, &max) < 0)
		return takt_err_set(err, -EINVAL,
				    "line %u: 'range' takes two clocks in MHz (1 to %d), not '%s' "
				    "and '%s'",
				    line, TAKT_BASELINE_MAX_MHZ, words->at[2], words->at[3]);
	if (min > max)
		return takt_err_set(err, -EINVAL, "line %u: range %llu %llu is upside down", line,
				    min, max);
	*ret = (struct takt_clock_range){(uint32_t)min, (uint32_t)max};
	return 0;
}

/* Takes "power W" or "cap W" off the end of a line. */
static int parse_watts(struct words *words, const char *word, unsigned line, uint32_t *ret_mw,
		       struct takt_err *err)
{
	unsigned long long watts;

	if (words->count < 4 || strcmp(words->at[words->count - 2], word) != 0)
		return 0;
	if (takt_parse_u64(words->at[words->count - 1], 1, TAKT_BASELINE_MAX_W, &watts) < 0)
		return takt_err_set(err, -EINVAL,
				    "line %u: '%s' takes a limit in W (1 to %d), not '%s'", line,
				    word, TAKT_BASELINE_MAX_W, words->at[words->count - 1]);
	*ret_mw = (uint32_t)watts * 1000;
	words->count -= 2;
	return 0;
}

/* Takes "mig LAYOUT" off the end of a line. */
static int parse_mig(struct words *words, unsigned line, char ret[TAKT_MIG_TEXT],
		     struct takt_err *err)
{
	const char *text = words->count < 4 ? "" : words->at[words->count - 1];
	struct takt_mig_layout layout;
	int rc;

	if (words->count < 4 || strcmp(words->at[words->count - 2], "mig") != 0)
		return 0;
	rc = takt_mig_layout_parse(text, &layout, err);
	if (rc < 0)
		return takt_err_wrap(err, rc, "line %u", line);
	takt_strcpy(ret, TAKT_MIG_TEXT, text);
	words->count -= 2;
	return 0;
}

static int parse_rule(struct words *words, unsigned line, struct takt_baseline_line *ret_line,
		      struct takt_err *err)
{
	struct takt_baseline_rule *ret = &ret_line->rule;
	int rc = parse_mig(words, line, ret_line->mig, err);

	if (rc == 0)
		rc = parse_watts(words, "cap", line, &ret_line->cap_power_mw, err);
	if (rc == 0)
		rc = parse_watts(words, "power", line, &ret->power_limit_mw, err);
	if (rc < 0)
		return rc;
	if (words->count == 2 && strcmp(words->at[1], "reset") == 0)
		return 0;
	if (words->count == 4 && strcmp(words->at[1], "range") == 0) {
		ret->locked = true;
		return parse_range(words, line, &ret->range, err);
	}
	return takt_err_set(err, -EINVAL,
			    "line %u: expected 'UUID reset' or 'UUID range MIN MAX' ('*' for all "
			    "other GPUs), and perhaps 'power W', 'cap W' and 'mig LAYOUT' "
			    "behind it",
			    line);
}

static const struct takt_baseline_line *find(const struct takt_baseline *baseline, const char *uuid)
{
	for (uint32_t i = 0; i < baseline->count; i++) {
		if (strcmp(baseline->lines[i].uuid, uuid) == 0)
			return &baseline->lines[i];
	}
	return NULL;
}

static int parse_line(const char *text, size_t len, unsigned number, struct takt_baseline *baseline,
		      struct takt_err *err)
{
	struct takt_baseline_line line = {0};
	struct words words;
	int rc;

	if (split(text, len, &words) < 0)
		return takt_err_set(err, -EINVAL, "line %u: a word is too long or not plain text",
				    number);
	if (words.count == 0)
		return 0;
	rc = parse_rule(&words, number, &line, err);
	if (rc < 0)
		return rc;
	takt_strcpy(line.uuid, sizeof(line.uuid), words.at[0]);
	if (find(baseline, line.uuid))
		return takt_err_set(err, -EINVAL, "line %u: '%s' has a line already", number,
				    line.uuid);
	if (baseline->count == TAKT_BASELINE_MAX_LINES)
		return takt_err_set(err, -TAKT_E_LIMIT, "line %u: more than %d GPUs", number,
				    TAKT_BASELINE_MAX_LINES);
	baseline->lines[baseline->count++] = line;
	return 0;
}

int takt_baseline_parse(const char *text, size_t len, struct takt_baseline *ret,
			struct takt_err *err)
{
	TAKT_CLEANUP(freep) struct takt_baseline *made = takt_zalloc(sizeof(*made));
	unsigned number = 1;
	size_t at = 0;

	if (!made)
		return takt_err_set(err, -ENOMEM, "read the baseline");
	while (at < len) {
		const char *end = memchr(text + at, '\n', len - at);
		size_t n = end ? (size_t)(end - (text + at)) : len - at;
		int rc = parse_line(text + at, n, number++, made, err);

		if (rc < 0)
			return rc;
		at += n + 1;
	}
	*ret = *made;
	return 0;
}

typedef int read_fn(const struct takt_sys *sys, int dirfd, const char *name, size_t max,
		    char **ret_text, size_t *ret_len, struct takt_err *err);

static int load(const struct takt_sys *sys, const char *path, read_fn *read,
		struct takt_baseline *ret, struct takt_err *err)
{
	TAKT_CLEANUP(freep) char *text = NULL;
	size_t len;
	int rc = read(sys, AT_FDCWD, path, TAKT_BASELINE_MAX_BYTES, &text, &len, err);

	if (rc < 0)
		return takt_err_wrap(err, rc, "baseline");
	rc = takt_baseline_parse(text, len, ret, err);
	return rc < 0 ? takt_err_wrap(err, rc, "baseline '%s'", path) : 0;
}

int takt_baseline_load(const struct takt_sys *sys, const char *path, struct takt_baseline *ret,
		       struct takt_err *err)
{
	if (path[0])
		return load(sys, path, takt_file_read, ret, err);
	ret->count = 0;
	return 0;
}

/* What is declared lies with the daemon, which may be an account's: root is careful there. */
int takt_baseline_load_declared(const struct takt_sys *sys, const char *declared_path,
				const char *path, struct takt_baseline *ret, bool *ret_declared,
				struct takt_err *err)
{
	int rc = declared_path ? load(sys, declared_path, takt_file_read_plain, ret, err) : -ENOENT;

	*ret_declared = rc == 0 && ret->count > 0;
	if (rc == -ENOENT || (rc == 0 && ret->count == 0))
		rc = takt_baseline_load(sys, path, ret, err);
	return rc;
}

static const struct takt_baseline_line *line_of(const struct takt_baseline *baseline,
						const char *uuid)
{
	const struct takt_baseline_line *line = find(baseline, uuid);

	return line ? line : find(baseline, "*");
}

bool takt_baseline_says(const struct takt_baseline *baseline, const char *uuid)
{
	return line_of(baseline, uuid) != NULL;
}

struct takt_baseline_rule takt_baseline_of(const struct takt_baseline *baseline, const char *uuid)
{
	const struct takt_baseline_line *line = line_of(baseline, uuid);

	return line ? line->rule : (struct takt_baseline_rule){0};
}

uint32_t takt_baseline_cap_of(const struct takt_baseline *baseline, const char *uuid)
{
	const struct takt_baseline_line *line = line_of(baseline, uuid);

	return line ? line->cap_power_mw : 0;
}

const char *takt_baseline_mig_of(const struct takt_baseline *baseline, const char *uuid)
{
	const struct takt_baseline_line *line = line_of(baseline, uuid);

	return line ? line->mig : "";
}
