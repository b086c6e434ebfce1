/* SPDX-License-Identifier: Apache-2.0 */
/* Which model the policy hetero places work on, and for which it lets it wait. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/mem.h"
#include "base/rng.h"
#include "sched/cluster.h"

enum {
	V100,
	P100,
	K80,
	MODELS,
	NODES = 9, /* of each model */
	WIDTH = 4, /* devices of a node */
};

static struct takt_cluster *made_with(int64_t wait)
{
	static const char *const names[] = {"v100", "p100", "k80"};
	struct takt_place_param param = {"wait", wait};
	struct takt_cluster_config config = {
		.placement = &takt_place_hetero, .params = &param, .param_count = wait >= 0};
	struct takt_cluster *cluster;
	uint32_t id;

	assert_int_equal(takt_cluster_new(&config, &cluster, NULL), 0);
	for (uint32_t i = 0; i < MODELS; i++) {
		struct takt_model_desc model = {.name = names[i]};
		struct takt_node_desc node = {.device_count = WIDTH, .model = i};

		assert_int_equal(takt_cluster_model(cluster, &model, &id, NULL), 0);
		for (uint32_t n = 0; n < NODES; n++)
			assert_int_equal(takt_cluster_add_node(cluster, &node, &id, NULL), 0);
	}
	return cluster;
}

static struct takt_cluster *made(void)
{
	return made_with(-1);
}

static uint32_t kind(struct takt_cluster *cluster, struct takt_request request)
{
	uint32_t id;

	assert_int_equal(takt_cluster_kind(cluster, &request, &id, NULL), 0);
	return id;
}

static struct takt_request one_device(struct takt_cluster *cluster, uint16_t v100, uint16_t p100,
				      uint16_t k80)
{
	uint16_t permille[] = {v100, p100, k80};
	uint32_t id;

	assert_int_equal(takt_cluster_speeds(cluster, permille, MODELS, &id, NULL), 0);
	return (struct takt_request){.devices = 1, .milli = 1000, .speeds = (uint16_t)id};
}

/* Takes the first devices of a model. */
static void hold(struct takt_cluster *cluster, uint32_t model, uint32_t devices)
{
	uint32_t id = kind(cluster, (struct takt_request){.devices = 1, .milli = 1000});

	for (uint32_t i = 0; i < devices; i++) {
		struct takt_slot slot = {.node = model * NODES + i / WIDTH,
					 .dev_mask = UINT64_C(1) << (i % WIDTH),
					 .milli = 1000};

		assert_int_equal(takt_cluster_take(cluster, id, &slot), 0);
	}
}

static int model_of(struct takt_cluster *cluster, struct takt_request request)
{
	struct takt_slot slot;

	if (!takt_cluster_pick(cluster, kind(cluster, request), NULL, &slot, NULL))
		return -1;
	return (int)(slot.node / NODES);
}

static void test_an_empty_cluster_gives_the_fastest(void **state)
{
	struct takt_cluster *cluster = made();

	(void)state;
	assert_int_equal(model_of(cluster, one_device(cluster, 1000, 640, 140)), V100);
	assert_int_equal(model_of(cluster, one_device(cluster, 430, 1000, 650)), P100);
	takt_cluster_free(cluster);
}

/* ResNet-18 (batch size 256) is 12 times as fast on a V100 as on a K80, Transformer (batch size 16)
 * twice: when both of the fast models run full the one waits and the other starts. */
static void test_the_slow_model_takes_who_loses_little(void **state)
{
	struct takt_cluster *cluster = made();
	struct takt_request resnet = one_device(cluster, 1000, 750, 86);
	struct takt_request transformer = one_device(cluster, 1000, 862, 494);
	struct takt_fit_counts why;

	(void)state;
	hold(cluster, V100, NODES * WIDTH - 1);
	hold(cluster, P100, NODES * WIDTH - 1);
	assert_int_equal(model_of(cluster, resnet), V100);
	assert_int_equal(model_of(cluster, transformer), K80);
	takt_cluster_free(cluster);

	cluster = made();
	resnet = one_device(cluster, 1000, 750, 86);
	hold(cluster, V100, NODES * WIDTH);
	hold(cluster, P100, NODES * WIDTH);
	assert_int_equal(model_of(cluster, resnet), -1);
	takt_cluster_explain(cluster, kind(cluster, resnet), NULL, &why);
	assert_int_equal(why.first[TAKT_FIT_DEVICES], 2 * NODES);
	assert_int_equal(why.first[TAKT_FIT_POLICY], NODES);
	takt_cluster_free(cluster);
}

static void test_bounds_of_waiting(void **state)
{
	static const struct {
		uint32_t v100_held, k80_held;
		uint16_t k80_permille;
		int64_t wait;
		int expected;
	} rows[] = {
		{36, 0, 223, -1, K80},			    /* 4.48 times slower, empty: starts */
		{36, 0, 222, -1, -1},			    /* 4.5 times: waits */
		{36, 35, 690, -1, K80},			    /* both full but for one device */
		{36, 35, 530, -1, -1},	{36, 0, 1, 0, K80}, /* never waits */
		{36, 0, 0, 0, -1},			    /* cannot run there */
		{36, 0, 333, 1000, -1}, {36, 0, 334, 1000, K80},
	};

	(void)state;
	for (size_t i = 0; i < TAKT_ARRAY_LEN(rows); i++) {
		struct takt_cluster *cluster = made_with(rows[i].wait);

		hold(cluster, V100, rows[i].v100_held);
		hold(cluster, K80, rows[i].k80_held);
		assert_int_equal(
			model_of(cluster, one_device(cluster, 1000, 0, rows[i].k80_permille)),
			rows[i].expected);
		takt_cluster_free(cluster);
	}
}

static void test_what_cannot_come_free_is_not_waited_for(void **state)
{
	struct takt_cluster *cluster = made();
	struct takt_request slow = one_device(cluster, 1000, 0, 10);
	struct takt_node_desc wide = {.device_count = 8, .model = K80};
	uint32_t id;

	(void)state;
	hold(cluster, V100, NODES * WIDTH);
	assert_int_equal(model_of(cluster, slow), -1);
	for (uint32_t i = 0; i < NODES; i++) /* as when a rack is taken out */
		assert_int_equal(takt_cluster_set_drained(cluster, V100 * NODES + i, true), 0);
	assert_int_equal(model_of(cluster, slow), K80);
	assert_int_equal(takt_cluster_set_drained(cluster, V100 * NODES, false), 0);
	assert_int_equal(model_of(cluster, slow), -1);

	slow.devices = 8; /* only one node is that wide, however slow its model */
	assert_int_equal(model_of(cluster, slow), -1);
	assert_int_equal(takt_cluster_add_node(cluster, &wide, &id, NULL), 0);
	assert_int_equal(model_of(cluster, slow), MODELS);

	slow.devices = 1; /* who may not run on the fast one does not wait for it */
	slow.model_mask = UINT64_C(1) << K80;
	assert_int_equal(model_of(cluster, slow), K80);
	takt_cluster_free(cluster);
}

/* Work of which nothing is known goes where there is most left of a model, and never waits. */
static void test_untold_speeds_never_wait(void **state)
{
	struct takt_cluster *cluster = made();
	struct takt_request any = {.devices = 1, .milli = 1000};

	(void)state;
	hold(cluster, V100, 20);
	hold(cluster, P100, 10);
	hold(cluster, K80, 30);
	assert_int_equal(model_of(cluster, any), P100);
	takt_cluster_free(cluster);

	cluster = made();
	hold(cluster, V100, NODES * WIDTH - 1);
	any.model_mask = UINT64_C(1) << V100;
	assert_int_equal(model_of(cluster, any), V100);
	takt_cluster_free(cluster);
}

static void test_small_work_fills_started_nodes(void **state)
{
	struct takt_cluster *cluster = made();
	struct takt_request request = one_device(cluster, 1000, 640, 140);
	struct takt_slot slot = {.node = 4, .dev_mask = 7, .milli = 1000};
	uint32_t three = kind(cluster, (struct takt_request){.devices = 3, .milli = 1000});

	(void)state;
	assert_int_equal(takt_cluster_take(cluster, three, &slot), 0);
	assert_true(takt_cluster_pick(cluster, kind(cluster, request), NULL, &slot, NULL));
	assert_int_equal(slot.node, 4);
	assert_int_equal(slot.dev_mask, 8);
	takt_cluster_free(cluster);
}

/* The choice is the one that looking at every node gives, prices and refusals included. */
static void test_equals_the_naive_scan_on_random_work(void **state)
{
	struct takt_cluster *cluster = made();
	struct takt_slot slot[200], naive;
	uint32_t kinds[200], held = 0, refused = 0;
	struct takt_rng rng;

	(void)state;
	takt_rng_init(&rng, 4);
	for (int step = 0; step < 3000; step++) {
		struct takt_request request =
			one_device(cluster, 1000, (uint16_t)takt_rng_range(&rng, 1, 4) * 250,
				   (uint16_t)takt_rng_range(&rng, 1, 4) * 50);
		bool some, same;

		request.devices = (uint16_t)(1u << takt_rng_below(&rng, 3));
		kinds[held] = kind(cluster, request);
		some = takt_cluster_pick(cluster, kinds[held], NULL, &slot[held], NULL);
		same = takt_cluster_pick_naive(cluster, kinds[held], NULL, &naive, NULL);
		assert_int_equal(some, same);
		if (some) {
			assert_memory_equal(&slot[held], &naive, sizeof(naive));
			assert_int_equal(takt_cluster_take(cluster, kinds[held], &naive), 0);
			held++;
		}
		refused += !some;
		if (!some || takt_rng_below(&rng, 3) == 0) {
			uint32_t gone = (uint32_t)takt_rng_below(&rng, held);

			assert_int_equal(takt_cluster_give(cluster, kinds[gone], &slot[gone]), 0);
			held--;
			kinds[gone] = kinds[held];
			slot[gone] = slot[held];
		}
	}
	assert_true(refused > 100);
	takt_cluster_free(cluster);
}

static void test_wrong_parameters_and_no_memory(void **state)
{
	struct takt_place_param param = {"patience", 1};
	struct takt_cluster_config config = {
		.placement = &takt_place_hetero, .params = &param, .param_count = 1};
	struct takt_cluster *cluster = NULL;
	struct takt_err err;
	int rc = -ENOMEM;

	(void)state;
	assert_int_equal(takt_cluster_new(&config, &cluster, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "patience"));
	config.param_count = 0;
	for (unsigned long nth = 1; rc < 0; nth++) {
		takt_alloc_fail_nth(nth, 0);
		rc = takt_cluster_new(&config, &cluster, &err);
		takt_alloc_fail_nth(0, 0);
		assert_true(rc == 0 || rc == -ENOMEM);
	}
	takt_cluster_free(cluster);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_empty_cluster_gives_the_fastest),
		cmocka_unit_test(test_the_slow_model_takes_who_loses_little),
		cmocka_unit_test(test_bounds_of_waiting),
		cmocka_unit_test(test_what_cannot_come_free_is_not_waited_for),
		cmocka_unit_test(test_untold_speeds_never_wait),
		cmocka_unit_test(test_small_work_fills_started_nodes),
		cmocka_unit_test(test_equals_the_naive_scan_on_random_work),
		cmocka_unit_test(test_wrong_parameters_and_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
