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

void takt_starts_text(int64_t starts_ms, bool has_error, uint64_t error_ms, struct takt_str *out)
{
	char text[TAKT_UNIT_TEXT];

	takt_str_add(out, takt_when_text(starts_ms, text));
	if (has_error)
		takt_str_addf(out, " (predictions were off by %s on average)",
			      takt_ms_text(error_ms, text));
	else
		takt_str_add(out, " (predicted; none has come true yet to say how well)");
}
