/* SPDX-License-Identifier: Apache-2.0 */
/* The policies that every takt has, and what they share. */
#include <errno.h>
#include <string.h>

#include "sched/place.h"

const struct takt_placement *const takt_placements[] = {
	&takt_place_takt,
	&takt_place_fgd,
	&takt_place_hetero,
	&takt_place_energy,
	&takt_place_least_utilised,
	&takt_place_topology,
	&takt_place_spread,
	&takt_place_pack,
	NULL,
};

const struct takt_placement *takt_placement_find(const char *name)
{
	for (size_t i = 0; takt_placements[i]; i++)
		if (strcmp(takt_placements[i]->name, name) == 0)
			return takt_placements[i];
	return NULL;
}

int64_t takt_place_param(const struct takt_place_setup *setup, const char *name, int64_t absent)
{
	for (size_t i = 0; i < setup->param_count; i++)
		if (strcmp(setup->params[i].name, name) == 0)
			return setup->params[i].value;
	return absent;
}

static int known(const char *name, const char *const *names)
{
	while (*names && strcmp(*names, name) != 0)
		names++;
	return *names != NULL;
}

int takt_place_check_params(const struct takt_place_setup *setup, const char *const *names,
			    int64_t max, struct takt_err *err)
{
	for (size_t i = 0; i < setup->param_count; i++) {
		const struct takt_place_param *param = &setup->params[i];

		if (!known(param->name, names))
			return takt_err_set(err, -EINVAL, "the policy has no parameter %s",
					    param->name);
		if (param->value < 0 || param->value > max)
			return takt_err_set(err, -EINVAL, "parameter %s is not within 0 to %lld",
					    param->name, (long long)max);
	}
	return 0;
}
