/* SPDX-License-Identifier: Apache-2.0 */
/* Texts as numbers, see the header. */
#include "sim/sim_names.h"

int takt_sim_names_add(struct takt_sim_names *names, const char *text, uint32_t *ret)
{
	uint32_t id = takt_sim_names_find(names, text);
	struct takt_map_entry *entry = NULL;
	int rc;

	if (id != UINT32_MAX) {
		*ret = id;
		return 0;
	}
	rc = takt_vec_reserve(&names->texts, 1);
	if (rc == 0)
		rc = takt_map_str_put(&names->ids, text,
				      (union takt_map_value){.u64 = names->texts.len});
	if (rc < 0)
		return rc;
	entry = &names->ids.entries[names->ids.used - 1];
	*ret = (uint32_t)names->texts.len;
	names->texts.at[names->texts.len++] = entry->str;
	return 0;
}

uint32_t takt_sim_names_find(const struct takt_sim_names *names, const char *text)
{
	const union takt_map_value *value = takt_map_str_get(&names->ids, text);

	return value ? (uint32_t)value->u64 : UINT32_MAX;
}

void takt_sim_names_fini(struct takt_sim_names *names)
{
	takt_vec_fini(&names->texts);
	takt_map_fini(&names->ids);
}
