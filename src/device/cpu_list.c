/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and writing CPU lists. */
#include "device/cpu_list.h"

#include <ctype.h>
#include <string.h>

enum {
	MAX_WORDS = 64,
};

/* Digits below `limit`; NULL otherwise. */
static const char *number(const char *text, size_t limit, size_t *ret)
{
	size_t value = 0;

	if (!isdigit((unsigned char)*text))
		return NULL;
	for (; isdigit((unsigned char)*text); text++) {
		value = value * 10 + (size_t)(*text - '0');
		if (value >= limit)
			return NULL;
	}
	*ret = value;
	return text;
}

/* "5" or "5-8", at or above *next, which moves behind it. */
static const char *range(const char *text, size_t limit, size_t *next, uint64_t *mask)
{
	size_t first, last;

	text = number(text, limit, &first);
	if (!text || first < *next)
		return NULL;
	last = first;
	if (*text == '-')
		text = number(text + 1, limit, &last);
	if (!text || last < first)
		return NULL;
	for (size_t cpu = first; cpu <= last; cpu++)
		mask[cpu / 64] |= 1ull << cpu % 64;
	*next = last + 1;
	return text;
}

bool takt_cpu_list_parse(const char *text, uint64_t *ret, size_t words)
{
	uint64_t mask[MAX_WORDS] = {0};
	size_t next = 0;

	if (words > MAX_WORDS)
		return false;
	for (;;) {
		text = range(text, words * 64, &next, mask);
		if (!text || *text != ',')
			break;
		text++;
	}
	if (!text || *text != '\0')
		return false;
	memcpy(ret, mask, words * sizeof(*ret));
	return true;
}

static bool has_cpu(const uint64_t *mask, size_t words, size_t cpu)
{
	return cpu < words * 64 && (mask[cpu / 64] >> cpu % 64 & 1);
}

void takt_cpu_list_format(const uint64_t *mask, size_t words, struct takt_str *ret)
{
	const char *comma = "";

	for (size_t cpu = 0; cpu < words * 64; cpu++) {
		size_t first = cpu;

		if (!has_cpu(mask, words, cpu))
			continue;
		while (has_cpu(mask, words, cpu + 1))
			cpu++;
		takt_str_addf(ret, first == cpu ? "%s%zu" : "%s%zu-%zu", comma, first, cpu);
		comma = ",";
	}
}
