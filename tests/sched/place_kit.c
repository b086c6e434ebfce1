/* SPDX-License-Identifier: Apache-2.0 */
/* Small clusters for tests of placement policies: see place_kit.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "place_kit.h"

enum {
	MAX_WORKS = 16,
	MAX_PARAMS = 4,
	MEM_MIB = 1 << 20,
	PACKAGE_CPU_MILLI = 24000,
};

static void add_models(struct takt_cluster *cluster)
{
	static const struct takt_model_desc models[] = {
		{.name = "A", .idle_mw = 50000, .busy_mw = 300000, .mem_mib = 16384},
		{.name = "B", .idle_mw = 10000, .busy_mw = 70000, .mem_mib = 16384},
		{.name = "C"},
	};
	uint32_t id;

	for (size_t i = 0; i < 3; i++)
		assert_int_equal(takt_cluster_model(cluster, &models[i], &id, NULL), 0);
}

struct takt_cluster *few_cluster(const char *placement, const struct few_work *works,
				 const struct takt_place_param *params)
{
	struct takt_workload_item items[MAX_WORKS] = {0};
	struct takt_workload workload = {.items = items};
	struct takt_cluster_config config = {.placement = takt_placement_find(placement),
					     .workload = &workload,
					     .params = params};
	struct takt_cluster *cluster;

	for (; works && works->weight; works++) {
		struct takt_workload_item *item = &items[workload.count++];

		item->request = few_request(works->devices, works->milli, works->cpu_milli);
		item->request.model_mask = works->models;
		item->weight = works->weight;
	}
	while (params && params[config.param_count].name)
		config.param_count++;
	assert_non_null(config.placement);
	assert_int_equal(takt_cluster_new(&config, &cluster, NULL), 0);
	add_models(cluster);
	return cluster;
}

static uint32_t add(struct takt_cluster *cluster, const struct takt_node_desc *desc)
{
	uint32_t id;

	assert_int_equal(takt_cluster_add_node(cluster, desc, &id, NULL), 0);
	return id;
}

uint32_t few_node(struct takt_cluster *cluster, uint32_t model, uint32_t devices, int32_t cpu_milli)
{
	struct takt_node_desc desc = {.model = model,
				      .device_count = devices,
				      .cpu_milli = cpu_milli,
				      .mem_mib = MEM_MIB,
				      .cpu_package_milli = PACKAGE_CPU_MILLI,
				      .cpu_idle_mw = 20000,
				      .cpu_busy_mw = 165000};

	return add(cluster, &desc);
}

uint32_t few_linked_node(struct takt_cluster *cluster, uint32_t devices, const int32_t *scores)
{
	struct takt_node_desc desc = {.model = FEW_A, .device_count = devices, .mem_mib = MEM_MIB};

	assert_int_equal(
		takt_cluster_link_class(cluster, devices, scores, NULL, &desc.link_class, NULL), 0);
	return add(cluster, &desc);
}

struct takt_request few_request(uint16_t devices, uint16_t milli, int32_t cpu_milli)
{
	return (struct takt_request){.devices = devices, .milli = milli, .cpu_milli = cpu_milli};
}

uint32_t few_kind(struct takt_cluster *cluster, const struct takt_request *request)
{
	uint32_t kind;

	assert_int_equal(takt_cluster_kind(cluster, request, &kind, NULL), 0);
	return kind;
}

static int place(struct takt_cluster *cluster, const struct takt_request *request,
		 struct takt_slot *ret)
{
	uint32_t kind = few_kind(cluster, request);

	if (!takt_cluster_pick(cluster, kind, NULL, ret, NULL))
		return FEW_NOWHERE;
	assert_int_equal(takt_cluster_take(cluster, kind, ret), 0);
	return (int)ret->node;
}

int few_place(struct takt_cluster *cluster, uint16_t devices, uint16_t milli, int32_t cpu_milli)
{
	struct takt_request request = few_request(devices, milli, cpu_milli);
	struct takt_slot slot;

	return place(cluster, &request, &slot);
}

int few_place_on(struct takt_cluster *cluster, uint16_t devices, uint16_t milli, uint64_t *ret)
{
	struct takt_request request = few_request(devices, milli, 0);
	struct takt_slot slot = {0};
	int node = place(cluster, &request, &slot);

	*ret = slot.dev_mask;
	return node;
}

void few_put(struct takt_cluster *cluster, uint32_t node, uint64_t devices, uint16_t milli,
	     int32_t cpu_milli)
{
	uint16_t count = (uint16_t)__builtin_popcountll(devices);
	struct takt_request request = few_request(count, milli, cpu_milli);
	struct takt_slot slot = {.node = node, .dev_mask = devices, .milli = milli};

	assert_int_equal(takt_cluster_take(cluster, few_kind(cluster, &request), &slot), 0);
}
