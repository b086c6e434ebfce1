/* SPDX-License-Identifier: Apache-2.0 */
/* Expectations in words, see the header. */
#include "cli/outlook_text.h"

#include <string.h>

#include "cli/units.h"

void takt_run_text(uint64_t run_ms, const char *run_from, struct takt_str *out)
{
	static const char *const words[][2] = {
		{"owner", ", by its owner"},
		{"history", ", as earlier jobs like it"},
		{"limit", " at most, its time limit"},
		{"outlived", ", longer than was expected at first"},
	};
	char text[TAKT_UNIT_TEXT];

	takt_str_add(out, takt_ms_text(run_ms, text));
	for (size_t i = 0; i < TAKT_ARRAY_LEN(words); i++)
		if (strcmp(words[i][0], run_from) == 0)
			takt_str_add(out, words[i][1]);
}

void takt_starts_text(const struct takt_start_view *start, struct takt_str *out)
{
	char text[TAKT_UNIT_TEXT], to[TAKT_UNIT_TEXT];

	takt_str_add(out, takt_when_text(start->starts_ms, text));
	if (start->starts_high_ms)
		takt_str_addf(out, " (%s to %s in 8 of 10 cases)",
			      takt_when_text(start->starts_low_ms, text),
			      takt_when_text(start->starts_high_ms, to));
	else
		takt_str_add(out, " (as planned; too few have come true to say how well)");
	if (start->starts_overdue_ms)
		takt_str_addf(out, "; overdue, at first %s was predicted",
			      takt_when_text(start->starts_overdue_ms, text));
}
