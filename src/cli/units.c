/* SPDX-License-Identifier: Apache-2.0 */
/* Quantities as text. Integers all the way: what is rounded is rounded down. */
#include "cli/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/timetext.h"
#include "cli/table.h"

const char *takt_bytes_text(uint64_t bytes, char ret[TAKT_UNIT_TEXT])
{
	static const char units[] = "KMGTPE";
	uint64_t unit = 1024, whole;
	size_t i = 0;

	if (bytes < 1024) {
		snprintf(ret, TAKT_UNIT_TEXT, "%" PRIu64 "B", bytes);
		return ret;
	}
	while (i < 5 && bytes / unit >= 1024) {
		unit *= 1024;
		i++;
	}
	whole = bytes / unit;
	if (whole < 100 && i >= 2)
		snprintf(ret, TAKT_UNIT_TEXT, "%" PRIu64 ".%" PRIu64 "%c", whole,
			 bytes % unit / (unit / 1024) * 10 / 1024, units[i]);
	else
		snprintf(ret, TAKT_UNIT_TEXT, "%" PRIu64 "%c", whole, units[i]);
	return ret;
}

const char *takt_ms_text(uint64_t ms, char ret[TAKT_UNIT_TEXT])
{
	char text[TAKT_DURATION_TEXT];

	if (ms > UINT64_MAX / TAKT_NS_PER_MS)
		ms = UINT64_MAX / TAKT_NS_PER_MS;
	(void)takt_strcpy(ret, TAKT_UNIT_TEXT,
			  ms ? takt_duration_text(ms * TAKT_NS_PER_MS, text) : "0s");
	return ret;
}

const char *takt_span_text(uint64_t ms, char ret[TAKT_UNIT_TEXT])
{
	if (ms >= 60000)
		return takt_ms_text(ms, ret);
	snprintf(ret, TAKT_UNIT_TEXT, "%" PRIu64 "s", ms / 1000);
	return ret;
}

const char *takt_when_words(int64_t wall_ms, int64_t now_ms, char ret[TAKT_UNIT_TEXT])
{
	const int64_t days_ms = INT64_C(6) * 24 * 3600 * 1000;
	time_t seconds = (time_t)(wall_ms / 1000), now = (time_t)(now_ms / 1000);
	struct tm tm, today;
	size_t len;

	if (wall_ms == 0 || !localtime_r(&seconds, &tm) || !localtime_r(&now, &today))
		len = 0;
	else if (tm.tm_year == today.tm_year && tm.tm_yday == today.tm_yday)
		len = strftime(ret, TAKT_UNIT_TEXT, "%H:%M", &tm);
	else if (wall_ms < now_ms + days_ms && wall_ms > now_ms - days_ms)
		len = strftime(ret, TAKT_UNIT_TEXT, "%a %H:%M", &tm);
	else
		len = strftime(ret, TAKT_UNIT_TEXT, "%Y-%m-%d", &tm);
	if (len == 0)
		(void)takt_strcpy(ret, TAKT_UNIT_TEXT, "-");
	return ret;
}

const char *takt_when_text(int64_t wall_ms, char ret[TAKT_UNIT_TEXT])
{
	time_t seconds = (time_t)(wall_ms / 1000);
	struct tm tm;

	if (wall_ms == 0 || !localtime_r(&seconds, &tm) ||
	    strftime(ret, TAKT_UNIT_TEXT, "%Y-%m-%d %H:%M:%S", &tm) == 0)
		(void)takt_strcpy(ret, TAKT_UNIT_TEXT, "-");
	return ret;
}

static void add_range(struct takt_str *out, unsigned first, unsigned last, const char *comma)
{
	if (first == last)
		takt_str_addf(out, "%s%u", comma, first);
	else
		takt_str_addf(out, "%s%u-%u", comma, first, last);
}

void takt_mask_text(uint64_t mask, struct takt_str *out)
{
	const char *comma = "";

	if (mask == 0)
		takt_str_add(out, "-");
	for (unsigned i = 0; i < 64; i++) {
		unsigned first = i;

		if (!(mask >> i & 1))
			continue;
		while (i < 63 && (mask >> (i + 1) & 1))
			i++;
		add_range(out, first, i, comma);
		comma = ",";
	}
}

void takt_gpu_list_text(const uint32_t *gpus, uint32_t n, struct takt_str *out)
{
	uint64_t mask = 0;

	for (uint32_t i = 0; i < n; i++)
		mask |= gpus[i] < 64 ? UINT64_C(1) << gpus[i] : 0;
	takt_mask_text(mask, out);
}

/* "3" or "0-3", of GPUs that are not in the mask yet. */
static bool parse_range(const char *text, size_t len, uint32_t count, uint64_t *mask)
{
	unsigned long long first, last;
	char copy[16], *dash;

	if (len >= sizeof(copy))
		return false;
	memcpy(copy, text, len);
	copy[len] = '\0';
	dash = strchr(copy, '-');
	if (dash)
		*dash++ = '\0';
	if (takt_parse_u64(copy, 0, 63, &first) < 0 ||
	    takt_parse_u64(dash ? dash : copy, first, 63, &last) < 0 || last >= count)
		return false;
	for (; first <= last; first++) {
		if (*mask >> first & 1)
			return false;
		*mask |= UINT64_C(1) << first;
	}
	return true;
}

int takt_mask_parse(const char *text, uint32_t count, uint64_t *ret, struct takt_err *err)
{
	uint64_t mask = 0;
	const char *at = text;

	if (strcmp(text, "all") == 0 && count > 0) {
		*ret = count == 64 ? UINT64_MAX : (UINT64_C(1) << count) - 1;
		return 0;
	}
	for (;;) {
		size_t len = strcspn(at, ",");

		if (!parse_range(at, len, count, &mask))
			return takt_err_set(
				err, -TAKT_E_USAGE,
				"'%.40s' is not a list of GPUs, each named once, such as 0,2-3 or "
				"all; this machine has %u, counted from 0",
				text, count);
		if (!at[len])
			break;
		at += len + 1;
	}
	*ret = mask;
	return 0;
}

const char *takt_short_name(const char *name)
{
	return strncmp(name, "NVIDIA ", 7) == 0 ? name + 7 : name;
}

void takt_print_simulated(struct takt_cli *cli, bool simulated)
{
	if (!simulated)
		return;
	takt_style_add(
		&cli->out, cli->colour, TAKT_STYLE_MIND,
		"SIMULATED: these GPUs are not real, and neither is anything measured on them");
	takt_str_add(&cli->out, "\n");
}

void takt_print_changed(struct takt_cli *cli, uint32_t gpu, const char *note)
{
	char line[256];

	snprintf(line, sizeof(line), "GPU %u: CLOCKS CHANGED and not restored%s%s", gpu,
		 note[0] ? ": " : "", note);
	takt_style_add(&cli->out, cli->colour, TAKT_STYLE_ALARM, line);
	takt_str_add(&cli->out, "\n");
}
