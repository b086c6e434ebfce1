/* SPDX-License-Identifier: Apache-2.0 */
/* What the ranks of a job say, see the header. */
#include "telemetry/progress_ranks.h"

#include <string.h>

#include "base/mem.h"

static const uint64_t ENDED_NS = 60 * TAKT_NS_PER_S;

static uint64_t less(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t more(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

void takt_progress_living(struct takt_progress_said *said, struct takt_mono now)
{
	uint64_t newest_ns = 0;

	for (uint32_t i = 0; i < said->count; i++) {
		if (said->rank[i].at_ns > now.ns)
			said->rank[i].has = 0;
		if (said->rank[i].has)
			newest_ns = more(newest_ns, said->rank[i].at_ns);
	}
	for (uint32_t i = 0; i < said->count; i++)
		if (said->rank[i].has && newest_ns - said->rank[i].at_ns > ENDED_NS)
			said->rank[i].has = 0;
}

/* The lesser of those that are told. */
static void take_less(uint32_t bit, uint32_t known, uint32_t told, uint64_t value, uint64_t *ret)
{
	if (told & bit)
		*ret = known & bit ? less(*ret, value) : value;
}

bool takt_progress_slowest(const struct takt_progress_said *said, struct takt_progress_file *ret)
{
	*ret = (struct takt_progress_file){.has = 0};
	for (uint32_t i = 0; i < said->count; i++) {
		const struct takt_progress_file *one = &said->rank[i];

		if (!one->has)
			continue;
		take_less(TAKT_PROGRESS_STEPS, ret->has, one->has, one->steps, &ret->steps);
		take_less(TAKT_PROGRESS_TOKENS, ret->has, one->has, one->tokens, &ret->tokens);
		take_less(TAKT_PROGRESS_QUERIES, ret->has, one->has, one->queries, &ret->queries);
		if (one->has & TAKT_PROGRESS_LATENCY)
			ret->latency_us = more(ret->latency_us, one->latency_us);
		ret->at_ns = more(ret->at_ns, one->at_ns);
		ret->has |= one->has;
	}
	return ret->has != 0;
}

void takt_progress_ranks_fini(struct takt_progress_ranks *ranks)
{
	takt_free(ranks->track);
	*ranks = (struct takt_progress_ranks){.count = 0};
}

static bool grow(struct takt_progress_ranks *ranks, uint32_t count)
{
	struct takt_progress_track *track;

	if (count <= ranks->count)
		return true;
	track = takt_realloc(ranks->track, count * sizeof(*track));
	if (!track)
		return false;
	memset(track + ranks->count, 0, (count - ranks->count) * sizeof(*track));
	*ranks = (struct takt_progress_ranks){.count = count, .track = track};
	return true;
}

bool takt_progress_ranks_feed(struct takt_progress_ranks *ranks,
			      const struct takt_progress_said *said, struct takt_mono now)
{
	bool any = false;

	if (!grow(ranks, said->count))
		return false;
	for (uint32_t i = 0; i < said->count; i++)
		any |= takt_progress_feed(&ranks->track[i], &said->rank[i], now);
	return any;
}

static void take_slower(const struct takt_progress_rates *one, struct takt_progress_rates *ret)
{
	take_less(TAKT_PROGRESS_STEPS, ret->has, one->has, one->steps, &ret->steps);
	take_less(TAKT_PROGRESS_TOKENS, ret->has, one->has, one->tokens, &ret->tokens);
	take_less(TAKT_PROGRESS_QUERIES, ret->has, one->has, one->queries, &ret->queries);
	take_less(TAKT_PROGRESS_STEPS, ret->rated, one->rated, one->steps_milli_s,
		  &ret->steps_milli_s);
	take_less(TAKT_PROGRESS_TOKENS, ret->rated, one->rated, one->tokens_milli_s,
		  &ret->tokens_milli_s);
	take_less(TAKT_PROGRESS_QUERIES, ret->rated, one->rated, one->queries_milli_s,
		  &ret->queries_milli_s);
	ret->latency_us = more(ret->latency_us, one->latency_us);
	ret->samples = ret->ranks ? (uint32_t)less(ret->samples, one->samples) : one->samples;
	ret->age_ms = ret->ranks ? less(ret->age_ms, one->age_ms) : one->age_ms;
	ret->has |= one->has;
	ret->rated |= one->rated;
	ret->ranks++;
}

/* What is compared: how long a unit takes a rank, or how many it does in a time. */
struct compared {
	uint32_t count, most_of, least_of; /* ranks */
	uint64_t most, least;
};

static void compare(struct compared *all, uint32_t rank, uint64_t value)
{
	if (all->count == 0 || value > all->most) {
		all->most = value;
		all->most_of = rank;
	}
	if (all->count == 0 || value < all->least) {
		all->least = value;
		all->least_of = rank;
	}
	all->count++;
}

static bool rate_of(const struct takt_progress_rates *one, uint64_t *ret)
{
	*ret = one->rated & TAKT_PROGRESS_STEPS	   ? one->steps_milli_s
	       : one->rated & TAKT_PROGRESS_TOKENS ? one->tokens_milli_s
						   : one->queries_milli_s;
	return one->rated != 0;
}

static void fill_skew(const struct compared *latency, const struct compared *rate,
		      struct takt_progress_rates *ret)
{
	const struct compared *by = latency->count > 1 ? latency : rate;

	if (by->count < 2 || by->most == 0)
		return;
	ret->skewed = true;
	ret->slowest = by == latency ? by->most_of : by->least_of;
	ret->skew_permille =
		(uint32_t)((double)(by->most - by->least) / (double)by->most * 1000 + 0.5);
}

/* How long the one that told last has been silent. */
static uint64_t newest_age_ms(const struct takt_progress_ranks *ranks, struct takt_mono now)
{
	struct takt_progress_rates one;
	uint64_t age_ms = UINT64_MAX;

	for (uint32_t i = 0; i < ranks->count; i++)
		if (takt_progress_rates(&ranks->track[i], now, &one))
			age_ms = less(age_ms, one.age_ms);
	return age_ms;
}

bool takt_progress_ranks_rates(const struct takt_progress_ranks *ranks, struct takt_mono now,
			       struct takt_progress_rates *ret)
{
	struct compared latency = {.count = 0}, rate = {.count = 0};
	uint64_t newest_ms = newest_age_ms(ranks, now), value;
	struct takt_progress_rates one;

	*ret = (struct takt_progress_rates){.has = 0};
	for (uint32_t i = 0; i < ranks->count; i++) {
		if (!takt_progress_rates(&ranks->track[i], now, &one) ||
		    one.age_ms - newest_ms > ENDED_NS / TAKT_NS_PER_MS)
			continue;
		take_slower(&one, ret);
		if (one.has & TAKT_PROGRESS_LATENCY)
			compare(&latency, i, one.latency_us);
		if (rate_of(&one, &value))
			compare(&rate, i, value);
	}
	fill_skew(&latency, &rate, ret);
	return ret->ranks > 0;
}
