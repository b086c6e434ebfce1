/* SPDX-License-Identifier: Apache-2.0 */
/* Scarcity of models: see place_price.h. */
#include "sched/place_price.h"

#include <errno.h>

#include "base/mem.h"
#include "sched/place_value.h"

enum {
	PPM = 1000000,
	MAX_PERMILLE = 4000, /* more than four times what there is makes no difference */
};

static void add_share(struct takt_model_demand *demand, uint64_t models, uint64_t asked)
{
	size_t i = 0;

	while (i < demand->count && demand->shares[i].models != models)
		i++;
	demand->shares[i].models = models;
	demand->shares[i].asked += asked;
	demand->count += i == demand->count;
}

int takt_model_demand_init(struct takt_model_demand *demand, const struct takt_workload *workload)
{
	unsigned int shift = takt_workload_shift(workload);

	*demand = (struct takt_model_demand){
		.shares = takt_calloc(workload->count + 1, sizeof(*demand->shares))};
	if (!demand->shares)
		return -ENOMEM;
	for (size_t i = 0; i < workload->count; i++) {
		const struct takt_request *request = &workload->items[i].request;
		uint64_t asked = takt_workload_weight(&workload->items[i], shift) *
				 request->devices * request->milli;

		demand->all += asked;
		if (request->model_mask && asked)
			add_share(demand, request->model_mask, asked);
	}
	return 0;
}

void takt_model_demand_fini(struct takt_model_demand *demand)
{
	takt_free(demand->shares);
	*demand = (struct takt_model_demand){0};
}

static uint64_t capacity(const struct takt_cluster_totals *totals, uint64_t models)
{
	uint64_t devices = 0;

	for (; models; models &= models - 1)
		devices += totals->model[__builtin_ctzll(models)].devices;
	return devices;
}

/* Of all that is asked for, the part that each accelerator of the models in question gets, in ppm
 * of one accelerator's fair part. */
void takt_model_scarcity(const struct takt_model_demand *demand,
			 const struct takt_cluster_totals *totals,
			 uint32_t ret[TAKT_CLUSTER_MAX_MODELS])
{
	uint64_t ppm[TAKT_CLUSTER_MAX_MODELS] = {0};

	for (size_t i = 0; i < demand->count; i++) {
		const struct takt_model_share *share = &demand->shares[i];
		uint64_t of = capacity(totals, share->models), part;

		if (of == 0 || of == totals->devices)
			continue;
		part = share->asked * PPM / demand->all * totals->devices / of;
		for (uint64_t left = share->models; left; left &= left - 1)
			ppm[__builtin_ctzll(left)] += part;
	}
	for (size_t i = 0; i < TAKT_CLUSTER_MAX_MODELS; i++) {
		uint64_t permille = totals->model[i].devices ? ppm[i] / 1000 : 0;

		ret[i] = (uint32_t)(permille < MAX_PERMILLE ? permille : MAX_PERMILLE);
	}
}
