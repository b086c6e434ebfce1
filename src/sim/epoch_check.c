/* SPDX-License-Identifier: Apache-2.0 */
/* Logs of governors' steps made again, see the header. */
#include "sim/epoch_check.h"

#include <errno.h>
#include <fcntl.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/sys.h"
#include "clock/epoch_log.h"

static void tell(const struct takt_epoch_replay *replay, struct takt_epoch_check *ret)
{
	*ret = (struct takt_epoch_check){
		.max_slowdown_permille = replay->setup.job.max_slowdown_permille,
		.steps = replay->steps,
		.differing = replay->differing,
		.first_differing = replay->first_differing,
		.ceiling_mhz = replay->wish.cap.max_mhz,
	};
	takt_strcpy(ret->governor, sizeof(ret->governor), replay->governor->name);
	takt_strcpy(ret->job, sizeof(ret->job), replay->name);
}

int takt_epoch_check(const struct takt_governors *all, const char *path,
		     struct takt_epoch_check *ret, struct takt_err *err)
{
	TAKT_CLEANUP(freep) struct takt_epoch_replay *replay = takt_alloc(sizeof(*replay));
	TAKT_CLEANUP(freep) char *text = NULL;
	size_t len = 0;
	int rc = replay ? takt_file_read(takt_sys_real(), AT_FDCWD, path, TAKT_EPOCH_LOG_MAX_BYTES,
					 &text, &len, err)
			: takt_err_set(err, -ENOMEM, "no memory for the log");

	if (rc == 0)
		rc = takt_epoch_replay(all, text, len, NULL, NULL, replay, err);
	if (rc < 0)
		return rc;
	tell(replay, ret);
	takt_epoch_replay_fini(replay);
	return 0;
}
