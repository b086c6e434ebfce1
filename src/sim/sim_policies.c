/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of policies, see the header. */
#include "sim/sim_policies.h"

#include <errno.h>
#include <string.h>

#include "objects/object_file.h"
#include "sched/compare/compare.h"

void takt_sim_placements_text(struct takt_str *out)
{
	for (size_t i = 0; takt_placements[i]; i++)
		takt_str_addf(out, "  %-16s %s\n", takt_placements[i]->name,
			      takt_placements[i]->summary);
	for (size_t i = 0; takt_compare_placements[i]; i++)
		takt_str_addf(out, "  %-16s %s\n", takt_compare_placements[i]->name,
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

static int open_object(const char *path, struct takt_sim_placement *one, struct takt_err *err)
{
	int rc = takt_policy_object_open(path, &one->object, err);

	if (rc < 0)
		return rc;
	one->placement = takt_policy_object_placement(one->object);
	if (one->placement)
		return takt_strcpy(one->name, sizeof(one->name), one->placement->name) ? 0
										       : -EINVAL;
	takt_policy_object_close(one->object);
	return takt_err_set(err, -TAKT_E_UNSUPPORTED, "'%s' has no placement policy", path);
}

static int find(const char *name, struct takt_sim_placement *one, struct takt_err *err)
{
	if (takt_object_file_is(name))
		return open_object(name, one, err);
	one->placement = takt_compare_find(name);
	if (!one->placement)
		return unknown(name, err);
	takt_strcpy(one->name, sizeof(one->name), name);
	return 0;
}

static int add_one(struct takt_sim_placements *placements, const char *name, struct takt_err *err)
{
	struct takt_sim_placement one = {.object = NULL};
	int rc = find(name, &one, err);

	if (rc < 0)
		return rc;
	TAKT_VEC_EACH (known, &placements->at)
		if (strcmp(known->name, one.name) == 0)
			rc = takt_err_set(err, -TAKT_E_USAGE,
					  "placement policy '%s' is there twice", one.name);
	if (rc == 0 && takt_vec_push(&placements->at, one) < 0)
		rc = takt_err_set(err, -TAKT_E_USAGE, "more than %d placement policies",
				  TAKT_SIM_MAX_POLICIES);
	if (rc < 0)
		takt_policy_object_close(one.object);
	return rc;
}

int takt_sim_placements(const char *list, struct takt_sim_placements *ret, struct takt_err *err)
{
	struct takt_sim_placements placements = {.at = TAKT_VEC_INIT(TAKT_SIM_MAX_POLICIES)};
	int rc = 0;

	do {
		size_t len = strcspn(list, ",");
		char name[TAKT_SIM_POLICY_PATH];

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
	} while (rc == 0 && *list++ == ',');
	if (rc < 0)
		takt_sim_placements_fini(&placements);
	else
		*ret = placements;
	return rc;
}

void takt_sim_placements_fini(struct takt_sim_placements *placements)
{
	TAKT_VEC_EACH (one, &placements->at)
		takt_policy_object_close(one->object);
	takt_vec_fini(&placements->at);
}

size_t takt_sim_params_for(const char *policy, const struct takt_place_param *params, size_t count,
			   struct takt_place_param *ret)
{
	size_t len = strlen(policy), n = 0;

	for (size_t i = 0; i < count; i++) {
		const char *name = params[i].name, *dot = strchr(name, '.');

		if (dot && ((size_t)(dot - name) != len || strncmp(name, policy, len) != 0))
			continue;
		ret[n++] = (struct takt_place_param){dot ? dot + 1 : name, params[i].value};
	}
	return n;
}
