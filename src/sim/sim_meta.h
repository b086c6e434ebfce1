/* SPDX-License-Identifier: Apache-2.0 */
/* What every result says of where it comes from, so that anybody can repeat it. */
#ifndef TAKT_SIM_META_H
#define TAKT_SIM_META_H

#include <stdint.h>

#include "base/str.h"

enum {
	TAKT_SIM_RESULT_BYTES = 256 * 1024 * 1024, /* of one rendering */
};

/* All borrowed; "" for what there is none of. */
struct takt_sim_meta {
	const char *protocol;
	const char *version, *commit;
	const char *command; /* the one that repeats it */
	const char *cluster, *cluster_hash;
	const char *trace, *trace_hash;
	uint64_t nodes, gpus, jobs;
	uint64_t first_seed, last_seed;
	/* Name and value in turn, ended by NULL: what the command left to defaults as well. */
	const char *const *options;
};

/* The opening of a JSON result, up to and without a comma: {"format":"takt-simulation", ... */
void takt_sim_meta_json(const struct takt_sim_meta *meta, struct takt_str *out);
/* Lines beginning with '#', for CSV. */
void takt_sim_meta_csv(const struct takt_sim_meta *meta, struct takt_str *out);

#endif
