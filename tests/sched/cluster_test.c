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

static void test_named_devices_and_no_others(void **state)
{
	struct takt_cluster *cluster = make();
	uint32_t on = node(cluster, model(cluster, "A100", 40960), 4);
	uint32_t last = kind(cluster, (struct takt_request){.devices = 1,
							    .milli = TAKT_REQUEST_WHOLE,
							    .only_devices = 1u << 3});
	uint32_t pair = kind(cluster, (struct takt_request){.devices = 2,
							    .milli = TAKT_REQUEST_WHOLE,
							    .only_devices = 0xd});
	uint32_t part =
		kind(cluster,
		     (struct takt_request){.devices = 1, .milli = 400, .only_devices = 1u << 1});
	uint32_t none = kind(cluster, (struct takt_request){.devices = 1,
							    .milli = TAKT_REQUEST_WHOLE,
							    .only_devices = 1u << 5});
	struct takt_slot slot;

	assert_int_equal(place(cluster, last).dev_mask, 1u << 3);
	assert_int_equal(place(cluster, pair).dev_mask, 0x5);
	assert_int_equal(place(cluster, part).dev_mask, 0x2);
	assert_int_equal(place(cluster, part).dev_mask, 0x2);
	assert_false(takt_cluster_pick(cluster, part, NULL, &slot, NULL));
	assert_int_equal(takt_cluster_why_not(cluster, last, on, NULL), 1u << TAKT_FIT_DEVICES);
	assert_int_equal(takt_cluster_why_not(cluster, none, on, NULL), 1u << TAKT_FIT_COUNT_OF);
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

/* Profiles of an A100 as its driver lists them. */
static const struct takt_mig_profile a100_mig[] = {
	{.name = "1g.5gb", .size = 1, .slices = 1, .max = 7},
	{.name = "2g.10gb", .size = 2, .slices = 2, .max = 3},
	{.name = "3g.20gb", .size = 4, .slices = 3, .max = 2},
	{.name = "4g.20gb", .size = 4, .slices = 4, .max = 1},
	{.name = "7g.40gb", .size = 8, .slices = 7, .max = 1},
};

static struct takt_cluster *make_a100(uint32_t devices)
{
	struct takt_cluster *cluster = make();
	struct takt_model_desc desc = {
		.name = "A100", .mem_mib = 40960, .mig = a100_mig, .mig_count = 5};
	uint32_t id;

	assert_int_equal(takt_cluster_model(cluster, &desc, &id, NULL), 0);
	node(cluster, id, devices);
	return cluster;
}

static uint32_t instance(struct takt_cluster *cluster, const char *name)
{
	int profile = takt_cluster_mig_find(cluster, name);

	assert_true(profile > 0);
	return kind(cluster, (struct takt_request){.devices = 1, .mig_profile = (uint8_t)profile});
}

/* The places that public examples show: seven small ones fill seven slices, a 4g only begins at 0,
 * a 3g at 0 or 4, and a small one goes where it leaves the large ones their places. */
static void test_mig_instances_go_where_a_driver_puts_them(void **state)
{
	struct takt_cluster *cluster = make_a100(1);
	uint32_t small = instance(cluster, "1g.5gb"), four = instance(cluster, "4g.20gb");
	uint32_t three = instance(cluster, "3g.20gb"),
		 whole = kind(cluster, (struct takt_request){.devices = 1, .milli = 1000});
	struct takt_slot first = place(cluster, small), slot;

	assert_int_equal(first.mig_start, 6);
	assert_false(takt_cluster_pick(cluster, whole, NULL, &slot, NULL));
	assert_int_equal(place(cluster, four).mig_start, 0);
	assert_false(takt_cluster_pick(cluster, four, NULL, &slot, NULL));
	assert_false(takt_cluster_pick(cluster, three, NULL, &slot, NULL));
	assert_int_equal(takt_cluster_give(cluster, small, &first), 0);
	assert_int_equal(place(cluster, three).mig_start, 4);
	assert_false(takt_cluster_pick(cluster, small, NULL, &slot, NULL));
	assert_int_equal(takt_cluster_totals(cluster)->held_milli, 4000 / 7 + 3000 / 7);
	takt_cluster_free(cluster);
}

static void test_seven_small_instances_fill_a_device(void **state)
{
	struct takt_cluster *cluster = make_a100(2);
	uint32_t small = instance(cluster, "1g.5gb");
	uint32_t whole = kind(cluster, (struct takt_request){.devices = 1, .milli = 1000});
	struct takt_slot slots[7];

	assert_int_equal(takt_cluster_room(cluster, small, 0), 14);
	for (int i = 0; i < 7; i++)
		slots[i] = place(cluster, small);
	for (int i = 0; i < 7; i++)
		assert_int_equal(slots[i].dev_mask, slots[0].dev_mask);
	assert_int_equal(takt_cluster_room(cluster, whole, 0), 1);
	for (int i = 0; i < 7; i++)
		assert_int_equal(takt_cluster_give(cluster, small, &slots[i]), 0);
	assert_int_equal(takt_cluster_room(cluster, whole, 0), 2);
	takt_cluster_free(cluster);
}

static void test_a_fixed_layout_offers_what_it_was_cut_into(void **state)
{
	struct takt_cluster *cluster = make();
	struct takt_model_desc model_desc = {.name = "A100", .mig = a100_mig, .mig_count = 5};
	struct takt_device_desc device = {.mig = TAKT_MIG_FIXED};
	struct takt_node_desc desc = {.device_count = 1, .device = &device};
	struct takt_err err = {0};
	uint8_t layout[TAKT_CLUSTER_MAX_MIG] = {0};
	struct takt_slot slot;
	uint32_t id, three;

	assert_int_equal(takt_cluster_model(cluster, &model_desc, &device.model, NULL), 0);
	device.layout[2] = (uint8_t)takt_cluster_mig_find(cluster, "3g.20gb");
	assert_int_equal(takt_cluster_add_node(cluster, &desc, &id, &err), -EINVAL);
	assert_string_equal(err.msg, "device 0: MIG profile 3 cannot start at slice 2");
	device.layout[4] = device.layout[2];
	device.layout[2] = 0;
	assert_int_equal(takt_cluster_add_node(cluster, &desc, &id, &err), 0);
	three = instance(cluster, "3g.20gb");
	assert_int_equal(place(cluster, three).mig_start, 4);
	assert_false(takt_cluster_pick(cluster, three, NULL, &slot, NULL));
	assert_int_equal(takt_cluster_why_not(cluster, instance(cluster, "1g.5gb"), 0, NULL) &
				 1u << TAKT_FIT_MODEL,
			 1u << TAKT_FIT_MODEL);
	layout[2] = (uint8_t)takt_cluster_mig_find(cluster, "1g.5gb");
	assert_int_equal(takt_cluster_set_layout(cluster, id, 0, layout, &err), -EINVAL);
	assert_string_equal(err.msg, "device 0: the MIG instance at slice 4 is held");
	layout[4] = device.layout[4];
	assert_int_equal(takt_cluster_set_layout(cluster, id, 0, layout, &err), 0);
	assert_int_equal(place(cluster, instance(cluster, "1g.5gb")).mig_start, 2);
	assert_false(takt_cluster_pick(cluster, three, NULL, &slot, NULL));
	layout[7] = layout[4];
	assert_int_equal(takt_cluster_set_layout(cluster, id, 0, layout, &err), -EINVAL);
	assert_int_equal(takt_cluster_set_layout(cluster, id, 1, layout, &err), -EINVAL);
	takt_cluster_free(cluster);
}

static void test_memory_of_a_gpu_is_a_share_of_it(void **state)
{
	struct takt_cluster *cluster = make();
	uint32_t t4 = model(cluster, "T4", 16000);
	uint32_t by_memory =
		kind(cluster, (struct takt_request){.devices = 1, .dev_mem_mib = 6000});
	uint32_t half = kind(cluster, (struct takt_request){.devices = 1, .milli = 500});
	uint32_t greedy = kind(cluster, (struct takt_request){.devices = 1, .dev_mem_mib = 17000});
	struct takt_slot slot;

	node(cluster, t4, 1);
	assert_int_equal(place(cluster, by_memory).milli, 375);
	assert_int_equal(place(cluster, half).milli, 500);
	assert_false(takt_cluster_pick(cluster, by_memory, NULL, &slot, NULL));
	assert_int_equal(takt_cluster_why_not(cluster, by_memory, 0, NULL), 1u << TAKT_FIT_DEV_MEM);
	assert_true(takt_cluster_why_not(cluster, greedy, 0, NULL) & 1u << TAKT_FIT_SIZE);
	takt_cluster_free(cluster);
}

static void test_the_devices_of_a_task_are_of_one_model(void **state)
{
	struct takt_cluster *cluster = make();
	uint32_t t4 = model(cluster, "T4", 0), v100 = model(cluster, "V100", 0), id;
	struct takt_device_desc device[4] = {
		{.model = t4}, {.model = v100}, {.model = t4}, {.model = v100}};
	struct takt_node_desc desc = {.device_count = 4, .device = device};
	uint32_t two = kind(cluster, (struct takt_request){.devices = 2, .milli = 1000});
	uint32_t three = kind(cluster, (struct takt_request){.devices = 3, .milli = 1000});

	assert_int_equal(takt_cluster_add_node(cluster, &desc, &id, NULL), 0);
	assert_int_equal(takt_cluster_why_not(cluster, three, id, NULL) & 1u << TAKT_FIT_COUNT_OF,
			 1u << TAKT_FIT_COUNT_OF);
	assert_int_equal(place(cluster, two).dev_mask, 0x5);
	assert_int_equal(place(cluster, two).dev_mask, 0xa);
	takt_cluster_free(cluster);
}

static void test_linked_pairs_and_numa_nodes_are_kept(void **state)
{
	static const int32_t score[16] = {0,  10, 90, 10, 10, 0,  10, 90,
					  90, 10, 0,  10, 10, 90, 10, 0};
	static const uint8_t numa[4] = {0, 1, 0, 1};
	struct takt_cluster *cluster = make();
	struct takt_node_desc desc = {.device_count = 4, .model = model(cluster, "V100", 0)};
	uint32_t two = kind(cluster, (struct takt_request){.devices = 2, .milli = 1000});
	uint32_t one = kind(cluster, (struct takt_request){.devices = 1, .milli = 1000});
	uint32_t near = kind(
		cluster,
		(struct takt_request){.devices = 2, .milli = 1000, .flags = TAKT_REQUEST_ONE_NUMA});
	struct takt_slot slot;
	uint32_t id;

	assert_int_equal(takt_cluster_link_class(cluster, 4, score, numa, &desc.link_class, NULL),
			 0);
	assert_int_equal(takt_cluster_add_node(cluster, &desc, &id, NULL), 0);
	assert_int_equal(place(cluster, two).dev_mask, 0x5);
	slot = place(cluster, one);
	assert_int_equal(slot.dev_mask, 0x2);
	assert_int_equal(takt_cluster_why_not(cluster, near, id, NULL) & 1u << TAKT_FIT_DEVICES,
			 1u << TAKT_FIT_DEVICES);
	takt_cluster_set_unhealthy(cluster, id, 0);
	assert_int_equal(takt_cluster_give(cluster, one, &slot), 0);
	assert_int_equal(place(cluster, near).dev_mask, 0xa);
	takt_cluster_free(cluster);
}

static void test_labels_and_taints_choose_nodes(void **state)
{
	static const char *const ssd[] = {"ssd"};
	static const struct takt_requirement terms[] = {
		{TAKT_REQUIREMENT_IN, "disk", ssd, 1},
		{TAKT_REQUIREMENT_TOLERATES, "spot", NULL, 0}};
	static const struct takt_label disk = {"disk", "ssd"}, spot = {"spot", NULL};
	struct takt_cluster *cluster = make();
	struct takt_node_desc plain = {.cpu_milli = 1000};
	struct takt_node_desc tainted = {.cpu_milli = 1000,
					 .labels = &disk,
					 .label_count = 1,
					 .taints = &spot,
					 .taint_count = 1};
	struct takt_request request = {.cpu_milli = 100};
	uint32_t first, second, any, picky, again;

	assert_int_equal(takt_cluster_add_node(cluster, &tainted, &first, NULL), 0);
	assert_int_equal(takt_cluster_add_node(cluster, &plain, &second, NULL), 0);
	any = kind(cluster, request);
	assert_int_equal(takt_cluster_selector(cluster, terms, 2, &request.selector, NULL), 0);
	assert_int_equal(takt_cluster_selector(cluster, terms, 2, &again, NULL), 0);
	assert_int_equal(again, request.selector);
	picky = kind(cluster, request);
	assert_int_equal(place(cluster, any).node, second);
	assert_int_equal(place(cluster, picky).node, first);
	assert_int_equal(takt_cluster_set_labels(cluster, second, &disk, 1, NULL, 0, NULL), 0);
	assert_int_equal(takt_cluster_set_labels(cluster, first, NULL, 0, NULL, 0, NULL), 0);
	assert_int_equal(place(cluster, picky).node, second);
	assert_int_equal(place(cluster, any).node, first);
	takt_cluster_free(cluster);
}

static void test_domains_bound_a_gang(void **state)
{
	struct takt_cluster *cluster = make();
	uint32_t t4 = model(cluster, "T4", 0), rack, zone, level, domain[2], two, found, id;
	struct takt_scope scope = {.domain = 0};
	struct takt_slot slot;

	assert_int_equal(takt_cluster_level(cluster, "zone", &zone, NULL), 0);
	assert_int_equal(takt_cluster_level(cluster, "rack", &rack, NULL), 0);
	assert_int_equal(takt_cluster_domain(cluster, zone, 0, "z", &level, NULL), 0);
	assert_int_equal(takt_cluster_domain(cluster, rack, level, "a", &domain[0], NULL), 0);
	assert_int_equal(takt_cluster_domain(cluster, rack, level, "b", &domain[1], NULL), 0);
	for (uint32_t i = 0; i < 5; i++) {
		struct takt_node_desc desc = {
			.device_count = 4, .model = t4, .domain = domain[i >= 3]};

		assert_int_equal(takt_cluster_add_node(cluster, &desc, &id, NULL), 0);
	}
	two = kind(cluster, (struct takt_request){.devices = 2, .milli = 1000});
	assert_int_equal(takt_cluster_domain_room(cluster, two, 0), 10);
	assert_true(takt_cluster_tightest(cluster, two, rack, 4, &found));
	assert_int_equal(found, domain[1]);
	assert_true(takt_cluster_tightest(cluster, two, rack, 5, &found));
	assert_int_equal(found, domain[0]);
	assert_false(takt_cluster_tightest(cluster, two, rack, 7, &found));
	assert_true(takt_cluster_tightest(cluster, two, zone, 7, &found));
	scope.domain = domain[1];
	assert_true(takt_cluster_pick(cluster, two, &scope, &slot, NULL));
	assert_int_equal(slot.node, 3);
	assert_int_equal(takt_cluster_node_domain(cluster, 4, zone), level);
	id = place(cluster, two).node;
	assert_int_equal(takt_cluster_room(cluster, two, id), 1);
	assert_int_equal(takt_cluster_room_when_empty(cluster, two, id), 2);
	takt_cluster_free(cluster);
}

static void test_power_follows_what_is_held(void **state)
{
	struct takt_cluster *cluster = make();
	struct takt_model_desc v100 = {.name = "V100", .idle_mw = 30000, .busy_mw = 300000};
	struct takt_node_desc desc = {.cpu_milli = 96000,
				      .device_count = 2,
				      .cpu_package_milli = 48000,
				      .cpu_idle_mw = 20000,
				      .cpu_busy_mw = 165000};
	struct takt_request request = {.devices = 1, .milli = 100, .cpu_milli = 8000};
	uint64_t mw = 0;
	uint32_t id, k;

	assert_int_equal(takt_cluster_model(cluster, &v100, &desc.model, NULL), 0);
	assert_int_equal(takt_cluster_add_node(cluster, &desc, &id, NULL), 0);
	assert_int_equal(takt_cluster_node_power_mw(cluster, id, &mw), 0);
	assert_int_equal(mw, 2 * 30000 + 2 * 20000);
	assert_int_equal(takt_cluster_node_power_after_mw(cluster, id, &request, 1, &mw), 0);
	k = kind(cluster, request);
	place(cluster, k);
	assert_int_equal(takt_cluster_node_power_mw(cluster, id, &mw), 0);
	assert_int_equal(mw, 300000 + 30000 + 165000 + 20000);
	assert_int_equal(takt_cluster_node_power_mw(cluster, node(cluster, desc.model, 1), &mw),
			 -ENOENT);
	takt_cluster_free(cluster);
}

static void test_contradictions_are_refused(void **state)
{
	struct takt_cluster *cluster = make();
	uint32_t t4 = model(cluster, "T4", 0), half, id;
	struct takt_request memory_of_two = {.devices = 2, .dev_mem_mib = 500};
	struct takt_slot slot;
	struct takt_err err = {0};

	node(cluster, t4, 1);
	half = kind(cluster, (struct takt_request){.devices = 1, .milli = 500});
	slot = place(cluster, half);
	place(cluster, half);
	assert_int_equal(takt_cluster_take(cluster, half, &slot), -TAKT_E_CONFLICT);
	slot.dev_mask = 2;
	assert_int_equal(takt_cluster_take(cluster, half, &slot), -EINVAL);
	slot.dev_mask = 1;
	slot.milli = 400;
	assert_int_equal(takt_cluster_give(cluster, half, &slot), -EINVAL);
	assert_int_equal(takt_cluster_kind(cluster, &memory_of_two, &id, &err), -EINVAL);
	assert_string_equal(err.msg, "a share of memory alone is of one accelerator, not of 2; ask "
				     "for milli or for tasks");
	takt_cluster_free(cluster);
}

/* A share of each of several devices: different ones, each with enough left. */
static void test_shares_of_several_devices(void **state)
{
	struct takt_cluster *cluster = make();
	uint32_t t4 = model(cluster, "T4", 0), pair, one;
	struct takt_slot a = {.milli = 400, .dev_mask = 1 << 0 | 1 << 2};
	struct takt_slot b = {.milli = 700, .dev_mask = 1 << 1};

	node(cluster, t4, 3);
	pair = kind(cluster, (struct takt_request){.devices = 2, .milli = 400});
	one = kind(cluster, (struct takt_request){.devices = 1, .milli = 700});
	assert_int_equal(takt_cluster_room(cluster, pair, 0), 3);
	assert_int_equal(takt_cluster_take(cluster, pair, &a), 0);
	assert_int_equal(takt_cluster_take(cluster, one, &b), 0);
	assert_int_equal(takt_cluster_room(cluster, pair, 0), 1);
	assert_int_equal(takt_cluster_take(cluster, pair, &a), 0);
	assert_int_equal(takt_cluster_room(cluster, pair, 0), 0);
	assert_int_equal(takt_cluster_take(cluster, pair, &a), -TAKT_E_CONFLICT);
	assert_int_equal(takt_cluster_give(cluster, pair, &a), 0);
	assert_int_equal(takt_cluster_room(cluster, pair, 0), 1);
	takt_cluster_free(cluster);
}

/* Whatever allocation fails, nothing is half done: the next try goes on as if nothing had been. */
static void test_no_allocation_is_taken_for_granted(void **state)
{
	for (unsigned long nth = 1;; nth++) {
		struct takt_cluster *cluster = make();
		struct takt_model_desc desc = {.name = "T4", .mem_mib = 1000};
		struct takt_node_desc n = {.cpu_milli = 1000, .device_count = 2, .name = "n"};
		struct takt_request request = {.devices = 1, .milli = 500, .max_per_node = 3};
		struct takt_slot slot = {.milli = 500, .dev_mask = 1};
		struct takt_fit_counts counts;
		unsigned long before = takt_alloc_count();
		uint32_t id, k = 0, level, domain;
		int rc;

		takt_alloc_fail_nth(nth, 0);
		rc = takt_cluster_model(cluster, &desc, &id, NULL);
		rc = rc ? rc : takt_cluster_level(cluster, "rack", &level, NULL);
		rc = rc ? rc : takt_cluster_domain(cluster, level, 0, "r", &domain, NULL);
		n.domain = rc ? 0 : domain;
		rc = rc ? rc : takt_cluster_add_node(cluster, &n, &id, NULL);
		rc = rc ? rc : takt_cluster_kind(cluster, &request, &k, NULL);
		if (rc == 0) {
			assert_true(takt_cluster_pick(cluster, k, NULL, &slot, NULL));
			takt_cluster_explain(cluster, k, NULL, &counts);
			assert_int_equal(counts.fit, 1);
			assert_int_equal(takt_cluster_domain_room(cluster, k, domain), 3);
			takt_cluster_mark(cluster);
			rc = takt_cluster_take(cluster, k, &slot);
			assert_int_equal(takt_cluster_totals(cluster)->tasks, rc == 0);
			takt_cluster_rollback(cluster, 0);
			assert_int_equal(takt_cluster_totals(cluster)->tasks, 0);
		}
		takt_alloc_fail_nth(0, 0);
		assert_true(rc == 0 || rc == -ENOMEM);
		takt_cluster_free(cluster);
		if (takt_alloc_count() - before < nth)
			break;
	}
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
		cmocka_unit_test(test_named_devices_and_no_others),
		cmocka_unit_test(test_rollback_restores),
		cmocka_unit_test(test_mig_instances_go_where_a_driver_puts_them),
		cmocka_unit_test(test_seven_small_instances_fill_a_device),
		cmocka_unit_test(test_a_fixed_layout_offers_what_it_was_cut_into),
		cmocka_unit_test(test_memory_of_a_gpu_is_a_share_of_it),
		cmocka_unit_test(test_the_devices_of_a_task_are_of_one_model),
		cmocka_unit_test(test_linked_pairs_and_numa_nodes_are_kept),
		cmocka_unit_test(test_labels_and_taints_choose_nodes),
		cmocka_unit_test(test_domains_bound_a_gang),
		cmocka_unit_test(test_power_follows_what_is_held),
		cmocka_unit_test(test_contradictions_are_refused),
		cmocka_unit_test(test_shares_of_several_devices),
		cmocka_unit_test(test_no_allocation_is_taken_for_granted),
		cmocka_unit_test(test_hundred_thousand_gpus_fit_256_mib),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
