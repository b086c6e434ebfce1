/* SPDX-License-Identifier: Apache-2.0 */
/* How fast a run is by what its ranks tell (docs/job.md), see tune.h. The file is the user's
 * own, and he who reads it is the same user. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "base/timetypes.h"
#include "cli/tune.h"

static const uint64_t ENDED_NS = 60 * TAKT_NS_PER_S; /* so long behind the others' last word */

enum {
	QUERIES = 2
};

struct said {
	struct takt_progress_file rank[TAKT_PROGRESS_MAX_RANKS];
};

static bool read_said(int fd, struct said *ret)
{
	memset(ret, 0, sizeof(*ret));
	return pread(fd, ret, sizeof(*ret), 0) >= (ssize_t)sizeof(ret->rank[0]);
}

/* What was being written meanwhile is not the same twice. */
static bool is_whole(const struct takt_progress_file *file, const struct takt_progress_file *again)
{
	return file->has && !(file->sequence & 1) && memcmp(file, again, sizeof(*file)) == 0 &&
	       memcmp(file->magic, TAKT_PROGRESS_MAGIC, sizeof(file->magic)) == 0;
}

static void take(struct takt_tune_rank *rank, const struct takt_progress_file *file)
{
	rank->has = file->has;
	rank->last[0] = file->steps;
	rank->last[1] = file->tokens;
	rank->last[QUERIES] = file->queries;
	rank->last_ns = file->at_ns;
	if (rank->first_ns == 0) {
		memcpy(rank->first, rank->last, sizeof(rank->first));
		rank->first_ns = file->at_ns;
	}
}

void takt_tune_look(struct takt_tune_told *told, const char *path)
{
	int fd = path && path[0] ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
	struct said said, again;

	if (fd < 0)
		return;
	if (read_said(fd, &said) && read_said(fd, &again))
		for (size_t i = 0; i < TAKT_PROGRESS_MAX_RANKS; i++)
			if (is_whole(&said.rank[i], &again.rank[i]))
				take(&told->rank[i], &said.rank[i]);
	close(fd);
}

uint32_t takt_tune_ranks(const struct takt_tune_told *told)
{
	uint32_t count = 0;

	for (size_t i = 0; i < TAKT_PROGRESS_MAX_RANKS; i++)
		count += told->rank[i].has != 0;
	return count;
}

static uint64_t newest_ns(const struct takt_tune_told *told)
{
	uint64_t newest = 0;

	for (size_t i = 0; i < TAKT_PROGRESS_MAX_RANKS; i++)
		if (told->rank[i].last_ns > newest)
			newest = told->rank[i].last_ns;
	return newest;
}

/* 0: too little was told. */
static double rate_of(const struct takt_tune_rank *rank, size_t counter)
{
	if (rank->last[counter] <= rank->first[counter] || rank->last_ns <= rank->first_ns)
		return 0;
	return (double)(rank->last[counter] - rank->first[counter]) /
	       (double)(rank->last_ns - rank->first_ns) * 1e9;
}

static void add_rank(struct takt_tune_sample *all, size_t counter, uint32_t rank, double rate)
{
	if (counter == QUERIES) {
		all->performance = all->ranks ? all->performance + rate : rate;
	} else if (all->ranks == 0 || rate < all->performance) {
		all->performance = rate;
		all->slowest_rank = rank;
	}
	all->ranks++;
}

static bool rate_counter(const struct takt_tune_told *told, size_t counter,
			 struct takt_tune_sample *ret)
{
	uint64_t newest = newest_ns(told);

	ret->ranks = 0;
	for (uint32_t i = 0; i < TAKT_PROGRESS_MAX_RANKS; i++) {
		const struct takt_tune_rank *rank = &told->rank[i];
		double rate = rate_of(rank, counter);

		if (!(rank->has >> counter & 1) || newest - rank->last_ns > ENDED_NS)
			continue;
		if (!(rate > 0))
			return false;
		add_rank(ret, counter, i, rate);
	}
	return ret->ranks > 0;
}

bool takt_tune_rate_told(const struct takt_tune_told *told, struct takt_tune_sample *ret)
{
	static const char *const units[] = {"step", "token", "query"};

	for (size_t i = 0; i < TAKT_ARRAY_LEN(units); i++) {
		struct takt_tune_sample rated = *ret;

		if (!rate_counter(told, i, &rated))
			continue;
		*ret = rated;
		takt_strcpy(ret->unit, sizeof(ret->unit), units[i]);
		return true;
	}
	return false;
}
