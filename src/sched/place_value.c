/* SPDX-License-Identifier: Apache-2.0 */
/* The expected waste of what is left: see place_value.h. */
#include "sched/place_value.h"

#include <string.h>

enum {
	WEIGHT_BITS = 20,
	PARTS = 12, /* bits after the point of a probability */
	NEVER = 40, /* half-lives after which a request does not come */
	MAX_CPU_MILLI = 1 << 24,
};

/* Requests for one accelerator, by how much of it they ask. */
struct demand {
	uint64_t weight[TAKT_REQUEST_WHOLE + 1];
	uint64_t cpu[TAKT_REQUEST_WHOLE + 1];	/* weight * milli-CPU */
	uint16_t sizes[TAKT_REQUEST_WHOLE + 1]; /* asked for, ascending */
	size_t count;
};

static bool too_heavy(const struct takt_workload *workload, unsigned int shift)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < workload->count && sum >> WEIGHT_BITS == 0; i++) {
		uint64_t weight = workload->items[i].weight >> shift;

		sum += weight >> WEIGHT_BITS ? UINT64_C(1) << WEIGHT_BITS : weight;
	}
	return sum >> WEIGHT_BITS != 0;
}

unsigned int takt_workload_shift(const struct takt_workload *workload)
{
	unsigned int shift = 0;

	while (too_heavy(workload, shift))
		shift++;
	return shift;
}

static void count_demand(const struct takt_workload *workload, struct demand *demand)
{
	unsigned int shift = takt_workload_shift(workload);

	memset(demand, 0, sizeof(*demand));
	for (size_t i = 0; i < workload->count; i++) {
		const struct takt_request *request = &workload->items[i].request;
		uint64_t weight = takt_workload_weight(&workload->items[i], shift);
		uint64_t cpu = (uint64_t)request->cpu_milli;

		if (request->devices != 1)
			continue;
		demand->weight[request->milli] += weight;
		demand->cpu[request->milli] += weight * (cpu < MAX_CPU_MILLI ? cpu : MAX_CPU_MILLI);
	}
	for (uint16_t size = 1; size <= TAKT_REQUEST_WHOLE; size++)
		if (demand->weight[size])
			demand->sizes[demand->count++] = size;
}

/* 2^PARTS * 2^-(worse / half-life). */
static uint64_t likely(int32_t worse)
{
	const int32_t half = TAKT_VALUE_HALF_LIFE * TAKT_VALUE_ONE;
	uint64_t value = UINT64_C(1) << PARTS;

	if (worse / half >= NEVER)
		return 0;
	value -= value / 2 * (uint64_t)(worse % half) / (uint64_t)half;
	return value >> (worse / half);
}

static int32_t least_waste(const struct demand *demand, const struct takt_place_value *values,
			   uint32_t left)
{
	int32_t least = INT32_MAX;

	for (size_t i = 0; i < demand->count && demand->sizes[i] <= left; i++) {
		int32_t waste = values[left - demand->sizes[i]].waste;

		least = waste < least ? waste : least;
	}
	return least;
}

static struct takt_place_value value_of(const struct demand *demand,
					const struct takt_place_value *values, uint32_t left)
{
	int32_t least = least_waste(demand, values, left);
	uint64_t sum = 0, waste = 0, cpu = 0;

	for (size_t i = 0; i < demand->count && demand->sizes[i] <= left; i++) {
		const struct takt_place_value *after = &values[left - demand->sizes[i]];
		uint64_t part = likely(after->waste - least);
		uint64_t weight = part * demand->weight[demand->sizes[i]];

		sum += weight;
		waste += weight * (uint64_t)after->waste;
		cpu += part * demand->cpu[demand->sizes[i]] + weight * (uint64_t)after->cpu_milli;
	}
	if (sum == 0)
		return (struct takt_place_value){.waste = (int32_t)left * TAKT_VALUE_ONE};
	return (struct takt_place_value){
		.waste = (int32_t)(waste / sum),
		.cpu_milli = (int32_t)(cpu / sum),
	};
}

void takt_place_values(const struct takt_workload *workload, struct takt_place_values *ret)
{
	struct demand demand;

	count_demand(workload, &demand);
	for (uint32_t left = 0; left <= TAKT_REQUEST_WHOLE; left++)
		ret->at[left] = value_of(&demand, ret->at, left);
	if (demand.count == 0)
		ret->at[TAKT_REQUEST_WHOLE].waste = 0;
}
