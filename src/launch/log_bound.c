/* SPDX-License-Identifier: Apache-2.0 */
/* What of a log is kept: its beginning, where a job says what it is, and its newest part. */
#include "launch/log_bound.h"

#include <errno.h>

enum {
	FIRST_PART = 4,	   /* of the limit: a quarter */
	GRAIN = 64 * 1024, /* a multiple of most file systems' blocks */
};

static uint64_t grain_of(const struct stat *st, uint64_t limit)
{
	uint64_t block = (uint64_t)st->st_blksize;

	return block > GRAIN && block <= limit / 16 ? block : GRAIN;
}

/* Inwards to whole blocks at both ends: less than a block would be zeroed and kept. */
static struct takt_output_cut middle(const struct stat *st, uint64_t limit)
{
	uint64_t grain = grain_of(st, limit), first = limit / FIRST_PART / grain * grain;
	uint64_t newest = (uint64_t)st->st_size - (limit - first);

	return (struct takt_output_cut){
		.limit = limit, .from = first, .to = (newest + grain - 1) / grain * grain};
}

int takt_log_bound(const struct takt_sys *sys, int logfd, uint64_t limit,
		   struct takt_output_cut *cut)
{
	struct takt_output_cut next;
	struct stat st;
	int rc = sys->fstat(sys, logfd, &st);

	if (rc < 0 || !S_ISREG(st.st_mode) || (uint64_t)st.st_size <= limit)
		return rc;
	next = middle(&st, limit);
	if (next.to == cut->to)
		return 0;
	rc = sys->punch(sys, logfd, (off_t)next.from, (off_t)(next.to - next.from));
	if (rc == -EOPNOTSUPP) {
		next.to = 0;
		rc = sys->ftruncate(sys, logfd, (off_t)next.from);
	}
	if (rc < 0)
		return rc;
	*cut = next;
	return 1;
}
