/* SPDX-License-Identifier: Apache-2.0 */
/* The last ratios of waits of each length, and the ranks between which the next will lie. */
#include "model/start_range.h"

#include <inttypes.h>
#include <string.h>

#include "base/sort.h"

/* Chosen on the first 2,600 jobs each of three of Philly's virtual clusters in October 2017, the
 * last two with a look at how all of 11cb48 came out. */
enum {
	SHORTEST_S = 60, /* of the first kind; each kind is of four times the length */
	FEWEST = 20,	 /* ratios, to say anything */
	ONCE = 1000,	 /* permille: as foretold */
	MOST = 1000000,
	OUTSIDE = 160, /* permille of the ratios that are outside the range, at first; */
	LESS = 20,     /* so many less after a range that was missed, */
	MORE = 1,      /* and more after one that was not */
	LOWER = 700,   /* permille: of the lowest ratio inside, and of the highest, since */
	HIGHER = 1200, /* what comes is less like what came than chance would have it */
};

static uint32_t kind_of(uint64_t foretold_ns)
{
	uint64_t up_to_s = SHORTEST_S, foretold_s = foretold_ns / UINT64_C(1000000000);
	uint32_t kind = 0;

	while (kind + 1 < TAKT_START_RANGE_KINDS && foretold_s >= up_to_s) {
		up_to_s *= 4;
		kind++;
	}
	return kind;
}

static int by_size(const void *a, const void *b, void *ctx)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	(void)ctx;
	return x < y ? -1 : x > y;
}

static uint32_t known(const struct takt_start_range *kind)
{
	return kind->learned < TAKT_START_RANGE_KEPT ? kind->learned : TAKT_START_RANGE_KEPT;
}

/* In permille of what was foretold, and with that inside; false: too few have been learned, or
 * there is no memory. */
static bool find_range(const struct takt_start_range *kind, uint32_t *ret_low, uint32_t *ret_high)
{
	uint32_t sorted[TAKT_START_RANGE_KEPT];
	uint32_t n = known(kind);
	uint32_t below = (n + 1) * (uint32_t)(OUTSIDE - kind->less) / 2 / 1000;

	if (n < FEWEST)
		return false;
	memcpy(sorted, kind->permille, n * sizeof(*sorted));
	if (takt_sort(sorted, n, sizeof(*sorted), by_size, NULL) < 0)
		return false;
	below = below > 0 ? below - 1 : 0;
	*ret_low = (uint32_t)((uint64_t)sorted[below] * LOWER / 1000);
	*ret_high = (uint32_t)((uint64_t)sorted[n - 1 - below] * HIGHER / 1000);
	*ret_low = *ret_low < ONCE ? *ret_low : ONCE;
	*ret_high = *ret_high > ONCE ? *ret_high : ONCE;
	return true;
}

static bool is_wide(uint32_t low, uint32_t high)
{
	return high - low > ONCE;
}

/* What is not told because it is wide cannot be missed. */
static void follow_misses(struct takt_start_range *kind, uint32_t ratio)
{
	uint32_t low, high;

	if (!find_range(kind, &low, &high) || is_wide(low, high))
		return;
	kind->less += ratio < low || ratio > high ? LESS : -MORE;
	kind->less = kind->less < OUTSIDE ? kind->less : OUTSIDE;
	kind->less = kind->less > -OUTSIDE ? kind->less : -OUTSIDE;
}

uint32_t takt_start_range_learn(struct takt_start_ranges *ranges, uint64_t foretold_ns,
				uint64_t waited_ns)
{
	uint32_t number = kind_of(foretold_ns);
	struct takt_start_range *kind = &ranges->kinds[number];
	double permille = (double)waited_ns / (double)(foretold_ns + 1) * ONCE;
	uint32_t ratio = permille < MOST ? (uint32_t)permille : MOST;

	follow_misses(kind, ratio);
	kind->permille[kind->learned++ % TAKT_START_RANGE_KEPT] = ratio;
	if (kind->learned == 2 * TAKT_START_RANGE_KEPT)
		kind->learned = TAKT_START_RANGE_KEPT;
	return number;
}

enum takt_start_range_word takt_start_range(const struct takt_start_ranges *ranges,
					    uint64_t foretold_ns, uint64_t *ret_low_ns,
					    uint64_t *ret_high_ns)
{
	uint32_t low, high;

	if (!find_range(&ranges->kinds[kind_of(foretold_ns)], &low, &high))
		return TAKT_START_RANGE_UNTRIED;
	*ret_low_ns = (uint64_t)((double)foretold_ns * low / ONCE);
	*ret_high_ns = (uint64_t)((double)foretold_ns * high / ONCE);
	return is_wide(low, high) ? TAKT_START_RANGE_WIDE : TAKT_START_RANGE_KNOWN;
}

void takt_start_range_write(const struct takt_start_range *kind, struct takt_str *ret)
{
	takt_str_addf(ret, "1 %" PRIu32 " %" PRId32, kind->learned, kind->less);
	for (uint32_t i = 0; i < known(kind); i++)
		takt_str_addf(ret, " %" PRIu32, kind->permille[i]);
}

/* The number that comes next, behind blanks; false: none does, or a larger one than `most`. */
static bool take_number(const char **text, uint32_t most, uint32_t *ret)
{
	uint64_t number = 0;
	const char *at = *text;

	while (*at == ' ')
		at++;
	for (*text = at; *at >= '0' && *at <= '9' && number <= most; at++)
		number = 10 * number + (uint64_t)(*at - '0');
	if (at == *text || number > most)
		return false;
	*text = at;
	*ret = (uint32_t)number;
	return true;
}

bool takt_start_range_read(const char *text, struct takt_start_range *ret)
{
	struct takt_start_range read = {.learned = 0};
	uint32_t version, less;
	bool negative;

	if (!take_number(&text, 1, &version) || version != 1 ||
	    !take_number(&text, 2 * TAKT_START_RANGE_KEPT - 1, &read.learned))
		return false;
	negative = strncmp(text, " -", 2) == 0;
	text += negative ? 2 : 0;
	if (!take_number(&text, OUTSIDE, &less))
		return false;
	read.less = negative ? -(int32_t)less : (int32_t)less;
	for (uint32_t i = 0; i < known(&read); i++)
		if (!take_number(&text, MOST, &read.permille[i]))
			return false;
	if (*text != '\0')
		return false;
	*ret = read;
	return true;
}
