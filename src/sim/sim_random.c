/* SPDX-License-Identifier: Apache-2.0 */
/* Streams, see the header. */
#include "sim/sim_random.h"

void takt_sim_stream(uint64_t seed, enum takt_sim_stream stream, struct takt_rng *ret)
{
	struct takt_rng parent;
	uint64_t own = 0;

	takt_rng_init(&parent, seed);
	for (unsigned k = 0; k < stream; k++)
		own = takt_rng_next(&parent);
	takt_rng_init(ret, own);
}
