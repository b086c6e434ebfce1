/* SPDX-License-Identifier: Apache-2.0 */
/* See look_line.h. */
#include "top/look_line.h"

#include <inttypes.h>
#include <string.h>

#include "codec/json.h"

enum {
	MAX_STEP_MS = 60 * 1000,
};

void takt_look_to_line(const struct takt_look_words *words, struct takt_str *out)
{
	if (words->past_step_ms)
		takt_str_addf(out, "past %u ", words->past_step_ms);
	if (words->log_job)
		takt_str_addf(out, "log %" PRIu64, words->log_job);
	takt_str_add(out, "\n");
}

static uint64_t number_of(const char *word, uint64_t max)
{
	unsigned long long value;

	return word && takt_parse_u64(word, 1, max, &value) == 0 ? value : 0;
}

void takt_look_from_line(char *line, struct takt_look_words *ret)
{
	char *rest = NULL;

	*ret = (struct takt_look_words){.log_job = 0};
	for (char *word = strtok_r(line, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		if (strcmp(word, "past") == 0)
			ret->past_step_ms =
				(uint32_t)number_of(strtok_r(NULL, " ", &rest), MAX_STEP_MS);
		else if (strcmp(word, "log") == 0)
			ret->log_job = number_of(strtok_r(NULL, " ", &rest), TAKT_JSON_MAX_INT);
	}
}
