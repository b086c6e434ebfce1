/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holding the job's log to its bound while it is written to, and its progress file, which is on
 * takt's disk, too. The shim does it, by the descriptor that the job writes to: nobody else could
 * without trusting a name in a directory of the user's.
 *
 * Of a log that nobody writes to nothing is to be looked at, and a shim that waits should not wake
 * for it. The kernel tells of the first write by SIGIO, once: fcntl(2)'s F_NOTIFY, which unlike
 * inotify takes none of the few instances that a user has. After a pause the size is looked at, and
 * from then on the next write is told. Where the kernel does not tell, the shim looks each time.
 * The pause is short as long as each look finds too much: that much more is on the disk until then.
 * Of what is written into a mapping of the file nothing is told. There is room for that only in a
 * log that is longer than what is kept: of another user's it is looked for at the same pace.
 */
#include <fcntl.h>

#include "base/pace.h"
#include "launch/log_bound.h"
#include "launch/shim_job.h"

static const struct takt_pace pace = {TAKT_NS_PER_S / 10, TAKT_NS_PER_S};

static bool has_bounds(const struct takt_shim *shim)
{
	return shim->spec.output_limit || shim->progressfd >= 0;
}

void takt_shim_bound_begin(struct takt_shim *shim)
{
	if (has_bounds(shim))
		shim->bound_at = takt_boot_now(shim->sys);
}

struct takt_boot takt_shim_bound_due(const struct takt_shim *shim, struct takt_boot until)
{
	struct takt_boot at = shim->bound_at;

	return at.ns && (until.ns == 0 || at.ns < until.ns) ? at : until;
}

static struct takt_boot after_pause(const struct takt_shim *shim)
{
	return takt_boot_add(takt_boot_now(shim->sys), takt_pace_ns(&pace, shim->bound_kept));
}

void takt_shim_bound_told(struct takt_shim *shim)
{
	if (has_bounds(shim) && shim->bound_at.ns == 0)
		shim->bound_at = after_pause(shim);
}

void takt_shim_bound_apply(struct takt_shim *shim)
{
	struct takt_output_cut *cut = &shim->cut;

	shim->bound_kept++;
	if (shim->progressfd >= 0)
		(void)takt_progress_bound(shim->sys, shim->progressfd);
	if (!shim->spec.output_limit ||
	    takt_log_bound(shim->sys, shim->logfd, shim->spec.output_limit, cut) <= 0)
		return;
	shim->bound_kept = 0;
	if (cut->to == 0)
		takt_shim_note(shim, "output was dropped here: there is more than output_limit "
				     "keeps, and this file system has no files with holes");
	if (takt_attempt_record_cut(shim->sys, shim->logdirfd, cut, NULL) < 0)
		cut->to = 0; /* said at the next look, however little was written by then */
}

/* Whether whatever is written from now on is told. */
static bool may_rest(const struct takt_shim *shim, bool told)
{
	return told && !(shim->user->other && shim->cut.limit);
}

/* The kernel is asked first: what is written after that it tells, what was before is looked at. */
void takt_shim_bound_look(struct takt_shim *shim)
{
	bool told;

	if (shim->bound_at.ns == 0 || takt_boot_now(shim->sys).ns < shim->bound_at.ns)
		return;
	told = fcntl(shim->logdirfd, F_NOTIFY, DN_MODIFY) == 0;
	takt_shim_bound_apply(shim);
	shim->bound_at = may_rest(shim, told) ? (struct takt_boot){0} : after_pause(shim);
}
