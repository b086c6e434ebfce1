/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes on a GPU: compute, MPS and graphics clients, merged by pid.
 *
 * The entries' size is a trap. The first ABI has 16 bytes an entry, later ones 24, and early 535
 * drivers wrote 32 from the symbol that is 24 everywhere else. So the buffer has room for 32 an
 * entry and is filled with a pattern first: with k entries returned, a driver of 24 leaves the
 * bytes from 24 k on alone, a driver of 32 does not.
 */
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "base/vec.h"
#include "device/nvml_api.h"

enum {
	ENTRY = sizeof(struct nvml_process_info),
	LONG_ENTRY = sizeof(struct nvml_process_detail),
	OLD_ENTRY = sizeof(struct nvml_process_info_v1),
	FIRST_ROOM = 32,
	MAX_ROOM = 4096,
	PATTERN = 0xaa,
	TRIES = 4, /* the list may grow between asking for its size and reading it */
};

typedef int list_fn(struct nvml_device *device, uint32_t *count, struct nvml_process_info *infos);
typedef int old_list_fn(struct nvml_device *device, uint32_t *count,
			struct nvml_process_info_v1 *infos);

static bool make_room(struct takt_nvml_gpu *gpu, uint32_t entries)
{
	uint32_t room = gpu->procs_room > 0 ? gpu->procs_room : FIRST_ROOM;
	void *procs;

	while (room < entries)
		room *= 2;
	if (room > MAX_ROOM)
		return false;
	if (room == gpu->procs_room)
		return true;
	procs = takt_reallocarray(gpu->procs, room, LONG_ENTRY);
	if (!procs)
		return false;
	gpu->procs = procs;
	gpu->procs_room = room;
	return true;
}

/* Reads one list into gpu->procs; *ret_count entries. */
static int read_list(struct takt_nvml_gpu *gpu, list_fn *list, old_list_fn *old,
		     uint32_t *ret_count)
{
	uint32_t need = 1;

	if (!list && !old)
		return NVML_ERROR_NOT_SUPPORTED;
	for (int i = 0; i < TRIES; i++) {
		uint32_t count;
		int code;

		if (!make_room(gpu, need))
			return NVML_ERROR_MEMORY;
		memset(gpu->procs, PATTERN, (size_t)gpu->procs_room * LONG_ENTRY);
		count = gpu->procs_room;
		code = list ? list(gpu->device, &count, gpu->procs)
			    : old(gpu->device, &count, gpu->procs);
		if (code == NVML_SUCCESS && count <= gpu->procs_room)
			*ret_count = count;
		if (code != NVML_ERROR_INSUFFICIENT_SIZE)
			return code;
		need = count > gpu->procs_room ? count : gpu->procs_room + 1;
	}
	return NVML_ERROR_INSUFFICIENT_SIZE;
}

static size_t entry_size(const struct takt_nvml_gpu *gpu, uint32_t count)
{
	const unsigned char *bytes = gpu->procs;

	for (size_t i = (size_t)count * ENTRY; i < (size_t)count * LONG_ENTRY; i++)
		if (bytes[i] != PATTERN)
			return LONG_ENTRY;
	return ENTRY;
}

/* Ascending by pid; a process on several lists is one. A process is "graphics" if that is all it
 * is, and lists are read compute first. */
static int add(struct takt_nvml_gpu *gpu, const struct takt_gpu_proc *proc)
{
	size_t at = gpu->found.len;

	while (at > 0 && gpu->found.at[at - 1].pid >= proc->pid)
		at--;
	if (at < gpu->found.len && gpu->found.at[at].pid == proc->pid)
		return 0;
	return takt_vec_insert(&gpu->found, at, *proc);
}

/* pid and memory lie at the same place in all three layouts. */
static int add_list(struct takt_nvml_gpu *gpu, uint32_t count, size_t size, bool graphics)
{
	for (uint32_t i = 0; i < count; i++) {
		struct nvml_process_info_v1 entry;
		struct takt_gpu_proc proc = {.graphics = graphics};

		memcpy(&entry, (const char *)gpu->procs + i * size, sizeof(entry));
		proc.pid = (int32_t)entry.pid;
		proc.memory_known = entry.used_memory != NVML_NO_VALUE_U64;
		proc.memory_bytes = proc.memory_known ? entry.used_memory : 0;
		if (add(gpu, &proc) < 0)
			return NVML_ERROR_MEMORY;
	}
	return NVML_SUCCESS;
}

static int read_and_add(struct takt_nvml_gpu *gpu, list_fn *list, old_list_fn *old, bool graphics)
{
	uint32_t count = 0;
	int code = read_list(gpu, list, old, &count);

	if (code != NVML_SUCCESS)
		return code;
	return add_list(gpu, count, list ? entry_size(gpu, count) : OLD_ENTRY, graphics);
}

static bool is_absent(int code)
{
	return takt_nvml_rc(code) == -TAKT_E_UNSUPPORTED;
}

/* The compute list is what counts: without it there is no telling whether the GPU is free. */
static int read_lists(const struct takt_nvml_api *api, struct takt_nvml_gpu *gpu)
{
	int code = read_and_add(gpu, api->compute_procs, api->compute_procs_v1, false);

	if (code != NVML_SUCCESS)
		return code;
	code = read_and_add(gpu, api->mps_procs, api->mps_procs_v1, false);
	if (code != NVML_SUCCESS && !is_absent(code))
		return code;
	code = read_and_add(gpu, api->graphics_procs, api->graphics_procs_v1, true);
	return is_absent(code) ? NVML_SUCCESS : code;
}

int takt_nvml_read_procs(const struct takt_nvml_api *api, struct takt_nvml_gpu *gpu,
			 struct takt_gpu_reading *reading)
{
	int code;

	gpu->found.max = 3 * MAX_ROOM;
	takt_vec_clear(&gpu->found);
	code = read_lists(api, gpu);
	if (code != NVML_SUCCESS)
		return code;
	reading->proc_count = gpu->found.len < TAKT_DEVICE_MAX_PROCS ? (uint32_t)gpu->found.len
								     : TAKT_DEVICE_MAX_PROCS;
	reading->procs_dropped = (uint32_t)gpu->found.len - reading->proc_count;
	for (uint32_t i = 0; i < reading->proc_count; i++)
		reading->procs[i] = gpu->found.at[i];
	return NVML_SUCCESS;
}
