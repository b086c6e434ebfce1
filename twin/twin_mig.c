/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of twin_mig.h. */
#include "twin_mig.h"

#include <stdio.h>
#include <string.h>

static const uint8_t compute_slices[TWIN_COMPUTE_PROFILES] = {1, 2, 3, 4, 7, 8, 6, 0};

const struct twin_mig_profile *twin_mig_by_id(const struct twin_board *board, uint32_t id)
{
	for (uint32_t i = 0; i < board->mig_count; i++) {
		if (board->mig[i].id == id)
			return &board->mig[i];
	}
	return NULL;
}

const struct twin_mig_profile *twin_mig_by_number(const struct twin_board *board, uint32_t number)
{
	for (uint32_t i = 0; i < board->mig_count; i++) {
		if (board->mig[i].number == number)
			return &board->mig[i];
	}
	return NULL;
}

const struct twin_mig_profile *twin_mig_profile(const struct twin_gpu *gpu,
						const struct twin_board *board, uint32_t start)
{
	return &board->mig[gpu->instances[start].profile % TWIN_MIG_PROFILES];
}

bool twin_mig_may_start(const struct twin_mig_profile *profile, uint32_t start)
{
	return start < TWIN_MIG_SLICES && start % profile->size == 0 &&
	       start + profile->slices <= TWIN_MIG_SLICES - 1;
}

static uint32_t in_use(const struct twin_gpu *gpu, const struct twin_board *board,
		       const struct twin_mig_profile *profile)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < TWIN_MIG_SLICES; i++)
		n += gpu->instances[i].used && twin_mig_profile(gpu, board, i) == profile;
	return n;
}

bool twin_mig_fits(const struct twin_gpu *gpu, const struct twin_board *board,
		   const struct twin_mig_profile *profile, uint32_t start)
{
	if (!twin_mig_may_start(profile, start) || in_use(gpu, board, profile) >= profile->count)
		return false;
	for (uint32_t i = 0; i < TWIN_MIG_SLICES; i++) {
		if (gpu->instances[i].used && i < start + profile->size &&
		    start < i + twin_mig_profile(gpu, board, i)->size)
			return false;
	}
	return true;
}

uint32_t twin_mig_room(const struct twin_gpu *gpu, const struct twin_board *board,
		       const struct twin_mig_profile *profile)
{
	uint32_t left = profile->count - in_use(gpu, board, profile), places = 0;

	for (uint32_t i = 0; i < TWIN_MIG_SLICES; i++)
		places += twin_mig_fits(gpu, board, profile, i);
	return places < left ? places : left;
}

/* Places of all profiles that an instance there would take away. */
static uint32_t harm(const struct twin_gpu *gpu, const struct twin_board *board,
		     const struct twin_mig_profile *profile, uint32_t start)
{
	uint32_t n = 0;

	for (uint32_t p = 0; p < board->mig_count; p++) {
		const struct twin_mig_profile *other = &board->mig[p];
		for (uint32_t i = 0; i < TWIN_MIG_SLICES; i++)
			n += twin_mig_fits(gpu, board, other, i) && i < start + profile->size &&
			     start < i + other->size;
	}
	return n;
}

bool twin_mig_choose(const struct twin_gpu *gpu, const struct twin_board *board,
		     const struct twin_mig_profile *profile, uint32_t *ret_start)
{
	uint32_t least = UINT32_MAX;

	for (uint32_t i = 0; i < TWIN_MIG_SLICES; i++) {
		uint32_t cost;
		if (!twin_mig_fits(gpu, board, profile, i))
			continue;
		cost = harm(gpu, board, profile, i);
		if (cost >= least)
			continue;
		least = cost;
		*ret_start = i;
	}
	return least != UINT32_MAX;
}

uint32_t twin_mig_id(const struct twin_mig_profile *profile, uint32_t start)
{
	return TWIN_MIG_SLICES / profile->size - 1 + start / profile->size;
}

uint32_t twin_compute_slices(uint32_t number)
{
	return number < TWIN_COMPUTE_PROFILES ? compute_slices[number] : 0;
}

uint32_t twin_compute_number(uint32_t slices)
{
	uint32_t number = 0;

	while (compute_slices[number] != slices)
		number++;
	return number;
}

/* The next power of two: what a start must be a multiple of. */
static uint32_t stride(uint32_t slices)
{
	uint32_t n = 1;

	while (n < slices)
		n *= 2;
	return n;
}

bool twin_compute_may_start(const struct twin_mig_profile *profile, uint32_t slices, uint32_t start)
{
	/* three of four are offered by no board */
	if (slices == 0 || (slices == 3 && profile->slices == 4))
		return false;
	return start % stride(slices) == 0 && start + slices <= profile->slices;
}

bool twin_compute_fits(const struct twin_gpu_instance *instance,
		       const struct twin_mig_profile *profile, uint32_t slices, uint32_t start)
{
	if (!twin_compute_may_start(profile, slices, start))
		return false;
	for (uint32_t i = 0; i < TWIN_MIG_SLICES - 1; i++) {
		if (instance->compute[i].slices && i < start + slices &&
		    start < i + instance->compute[i].slices)
			return false;
	}
	return true;
}

uint32_t twin_compute_multiprocessors(const struct twin_board *board,
				      const struct twin_mig_profile *profile, uint32_t slices)
{
	const struct twin_mig_profile *smallest = twin_mig_by_number(board, 0);

	if (slices == profile->slices || !smallest)
		return profile->multiprocessors;
	return slices * smallest->multiprocessors;
}

void twin_mig_name(const struct twin_board *board, const struct twin_mig_profile *profile,
		   uint32_t slices, char *ret, uint32_t size)
{
	enum {
		ONE_SLICE_REV1 = 7
	};
	uint32_t total_gb = (board->memory_mib + 1023) / 1024;
	uint32_t gb = (2 * total_gb * profile->size + TWIN_MIG_SLICES) / (2 * TWIN_MIG_SLICES);
	char part[8] = "";

	if (slices != profile->slices)
		snprintf(part, sizeof(part), "%uc.", slices % 10);
	snprintf(ret, size, "%s%ug.%ugb%s", part, profile->slices, gb,
		 profile->number == ONE_SLICE_REV1 ? "+me" : "");
}

/* FNV-1a, a well-spread number from a text. */
static uint64_t hash(const char *text, uint64_t from)
{
	while (*text)
		from = (from ^ (unsigned char)*text++) * 0x100000001b3ull;
	return from;
}

void twin_mig_uuid(const struct twin_gpu_desc *desc, uint32_t id, uint32_t compute_id,
		   char ret[TWIN_MIG_UUID])
{
	char key[80];
	uint64_t a, b;

	snprintf(key, sizeof(key), "%s/%u/%u", desc->uuid, id, compute_id);
	a = hash(key, 0xcbf29ce484222325ull);
	b = hash(key, a);
	snprintf(ret, TWIN_MIG_UUID, "MIG-%08x-%04x-%04x-%04x-%012llx", (unsigned)(a >> 32),
		 (unsigned)(a >> 16 & 0xffff), (unsigned)(a & 0xffff), (unsigned)(b >> 48),
		 (unsigned long long)(b & 0xffffffffffff));
}

/* The used instance with the lowest id not below `from`. */
static bool next_instance(const struct twin_gpu *gpu, const struct twin_board *board, uint32_t from,
			  uint32_t *ret_start, uint32_t *ret_id)
{
	*ret_id = UINT32_MAX;
	for (uint32_t i = 0; i < TWIN_MIG_SLICES; i++) {
		uint32_t id;
		if (!gpu->instances[i].used)
			continue;
		id = twin_mig_id(twin_mig_profile(gpu, board, i), i);
		if (id < from || id >= *ret_id)
			continue;
		*ret_start = i;
		*ret_id = id;
	}
	return *ret_id != UINT32_MAX;
}

static bool find_compute(const struct twin_gpu_instance *instance, uint32_t id, uint32_t *ret_start)
{
	for (uint32_t i = 0; i < TWIN_MIG_SLICES - 1; i++) {
		if (instance->compute[i].slices && instance->compute[i].id == id) {
			*ret_start = i;
			return true;
		}
	}
	return false;
}

/* *at counts possible devices: eight for each id of an instance. */
bool twin_mig_next(const struct twin_gpu *gpu, const struct twin_board *board, uint32_t *at,
		   struct twin_mig_device *ret)
{
	uint32_t start, id, compute_start;

	while (next_instance(gpu, board, *at / TWIN_MIG_SLICES, &start, &id)) {
		const struct twin_gpu_instance *instance = &gpu->instances[start];
		uint32_t compute_id = id > *at / TWIN_MIG_SLICES ? 0 : *at % TWIN_MIG_SLICES;

		*at = id * TWIN_MIG_SLICES + compute_id + 1;
		if (!find_compute(instance, compute_id, &compute_start))
			continue;
		*ret = (struct twin_mig_device){
			.start = start,
			.compute_start = compute_start,
			.id = id,
			.compute_id = compute_id,
			.profile = twin_mig_profile(gpu, board, start),
			.slices = instance->compute[compute_start].slices,
		};
		return true;
	}
	return false;
}

bool twin_mig_busy(const struct twin_gpu *gpu, uint32_t start, uint32_t compute_start)
{
	for (uint64_t i = 0; i < gpu->load_count; i++) {
		const struct twin_load *load = &gpu->loads[i];
		if (load->pid && !load->gone_ns && load->in_instance &&
		    load->gpu_instance == start &&
		    (compute_start == UINT32_MAX || load->compute_instance == compute_start))
			return true;
	}
	return false;
}

uint64_t twin_mig_memory_used(const struct twin_gpu *gpu, uint32_t start)
{
	uint64_t bytes = 0;

	for (uint64_t i = 0; i < gpu->load_count; i++) {
		const struct twin_load *load = &gpu->loads[i];
		if (load->pid && load->in_instance && load->gpu_instance == start)
			bytes += load->memory_bytes;
	}
	return bytes;
}
