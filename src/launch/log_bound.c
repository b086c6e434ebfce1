/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of a log is kept: its beginning, where a job says what it is, and its newest part. A job may
 * do with its log what it likes: have room set aside behind its end (fallocate), or write into what
 * was given back. So what counts is not how long it is, but how much of the disk it has.
 */
#include "launch/log_bound.h"

#include <errno.h>

enum {
	FIRST_PART = 4,	    /* of the limit: a quarter */
	GRAIN = 64 * 1024,  /* a multiple of most file systems' blocks */
	SMALL_GRAIN = 4096, /* where little is kept, of many's */
	STAT_BLOCK = 512,
	EXTRA = 16, /* of the limit a file system may take so much for its own lists */
	AHEAD = 2,  /* it may set aside as much again for a file that grows */
};

static uint64_t on_disk(const struct stat *st)
{
	return (uint64_t)st->st_blocks * STAT_BLOCK;
}

static uint64_t grain_of(const struct stat *st, uint64_t limit)
{
	uint64_t block = (uint64_t)st->st_blksize, most = limit / 16;
	uint64_t grain = GRAIN <= most ? GRAIN : SMALL_GRAIN;

	return block > grain && block <= most ? block : grain;
}

/* Inwards to whole blocks at both ends: less than a block would be zeroed and kept. */
static struct takt_output_cut middle(const struct stat *st, uint64_t limit)
{
	uint64_t grain = grain_of(st, limit), first = limit / FIRST_PART / grain * grain;
	uint64_t newest = (uint64_t)st->st_size - (limit - first);

	return (struct takt_output_cut){
		.limit = limit, .from = first, .to = (newest + grain - 1) / grain * grain};
}

static int punch(const struct takt_sys *sys, int logfd, struct takt_output_cut *next)
{
	int rc = sys->punch(sys, logfd, (off_t)next->from, (off_t)(next->to - next->from));

	if (rc != -EOPNOTSUPP)
		return rc;
	next->to = 0;
	return sys->ftruncate(sys, logfd, (off_t)next->from);
}

/* Once more where something is in the hole. */
static int cut_middle(const struct takt_sys *sys, int logfd, const struct stat *st, uint64_t limit,
		      struct takt_output_cut *cut)
{
	struct takt_output_cut next = middle(st, limit);
	bool again = next.to == cut->to;
	struct stat left;
	int rc;

	if (again && on_disk(st) <= limit + limit / EXTRA + GRAIN)
		return 0;
	rc = punch(sys, logfd, &next);
	if (rc == 0 && again)
		rc = sys->fstat(sys, logfd, &left);
	if (rc < 0 || (again && on_disk(&left) + GRAIN > on_disk(st)))
		return rc;
	*cut = next;
	return 1;
}

/* Of what lies behind its end nothing is kept. The file is truncated for it only where that is not
 * the file system's own doing: what is written just then would be lost. */
static int cut_behind(const struct takt_sys *sys, int logfd, uint64_t limit)
{
	struct stat st;
	int rc = sys->fstat(sys, logfd, &st);

	if (rc < 0 || on_disk(&st) <= AHEAD * limit + GRAIN)
		return rc;
	return sys->ftruncate(sys, logfd, st.st_size);
}

int takt_log_bound(const struct takt_sys *sys, int logfd, uint64_t limit,
		   struct takt_output_cut *cut)
{
	struct stat st;
	int rc = sys->fstat(sys, logfd, &st), behind = 0;

	if (rc < 0 || !S_ISREG(st.st_mode))
		return rc;
	if ((uint64_t)st.st_size > limit)
		rc = cut_middle(sys, logfd, &st, limit, cut);
	if (rc >= 0 && on_disk(&st) > AHEAD * limit + GRAIN)
		behind = cut_behind(sys, logfd, limit);
	return behind < 0 && rc == 0 ? behind : rc;
}

/* To all that it may have, and no less: a rank may have it mapped. */
int takt_progress_bound(const struct takt_sys *sys, int fd)
{
	struct stat st;
	int rc = sys->fstat(sys, fd, &st);

	if (rc < 0 || !S_ISREG(st.st_mode) ||
	    ((uint64_t)st.st_size <= TAKT_PROGRESS_BYTES && on_disk(&st) <= AHEAD * GRAIN))
		return rc;
	return sys->ftruncate(sys, fd, TAKT_PROGRESS_BYTES);
}
