/* SPDX-License-Identifier: Apache-2.0 */
/* The cluster: what fits where, what is held, what is undone, and why something does not fit. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "sched/cluster.h"

static struct takt_cluster *make(void)
{
	struct takt_cluster *cluster = NULL;
	struct takt_err err = {0};

	if (takt_cluster_new(NULL, &cluster, &err) < 0)
		fail_msg("%s", err.msg);
	return cluster;
}

static uint32_t model(struct takt_cluster *cluster, const char *name, uint32_t mem_mib)
{
	struct takt_model_desc desc = {.name = name, .mem_mib = mem_mib};
	uint32_t id = 99;

	assert_int_equal(takt_cluster_model(cluster, &desc, &id, NULL), 0);
	return id;
}

static uint32_t node(struct takt_cluster *cluster, uint32_t model_id, uint32_t devices)
{
	struct takt_node_desc desc = {
		.cpu_milli = 64000, .mem_mib = 256000, .device_count = devices, .model = model_id};
	uint32_t id = 0;

	assert_int_equal(takt_cluster_add_node(cluster, &desc, &id, NULL), 0);
	return id;
}

static uint32_t kind(struct takt_cluster *cluster, struct takt_request request)
{
	struct takt_err err = {0};
	uint32_t id = 0;

	if (takt_cluster_kind(cluster, &request, &id, &err) < 0)
		fail_msg("%s", err.msg);
	return id;
}

static struct takt_slot place(struct takt_cluster *cluster, uint32_t kind_id)
{
	struct takt_slot slot = {0};

	assert_true(takt_cluster_pick(cluster, kind_id, NULL, &slot, NULL));
	assert_int_equal(takt_cluster_take(cluster, kind_id, &slot), 0);
	return slot;
}

static void test_whole_devices_run_out(void **state)
{
	struct takt_cluster *cluster = make();
	uint32_t t4 = model(cluster, "T4", 0), four, one;
	struct takt_fit_counts why;
	struct takt_slot slot;

	node(cluster, t4, 2);
	node(cluster, t4, 4);
	four = kind(cluster, (struct takt_request){.devices = 4, .milli = 1000});
	one = kind(cluster, (struct takt_request){.devices = 1, .milli = 1000});
	slot = place(cluster, four);
	assert_int_equal(slot.node, 1);
	assert_int_equal(slot.dev_mask, 0xf);
	assert_int_equal(place(cluster, one).dev_mask, 1);
	assert_int_equal(place(cluster, one).dev_mask, 2);
	assert_false(takt_cluster_pick(cluster, one, NULL, &slot, NULL));
	assert_int_equal(takt_cluster_totals(cluster)->held_milli, 6000);
	takt_cluster_explain(cluster, four, NULL, &why);
	assert_int_equal(why.nodes, 2);
	assert_int_equal(why.fit, 0);
	assert_int_equal(why.first[TAKT_FIT_COUNT_OF], 1);
	assert_int_equal(why.first[TAKT_FIT_DEVICES], 1);
	takt_cluster_free(cluster);
}

static void test_rollback_restores(void **state)
{
	struct takt_cluster *cluster = make();
	uint32_t t4 = model(cluster, "T4", 16000), half;
	struct takt_slot first;
	struct takt_node before;
	uint64_t mark;

	node(cluster, t4, 2);
	half = kind(cluster, (struct takt_request){.devices = 1, .milli = 500, .cpu_milli = 1000});
	first = place(cluster, half);
	before = *takt_cluster_node(cluster, 0);
	mark = takt_cluster_mark(cluster);
	place(cluster, half);
	assert_int_equal(takt_cluster_give(cluster, half, &first), 0);
	place(cluster, half);
	takt_cluster_rollback(cluster, mark);
	assert_memory_equal(&before, takt_cluster_node(cluster, 0), sizeof(before));
	takt_cluster_free(cluster);
}

/* A hundred thousand GPUs in so many nodes, with levels, reasons and room kept for many kinds. */
static size_t bytes_of(uint32_t nodes, uint32_t devices, const struct takt_placement *placement)
{
	struct takt_workload_item items[160];
	struct takt_workload workload = {.items = items, .count = TAKT_ARRAY_LEN(items)};
	struct takt_cluster_config config = {.placement = placement, .workload = &workload};
	struct takt_cluster *cluster = make();
	struct takt_cluster_bytes bytes;
	struct takt_slot slot;
	uint32_t id = model(cluster, "H100", 81920);

	for (uint32_t i = 0; i < TAKT_ARRAY_LEN(items); i++)
		items[i] = (struct takt_workload_item){
			.weight = 1 + i,
			.request = {.cpu_milli = (int32_t)(500 * (i % 40)),
				    .devices = (uint16_t)(i % 3 ? 1 : 1 + i % 8),
				    .milli = (uint16_t)(i % 3 ? 100 + 5 * i : 1000)}};
	assert_int_equal(takt_cluster_set_placement(cluster, &config, NULL), 0);
	for (uint32_t i = 0; i < nodes; i++)
		node(cluster, id, devices);
	for (uint32_t i = 0; i < 4 * TAKT_ARRAY_LEN(items); i++) {
		uint32_t k = kind(cluster, items[i % TAKT_ARRAY_LEN(items)].request);

		if (takt_cluster_pick(cluster, k, NULL, &slot, NULL))
			assert_int_equal(takt_cluster_take(cluster, k, &slot), 0);
		takt_cluster_domain_room(cluster, k, 0);
	}
	takt_cluster_bytes(cluster, &bytes);
	takt_cluster_free(cluster);
	return bytes.nodes + bytes.index + bytes.other;
}

static void test_hundred_thousand_gpus_fit_256_mib(void **state)
{
	size_t limit = (size_t)256 << 20;

	assert_in_range(bytes_of(12500, 8, takt_placement_find("fgd")), 1 << 20, limit / 8);
	assert_in_range(bytes_of(12500, 8, takt_placements[0]), 1 << 20, limit / 4);
	assert_in_range(bytes_of(100000, 1, takt_placements[0]), 1 << 20, limit);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole_devices_run_out),
		cmocka_unit_test(test_rollback_restores),
		cmocka_unit_test(test_hundred_thousand_gpus_fit_256_mib),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
