/* SPDX-License-Identifier: Apache-2.0 */
/* A governor that could not begin is refused to whoever names it, in its own words, and not given
 * up in silence when the job runs: it is begun for a moment, as it would be on each GPU. */
#include <errno.h>

#include "base/mem.h"
#include "daemon/govern_impl.h"

/* One of takt's own that asks for what no board of these has would hold nothing for ever. */
static int check_wish(struct takt_governed *one, struct takt_err *err)
{
	const struct takt_governor_observation nothing = {.has = 0};

	if (one->governor != &takt_governor_fixed)
		return 0;
	takt_governor_step(one->governor, one->state, &one->setup, &nothing, &one->wish);
	return one->wish.cap.sets
		       ? 0
		       : takt_err_set(err, -TAKT_E_USAGE,
				      "governor 'fixed' is given nothing that can be set here");
}

/* 1: it begins on the job's GPU; 0: nothing of that can be set. */
static int try_on(const struct takt_daemon *daemon, const struct takt_govern_terms *terms,
		  const struct takt_queue_job *job, struct takt_err *err)
{
	struct takt_governed *one = takt_governed_new(daemon, terms, job);
	int rc = one ? 0 : takt_err_set(err, -ENOMEM, "a governor's state");

	if (rc == 0 && one->setup.board.can) {
		rc = takt_governor_init(one->governor, one->state, &one->setup, err);
		if (rc == 0)
			rc = check_wish(one, err);
		rc = rc < 0 ? rc : 1;
	}
	takt_governed_free(one);
	return rc;
}

int takt_govern_try(const struct takt_daemon *daemon, const struct takt_govern_terms *terms,
		    const struct takt_jobspec *spec, struct takt_err *err)
{
	TAKT_CLEANUP(freep) struct takt_queue_job *job = takt_zalloc(sizeof(*job));
	int refused = 0, rc = 0;

	if (!job)
		return takt_err_set(err, -ENOMEM, "a governor's state");
	if (spec)
		job->spec = *spec; /* borrows */
	for (uint32_t gpu = 0; gpu < daemon->gpu_count && rc <= 0; gpu++) {
		job->row.gpu_mask = UINT64_C(1) << gpu;
		if (spec && spec->gpu_indices && !(spec->gpu_indices & job->row.gpu_mask))
			continue;
		rc = try_on(daemon, terms, job, err);
		refused = rc < 0 ? rc : refused;
	}
	return rc > 0 ? 0 : refused;
}
