/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of policies, see the header. */
#include "sim/sim_policies.h"

#include <string.h>

#include "sched/compare/compare.h"

void takt_sim_placements_text(struct takt_str *out)
{
	for (size_t i = 0; takt_placements[i]; i++)
		takt_str_addf(out, "%-14s %s\n", takt_placements[i]->name,
			      takt_placements[i]->summary);
	for (size_t i = 0; takt_compare_placements[i]; i++)
		takt_str_addf(out, "%-14s %s\n", takt_compare_placements[i]->name,
			      takt_compare_placements[i]->summary);
}

static int unknown(const char *name, struct takt_err *err)
{
	TAKT_CLEANUP(strp) struct takt_str all = TAKT_STR(4096);

	for (size_t i = 0; takt_placements[i]; i++)
		takt_str_addf(&all, "%s ", takt_placements[i]->name);
	for (size_t i = 0; takt_compare_placements[i]; i++)
		takt_str_addf(&all, "%s ", takt_compare_placements[i]->name);
	return takt_err_set(err, -TAKT_E_USAGE,
			    "there is no placement policy '%.40s'; there are %sand shared objects "
			    "(./mine.so)",
			    name, takt_str_text(&all));
}

static int add_one(struct takt_sim_placements *placements, const char *name, struct takt_err *err)
{
	struct takt_sim_placement one = {.placement = takt_compare_find(name)};

	if (!one.placement)
		return unknown(name, err);
	takt_strcpy(one.name, sizeof(one.name), name);
	TAKT_VEC_EACH (known, &placements->at)
		if (strcmp(known->name, one.name) == 0)
			return takt_err_set(err, -TAKT_E_USAGE,
					    "placement policy '%s' is there twice", one.name);
	return takt_vec_push(&placements->at, one) < 0
		       ? takt_err_set(err, -TAKT_E_USAGE, "more than %d placement policies",
				      TAKT_SIM_MAX_POLICIES)
		       : 0;
}

int takt_sim_placements(const char *list, struct takt_sim_placements *ret, struct takt_err *err)
{
	struct takt_sim_placements placements = {.at = TAKT_VEC_INIT(TAKT_SIM_MAX_POLICIES)};
	int rc = 0;

	while (rc == 0) {
		size_t len = strcspn(list, ",");
		char name[TAKT_SIM_POLICY_NAME];

		if (len == 0 || len >= sizeof(name)) {
			rc = takt_err_set(err, -TAKT_E_USAGE,
					  "a list of policies reads fgd,bestfit; '%.40s' begins "
					  "with none",
					  list);
			break;
		}
		memcpy(name, list, len);
		name[len] = '\0';
		rc = add_one(&placements, name, err);
		list += len;
		if (*list++ != ',')
			break;
	}
	if (rc < 0)
		takt_sim_placements_fini(&placements);
	else
		*ret = placements;
	return rc;
}

void takt_sim_placements_fini(struct takt_sim_placements *placements)
{
	takt_vec_fini(&placements->at);
}
