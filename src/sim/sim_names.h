/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of traces as small numbers: models, users, tenants. Numbered from 0 in order of appearance.
 */
#ifndef TAKT_SIM_NAMES_H
#define TAKT_SIM_NAMES_H

#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"

enum {
	TAKT_SIM_MAX_NAMES = 1000000
};

struct takt_sim_names {
	struct takt_map ids;
	TAKT_VEC(const char *) texts; /* borrowed from ids */
};

#define TAKT_SIM_NAMES                                      \
	((struct takt_sim_names){                           \
		.ids = TAKT_MAP_STR(TAKT_SIM_MAX_NAMES),    \
		.texts = TAKT_VEC_INIT(TAKT_SIM_MAX_NAMES), \
	})

/* The number of a text, new if need be. -ENOMEM, -TAKT_E_LIMIT. */
int takt_sim_names_add(struct takt_sim_names *names, const char *text, uint32_t *ret);
/* UINT32_MAX when it is not there. */
uint32_t takt_sim_names_find(const struct takt_sim_names *names, const char *text);
void takt_sim_names_fini(struct takt_sim_names *names);

#endif
