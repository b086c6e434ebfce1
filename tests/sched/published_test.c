/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The published policies choose as their formulas in floating point do: the same node, and the same
 * device, for every task of the given traces. The formulas are written down here once more, as they
 * were published, with libm; a decision looks at every node.
 *
 * Usage: published_test TRACES VARIANT... ; TAKT_TEST_LONG=1 in the environment: all of them,
 * whole.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/rng.h"
#include "sched/compare/compare.h"
#include "sim/fgd_draw.h"
#include "sim/fgd_typical.h"
#include "sim/sim_build.h"
#include "sim/trace.h"

enum {
	TUNING = 1300,
	SEED = 1000,
	MAX_DEVICES = 8,
};

struct typical {
	double frequency;
	const struct takt_fgd_typical_pod *pod;
};

struct seen {
	uint32_t version; /* of the node; 0 = never */
	int16_t score;	  /* -1 = does not fit */
	int16_t device;	  /* of a fraction; -1 = as the policy leaves it */
};

struct world {
	struct takt_sim_cluster nodes;
	struct takt_sim_work work;
	struct takt_fgd_typical typical;
	struct takt_fgd_draw draw;
	struct takt_cluster *cluster;
	uint32_t *kinds;
	uint32_t *versions;   /* of nodes */
	struct seen *seen[2]; /* without and with noise, by kind and node */
	uint32_t *by_rank;
	double *frequency;
	bool noise;
	uint64_t decisions, placed, by_noise;
};

/* One published score of a node where the task fits; *ret_device for a fraction. */
typedef int64_t score_fn(const struct world *world, const struct takt_node *node,
			 const struct takt_request *request, int *ret_device);

static double cpu_of(const struct takt_request *request)
{
	return request->cpu_milli ? request->cpu_milli : 100;
}

static double all_left(const struct takt_node *node)
{
	double sum = 0;

	for (int i = 0; i < node->devices; i++)
		sum += node->left[i];
	return sum;
}

/* What is left of a node, as the published simulator copies it to try a task. */
struct tried {
	double cpu;
	int devices;
	int64_t left[MAX_DEVICES];
	uint32_t model;
};

static double fragmentation(const struct world *world, const struct tried *tried)
{
	enum {
		LACK_BOTH,
		LACK_GPU,
		SATISFIED,
		LACK_CPU,
		NO_GPU_CPU_OK,
		NO_GPU_CPU_SHORT,
		NO_ACCESS,
		KINDS
	};
	double amount[KINDS] = {0}, sum = 0;

	for (size_t m = 0; m < world->typical.pods.len; m++) {
		const struct takt_fgd_typical_pod *pod = &world->typical.pods.at[m];
		bool cpu = tried->cpu >= (pod->cpu_milli ? pod->cpu_milli : 100);
		int64_t total = 0, unusable = 0;
		uint32_t can = 0;
		int kind;

		for (int i = 0; i < tried->devices; i++) {
			total += tried->left[i];
			can += tried->left[i] >= pod->milli;
			unusable += tried->left[i] < pod->milli ? tried->left[i] : 0;
		}
		if (pod->gpus == 0)
			kind = cpu ? NO_GPU_CPU_OK : NO_GPU_CPU_SHORT;
		else if (pod->model_mask && !(pod->model_mask >> tried->model & 1))
			kind = NO_ACCESS;
		else if (can >= pod->gpus)
			kind = cpu ? SATISFIED : LACK_CPU;
		else
			kind = cpu ? LACK_GPU : LACK_BOTH;
		if (kind == SATISFIED) {
			amount[LACK_GPU] += world->frequency[m] * (double)unusable;
			amount[SATISFIED] += world->frequency[m] * (double)(total - unusable);
		} else {
			amount[kind] += world->frequency[m] * (double)total;
		}
	}
	for (int i = 0; i < KINDS; i++)
		sum += i == SATISFIED ? 0 : amount[i];
	return sum;
}

/*
 * Where a task changes no fragmentation at all, but some of it changes its class (too little CPU
 * now), before and after are the same numbers added up in another order, and the published form
 * gives 50 or 49 by the last bit of the sums. That noise is taken out here: less than a billionth
 * of a milli-GPU is none. With `noise` it stays in; how many decisions it would turn is printed.
 */
static int64_t fgd_score(const struct world *world, double before, double after)
{
	double gradient = before - after;

	if (!world->noise && fabs(gradient) < 1e-9)
		gradient = 0;
	return (int64_t)(1.0 / (1.0 + exp(-gradient / 1000)) * 100.0);
}

static int64_t score_fgd(const struct world *world, const struct takt_node *node,
			 const struct takt_request *request, int *ret_device)
{
	struct tried tried = {
		.cpu = node->cpu_left_milli, .devices = node->devices, .model = node->model};
	uint32_t need = request->devices;
	double before;
	int64_t best = -1;

	for (int i = 0; i < node->devices; i++)
		tried.left[i] = node->left[i];
	before = fragmentation(world, &tried);
	tried.cpu -= cpu_of(request);
	if (need == 1 && request->milli < 1000) {
		for (int i = 0; i < node->devices; i++) {
			int64_t score;

			if (tried.left[i] < request->milli)
				continue;
			tried.left[i] -= request->milli;
			score = fgd_score(world, before, fragmentation(world, &tried));
			tried.left[i] += request->milli;
			if (score > best) {
				best = score;
				*ret_device = i;
			}
		}
		return best;
	}
	for (int i = 0; i < node->devices && need; i++) {
		if (tried.left[i] == 1000) {
			tried.left[i] = 0;
			need--;
		}
	}
	return fgd_score(world, before, fragmentation(world, &tried));
}

static int64_t score_bestfit(const struct world *world, const struct takt_node *node,
			     const struct takt_request *request, int *ret_device)
{
	double asked = (double)request->milli * request->devices, score = 0;

	(void)world;
	(void)ret_device;
	score += (node->cpu_left_milli - cpu_of(request)) / 128000.0 * 0.5;
	score += (all_left(node) - asked) / 8000.0 * 0.5;
	return (int64_t)((1.0 - score) * 100.0);
}

static int64_t score_dotprod(const struct world *world, const struct takt_node *node,
			     const struct takt_request *request, int *ret_device)
{
	double asked = (double)request->milli * request->devices, product = 0;

	(void)world;
	(void)ret_device;
	product += node->cpu_left_milli / 128000.0 * (cpu_of(request) / 128000.0);
	product += all_left(node) / 8000.0 * (asked / 8000.0);
	return (int64_t)(100.0 * (1 - product / 2.0));
}

static bool fits(const struct takt_node *node, const struct takt_request *request)
{
	uint32_t can = 0;

	if (request->cpu_milli > node->cpu_left_milli || request->mem_mib > node->mem_left_mib)
		return false;
	if (request->devices && request->model_mask && !(request->model_mask >> node->model & 1))
		return false;
	for (int i = 0; i < node->devices; i++)
		can += node->left[i] >= request->milli;
	return can >= request->devices;
}

static const struct seen *look(struct world *world, uint32_t kind, uint32_t id, score_fn *score)
{
	struct seen *seen = &world->seen[world->noise][(size_t)kind * world->nodes.nodes.len + id];
	const struct takt_node *node = takt_cluster_node(world->cluster, id);
	const struct takt_request *request =
		takt_cluster_request(world->cluster, world->kinds[kind]);
	int device = -1;

	if (seen->version == world->versions[id])
		return seen;
	seen->version = world->versions[id];
	seen->score = -1;
	if (fits(node, request))
		seen->score = (int16_t)score(world, node, request, &device);
	seen->device = (int16_t)device;
	return seen;
}

/* The published choice: highest score, then the first by rank; -1 = it fits nowhere. */
static int64_t choose(struct world *world, uint32_t kind, score_fn *score, int *ret_device)
{
	int64_t best = -1, node = -1;

	for (size_t i = 0; i < world->nodes.nodes.len; i++) {
		const struct seen *seen = look(world, kind, world->by_rank[i], score);

		if (seen->score <= best)
			continue;
		best = seen->score;
		node = world->by_rank[i];
		*ret_device = seen->device;
	}
	return node;
}

static void offer(struct world *world, uint32_t kind, score_fn *score)
{
	int device = -1;
	int64_t node = choose(world, kind, score, &device);
	struct takt_slot slot;
	bool placed = takt_cluster_pick(world->cluster, world->kinds[kind], NULL, &slot, NULL);
	int64_t noisy;
	int any;

	world->decisions++;
	world->noise = true;
	noisy = score == score_fgd ? choose(world, kind, score, &any) : node;
	world->noise = false;
	world->by_noise += noisy != node;
	assert_int_equal(placed, node >= 0);
	if (!placed)
		return;
	if (slot.node != node)
		fail_msg("decision %llu: node %u, published %lld",
			 (unsigned long long)world->decisions, slot.node, (long long)node);
	if (device >= 0)
		assert_int_equal(slot.dev_mask, UINT64_C(1) << device);
	assert_int_equal(takt_cluster_take(world->cluster, world->kinds[kind], &slot), 0);
	world->versions[slot.node]++;
	world->placed++;
}

static void load(struct world *world, const char *variant)
{
	char path[512];
	struct takt_err err = {0};
	const char *traces = getenv("TAKT_TRACES");

	assert_non_null(traces);
	snprintf(path, sizeof(path), "%s/openb_node_list_gpu_node.csv", traces);
	if (takt_sim_cluster_load(path, &world->nodes, &err) < 0)
		fail_msg("%s", err.msg);
	snprintf(path, sizeof(path), "%s/openb_pod_list_%s.csv.gz", traces, variant);
	if (takt_sim_work_load(path, 1u << TAKT_TRACE_JOB_GPUS, &world->nodes, &world->work, &err) <
		    0 ||
	    takt_fgd_typical(&world->work, &world->typical, &err) < 0 ||
	    takt_fgd_draw(&world->nodes, &world->work, SEED, TUNING, &world->draw, &err) < 0)
		fail_msg("%s", err.msg);
}

/* Frequencies as published: of all pods first, then of the typical ones. */
static void set_frequencies(struct world *world)
{
	double all = (double)world->work.jobs.len, typical = (double)world->typical.total;

	world->frequency = calloc(world->typical.pods.len, sizeof(double));
	for (size_t i = 0; i < world->typical.pods.len; i++)
		world->frequency[i] =
			(double)world->typical.pods.at[i].count / all / (typical / all);
}

static void build(struct world *world, const struct takt_placement *placement)
{
	struct takt_workload workload = {world->typical.items.at, world->typical.items.len};
	struct takt_cluster_config config = {.placement = placement, .workload = &workload};
	size_t nodes = world->nodes.nodes.len;

	world->kinds = calloc(world->work.kinds.len, sizeof(*world->kinds));
	world->versions = calloc(nodes, sizeof(*world->versions));
	world->by_rank = calloc(nodes, sizeof(*world->by_rank));
	for (int i = 0; i < 2; i++)
		world->seen[i] = calloc(nodes * world->work.kinds.len, sizeof(*world->seen[i]));
	set_frequencies(world);
	for (uint32_t i = 0; i < nodes; i++) {
		world->versions[i] = 1;
		world->by_rank[world->draw.ranks.at[i]] = i;
	}
	assert_int_equal(
		takt_sim_build(&world->nodes, world->draw.ranks.at, &config, &world->cluster, NULL),
		0);
	assert_int_equal(takt_sim_build_kinds(world->cluster, &world->work, world->kinds, NULL), 0);
}

static void unload(struct world *world)
{
	takt_cluster_free(world->cluster);
	takt_fgd_draw_fini(&world->draw);
	takt_fgd_typical_fini(&world->typical);
	takt_sim_work_fini(&world->work);
	takt_sim_cluster_fini(&world->nodes);
	free(world->kinds);
	free(world->versions);
	free(world->by_rank);
	free(world->seen[0]);
	free(world->seen[1]);
	free(world->frequency);
}

static void same_as_published(const char *variant, const char *policy, score_fn *score,
			      size_t at_most)
{
	struct world world = {.decisions = 0};
	size_t arrivals;

	load(&world, variant);
	build(&world, takt_compare_find(policy));
	arrivals = world.draw.arrivals.len;
	if (!getenv("TAKT_TEST_LONG") && at_most < arrivals)
		arrivals = at_most;
	for (size_t i = 0; i < arrivals; i++)
		offer(&world, world.work.jobs.at[world.draw.arrivals.at[i]].kind, score);
	print_message("# %s, %s: %llu decisions, %llu placed, %llu would turn by rounding\n",
		      variant, policy, (unsigned long long)world.decisions,
		      (unsigned long long)world.placed, (unsigned long long)world.by_noise);
	assert_true(world.placed > arrivals * 7 / 10);
	unload(&world);
}

static const char *const variants[] = {"default", "cpu100", "gpushare40", "gpuspec10",
				       "multigpu20"};

/* The whole of the first variant, and the part of the others in which a sanitized build keeps
 * within seconds. */
static void on_every_variant(const char *policy, score_fn *score, size_t whole, size_t part)
{
	for (size_t i = 0; i < TAKT_ARRAY_LEN(variants); i++)
		same_as_published(variants[i], policy, score, i == 0 ? whole : part);
}

static void test_fgd_decides_as_published(void **state)
{
	on_every_variant("fgd", score_fgd, SIZE_MAX, 4000);
}

static void test_bestfit_decides_as_published(void **state)
{
	on_every_variant("bestfit", score_bestfit, SIZE_MAX, SIZE_MAX);
}

static void test_dotprod_decides_as_published(void **state)
{
	on_every_variant("dotprod", score_dotprod, SIZE_MAX, SIZE_MAX);
}

struct running {
	uint32_t kind;
	struct takt_slot slot;
};

/* A task ends, or a node fails or returns. */
static void disturb(struct world *world, struct takt_rng *rng, struct running *running,
		    size_t *count)
{
	size_t at = takt_rng_below(rng, *count);
	uint32_t node = (uint32_t)takt_rng_below(rng, world->nodes.nodes.len);

	if (takt_rng_below(rng, 8) == 0)
		takt_cluster_set_unhealthy(world->cluster, node, takt_rng_below(rng, 4));
	assert_int_equal(takt_cluster_give(world->cluster, running[at].kind, &running[at].slot), 0);
	running[at] = running[--*count];
}

static void same_as_scan(const char *variant, const struct takt_placement *policy, size_t at_most)
{
	struct world world = {.decisions = 0};
	struct running *running;
	struct takt_rng rng;
	size_t arrivals, count = 0;

	load(&world, variant);
	build(&world, policy);
	takt_rng_init(&rng, SEED);
	arrivals = world.draw.arrivals.len;
	if (!getenv("TAKT_TEST_LONG") && at_most < arrivals)
		arrivals = at_most;
	running = calloc(arrivals, sizeof(*running));
	for (size_t i = 0; i < arrivals; i++) {
		uint32_t job = world.draw.arrivals.at[i];
		uint32_t kind = world.kinds[world.work.jobs.at[job].kind];
		struct takt_slot fast = {0}, scan = {0};
		bool found = takt_cluster_pick(world.cluster, kind, NULL, &fast, NULL);

		assert_int_equal(found,
				 takt_cluster_pick_naive(world.cluster, kind, NULL, &scan, NULL));
		assert_memory_equal(&fast, &scan, sizeof(fast));
		if (!found)
			continue;
		assert_int_equal(takt_cluster_take(world.cluster, kind, &fast), 0);
		running[count++] = (struct running){.kind = kind, .slot = fast};
		if (i % 4 == 3)
			disturb(&world, &rng, running, &count);
	}
	free(running);
	unload(&world);
}

static void test_index_finds_what_a_scan_finds(void **state)
{
	for (size_t i = 0; i < TAKT_ARRAY_LEN(variants); i++) {
		same_as_scan(variants[i], takt_placements[0], 2000);
		same_as_scan(variants[i], takt_compare_find("fgd"), 1000);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fgd_decides_as_published),
		cmocka_unit_test(test_bestfit_decides_as_published),
		cmocka_unit_test(test_dotprod_decides_as_published),
		cmocka_unit_test(test_index_finds_what_a_scan_finds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
