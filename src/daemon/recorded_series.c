/* SPDX-License-Identifier: Apache-2.0 */
/* One value of a GPU out of a recording, for `takt forecast`. */
#include <errno.h>
#include <math.h>

#include "base/mem.h"
#include "daemon/daemon.h"
#include "device/recording.h"

static double value_of(const struct takt_gpu_reading *reading, bool power)
{
	if (power)
		return reading->has & TAKT_HAS_POWER ? reading->power_mw / 1000.0 : NAN;
	return reading->has & TAKT_HAS_GPU_UTIL ? reading->gpu_util_pct : NAN;
}

static int hand_out(const struct takt_recording *recording, uint32_t gpu, bool power,
		    int (*each)(void *ctx, int64_t at_us, double value), void *ctx,
		    struct takt_err *err)
{
	TAKT_CLEANUP(freep) struct takt_gpu_reading *reading = takt_alloc(sizeof(*reading));
	int rc = reading ? 0 : -ENOMEM;

	for (size_t i = 0; rc == 0 && i < recording->samples[gpu].list.len; i++) {
		takt_recording_sample(recording, gpu, i, reading);
		rc = each(ctx, (int64_t)recording->samples[gpu].list.at[i].at_us,
			  value_of(reading, power));
	}
	return rc < 0 ? takt_err_set(err, rc, "samples of GPU %u", gpu) : 0;
}

int takt_recorded_series(const char *path, uint32_t gpu, bool power,
			 int (*each)(void *ctx, int64_t at_us, double value), void *ctx,
			 bool *ret_simulated, struct takt_err *err)
{
	struct takt_recording *recording;
	int rc = takt_recording_read(path, &recording, err);

	if (rc < 0)
		return rc;
	*ret_simulated = recording->info.simulated;
	if (gpu >= recording->gpu_count)
		rc = takt_err_set(err, -EINVAL, "'%s' has GPUs 0 to %u, no %u", path,
				  recording->gpu_count - 1, gpu);
	else
		rc = hand_out(recording, gpu, power, each, ctx, err);
	takt_recording_free(recording);
	return rc;
}
