/* SPDX-License-Identifier: Apache-2.0 */
/* What jobs say of themselves, see the header. */
#include "telemetry/progress_read.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "telemetry/wary_open.h"

enum {
	TRIES = 4,
};

_Static_assert(sizeof(struct takt_progress_file) == 64, "no padding: it is compared as bytes");

static const uint64_t SPAN_NS = 60 * TAKT_NS_PER_S;

static int read_once(int fd, struct takt_progress_said *ret)
{
	ssize_t size = (ssize_t)(ret->count * sizeof(ret->rank[0]));
	ssize_t got = pread(fd, ret->rank, (size_t)size, 0);

	if (got < 0)
		return -errno;
	return got == size ? 0 : -TAKT_E_CORRUPT;
}

/* A sample is one that is even and comes out the same twice. */
static bool is_whole(const struct takt_progress_file *one, const struct takt_progress_file *again)
{
	return one->sequence % 2 == 0 && memcmp(one, again, sizeof(*one)) == 0;
}

static bool is_one(const struct takt_progress_file *one)
{
	return memcmp(one->magic, TAKT_PROGRESS_MAGIC, sizeof(one->magic)) == 0;
}

/* Reads twice and takes what is not taken yet. *ret_torn: so many are left that were written. */
static int take_whole(int fd, struct takt_progress_said *ret, bool *taken, uint32_t *ret_torn)
{
	struct takt_progress_said one = {.count = ret->count}, again = {.count = ret->count};
	int rc = read_once(fd, &one);

	rc = rc < 0 ? rc : read_once(fd, &again);
	*ret_torn = 0;
	for (uint32_t i = 0; rc == 0 && i < ret->count; i++) {
		if (!taken[i] && is_whole(&one.rank[i], &again.rank[i])) {
			ret->rank[i] = one.rank[i];
			taken[i] = true;
		}
		*ret_torn += !taken[i];
	}
	return rc;
}

/* What is nobody's says nothing. */
static int keep_sound(struct takt_progress_said *ret, uint32_t torn)
{
	uint32_t sound = 0;

	for (uint32_t i = 0; i < ret->count; i++) {
		bool is = is_one(&ret->rank[i]);

		if (!is)
			ret->rank[i].has = 0;
		sound += is;
	}
	if (sound)
		return 0;
	return torn ? -EAGAIN : -TAKT_E_CORRUPT;
}

static int read_whole(int fd, struct takt_progress_said *ret)
{
	bool taken[TAKT_PROGRESS_MAX_RANKS] = {false};
	uint32_t torn = ret->count;
	int rc = 0;

	for (int i = 0; i < TRIES && torn && rc == 0; i++)
		rc = take_whole(fd, ret, taken, &torn);
	return rc < 0 ? rc : keep_sound(ret, torn);
}

int takt_progress_read(int dirfd, const char *path, uid_t owner, struct takt_progress_said *ret)
{
	struct stat st;
	int fd = takt_wary_open(dirfd, path, owner, &st), rc = -TAKT_E_CORRUPT;

	if (fd < 0)
		return fd;
	memset(ret, 0, sizeof(*ret));
	if (st.st_size > 0 && st.st_size <= (off_t)sizeof(ret->rank) &&
	    st.st_size % (off_t)sizeof(ret->rank[0]) == 0) {
		ret->count = (uint32_t)((size_t)st.st_size / sizeof(ret->rank[0]));
		rc = read_whole(fd, ret);
	}
	close(fd);
	return rc;
}

static const struct takt_progress_file *newest(const struct takt_progress_track *track)
{
	return track->count ? &track->kept[(track->count - 1) % TAKT_PROGRESS_KEPT] : NULL;
}

bool takt_progress_went_back(const struct takt_progress_file *from,
			     const struct takt_progress_file *to)
{
	return to->steps < from->steps || to->tokens < from->tokens ||
	       to->queries < from->queries || to->at_ns < from->at_ns;
}

bool takt_progress_feed(struct takt_progress_track *track, const struct takt_progress_file *sample,
			struct takt_mono now)
{
	const struct takt_progress_file *last = newest(track);

	if (sample->has == 0 || sample->at_ns > now.ns)
		return false;
	if (last && takt_progress_went_back(last, sample))
		track->count = 0;
	else if (last && sample->at_ns == last->at_ns)
		return true;
	track->kept[track->count % TAKT_PROGRESS_KEPT] = *sample;
	track->count++;
	if (track->count == 2 * TAKT_PROGRESS_KEPT)
		track->count = TAKT_PROGRESS_KEPT; /* the same place in the ring */
	return true;
}

/* The oldest sample within the span before the newest. */
static const struct takt_progress_file *oldest(const struct takt_progress_track *track,
					       uint32_t *ret_between)
{
	const struct takt_progress_file *last = newest(track), *found = last;
	uint32_t held = track->count < TAKT_PROGRESS_KEPT ? track->count : TAKT_PROGRESS_KEPT;

	*ret_between = 0;
	for (uint32_t i = 1; i < held; i++) {
		const struct takt_progress_file *at =
			&track->kept[(track->count - 1 - i) % TAKT_PROGRESS_KEPT];

		if (last->at_ns - at->at_ns > SPAN_NS)
			break;
		found = at;
		*ret_between = i;
	}
	return found;
}

__extension__ typedef unsigned __int128 wide;

/* Thousandths a second. */
static uint64_t rate_of(uint64_t from, uint64_t to, uint64_t span_ns)
{
	wide rate = (wide)(to - from) * 1000 * TAKT_NS_PER_S / span_ns;

	return rate < UINT64_MAX ? (uint64_t)rate : UINT64_MAX;
}

bool takt_progress_rates(const struct takt_progress_track *track, struct takt_mono now,
			 struct takt_progress_rates *ret)
{
	const uint32_t counters =
		TAKT_PROGRESS_STEPS | TAKT_PROGRESS_TOKENS | TAKT_PROGRESS_QUERIES;
	const struct takt_progress_file *last = newest(track), *first;
	uint64_t silent_ns, limit_ns, span_ns;
	uint32_t between;

	if (!last)
		return false;
	*ret = (struct takt_progress_rates){.has = last->has & (counters | TAKT_PROGRESS_LATENCY),
					    .steps = last->steps,
					    .tokens = last->tokens,
					    .queries = last->queries,
					    .latency_us = last->latency_us};
	silent_ns = now.ns > last->at_ns ? now.ns - last->at_ns : 0;
	ret->age_ms = silent_ns / TAKT_NS_PER_MS;
	first = oldest(track, &between);
	span_ns = last->at_ns - first->at_ns;
	if (between == 0)
		return true;
	limit_ns = 3 * (span_ns / between);
	if (silent_ns > (limit_ns > SPAN_NS ? limit_ns : SPAN_NS))
		return true;
	ret->rated = ret->has & first->has & counters;
	ret->samples = between + 1;
	ret->steps_milli_s = rate_of(first->steps, last->steps, span_ns);
	ret->tokens_milli_s = rate_of(first->tokens, last->tokens, span_ns);
	ret->queries_milli_s = rate_of(first->queries, last->queries, span_ns);
	return true;
}
