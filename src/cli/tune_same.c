/* SPDX-License-Identifier: Apache-2.0 */
/* Whether two runs wrote the same, see tune.h. */
#include <string.h>

#include "base/str.h"
#include "cli/tune.h"

void takt_tune_output_init(struct takt_tune_output *output)
{
	memset(output, 0, sizeof(*output));
	takt_sha256_init(&output->all);
	takt_sha256_init(&output->line);
}

/* Modulo 2^64 each, in the machine's own byte order: the order of lines makes no difference. */
static void end_line(struct takt_tune_output *output)
{
	uint8_t digest[TAKT_SHA256_BYTES];
	uint64_t words[TAKT_ARRAY_LEN(output->lines)];

	takt_sha256_bytes(&output->line, digest);
	memcpy(words, digest, sizeof(words));
	for (size_t i = 0; i < TAKT_ARRAY_LEN(words); i++)
		output->lines[i] += words[i];
	output->in_line = false;
}

void takt_tune_output_add(struct takt_tune_output *output, const char *bytes, size_t n)
{
	takt_sha256_add(&output->all, bytes, n);
	while (n > 0) {
		const char *end = memchr(bytes, '\n', n);
		size_t len = end ? (size_t)(end - bytes) : n;

		takt_sha256_add(&output->line, bytes, len);
		output->in_line = true;
		if (end)
			end_line(output);
		bytes += len + (end != NULL);
		n -= len + (end != NULL);
	}
}

void takt_tune_output_end(struct takt_tune_output *output, struct takt_tune_written *ret)
{
	if (output->in_line)
		end_line(output);
	takt_sha256_text(&output->all, ret->all);
	memcpy(ret->lines, output->lines, sizeof(ret->lines));
}

bool takt_tune_same(const struct takt_tune_written *a, const struct takt_tune_written *b,
		    bool any_order)
{
	return strcmp(a->all, b->all) == 0 ||
	       (any_order && memcmp(a->lines, b->lines, sizeof(a->lines)) == 0);
}

/* Whether a run of the point wrote something else. */
static bool any_differs(const struct takt_tune_point *point, const struct takt_tune_written *usual)
{
	bool any = false;

	for (uint32_t i = 0; i < point->count; i++)
		any = any || !takt_tune_same(usual, &point->samples[i].written,
					     point->samples[i].ranks > 1);
	return any;
}

bool takt_tune_warm_up_differs(const struct takt_tune_result *result)
{
	const struct takt_tune_sample *usual = &result->points[0].samples[0];

	return !takt_tune_same(&result->warm_up, &usual->written, usual->ranks > 1);
}

void takt_tune_note_same(struct takt_tune_result *result)
{
	const struct takt_tune_point *reference = &result->points[0];
	const struct takt_tune_sample *usual = &reference->samples[0];
	const char *why = NULL;

	if (!result->compared || reference->count == 0)
		return;
	if (any_differs(reference, &usual->written))
		why = "its runs at the highest clock differ, too ('--check CMD' looks at a result)";
	else if (reference->count == 1 && takt_tune_warm_up_differs(result))
		why = "its only run at the highest clock differs from the warm-up ('--repeat 2' "
		      "shows which is usual)";
	if (why) {
		result->compared = NULL;
		takt_strcpy(result->not_compared, sizeof(result->not_compared), why);
		return;
	}
	for (uint32_t i = 0; i < result->count; i++)
		result->points[i].differs = any_differs(&result->points[i], &usual->written);
}
