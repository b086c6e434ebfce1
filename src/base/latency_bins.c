/* SPDX-License-Identifier: Apache-2.0 */
#include "base/latency_bins.h"

#include "base/timetypes.h"

uint64_t takt_latency_bound_ns(uint32_t bin)
{
	static const uint32_t bounds_us[TAKT_LATENCY_BOUNDS] = {
		10,   20,    50,    100,   200,	   500,	   1000,   2000,
		5000, 10000, 20000, 50000, 100000, 200000, 500000, 1000000,
	};

	return bin < TAKT_LATENCY_BOUNDS ? bounds_us[bin] * TAKT_NS_PER_US : UINT64_MAX;
}

void takt_latency_add(struct takt_latency_bins *bins, uint64_t ns)
{
	uint32_t bin = 0;

	while (ns > takt_latency_bound_ns(bin))
		bin++;
	bins->bin[bin]++;
	bins->count++;
	bins->sum_ns += ns;
}

uint64_t takt_latency_below_ns(const struct takt_latency_bins *bins, uint32_t permille)
{
	uint64_t seen = 0;

	if (bins->count == 0)
		return 0;
	for (uint32_t bin = 0; bin < TAKT_LATENCY_BOUNDS; bin++) {
		seen += bins->bin[bin];
		if (seen * 1000 >= bins->count * permille)
			return takt_latency_bound_ns(bin);
	}
	return UINT64_MAX;
}
