/* SPDX-License-Identifier: Apache-2.0 */
/* Where the policies place: what each promises in its header, by examples one can check by hand. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/mem.h"
#include "place_kit.h"
#include "sched/place_price.h"
#include "sched/place_value.h"

/*
 * Values and prices, which takt is made of.
 */

static void values_of(const struct few_work *works, struct takt_place_values *ret)
{
	struct takt_workload_item items[8] = {0};
	struct takt_workload workload = {.items = items};

	for (; works->weight; works++) {
		struct takt_workload_item *item = &items[workload.count++];

		item->request = few_request(works->devices, works->milli, works->cpu_milli);
		item->weight = works->weight;
	}
	takt_place_values(&workload, ret);
}

static void waste_is_what_no_combination_fills(void **state)
{
	static const struct few_work works[] = {{1, 1, 810, 3000}, {1, 1, 470, 8000}, {0}};
	struct takt_place_values values;

	(void)state;
	values_of(works, &values);
	assert_int_equal(values.at[0].waste, 0);
	assert_int_equal(values.at[469].waste, 469 * TAKT_VALUE_ONE);
	assert_int_equal(values.at[470].waste, 0);
	assert_int_equal(values.at[470].cpu_milli, 8000);
	assert_in_range(values.at[940].cpu_milli, 15000, 16000);
	/* 470 + 470 leaves 60, 810 leaves 190: between the two, and nearer to the better. */
	assert_in_range(values.at[1000].waste, 60 * TAKT_VALUE_ONE, 70 * TAKT_VALUE_ONE);
}

static void waste_never_exceeds_what_is_left(void **state)
{
	static const struct few_work works[] = {{7, 1, 1000, 11000},
						{3, 1, 650, 9000},
						{2, 1, 320, 4000},
						{1, 8, 1000, 80000},
						{0}};
	struct takt_place_values values;

	(void)state;
	values_of(works, &values);
	for (int32_t left = 0; left <= TAKT_REQUEST_WHOLE; left++)
		assert_in_range(values.at[left].waste, 0, left * TAKT_VALUE_ONE);
}

static void values_depend_on_the_ratio_of_weights_only(void **state)
{
	static const struct few_work few[] = {{5, 1, 1000, 9000}, {3, 1, 330, 2000}, {0}};
	static const struct few_work many[] = {
		{UINT64_C(5) << 50, 1, 1000, 9000}, {UINT64_C(3) << 50, 1, 330, 2000}, {0}};
	struct takt_place_values a, b;

	(void)state;
	values_of(few, &a);
	values_of(many, &b);
	assert_memory_equal(&a, &b, sizeof(a));
}

static void scarcity_is_what_only_a_model_can_serve_over_its_part(void **state)
{
	struct takt_workload_item items[] = {{few_request(1, 1000, 0), 6},
					     {few_request(2, 1000, 0), 1},
					     {few_request(1, 500, 0), 4}};
	struct takt_workload workload = {.items = items, .count = 3};
	struct takt_cluster_totals totals = {.devices = 100};
	uint32_t permille[TAKT_CLUSTER_MAX_MODELS];
	struct takt_model_demand demand;

	(void)state;
	totals.model[0].devices = 20;
	totals.model[1].devices = 30;
	totals.model[2].devices = 50;
	items[1].request.model_mask = 1;
	items[2].request.model_mask = 3;
	assert_int_equal(takt_model_demand_init(&demand, &workload), 0);
	takt_model_scarcity(&demand, &totals, permille);
	/* 2 of 10 asked for model 0, a fifth of the cluster; 2 of 10 for it or model 1, a half. */
	assert_int_equal(permille[0], 1000 + 400);
	assert_int_equal(permille[1], 400);
	assert_int_equal(permille[2], 0);
	takt_model_demand_fini(&demand);
}

/*
 * takt.
 */

static const struct few_work mix[] = {{50, 1, 1000, 8000}, {12, 1, 650, 8000},	{12, 1, 350, 4000},
				      {12, 1, 810, 4000},  {6, 8, 1000, 80000}, {0}};

static void remainders_that_fit_are_filled(void **state)
{
	struct takt_cluster *cluster = few_cluster("takt", mix, NULL);

	(void)state;
	for (int i = 0; i < 3; i++)
		few_node(cluster, FEW_A, 4, 40000);
	few_put(cluster, 1, 1, 810, 4000);
	few_put(cluster, 2, 1, 650, 8000);
	assert_int_equal(few_place(cluster, 1, 350, 4000), 2);
	takt_cluster_free(cluster);
}

static void a_fraction_takes_the_device_that_it_fills(void **state)
{
	struct takt_cluster *cluster = few_cluster("takt", mix, NULL);
	uint64_t devices;

	(void)state;
	few_node(cluster, FEW_A, 4, 40000);
	few_put(cluster, 0, 1 << 1, 100, 0);
	few_put(cluster, 0, 1 << 2, 650, 0);
	assert_int_equal(few_place_on(cluster, 1, 350, &devices), 0);
	assert_int_equal(devices, 1 << 2);
	takt_cluster_free(cluster);
}

static void equal_places_go_by_rank(void **state)
{
	struct takt_cluster *cluster = few_cluster("takt", mix, NULL);

	(void)state;
	few_node(cluster, FEW_A, 4, 40000);
	few_node(cluster, FEW_A, 4, 40000);
	for (int i = 0; i < 3; i++)
		assert_int_equal(few_place(cluster, 1, 1000, 8000), 0);
	takt_cluster_free(cluster);
}

static void models_are_left_to_those_who_need_them(void **state)
{
	static const struct few_work picky[] = {
		{5, 1, 1000, 8000, 1 << FEW_A}, {5, 1, 1000, 8000, 0}, {0}};
	struct takt_cluster *cluster = few_cluster("takt", picky, NULL);
	struct takt_cluster *blind = few_cluster("takt", mix, NULL);

	(void)state;
	few_node(cluster, FEW_A, 4, 40000);
	few_node(cluster, FEW_B, 4, 40000);
	assert_int_equal(few_place(cluster, 1, 1000, 8000), 1);
	few_node(blind, FEW_A, 4, 40000);
	few_node(blind, FEW_B, 4, 40000);
	assert_int_equal(few_place(blind, 1, 1000, 8000), 0);
	takt_cluster_free(cluster);
	takt_cluster_free(blind);
}

static void a_full_cluster_is_used_whatever_the_price(void **state)
{
	static const struct few_work picky[] = {
		{5, 1, 1000, 8000, 1 << FEW_A}, {5, 1, 1000, 8000, 0}, {0}};
	struct takt_cluster *cluster = few_cluster("takt", picky, NULL);

	(void)state;
	few_node(cluster, FEW_A, 2, 40000);
	few_node(cluster, FEW_B, 2, 40000);
	for (int i = 0; i < 4; i++)
		assert_int_not_equal(few_place(cluster, 1, 1000, 8000), FEW_NOWHERE);
	takt_cluster_free(cluster);
}

static void cpu_is_taken_where_there_is_plenty(void **state)
{
	struct takt_cluster *cluster = few_cluster("takt", mix, NULL);

	(void)state;
	few_node(cluster, FEW_A, 4, 40000);
	few_node(cluster, FEW_A, 4, 128000);
	assert_int_equal(few_place(cluster, 0, 0, 32000), 1);
	assert_int_equal(few_place(cluster, 1, 1000, 30000), 1);
	takt_cluster_free(cluster);
}

static void the_roomiest_node_is_broken_last(void **state)
{
	struct takt_cluster *cluster = few_cluster("takt", mix, NULL);

	(void)state;
	few_node(cluster, FEW_A, 8, 256000);
	for (int i = 0; i < 3; i++)
		few_node(cluster, FEW_A, 8, 96000);
	assert_int_equal(few_place(cluster, 1, 1000, 8000), 1);
	takt_cluster_free(cluster);
}

/* Of 30 wide nodes, one or ten are still free; a task for one device has the choice between
 * breaking the first of those and a begun node that is further down. */
static int chosen_with_intact(uint32_t intact)
{
	struct takt_cluster *cluster = few_cluster("takt", mix, NULL);
	int node;

	for (uint32_t i = 0; i < 30; i++) {
		few_node(cluster, FEW_A, 8, 96000);
		if (i >= intact)
			few_put(cluster, i, 0x3f, 1000, 64000);
	}
	node = few_place(cluster, 1, 1000, 8000);
	takt_cluster_free(cluster);
	return node;
}

static void the_last_whole_nodes_are_kept(void **state)
{
	(void)state;
	assert_int_equal(chosen_with_intact(10), 0);
	assert_int_equal(chosen_with_intact(1), 1);
}

static void without_a_workload_fractions_gather(void **state)
{
	struct takt_cluster *cluster = few_cluster("takt", NULL, NULL);
	uint64_t devices;

	(void)state;
	few_node(cluster, FEW_A, 4, 40000);
	few_node(cluster, FEW_A, 4, 40000);
	few_put(cluster, 1, 1 << 2, 300, 0);
	assert_int_equal(few_place_on(cluster, 1, 300, &devices), 1);
	assert_int_equal(devices, 1 << 2);
	takt_cluster_free(cluster);
}

/*
 * The others.
 */

static void pack_fills_and_spread_empties(void **state)
{
	struct takt_cluster *pack = few_cluster("pack", NULL, NULL);
	struct takt_cluster *spread = few_cluster("spread", NULL, NULL);
	uint64_t devices;

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct takt_cluster *cluster = i ? spread : pack;

		few_node(cluster, FEW_A, 4, 40000);
		few_node(cluster, FEW_A, 4, 40000);
		few_put(cluster, 1, 1, 500, 0);
	}
	assert_int_equal(few_place(pack, 1, 1000, 0), 1);
	assert_int_equal(few_place(spread, 1, 1000, 0), 0);
	assert_int_equal(few_place_on(pack, 1, 200, &devices), 1);
	assert_int_equal(devices, 1);
	assert_int_equal(few_place_on(spread, 1, 200, &devices), 1);
	assert_int_equal(devices, 1 << 1);
	takt_cluster_free(pack);
	takt_cluster_free(spread);
}

static void pack_leaves_devices_to_those_who_use_them(void **state)
{
	struct takt_cluster *cluster = few_cluster("pack", NULL, NULL);

	(void)state;
	few_node(cluster, FEW_A, 4, 40000);
	few_node(cluster, FEW_A, 0, 40000);
	few_put(cluster, 0, 1, 1000, 30000);
	assert_int_equal(few_place(cluster, 0, 0, 1000), 1);
	takt_cluster_free(cluster);
}

static void four_nodes_take_turns_under_the_bound(void **state)
{
	struct takt_cluster *cluster = few_cluster("least-utilised", NULL, NULL);
	static const int turns[] = {0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3};

	(void)state;
	for (int i = 0; i < 4; i++)
		few_node(cluster, FEW_A, 4, 0);
	for (size_t i = 0; i < TAKT_ARRAY_LEN(turns); i++)
		assert_int_equal(few_place(cluster, 1, 1000, 0), turns[i]);
	assert_int_equal(few_place(cluster, 1, 1000, 0), FEW_NOWHERE);
	takt_cluster_free(cluster);
}

static int place_strictly(int64_t under, uint32_t held_of_eight)
{
	struct takt_place_param params[] = {{"under", under}, {"strict", 1}, {NULL, 0}};
	struct takt_cluster *cluster = few_cluster("least-utilised", NULL, params);
	int node;

	few_node(cluster, FEW_A, 8, 0);
	few_put(cluster, 0, (UINT64_C(1) << held_of_eight) - 1, 1000, 0);
	node = few_place(cluster, 1, 1000, 0);
	takt_cluster_free(cluster);
	return node;
}

static void a_strict_bound_makes_wait(void **state)
{
	(void)state;
	assert_int_equal(place_strictly(70, 5), 0); /* 62.5 % */
	assert_int_equal(place_strictly(70, 6), FEW_NOWHERE);
	assert_int_equal(place_strictly(80, 6), 0);
}

static void utilisation_of_cpu_counts(void **state)
{
	struct takt_cluster *cluster = few_cluster("least-utilised", NULL, NULL);

	(void)state;
	few_node(cluster, FEW_A, 4, 40000);
	few_node(cluster, FEW_A, 4, 40000);
	few_put(cluster, 0, 0, 0, 36000);
	few_put(cluster, 1, 3, 1000, 0);
	assert_int_equal(few_place(cluster, 1, 1000, 0), 1);
	takt_cluster_free(cluster);
}

static void energy_wakes_as_little_as_it_can(void **state)
{
	struct takt_cluster *cluster = few_cluster("energy", NULL, NULL);
	uint64_t devices;

	(void)state;
	few_node(cluster, FEW_C, 4, 24000);
	few_node(cluster, FEW_A, 4, 24000);
	few_node(cluster, FEW_B, 4, 24000);
	few_put(cluster, 1, 1 << 3, 400, 1000);
	assert_int_equal(few_place_on(cluster, 1, 500, &devices), 1); /* nothing grows */
	assert_int_equal(devices, 1 << 3);
	assert_int_equal(few_place(cluster, 1, 1000, 1000), 2); /* 60 + 145 W < 250 W */
	assert_int_equal(few_place(cluster, 1, 500, 1000), 2);
	assert_int_equal(few_place(cluster, 4, 1000, 0), 0); /* only there, though unknown */
	takt_cluster_free(cluster);
}

/* Two pairs, linked inside. */
static const int32_t pairs[16] = {0, 100, 10, 10, 100, 0, 10, 10, 10, 10, 0, 100, 10, 10, 100, 0};
static const int32_t weak[16] = {0, 10, 10, 10, 10, 0, 10, 10, 10, 10, 0, 10, 10, 10, 10, 0};

static void two_devices_get_a_linked_pair(void **state)
{
	struct takt_cluster *cluster = few_cluster("topology", NULL, NULL);
	uint64_t devices;

	(void)state;
	few_linked_node(cluster, 4, pairs);
	few_linked_node(cluster, 4, pairs);
	few_put(cluster, 0, 1 << 0 | 1 << 2, 1000, 0);
	assert_int_equal(few_place_on(cluster, 2, 1000, &devices), 1);
	assert_true(devices == 3 || devices == 12);
	takt_cluster_free(cluster);
}

static void an_odd_request_takes_the_odd_device(void **state)
{
	struct takt_cluster *cluster = few_cluster("topology", NULL, NULL);
	uint64_t devices, begun;

	(void)state;
	few_linked_node(cluster, 4, pairs);
	few_linked_node(cluster, 4, pairs);
	few_put(cluster, 1, 1 << 2, 1000, 0);
	assert_int_equal(few_place_on(cluster, 1, 1000, &devices), 1);
	assert_int_equal(devices, 1 << 3);
	assert_int_equal(few_place_on(cluster, 1, 400, &devices), 1); /* breaks fewer links */
	assert_int_equal(few_place_on(cluster, 1, 400, &begun), 1);
	assert_int_equal(begun, devices);
	takt_cluster_free(cluster);
}

static void equal_weak_links_are_as_good_as_a_machine_has(void **state)
{
	struct takt_cluster *cluster = few_cluster("topology", NULL, NULL);
	uint64_t devices;

	(void)state;
	few_node(cluster, FEW_A, 4, 0);
	few_linked_node(cluster, 4, weak);
	assert_int_equal(few_place_on(cluster, 2, 1000, &devices), 1);
	takt_cluster_free(cluster);
}

static void parameters_are_checked(void **state)
{
	static const struct takt_workload none;
	struct takt_place_param unknown = {"steps", 1}, large = {"under", 101};
	struct takt_place_setup setup = {.workload = &none, .params = &unknown, .param_count = 1};
	struct takt_err err;
	void *made;

	(void)state;
	for (size_t i = 0; takt_placements[i]; i++) {
		if (!takt_placements[i]->prepare)
			continue;
		assert_int_equal(takt_placements[i]->prepare(&setup, &made, &err), -EINVAL);
		assert_string_equal(err.msg, "the policy has no parameter steps");
	}
	setup.params = &large;
	assert_int_equal(takt_place_least_utilised.prepare(&setup, &made, &err), -EINVAL);
}

static void a_policy_without_memory_is_none(void **state)
{
	static const struct takt_workload none;
	struct takt_place_setup setup = {.workload = &none};
	struct takt_err err;

	(void)state;
	for (size_t i = 0; takt_placements[i]; i++) {
		const struct takt_placement *placement = takt_placements[i];
		void *made = NULL;
		int rc = -ENOMEM;

		for (unsigned long nth = 1; rc == -ENOMEM && placement->prepare; nth++) {
			takt_alloc_fail_nth(nth, 0);
			rc = placement->prepare(&setup, &made, &err);
			takt_alloc_fail_nth(0, 0);
			assert_true(rc == 0 || (rc == -ENOMEM && !made));
		}
		if (placement->release)
			placement->release(made);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waste_is_what_no_combination_fills),
		cmocka_unit_test(waste_never_exceeds_what_is_left),
		cmocka_unit_test(values_depend_on_the_ratio_of_weights_only),
		cmocka_unit_test(scarcity_is_what_only_a_model_can_serve_over_its_part),
		cmocka_unit_test(remainders_that_fit_are_filled),
		cmocka_unit_test(a_fraction_takes_the_device_that_it_fills),
		cmocka_unit_test(equal_places_go_by_rank),
		cmocka_unit_test(models_are_left_to_those_who_need_them),
		cmocka_unit_test(a_full_cluster_is_used_whatever_the_price),
		cmocka_unit_test(cpu_is_taken_where_there_is_plenty),
		cmocka_unit_test(the_roomiest_node_is_broken_last),
		cmocka_unit_test(the_last_whole_nodes_are_kept),
		cmocka_unit_test(without_a_workload_fractions_gather),
		cmocka_unit_test(pack_fills_and_spread_empties),
		cmocka_unit_test(pack_leaves_devices_to_those_who_use_them),
		cmocka_unit_test(four_nodes_take_turns_under_the_bound),
		cmocka_unit_test(a_strict_bound_makes_wait),
		cmocka_unit_test(utilisation_of_cpu_counts),
		cmocka_unit_test(energy_wakes_as_little_as_it_can),
		cmocka_unit_test(two_devices_get_a_linked_pair),
		cmocka_unit_test(an_odd_request_takes_the_odd_device),
		cmocka_unit_test(equal_weak_links_are_as_good_as_a_machine_has),
		cmocka_unit_test(parameters_are_checked),
		cmocka_unit_test(a_policy_without_memory_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
