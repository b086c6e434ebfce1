/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MIG: where an instance fits on a device.
 *
 * A device has eight memory slices and seven of computing. An instance of a profile takes `size`
 * and `slices` of them; it starts at a multiple of its size from which its computing still fits.
 * A FREE device is cut as tasks ask, while nothing else is held of it; a FIXED one has the
 * instances of its layout.
 *
 * Of several places the one is chosen that takes the fewest other places of any profile away, then
 * the lowest: as the driver does it, and what leaves room for the large ones.
 */
#include "sched/cluster_state.h"

static const struct takt_cluster_profile *
profile_of(const struct takt_cluster *cluster, const struct takt_device *device, uint8_t profile)
{
	return &cluster->models.at[device->model].mig[profile];
}

static uint8_t slices_at(const struct takt_cluster_profile *profile, uint32_t start)
{
	return (uint8_t)(((1u << profile->size) - 1) << start);
}

static bool may_start(const struct takt_cluster_profile *profile, uint32_t start)
{
	return profile->size != 0 && start < TAKT_CLUSTER_MAX_MIG && start % profile->size == 0 &&
	       start + profile->slices <= TAKT_CLUSTER_COMPUTE_SLICES;
}

static uint32_t held_of(const struct takt_device *device, uint8_t profile)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < TAKT_CLUSTER_MAX_MIG; i++)
		count += device->mig_at[i] == profile;
	return count;
}

bool takt_mig_fits(const struct takt_cluster *cluster, const struct takt_device *device,
		   uint8_t profile, uint32_t start)
{
	const struct takt_cluster_profile *cut = profile_of(cluster, device, profile);

	if (device->mig == TAKT_MIG_OFF || !may_start(cut, start))
		return false;
	if (device->mig_busy & slices_at(cut, start))
		return false;
	if (device->mig == TAKT_MIG_FIXED)
		return device->layout[start] == profile;
	return device->held == 0 && held_of(device, profile) < cut->max;
}

/* Places of all profiles on the device that an instance there would take away. */
static uint32_t harm(const struct takt_cluster *cluster, const struct takt_device *device,
		     uint8_t profile, uint32_t start)
{
	uint8_t taken = slices_at(profile_of(cluster, device, profile), start);
	uint32_t places = 0;

	for (size_t other = 1; other <= cluster->profiles.len; other++) {
		const struct takt_cluster_profile *cut =
			profile_of(cluster, device, (uint8_t)other);

		if (cut->size == 0)
			continue;
		for (uint32_t i = 0; i < TAKT_CLUSTER_MAX_MIG; i += cut->size)
			places += takt_mig_fits(cluster, device, (uint8_t)other, i) &&
				  (taken & slices_at(cut, i)) != 0;
	}
	return places;
}

bool takt_mig_choose(const struct takt_cluster *cluster, const struct takt_device *device,
		     uint8_t profile, uint32_t *ret_start, uint32_t *ret_harm)
{
	uint32_t least = UINT32_MAX, best = 0;

	for (uint32_t i = 0; i < TAKT_CLUSTER_MAX_MIG; i++) {
		uint32_t cost;

		if (!takt_mig_fits(cluster, device, profile, i))
			continue;
		cost = harm(cluster, device, profile, i);
		if (cost >= least)
			continue;
		least = cost;
		best = i;
	}
	if (least == UINT32_MAX)
		return false;
	*ret_start = best;
	*ret_harm = least;
	return true;
}

void takt_mig_hold(const struct takt_cluster *cluster, struct takt_device *device, uint8_t profile,
		   uint32_t start, bool taken)
{
	device->mig_busy ^= slices_at(profile_of(cluster, device, profile), start);
	device->mig_at[start] = taken ? profile : 0;
}

uint32_t takt_mig_room(const struct takt_cluster *cluster, const struct takt_device *device,
		       uint8_t profile)
{
	struct takt_device copy = *device;
	uint32_t room = 0, start, cost;

	for (; takt_mig_choose(cluster, &copy, profile, &start, &cost); room++)
		takt_mig_hold(cluster, &copy, profile, start, true);
	return room;
}

bool takt_mig_possible(const struct takt_cluster *cluster, const struct takt_device *device,
		       uint8_t profile)
{
	if (device->mig == TAKT_MIG_OFF || profile_of(cluster, device, profile)->size == 0)
		return false;
	if (device->mig == TAKT_MIG_FREE)
		return true;
	for (uint32_t i = 0; i < TAKT_CLUSTER_MAX_MIG; i++)
		if (device->layout[i] == profile)
			return true;
	return false;
}

int64_t takt_mig_milli(const struct takt_cluster *cluster, const struct takt_device *device,
		       uint8_t profile)
{
	return profile_of(cluster, device, profile)->slices * TAKT_REQUEST_WHOLE /
	       TAKT_CLUSTER_COMPUTE_SLICES;
}
