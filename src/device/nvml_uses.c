/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much of a GPU each process on it uses. The driver keeps samples for a while and hands out
 * those that are newer than a stamp; a process that did nothing has none. So what was heard counts
 * for some seconds, and a process of which nothing was heard is not known to be idle.
 */
#include "base/mem.h"
#include "base/sys.h"
#include "device/nvml_api.h"

enum {
	FIRST_ROOM = 64,
	TRIES = 3, /* their number may grow between asking for it and reading them */
	MAX_SAMPLES = 64 * 1024,
	MAX_PCT = 100, /* more is a fault that some drivers have */
};

static const uint64_t keep_ns = 3 * TAKT_NS_PER_S;
static const uint64_t keep_us = 3 * 1000 * 1000;

/* Those newer than what was heard, into gpu->use_samples. */
static int read_samples(const struct takt_nvml_api *api, struct takt_nvml_gpu *gpu)
{
	uint32_t need = FIRST_ROOM;
	int code = NVML_ERROR_MEMORY;

	takt_vec_clear(&gpu->use_samples);
	for (int i = 0; i < TRIES; i++) {
		uint32_t count;

		if (need > MAX_SAMPLES || takt_vec_reserve(&gpu->use_samples, need) < 0)
			return NVML_ERROR_MEMORY;
		count = (uint32_t)gpu->use_samples.cap;
		code = api->process_utilization(gpu->device, gpu->use_samples.at, &count,
						gpu->use_stamp_us);
		if (code == NVML_SUCCESS && count <= gpu->use_samples.cap)
			gpu->use_samples.len = count;
		if (code != NVML_ERROR_INSUFFICIENT_SIZE)
			return code;
		need = count > gpu->use_samples.cap ? count : (uint32_t)gpu->use_samples.cap + 1;
	}
	return code;
}

static struct takt_nvml_use *find_use(struct takt_nvml_gpu *gpu, int32_t pid)
{
	TAKT_VEC_EACH (use, &gpu->uses)
		if (use->pid == pid)
			return use;
	return NULL;
}

static void forget_old(struct takt_nvml_gpu *gpu, struct takt_mono now)
{
	for (size_t i = gpu->uses.len; i > 0; i--)
		if (takt_mono_elapsed_ns(now, gpu->uses.at[i - 1].at) >= keep_ns)
			takt_vec_remove_swap(&gpu->uses, i - 1);
}

/* Of a process the newest. */
static void note(struct takt_nvml_gpu *gpu, const struct nvml_process_utilization *sample,
		 struct takt_mono now)
{
	struct takt_nvml_use heard = {(int32_t)sample->pid, sample->sm, sample->memory,
				      sample->timestamp_us, now};
	struct takt_nvml_use *use = find_use(gpu, heard.pid);

	if (sample->sm > MAX_PCT || sample->memory > MAX_PCT)
		return;
	if (!use)
		(void)takt_vec_push(&gpu->uses, heard);
	else if (use->stamp_us <= heard.stamp_us)
		*use = heard;
}

/* The driver's samples may reach back far when it is asked first. */
static void note_all(struct takt_nvml_gpu *gpu, struct takt_mono now)
{
	TAKT_VEC_EACH (sample, &gpu->use_samples)
		if (sample->timestamp_us > gpu->use_stamp_us)
			gpu->use_stamp_us = sample->timestamp_us;
	TAKT_VEC_EACH (sample, &gpu->use_samples)
		if (gpu->use_stamp_us - sample->timestamp_us < keep_us)
			note(gpu, sample, now);
}

static void tell(struct takt_nvml_gpu *gpu, struct takt_gpu_reading *reading)
{
	for (uint32_t i = 0; i < reading->proc_count; i++) {
		struct takt_gpu_proc *proc = &reading->procs[i];
		const struct takt_nvml_use *use = find_use(gpu, proc->pid);

		if (!use)
			continue;
		proc->util_known = true;
		proc->sm_util_pct = use->sm_pct;
		proc->mem_util_pct = use->memory_pct;
	}
}

int takt_nvml_read_uses(const struct takt_nvml_api *api, struct takt_nvml_gpu *gpu,
			struct takt_gpu_reading *reading)
{
	struct takt_mono now = takt_mono_now(takt_sys_real());
	int code;

	if (!api->process_utilization || reading->proc_count == 0)
		return NVML_SUCCESS;
	gpu->uses.max = gpu->use_samples.max = MAX_SAMPLES;
	code = read_samples(api, gpu);
	forget_old(gpu, now);
	note_all(gpu, now);
	tell(gpu, reading);
	return code == NVML_ERROR_GPU_IS_LOST || code == NVML_ERROR_RESET_REQUIRED ? code
										   : NVML_SUCCESS;
}
