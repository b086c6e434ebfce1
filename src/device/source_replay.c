/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recorded machine as a source: samples come in their recorded time, counted from the opening;
 * before the first of a GPU it shows the first, after the last the last. It has no setters, so a
 * replayed machine can never act.
 */
#include <errno.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/sys.h"
#include "device/device_impl.h"
#include "device/recording.h"

struct replay {
	struct takt_source base;
	struct takt_recording *recording; /* owned */
	struct takt_mono begin;
};

static int open_replay(const struct takt_source_config *config, struct takt_source **ret,
		       struct takt_err *err)
{
	struct replay *replay;
	int rc;

	if (!config->path)
		return takt_err_set(err, -EINVAL, "no recording was named");
	replay = takt_zalloc(sizeof(*replay));
	if (!replay)
		return takt_err_set(err, -ENOMEM, "replay");
	rc = takt_recording_read(config->path, &replay->recording, err);
	if (rc < 0) {
		takt_free(replay);
		return rc;
	}
	replay->base.ops = &takt_source_replay;
	atomic_init(&replay->base.refs, 1);
	replay->base.gpu_count = replay->recording->gpu_count;
	takt_strcpy(replay->base.driver_version, sizeof(replay->base.driver_version),
		    replay->recording->info.driver_version);
	takt_strcpy(replay->base.nvml_version, sizeof(replay->base.nvml_version),
		    replay->recording->info.nvml_version);
	replay->base.cuda_version = replay->recording->info.cuda_version;
	replay->base.simulated = replay->recording->info.simulated;
	replay->begin = takt_mono_now(takt_sys_real());
	*ret = &replay->base;
	return 0;
}

static void close_replay(struct takt_source *source)
{
	struct replay *replay = (struct replay *)source;

	takt_recording_free(replay->recording);
	takt_free(replay);
}

static bool replay_facts(struct takt_source *source, uint32_t gpu, uint32_t step,
			 struct takt_gpu_facts *facts)
{
	const struct replay *replay = (const struct replay *)source;

	if (step > 0)
		return false;
	*facts = replay->recording->facts[gpu];
	return true;
}

static struct takt_gpu_link replay_link(struct takt_source *source, uint32_t gpu, uint32_t other)
{
	const struct replay *replay = (const struct replay *)source;

	return replay->recording->links[gpu * source->gpu_count + other];
}

/* The last sample at or before the time; the first if there is none. n >= 1. */
static size_t find(const struct takt_recorded_sample *samples, size_t n, uint64_t at_us)
{
	size_t low = 0, high = n;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (samples[middle].at_us <= at_us)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* A recorded sample is always whole, whatever part was asked for. */
static bool replay_sample(struct takt_source *source, uint32_t gpu, uint32_t parts,
			  struct takt_gpu_reading *reading)
{
	const struct replay *replay = (const struct replay *)source;
	const struct takt_recorded_samples *samples = &replay->recording->samples[gpu];
	struct takt_mono now = takt_mono_now(takt_sys_real());
	uint64_t at_us = takt_mono_elapsed_ns(now, replay->begin) / TAKT_NS_PER_US;

	if (samples->list.len > 0)
		takt_recording_sample(replay->recording, gpu,
				      find(samples->list.at, samples->list.len, at_us), reading);
	else
		reading->has = 0;
	return true;
}

const struct takt_source_ops takt_source_replay = {
	.name = "replay",
	.open = open_replay,
	.close = close_replay,
	.facts = replay_facts,
	.link = replay_link,
	.sample = replay_sample,
};
